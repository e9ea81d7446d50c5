"""Waiting for what another thread or process does."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import httpx

SECONDS = 120
"""Guards against waiting for ever only: a busy machine takes long for anything."""
START_SECONDS = 180


def eventually(is_so: Callable[[], object], process: subprocess.Popen | None = None) -> None:
    """Wait until something is so; a process that has to bring it about must not end before."""
    deadline = time.monotonic() + SECONDS
    while not is_so():
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.005)


def until_served(url: str, has_ended: Callable[[], object], log: Path) -> None:
    """Wait until a Space answers; fail with its log if its process ends before."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert not has_ended(), f"the Space ended at its start:\n{log.read_text()}"
        try:
            httpx.get(f"{url}/healthz", timeout=START_SECONDS, trust_env=False)
            return
        except httpx.TransportError:
            time.sleep(0.1)
    raise AssertionError(f"the Space does not answer:\n{log.read_text()}")
