"""Worker processes that read uploaded files, so that a hostile file cannot harm the server.

A worker is a Python process that has imported the readers. It forks for each file. The child process reads
only this file, with limited memory and time, and ends. Files cannot access each other, and a file that makes
a library abort ends only its own child process. A fork takes milliseconds, while starting Python takes a
quarter of a second. Answers are JSON, because the server must not unpickle what such a process sends.
"""

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import msgspec
import numpy as np

from arb.core.predictions.findings import Finding, finding
from arb.core.predictions.raw import ReadingLimits, recognise, to_text
from arb.core.predictions.table import NUMBER_COLUMNS, Predictions, to_table
from arb.core.predictions.text_files import read_csv, read_jsonl

T = TypeVar("T")
ReadResult = tuple[Predictions | None, list[Finding]]

WORKERS: Final = 2
NICENESS: Final = 5
"""The niceness of workers, so that they do not slow down the server's pages."""
IDLE_SECONDS: Final = 300.0
"""The time after which an idle worker ends, to free its memory."""
MAX_MEMORY_BYTES: Final = 1 << 30
"""The limit on a worker's address space. The largest file needs 330 MB, or just under 600 MB with
reasoning."""
SMALL_MEMORY_BYTES: Final = 400 << 20
"""The same limit for a machine with little memory. Libraries need 216 MB, most of which is shared."""
_KILLED_FIRST: Final = "1000"
_MAX_SECONDS: Final = 30
_PROGRAM: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from arb.core.predictions.parser_pool import serve; serve(int(sys.argv[2]), int(sys.argv[3]))"
)
_PASSED_ON: Final = ("PATH", "LD_LIBRARY_PATH", "PYTHONHOME", "TMPDIR")
"""The environment variables that a worker gets. Tokens and the database's address are not among them."""
_SINGLE_THREADED: Final = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "ARROW_IO_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
"""Variables that keep libraries from starting threads, whose locks could block a forked child forever."""
PREDICTIONS: Final = "arb.core.predictions.parser_pool:read_in_process"

logger = logging.getLogger(__name__)


def read_in_process(content: bytes, limits: ReadingLimits) -> ReadResult:
    """Read a prediction file (JSONL, CSV or Parquet) in this process."""
    findings: list[Finding] = []
    file_format = recognise(content)
    if isinstance(file_format, Finding):
        return None, [file_format]
    if file_format == "parquet":
        from arb.core.predictions.parquet import read_parquet  # noqa: PLC0415 - pyarrow is slow to load

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


def call_reader(reader: str, content: bytes, limits: ReadingLimits) -> Any:
    """Read the content with the function ``module:function`` that ``reader`` names."""
    module, _, function = reader.partition(":")
    return getattr(import_module(module), function)(content, limits)


def _unreadable(content: bytes, why: str) -> ReadResult:
    if recognise(content) == "parquet":
        return None, [finding("invalid_parquet", why=why)]
    return None, [finding("unreadable", why=why)]


class WorkerFailed(Exception):
    """Raised when a worker gives no answer.

    The message gives the reason, worded so that it can complete a sentence.
    """


class ParserPool:
    """A thread-safe pool of at most ``size`` workers, which are started when needed and reused.

    If all workers are busy, the calling thread waits. Callers must limit how many threads wait.
    ``most_bytes`` limits the address space of each worker.
    """

    @classmethod
    def small(cls) -> Self:
        """Return a pool for a machine with little memory."""
        return cls(1, SMALL_MEMORY_BYTES)

    def __init__(self, size: int = WORKERS, most_bytes: int = MAX_MEMORY_BYTES) -> None:
        self._most_bytes = most_bytes
        self._room = threading.BoundedSemaphore(size)
        self._idle: list[_Worker] = []  # append and pop are atomic

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the idle workers. The pool can still be used."""
        with suppress(IndexError):
            while True:
                self._idle.pop().end()

    def read(self, content: bytes, limits: ReadingLimits, reader: str = PREDICTIONS) -> ReadResult:
        """Call the reader ``module:function`` in a worker. If it fails, return a finding and no table."""
        try:
            return self.call(content, limits, reader, _unpack)
        except WorkerFailed as problem:
            return _unreadable(content, str(problem))

    def call(self, content: bytes, limits: ReadingLimits, function: str, parse: Callable[[Any], T]) -> T:
        """Call ``module:function`` in a worker, and return what ``parse`` makes of its JSON answer.

        Raises:
            WorkerFailed: There is no answer, or ``parse`` refused the answer.
        """
        with self._room:
            try:
                return parse(json.loads(self._ask(content, limits, function)))
            except TimeoutError:
                raise WorkerFailed(f"reading it took over {_MAX_SECONDS} seconds") from None
            except OSError as problem:
                logger.error("cannot start a process that reads files: %s", problem)
                message = "the server cannot start a process to read it; try again later"
                raise WorkerFailed(message) from None
            except (ValueError, TypeError, LookupError, AttributeError, RecursionError, msgspec.MsgspecError):
                # The answer is not logged, since it may quote the file.
                logger.warning("the process that reads a file crashed")
                raise WorkerFailed("the reader crashed on it") from None

    def _ask(self, content: bytes, limits: ReadingLimits, reader: str) -> bytes:
        """Return a worker's answer, or empty bytes if it failed. Raises TimeoutError and OSError."""
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = _Worker(self._most_bytes)
        for has_another_try in (True, False):
            try:
                answer = worker.ask(content, limits, reader)
            except EOFError:  # the worker ended because it was idle or because the system killed it
                worker.end()
                if has_another_try:
                    worker = _Worker(self._most_bytes)
            except BaseException:
                worker.end()
                raise
            else:
                self._idle.append(worker)
                return answer
        return b""


