"""Pictures: what may be published by both ends and the header, and whether one can be decoded to its end.

`build` looks at the ends and the header of a picture; `verify` decodes every one, each once. Pictures are
nine tenths of what a build writes, so one that is a file of the source stays there (`PictureFile`) until its
shard is written.
"""

import hashlib
import io
import json
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from dataset_script.sources.base import SourceError

if TYPE_CHECKING:
    import pyarrow as pa

_PNG: Final = b"\x89PNG\r\n\x1a\n"
_PNG_END: Final = b"IEND\xaeB`\x82"
_JPEG: Final = b"\xff\xd8\xff"
_JPEG_END: Final = b"\xff\xd9"
FORMATS: Final = ("PNG", "JPEG", "WEBP")
MOST_PIXELS: Final = 100_000_000
"""More are refused: a few bytes of a picture can ask for any amount of memory. It is a full page at 1,280
pixels' width, 78,000 high."""


class BrokenImageError(ValueError):
    """A picture that cannot be published: a code of `report.NOTES`, and what is wrong with it."""

    def __init__(self, message: str, code: str = "broken_image"):
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class PictureFile:
    """A picture of the source, by its absolute path, and what shows that it is still the one that was looked
    at: its size and the time of its last change.
    """

    path: str
    size: int
    changed_ns: int

    def to_text(self) -> str:
        """For a column of text: ASCII, also where a file's name is not UTF-8."""
        return json.dumps((self.path, self.size, self.changed_ns))

    @classmethod
    def from_text(cls, text: str) -> "PictureFile":
        return cls(*json.loads(text))

    def is_unchanged(self) -> bool:
        try:
            return self._is(Path(self.path).stat())
        except OSError:
            return False

    def read(self) -> bytes:
        """Its bytes. Raises SourceError when it is not the same any more."""
        try:
            with Path(self.path).open("rb", buffering=0) as file:
                data = file.read(self.size) if self._is(os.fstat(file.fileno())) else b""
        except OSError as error:
            message = f"{self.path}: cannot be read any more ({error.strerror}); build again when it can"
            raise SourceError(message) from error
        if len(data) != self.size:
            raise SourceError(
                f"{self.path}: was changed while it was used; build again, it goes on from here"
            )
        return data

    def _is(self, found: os.stat_result) -> bool:
        return (found.st_size, found.st_mtime_ns) == (self.size, self.changed_ns)


def _check_size(file: BinaryIO) -> None:
    """Refuse a picture that is too large by its header, or has none that can be read; nothing is decoded."""
    from PIL import Image

    most = f"at most {MOST_PIXELS:,} can be shown"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns from another size on
            with Image.open(file, formats=FORMATS) as image:
                width, height = image.size
    except Image.DecompressionBombError:
        raise BrokenImageError(f"is too large by its header; {most}", "large_image") from None
    except Exception as error:  # Pillow's readers raise whatever they meet
        raise BrokenImageError("has no header that can be read") from error
    if width * height > MOST_PIXELS:
        message = f"has {width} x {height} pixels by its header; {most}"
        raise BrokenImageError(message, "large_image")


def check_picture(image: bytes | Path) -> bytes | PictureFile:
    """A PNG, JPEG or WebP picture, one in a file by its place. Raises BrokenImageError.

    Looks at both ends and the header only: decoding every picture of a build takes longer than all the rest
    of it, and `verify` does that.
    """
    if isinstance(image, bytes):
        _check(io.BytesIO(image), len(image))
        return image
    try:
        with image.open("rb") as file:
            found = os.fstat(file.fileno())
            _check(file, found.st_size)
    except OSError as error:
        raise BrokenImageError(f"cannot be read ({error.strerror})") from error
    return PictureFile(str(image.absolute()), found.st_size, found.st_mtime_ns)


def _check(file: BinaryIO, size: int) -> None:
    first = file.read(12)
    file.seek(max(0, size - 64))
    last = file.read(64)
    if first.startswith(_PNG):
        if not last.endswith(_PNG_END):
            raise BrokenImageError("is cut off")
    elif first.startswith(_JPEG):
        if _JPEG_END not in last:
            raise BrokenImageError("is cut off")
    elif first[:4] == b"RIFF" and first[8:] == b"WEBP":
        if size < int.from_bytes(first[4:8], "little") + 8:
            raise BrokenImageError("is cut off")
    else:
        raise BrokenImageError("is neither PNG, JPEG nor WebP")
    file.seek(0)
    _check_size(file)


