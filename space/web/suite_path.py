"""Addresses of several suites in one Space: ``/s/NAME/judge`` is the page ``/judge`` of the suite NAME.

`SuitePath` takes the suite out of an address before anything else looks at it, so every limit holds under
the prefix, too. `in_suite` puts the prefix before the addresses in HTML, and `with_prefix` before that of a
redirect.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final
from urllib.parse import parse_qs

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PREFIX: Final = "/s/"
PARAMETER: Final = "suite"
_WITH_PARAMETER: Final = ("/api/", "/readyz")
"""Beginnings of addresses in which a query parameter may name the suite, instead of the prefix."""
_OF_GRADIO: Final = "/assets/"
"""The folder of styles that Gradio's form requests below the address of its page; all suites share them."""
_LONGEST_QUERY: Final = 8_000
_SHARED: Final = (
    r"/|s/|(?:bundles|docs|login|swagger)/|(?:api|docs|mcp|metrics|sign-in|sign-out|suites)(?=[?#\"]|$)"
)
"""Matches what follows the first slash of an address that gets no prefix: one of another site, one that has a
prefix already, or one that all suites share."""
_LOCAL: Final = re.compile(rf"/(?!{_SHARED})")
_ATTRIBUTES: Final = re.compile(
    r'(\s(?:href|action|src|hx-get|hx-post|hx-replace-url|data-(?:address|later|path|then|undo|waiting))=")'
    rf"(?=/(?!{_SHARED}))"
)
_ROOT: ContextVar[str] = ContextVar("_ROOT", default="")


def suite_root() -> str:
    """Return ``/s/NAME`` if the current request is for a further suite, or "" for the default suite."""
    return _ROOT.get()


def root_of(suite: str) -> str:
    return f"{PREFIX}{suite}"


@contextmanager
def under(root: str) -> Iterator[None]:
    """Prefix addresses with ``root`` in this block."""
    token = _ROOT.set(root)
    try:
        yield
    finally:
        _ROOT.reset(token)


def in_suite(html: str) -> str:
    """Return HTML whose links, forms and pictures lead to pages of the current request's suite.

    All text from readers is escaped, so every attribute found here comes from a template.
    """
    root = suite_root()
    return _ATTRIBUTES.sub(lambda found: found[1] + root, html) if root else html


def with_prefix(address: str) -> str:
    """Return the address of a page of the current request's suite."""
    return suite_root() + address if _LOCAL.match(address) else address


class SuitePath:
    """Middleware that replaces ``/s/NAME/judge`` by ``/judge`` and stores NAME in the state of the request.

    NAME is that of any further suite, served or not; for the default suite nothing is stored. Under ``/api/``
    the query parameter ``suite`` has precedence over the prefix.
    """

    def __init__(self, app: ASGIApp, default: str, further: frozenset[str]) -> None:
        self._app, self._default, self._further = app, default, further

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = _taken_out(scope) if scope["type"] == "http" else None
        if name is None or name == self._default:
            await self._app(scope, receive, send)
            return
        scope.setdefault("state", {})[PARAMETER] = name

        async def send_prefixed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if (location := headers.get("location")) is not None:
                    headers["location"] = with_prefix(location)
            await send(message)

        with under(root_of(name) if name in self._further else ""):
            await self._app(scope, receive, send_prefixed)


def _taken_out(scope: Scope) -> str | None:
    """Remove the prefix from the path of a request, and return the suite that the request names, or None."""
    name, path = None, scope["path"]
    if path.startswith(PREFIX):
        name, _, rest = path.removeprefix(PREFIX).partition("/")
        # Not a copy: `RequestLog`, outside of this, reads which route has answered.
        path = scope["path"] = f"/{rest}"
        if path.startswith(_OF_GRADIO):
            return None
    if path.startswith(_WITH_PARAMETER) and (query := scope["query_string"][:_LONGEST_QUERY]):
        named = parse_qs(query.decode("latin-1")).get(PARAMETER)
        name = named[0] if named else name
    return name