class _Worker:
    """A process and the connection to it, used by one thread at a time."""

    def __init__(self, most_bytes: int = MAX_MEMORY_BYTES) -> None:
        environment = _SINGLE_THREADED | {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        ours, theirs = socket.socketpair()
        with ours, theirs:
            place = theirs.fileno()
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, json.dumps(sys.path), str(place), str(most_bytes)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                env=environment, pass_fds=[place],
                start_new_session=True,  # so that Ctrl-C reaches only the server, which ends its workers
            )  # fmt: skip
            self._connection = Connection(ours.detach())

    def ask(self, content: bytes, limits: ReadingLimits, reader: str) -> bytes:
        """Return the answer about a file, or empty bytes if the child process failed.

        Raises:
            EOFError: The worker ended.
            TimeoutError: There was no answer in time.
        """
        try:
            self._connection.send_bytes(msgspec.json.encode((reader, limits)))
            self._connection.send_bytes(content)
            if not self._connection.poll(_MAX_SECONDS):
                raise TimeoutError
            return self._connection.recv_bytes(2 * limits.max_unpacked_bytes)
        except TimeoutError:
            raise
        except OSError as problem:  # the connection broke
            raise EOFError from problem

    def end(self) -> None:
        """Kill the worker and its child process."""
        with suppress(OSError):  # it has already ended
            os.killpg(self._process.pid, signal.SIGKILL)
        self._connection.close()
        self._process.wait()


def serve(descriptor: int, most_bytes: int = MAX_MEMORY_BYTES) -> None:
    """Read files from a socket, each in a child process, until the socket is closed or idle for too long.

    If memory runs out, the kernel kills this process rather than the server.
    """
    # Imported before the first fork, so that no child process has to import it.
    import arb.core.predictions.parquet  # noqa: F401, PLC0415 - pyarrow is slow to load

    _bound("RLIMIT_AS", most_bytes)
    _bound("RLIMIT_CORE", 0)
    os.nice(NICENESS)
    with suppress(OSError):  # Linux only
        Path("/proc/self/oom_score_adj").write_text(_KILLED_FIRST)
    connection = Connection(descriptor)
    while connection.poll(IDLE_SECONDS):
        try:
            request, content = connection.recv_bytes(), connection.recv_bytes()
        except EOFError:
            return
        reader, limits = msgspec.json.decode(request, type=tuple[str, ReadingLimits])
        with suppress(ImportError):  # then the child process fails
            import_module(reader.partition(":")[0])  # once, and not in every child process
        connection.send_bytes(_read_in_child(connection, content, limits, reader))


def _read_in_child(connection: Connection, content: bytes, limits: ReadingLimits, reader: str) -> bytes:
    """Return the answer of a child process that reads the file, or empty bytes if it failed."""
    answers, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            connection.close()
            _bound("RLIMIT_CPU", _MAX_SECONDS)
            with os.fdopen(writer, "wb") as out:
                out.write(_answer(content, limits, reader))
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(answers, "rb") as file:
        answer = file.read()
    _, status = os.waitpid(child, 0)
    return answer if status == 0 else b""


def _answer(content: bytes, limits: ReadingLimits, reader: str) -> bytes:
    found = call_reader(reader, content, limits)
    if isinstance(found, dict):
        return json.dumps(found).encode()
    table, findings = found
    answer = json.dumps(_pack(table, findings))
    if len(answer) > 2 * limits.max_unpacked_bytes:
        _, too_long = _unreadable(content, "it contains too much text")
        answer = json.dumps(_pack(None, [*findings, *too_long]))
    return answer.encode()


def _bound(what: str, bound: int) -> None:
    import resource  # noqa: PLC0415 - Unix only

    # A lower limit may be set already, or the system may not support this limit.
    with suppress(AttributeError, ValueError, OSError):
        resource.setrlimit(getattr(resource, what), (bound, bound))


def _pack(table: Predictions | None, findings: Sequence[Finding]) -> dict[str, object]:
    """Return a table and findings as a JSON object. A string that many rows share is stored once."""
    answer: dict[str, object] = {"findings": [asdict(each) for each in findings]}
    if table is not None:
        answer["texts"] = {name: _distinct(texts) for name, texts in table.texts.items()}
        answer["numbers"] = {name: numbers.tolist() for name, numbers in table.numbers.items()}
        answer["targets"] = {
            name: [codes.dtype.kind == "f", codes.tolist()] for name, codes in table.targets.items()
        }
    return answer


def _distinct(texts: Sequence[str | None]) -> dict[str, list[Any]]:
    places: dict[str | None, int] = {}
    index = [places.setdefault(text, len(places)) for text in texts]
    return {"distinct": list(places), "index": index}


def _unpack(answer: dict[str, Any]) -> ReadResult:
    """Undo `_pack`. Raises ValueError, KeyError, IndexError or the like if the answer is malformed."""
    findings = msgspec.convert(answer["findings"], list[Finding])
    if "texts" not in answer:
        return None, findings
    columns: dict[str, Any] = {}
    for name, packed in answer["texts"].items():
        columns[name] = tuple(packed["distinct"][place] for place in packed["index"])
    for name, numbers in answer["numbers"].items():
        columns[name] = np.array(numbers, NUMBER_COLUMNS[name])
    targets: dict[str, Any] = {
        name: np.array(codes, np.float64 if is_score else np.int8)
        for name, (is_score, codes) in answer["targets"].items()
    }
    table = Predictions(**columns, targets=targets)
    if any(len(column) != table.rows for column in (*columns.values(), *targets.values())):
        raise ValueError("columns of different lengths")
    return table, findings
