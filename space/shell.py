"""Gradio's pages in our frame: style, menu and what a page opens with are there before Gradio has loaded.

Gradio makes the HTML of a page anew on every request and does not pack it. Here it is asked once for each
page and host; the answer (frame, opening, gzip, ETag) is prepared once for each content, and served as bytes.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import Request
from markupsafe import Markup, escape
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Receive, Scope, Send

from space.inner_answer import InnerAnswer, ask
from space.look import Look
from space.operations.content_policy import content_policy, script_hashes
from space.operations.requests import ROUTE
from space.operations.security_headers import POLICY
from space.page import Opening, Page, Services
from space.prepared import Prepared, size_of
from space.shelf import Shelf
from space.templating import render

NAME = "AgentRewardBench"
DESCRIPTION = "Which automatic judges of web agents can be trusted: verdicts held against expert labels."
KEPT_BYTES = 64_000_000
KEPT_FRAMES = 64
ADDRESS_HEADERS = (b"host", b"x-forwarded-host", b"x-forwarded-proto")
"""What Gradio makes the addresses in its HTML from."""

FOREIGN_META = re.compile(r'\s*<meta\s+(?:property="og:|name="twitter:)[^>]*>')
NO_OPENING = Opening("", "")


@dataclass(frozen=True)
class Frame:
    """A page's HTML around its opening, the policy for its scripts, what tells it from another one's."""

    before: str
    after: str
    policy: str
    key: tuple


class PageShell:
    """Middleware that answers GET and HEAD of every page in the table; all else passes through."""

    def __init__(
        self, app: ASGIApp, pages: Sequence[Page], services: Services, look: Look, on_space: bool = False
    ) -> None:
        self._app, self._on_space = app, on_space
        self._pages = {page.path: page for page in pages}
        self._services, self._look = services, look
        self._menu = tuple(page for page in pages if page.in_menu)
        self._frames: dict[tuple, Frame] = {}
        self._prepared: Shelf[Prepared] = Shelf(KEPT_BYTES, size_of)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a page, or let the request pass."""
        page = self._pages.get(scope["path"]) if scope["type"] == "http" else None
        if page is None or scope["method"] not in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        frame = await self._frame(page, scope)
        if frame is None:  # Gradio does not serve the page as usual: whatever it says, it says itself
            await self._app(scope, receive, send)
            return
        scope[ROUTE] = page.path
        query = scope["query_string"].decode("latin-1")
        prepared = await run_in_threadpool(self._answer, page, frame, query)
        await prepared.answer(Request(scope), {POLICY: frame.policy})(scope, receive, send)

    async def _frame(self, page: Page, scope: Scope) -> Frame | None:
        headers = dict(scope["headers"])
        key = (page.path, scope.get("scheme"), *(headers.get(name) for name in ADDRESS_HEADERS))
        if key not in self._frames:
            answer = await ask(self._app, scope)
            if answer.status != 200 or not answer.media_type.startswith("text/html"):
                return None
            if len(self._frames) >= KEPT_FRAMES:  # whoever asks under many host names pays with time only
                self._frames.clear()
            self._frames[key] = self._framed(page, answer, key)
        return self._frames[key]

    def _framed(self, page: Page, answer: InnerAnswer, key: tuple) -> Frame:
        html = FOREIGN_META.sub("", answer.body.decode("utf-8"))
        title = f"{page.title} · {NAME}"
        html = html.replace(f'"title":"{NAME}"', f'"title":"{escape(title)}"', 1)
        head = render(
            "head.html",
            title=title,
            description=DESCRIPTION,
            style=self._look.style,
            script=self._look.script,
        )
        masthead = render("masthead.html", name=NAME, menu=self._menu, current=page)
        html = re.sub(r"(<head>)", lambda found: found[1] + head, html, count=1)
        html = re.sub(r"(<body[^>]*>)", lambda found: found[1] + masthead + "\0", html, count=1)
        html = html.replace("</gradio-app>", "</gradio-app>" + render("colophon.html"), 1)
        before, _, after = html.partition("\0")
        hashes = script_hashes(before + _shown("") + after)  # not of an opening: it shows what people wrote
        return Frame(before, after, content_policy(self._on_space, hashes), key)

    def _answer(self, page: Page, frame: Frame, query: str) -> Prepared:
        opening = page.opening(self._services, query) if page.opening else NO_OPENING
        return self._prepared.get((frame.key, opening.tag), lambda: _with_opening(frame, opening))


def _with_opening(frame: Frame, opening: Opening) -> Prepared:
    shown = _shown(opening.html) if opening.html else ""
    return Prepared.of((frame.before + shown + frame.after).encode(), "text/html; charset=utf-8")


def _shown(html: str) -> str:
    return render("opening.html", html=Markup(html))
