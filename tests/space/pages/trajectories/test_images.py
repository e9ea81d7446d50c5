"""Pictures made smaller; broken ones said to be so."""

import io

import pytest
from PIL import Image

from space.pages.trajectories.images import BrokenPicture, Picture, open_picture, smaller


def drawn(width: int, height: int, kind: str = "PNG", mode: str = "RGB") -> bytes:
    packed = io.BytesIO()
    Image.new(mode, (width, height), 200 if mode == "L" else None).save(packed, kind)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("kind", "media_type"), [("PNG", "image/png"), ("JPEG", "image/jpeg"), ("WEBP", "image/webp")]
)
def test_a_recorded_picture_has_its_size_and_kind(kind, media_type):
    picture = open_picture(drawn(30, 20, kind))
    assert (picture.size, picture.media_type) == ((30, 20), media_type)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P", "1"])
def test_a_picture_of_any_mode_is_made_smaller_in_proportion(mode):
    found = smaller(open_picture(drawn(1280, 720, "PNG", mode)), 320)
    assert (found.size, found.media_type) == ((320, 180), "image/webp")
    assert Image.open(io.BytesIO(found.content)).size == (320, 180)


def test_a_picture_that_is_no_wider_stays_as_it_was_recorded():
    picture = open_picture(drawn(320, 900))
    assert smaller(picture, 320) is picture


def test_a_very_flat_picture_keeps_a_row_of_pixels():
    assert smaller(open_picture(drawn(1280, 1)), 160).size == (160, 1)


def test_a_picture_of_very_many_pixels_is_served_as_it_is_and_not_unpacked():
    bomb = Picture(b"\x89PNG never read", (100_000, 100_000), "image/png")
    assert smaller(bomb, 320) is bomb


@pytest.mark.parametrize("content", [b"", b"no picture", drawn(1280, 720)[:40], drawn(1280, 720)[:-500]])
def test_what_is_no_whole_picture_is_said_to_be_broken(content):
    with pytest.raises(BrokenPicture):
        smaller(open_picture(content), 160)
