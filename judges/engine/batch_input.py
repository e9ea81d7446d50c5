"""The files of batches: a line for each call that has no reply yet."""

import json
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

from judges.engine.batch_log import BatchEntry
from judges.engine.wire_json import read_json

MAX_LINES: Final = 50_000
MAX_BYTES: Final = 190_000_000
"""OpenAI takes 50,000 calls and 200 MB in a batch."""

ENDPOINT: Final = "/v1/chat/completions"


def batch_line(key: str, body: dict[str, Any]) -> bytes:
    """The line of a call, named by its key.

    Halves of characters, which stand in some pages, are made U+FFFD: one line that is no UTF-8 would spoil
    its whole batch.
    """
    import msgspec

    line = {"custom_id": key, "method": "POST", "url": ENDPOINT, "body": body}
    try:
        return msgspec.json.encode(line) + b"\n"
    except UnicodeEncodeError:
        return msgspec.json.encode(read_json(json.dumps(line))) + b"\n"


@dataclass
class _Part:
    """A batch that is being filled."""

    entry: BatchEntry
    file: BinaryIO
    size: int = 0


@dataclass
class BatchFiles:
    """Files in ``folder`` with the calls of the next batches, those of each role apart; for ``with``.

    A file holds the calls of one model, as OpenAI wants it. Left, the files are gone: they have been handed
    in, or are made again.
    """

    folder: Path
    most_lines: int = MAX_LINES
    most_bytes: int = MAX_BYTES
    parts: list[_Part] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    _filling: dict[str, _Part] = field(default_factory=dict)

    def __enter__(self) -> "BatchFiles":
        for left_over in self.folder.glob("batch-input-*.jsonl"):  # of a killed process
            left_over.unlink()
        return self

    def __exit__(self, *_: object) -> None:
        for part in self.parts:
            part.file.close()
            self.path(part.entry).unlink(missing_ok=True)

    def path(self, entry: BatchEntry) -> Path:
        return self.folder / entry.input_file

    def add(self, role: str, key: str, line: bytes, most_usd: float | None, *, is_shorter: bool) -> None:
        """Add a call, once. ``most_usd``: more than it can cost."""
        if key in self.keys:
            return
        self.keys.add(key)
        part = self._filling.get(role)
        if part is None or len(part.entry.keys) >= self.most_lines or part.size + len(line) > self.most_bytes:
            part = self._filling[role] = self._new_part(role)
        part.file.write(line)
        part.size += len(line)
        entry = part.entry
        entry.keys.append(key)
        entry.shorter += [key] if is_shorter else []
        if most_usd is not None:
            entry.most_usd = (entry.most_usd or 0.0) + most_usd

    @property
    def most_usd(self) -> float:
        """More than all of them can cost, where prices are known."""
        return sum(part.entry.most_usd or 0.0 for part in self.parts)

    def finished(self) -> list[BatchEntry]:
        """The batches to submit, their files complete."""
        for part in self.parts:
            part.file.flush()
        return [part.entry for part in self.parts]

    def _new_part(self, role: str) -> _Part:
        mark = secrets.token_hex(16)
        entry = BatchEntry(mark, role, f"batch-input-{mark}.jsonl", [])
        part = _Part(entry, (self.folder / entry.input_file).open("wb"))
        self.parts.append(part)
        return part
