"""Pictures as they are sent: their very bytes when nothing is asked, else scaled and converted. And runs
without web pages, as text.
"""

import io
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as pictures

from arb.judges.images import UnreadableImageError, prepare_image
from arb.judges.prompting import (
    ALL_TEXTS,
    ONE_TEXT,
    SHORTER,
    observation_apart,
    steps_text,
    with_bounded_texts,
)
from arb.judges.types import ImageOptions, View, ViewStep
from tests.support.judges import picture, view


def opened(content: bytes) -> pictures.Image:
    return pictures.open(io.BytesIO(content))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_a_picture_keeps_its_very_bytes_when_nothing_is_asked(kind):
    content = picture(7, (40, 30), kind)
    prepared = prepare_image(content, ImageOptions())
    assert prepared.content is content
    assert (prepared.media_type, prepared.width, prepared.height) == (f"image/{kind.lower()}", 40, 30)


def test_a_picture_that_is_as_asked_already_keeps_its_very_bytes():
    content = picture(7, (40, 30), "JPEG")
    assert prepare_image(content, ImageOptions(max_side=40, format="jpeg", detail="low")).content is content


def test_the_longer_side_is_scaled_to_the_bound_and_proportions_are_kept():
    # 40 x 30 to at most 20: 20 x 15
    prepared = prepare_image(picture(7, (40, 30)), ImageOptions(max_side=20))
    assert (prepared.width, prepared.height) == opened(prepared.content).size == (20, 15)
    assert prepared.media_type == "image/png"
    # only the longer side is over: 40 x 10 to at most 20 is 20 x 5
    wide = prepare_image(picture(7, (40, 10)), ImageOptions(max_side=20))
    assert (wide.width, wide.height) == (20, 5)


@pytest.mark.parametrize("wanted", ["png", "jpeg", "webp"])
def test_a_picture_is_converted_to_the_format_asked_for(wanted):
    for kind in {"PNG", "JPEG", "WEBP"} - {wanted.upper()}:
        prepared = prepare_image(picture(7, (40, 30), kind), ImageOptions(format=wanted))
        assert prepared.media_type == f"image/{wanted}"
        assert opened(prepared.content).format == wanted.upper()


def test_what_endpoints_do_not_take_is_sent_as_png():
    prepared = prepare_image(picture(7, (40, 30), "GIF", "L"), ImageOptions())
    assert (prepared.media_type, opened(prepared.content).format) == ("image/png", "PNG")


def test_white_shows_through_what_is_transparent_in_a_jpeg():
    prepared = prepare_image(picture(0, (8, 8), "PNG", "RGBA"), ImageOptions(format="jpeg"))
    assert opened(prepared.content).getpixel((4, 4)) == (255, 255, 255)


def test_transparency_survives_scaling():
    prepared = prepare_image(picture(0, (8, 8), "PNG", "RGBA"), ImageOptions(max_side=4))
    assert opened(prepared.content).getpixel((2, 2)) == (0, 0, 0, 0)


def test_the_same_picture_gives_the_same_bytes_so_that_its_call_is_found_again():
    content = picture(7, (40, 30))
    first, second = (prepare_image(content, ImageOptions(max_side=20, format="webp")) for _ in range(2))
    assert first.sha256 == second.sha256


@pytest.mark.parametrize("content", [b"", b"no picture", picture()[:-8], picture(kind="JPEG")[:-20]])
@pytest.mark.parametrize("max_side", [None, 4])
def test_bytes_that_are_no_whole_picture_are_refused(content, max_side):
    with pytest.raises(UnreadableImageError, match="cannot be read"):
        prepare_image(content, ImageOptions(max_side=max_side))


def text_view(*texts: str | None, action: str = "run()", answer: str | None = None) -> View:
    steps = [
        ViewStep(number, None, action if number < len(texts) else None, None, None, text=text)
        for number, text in enumerate(texts, start=1)
    ]
    return View("Fix it.", (), tuple(steps), answer)


def test_a_run_without_pages_is_written_with_what_was_observed_and_the_answer():
    assert steps_text(text_view(None, "", " 2 files \n").steps, "There are 2.\n") == (
        "Step 1\nAction: run()\n\n"
        "Step 2\nObservation: (empty)\nAction: run()\n\n"
        "Step 3 (the end: no further action)\nObservation: 2 files\n\n"
        "The agent's final answer:\nThere are 2."
    )


def test_a_page_without_an_address_among_pages_still_says_that_it_was_not_recorded():
    first, *others = view(2).steps
    mixed = (replace(first, url=None, text="A tool's result."), *others)
    assert steps_text(mixed).startswith("Step 1\nURL: (not recorded)\nObservation: A tool's result.\nAction")


def test_the_last_observation_is_shown_apart_and_not_twice():
    steps, text = observation_apart(text_view("one", "two", None))
    assert text == "The last observation, of a run without web pages:\n\ntwo"
    assert steps_text(steps).count("two") == 0 and "Observation: one" in steps_text(steps)
    assert observation_apart(view(2)) == (view(2).steps, None)


def test_a_view_of_pages_keeps_its_length():
    long = replace(view(2), answer="a" * 3 * ONE_TEXT)
    assert with_bounded_texts(long) is long


def test_a_long_text_is_cut_in_the_middle_and_the_mark_says_how_much():
    text = "a" * 6_000 + "b" * 6_000  # 2,000 more than may be
    shown = with_bounded_texts(text_view(text, "short", action="w" * 12_000, answer=text))
    cut = "a" * 5_000 + "\n[… 2,000 characters left out …]\n" + "b" * 5_000
    assert (shown.steps[0].text, shown.steps[1].text, shown.answer) == (cut, "short", cut)
    assert "[… 2,000 characters left out …]" in shown.steps[0].action
    # cut again to a fifth, 2,000 characters, it says what is left out of the text as it was: 10,000
    shorter = with_bounded_texts(shown, SHORTER).steps[0].text
    assert shorter == "a" * 1_000 + "\n[… 10,000 characters left out …]\n" + "b" * 1_000


def test_many_texts_share_the_room_and_short_ones_leave_theirs_to_the_others():
    # 100 texts of 9,000 characters are 900,000; 200,000 for all of them are 2,000 for each
    shown = with_bounded_texts(text_view(*["x" * 9_000] * 100))
    assert {step.text.count("x") for step in shown.steps} == {2_000}
    # 50 of 1,000 take 50,000, so that 150,000 remain for 50: 3,000 for each
    shown = with_bounded_texts(text_view(*["x" * 9_000] * 50, *["x" * 1_000] * 50))
    assert {step.text.count("x") for step in shown.steps} == {3_000, 1_000}


@given(st.lists(st.none() | st.integers(0, 30_000), min_size=1, max_size=60), st.sampled_from([1.0, SHORTER]))
def test_no_text_is_longer_than_its_bound_nor_all_together_and_short_ones_are_whole(lengths, share):
    texts = [None if length is None else "x" * length for length in lengths]
    shown = with_bounded_texts(text_view(*texts), share)
    found = [re.sub(r"\n\[.*\]\n", "", step.text) for step in shown.steps if step.text is not None]
    assert max(map(len, found), default=0) <= ONE_TEXT * share
    assert sum(map(len, found)) <= ALL_TEXTS * share
    fair = min(ONE_TEXT, ALL_TEXTS // len(texts)) * share
    for before, after in zip(texts, shown.steps, strict=True):
        assert after.text == before or len(before) > fair - 1
