"""Trees become the text of the release, byte for byte."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset_script.sources.axtree import acted_on, axtree_text, box_from
from tests.conftest import examples


@pytest.mark.parametrize(
    ("action", "bid"),
    [
        ("click('a51')", "a51"),
        ('click("51", button="right")', "51"),
        ("fill('15', 'a \\'word\\'')", "15"),
        ("  select_option(bid='24', options='2')", "24"),
        ("drag_and_drop('a1', 'b2')", "a1"),
        ("drag_and_drop(from_bid='a1', to_bid='b2')", "a1"),
        ("press('7', 'Enter')", "7"),
        ("mouse_click(10, 20)", None),
        ("keyboard_press('Enter')", None),
        ("goto('http://shop')", None),
        ("send_msg_to_user('click(\\'7\\')')", None),
        ("scroll(0, 200)", None),
        ("tab_focus(1)", None),
        ("noop()", None),
        ("click(", None),
        ("I would click('7')", None),
        ("", None),
        (None, None),
    ],
)
def test_the_element_is_the_first_one_that_the_call_names(action, bid):
    assert acted_on(action) == bid


@pytest.mark.parametrize(
    ("sides", "expected"),
    [
        ([1, 2, 3, 4], (1.0, 2.0, 3.0, 4.0)),
        ([-5.5, 0, 0, 0], (-5.5, 0.0, 0.0, 0.0)),  # scrolled out to the left; an empty element
        ([1, 2, 3], None),
        ([1, 2, 3, math.nan], None),
        ([1, 2, math.inf, 4], None),
        ([1, 2, None, 4], None),
        ([1, 2, 3, -4], None),
        (None, None),
    ],
)
def test_a_box_is_four_finite_numbers(sides, expected):
    assert box_from(sides) == expected


def node(node_id, role, name=None, children=(), bid=None, value=None, **properties):
    made = {"nodeId": node_id, "role": {"value": role}, "childIds": list(children)}
    if name is not None:
        made["name"] = {"value": name}
    if bid is not None:
        made["browsergym_id"] = bid
    if value is not None:
        made["value"] = {"value": value}
    made["properties"] = [{"name": key, "value": {"value": held}} for key, held in properties.items()]
    return made


def seen(visibility=1.0, clickable=False):
    return {"visibility": visibility, "bbox": [0, 0, 1, 1], "clickable": clickable, "set_of_marks": clickable}


def text(*nodes, properties=None, pruned=False):
    return axtree_text({"nodes": list(nodes)}, properties or {}, pruned=pruned)


@pytest.mark.shared
def test_every_recorded_step_gives_both_released_texts(shared: Path):
    compared = 0
    for path in sorted((shared / "data" / "released_layout" / "cleaned").rglob("*.json")):
        for step in json.loads(path.read_bytes())["steps"]:
            tree, properties = step["axtree_obj"], step["extra_element_properties"]
            assert axtree_text(tree, properties) == step["axtree"]
            assert axtree_text(tree, properties, pruned=True) == step["axtree_pruned"]
            compared += 1
    assert compared == 39  # steps of the six recordings


def test_a_generic_element_is_written_only_when_it_has_a_property():
    assert text(node(1, "generic", "", bid="1", expanded=False)) == "[1] generic, expanded=False"
    assert text(node(1, "generic", "words", bid="1")) == ""


def test_the_pruned_text_leaves_out_what_is_hidden_or_has_no_bid_with_its_static_text():
    tree = (
        node(1, "RootWebArea", "Shop", [2, 3, 4]),
        node(2, "link", "Home", [], "1"),
        node(3, "paragraph", "", [5], "2"),
        node(4, "paragraph", "", [6], "3"),
        node(5, "StaticText", "half hidden"),
        node(6, "StaticText", "in sight"),
    )
    properties = {"1": seen(0.5), "2": seen(0.49), "3": seen()}
    assert text(*tree, properties=properties, pruned=True) == (
        "[1] link 'Home'\n[3] paragraph ''\n\tStaticText 'in sight'"
    )


def test_a_circle_and_a_chain_of_100_000_nodes_come_to_an_end():
    circle = (node(1, "list", "a", [2]), node(2, "list", "b", [1, 2]))
    chain = [node(n, "none", None, [n + 1]) for n in range(100_000)]
    assert text(*circle) == "list 'a'\n\tlist 'b'"
    assert text(*chain, node(100_000, "link", "end")) == "link 'end'"


@pytest.mark.parametrize(
    "tree",
    [
        None,
        {},
        {"nodes": []},
        {"nodes": "x"},
        {"nodes": [1]},
        {"nodes": [{"nodeId": 1}]},
        {"nodes": [node(1, "link", ["deep"])]},
        {"nodes": [node(1, "link", "x", bid=["unhashable"])]},
    ],
)
def test_what_is_no_tree_is_an_error_that_says_so(tree):
    with pytest.raises(ValueError, match="accessibility tree"):
        axtree_text(tree, {})


NAMES = st.sampled_from(["nodeId", "role", "name", "childIds", "properties", "value"])
JSON = st.recursive(
    st.none() | st.integers(0, 3) | st.sampled_from(["", "link"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)


@given(st.lists(st.dictionaries(NAMES, JSON, max_size=6), max_size=4))
@settings(max_examples=examples(200), deadline=None)
def test_any_nodes_give_text_or_one_clear_error(nodes):
    try:
        assert isinstance(axtree_text({"nodes": nodes}, {}), str)
    except ValueError as error:
        assert "accessibility tree" in str(error)