def image_cell(picture: bytes | PictureFile | None) -> dict[str, bytes | str | None] | None:
    """A picture as `datasets` stores it in Parquet; one that is still to be read has its place as the path,
    which `read_pictures` takes away.
    """
    if isinstance(picture, PictureFile):
        return {"bytes": None, "path": picture.to_text()}
    return None if picture is None else {"bytes": picture, "path": None}


def picture_files(table: "pa.Table") -> Iterator[PictureFile]:
    """The pictures of a table that are still to be read."""
    for _, column in _image_columns(table):
        yield from (PictureFile.from_text(text) for text in _paths(column) if text is not None)


def read_pictures(table: "pa.Table") -> "pa.Table":
    """The table with the bytes of every picture. Raises SourceError for one that was changed meanwhile."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for place, column in _image_columns(table):
        paths = _paths(column)
        if any(paths):
            inside = pc.struct_field(column, "bytes").to_pylist()
            found = (
                PictureFile.from_text(text).read() if text else data
                for text, data in zip(paths, inside, strict=True)
            )
            cells = [pa.array(found, pa.binary()), pa.nulls(len(paths), pa.string())]
            mask = pc.is_null(column).combine_chunks()
            read = pa.StructArray.from_arrays(cells, fields=list(column.type), mask=mask)
            table = table.set_column(place, table.field(place), read)
    return table


def _image_columns(table: "pa.Table") -> Iterator[tuple[int, "pa.ChunkedArray"]]:
    """The columns of one picture each, by their place."""
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        if pa.types.is_struct(field.type):
            yield place, table.column(place)


def _paths(column: "pa.ChunkedArray") -> list[str | None]:
    import pyarrow.compute as pc

    return pc.struct_field(column, "path").to_pylist()


def image_digest(data: bytes) -> str:
    """16 bytes, as hexadecimal digits, that stand for a picture."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def why_undecodable(data: bytes | None) -> str | None:
    """Why Pillow cannot show the image; None when it can. Only the formats that the builder writes."""
    from PIL import Image

    if not data:
        return "no bytes"
    if _is_plain_png(data):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the size is looked at below
            with Image.open(io.BytesIO(data), formats=FORMATS) as image:
                if image.width * image.height > MOST_PIXELS:
                    return f"{image.width} x {image.height} pixels"
                image.verify()  # checksums and the end; an image can be shown without either
            with Image.open(io.BytesIO(data), formats=FORMATS) as image:
                image.load()
    except Exception as error:  # Pillow's decoders raise whatever they meet
        return type(error).__name__
    return None


_CHANNELS: Final = {0: 1, 2: 3, 6: 4}
"""Samples of a pixel by PNG's colour types grey, RGB and RGBA."""
_HARMLESS: Final = frozenset({b"sBIT", b"sRGB", b"gAMA", b"pHYs", b"tIME"})
_MOST_TEXT: Final = 10_000


def _is_plain_png(data: bytes) -> bool:
    """Whether the bytes are a whole PNG of the plain kind that browsers write: 8 bits, not interlaced.

    Does what a decoder does up to the filters, a tenth of the work: every checksum is right, the pixels
    unpack to just the bytes that the header asks for, and each row names a filter there is (PNG
    specification, sections 5 to 9). False says nothing: Pillow decides.
    """
    from zlib_ng import zlib_ng

    header = data[16:29]
    channels = _CHANNELS.get(header[9]) if len(header) == 13 else None
    if not data.startswith(_PNG + b"\0\0\0\rIHDR") or channels is None or header[8] != 8 or any(header[10:]):
        return False
    width, height = int.from_bytes(header[:4]), int.from_bytes(header[4:8])
    if not 0 < width * height <= MOST_PIXELS:
        return False
    packed = []
    kind, at = b"", len(_PNG)
    while kind != b"IEND":
        size, before = int.from_bytes(data[at : at + 4]), kind
        chunk, checksum = data[at + 4 : at + 8 + size], data[at + 8 + size : at + 12 + size]
        kind, body = chunk[:4], chunk[4:]
        if int.from_bytes(checksum) != zlib_ng.crc32(chunk):
            return False
        if kind == b"IDAT" and (before == b"IDAT" or not packed):
            packed.append(body)
        elif not (
            kind in _HARMLESS
            or (kind == b"IHDR" and at == len(_PNG))
            or (kind == b"IEND" and not size)
            or (kind == b"tEXt" and size <= _MOST_TEXT and b"\0" in body)
        ):
            return False
        at += 12 + size
        if at > len(data):
            return False
    if at != len(data):
        return False
    row = width * channels + 1
    try:
        unpacker = zlib_ng.decompressobj()
        pixels = unpacker.decompress(b"".join(packed), row * height + 1)
    except zlib_ng.error:
        return False
    return unpacker.eof and len(pixels) == row * height and max(pixels[::row]) <= 4
