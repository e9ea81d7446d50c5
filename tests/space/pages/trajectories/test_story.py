"""A story's steps: outlines on the picture, errors with the action that failed.

Actions in words; whatever an agent or a page wrote, nothing is run and nothing breaks.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from space.pages.trajectories.story import describe_action, element_in, outline_of, steps_of_story


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
    assert step.outline == (10, 10, 30, 20)


def test_an_element_below_the_picture_is_told_to_lie_outside():
    (step,) = steps_of_story([row(0, box=[0.0, 900.0, 50.0, 50.0])], {0: (1280, 720)})
    assert (step.outline, step.is_outside) == (None, True)


def test_reasoning_that_only_repeats_the_action_is_not_said_twice():
    steps = steps_of_story([row(0, reasoning=" click('0') "), row(1, reasoning="I see.\n")], {})
    assert [step.says for step in steps] == ["", "I see."]


sides = st.floats(-3_000, 3_000, allow_nan=False)


@given(st.tuples(sides, sides, sides.map(abs), sides.map(abs)), st.integers(1, 4000), st.integers(1, 4000))
def test_an_outline_never_leaves_its_picture(box, width, height):
    found = outline_of(box, (width, height))
    if found is not None:
        left, top, across, down = found
        assert min(left, top) >= 0
        assert max(left + across, top + down) <= 100.0001


TREE = """RootWebArea 'Shop', focused
\t[7] link 'Front page', clickable, url='http://shop/'
\t[12] textbox 'Search' value='[7] trick', clickable
\t[13] button "Ada's basket", clickable
\t[14] StaticText 'Hello\\nthere'
\t[15] image ''
\t[16] generic, visible"""


@pytest.mark.parametrize(
    ("action", "title", "element"),
    [
        ("click('7')", "Click", "link “Front page”"),
        ("fill('12', 'red mug')", "Fill in", "textbox “Search”"),
        ("click('13')", "Click", "button “Ada's basket”"),
        ("hover('14')", "Point at", "text “Hello there”"),
        ("click('15')", "Click", "image"),
        ("click('16')", "Click", "generic"),
        ("click('99')", "Click", ""),
        ("scroll(0, 200)", "Scroll", ""),
        ("goto('http://shop/')", "Go to an address", ""),
        ("something new", "Act", ""),
    ],
)  # fmt: skip
def test_an_action_names_what_is_done_and_to_which_element(action, title, element):
    words = describe_action(action, TREE)
    assert (words.title, words.element) == (title, element)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ('send_msg_to_user("It costs $9.\\nDone")', "It costs $9.\nDone"),
        ("send_msg_to_user(text='yes')", "yes"),
        ("report_infeasible('There is none.')", "There is none."),
        ("send_msg_to_user(print('x'))", ""),
        ("send_msg_to_user('unfinished", ""),
        ("send_msg_to_user(3)", ""),
    ],
)
def test_what_the_agent_tells_the_user_is_read_and_never_run(action, message):
    assert describe_action(action, None).message == message


def test_a_long_name_is_cut():
    found = element_in(f"[3] link '{'x' * 500}', visible", "3")
    assert found == f"link “{'x' * 90}…”"


def test_the_first_tree_that_has_the_element_tells_it():
    assert describe_action("click('7')", None, "[8] link 'no'", TREE).element == "link “Front page”"


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_texts_give_words_without_an_error(action, tree):
    describe_action(action, tree)
    element_in(tree, action)


@pytest.mark.parametrize("opening", ["(", "[", "'", "-", "not "])
def test_deep_nesting_gives_no_message_and_no_error(opening):
    assert describe_action(f"send_msg_to_user({opening * 9_000})", None).message == ""
