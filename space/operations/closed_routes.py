"""Addresses of Gradio that no page of ours uses: blocked, so that nothing behind them has to be trusted.

Some are costly for a stranger to hold open (``dev/reload`` looks at the disk twenty times a second for each
connection), some fetch, some are for an app's author at work.
"""

import re
from typing import Final

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_CLOSED: Final = re.compile(
    r"/monitoring(/.*)?|/logout|/login/?"
    r"|/gradio_api/(dev/|runs|deep_link|proxy=|stream/|component_server|process_recording|custom_component/"
    r"|vibe-|undo-vibe).*"
)


class ClosedRoutes:
    """Middleware that answers 404 for them, whatever the method."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let the request pass."""
        if scope["type"] == "http" and is_closed(scope["path"]):
            await JSONResponse({"detail": "Not Found"}, 404)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def is_closed(path: str) -> bool:
    """Whether an address is one of them; ours under ``/login/`` are not."""
    return _CLOSED.fullmatch(path) is not None
