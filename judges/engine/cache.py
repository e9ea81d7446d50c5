"""Replies on disk, addressed by what was asked: no call is paid twice, by any judge, run or process.

The folder holds segments, files of one JSON object a line that only grow. Each is written by one process at a
time and read by all. A line is there once its end is, so that a process killed at any moment leaves a whole
cache: a line without an end is not read, and cut off by the next process that goes on with the segment.
Failures are lines too, but never answers. Pictures are in no line: the key has their hashes.
"""

import json
import os
import time
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, BinaryIO, Final

from judges.base import Reply, TokenProbability
from judges.engine.call_keys import call_key
from judges.engine.claims import Claims
from judges.engine.segments import Segment, complete_lines, is_segment

__all__ = ["CallCache", "call_key"]

ANSWER: Final = b'{"answer":"'
"""How the line of an answer begins; its key follows. ``{"attempt":"`` begins that of a failure."""

REFRESH_AFTER_S: Final = 1.0
"""What other processes have added is looked for no more often than this."""

_KEY_LENGTH: Final = 64

_DEFAULTS: Final = {each.name: each.default for each in fields(Reply) if each.name != "is_from_cache"}
"""The fields of a reply in a line, with the defaults that are left out."""


class CallCache:
    """The replies in a folder, which is made when it is not there. Raises OSError where it cannot be.

    In memory are places in files, not texts: about 300 bytes an answer. For one thread at a time.
    """

    def __init__(self, folder: Path, now: Callable[[], float] = time.monotonic):
        self.folder = folder
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
        return None if place is None else self._read(key, *place)

    def put(self, key: str, reply: Reply) -> None:
        """Keep a reply. When this returns it outlives the process; after `sync` also the machine."""
        record = {"answer": key, "reply": _record_of(reply if reply.key == key else replace(reply, key=key))}
        name, start, length = self._append(record)
        self._places[bytes.fromhex(key)] = (name, start, length)

    def note_attempt(self, key: str, kind: str, message: str) -> None:
        """Keep that a call failed, and how. It is no answer: `get` does not give it."""
        self._append({"attempt": key, "kind": kind, "message": message[:2_000], "at": time.time()})

    def sync(self) -> None:
        """Return when everything kept so far is on the disk. May be called from another thread."""
        if (writing := self._writing) is not None:
            writing.sync()

    def claim(self, key: str) -> bool:
        """Take a call for this process: False while another process has it under way.

        A caller that gets False waits, and then finds the answer with `get` after `refresh`, or takes the
        call when
        the other has given it up or died.
        """
        return self._claims.take(key)

    def release(self, key: str) -> None:
        """Give a claimed call up, answered or not."""
        self._claims.release(key)

    def refresh(self) -> None:
        """Read what other processes have added since."""
        self._refreshed_at = self._now()
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
        if self._writing is not None:
            self._writing.sync()
            self._writing.close()
            self._writing = None
        self._claims.close()

    def _index(self, name: str, file: BinaryIO) -> None:
        for start, line in complete_lines(file, self._read_up_to.get(name, 0)):
            self._read_up_to[name] = start + len(line)
            if line.startswith(ANSWER):
                try:
                    key = bytes.fromhex(line[len(ANSWER) : len(ANSWER) + _KEY_LENGTH].decode("ascii"))
                except ValueError:
                    continue
                self._places[key] = (name, start, len(line))

    def _read(self, key: str, name: str, start: int, length: int) -> Reply | None:
        """The reply at a place; a line that a failing disk has spoilt is no answer, and is asked again."""
        try:
            with (self.folder / name).open("rb") as file:
                file.seek(start)
                record = json.loads(file.read(length))
            if record["answer"] == key:
                return _reply_of(record["reply"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        self._places.pop(bytes.fromhex(key), None)
        return None

    def _append(self, record: dict[str, Any]) -> tuple[str, int, int]:
        if self._writing is None or self._writing.owner != os.getpid():  # after a fork: never two writers
            self._writing = Segment.open(self.folder)
            self.refresh()  # a segment that is gone on with has lines of others
        line = json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"
        name, start = self._writing.path.name, self._writing.append(line)
        self._read_up_to[name] = start + len(line)
        return name, start, len(line)


def _record_of(reply: Reply) -> dict[str, Any]:
    """A reply for JSON: what is not the default."""
    record = {name: v for name, usual in _DEFAULTS.items() if (v := getattr(reply, name)) != usual}
    if reply.logprobs is not None:
        record["logprobs"] = [[each.token, each.logprob, each.rivals] for each in reply.logprobs]
    return record


def _reply_of(record: dict[str, Any]) -> Reply:
    known = {each.name for each in fields(Reply)}
    given = {name: value for name, value in record.items() if name in known}
    if given.get("logprobs") is not None:
        given["logprobs"] = tuple(
            TokenProbability(token, logprob, tuple((str(rival), p) for rival, p in rivals))
            for token, logprob, rivals in given["logprobs"]
        )
    return Reply(**given | {"is_from_cache": True})
