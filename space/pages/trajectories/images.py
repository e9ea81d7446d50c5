"""Screenshots and goal images: as recorded, or made smaller, and kept."""

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from space.pages.trajectories.story import Size

WIDTHS: Final = (160, 320, 640, 960, 1280)
"""Widths in pixels that pictures are made smaller to; few, so that they are kept and found again."""

THUMBNAIL: Final = 320
MOST_PIXELS: Final = 40_000_000
"""A picture of more is served as it was recorded and never unpacked here."""

RECORDED_BYTES: Final = 96_000_000
RESIZED_BYTES: Final = 64_000_000


class NoPicture(LookupError):
    """A trajectory that has no such picture."""


class BrokenPicture(ValueError):
    """A picture that cannot be made smaller."""


@dataclass(frozen=True, slots=True)
class Picture:
    """The bytes of a picture as it was recorded, its size, and what kind of image it is."""

    content: bytes = field(repr=False)
    size: Size | None
    media_type: str


Pictures = Mapping[int, Picture]
"""The pictures of a trajectory by the number of their step, or by their place in the goal."""


def open_picture(content: bytes) -> Picture:
    """A recorded picture; its size is read from its first bytes, and None when they are no picture's."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(content)) as image:
            size = image.size
    except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError):
        size = None
    return Picture(content, size, media_type(content))


def smaller(picture: Picture, width: int) -> Picture:
    """The picture at most ``width`` pixels wide, as WebP; the picture itself where it is no wider.

    Raises BrokenPicture for one that cannot be unpacked.
    """
    from PIL import Image

    if picture.size is None:
        raise BrokenPicture("it is no picture that can be read")
    if picture.size[0] <= width or picture.size[0] * picture.size[1] > MOST_PIXELS:
        return picture
    height = max(1, round(picture.size[1] * width / picture.size[0]))
    packed = io.BytesIO()
    try:
        with Image.open(io.BytesIO(picture.content)) as image:
            drawn = image.convert("RGB").resize((width, height), Image.Resampling.LANCZOS, reducing_gap=2.0)
            # Packed a little less well where it is large: method 0 takes two thirds of the time of method 2.
            quality, method = (74, 2) if width <= THUMBNAIL else (86, 0)
            drawn.save(packed, "WEBP", quality=quality, method=method)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise BrokenPicture("it cannot be unpacked; the file may be cut off") from error
    return Picture(packed.getvalue(), (width, height), "image/webp")


def media_type(content: bytes) -> str:
    """What kind of image the bytes are: PNG, WebP or JPEG by their first bytes."""
    if content[:4] == b"RIFF":
        return "image/webp"
    return "image/png" if content[:4] == b"\x89PNG" else "image/jpeg"
