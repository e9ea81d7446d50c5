"""A story's steps: outlines on the picture, errors with the action that failed."""

from hypothesis import given
from hypothesis import strategies as st

from space.explorer.story import outline_of, steps_of_story


def row(num: int, **changes) -> dict:
    return {
        "num": num, "url": f"http://shop/{num}", "action": f"click('{num}')", "reasoning": "Because.",
        "last_action_error": "", "axtree_pruned": f"[{num}] link 'L{num}'", "screenshot": None,
        "box": [10.0, 20.0, 30.0, 40.0], **changes,
    }  # fmt: skip


LAST = {"action": None, "reasoning": None, "box": None}


def test_an_error_stands_with_the_action_that_failed():
    steps = steps_of_story([row(0), row(1, last_action_error="No such id\n"), row(2, **LAST)], {})
    assert [step.error for step in steps] == ["No such id", "", ""]


def test_places_count_from_one_whatever_the_numbers_are():
    steps = steps_of_story([row(4), row(9, **LAST)], {})
    assert [(step.place, step.num) for step in steps] == [(1, 4), (2, 9)]


def test_without_a_picture_there_is_no_outline_and_nothing_lies_outside():
    (step,) = steps_of_story([row(0)], {})
    assert (step.size, step.outline, step.is_outside) == (None, None, False)


def test_an_outline_is_the_box_in_percentages_of_its_own_picture():
    (step,) = steps_of_story([row(0)], {0: (100, 200)})
    # 10 of 100 across, 20 of 200 down, 30 wide, 40 of 200 high
    assert (step.outline.left, step.outline.top, step.outline.width, step.outline.height) == (10, 10, 30, 20)


def test_an_element_below_the_picture_is_told_to_lie_outside():
    (step,) = steps_of_story([row(0, box=[0.0, 900.0, 50.0, 50.0])], {0: (1280, 720)})
    assert (step.outline, step.is_outside) == (None, True)


def test_reasoning_that_only_repeats_the_action_is_not_said_twice():
    steps = steps_of_story([row(0, reasoning=" click('0') "), row(1, reasoning="I see.\n")], {})
    assert [step.says for step in steps] == ["", "I see."]


def test_a_story_without_steps_is_empty():
    assert steps_of_story([], {}) == ()


sides = st.floats(-3_000, 3_000, allow_nan=False)


@given(st.tuples(sides, sides, sides.map(abs), sides.map(abs)), st.integers(1, 4000), st.integers(1, 4000))
def test_an_outline_never_leaves_its_picture(box, width, height):
    found = outline_of(box, (width, height))
    if found is not None:
        assert found.left >= 0
        assert found.top >= 0
        assert found.left + found.width <= 100.0001
        assert found.top + found.height <= 100.0001
