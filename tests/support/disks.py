"""A small disk that a test fills."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Callable[[], bool]]:
    """Mount a file system of ``size`` in a new folder; yield a function that makes it larger.

    The test is skipped if this user may not mount one.
    """
    folder.mkdir()

    def mount(options: str) -> bool:
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        return subprocess.run(command, capture_output=True).returncode == 0

    if not mount(f"size={size}"):
        pytest.skip("a file system cannot be mounted here")
    try:
        yield lambda: mount("remount,size=64m")
    finally:
        subprocess.run(["umount", str(folder)], check=True)
