"""Cache replies on disk by a hash of their call, so that no judge, run or process pays for a call twice.

The folder has segments: files of one JSON object per line that only grow (`LineFile`). One process at a time
writes a segment, and all processes read it. Failed attempts are lines too, but they are never answers. Lines
contain no pictures; the key, a hash of everything that the answer depends on, covers them. Processes claim
calls in progress, so that no two of them make the same call.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import socket
import time
from contextlib import suppress
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from arb.judges.endpoints.providers import address_of
from arb.judges.engine.storage import ANSWERS, LineFile, complete_lines, storing
from arb.judges.types import Call, Image, Message, ModelSettings, Reply, TokenProbability

if TYPE_CHECKING:
    from arb.judges.engine.answers import AnswerStore

ANSWER: Final = b'{"answer":"'
"""The beginning of an answer's line, before its key. The line of a failure begins with ``{"attempt":"``."""

KEY_VERSION: Final = 2
"""The version of the parts of a key. Keys of version 1 had no address. Their replies stay in the folder for
the runs that have these keys, but they answer no new call, since their endpoint is unknown."""

_NOT_STORED: Final = ("is_from_cache", "rate_limits", "others")
_DEFAULTS: Final = {each.name: each.default for each in fields(Reply) if each.name not in _NOT_STORED}
"""The fields of a reply in a line, with the default values that a line omits."""


def is_segment(name: str) -> bool:
    return name.startswith("segment-") and name.endswith(".jsonl")


def _open_segment(folder: Path) -> LineFile:
    """Open a segment of this machine that no process writes, or a new one, and lock it.

    On a disk without locks, every process begins a segment of its own.
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
    except BlockingIOError:  # another process took it for an abandoned one
        raise
    except OSError:  # a disk without locks: no other process can take the lock either
        pass
    return LineFile(path, descriptor)


def _place(key: str) -> int:
    """Return the byte of the claims file for a key. Two calls very rarely share one of its 2^62 bytes."""
    return int(key[:16], 16) >> 2


def call_key(model: ModelSettings, messages: tuple[Message, ...], max_output_tokens: int, sample: int) -> str:
    """Return the key of a call: the SHA-256 of provider, address, model, parameters, messages and sample.

    Pictures are represented by hash, detail and media type. A model's name says little about its weights and
    quantization, so another address counts as another model. The variable of the API key has no influence.
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
    if model.reasoning_effort is not None:  # absent from keys unless set, so that older keys stay valid
        parameters["reasoning_effort"] = model.reasoning_effort
    digest = hashlib.sha256(json.dumps(parameters, sort_keys=True, separators=(",", ":")).encode())
    for message in messages:
        digest.update(f"\n{message.role} {len(message.parts)}".encode())
        for part in message.parts:
            if isinstance(part, Image):
                digest.update(f"\npicture {part.sha256} {part.media_type} {part.detail}".encode())
            else:
                text = part.encode("utf-8", "surrogatepass")  # some pages have lone surrogates
                digest.update(
                    f"\ntext {len(text)}\n".encode()
                )  # with its length, so that two texts never look like one
                digest.update(text)
    return digest.hexdigest()


def key_of(model: ModelSettings, call: Call, sample: int | None = None) -> str:
    """Return the key of a call to a model, or of another sample of it."""
    max_output_tokens = call.max_output_tokens or model.max_output_tokens
    return call_key(model, call.messages, max_output_tokens, call.sample if sample is None else sample)


