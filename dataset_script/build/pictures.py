"""Pictures: what may be published by both ends and the header, and whether one can be decoded to its end.

`build` looks at the ends and the header of a picture; `verify` decodes every one, each once.
"""

import hashlib
import io
import warnings
from pathlib import Path
from typing import Final

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


def _check_size(data: bytes) -> None:
    """Refuse a picture that is too large by its header, or has none that can be read; nothing is decoded."""
    from PIL import Image

    most = f"at most {MOST_PIXELS:,} can be shown"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns from another size on
            with Image.open(io.BytesIO(data), formats=FORMATS) as image:
                width, height = image.size
    except Image.DecompressionBombError:
        raise BrokenImageError(f"is too large by its header; {most}", "large_image") from None
    except Exception as error:  # Pillow's readers raise whatever they meet
        raise BrokenImageError("has no header that can be read") from error
    if width * height > MOST_PIXELS:
        message = f"has {width} x {height} pixels by its header; {most}"
        raise BrokenImageError(message, "large_image")


def image_bytes(image: bytes | Path | None) -> bytes | None:
    """The bytes of a PNG, JPEG or WebP picture; None for None. Raises BrokenImageError.

    Looks at both ends and the header only: decoding every picture of a build takes longer than all the rest
    of it, and `verify` does that.
    """
    if image is None:
        return None
    try:
        data = image.read_bytes() if isinstance(image, Path) else image
    except OSError as error:
        raise BrokenImageError(f"cannot be read ({error.strerror})") from error
    if data.startswith(_PNG):
        if not data.endswith(_PNG_END):
            raise BrokenImageError("is cut off")
    elif data.startswith(_JPEG):
        if _JPEG_END not in data[-64:]:
            raise BrokenImageError("is cut off")
    elif data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        if len(data) < int.from_bytes(data[4:8], "little") + 8:
            raise BrokenImageError("is cut off")
    else:
        raise BrokenImageError("is neither PNG, JPEG nor WebP")
    _check_size(data)
    return data


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
