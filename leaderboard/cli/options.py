"""The options of leaderboard's commands, as `options.toml` describes them."""

from pathlib import Path

from arb.core.options import described_by

described = described_by(Path(__file__).with_suffix(".toml"))