class CallCache:
    """The replies in a folder, which is created if needed. For one thread at a time.

    Every method raises StorageError if the folder cannot be read or written. The cache keeps the positions of
    answers in memory, about 300 bytes per answer, but not their texts.

    Args:
        folder: The folder of the segments.
        answers: The URL of answers that a cluster shares, which are searched too. By default these are in the
            folder itself.
        not_before: Ignore replies stored before this time (seconds since 1970) or at an unknown time.
    """

    def __init__(self, folder: Path, answers: str | None = None, not_before: float | None = None):
        self.folder, self._not_before = folder, not_before
        self._answers: AnswerStore | None = None
        if answers is not None or (folder / ANSWERS).is_dir():
            from arb.judges.engine.answers import AnswerStore  # noqa: PLC0415  pyarrow, only for clusters

            self._answers = AnswerStore(answers or str(folder / ANSWERS))
        with storing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        self._places: dict[bytes, tuple[str, int, int]] = {}
        self._read_up_to: dict[str, int] = {}
        self._segment: LineFile | None = None
        self.refresh()

    def __len__(self) -> int:
        return len(self._places)

    def get(self, key: str) -> Reply | None:
        """Return the reply to a call, marked as from the cache, or None if it is missing or unreadable."""
        name = bytes.fromhex(key)
        if name in self._places:
            return self._read(key)
        line = self._answers.line(name) if self._answers is not None else None
        return None if line is None else reply_in(line, key, self._not_before)

    def put(self, key: str, reply: Reply) -> None:
        """Store a reply. It survives a crash of the process at once, and one of the system after `sync`."""
        self._places[bytes.fromhex(key)] = self._append(answer_line(key, reply))

    def note_attempt(self, key: str, kind: str, message: str) -> None:
        """Record a failed attempt, which `get` never returns."""
        attempt = {"attempt": key, "kind": kind, "message": message[:2_000], "at": time.time()}
        self._append(_line_of(attempt))

    def sync(self) -> None:
        """Return when everything put so far is on the disk. May be called from another thread."""
        if (segment := self._segment) is not None:
            with storing(self.folder):
                segment.sync()

    def claim(self, key: str) -> bool:
        """Claim a call for this process; return False while another process has claimed it.

        After False the caller waits and tries again. When the other process has ended the call, or died, the
        caller gets the claim, and `get` after `refresh` finds a new answer. Claims separate processes, not
        the tasks of one process; those share calls in progress in the executor.
        """
        with storing(self.folder):
            claims = self._claims
        try:
            fcntl.lockf(claims, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(key))
        except (BlockingIOError, PermissionError):
            return False
        except OSError:  # a disk without locks: rather pay twice than not at all
            pass
        return True

    def release(self, key: str) -> None:
        """Release the claim on a call, answered or not."""
        with suppress(OSError):  # a disk without locks
            fcntl.lockf(self._claims, fcntl.LOCK_UN, 1, _place(key))

    @cached_property
    def _claims(self) -> int:
        """The file whose bytes are locked, one per call in progress.

        The system releases a lock when its process ends or is killed.
        """
        return os.open(self.folder / "claims", os.O_RDWR | os.O_CREAT, 0o666)

    def refresh(self) -> None:
        """Read the lines that other processes have added."""
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
        """Write everything to the disk, and leave the segment to other processes."""
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
        """Return the reply at a known position, or forget it and return None if it is damaged or too old."""
        try:
            reply = reply_in(self._line(bytes.fromhex(key)), key, self._not_before)
        except OSError:
            reply = None
        if reply is None:
            del self._places[bytes.fromhex(key)]
        return reply

    def _append(self, line: bytes) -> tuple[str, int, int]:
        """Write a line at the end of this process's segment and return its position."""
        with storing(self.folder):
            if self._segment is None:
                self._segment = _open_segment(self.folder)
                self.refresh()  # a continued segment has lines of other processes
            name, start = self._segment.path.name, self._segment.append(line)
        self._read_up_to[name] = start + len(line)
        return name, start, len(line)


def answer_line(key: str, reply: Reply) -> bytes:
    reply = reply if reply.key == key else replace(reply, key=key)
    return _line_of({"answer": key, "at": round(time.time(), 3), "reply": _record_of(reply)})


def key_in(line: bytes) -> bytes | None:
    """Return the key (32 bytes) in the line of an answer, or None if it is another line."""
    if not line.startswith(ANSWER):
        return None
    try:
        return bytes.fromhex(line[len(ANSWER) : len(ANSWER) + 64].decode("ascii"))
    except ValueError:
        return None


def reply_in(line: bytes, key: str, not_before: float | None = None) -> Reply | None:
    """Return the reply in a line, or None if the line is damaged, has another key, or is too old."""
    try:
        record = json.loads(line)
        if not_before is not None and record.get("at", 0.0) < not_before:
            return None
        return _reply_of(record["reply"]) if record["answer"] == key else None
    except (ValueError, KeyError, TypeError):
        return None


def _stored_at(line: bytes) -> float:
    """Return the time when a reply was stored, in seconds since 1970, or 0 if the line has no time."""
    try:
        return float(json.loads(line).get("at", 0.0))
    except (ValueError, TypeError, AttributeError):
        return 0.0


def _line_of(record: dict[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"


def _record_of(reply: Reply) -> dict[str, Any]:
    """Return the fields of a reply for JSON, without those that have their default value."""
    values = {name: getattr(reply, name) for name in _DEFAULTS}
    record = {name: value for name, value in values.items() if value != _DEFAULTS[name]}
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
