"""Write an accessibility tree as text, as the released files do: one line per node, tabs for depth.

    [bid] role 'name' value='…', clickable, visible, property=…

The tree comes from Chromium's Accessibility.getFullAXTree, with BrowserGym's ``browsergym_id`` (the bid) on
its nodes. The bytes are the same as those of BrowserGym's own flattening with the options of the release:
``axtree`` marks clickable and visible elements, and ``axtree_pruned`` leaves out elements that are invisible
or have no bid. The walk visits each node once and does not recurse, so deep and circular trees are harmless.

`acted_on` and `box_of` find the element that an action names and its place on the page.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from arb.core.trajectory import Box

_LAYOUT_ROLES: Final = frozenset({"LineBreak", "InlineTextBox"})
"""Roles of nodes that get no line: line breaks, and the single lines of a text in newer Chromium."""

_LEFT_OUT_PROPERTIES: Final = frozenset(
    {"editable", "readonly", "level", "settable", "multiline", "invalid", "focusable"}
)
_FLAGS: Final = frozenset({"required", "focused", "atomic"})
"""Properties that are written as a bare name, and only if they are true."""

VISIBLE_SHARE: Final = 0.5
"""The share of an element that must be visible for BrowserGym to call it visible."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A node that waits to be written: its depth in the text, and what matters about its parent."""

    node_id: Any
    depth: int
    parent_name: str
    parent_is_left_out: bool


def axtree_text(tree: Mapping[str, Any], properties: Mapping[str, Any], *, pruned: bool = False) -> str:
    """Return the text of a tree; ``properties`` are BrowserGym's ``extra_element_properties``.

    Raises ValueError if the tree has no nodes or does not have Chromium's format.
    """
    nodes = tree.get("nodes") if isinstance(tree, Mapping) else None
    if not isinstance(nodes, list) or not nodes:
        raise ValueError("the accessibility tree has no nodes")
    try:
        by_id = {node["nodeId"]: node for node in nodes}
        return "\n".join(_lines(by_id, nodes[0]["nodeId"], properties, pruned))
    except (AttributeError, KeyError, TypeError) as error:
        detail = f"{type(error).__name__}: {error}"[:120]
        raise ValueError(f"the accessibility tree is not in Chromium's format ({detail})") from error


def _lines(by_id: dict[Any, Any], root: Any, properties: Mapping[str, Any], pruned: bool) -> Iterator[str]:
    waiting = [_Place(root, 0, "", False)]
    while waiting:
        place = waiting.pop()
        node = by_id.pop(place.node_id, None)  # popped, so that a node with two parents is written once
        if node is None:
            continue
        named, role = node.get("name"), _scalar(node["role"])
        name = None if named is None else str(_scalar(named) or "")
        if name is None or role in _LAYOUT_ROLES:
            name, line, left_out = "", None, False
        else:
            line, left_out = _line(node, role, name, place, properties, pruned)
        depth = place.depth
        if line is not None:
            yield "\t" * depth + line
            depth += 1
        waiting.extend(_Place(child, depth, name, left_out) for child in reversed(node["childIds"]))


def _line(
    node: dict[str, Any], role: str, name: str, place: _Place, properties: Mapping[str, Any], pruned: bool
) -> tuple[str | None, bool]:
    """Return a node's line, or None if it is not written, and whether pruning left it out."""
    bid = node.get("browsergym_id")
    properties_text = list(_properties(node))
    marks: list[str] = []
    left_out = False
    if role != "StaticText":
        marks, left_out = _marks(bid, properties, pruned)
    elif place.parent_is_left_out or name in place.parent_name:  # the parent's name has it already
        return None, False
    if left_out or (role == "generic" and not properties_text):
        return None, left_out
    head = role if role == "generic" and not name else f"{role} {name.strip()!r}"
    value = node.get("value")
    if value is not None and value.get("value") is not None:
        head += f" value={_scalar(value)!r}"
    return ("" if bid is None else f"[{bid}] ") + ", ".join([head, *marks, *properties_text]), False


def _marks(bid: str | None, properties: Mapping[str, Any], pruned: bool) -> tuple[list[str], bool]:
    """Return an element's marks (``clickable``, ``visible``), and whether pruning leaves it out."""
    if bid is None:
        return [], pruned
    seen = properties.get(bid)
    if seen is None:
        return [], False
    is_visible = seen["visibility"] >= VISIBLE_SHARE
    if pruned:
        return [], not is_visible
    marks = {"clickable": seen["clickable"], "visible": is_visible}
    return [word for word, holds in marks.items() if holds], False


def _properties(node: dict[str, Any]) -> Iterator[str]:
    for item in node.get("properties", ()):
        value, name = item.get("value"), item["name"]
        if value is None or "value" not in value or name in _LEFT_OUT_PROPERTIES:
            continue
        if name not in _FLAGS:
            yield f"{name}={_scalar(value)!r}"
        elif value["value"]:
            yield name


def _scalar(typed: dict[str, Any]) -> Any:
    """Return the value of Chromium's ``{type, value}``. Raises TypeError if it is nested."""
    value = typed["value"]
    if value is not None and not isinstance(value, str | int | float):
        raise TypeError(f"a {type(value).__name__} where text or a number is expected")
    return value


_ON_AN_ELEMENT: Final = (
    "click|dblclick|hover|fill|press|focus|clear|select_option|check|uncheck|drag_and_drop|upload_file"
)
_BID: Final = re.compile(rf"""\s*(?:{_ON_AN_ELEMENT})\(\s*(?:(?:from_)?bid\s*=\s*)?(['"])([^'"\n]+)\1""")


def acted_on(action: str | None) -> str | None:
    """Return the id of the first element that an action names, as in ``click('a51')``, or None.

    Actions on coordinates, tabs, pages or the keyboard, and messages to the user, do not name an element.
    """
    found = _BID.match(action or "")
    return found[2] if found else None


def box_of(bid: str | None, properties: Mapping[str, Any] | None) -> Box | None:
    """Return an element's box from a page's properties (``bid -> {"bbox": [x, y, w, h], …}``), or None."""
    found = properties.get(bid) if isinstance(properties, Mapping) and bid is not None else None
    sides = found.get("bbox") if isinstance(found, Mapping) else None
    return box_from(sides) if isinstance(sides, Sequence) else None


def box_from(sides: Sequence[float | None] | None) -> Box | None:
    """Return (left, top, width, height), or None if a number is missing, infinite, NaN or a negative size."""
    numbers = [float(side) for side in sides or () if isinstance(side, int | float) and math.isfinite(side)]
    if sides is None or not len(numbers) == len(sides) == 4:
        return None
    left, top, width, height = numbers
    return (left, top, width, height) if width >= 0 and height >= 0 else None
