"""Replies on disk, addressed by what was asked: no call is paid twice, by any judge, run or process.

The folder holds segments, files of one JSON object a line that only grow. Each is written by one process at a
time and read by all. A line is there once its end is, so that a process killed at any moment leaves a whole
cache: a line without an end is not read, and cut off by the next process that continues the segment.
Failures are lines too, but never answers. Pictures are in no line: the key, a hash of everything that the
answer depends on, has theirs. Calls under way are claimed, so that no two processes make one at once.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, BinaryIO, Final

from arb.judges.endpoints.providers import address_of
from arb.judges.engine.answers import ANSWERS, AnswerStore
from arb.judges.engine.storage import storing, write_at
from arb.judges.types import Call, Image, Message, ModelSettings, Reply, TokenProbability

_BLOCK: Final = 65_536

ANSWER: Final = b'{"answer":"'
"""How the line of an answer begins; its key follows. ``{"attempt":"`` begins that of a failure."""

"""What stands between the key of an answer and its kind, where the line has one."""

MAX_KNOWN: Final = 500
"""Replies of a kind that are learned from, the last ones: their mean does not get much better with more."""

REFRESH_AFTER_S: Final = 1.0
"""What other processes have added is looked for no more often than this."""

_KEY_LENGTH: Final = 64

KEY_VERSION: Final = 2
"""Of what a key is made of. Keys of version 1 had no address, so the place that answered is not known: such
replies stay in the folder, where runs that have their keys find them, but answer no new call."""

_NOT_STORED: Final = ("is_from_cache", "rate_limits", "others")
_DEFAULTS: Final = {each.name: each.default for each in fields(Reply) if each.name not in _NOT_STORED}
"""The fields of a reply in a line, with the defaults that are left out."""


def is_segment(name: str) -> bool:
    return name.startswith("segment-") and name.endswith(".jsonl")


def complete_lines(file: BinaryIO, start: int) -> Iterator[tuple[int, bytes]]:
    """The lines from an offset on that have their end, each with where it begins."""
    file.seek(start)
    for line in file:
        if not line.endswith(b"\n"):
            return
        yield start, line
        start += len(line)


class Segment:
    """The segment that this process writes, under a lock that ends with the process."""

    def __init__(self, path: Path, descriptor: int):
        self.path, self._descriptor, self.owner = path, descriptor, os.getpid()
        self._end = truncate_partial_line(descriptor)

    @classmethod
    def open(cls, folder: Path) -> "Segment":
        """Continue a segment of this machine that no process writes, or begin another."""
        machine = hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]
        for path in sorted(folder.glob(f"segment-{machine}-*.jsonl")):
            if (descriptor := _open_locked(path, os.O_RDWR)) is not None:
                return cls(path, descriptor)
        path = folder / f"segment-{machine}-{os.getpid()}-{secrets.token_hex(4)}.jsonl"
        descriptor = _open_locked(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        if descriptor is None:
            raise OSError(f"{path}: cannot be locked")
        return cls(path, descriptor)

    def append(self, line: bytes) -> int:
        """Write a line at the end, all of it or nothing, and return where it begins. Raises OSError."""
        start = self._end
        write_at(self._descriptor, line, start)
        self._end += len(line)
        return start

    def sync(self) -> None:
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Leave the segment to whoever locks it next."""
        os.close(self._descriptor)


def truncate_partial_line(descriptor: int) -> int:
    """Cut off the line that a killed process left without its end; returns the new end of the file."""
    end = size = os.fstat(descriptor).st_size
    while end > 0:
        start = max(0, end - _BLOCK)
        place = os.pread(descriptor, end - start, start).rfind(b"\n")
        if place >= 0:
            end = start + place + 1
            break
        end = start
    if end < size:
        os.ftruncate(descriptor, end)
    return end


def _open_locked(path: Path, flags: int) -> int | None:
    """A descriptor that holds the file's lock until it is closed; None when another holds it."""
    descriptor = os.open(path, flags, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as problem:
        # Where the disk knows no locks, a segment of this process is safe without.
        if not isinstance(problem, BlockingIOError) and flags & os.O_EXCL:
            return descriptor
        with contextlib.suppress(OSError):
            os.close(descriptor)
        return None
    return descriptor


class Claims:
    """A lock for each call, on one byte of a file: the system gives it back when a process ends or is killed.

    Locks keep processes apart, not the tasks of one; those share a call in flight in the executor.
    """

    def __init__(self, path: Path):
        self._path = path
        self._descriptor, self._owner = -1, -1

    def take(self, key: str) -> bool:
        """Take a call, named by its hash; False while another process has it."""
        if self._owner != os.getpid():  # opened late, and again after a fork
            self._descriptor, self._owner = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666), os.getpid()
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(key))
        except (BlockingIOError, PermissionError):
            return False
        except OSError:  # a disk without locks: better paid twice than not at all
            return True
        return True

    def release(self, key: str) -> None:
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, _place(key))
        except OSError:
            return

    def close(self) -> None:
        if self._owner == os.getpid():
            os.close(self._descriptor)
            self._descriptor, self._owner = -1, -1


