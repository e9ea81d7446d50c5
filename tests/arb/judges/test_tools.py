"""Tools on a run: what they show, and that whatever a model asks for has a bounded answer."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.judges.tools import MOST_CALLS, RESULT_CHARS, TOOLS, RunTools
from arb.judges.types import Image, ToolCall, View
from tests.support.judges import image, picture, view


def call(name: str, number: int = 0, **arguments) -> ToolCall:
    return ToolCall(f"call_{number}", name, json.dumps(arguments))


def result(name: str, shown: View | None = None, **arguments) -> str:
    """The text of a tool's result."""
    return RunTools(shown or view()).results([call(name, **arguments)])[0].content


def test_a_step_is_opened_with_its_page_action_reasoning_error_and_tree():
    steps = view().steps
    shown = replace(view(), steps=(replace(steps[0], error="no such button"), *steps[1:]))
    assert result("open_step", shown, n=1) == (
        "Step 1\nURL: http://shop/page-1\nAction: click('1')\nReasoning: because of 1\n\n"
        "Error of the action before: no such button\n\nAccessibility tree:\ntree 1 pruned\n\n"
        "A screenshot was recorded."
    )


def test_a_screenshot_comes_after_all_results_and_a_part_of_it_has_the_size_of_the_crop():
    shown = view()
    large = Image(picture(9, (200, 100)), "image/png", 200, 100)
    shown = replace(shown, steps=(replace(shown.steps[0], screenshot=large), *shown.steps[1:]))
    calls = [
        call("screenshot", 0, n=1, crop=[50, 0, 100, 25]),
        call("screenshot", 1, n=2),
        call("open_step", 2, n=1),
    ]
    *results, pictures = RunTools(shown).results(calls)
    assert [each.tool_call_id for each in results] == ["call_0", "call_1", "call_2"]
    assert (pictures.role, len(pictures.content)) == ("user", 4)
    heading, part, _, whole = pictures.content
    assert heading == "Screenshot of step 1, from 50 % to 100 % across and from 0 % to 25 % down:"
    assert (part.width, part.height, whole) == (100, 25, image(2))


def test_a_search_finds_all_parts_of_all_steps_and_says_where():
    assert result("search", text="TREE 2 in") == "found 1 times\nstep 2, tree: … tree 2 in full …"
    assert result("search", text="click").splitlines() == [
        "found 2 times",
        "step 1, action: … click('1') …",
        "step 2, action: … click('2') …",
    ]
    assert result("search", text="(.*)") == "found 0 times"


def test_two_pages_are_compared_line_by_line():
    assert result("diff", a=1, b=2).splitlines()[2:] == ["@@ -1 +1 @@", "-tree 1 pruned", "+tree 2 pruned"]
    assert result("diff", a=1, b=1) == "the pages are equal"
    assert result("diff", view(trees=False), a=1, b=2) == "the page of one of these steps was not recorded"


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("open_step", '{"n": 4}', "error: there is no such step; use a number from 1 to 3"),
        ("open_step", '{"n": true}', "error: there is no such step; use a number from 1 to 3"),
        ("open_step", "{", "error: the arguments are not valid JSON"),
        ("open_step", "[1]", "error: the arguments have to be a JSON object"),
        ("reward", "{}", "error: there is no such tool; use open_step, screenshot, search, diff"),
        ("screenshot", '{"n": 1, "crop": [0, 0, 1]}', "error: crop needs left < right"),
        ("screenshot", '{"n": 1, "crop": [50, 0, 10, 100]}', "error: crop needs left < right"),
        ("screenshot", '{"n": 1, "crop": "all"}', "error: crop needs four numbers"),
        ("search", '{"text": " "}', "error: text has to be a text of 1 to 200 characters"),
    ],
)
def test_a_wrong_call_is_answered_with_what_to_do(name, arguments, said):
    (message,) = RunTools(view()).results([ToolCall("1", name, arguments)])
    assert message.content.startswith(said)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from("nab"), inner, max_size=3),
    max_leaves=8,
)


@given(
    name=st.sampled_from([tool.name for tool in TOOLS]),
    arguments=st.dictionaries(st.sampled_from(["n", "a", "b", "text", "crop", "x"]), JSON).map(json.dumps)
    | st.text(max_size=30),
)
def test_whatever_is_asked_for_there_is_one_answer_of_bounded_length(name, arguments):
    long = view()
    long = replace(long, steps=(replace(long.steps[0], axtree_pruned="n\n" * 50_000), *long.steps[1:]))
    first, *rest = RunTools(long).results([ToolCall("1", name, arguments)])
    assert (first.role, first.tool_call_id) == ("tool", "1")
    assert 0 < len(first.content) < RESULT_CHARS + 100
    assert len(rest) <= 1


def test_of_many_calls_at_once_only_some_are_carried_out_but_all_are_answered():
    calls = [call("open_step", number, n=1) for number in range(MOST_CALLS + 3)]
    texts = [message.content for message in RunTools(view()).results(calls)]
    assert len(texts) == MOST_CALLS + 3
    assert all("Step 1" in text for text in texts[:MOST_CALLS])
    assert all("at most 8 calls" in text for text in texts[MOST_CALLS:])
