"""Actions in words; whatever an agent or a page wrote, nothing is run and nothing breaks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from space.explorer.action_words import describe_action, element_in

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


def test_no_action_has_no_words():
    assert describe_action(None, TREE) is None
    assert describe_action("", TREE) is None


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
