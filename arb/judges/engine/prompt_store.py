"""Store the prompts that a run sent in an append-only file. Each text is stored once and compressed.

    {"text": SHA-256, "zlib": the text's UTF-8, compressed, in base64}
    {"prompt": SHA-256, "messages": [[role, SHA-256 of a text, or a list of those and of pictures], …]}

The name of a prompt is the SHA-256 of its ``messages`` as written. Its texts are in earlier lines. A picture
is described by its media type, size and detail, and by the SHA-256 of the bytes that were sent. The bytes
themselves are only in the recorded runs. An incomplete last line is ignored.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from arb.judges.engine.storage import LineFile, complete_lines
from arb.judges.types import Image, Message

Picture = dict[str, Any]
"""The description of a picture: ``sha256``, ``media_type``, ``width``, ``height``, ``detail``."""

Prompt = list[tuple[str, str | list[str | Picture]]]
"""Messages as (role, content) in JSON form. The content is a text, or a list of texts and pictures."""

_LEVEL: Final = 1
"""The fastest level of zlib, since calls in the same process have to wait while texts are compressed."""

_NAMED_LINE: Final = re.compile(rb'\{"(?:text|prompt)":"([0-9a-f]{64})"')


class PromptStoreError(ValueError):
    """Raised for a prompt that is missing or damaged. The message names the prompt."""


def prompt_of(messages: Iterable[Message]) -> Prompt:
    """Return messages as a `Prompt`, with descriptions in place of pictures, and tool calls as text."""
    prompt: Prompt = []
    for each in messages:
        if isinstance(each.content, str) and not each.tool_calls:
            prompt.append((each.role, each.content))
        else:
            parts = [_described(part) if isinstance(part, Image) else part for part in each.parts]
            prompt.append((each.role, parts))
    return prompt


def _described(picture: Image) -> Picture:
    names = ("sha256", "media_type", "width", "height", "detail")
    return {name: getattr(picture, name) for name in names}


def _map_texts(prompt: Prompt, function: Callable[[str], str]) -> Prompt:
    """Return a prompt with a function applied to each text. Pictures stay unchanged."""
    mapped: Prompt = []
    for role, content in prompt:
        if isinstance(content, str):
            mapped.append((role, function(content)))
        else:
            parts = [function(part) if isinstance(part, str) else part for part in content]
            mapped.append((role, parts))
    return mapped


def _encoded(messages: Any) -> bytes:
    return json.dumps(messages, separators=(",", ":")).encode("ascii")


def _places(path: Path) -> dict[str, tuple[int, int]]:
    """Return (offset, length) of each line of the file, keyed by the name of its text or prompt."""
    places = {}
    for start, line in complete_lines(path):
        if (found := _NAMED_LINE.match(line)) is not None:
            places[found[1].decode("ascii")] = (start, len(line))
    return places


class PromptWriter:
    """Appends prompts to the file, which is created if needed. Only one process may write at a time."""

    def __init__(self, path: Path):
        self._path = path
        self._file: LineFile | None = None
        self._known: set[str] = set()

    def add(self, prompts: Iterable[Prompt]) -> list[str]:
        """Write the prompts and texts that the file lacks, and return the names of all given prompts."""
        if not (waiting := list(prompts)):
            return []
        if self._file is None:
            self._file = LineFile(self._path)
            self._known = set(_places(self._path))
        lines: dict[str, bytes] = {}
        names = [self._add(prompt, lines) for prompt in waiting]
        if lines:
            self._file.append(b"".join(lines.values()))
            self._file.sync()
            self._known.update(lines)
        return names

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _add(self, prompt: Prompt, lines: dict[str, bytes]) -> str:
        """Return the name of a prompt, and add the lines that the file lacks to ``lines``, by name."""
        content = _encoded(_map_texts(prompt, lambda text: self._add_text(text, lines)))
        name = hashlib.sha256(content).hexdigest()
        if name not in self._known:
            lines[name] = b'{"prompt":"%b","messages":%b}\n' % (name.encode(), content)
        return name

    def _add_text(self, text: str, lines: dict[str, bytes]) -> str:
        content = text.encode("utf-8", "surrogatepass")  # some pages have lone surrogates
        name = hashlib.sha256(content).hexdigest()
        if name not in lines and name not in self._known:
            packed = base64.b64encode(zlib.compress(content, _LEVEL))
            lines[name] = b'{"text":"%b","zlib":"%b"}\n' % (name.encode(), packed)
        return name


class PromptReader:
    """Reads single prompts by name, and keeps only their positions in memory. Raises OSError."""

    def __init__(self, path: Path):
        self._places = _places(path)
        self._file = path.open("rb")

    def get(self, name: str) -> Prompt:
        """Return a prompt. Raises PromptStoreError if it is missing or damaged."""
        messages: Any = self._read(name).get("messages")
        if hashlib.sha256(_encoded(messages)).hexdigest() != name:
            raise self._damaged(f"the prompt {name}")
        return _map_texts(messages, self._text)

    def close(self) -> None:
        self._file.close()

    def _text(self, name: str) -> str:
        try:
            text = zlib.decompress(base64.b64decode(self._read(name)["zlib"], validate=True))
        except (KeyError, TypeError, ValueError, zlib.error) as error:
            raise self._damaged(f"the text {name}", error) from error
        if hashlib.sha256(text).hexdigest() != name:
            raise self._damaged(f"the text {name}")
        return text.decode("utf-8", "surrogatepass")

    def _read(self, name: str) -> dict[str, Any]:
        if name not in self._places:
            raise PromptStoreError(f"{self._file.name}: the prompt or text {name} is missing; {_RUN_AGAIN}")
        start, length = self._places[name]
        self._file.seek(start)
        try:
            return json.loads(self._file.read(length))
        except ValueError as error:
            raise self._damaged(f"the prompt or text {name}", error) from error

    def _damaged(self, what: str, error: Exception | None = None) -> PromptStoreError:
        reason = f" ({error})" if error else ""
        return PromptStoreError(f"{self._file.name}: {what} is damaged{reason}; {_RUN_AGAIN}")


_RUN_AGAIN: Final = "run the judge again with a new --out folder to record its prompts"
