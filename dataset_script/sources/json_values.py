"""Read single JSON values of a file: the elements of an array, the lines of JSON Lines, or parts of a log."""

import json
import os
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dataset_script.sources.files import LINES, check_size, content_of, json_problems, read_bytes


@dataclass(frozen=True, slots=True)
class JsonPlace:
    """The place of a JSON text in a file: ``stored`` bytes from ``start`` on.

    In a zip file, the place starts at the member's header, and ``method`` is the compression (0: none, 8:
    Deflate, 93: Zstandard). ``size`` and ``crc`` describe the unpacked text. In other files, ``method`` is
    None.
    """

    start: int
    stored: int
    size: int
    method: int | None = None
    crc: int = 0


def read_json_at(path: Path, place: JsonPlace) -> Any:
    """Return the JSON value at a place. Raises UnusableFileError if it is too large or cannot be read."""
    check_size(max(place.size, place.stored))
    with json_problems(), path.open("rb") as file:
        file.seek(place.start)
        if place.method is not None:
            head = file.read(30)
            if not head.startswith(b"PK\x03\x04") or len(head) < 30:
                raise ValueError("its place in the zip file is wrong")
            file.seek(sum(struct.unpack("<HH", head[26:])), os.SEEK_CUR)
        packed = file.read(min(place.stored, os.fstat(file.fileno()).st_size))
        return json.loads(packed if place.method is None else _unpacked(packed, place))


def _unpacked(packed: bytes, place: JsonPlace) -> bytes:
    """Return a member's content. Raises ValueError unless its size and checksum are as recorded."""
    try:
        match place.method:
            case 0:
                content = packed
            case 8:
                content = zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, place.size + 1)
            case 93:  # Zstandard, which Python's own zipfile reads only from 3.14 on
                import pyarrow as pa  # noqa: PLC0415 - heavy, only for Zstandard

                content = pa.Codec("zstd").decompress(packed, decompressed_size=place.size, asbytes=True)
            case _:
                raise ValueError(f"uses an unsupported compression (method {place.method})")
    except (zlib.error, OSError) as error:
        raise ValueError(f"cannot be unpacked ({error})") from error
    if len(content) != place.size or zlib.crc32(content) != place.crc:
        raise ValueError("is damaged: its size or checksum differs from the zip file's directory")
    return content


_UTF8_MARK: Final = "\xef\xbb\xbf"
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_SPACE_AND_COMMAS: Final = re.compile(r"[\s,]*")


def json_values(path: Path) -> Iterator[tuple[Any, JsonPlace]]:
    """Yield each JSON value in a file, or each element if the file is one array, with its place.

    Texts are decoded as Latin-1, so that text offsets are file offsets (see `as_utf8`). In place of a value
    that cannot be read, yields the ValueError or RecursionError that says why. Reading continues after that
    line in JSON Lines, but not in other files.
    """
    text, is_lines = content_of(path).decode("latin-1"), path.suffix.lower() in LINES
    at, end = _skip(text, 3 if text.startswith(_UTF8_MARK) else 0, _SPACE_AND_COMMAS), len(text)
    if text.startswith("[", at) and not is_lines:
        at, end = _skip(text, at + 1, _SPACE_AND_COMMAS), len(text.rstrip().removesuffix("]"))
    decode = json.JSONDecoder().raw_decode
    while at < end:
        try:
            value, after = decode(text, at)
        except (ValueError, RecursionError) as error:
            line_end = text.find("\n", at, end) if is_lines else end
            value, after = error, line_end if line_end >= 0 else end
        yield value, JsonPlace(at, after - at, after - at)
        at = _skip(text, after, _SPACE_AND_COMMAS)


def as_utf8(text: str) -> str:
    """Return the UTF-8 text of bytes that were decoded as Latin-1."""
    return text.encode("latin-1", "replace").decode("utf-8", "replace")


def json_parts(path: Path, array: str) -> Iterator[tuple[str, Any, JsonPlace]]:
    """Yield (key, value, place) for the values of the JSON object in a file, one at a time.

    The array with the key ``array`` is yielded as one item per element. Texts are decoded as Latin-1, in
    which each character is one byte, so text offsets are file offsets. Use `read_json_at` to decode a value
    properly. Raises UnusableFileError if the file cannot be read. If the object is incomplete, yields the
    values before the fault and then raises ValueError or RecursionError.
    """
    text = read_bytes(path).decode("latin-1")
    decode = json.JSONDecoder().raw_decode
    at = _after(text, 3 if text.startswith(_UTF8_MARK) else 0, "{")
    while not text.startswith("}", at):
        key, at = decode(text, at)
        at = _after(text, at, ":")
        if key == array and text.startswith("[", at):
            at = _after(text, at, "[")
            while not text.startswith("]", at):
                value, end = decode(text, at)
                yield key, value, JsonPlace(at, end - at, end - at)
                at = _comma(text, end)
            at += 1
        else:
            value, end = decode(text, at)
            yield key, value, JsonPlace(at, end - at, end - at)
            at = end
        at = _comma(text, at)


def _after(text: str, at: int, mark: str) -> int:
    """Return the place after a mark and the spaces around it. Raises ValueError if the mark is missing."""
    at = _skip(text, at)
    if not text.startswith(mark, at):
        raise ValueError(f"byte {at}: {mark!r} is missing")
    return _skip(text, at + len(mark))


def _comma(text: str, at: int) -> int:
    """Return the place after a comma, or after spaces if the comma is missing."""
    at = _skip(text, at)
    return _after(text, at, ",") if text.startswith(",", at) else at


def _skip(text: str, at: int, skipped: re.Pattern[str] = _SPACE) -> int:
    found = skipped.match(text, at)
    return found.end() if found else at
