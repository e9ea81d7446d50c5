"""The hooks of pre-commit in a fresh clone, which has no environment yet."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_ruff_runs_in_a_fresh_clone_and_finds_a_fault(tmp_path):
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", ROOT.as_uri(), clone], check=True)
    environment = {**os.environ, "PRE_COMMIT_HOME": str(tmp_path / "hooks")}

    def run(*hook: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pre_commit", "run", *hook, "--all-files"]
        return subprocess.run(
            command, cwd=clone, env=environment, capture_output=True, text=True, timeout=600
        )

    for hook in ("lint", "format"):
        done = run(hook)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Passed" in done.stdout
    (clone / "arb" / "core" / "ids.py").write_text("import os\n")  # not used
    done = run("lint")
    assert done.returncode == 1
    assert "F401" in done.stdout
