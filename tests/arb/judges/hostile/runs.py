"""Runs of a judge against a hostile endpoint, and what they left: shared by the cases of this folder."""

import json
from collections import Counter
from pathlib import Path

from typer.testing import CliRunner

from arb.judges.__main__ import app

HELD_OUT = 52
"""Trajectories of the sample's test split."""


def run(
    base_url: str, folder: Path, *more, judge="simplified-axtree", model="m", provider="any", split="test"
):
    """Run the command over a split of the sample; the folder holds the run and its reply cache."""
    given = ["run", judge, "--suite", "sample", "--split", split, "--model", model, "--provider", provider]
    given += ["--base-url", base_url, "--out", folder / "run", "--cache", folder / "cache", *more]
    return CliRunner().invoke(app, list(map(str, given)))


def states(folder: Path) -> Counter:
    """Return how many trajectories of the run ended in each state."""
    lines = (folder / "run/predictions.jsonl").read_text().splitlines()
    return Counter(json.loads(line)["state"] for line in lines)
