"""Run tasks in worker processes, and limit how much data they read at the same time."""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from typing import Any, Final, Self, TypeVar

Result = TypeVar("Result")
Task = TypeVar("Task")

BYTES_AT_ONCE: Final = 400_000_000
"""The maximum number of bytes that all processes together read from files at the same time."""

MOST_WORKERS: Final = 4
"""The default limit on processes. Each uses 75 MB before it reads anything; together, they should use
less than 1 GB.
"""


class WorkerError(ChildProcessError):
    """Raised when the system killed a worker process; the message says what to do."""


def default_workers() -> int:
    """Return the number of processors that this process may use, at most `MOST_WORKERS`."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, MOST_WORKERS)


class Workers:
    """A pool of worker processes for a ``with`` block. With ``number`` 1, tasks run in this process."""

    def __init__(self, number: int):
        self._number = number
        self._pool: ProcessPoolExecutor | None = None
        self._others: list[BaseProcess] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_exception: object) -> None:
        if self._pool is None:
            return
        if kind is not None:  # the results are no longer needed, and waiting for the tasks could take long
            for process in multiprocessing.active_children():
                if process not in self._others:
                    process.terminate()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def run_each(
        self, function: Callable[[Task], Result], tasks: Iterable[tuple[Task, int]]
    ) -> Iterator[tuple[Task, Result]]:
        """Yield (task, result) pairs as tasks finish. ``tasks`` has pairs of a task and the bytes it reads.

        The running tasks together read at most `BYTES_AT_ONCE`, except that one task may always run. An
        exception in a task is raised here. Raises WorkerError if the system killed a process.
        """
        if self._number <= 1:
            yield from ((task, function(task)) for task, _ in tasks)
            return
        waiting = iter(tasks)
        following = next(waiting, None)
        running: dict[Future[Result], tuple[Task, int]] = {}
        try:
            while following is not None or running:
                while following is not None and self._has_room(following[1], running.values()):
                    with _interrupts_blocked():
                        running[self._processes().submit(function, following[0])] = following
                    following = next(waiting, None)
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    yield running.pop(future)[0], future.result()
        except BrokenProcessPool as error:
            raise WorkerError(
                "a worker process was killed, perhaps because memory ran out; "
                "run the same command again to resume (--workers 1 needs the least memory)"
            ) from error

    def _has_room(self, size: int, running: Collection[tuple[Any, int]]) -> bool:
        """Return whether to submit a task of this size now, given the submitted (task, size) pairs."""
        bytes_at_once = size + sum(each for _, each in running)
        return not running or (len(running) < 2 * self._number and bytes_at_once <= BYTES_AT_ONCE)

    def _processes(self) -> ProcessPoolExecutor:
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._others = multiprocessing.active_children()
            self._pool = ProcessPoolExecutor(self._number, context, initializer=_begin_worker)
        return self._pool


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block Ctrl-C, so that processes started here leave it to their parent, even while they import."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _WithoutPandas:
    """An import finder that hides pandas, so that pyarrow does not import it (0.5 s and 50 MB per worker)."""

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        if name == "pandas":
            raise ImportError("pandas is hidden from workers")


def _begin_worker() -> None:
    """Set up a worker process, which ends if the parent is killed."""
    sys.meta_path.insert(0, _WithoutPandas())
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