def _place(key: str) -> int:
    """One of 2^62 bytes: two calls meet in one so seldom that waiting for each other then does no harm."""
    return int(key[:16], 16) >> 2


def call_key(model: ModelSettings, messages: tuple[Message, ...], max_output_tokens: int, sample: int) -> str:
    """The name of a call's answer: SHA-256 of provider, address, model, parameters, messages and sample.

    Pictures go in by hash, detail and media type. The name of a model says little of what answers under it
    (its weights, its quantization), so that another address is another model. The key's name is left out.
    """
    parameters = {
        "key_version": KEY_VERSION,
        "provider": model.provider,
        "address": address_of(model),
        "model": model.model,
        "temperature": model.temperature,
        "seed": model.seed,
        "max_output_tokens": max_output_tokens,
        "logprobs": model.logprobs,
        "extra": dict(model.extra),
        "sample": sample,
    }
    if model.reasoning_effort is not None:  # left out where it is not asked for, as keys always were
        parameters["reasoning_effort"] = model.reasoning_effort
    digest = hashlib.sha256(json.dumps(parameters, sort_keys=True, separators=(",", ":")).encode())
    for message in messages:
        digest.update(f"\n{message.role} {len(message.parts)}".encode())
        for part in message.parts:
            if isinstance(part, Image):
                digest.update(f"\npicture {part.sha256} {part.media_type} {part.detail}".encode())
            else:
                text = part.encode("utf-8", "surrogatepass")  # some pages have half a pair
                digest.update(f"\ntext {len(text)}\n".encode())  # its length, so that no text looks like two
                digest.update(text)
    return digest.hexdigest()


def key_of(model: ModelSettings, call: Call, sample: int | None = None) -> str:
    """Return the key of a call to a model, or of another sample of it."""
    max_output_tokens = call.max_output_tokens or model.max_output_tokens
    return call_key(model, call.messages, max_output_tokens, call.sample if sample is None else sample)


