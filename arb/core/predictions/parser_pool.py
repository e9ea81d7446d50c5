"""Warm processes that read strangers' files: a hostile file ends or fills one of them and nothing else.

A worker is a Python with the readers imported. It forks for each file: the child reads that one file, within
bounds of memory and time, and ends. So no file sees what another left, a file that makes the library abort
costs its child only, and reading takes milliseconds where a new Python takes a quarter of a second. Answers
are JSON: nothing that such a process says is unpickled.
"""

import base64
import json
import logging
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from importlib import import_module
from pathlib import Path
from typing import IO, Final, Self

import numpy as np

from arb.core.predictions.findings import Finding, error
from arb.core.predictions.raw import ReadingLimits, damaged_parquet, recognise, to_text
from arb.core.predictions.table import Predictions, to_table
from arb.core.predictions.text_files import read_csv, read_jsonl

Answer = tuple[Predictions | None, list[Finding]]

WORKERS: Final = 2
MOST_FILES: Final = 500
"""Of one worker, which is then replaced by another."""
NICENESS: Final = 5
"""Reading files takes what answering pages leaves of the processors."""
IDLE_SECONDS: Final = 300.0
"""A worker that is not asked for so long ends, and its memory is free again."""
MAX_MEMORY_BYTES: Final = 1 << 30
"""Of address space; a file at the limits takes 330 MB of it, and less than 600 MB with its reasoning."""
SMALL_MEMORY_BYTES: Final = 400 << 20
"""The same on a machine with little memory; the libraries take 216 MB of it, most of them shared."""
_KILLED_FIRST: Final = "1000"
_MAX_SECONDS: Final = 30
_PROGRAM: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from arb.core.predictions.parser_pool import serve; serve(int(sys.argv[2]))"
)
_PASSED_ON: Final = ("PATH", "LD_LIBRARY_PATH", "PYTHONHOME", "SYSTEMROOT", "TMPDIR")
"""Of the environment; tokens and addresses of databases are none of that process's business."""
_SMALL: Final = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "ARROW_IO_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
"""A worker has one thread: a process that forks with several may leave its child a lock that nobody opens."""
PREDICTIONS: Final = "arb.core.predictions.parser_pool:read_in_process"
_CAN_FORK: Final = hasattr(os, "fork")
"""Without it (Windows) a worker reads files itself, and one that breaks down is replaced."""

logger = logging.getLogger(__name__)


def read_in_process(content: bytes, limits: ReadingLimits) -> Answer:
    """Read a file of a known format in this process."""
    file_format, findings = recognise(content), []
    if isinstance(file_format, Finding):
        return None, [file_format]
    if file_format == "parquet":
        from arb.core.predictions.parquet import read_parquet

        raw, found = read_parquet(content, limits)
    else:
        text, findings = to_text(content)
        if text is None:
            return None, findings
        raw, found = read_jsonl(text, limits) if file_format == "jsonl" else read_csv(text, limits)
    findings = findings + found
    if raw is None:
        return None, findings
    table, found = to_table(raw, limits)
    return table, findings + found


def call_reader(reader: str, content: bytes, limits: ReadingLimits) -> Answer:
    """What the function named ``module:function`` gives."""
    module, _, function = reader.partition(":")
    return getattr(import_module(module), function)(content, limits)


def _unreadable(content: bytes, why: str) -> Finding:
    if recognise(content) == "parquet":
        return damaged_parquet(why)
    return error("unreadable", f"the file cannot be read ({why}). Send a smaller one, or write it again.")


