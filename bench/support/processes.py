"""Run a command and watch it: wall time, time of processors, what is read and written, the most memory of all
and of each process.
"""

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
    """Seconds from start to end, and the greatest sum of resident memory; shared pages count every time.

    Apart from it the most that the command's own process took, and the most that any one of those did that it
    started. ``user_seconds`` of processors went into the programs, ``kernel_seconds`` into what they asked
    the kernel for. ``read_bytes``, ``written_bytes`` and ``write_calls`` are counts, whatever else the
    machine does: of calls like read and write, to files and pipes, whether or not a disk was needed.
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
    """Run to the end. Raises CalledProcessError with its output when it fails."""
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
        # An ended process whose end nobody has asked for still has its counts, and those of its children.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        counts = _io_counts(process.pid)
        process.communicate()
        seconds = time.perf_counter() - begun
    finally:
        ended.set()
        sampler.join()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, output)
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
    """What a process, and those it started that have ended, have read and written: proc_pid_io(5)."""
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return {name: int(count) for name, count in (line.split(": ") for line in lines)}


def family(pid: int) -> list[int]:
    """A process and all that it started, directly or not."""
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
