"""What tests of the benchmarks share."""

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def printed_by():
    """A function that runs a benchmark as a command; it may miss its targets if ``statuses`` has a 1."""

    def run(name: str, *options: str, statuses: tuple[int, ...] = (0,)) -> str:
        command = [sys.executable, "-m", f"bench.{name}", *options]
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=900)
        assert done.returncode in statuses, done.stdout + done.stderr
        return done.stdout

    return run
