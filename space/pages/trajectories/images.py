"""Screenshots and goal images, as recorded or resized."""

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from PIL import Image, UnidentifiedImageError

from space.pages.trajectories.story import Size

WIDTHS: Final = (160, 320, 640, 960, 1280)
"""The widths in pixels to which pictures are resized. There are only a few, so that caches are effective."""

THUMBNAIL: Final = 320
MOST_PIXELS: Final = 40_000_000
"""A picture with more pixels is served as recorded and never decoded here."""

RECORDED_BYTES: Final = 96_000_000
RESIZED_BYTES: Final = 64_000_000


class NoPicture(LookupError):
    """Raised when a trajectory does not have the picture."""


class BrokenPicture(ValueError):
    """Raised when a picture cannot be resized."""


@dataclass(frozen=True, slots=True)
class Picture:
    """The bytes of a picture, its size and its media type."""

    content: bytes = field(repr=False)
    size: Size | None
    media_type: str


Pictures = Mapping[int, Picture]
"""The pictures of a trajectory, keyed by the number of their step or by their place in the goal."""


def open_picture(content: bytes) -> Picture:
    """Return a recorded picture; its size comes from the header and is None if the header is invalid."""
    try:
        with Image.open(io.BytesIO(content)) as image:
            size = image.size
    except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError):
        size = None
    return Picture(content, size, media_type(content))


def smaller(picture: Picture, width: int) -> Picture:
    """Return the picture as WebP with this width in pixels, or unchanged if it is narrower or too large.

    Raise BrokenPicture if it cannot be decoded.
    """
    if picture.size is None:
        raise BrokenPicture("its format cannot be read")
    if picture.size[0] <= width or picture.size[0] * picture.size[1] > MOST_PIXELS:
        return picture
    height = max(1, round(picture.size[1] * width / picture.size[0]))
    packed = io.BytesIO()
    try:
        with Image.open(io.BytesIO(picture.content)) as image:
            drawn = image.convert("RGB").resize((width, height), Image.Resampling.LANCZOS, reducing_gap=2.0)
            # Large pictures are compressed with method 0, which takes two thirds of the time of method 2.
            quality, method = (74, 2) if width <= THUMBNAIL else (86, 0)
            drawn.save(packed, "WEBP", quality=quality, method=method)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise BrokenPicture("it cannot be decoded; the file may be incomplete") from error
    return Picture(packed.getvalue(), (width, height), "image/webp")


def media_type(content: bytes) -> str:
    """Return the media type of an image by its first bytes: PNG, WebP or JPEG."""
    if content[:4] == b"RIFF":
        return "image/webp"
    return "image/png" if content[:4] == b"\x89PNG" else "image/jpeg"