class CallCache:
    """The replies in a folder, which is created if needed.

    Every method raises StorageError when the folder cannot be written or read.

    In memory are places in files, not texts: about 300 bytes an answer. For one thread at a time. What is not
    in the folder is looked for among the answers of a cluster, at ``answers`` or in the folder's own.

    With ``fresh_since`` (seconds since 1970) replies that were stored before, or at an unknown time, are
    ignored.
    """

    def __init__(
        self,
        folder: Path,
        now: Callable[[], float] = time.monotonic,
        answers: str | None = None,
        not_before: float | None = None,
    ):
        self.folder, self._fresh_since = folder, not_before
        has_answers = answers is not None or (folder / ANSWERS).is_dir()
        # None where no cluster ever ran: what reads its answers takes 12 MB of memory
        self._answers = AnswerStore(answers or str(folder / ANSWERS)) if has_answers else None
        with storing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        self._now = now
        self._claims = Claims(folder / "claims")
        self._places: dict[bytes, tuple[str, int, int]] = {}
        self._read_up_to: dict[str, int] = {}
        self._writing: Segment | None = None
        self._refreshed_at = float("-inf")
        self.refresh()

    def __len__(self) -> int:
        return len(self._places)

    def get(self, key: str) -> Reply | None:
        """The reply to a call, marked as from the cache; None when there is none that can be read."""
        place = self._places.get(bytes.fromhex(key))
        if place is None and self._now() - self._refreshed_at >= REFRESH_AFTER_S:
            self.refresh()
            place = self._places.get(bytes.fromhex(key))
        if place is not None:
            return self._read(key, *place)
        line = self._answers.line(bytes.fromhex(key)) if self._answers is not None else None
        return None if line is None else reply_in(line, key, self._fresh_since)

    def put(self, key: str, reply: Reply) -> None:
        """Store a reply. When this returns it outlives the process; after `sync` also the machine."""
        with storing(self.folder):
            name, start, length = self._append(answer_line(key, reply))
        self._places[bytes.fromhex(key)] = (name, start, length)

    def note_attempt(self, key: str, kind: str, message: str) -> None:
        """Note that a call failed, and how. It is no answer: `get` does not give it."""
        attempt = {"attempt": key, "kind": kind, "message": message[:2_000], "at": time.time()}
        with storing(self.folder):
            self._append(_line_of(attempt))

    def sync(self) -> None:
        """Return when everything put so far is on the disk. May be called from another thread."""
        if (writing := self._writing) is not None:
            with storing(self.folder):
                writing.sync()

    def claim(self, key: str) -> bool:
        """Take a call for this process: False while another process has it under way.

        A caller that gets False waits, and then finds the answer with `get` after `refresh`, or takes the
        call when the other process has given it up or died.
        """
        with storing(self.folder):
            return self._claims.take(key)

    def release(self, key: str) -> None:
        """Give a claimed call up, answered or not."""
        self._claims.release(key)

    def refresh(self) -> None:
        """Read what other processes have added since."""
        self._refreshed_at = self._now()
        with storing(self.folder):
            self._read_new_lines()

    def _read_new_lines(self) -> None:
        with os.scandir(self.folder) as entries:
            grown = [
                entry.name
                for entry in entries
                if is_segment(entry.name) and entry.stat().st_size > self._read_up_to.get(entry.name, 0)
            ]
        for name in sorted(grown):
            with (self.folder / name).open("rb") as file:
                self._index(name, file)

    def close(self) -> None:
        """Everything on the disk, and the segment free for another process."""
        try:
            self.sync()
        finally:
            if self._writing is not None:
                self._writing.close()
                self._writing = None
            self._claims.close()

    def _index(self, name: str, file: BinaryIO) -> None:
        for start, line in complete_lines(file, self._read_up_to.get(name, 0)):
            self._read_up_to[name] = start + len(line)
            if (key := key_in(line)) is not None and not self._has_newer(key, name, line):
                self._places[key] = (name, start, len(line))

    def _has_newer(self, key: bytes, name: str, line: bytes) -> bool:
        """Whether another segment has a newer reply; in one segment the last line is the newest."""
        if (known := self._places.get(key)) is None or known[0] == name:
            return False
        with (self.folder / known[0]).open("rb") as file:
            file.seek(known[1])
            return _stored_at(file.read(known[2])) > _stored_at(line)

    def _read(self, key: str, name: str, start: int, length: int) -> Reply | None:
        """Return the reply at a place; None for a damaged or too old line, whose call is made again."""
        try:
            with (self.folder / name).open("rb") as file:
                file.seek(start)
                line = file.read(length)
            if (reply := reply_in(line, key, self._fresh_since)) is not None:
                return reply
        except OSError:
            pass
        self._places.pop(bytes.fromhex(key), None)
        return None

    def _append(self, line: bytes) -> tuple[str, int, int]:
        if self._writing is None or self._writing.owner != os.getpid():  # after a fork: never two writers
            self._writing = Segment.open(self.folder)
            self.refresh()  # a continued segment has lines of others
        name, start = self._writing.path.name, self._writing.append(line)
        self._read_up_to[name] = start + len(line)
        return name, start, len(line)


def answer_line(key: str, reply: Reply) -> bytes:
    """Return the line of an answer."""
    reply = reply if reply.key == key else replace(reply, key=key)
    return _line_of({"answer": key, "at": round(time.time(), 3), "reply": _record_of(reply)})


def key_in(line: bytes) -> bytes | None:
    """The key of an answer's line, 32 bytes; None for every other line."""
    if not line.startswith(ANSWER):
        return None
    try:
        return bytes.fromhex(line[len(ANSWER) : len(ANSWER) + _KEY_LENGTH].decode("ascii"))
    except ValueError:
        return None


def reply_in(line: bytes, key: str, not_before: float | None = None) -> Reply | None:
    """Return the reply in an answer's line; None for a damaged line, that of another key, or one too old."""
    try:
        record = json.loads(line)
        if not_before is not None and record.get("at", 0.0) < not_before:
            return None
        return _reply_of(record["reply"]) if record["answer"] == key else None
    except (ValueError, KeyError, TypeError):
        return None


def _stored_at(line: bytes) -> float:
    """When a reply was stored, in seconds since 1970; 0 for a line that does not say so."""
    try:
        return float(json.loads(line).get("at", 0.0))
    except (ValueError, TypeError, AttributeError):
        return 0.0


def _line_of(record: dict[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"


def _record_of(reply: Reply) -> dict[str, Any]:
    """A reply for JSON: what is not the default."""
    record = {name: v for name, usual in _DEFAULTS.items() if (v := getattr(reply, name)) != usual}
    if reply.logprobs is not None:
        record["logprobs"] = [[each.token, each.logprob, each.rivals] for each in reply.logprobs]
    return record


def _reply_of(record: dict[str, Any]) -> Reply:
    values = {name: value for name, value in record.items() if name in _DEFAULTS}
    values["dropped"] = tuple(values.get("dropped", ()))
    if values.get("logprobs") is not None:
        values["logprobs"] = tuple(
            TokenProbability(token, logprob, tuple((str(rival), p) for rival, p in rivals))
            for token, logprob, rivals in values["logprobs"]
        )
    return Reply(**values | {"is_from_cache": True})
