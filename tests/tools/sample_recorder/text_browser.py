"""A browser of a few lines for the sample's sites: links, forms and a frame, no pictures and no scripts.

It shows a page as the text of an accessibility tree and takes BrowserGym's actions, so that every script can
be followed in milliseconds. The one script of the sites (a button that waits for a name) is known by name.
"""

import ast
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from starlette.testclient import TestClient

VOID = {"meta", "input", "br", "img"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str | None]
    form: "Element | None"
    parent: "Element | None" = None
    text: str = ""
    options: list[str] = field(default_factory=list)
    value: str = ""
    is_on: bool = False


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self._open: list[Element] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        form = next((e for e in reversed(self._open) if e.tag == "form"), None)
        element = Element(tag, given, form, self._open[-1] if self._open else None)
        element.value = given.get("value") or ""
        element.is_on = "checked" in given
        self.elements.append(element)
        if tag == "option":  # the first, which may be empty, is chosen until another is
            self._open[-1].options.append("")
        if tag not in VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop().tag != tag:
            pass

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data
        if self._open and self._open[-1].tag == "textarea":
            self._open[-1].value += data
        if self._open and self._open[-1].tag == "option":
            select = next(e for e in reversed(self._open) if e.tag == "select")
            select.options[-1] = data
            if "selected" in self._open[-1].attributes or len(select.options) == 1:
                select.value = data


class TextBrowser:
    """A page, and one in its frame; ``said`` holds the agent's last words."""

    def __init__(self, app: Any, address: str) -> None:
        self._client = TestClient(app, base_url=address)
        self._address = address
        self._history: list[str] = []
        self.said: tuple[str, str] | None = None
        self.error = ""

    def open(self, path: str) -> None:
        self._history.append(path)
        self._show(self._client.get(path))

    def _show(self, answer: Any) -> None:
        assert answer.status_code == 200, (answer.status_code, answer.url)
        self.url = str(answer.url)
        self._page = _read(answer.text)
        frame = next((e for e in self._page if e.tag == "iframe"), None)
        self._frame: list[Element] = []
        if frame is not None:
            self._frame = _read(self._client.get(frame.attributes["src"]).text)

    def _every(self) -> dict[str, Element]:
        page = {str(number): element for number, element in enumerate(self._page)}
        return page | {f"a{number}": element for number, element in enumerate(self._frame)}

    def tree(self) -> str:
        lines = []
        for bid, element in self._every().items():
            role, name = self._role(element)
            if role:
                extra = f" value={element.value!r}" if role in ("textbox", "combobox") else ""
                extra += f", checked={str(element.is_on).lower()!r}" if role == "checkbox" else ""
                lines.append(f"[{bid}] {role} {name!r}{extra}, visible")
            elif element.tag in ("p", "td", "h1", "b"):
                lines.append(f"StaticText {element.text!r}")
        return "\n".join(lines)

    def _role(self, element: Element) -> tuple[str, str]:
        kind = element.attributes.get("type")
        if element.tag == "a":
            return "link", element.text
        if element.tag == "button":
            return "button", element.attributes.get("aria-label") or element.text
        if element.tag == "textarea" or (element.tag == "input" and kind == "text"):
            return "textbox", self._label(element)
        if element.tag == "select":
            return "combobox", self._label(element)
        if element.tag == "input" and kind == "checkbox":
            return "checkbox", self._label(element)
        return "", ""

    def _label(self, element: Element) -> str:
        if name := element.attributes.get("aria-label"):
            return name
        labels = (e for e in (*self._page, *self._frame) if e.tag == "label")
        return next(e.text for e in labels if e.attributes["for"] == element.attributes["id"])

    def act(self, action: str) -> None:
        """Do one action, written as BrowserGym's agents write it."""
        call = ast.parse(action, mode="eval").body
        given = [ast.literal_eval(argument) for argument in call.args]
        self.error = ""
        match call.func.id:
            case "click":
                self._click(given[0])
            case "fill":
                element = self._every()[given[0]]
                element.value = given[1]
                if "oninput" in element.attributes:
                    for other in self._page:
                        if other.tag == "button" and other.form is element.form:
                            other.attributes.pop("disabled", None)
            case "select_option":
                element = self._every()[given[0]]
                assert given[1] in element.options, (given, element.options)
                element.value = given[1]
            case "goto":
                self.open(given[0].removeprefix(self._address))
            case "go_back":
                self._history.pop()
                self._show(self._client.get(self._history[-1]))
            case "scroll":
                pass
            case "send_msg_to_user" | "report_infeasible":
                self.said = (call.func.id, given[0])
            case other:
                raise AssertionError(f"no action {other}")

    def _click(self, bid: str) -> None:
        element = self._every()[bid]
        if element.tag == "input":
            element.is_on = not element.is_on
        elif "disabled" in element.attributes:
            self.error = "TimeoutError"
        elif element.tag == "a":
            self._go("get", element.attributes["href"], {}, bid)
        else:
            form = element.form
            sent = {}
            for other in self._every().values():
                name = other.attributes.get("name")
                is_off = other.attributes.get("type") == "checkbox" and not other.is_on
                is_field = other.tag in ("input", "select", "textarea")
                if other.form is form and name and is_field and not is_off:
                    sent[name] = other.value or ("on" if other.is_on else "")
            self._go(form.attributes.get("method", "get"), form.attributes["action"], sent, bid)

    def _go(self, method: str, path: str, sent: dict[str, str], bid: str) -> None:
        options = {"params": sent} if method == "get" and sent else {}
        if method == "post":
            options = {"data": sent, "headers": {"referer": self.url}}
        answer = self._client.request(method, path, **options)
        if bid.startswith("a"):
            self._frame = _read(answer.text)
        else:
            self._history.append(str(answer.url).removeprefix(self._address))
            self._show(answer)


def _read(text: str) -> list[Element]:
    reader = _Reader()
    reader.feed(text)
    return reader.elements
