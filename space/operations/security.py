"""Middleware that adds security headers to every response and closes routes of Gradio.

The Content-Security-Policy allows our script files, and inline scripts by the hash of their text, so that
injected markup cannot run scripts. Only the page /submit gets 'unsafe-eval', because Gradio 6 makes its
`js_on_load` handlers with `new Function`.

Of Gradio's routes, only those that the page /submit or ``gradio_client`` uses are open. The others fetch
URLs, are only for development, or are expensive (``dev/reload`` looks at the disk twenty times a second per
connection).
"""

import base64
import hashlib
import re
from collections.abc import Callable, Iterable
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from space.web.http_errors import RenderError, error_response

HUB: Final = "https://huggingface.co"
_INLINE_SCRIPT: Final = re.compile(
    r"<script(?![^>]*\ssrc=)[^>]*>(.*?)</script\s*>", re.DOTALL | re.IGNORECASE
)


def content_policy(
    on_space: bool, script_hashes: Iterable[str] = (), evaluates: bool = False, is_embeddable: bool = False
) -> str:
    """Return the value of the Content-Security-Policy header.

    ``on_space`` lets the Hub show our pages in its frame, ``script_hashes`` names the inline scripts that may
    run, and ``evaluates`` lets scripts make functions from strings, as Gradio's do. ``is_embeddable`` lets
    every site show the page in a frame. A page with actions must not be embeddable, because a site could lay
    something else over its buttons.
    """
    hub = (HUB,) if on_space else ()
    unsafe = ("'unsafe-eval'",) if evaluates else ()
    parts = {
        "default-src": ("'self'",),
        "script-src": ("'self'", *unsafe, *script_hashes),
        "style-src": ("'self'", "'unsafe-inline'"),
        "img-src": ("'self'", "data:", "blob:"),
        "font-src": ("'self'", "data:"),
        "connect-src": ("'self'", "data:", "blob:", *hub),
        "media-src": ("'self'", "data:", "blob:"),
        "worker-src": ("'self'", "blob:"),
        "frame-src": ("'none'",),
        "object-src": ("'none'",),
        "base-uri": ("'self'",),
        "form-action": ("'self'",),
        "frame-ancestors": ("*",) if is_embeddable else ("'self'", *hub),
    }
    return "; ".join(" ".join((name, *values)) for name, values in parts.items())


def script_hashes(html: str) -> tuple[str, ...]:
    """Return the hashes of all inline scripts in some HTML, which must be our own or Gradio's."""
    texts = dict.fromkeys(_INLINE_SCRIPT.findall(html))
    return tuple(f"'sha256-{base64.b64encode(hashlib.sha256(t.encode()).digest()).decode()}'" for t in texts)


POLICY: Final = "Content-Security-Policy"
ANYWHERE: Final = "frame-ancestors *"
"""The last directive of the policy of pages that any site may show in a frame."""
_FILES: Final = "/file="
_ASSETS: Final = "/assets/"
"""The folder of Gradio's scripts and styles (60 files on the page /submit). Of our headers, these files need
only ``nosniff``."""
PACKED: Final = frozenset(("/config", "/gradio_api/info"))
"""Gradio's responses that the page /submit waits for. We compress them, from 36 to 6 kB; Gradio does not."""
_NOTHING: Final = "default-src 'none'; sandbox"
"""The policy of uploaded files, in case a browser opens one as a page."""
_PERMISSIONS: Final = ("camera", "display-capture", "geolocation", "microphone", "payment", "usb")


class SecurityHeaders:
    """Middleware that adds security headers. On uploads only, it replaces a policy that is already set."""

    def __init__(self, app: ASGIApp, on_space: bool) -> None:
        self._app, self._packing = app, GZipMiddleware(app)
        self._headers = security_headers(on_space)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        is_a_file = _FILES in scope["path"]

        async def send_completed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if is_a_file:
                    headers[POLICY] = _NOTHING
                anywhere = headers.get(POLICY, "").endswith(ANYWHERE)
                if scope["path"].startswith(_ASSETS):
                    headers["X-Content-Type-Options"] = "nosniff"
                    return await send(message)
                for name, value in self._headers.items():
                    if not (anywhere and name == "X-Frame-Options"):
                        headers.setdefault(name, value)
            await send(message)

        app = self._packing if scope["path"] in PACKED else self._app
        await app(scope, receive, send_completed)


def security_headers(on_space: bool) -> dict[str, str]:
    """Return headers keyed by name, without X-Frame-Options on a Space, which the Hub shows in a frame."""
    headers = {
        POLICY: content_policy(on_space),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Permissions-Policy": ", ".join(f"{name}=()" for name in _PERMISSIONS),
        "Cross-Origin-Opener-Policy": "same-origin-allow-popups" if on_space else "same-origin",
    }
    return headers if on_space else {**headers, "X-Frame-Options": "SAMEORIGIN"}


_CLOSED: Final = re.compile(
    r"/monitoring(/.*)?|/logout|/login/?|/openapi\.json|/manifest\.json|/pwa_icon(/.*)?|/svelte/.*|/submit/"
    r"|/gradio_api/(?!(upload|upload_progress|queue/join|queue/data|cancel|reset|info/?|app_id/?|file=/.*)\Z).*",
    re.DOTALL,
)


class ClosedRoutes:
    """Middleware that answers 404 for closed routes and for pages that the suite switches off."""

    def __init__(self, app: ASGIApp, serves: Callable[[str], bool], render_error: RenderError) -> None:
        self._app, self._serves, self._render_error = app, serves, render_error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._answer(scope)(scope, receive, send)

    def _answer(self, scope: Scope) -> ASGIApp:
        path = scope.get("path", "")
        if scope["type"] != "http" or (self._serves(path) and not is_closed(path)):
            return self._app
        return error_response(HTTPConnection(scope), 404, "Not Found", self._render_error)


def is_closed(path: str) -> bool:
    """Return whether a path is a closed route of Gradio. Our own routes under ``/login/`` are not."""
    return _CLOSED.fullmatch(path) is not None
