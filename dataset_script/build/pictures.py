"""Check pictures. `build` checks only their beginning and end; `verify` decodes them completely."""

import hashlib
import io
import warnings
from pathlib import Path
from typing import Final

from PIL import Image
from zlib_ng import zlib_ng

_PNG: Final = b"\x89PNG\r\n\x1a\n"
_PNG_END: Final = b"IEND\xaeB`\x82"
_JPEG: Final = b"\xff\xd8\xff"
_JPEG_END: Final = b"\xff\xd9"
FORMATS: Final = ("PNG", "JPEG", "WEBP")
MOST_PIXELS: Final = 100_000_000
"""The maximum number of pixels in a picture, since a small file can decode to any amount of memory.

This allows a full-page screenshot of 1,280 by 78,000 pixels.
"""


class BrokenImageError(ValueError):
    """Raised for a picture that cannot be published; ``code`` is one of `report.NOTES`."""

    def __init__(self, message: str, code: str = "broken_image"):
        super().__init__(message)
        self.code = code


def check_picture(image: bytes | Path) -> bytes:
    """Return the bytes of a PNG, JPEG or WebP picture after checking its beginning and end.

    Decoding every picture would take longer than the rest of a build, so only `verify` does that. Raises
    BrokenImageError if the picture cannot be read, is cut off, too large or of another format.
    """
    try:
        data = image.read_bytes() if isinstance(image, Path) else image
    except OSError as error:
        raise BrokenImageError(f"cannot be read ({error.strerror})") from error
    if data.startswith(_PNG):
        is_whole = data.endswith(_PNG_END)
    elif data.startswith(_JPEG):
        is_whole = _JPEG_END in data[-64:]
    elif data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        is_whole = len(data) >= int.from_bytes(data[4:8], "little") + 8
    else:
        raise BrokenImageError("is neither PNG, JPEG nor WebP")
    if not is_whole:
        raise BrokenImageError("is cut off")
    _check_size(data)
    return data


def _check_size(data: bytes) -> None:
    """Raise BrokenImageError if the header cannot be read or gives too large a size. Decodes no pixels."""
    most = f"at most {MOST_PIXELS:,} can be shown"
    try:
        with _opened(data) as image:
            width, height = image.size
    except Image.DecompressionBombError:
        raise BrokenImageError(f"is too large according to its header; {most}", "large_image") from None
    except Exception as error:  # Pillow's readers may raise any exception
        raise BrokenImageError("has no readable header") from error
    if width * height > MOST_PIXELS:
        message = f"has {width} x {height} pixels according to its header; {most}"
        raise BrokenImageError(message, "large_image")


def _opened(data: bytes) -> Image.Image:
    """Open a picture without Pillow's warning about large pictures, whose limit differs from ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Image.open(io.BytesIO(data), formats=FORMATS)


def image_cell(picture: bytes) -> dict[str, bytes | None]:
    return {"bytes": picture, "path": None}


def image_digest(data: bytes) -> str:
    """Return a 16-byte hash of a picture, as hexadecimal digits."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def why_undecodable(data: bytes | None) -> str | None:
    """Return why Pillow cannot decode the image as one of `FORMATS`, or None if it can."""
    if not data:
        return "no bytes"
    try:
        with _opened(data) as image:
            if image.width * image.height > MOST_PIXELS:
                return f"{image.width} x {image.height} pixels"
            image.verify()  # checks the checksums and the end, which decoding can do without
            is_whole = image.format == "PNG" and _unpacks(data, image.mode, image.size)
        if not is_whole:
            with _opened(data) as image:
                image.load()
    except Exception as error:  # Pillow's decoders may raise any exception
        return type(error).__name__
    return None


_CHANNELS: Final = {"L": 1, "RGB": 3, "RGBA": 4}
_KNOWN_CHUNKS: Final = frozenset({b"IHDR", b"IEND", b"sBIT", b"sRGB", b"gAMA", b"pHYs", b"tIME", b"tEXt"})


def _unpacks(data: bytes, mode: str, size: tuple[int, int]) -> bool:
    """Return whether a PNG with correct checksums has exactly as many pixels as its header says.

    This is ten times as fast as Pillow's decoder. It handles only PNGs as browsers write them (8 bits per
    sample, not interlaced), and returns False for others even if they are correct. See the PNG specification,
    sections 5 to 9.
    """
    header, packed, at = data[16:29], [], len(_PNG)
    if mode not in _CHANNELS or header[8] != 8 or header[12]:
        return False
    while at < len(data):
        length, kind = int.from_bytes(data[at : at + 4]), data[at + 4 : at + 8]
        if kind == b"IDAT":
            packed.append(data[at + 8 : at + 8 + length])
        elif kind not in _KNOWN_CHUNKS:
            return False
        at += 12 + length
    width, height = size
    row = width * _CHANNELS[mode] + 1  # each row begins with the number of its filter, 0 to 4
    try:
        unpacker = zlib_ng.decompressobj()
        pixels = unpacker.decompress(b"".join(packed), row * height + 1)
    except zlib_ng.error:
        return False
    return unpacker.eof and len(pixels) == row * height and max(pixels[::row]) <= 4
