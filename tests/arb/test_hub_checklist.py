"""docs/hub_checklist.md, as far as a Hub on this machine goes: its commands, and the data that it loads."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from arb.core.suite import load_suite
from tests.support.hub_server.server import running_hub
from tests.support.pages import blocks, commands_of, text_of

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_commands_of_hub_checklist_md_publish_the_sample_once_and_load_it(monkeypatch, tmp_path):
    said: list[str] = []
    (tmp_path / "dataset_script").symlink_to(REPOSITORY / "dataset_script")  # as in a checkout
    text = re.sub(r"\byou\b", "maintainer", text_of("docs/hub_checklist.md"))
    with running_hub(monkeypatch) as hub:
        variables = {
            **os.environ, "HF_ENDPOINT": hub.url, "HF_TOKEN": "hf_maintainer", "HF_HUB_DISABLE_XET": "1",
            "HF_HOME": str(tmp_path / "hf"), "ARB_CACHE_DIR": str(tmp_path / "cache"), "NO_COLOR": "1",
            "PYTHONPATH": str(REPOSITORY),
        }  # fmt: skip
        for _, language, block in blocks(text):
            commands = (
                [["-c", block]] if language == "python" else [["-m", *c.split()] for c in commands_of(block)]
            )
            for command in commands:
                done = subprocess.run(
                    [sys.executable, *command], cwd=tmp_path, env=variables, capture_output=True, text=True
                )
                assert done.returncode == 0, done.stdout + done.stderr
                said.append(done.stdout + done.stderr)
        names = set(hub.api.repositories)
        served = hub.api.repositories["spaces/maintainer/sample-leaderboard"].variables
    _, dry, first, second, loaded, _ = said
    # labels, dataset, metric, leaderboard, records and board
    assert dry.count("planned") == len(names) == 6 and "lists six repositories" in text
    assert "published" not in dry
    assert first.count("published") >= 3 and "was there already" not in first
    assert second.count("was there already") >= 3
    assert served["ARB_LABELS"] == "hub:maintainer/sample-labels"  # otherwise nobody could submit
    cleaned = re.findall(r"`([a-z_-]+)`", text.partition("## 9. Clean up")[2].partition("## ")[0])
    assert sorted(cleaned) == sorted(name.rpartition("/")[2] for name in names)
    for split in ("dev", "test"):  # the sample's own counts
        n_rows = len(load_suite("sample").split(split))
        assert re.search(rf"{split}: Dataset.*?num_rows: {n_rows}\b", loaded, re.DOTALL)
