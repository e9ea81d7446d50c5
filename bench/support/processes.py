"""Run a command and measure it: wall time, CPU time, bytes read and written, and peak memory by process."""

import os
import resource
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Watched:
    """What a command took from start to end.

    ``peak_bytes`` is the largest sum of resident memory, in which shared pages count several times.
    ``parent_bytes`` is the peak of the command's own process, ``worker_bytes`` the largest peak of a process
    that it started. ``user_seconds`` and ``kernel_seconds`` are CPU time in programs and in the kernel. Bytes
    and calls are counted for read, write and similar system calls on files and pipes, whether or not a disk
    was needed; other work on the machine does not change them.
    """

    seconds: float
    peak_bytes: int
    user_seconds: float
    kernel_seconds: float
    parent_bytes: int = 0
    worker_bytes: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    write_calls: int = 0

    @property
    def cpu_seconds(self) -> float:
        return self.user_seconds + self.kernel_seconds


def watch(command: list[str], every: float = 0.03, environment: Mapping[str, str] | None = None) -> Watched:
    """Run a command to its end and measure it; memory is sampled at intervals of ``every`` seconds.

    Raises:
        CalledProcessError: The command fails. It has the output of the command.
    """
    begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    peak = parent = worker = 0
    ended = threading.Event()

    def sample() -> None:
        nonlocal peak, parent, worker
        while not ended.wait(every):
            own, *others = map(resident, family(process.pid))
            peak, parent = max(peak, own + sum(others)), max(parent, own)
            worker = max([worker, *others])

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        output = process.stdout.read()
        # A process that has ended but was not waited for still has its counts, and those of its children.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        counts = _io_counts(process.pid)
        process.communicate()
        seconds = time.perf_counter() - begun
    finally:
        ended.set()
        sampler.join()
    if process.returncode:
        failed = subprocess.CalledProcessError(process.returncode, command, output)
        failed.add_note(output)  # a traceback shows it
        raise failed
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Watched(
        seconds,
        peak,
        after.ru_utime - before.ru_utime,
        after.ru_stime - before.ru_stime,
        parent,
        worker,
        counts["rchar"],
        counts["wchar"],
        counts["syscw"],
    )


def _io_counts(pid: int) -> dict[str, int]:
    """Return the I/O counts of a process and its ended children by their names in proc_pid_io(5)."""
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return {name: int(count) for name, count in (line.split(": ") for line in lines)}


def family(pid: int) -> list[int]:
    """Return a process and all processes that it started, directly or not."""
    found = [pid]
    for number in found:
        try:
            children = [path.read_text() for path in Path(f"/proc/{number}/task").glob("*/children")]
        except OSError:
            continue
        found += [int(child) for text in children for child in text.split()]
    return found


def resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0
