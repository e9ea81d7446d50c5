"""Check, scale and convert recorded pictures before they are sent to a model."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Final

from PIL import Image as pictures
from PIL import ImageOps

from arb.judges.types import Image, ImageOptions
from dataset_script.build.pictures import BrokenImageError, check_picture

LOSSY_QUALITY: Final = 90
"""The default quality of JPEG and WebP, on Pillow's scale from 0 to 100."""

_FORMATS: Final = ("PNG", "JPEG", "WEBP")
"""The formats that endpoints accept. Pictures in any other format are sent as PNG."""


class UnreadableImageError(ValueError):
    """Raised if a picture cannot be read or is cut off. The message says what is wrong."""


def prepare_image(content: bytes, options: ImageOptions) -> Image:
    """Return a picture in the format and size that the options ask for.

    The bytes of a PNG, JPEG or WebP picture that needs no change are kept, so that calls with it are found in
    the cache. Only the first frame of a converted animation is kept. Raises UnreadableImageError.
    """
    try:
        with pictures.open(io.BytesIO(content)) as picture:
            found = picture.format or ""
            if found in _FORMATS:
                check_picture(content)  # Pillow also opens a picture that was cut off
            if options.format is not None:
                wanted = options.format.upper()
            else:
                wanted = found if found in _FORMATS else "PNG"
            is_too_large = options.max_side is not None and max(picture.size) > options.max_side
            if wanted == found and not is_too_large and options.quality is None:
                return Image(content, f"image/{found.lower()}", *picture.size, options.detail)
            return _converted(picture, wanted, options)
    except (BrokenImageError, OSError, SyntaxError, ValueError, pictures.DecompressionBombError) as error:
        raise UnreadableImageError(f"the picture cannot be read ({error})") from error


def crop_image(image: Image, box: Sequence[int]) -> Image:
    """Return a part of a picture as PNG. ``box`` has its left, top, right and bottom edges in per cent.

    Raises UnreadableImageError, for example if the edges enclose no area.
    """
    if len(box) != 4 or not (0 <= box[0] < box[2] <= 100 and 0 <= box[1] < box[3] <= 100):
        raise UnreadableImageError("crop needs left < right and top < bottom, each from 0 to 100")
    sides = (image.width, image.height, image.width, image.height)
    left, top, right, bottom = (side * edge // 100 for side, edge in zip(sides, box, strict=True))
    try:
        with pictures.open(io.BytesIO(image.content)) as picture:
            part = picture.crop((left, top, max(right, left + 1), max(bottom, top + 1)))
        file = io.BytesIO()
        part.save(file, "PNG")
    except (OSError, SyntaxError, ValueError, pictures.DecompressionBombError) as error:
        raise UnreadableImageError(f"the picture cannot be read ({error})") from error
    return Image(file.getvalue(), "image/png", *part.size, image.detail)


def _converted(picture: pictures.Image, wanted: str, options: ImageOptions) -> Image:
    upright = ImageOps.exif_transpose(picture)
    mode = "RGBA" if upright.has_transparency_data else "RGB"
    drawn = upright if upright.mode == mode else upright.convert(mode)
    if options.max_side is not None:
        drawn.thumbnail((options.max_side, options.max_side), pictures.Resampling.LANCZOS)
    if wanted == "JPEG" and mode == "RGBA":  # JPEG has no transparency, so use a white background
        ground = pictures.new("RGB", drawn.size, "white")
        ground.paste(drawn, mask=drawn.getchannel("A"))
        drawn = ground
    file = io.BytesIO()
    drawn.save(file, wanted, quality=options.quality or LOSSY_QUALITY)
    return Image(file.getvalue(), f"image/{wanted.lower()}", *drawn.size, options.detail)
