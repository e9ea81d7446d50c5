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
    _, dry, first, second, loaded, _ = said
    assert "planned" in dry and "published" not in dry
    assert first.count("published") >= 3 and "was there already" not in first
    assert second.count("was there already") >= 3
    assert len([name for name in names if "sample" in name or "judge_precision" in name]) == len(names) >= 4
    for split in ("dev", "test"):  # the sample's own counts
        n_rows = len(load_suite("sample").split(split))
        assert re.search(rf"{split}: Dataset.*?num_rows: {n_rows}\b", loaded, re.DOTALL)
