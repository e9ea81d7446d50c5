"""Gradio's own scripts and styles, packed once: it would pack each of them again for every reader."""

from fastapi import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from space.inner_answer import ask
from space.look import FOR_GOOD
from space.operations.requests import ROUTE
from space.prepared import Prepared

FOLDERS = ("/assets/", "/static/")
KEPT_BYTES = 48_000_000
PACKED_TYPES = ("text/", "application/javascript", "application/json", "image/svg")


class KeptAssets:
    """Middleware that keeps the files under ``/assets/`` and ``/static/``, as many as there is room for.

    Names under ``/assets/`` hold a hash of their content, so browsers may keep them for good.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._kept: dict[str, Prepared] = {}
        self._bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a file that is kept, or keep it; all else passes through."""
        is_asset = scope["type"] == "http" and scope["method"] == "GET" and scope["path"].startswith(FOLDERS)
        found = await self._find(scope) if is_asset else None
        if found is None:
            await self._app(scope, receive, send)
            return
        scope[ROUTE] = f"/{scope['path'].split('/')[1]}/"
        for_good = FOR_GOOD if scope["path"].startswith("/assets/") else {}
        await found.answer(Request(scope), for_good)(scope, receive, send)

    async def _find(self, scope: Scope) -> Prepared | None:
        path = scope["path"]
        if path not in self._kept:
            answer = await ask(self._app, scope)
            if answer.status != 200 or not answer.media_type.startswith(PACKED_TYPES):
                return None
            if self._bytes + len(answer.body) > KEPT_BYTES:
                return None
            self._bytes += len(answer.body)
            self._kept[path] = Prepared.of(answer.body, answer.media_type)
        return self._kept[path]
