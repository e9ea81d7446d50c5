"""Run a command and watch it: wall time, time of processors, the most memory of all and of each process."""

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
    """Seconds from start to end, seconds of processors, and the greatest sum of resident memory; shared pages
    count every time. Apart from it the most that the command's own process took, and the most that any one
    of those did that it started.
    """

    seconds: float
    peak_bytes: int
    cpu_seconds: float
    parent_bytes: int = 0
    worker_bytes: int = 0


def watch(command: list[str], every: float = 0.03, environment: Mapping[str, str] | None = None) -> Watched:
    """Run to the end. Raises CalledProcessError with its output when it fails."""
    begun, used = time.perf_counter(), _cpu_of_children()
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
        output, _ = process.communicate()
        seconds = time.perf_counter() - begun
    finally:
        ended.set()
        sampler.join()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, output)
    return Watched(seconds, peak, _cpu_of_children() - used, parent, worker)


def _cpu_of_children() -> float:
    """Seconds of processors of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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
