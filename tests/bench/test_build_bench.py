"""`bench.build`: every stage at two small sizes, and what is uploaded for one run more."""

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.shared
def test_every_stage_is_measured_and_an_added_run_uploads_little_else(shared, tmp_path):
    options = ["--megabytes", "0", "--runs", "2", "6", "--more-of", "12", "--folder", str(tmp_path)]
    source = ["--source", str(shared / "data" / "released_layout")]
    done = subprocess.run(
        [sys.executable, "-m", "bench.build", *options, *source],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    lines = done.stdout.splitlines()
    assert done.returncode in (0, 1), done.stderr  # at these sizes the start of the processes is most of it
    assert lines[0].split() == ["runs", "plain", "build", "verify", "verify", "again", "publish"]
    assert [line.split()[0] for line in lines[1:3]] == ["2", "6"]
    anew, appended = (float(line.split(": ")[1].split()[0]) for line in lines if "more runs" in line)
    assert 0 < appended < anew  # one run of twelve; built anew, whole files are other ones
    assert not any(tmp_path.iterdir())
