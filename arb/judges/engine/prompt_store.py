"""The prompts that were sent, in a file that only grows: every text once, compressed, named by its SHA-256.

    {"text": SHA-256, "zlib": the text's UTF-8, compressed, in base64}
    {"prompt": SHA-256, "messages": [[role, SHA-256 of a text, or a list of those and of pictures], …]}

A prompt is named by the SHA-256 of its ``messages``, byte for byte; its texts come before it. Of a picture
there is what it was (SHA-256 of the bytes that were sent, media type, size, detail); its bytes stay where the
recorded runs have them. As in the reply cache a line is there once its end is, so that a process killed at
any moment leaves a whole file.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from arb.judges.engine.cache import complete_lines, truncate_partial_line
from arb.judges.engine.storage import write_at
from arb.judges.types import Image, Message

Picture = dict[str, Any]
"""What is said of a picture: ``sha256``, ``media_type``, ``width``, ``height``, ``detail``."""

Prompt = list[tuple[str, str | list[str | Picture]]]
"""Messages as role and content: a text, or texts and pictures; fit for JSON."""

_LEVEL: Final = 1
"""Of zlib: its writer shares the machine with the calls."""

_NAMED_LINE: Final = re.compile(rb'\{"(?:text|prompt)":"([0-9a-f]{64})"')
_SHORT_NAME_BYTES: Final = 16
"""What a writer remembers of a name, so that ten thousand prompts take two megabytes of memory."""


class PromptStoreError(ValueError):
    """A prompt that is not in the file, or not as it was written; the message says which."""


def prompt_of(messages: Iterable[Message]) -> Prompt:
    """The messages without the bytes of their pictures."""
    return [
        (
            each.role,
            each.content
            if isinstance(each.content, str)
            else [_described(part) if isinstance(part, Image) else part for part in each.content],
        )
        for each in messages
    ]


def _described(picture: Image) -> Picture:
    return {
        "sha256": picture.sha256,
        "media_type": picture.media_type,
        "width": picture.width,
        "height": picture.height,
        "detail": picture.detail,
    }


class PromptWriter:
    """Adds prompts to the file, which is made when it is not there. For one process at a time."""

    def __init__(self, path: Path):
        self._path = path
        self._descriptor = -1
        self._end = 0
        self._known: set[bytes] = set()

    def add(self, prompts: Iterable[Prompt]) -> list[str]:
        """The names of the prompts; those that are new, and their new texts, are on the disk afterwards."""
        if not (waiting := list(prompts)):
            return []
        if self._descriptor < 0:
            self._open()
        lines: dict[str, bytes] = {}
        names = [self._add(prompt, lines) for prompt in waiting]
        if lines:
            content = b"".join(lines.values())
            write_at(self._descriptor, content, self._end)
            os.fsync(self._descriptor)
            self._end += len(content)
            self._known.update(map(_short, lines))
        return names

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    def _open(self) -> None:
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        self._end = truncate_partial_line(self._descriptor)
        with self._path.open("rb") as file:
            self._known = {_short(name) for name, _, _ in _named_lines(file)}

    def _add(self, prompt: Prompt, lines: dict[str, bytes]) -> str:
        """The name of the prompt; what the file has not of it is put into ``lines``, by name."""
        messages = [
            (role, [self._part(each, lines) for each in content])
            if isinstance(content, list)
            else (role, self._part(content, lines))
            for role, content in prompt
        ]
        content = json.dumps(messages, separators=(",", ":")).encode("ascii")
        name = hashlib.sha256(content).hexdigest()
        if name not in lines and _short(name) not in self._known:
            lines[name] = b'{"prompt":"%b","messages":%b}\n' % (name.encode(), content)
        return name

    def _part(self, part: str | Picture, lines: dict[str, bytes]) -> str | Picture:
        """A text's name; of a picture what is said of it."""
        if not isinstance(part, str):
            return part
        text = part.encode("utf-8", "surrogatepass")  # some pages have half a pair
        name = hashlib.sha256(text).hexdigest()
        if name not in lines and _short(name) not in self._known:
            packed = base64.b64encode(zlib.compress(text, _LEVEL))
            lines[name] = b'{"text":"%b","zlib":"%b"}\n' % (name.encode(), packed)
        return name


class PromptReader:
    """Reads prompts by name, one at a time; in memory are their places. Raises OSError without the file."""

    def __init__(self, path: Path):
        self._file = path.open("rb")
        self._places = {name: (start, length) for name, start, length in _named_lines(self._file)}

    def get(self, name: str) -> Prompt:
        """The prompt, each of its texts checked by its name. Raises PromptStoreError."""
        messages = self._read(name).get("messages")
        content = json.dumps(messages, separators=(",", ":")).encode("ascii")
        if hashlib.sha256(content).hexdigest() != name:
            raise PromptStoreError(f"the prompt {name} is damaged")
        return [
            (role, list(map(self._part, content)) if isinstance(content, list) else self._part(content))
            for role, content in messages
        ]

    def close(self) -> None:
        self._file.close()

    def _part(self, name: str | Picture) -> str | Picture:
        if not isinstance(name, str):
            return name
        try:
            text = zlib.decompress(base64.b64decode(self._read(name)["zlib"], validate=True))
        except (KeyError, TypeError, ValueError, zlib.error) as error:
            raise PromptStoreError(f"the text {name} is damaged ({error})") from error
        if hashlib.sha256(text).hexdigest() != name:
            raise PromptStoreError(f"the text {name} is damaged")
        return text.decode("utf-8", "surrogatepass")

    def _read(self, name: str) -> dict[str, Any]:
        if name not in self._places:
            raise PromptStoreError(f"the prompt or text {name} is not in {self._file.name}")
        start, length = self._places[name]
        self._file.seek(start)
        try:
            return json.loads(self._file.read(length))
        except ValueError as error:
            raise PromptStoreError(f"the line of {name} is damaged ({error})") from error


def _named_lines(file: BinaryIO) -> Iterator[tuple[str, int, int]]:
    """The name of every line, where it begins, and its length; lines without a name are passed over."""
    for start, line in complete_lines(file, 0):
        if (found := _NAMED_LINE.match(line)) is not None:
            yield found[1].decode("ascii"), start, len(line)


def _short(name: str) -> bytes:
    return bytes.fromhex(name)[:_SHORT_NAME_BYTES]
