"""Cache replies on disk, so that no judge, run or process pays for a call twice.

The cache is a folder of segments, which are append-only JSON Lines files (`LineFile`). Each is written by one
process at a time and read by all. The key of a reply is a hash of everything that it depends on, including
the pictures. Failed attempts are recorded too, but never returned. A process claims the calls that it is
making, so that no other process makes them too.
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
from dataclasses import asdict, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from arb.judges.endpoints.providers import address_of
from arb.judges.engine.storage import ANSWERS, LineFile, complete_lines, storing
from arb.judges.types import Call, Image, Message, ModelSettings, Reply, Tool

if TYPE_CHECKING:
    from arb.judges.engine.answers import AnswerStore

ANSWER: Final = b'{"answer":"'
"""The beginning of a line with a reply, before the key. Lines of failed attempts begin differently."""

KEY_VERSION: Final = 2
"""The version of the parameters in a key. Replies under keys of another version are not used."""

_NOT_STORED: Final = ("is_from_cache", "rate_limits", "others")
_DEFAULTS: Final = {each.name: each.default for each in fields(Reply) if each.name not in _NOT_STORED}
"""The fields of a reply with their default values. A field is stored only if it has another value."""


def is_segment(name: str) -> bool:
    return name.startswith("segment-") and name.endswith(".jsonl")


def _open_segment(folder: Path) -> LineFile:
    """Open and lock one of this machine's segments that no other process is using, or else a new segment.

    If the disk supports no locks, every process creates a new segment.
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
    except BlockingIOError:  # another process opened the new segment as an unused one
        raise
    except OSError:  # a disk without locks: no other process can lock the file either
        pass
    return LineFile(path, descriptor)


def _place(key: str) -> int:
    """Return the offset (below 2^62) of the byte in the claims file that is locked to claim a key."""
    return int(key[:16], 16) >> 2


def call_key(
    model: ModelSettings,
    messages: tuple[Message, ...],
    max_output_tokens: int,
    sample: int,
    tools: tuple[Tool, ...] = (),
) -> str:
    """Return the key of a call: the SHA-256 of provider, address, model, parameters, messages and sample.

    The address is included, since a model of the same name may have other weights or quantization elsewhere.
    The API key and its variable are not included.
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
    if model.reasoning_effort is not None:  # left out if not set, so that older keys stay valid
        parameters["reasoning_effort"] = model.reasoning_effort
    if tools:
        parameters["tools"] = [tool.declaration for tool in tools]
    digest = hashlib.sha256(json.dumps(parameters, sort_keys=True, separators=(",", ":")).encode())
    for message in messages:
        digest.update(f"\n{message.role} {len(message.parts)}".encode())
        if message.tool_calls or message.tool_call_id:
            named = [message.tool_call_id, *map(asdict, message.tool_calls)]
            digest.update(f"\n{json.dumps(named, sort_keys=True)}".encode())
        for part in message.parts:
            if isinstance(part, Image):
                digest.update(f"\npicture {part.sha256} {part.media_type} {part.detail}".encode())
            else:
                text = part.encode("utf-8", "surrogatepass")  # some pages have lone surrogates
                # Because of the length, two texts never have the same hash as one longer text.
                digest.update(f"\ntext {len(text)}\n".encode())
                digest.update(text)
    return digest.hexdigest()


def key_of(model: ModelSettings, call: Call, sample: int | None = None) -> str:
    """Return the key of a call to a model. ``sample`` overrides the call's own sample number."""
    max_output_tokens = call.max_output_tokens or model.max_output_tokens
    number = call.sample if sample is None else sample
    return call_key(model, call.messages, max_output_tokens, number, call.tools)


