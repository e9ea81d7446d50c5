"""Headers that tell browsers what our answers may do: on every answer, Gradio's files too."""

from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from space.operations.content_policy import content_policy

POLICY: Final = "Content-Security-Policy"
_FILES: Final = "/file="
_NOTHING: Final = "default-src 'none'; sandbox"
"""The policy of a file that a stranger sent, in case one is opened as a page."""
_PERMISSIONS: Final = ("camera", "display-capture", "geolocation", "microphone", "payment", "usb")


class SecurityHeaders:
    """Middleware that adds the headers; a policy that an answer brings along stays."""

    def __init__(self, app: ASGIApp, on_space: bool) -> None:
        self._app = app
        self._headers = security_headers(on_space)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request pass, and complete its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        is_a_file = _FILES in scope["path"]

        async def send_completed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if is_a_file:
                    headers[POLICY] = _NOTHING
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_completed)


def security_headers(on_space: bool) -> dict[str, str]:
    """The headers by name. On a Space the Hub shows the pages in a frame, so X-Frame-Options is left out."""
    headers = {
        POLICY: content_policy(on_space),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Permissions-Policy": ", ".join(f"{name}=()" for name in _PERMISSIONS),
        "Cross-Origin-Opener-Policy": "same-origin-allow-popups" if on_space else "same-origin",
    }
    return headers if on_space else {**headers, "X-Frame-Options": "SAMEORIGIN"}
