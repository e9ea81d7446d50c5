"""Limit the memory of a command and all its processes together, with a control group of Linux."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_ROOT: Final = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class MemoryGroup:
    """A control group of version 1 or 2, given by its folder."""

    folder: Path
    is_v2: bool

    def enter(self) -> None:
        """Put the calling process into the group. Can be the ``preexec_fn`` of subprocess."""
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def killed(self) -> int:
        """Return how many processes the kernel killed because the group was full."""
        name = "memory.events" if self.is_v2 else "memory.oom_control"
        lines = (self.folder / name).read_text().splitlines()
        return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)


@contextmanager
def memory_group(most_bytes: int) -> Iterator[MemoryGroup | None]:
    """Yield a control group with this limit, or None if this user may not create one."""
    is_v2 = (_ROOT / "cgroup.controllers").exists()
    folder = (_ROOT if is_v2 else _ROOT / "memory") / f"flood-{os.getpid()}"
    group = MemoryGroup(folder, is_v2)
    try:
        folder.mkdir()
        limit = "memory.max" if is_v2 else "memory.limit_in_bytes"
        (folder / limit).write_text(str(most_bytes))
    except OSError:
        if folder.exists():
            folder.rmdir()
        yield None
        return
    try:
        yield group
    finally:
        folder.rmdir()


def entering(group: MemoryGroup | None) -> Callable[[], None] | None:
    """Return a function that puts the calling process into the group, or None without a group."""
    return None if group is None else group.enter