class CallCache:
    """A cache of replies in a folder, which is created if needed. Use it from one thread at a time.

    Only the positions of replies are kept in memory (about 300 bytes per reply). Methods raise StorageError.

    Args:
        folder: The folder of the segments.
        answers: The URL of an `AnswerStore` to search as well; by default the one in the folder, if any.
        not_before: Ignore replies stored before this time (seconds since 1970).
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
        """Store a reply. It survives a crash of the process and, after `sync`, also a crash of the system."""
        self._places[bytes.fromhex(key)] = self._append(answer_line(key, reply))

    def note_attempt(self, key: str, kind: str, message: str) -> None:
        """Record a failed attempt, which `get` never returns."""
        attempt = {"attempt": key, "kind": kind, "message": message[:2_000], "at": time.time()}
        self._append(_line_of(attempt))

    def sync(self) -> None:
        """Wait until everything stored so far is on disk. This may be called from any thread."""
        if (segment := self._segment) is not None:
            with storing(self.folder):
                segment.sync()

    def claim(self, key: str) -> bool:
        """Claim a call for this process. Return False if another process has claimed it.

        In that case, try again. Once the other process has finished or died, the claim succeeds. `refresh`
        and `get` then find the reply, if there is one. Tasks in the same process can claim the same call; see
        `CallExecutor`.
        """
        with storing(self.folder):
            claims = self._claims
        try:
            fcntl.lockf(claims, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(key))
        except (BlockingIOError, PermissionError):
            return False
        except OSError:  # a disk without locks: paying twice is better than failing
            pass
        return True

    def release(self, key: str) -> None:
        """Release the claim on a call, whether or not the call was answered."""
        with suppress(OSError):  # a disk without locks
            fcntl.lockf(self._claims, fcntl.LOCK_UN, 1, _place(key))

    @cached_property
    def _claims(self) -> int:
        """The descriptor of the claims file, in which one byte is locked for each call in progress.

        The system releases a process's locks when the process ends.
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
        """Write everything to disk, and release the segment so that other processes can continue it."""
        try:
            self.sync()
        finally:
            if self._segment is not None:
                self._segment.close()
                self._segment = None
            if "_claims" in self.__dict__:
                os.close(self.__dict__.pop("_claims"))

    def _has_newer(self, key: bytes, name: str, line: bytes) -> bool:
        """Return whether a segment other than ``name`` has a newer reply to the call than ``line``."""
        if key not in self._places or self._places[key][0] == name:
            return False
        return _stored_at(self._line(key)) > _stored_at(line)

    def _line(self, key: bytes) -> bytes:
        name, start, length = self._places[key]
        with (self.folder / name).open("rb") as file:
            file.seek(start)
            return file.read(length)

    def _read(self, key: str) -> Reply | None:
        """Return the reply at the known position of a key. If it is unusable, forget the position."""
        try:
            reply = reply_in(self._line(bytes.fromhex(key)), key, self._not_before)
        except OSError:
            reply = None
        if reply is None:
            del self._places[bytes.fromhex(key)]
        return reply

    def _append(self, line: bytes) -> tuple[str, int, int]:
        """Append a line to this process's segment and return its position (file name, offset, length)."""
        with storing(self.folder):
            if self._segment is None:
                self._segment = _open_segment(self.folder)
                self.refresh()  # an existing segment has lines of other processes
            name, start = self._segment.path.name, self._segment.append(line)
        self._read_up_to[name] = start + len(line)
        return name, start, len(line)


def answer_line(key: str, reply: Reply) -> bytes:
    reply = reply if reply.key == key else replace(reply, key=key)
    return _line_of({"answer": key, "at": round(time.time(), 3), "reply": _record_of(reply)})


def key_in(line: bytes) -> bytes | None:
    """Return the key (32 bytes) in a line, or None if the line contains no reply."""
    if not line.startswith(ANSWER):
        return None
    try:
        return bytes.fromhex(line[len(ANSWER) : len(ANSWER) + 64].decode("ascii"))
    except ValueError:
        return None


def reply_in(line: bytes, key: str, not_before: float | None = None) -> Reply | None:
    """Return the reply in a line, or None if the line is damaged, too old, or has a different key."""
    try:
        record = json.loads(line)
        if not_before is not None and record["at"] < not_before:
            return None
        fields_of_reply = record["reply"] | {"is_from_cache": True}
        return msgspec.convert(fields_of_reply, Reply) if record["answer"] == key else None
    except (ValueError, KeyError, TypeError, AttributeError, msgspec.MsgspecError):
        return None


def _stored_at(line: bytes) -> float:
    """Return when a reply was stored, in seconds since 1970, or 0 if the line has no time."""
    try:
        return float(json.loads(line).get("at", 0.0))
    except (ValueError, TypeError, AttributeError):
        return 0.0


def _line_of(record: dict[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"


def _record_of(reply: Reply) -> dict[str, Any]:
    """Return the fields of a reply as a JSON object, without those that have their default value."""
    values = {name: getattr(reply, name) for name in _DEFAULTS}
    record = {name: value for name, value in values.items() if value != _DEFAULTS[name]}
    if reply.tool_calls:
        record["tool_calls"] = list(map(asdict, reply.tool_calls))
    return record
