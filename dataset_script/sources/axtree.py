"""An accessibility tree as text, the way the released files write it: one line for a node, tabs for depth.

    [bid] role 'name' value='…', clickable, visible, property=…

The tree is what Chromium's Accessibility.getFullAXTree gives, with BrowserGym's ``browsergym_id`` (the bid)
on its nodes. Lines and bytes are those of BrowserGym's own flattening with the options of the release:
``axtree`` marks what is clickable and what is visible; ``axtree_pruned`` leaves out what cannot be seen or
has no bid, and marks nothing. Walks without recursion, each node once, so no tree is too deep or circular.

`acted_on` and `box_of`: the element that an action names, and where it was on the page. Pure.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from arb.core.trajectory import Box

_LAYOUT_ROLES: Final = frozenset({"LineBreak", "InlineTextBox"})
"""How text breaks on the screen; newer Chromium lists every line of it as a node."""

_LEFT_OUT_PROPERTIES: Final = frozenset(
    {"editable", "readonly", "level", "settable", "multiline", "invalid", "focusable"}
)
_FLAGS: Final = frozenset({"required", "focused", "atomic"})
"""Properties written by their bare name, and only when they hold."""

VISIBLE_SHARE: Final = 0.5
"""BrowserGym calls an element visible from this share on."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a node is met: its depth in the text, and what its parent says about it."""

    node_id: Any
    depth: int
    parent_name: str
    parent_is_left_out: bool


def axtree_text(tree: Mapping[str, Any], properties: Mapping[str, Any], *, pruned: bool = False) -> str:
    """The text of a tree; ``properties`` are BrowserGym's ``extra_element_properties``, by bid.

    Raises ValueError when the tree has no nodes, or one is not as Chromium writes it.
    """
    nodes = tree.get("nodes") if isinstance(tree, Mapping) else None
    if not isinstance(nodes, list) or not nodes:
        raise ValueError("the accessibility tree has no nodes")
    try:
        by_id = {node["nodeId"]: node for node in nodes}
        return "\n".join(_lines(by_id, nodes[0]["nodeId"], properties, pruned))
    except (AttributeError, KeyError, TypeError) as error:
        detail = f"{type(error).__name__}: {error}"[:120]
        raise ValueError(f"the accessibility tree is not as Chromium writes it ({detail})") from error


def _lines(by_id: dict[Any, Any], root: Any, properties: Mapping[str, Any], pruned: bool) -> Iterator[str]:
    waiting = [_Place(root, 0, "", False)]
    while waiting:
        place = waiting.pop()
        node = by_id.pop(place.node_id, None)  # popped: a node that two parents name is written once
        if node is None:
            continue
        name, role = _text_of(node.get("name")), _scalar(node["role"])
        is_written = role not in _LAYOUT_ROLES and name is not None
        line, left_out = None, False
        if is_written:
            line, left_out = _line(node, role, name, place, properties, pruned)
        if line is not None:
            yield "\t" * place.depth + line
        depth = place.depth if line is None else place.depth + 1
        children = node["childIds"]
        waiting.extend(
            _Place(child, depth, name if is_written else "", left_out) for child in reversed(children)
        )


def _line(
    node: dict[str, Any], role: str, name: str, place: _Place, properties: Mapping[str, Any], pruned: bool
) -> tuple[str | None, bool]:
    """A node's line, None when it is not written; and whether pruning left it out."""
    bid = node.get("browsergym_id")
    properties_text = list(_properties(node))
    if role == "StaticText":
        if place.parent_is_left_out or name in place.parent_name:  # it stands in its parent's name already
            return None, False
        marks, left_out = [], False
    else:
        marks, left_out = _marks(bid, properties, pruned)
    if left_out or (role == "generic" and not properties_text):
        return None, left_out
    head = role if role == "generic" and not name else f"{role} {name.strip()!r}"
    value = node.get("value")
    if value is not None and value.get("value") is not None:
        head += f" value={_scalar(value)!r}"
    return ("" if bid is None else f"[{bid}] ") + ", ".join([head, *marks, *properties_text]), False


def _marks(bid: str | None, properties: Mapping[str, Any], pruned: bool) -> tuple[list[str], bool]:
    """What BrowserGym saw of the element: words for its line, and whether pruning leaves it out."""
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


def _text_of(named: dict[str, Any] | None) -> str | None:
    return None if named is None else str(_scalar(named) or "")


def _scalar(typed: dict[str, Any]) -> Any:
    """The value of Chromium's ``{type, value}``; raises TypeError when it is nested."""
    value = typed["value"]
    if value is not None and not isinstance(value, str | int | float):
        raise TypeError(f"a {type(value).__name__} where text or a number is expected")
    return value


_ON_AN_ELEMENT: Final = (
    "click|dblclick|hover|fill|press|focus|clear|select_option|check|uncheck|drag_and_drop|upload_file"
)
_BID: Final = re.compile(rf"""\s*(?:{_ON_AN_ELEMENT})\(\s*(?:(?:from_)?bid\s*=\s*)?(['"])([^'"\n]+)\1""")


def acted_on(action: str | None) -> str | None:
    """The id of the element an action names first, as in ``click('a51')``; None when it names none.

    Actions on coordinates, tabs, pages, the keyboard and the user name no element; nor does what is no call.
    """
    found = _BID.match(action or "")
    return found[2] if found else None


def box_of(bid: str | None, properties: Mapping[str, Any] | None) -> Box | None:
    """The box of an element in a page's properties (``bid -> {"bbox": [x, y, w, h] or None, …}``)."""
    found = properties.get(bid) if isinstance(properties, Mapping) and bid is not None else None
    sides = found.get("bbox") if isinstance(found, Mapping) else None
    return box_from(sides) if isinstance(sides, Sequence) else None


def box_from(sides: Sequence[float] | None) -> Box | None:
    """Left, top, width and height, when they are four finite numbers and none of the sizes is negative."""
    if sides is None or len(sides) != 4:
        return None
    if not all(isinstance(side, int | float) and math.isfinite(side) for side in sides):
        return None
    left, top, width, height = (float(side) for side in sides)
    return (left, top, width, height) if width >= 0 and height >= 0 else None
