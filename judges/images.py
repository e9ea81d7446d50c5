"""Pictures as judges send them: untouched when nothing is asked, else scaled down or converted."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from judges.base import Image

if TYPE_CHECKING:
    from PIL import Image as pictures

ImageFormat = Literal["png", "jpeg", "webp"]
Detail = Literal["auto", "low", "high"]

LOSSY_QUALITY: Final = 90
"""Of JPEG and WebP, on Pillow's scale to 100."""

_FORMATS: Final = ("PNG", "JPEG", "WEBP")
"""What endpoints take; any other picture is sent as PNG."""


class UnreadableImageError(ValueError):
    """Bytes that are no picture, or only a part of one; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class ImageOptions:
    """How pictures are sent. None leaves the size, or the format, as it was recorded."""

    max_side: int | None = None
    format: ImageFormat | None = None
    detail: Detail = "auto"

    def prepare(self, content: bytes) -> Image:
        """The picture as it is sent. Raises UnreadableImageError."""
        return prepare_image(content, self.max_side, self.format, self.detail)


def prepare_image(
    content: bytes,
    max_side: int | None = None,
    format: ImageFormat | None = None,
    detail: Detail = "auto",
) -> Image:
    """A picture with no side longer than ``max_side`` pixels, in ``format``; its proportions are kept.

    PNG, JPEG and WebP that already are as asked keep their very bytes, so the cache finds them again. Of a
    moving picture the first frame is sent. Raises UnreadableImageError.
    """
    from PIL import Image as pictures

    from dataset_script.building.images import BrokenImageError, image_bytes

    try:
        with pictures.open(io.BytesIO(content)) as picture:
            found = picture.format or ""
            if found in _FORMATS:
                image_bytes(content)  # a picture that was cut off still opens
            wanted = format.upper() if format else found if found in _FORMATS else "PNG"
            is_too_large = max_side is not None and max(picture.size) > max_side
            if wanted == found and not is_too_large:
                return Image(content, f"image/{found.lower()}", *picture.size, detail)
            return _converted(picture, max_side if is_too_large else None, wanted, detail)
    except (BrokenImageError, OSError, SyntaxError, ValueError, pictures.DecompressionBombError) as error:
        raise UnreadableImageError(f"the picture cannot be read ({error})") from error


def _converted(picture: pictures.Image, max_side: int | None, wanted: str, detail: Detail) -> Image:
    from PIL import Image as pictures
    from PIL import ImageOps

    upright = ImageOps.exif_transpose(picture)
    mode = "RGBA" if upright.has_transparency_data else "RGB"
    drawn = upright if upright.mode == mode else upright.convert(mode)
    if max_side is not None:
        drawn.thumbnail((max_side, max_side), pictures.Resampling.LANCZOS)
    if wanted == "JPEG" and mode == "RGBA":  # JPEG knows no transparency: white shows through
        ground = pictures.new("RGB", drawn.size, "white")
        ground.paste(drawn, mask=drawn.getchannel("A"))
        drawn = ground
    held = io.BytesIO()
    drawn.save(held, wanted, quality=LOSSY_QUALITY)
    return Image(held.getvalue(), f"image/{wanted.lower()}", *drawn.size, detail)
