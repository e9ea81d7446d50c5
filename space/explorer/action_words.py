"""An action in words: what it does, to which element of the page, and what it tells the user. Pure."""

import ast
import re
from dataclasses import dataclass
from typing import Final

from dataset_script.sources.acted_on import acted_on

_CALL: Final = re.compile(r"\s*([A-Za-z_]\w{0,40})\(")
_MESSAGES: Final = ("send_msg_to_user", "report_infeasible")
_QUOTED: Final = r"""('(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")"""
_LONGEST_NAME: Final = 90
_LONGEST_CALL: Final = 20_000

_VERBS: Final = {
    "click": "Click",
    "dblclick": "Double-click",
    "hover": "Point at",
    "fill": "Fill in",
    "press": "Press a key in",
    "focus": "Focus",
    "clear": "Clear",
    "select_option": "Select in",
    "check": "Check",
    "uncheck": "Uncheck",
    "drag_and_drop": "Drag",
    "upload_file": "Upload to",
    "scroll": "Scroll",
    "goto": "Go to an address",
    "go_back": "Go back",
    "go_forward": "Go forward",
    "new_tab": "Open a tab",
    "tab_close": "Close the tab",
    "tab_focus": "Change the tab",
    "noop": "Wait",
    "send_msg_to_user": "Answer the user",
    "report_infeasible": "Report that it cannot be done",
    "keyboard_press": "Press a key",
    "keyboard_type": "Type",
    "mouse_click": "Click at a place",
}


@dataclass(frozen=True, slots=True)
class ActionWords:
    """``title`` says what is done, ``element`` to what (empty when to nothing), ``message`` what is told.

    ``bid`` is the id of the element that the action names.
    """

    title: str
    element: str
    message: str
    bid: str | None


def describe_action(action: str | None, *trees: str | None) -> ActionWords | None:
    """The words of an action; None when there is none. ``trees`` are searched for the element, in order."""
    if not action:
        return None
    called = _CALL.match(action)
    name = called[1] if called else ""
    bid = acted_on(action)
    found = (element_in(tree, bid) for tree in trees if tree and bid)
    return ActionWords(
        title=_VERBS.get(name, "Act"),
        element=next(filter(None, found), ""),
        message=_message(action) if name in _MESSAGES else "",
        bid=bid,
    )


def element_in(tree: str, bid: str) -> str:
    """Role and name of an element as a tree gives them: ``link “Cycling”``; empty where it is not there."""
    line = re.search(rf"^[ \t]*\[{re.escape(bid)}\] ([^\n]*)", tree, re.MULTILINE)
    if line is None:
        return ""
    named = re.match(rf"(\S+) {_QUOTED}", line[1])
    if named is None:
        return line[1].split(",")[0][:_LONGEST_NAME]
    role = "text" if named[1] == "StaticText" else named[1]
    name = " ".join(str(_literal(named[2]) or "").split())
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_LONGEST_NAME]}…"
    return f"{role} “{name}”" if name else role


def _message(action: str) -> str:
    """The first text that a call is given, as the user would read it; empty when it cannot be told."""
    call = _literal_call(action)
    if call is None:
        return ""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    value = given[0].value if given and isinstance(given[0], ast.Constant) else ""
    return value if isinstance(value, str) else ""


def _literal_call(action: str) -> ast.Call | None:
    tree = _parsed(action)
    return tree if isinstance(tree, ast.Call) else None


def _literal(quoted: str) -> object:
    tree = _parsed(quoted)
    return tree.value if isinstance(tree, ast.Constant) else ""


def _parsed(text: str) -> ast.expr | None:
    """The expression that an agent or a page wrote, parsed and never run; None when it is none."""
    if len(text) > _LONGEST_CALL:
        return None
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
