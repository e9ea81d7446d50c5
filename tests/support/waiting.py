"""Waiting for what another thread or process does."""

import subprocess
import time
from collections.abc import Callable

SECONDS = 120
"""Guards against waiting for ever only: a busy machine takes long for anything."""


def eventually(is_so: Callable[[], object], process: subprocess.Popen | None = None) -> None:
    """Wait until something is so; a process that has to bring it about must not end before."""
    deadline = time.monotonic() + SECONDS
    while not is_so():
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.005)
