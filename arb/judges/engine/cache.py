"""Replies on disk, addressed by what was asked: no call is paid twice, by any judge, run or process.

The folder holds segments, files of one JSON object per line that only grow (`LineFile`). Each is written by
one process at a time and read by all. Failures are lines too, but never answers. Pictures are in no line: the
key, a hash of everything that the answer depends on, has theirs. Calls in progress are claimed, so that no
two processes make one at once.
"""

import fcntl
import hashlib
import json
import os
import secrets
import socket
import time
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from arb.judges.endpoints.providers import address_of
from arb.judges.engine.answers import ANSWERS, AnswerStore
from arb.judges.engine.storage import LineFile, complete_lines, storing
from arb.judges.types import Call, Image, Message, ModelSettings, Reply, TokenProbability

ANSWER: Final = b'{"answer":"'
"""How the line of an answer begins; its key follows. ``{"attempt":"`` begins that of a failure."""

KEY_VERSION: Final = 2
"""Of what a key is made of. Keys of version 1 had no address, so the place that answered is not known: such
replies stay in the folder, where runs that have their keys find them, but answer no new call."""

_NOT_STORED: Final = ("is_from_cache", "rate_limits", "others")
_DEFAULTS: Final = {each.name: each.default for each in fields(Reply) if each.name not in _NOT_STORED}
"""The fields of a reply in a line, with the defaults that are left out."""


def is_segment(name: str) -> bool:
    """Return whether a file of this name holds answers."""
    return name.startswith("segment-") and name.endswith(".jsonl")


def _open_segment(folder: Path) -> LineFile:
    """Continue a segment of this machine that no process writes, or begin another, under a lock.

    Where the disk knows no locks, every process begins a segment of its own.
    """
    machine = hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]
    for path in sorted(folder.glob(f"segment-{machine}-*.jsonl")):
        descriptor = os.open(path, os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
        else:
            return LineFile(path, descriptor)
    path = folder / f"segment-{machine}-{os.getpid()}-{secrets.token_hex(4)}.jsonl"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:  # another process took it for one that was left
        raise
    except OSError:  # a disk without locks: nobody else can take the lock either
        pass
    return LineFile(path, descriptor)


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

    With ``not_before`` (seconds since 1970) replies that were stored before, or at an unknown time, are
    ignored.
    """

    def __init__(self, folder: Path, answers: str | None = None, not_before: float | None = None):
        self.folder, self._not_before = folder, not_before
        has_answers = answers is not None or (folder / ANSWERS).is_dir()
        # None where no cluster ever ran: what reads its answers takes 12 MB of memory
        self._answers = AnswerStore(answers or str(folder / ANSWERS)) if has_answers else None
        with storing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        self._places: dict[bytes, tuple[str, int, int]] = {}
        self._read_up_to: dict[str, int] = {}
        self._segment: LineFile | None = None
        self.refresh()

    def __len__(self) -> int:
        return len(self._places)

    def get(self, key: str) -> Reply | None:
        """Return the reply to a call, marked as from the cache, or None if there is none that can be read."""
        name = bytes.fromhex(key)
        if name in self._places:
            return self._read(key)
        line = self._answers.line(name) if self._answers is not None else None
        return None if line is None else reply_in(line, key, self._not_before)

    def put(self, key: str, reply: Reply) -> None:
        """Store a reply. When this returns it outlives the process; after `sync` also the machine."""
        self._places[bytes.fromhex(key)] = self._append(answer_line(key, reply))

    def note_attempt(self, key: str, kind: str, message: str) -> None:
        """Note that a call failed, and how. It is no answer: `get` does not give it."""
        attempt = {"attempt": key, "kind": kind, "message": message[:2_000], "at": time.time()}
        self._append(_line_of(attempt))

    def sync(self) -> None:
        """Return when everything put so far is on the disk. May be called from another thread."""
        if (segment := self._segment) is not None:
            with storing(self.folder):
                segment.sync()

    def claim(self, key: str) -> bool:
        """Take a call for this process: False while another process has it in progress.

        A caller that gets False waits, and then finds the answer with `get` after `refresh`, or takes the
        call when the other process has given it up or died. Claims keep processes apart, not the tasks of
        one; those share a call in progress in the executor.
        """
        with storing(self.folder):
            claims = self._claims
        try:
            fcntl.lockf(claims, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(key))
        except (BlockingIOError, PermissionError):
            return False
        except OSError:  # a disk without locks: better paid twice than not at all
            pass
        return True

    def release(self, key: str) -> None:
        """Give a claimed call up, answered or not."""
        try:
            fcntl.lockf(self._claims, fcntl.LOCK_UN, 1, _place(key))
        except OSError:  # a disk without locks
            return

    @cached_property
    def _claims(self) -> int:
        """The file whose bytes are locked, one per call in progress.

        The system gives a lock back when its process ends or is killed.
        """
        return os.open(self.folder / "claims", os.O_RDWR | os.O_CREAT, 0o666)

    def refresh(self) -> None:
        """Read what other processes have added since."""
        with storing(self.folder):
            with os.scandir(self.folder) as entries:
                grown = [
                    entry.name
                    for entry in entries
                    if is_segment(entry.name) and entry.stat().st_size > self._read_up_to.get(entry.name, 0)
                ]
            for name in sorted(grown):
                for start, line in complete_lines(self.folder / name, self._read_up_to.get(name, 0)):
                    self._read_up_to[name] = start + len(line)
                    if (key := key_in(line)) is not None and not self._has_newer(key, name, line):
                        self._places[key] = (name, start, len(line))

    def close(self) -> None:
        """Put everything on the disk, and leave the segment to other processes."""
        try:
            self.sync()
        finally:
            if self._segment is not None:
                self._segment.close()
                self._segment = None
            if "_claims" in self.__dict__:
                os.close(self.__dict__.pop("_claims"))

    def _has_newer(self, key: bytes, name: str, line: bytes) -> bool:
        """Return whether another segment has a newer reply; in one segment the last line is the newest."""
        if key not in self._places or self._places[key][0] == name:
            return False
        return _stored_at(self._line(key)) > _stored_at(line)

    def _line(self, key: bytes) -> bytes:
        name, start, length = self._places[key]
        with (self.folder / name).open("rb") as file:
            file.seek(start)
            return file.read(length)

    def _read(self, key: str) -> Reply | None:
        """Return a reply that has a place; None for a damaged or too old line, whose call is made again."""
        try:
            reply = reply_in(self._line(bytes.fromhex(key)), key, self._not_before)
        except OSError:
            reply = None
        if reply is None:
            del self._places[bytes.fromhex(key)]
        return reply

    def _append(self, line: bytes) -> tuple[str, int, int]:
        """Write a line at the end of this process's segment and return its place."""
        with storing(self.folder):
            if self._segment is None:
                self._segment = _open_segment(self.folder)
                self.refresh()  # a continued segment has lines of others
            name, start = self._segment.path.name, self._segment.append(line)
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
        return bytes.fromhex(line[len(ANSWER) : len(ANSWER) + 64].decode("ascii"))
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
