"""Pictures as they are sent: their very bytes when nothing is asked, else scaled and converted."""

import io

import pytest
from PIL import Image as pictures

from judges.prompting import ImageOptions, UnreadableImageError
from tests.support.judges import picture


def opened(content: bytes) -> pictures.Image:
    return pictures.open(io.BytesIO(content))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_a_picture_keeps_its_very_bytes_when_nothing_is_asked(kind):
    content = picture(7, (40, 30), kind)
    prepared = ImageOptions().prepare(content)
    assert prepared.content is content
    assert (prepared.media_type, prepared.width, prepared.height) == (f"image/{kind.lower()}", 40, 30)


def test_a_picture_that_is_as_asked_already_keeps_its_very_bytes():
    content = picture(7, (40, 30), "JPEG")
    assert ImageOptions(max_side=40, format="jpeg", detail="low").prepare(content).content is content


def test_the_longer_side_is_scaled_to_the_bound_and_proportions_are_kept():
    # 40 x 30 to at most 20: 20 x 15
    prepared = ImageOptions(max_side=20).prepare(picture(7, (40, 30)))
    assert (prepared.width, prepared.height) == opened(prepared.content).size == (20, 15)
    assert prepared.media_type == "image/png"
    # only the longer side is over: 40 x 10 to at most 20 is 20 x 5
    wide = ImageOptions(max_side=20).prepare(picture(7, (40, 10)))
    assert (wide.width, wide.height) == (20, 5)


@pytest.mark.parametrize("wanted", ["png", "jpeg", "webp"])
def test_a_picture_is_converted_to_the_format_asked_for(wanted):
    for kind in {"PNG", "JPEG", "WEBP"} - {wanted.upper()}:
        prepared = ImageOptions(format=wanted).prepare(picture(7, (40, 30), kind))
        assert prepared.media_type == f"image/{wanted}"
        assert opened(prepared.content).format == wanted.upper()


def test_what_endpoints_do_not_take_is_sent_as_png():
    prepared = ImageOptions().prepare(picture(7, (40, 30), "GIF", "L"))
    assert (prepared.media_type, opened(prepared.content).format) == ("image/png", "PNG")


def test_white_shows_through_what_is_transparent_in_a_jpeg():
    prepared = ImageOptions(format="jpeg").prepare(picture(0, (8, 8), "PNG", "RGBA"))
    assert opened(prepared.content).getpixel((4, 4)) == (255, 255, 255)


def test_transparency_survives_scaling():
    prepared = ImageOptions(max_side=4).prepare(picture(0, (8, 8), "PNG", "RGBA"))
    assert opened(prepared.content).getpixel((2, 2)) == (0, 0, 0, 0)


def test_the_same_picture_gives_the_same_bytes_so_that_its_call_is_found_again():
    content = picture(7, (40, 30))
    first, second = (ImageOptions(max_side=20, format="webp").prepare(content) for _ in range(2))
    assert first.sha256 == second.sha256


def test_the_detail_flag_goes_with_the_picture():
    assert ImageOptions(detail="high").prepare(picture()).detail == "high"


@pytest.mark.parametrize("content", [b"", b"no picture", picture()[:-8], picture(kind="JPEG")[:-20]])
@pytest.mark.parametrize("max_side", [None, 4])
def test_bytes_that_are_no_whole_picture_are_refused(content, max_side):
    with pytest.raises(UnreadableImageError, match="cannot be read"):
        ImageOptions(max_side=max_side).prepare(content)