class ParserPool:
    """At most ``size`` workers, started when they are needed and used again. Safe for threads.

    A thread that finds all of them busy waits; the caller bounds how many wait. ``most_bytes`` bounds the
    address space of a worker.
    """

    @classmethod
    def small(cls) -> Self:
        """Return a pool for a machine with little memory."""
        return cls(1, SMALL_MEMORY_BYTES)

    def __init__(self, size: int = WORKERS, most_bytes: int = MAX_MEMORY_BYTES) -> None:
        self._most_bytes = most_bytes
        self._room = threading.BoundedSemaphore(size)
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._owner = os.getpid()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers that read nothing now; the pool can be used again."""
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.end()

    def read(self, content: bytes, limits: ReadingLimits, reader: str = PREDICTIONS) -> Answer:
        """What `read_in_process` gives, from a process that may die of the file.

        ``reader`` names another function of the same form, see `call_reader`.
        """
        with self._room:
            try:
                return self._ask(content, limits, reader)
            except OSError as problem:
                logger.error("no process to read files in: %s", problem)
                return None, [_unreadable(content, "the server has no room to read it now; try again later")]

    def _ask(self, content: bytes, limits: ReadingLimits, reader: str) -> Answer:
        worker = self._take()
        try:
            status, answer = worker.ask(content, limits, reader)
        except _WorkerEnded:  # it was idle for too long just now, or the system ended it
            worker.end()
            worker = _Worker(self._most_bytes)
            try:
                status, answer = worker.ask(content, limits, reader)
            except _WorkerEnded:
                status, answer = 1, b""
        if worker.is_alive and worker.files < MOST_FILES:
            with self._lock:
                self._idle.append(worker)
        else:
            worker.end()
        if worker.timed_out:
            return None, [_unreadable(content, f"reading it took over {_MAX_SECONDS} seconds")]
        try:
            if status == 0:
                return _unpack(json.loads(answer))
        except (ValueError, TypeError, KeyError, IndexError, AttributeError):
            status = "an answer that cannot be read"
        # What it wrote to its standard error may quote the file, which is nothing for a log.
        logger.warning("the process that reads a file ended with %s", status)
        return None, [_unreadable(content, "the reader broke down over it")]

    def _take(self) -> "_Worker":
        with self._lock:
            if self._owner != os.getpid():  # after a fork the workers are the other process's
                self._idle, self._owner = [], os.getpid()
            if self._idle:
                return self._idle.pop()
        return _Worker(self._most_bytes)


class _WorkerEnded(Exception):
    """The worker closed its pipes before it answered."""


class _Worker:
    """One process, at the other end of two pipes; used by one thread at a time."""

    def __init__(self, most_bytes: int = MAX_MEMORY_BYTES) -> None:
        environment = _SMALL | {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, json.dumps(sys.path), str(most_bytes)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment,
            start_new_session=True,  # Ctrl-C is for the server, which ends its workers
        )  # fmt: skip
        self.files, self.timed_out = 0, False

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None and not self.timed_out

    def ask(self, content: bytes, limits: ReadingLimits, reader: str) -> tuple[int, bytes]:
        """The status with which reading ended (0 is success) and the answer. Raises _WorkerEnded."""
        self.files += 1
        watchdog = threading.Timer(_MAX_SECONDS, self._time_out)
        watchdog.daemon = True
        watchdog.start()
        try:
            _send(self._process.stdin, json.dumps({"reader": reader, "limits": asdict(limits)}).encode())
            _send(self._process.stdin, content)
            return int(_receive(self._process.stdout)), _receive(self._process.stdout)
        except (OSError, EOFError, ValueError):
            if self.timed_out:
                return 1, b""
            raise _WorkerEnded from None
        finally:
            watchdog.cancel()

    def _time_out(self) -> None:
        self.timed_out = True
        self._kill()

    def end(self) -> None:
        """End it and the child that reads, whatever they do."""
        self._kill()
        for pipe in (self._process.stdin, self._process.stdout):
            try:
                pipe.close()
            except OSError:  # what was left in the buffer goes nowhere
                continue
        self._process.wait()

    def _kill(self) -> None:
        try:
            if _CAN_FORK:
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        except OSError:  # it has ended
            return


def serve(most_bytes: int = MAX_MEMORY_BYTES) -> None:
    """Work: take limits and bytes on standard input, write status and JSON to standard output, until it ends.

    If memory runs out, the kernel ends this process and not the server.
    """
    import arb.core.predictions.parquet  # noqa: F401 - before the first fork, so that every child has it

    _bound("RLIMIT_AS", most_bytes)
    _bound("RLIMIT_CORE", 0)
    if _CAN_FORK:
        os.nice(NICENESS)
    with suppress(OSError):  # Linux only
        Path("/proc/self/oom_score_adj").write_text(_KILLED_FIRST)
    requests, answers = os.fdopen(0, "rb", buffering=0), os.fdopen(1, "wb", buffering=0)
    while not _CAN_FORK or select.select([requests], [], [], IDLE_SECONDS)[0]:
        try:
            request, content = json.loads(_receive(requests)), _receive(requests)
        except EOFError:
            return
        asked = content, ReadingLimits(**request["limits"]), request["reader"]
        status, answer = _in_child(*asked) if _CAN_FORK else (0, _answer(*asked))
        _send(answers, str(status).encode())
        _send(answers, answer)


def _in_child(content: bytes, limits: ReadingLimits, reader: str) -> tuple[int, bytes]:
    """Status and answer of a child that reads the one file."""
    answers_in, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            _bound("RLIMIT_CPU", _MAX_SECONDS)
            with os.fdopen(writer, "wb") as out:
                out.write(_answer(content, limits, reader))
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(answers_in, "rb") as answers:
        answer = answers.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), answer


def _answer(content: bytes, limits: ReadingLimits, reader: str) -> bytes:
    table, findings = call_reader(reader, content, limits)
    answer = json.dumps(_pack(table, findings))
    if len(answer) > 2 * limits.max_unpacked_bytes:
        answer = json.dumps(_pack(None, [*findings, _unreadable(content, "it holds too much text")]))
    return answer.encode()


def _bound(what: str, bound: int) -> None:
    try:
        import resource
    except ImportError:  # Windows has no such bounds
        return
    try:
        resource.setrlimit(getattr(resource, what), (bound, bound))
    except (AttributeError, ValueError, OSError):  # a lower one is in force, or the system knows no such one
        return


_LENGTH_BYTES: Final = 8


def _send(pipe: IO[bytes], content: bytes) -> None:
    """The bytes with their length before them."""
    left = memoryview(len(content).to_bytes(_LENGTH_BYTES, "big") + content)
    while left:
        left = left[pipe.write(left) :]
    pipe.flush()


def _receive(pipe: IO[bytes]) -> bytes:
    """What `_send` sent. Raises EOFError where the pipe was closed before its end."""
    return _exactly(pipe, int.from_bytes(_exactly(pipe, _LENGTH_BYTES), "big"))


def _exactly(pipe: IO[bytes], length: int) -> bytes:
    parts = []
    while length:
        part = pipe.read(min(length, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _pack(table: Predictions | None, findings: Sequence[Finding]) -> dict[str, object]:
    """Numbers as their bytes; each distinct text once, so that a long one that every row has is sent once."""
    columns: dict[str, object] = {}
    for name in (field.name for field in fields(Predictions)) if table is not None else ():
        value = getattr(table, name)
        if isinstance(value, np.ndarray):
            columns[name] = {"type": value.dtype.str, "bytes": base64.b64encode(value.tobytes()).decode()}
        elif isinstance(value, tuple):
            places: dict[str | None, int] = {}
            index = [places.setdefault(text, len(places)) for text in value]
            columns[name] = {"distinct": list(places), "index": index}
        elif value is not None:
            columns[name] = value
    found = [asdict(finding) for finding in findings]
    return {"columns": None if table is None else columns, "findings": found}


def _unpack(answer: dict) -> Answer:
    """The table and findings; raises a ValueError, KeyError, IndexError or the like for anything else."""
    findings = [
        Finding(**(found | {name: tuple(found.get(name, ())) for name in ("rows", "names")}))
        for found in answer["findings"]
    ]
    if answer["columns"] is None:
        return None, findings
    columns: dict[str, object] = {}
    for name, column in answer["columns"].items():
        if not isinstance(column, dict):
            columns[name] = bool(column)
        elif "type" in column:
            columns[name] = np.frombuffer(
                bytearray(base64.b64decode(column["bytes"])), np.dtype(column["type"])
            )
        else:
            columns[name] = tuple(column["distinct"][place] for place in column["index"])
    table = Predictions(**columns)
    if any(len(column) != table.rows for column in columns.values() if not isinstance(column, bool)):
        raise ValueError("columns of different lengths")
    return table, findings
