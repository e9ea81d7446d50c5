"""Renders every page: a template that extends ``frame/page.html``, with menu, styles and content policy.

Every value in a template is escaped. All templates have the function ``link_to("/judge", id=row.id)`` and
the filters ``{{ cell.precision | percent }}``, ``{{ cell.precision_ci | interval }}``,
``{{ n | thousands }}``, ``{{ n | counted("judge") }}``, ``{{ row.date | day }}``,
``{{ suite.guidelines | markdown }}``, ``{{ answer | outcome(target) }}`` and
``{{ row.benchmark | benchmark_title }}``.

Templates of whole pages also have the suite's ``profile``, the function ``serves("/paper")``, which returns
whether that page exists, ``has_docs``, which says whether ``/docs`` serves the documentation, ``suites`` (the
suites of the Space: address, title, and whether it is the current one) and ``suite_root``.

Templates write addresses without the prefix of a suite (``/judge``); `render` adds it.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

from fastapi import HTTPException, Request, Response
from fastapi.responses import HTMLResponse
from jinja2 import Environment
from markdown_it import MarkdownIt
from markupsafe import Markup

from arb.core.cache import ByteCache
from arb.core.console import NOT_DEFINED, text_environment
from arb.core.suites.profile import SuiteProfile
from arb.core.suites.targets import UNSURE, Target
from arb.core.vocabulary import BENCHMARK_TITLES, metric_name
from space.operations.security import POLICY, content_policy, script_hashes
from space.web.cells import ends_text, metric_text, metric_title, short_name, unit_of
from space.web.http_errors import AccessRefused, HubUnavailable
from space.web.query import link_to
from space.web.responses import CachedResponse, StaticAssets
from space.web.suite_path import in_suite, root_of, suite_root

T = TypeVar("T")
FOLDER = Path(__file__).parents[1] / "templates"


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = text_environment(FOLDER, autoescape=True)
    environment.filters |= {
        "thousands": lambda number: NOT_DEFINED if number is None else f"{number:,}",
        "day": lambda date: date[:10],  # of an ISO date with a time
        "markdown": markdown,
        "outcome": _outcome,
        "metric": metric_text,
        "metric_title": metric_title,
        "ends": ends_text,
        "benchmark_title": lambda name: BENCHMARK_TITLES.get(name, name),
    }
    words = {"short_name": short_name, "metric_name": metric_name, "unit_of": unit_of}
    environment.globals |= {"link_to": link_to, **words}
    return environment


def _outcome(answer: str | None, target: Target) -> str:
    """Return the style of an answer: unsure or, for a binary target, yes or no; empty for all others."""
    if answer in (None, UNSURE):
        return "unsure"
    return "" if target.type != "binary" else "yes" if answer in target.positive else "no"


@lru_cache(maxsize=1)
def _markdown_parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).disable("image")


def markdown(text: str) -> Markup:
    """Return the HTML of a suite's Markdown, with HTML tags shown as text and without pictures."""
    return Markup(_markdown_parser().render(text))


def render(template: str, **values: Any) -> str:
    """Return the HTML of a template in ``templates/``, with the addresses of the request's suite."""
    return in_suite(_environment().get_template(template).render(**values))


UNNAMED: Final = SuiteProfile()
CACHE_BYTES: Final = 64_000_000
HTML: Final = "text/html; charset=utf-8"


@dataclass(frozen=True)
class MenuEntry:
    """A page with its title and address.

    If the menu does not list it, ``below`` is the entry to mark. ``has_actions`` says whether it has a form
    or button that changes something. Other sites may only embed a page without actions.
    """

    title: str
    path: str
    below: str = ""
    has_actions: bool = False


PAGES: Final = (
    MenuEntry("Leaderboard", "/"),
    MenuEntry("All suites", "/suites", below="/"),
    MenuEntry("Compare", "/compare"),
    MenuEntry("Judge", "/judge", below="/"),
    MenuEntry("Errors", "/errors", below="/", has_actions=True),
    MenuEntry("My agent", "/my-agent", has_actions=True),
    MenuEntry("Rates", "/rates", below="/my-agent", has_actions=True),
    MenuEntry("My judge", "/validate", below="/my-agent", has_actions=True),
    MenuEntry("Trajectories", "/trajectories", has_actions=True),
    MenuEntry("Labels", "/labels", has_actions=True),
    MenuEntry("Disputes", "/disputes", below="/labels", has_actions=True),
    MenuEntry("About", "/about"),
    MenuEntry("Paper", "/paper", below="/about"),
    MenuEntry("Submit", "/submit", has_actions=True),
)
"""Every page, in the order of the menu."""
_BELOW: Final = {page.path: page.below for page in PAGES if page.below}
EMBEDDABLE: Final = frozenset(page.path for page in PAGES if not page.has_actions)


class PageFrame:
    """The renderer of whole pages, with the title, menu and links of the suite. Thread-safe."""

    def __init__(
        self,
        static: StaticAssets,
        on_space: bool = False,
        profile: SuiteProfile = UNNAMED,
        has_docs: bool = False,
        suites: Mapping[str, str] = MappingProxyType({}),
        suite: str = "",
    ) -> None:
        """Build the frame. ``suites`` has the titles of the suites that readers can choose, keyed by name."""
        self._suites = [(root_of(name), title, name == suite) for name, title in suites.items()]
        self.static, self.profile, self._on_space, self._has_docs = static, profile, on_space, has_docs
        self._cache: ByteCache[CachedResponse] = ByteCache(CACHE_BYTES, lambda page: page.size)

    def html(self, template: str, title: str, path: str, **values: Any) -> str:
        """Return the HTML of a page, with the menu entry of ``path`` marked as the current one."""
        serves = self.profile.serves
        frame = {
            "title": " · ".join(filter(None, (title, self.profile.title))),
            "description": title,
            "static": self.static,
            "menu": [page for page in PAGES if not page.below and serves(page.path)],
            "current": {"path": path, "below": _BELOW.get(path, "")},
            "profile": self.profile,
            "serves": serves,
            "has_docs": self._has_docs,
            "suites": self._suites,
            "suite_root": suite_root(),
        }
        return render(template, **{**frame, **values})

    def answer(self, template: str, title: str, path: str, status: int = 200, **values: Any) -> HTMLResponse:
        """Return a page that may differ for every reader and is not cached."""
        html = self.html(template, title, path, **values)
        return HTMLResponse(html, status, {"Cache-Control": "no-store", POLICY: self._policy(html, path)})

    def cached(
        self,
        request: Request,
        key: Hashable,
        template: str,
        title: str,
        path: str,
        values: Callable[[], Mapping[str, Any]],
        evaluates: bool = False,
        unknown: Sequence[str] = (),
    ) -> Response:
        """Return a page that is the same for every reader, from the cache if it is there.

        The response has an ETag, and its status is 304 if the client already has the page.

        ``key`` has to differ whenever the content does, for example the board's digest and the query.
        ``values`` returns the template's values, and is called only if the page is not in the cache.
        ``evaluates`` allows what Gradio's form needs; see `content_policy`. See `html` for the rest.
        ``unknown`` are the names of parameters with invalid values. They are passed to the template, and make
        the status 422.
        """

        def make() -> CachedResponse:
            html = self.html(template, title, path, **values(), unknown=unknown)
            return CachedResponse.of(html.encode(), HTML, {POLICY: self._policy(html, path, evaluates)})

        page = self._cache.get((template, title, path, key, *unknown), make)
        return page.answer(request, status=422 if unknown else 200)

    def refusal(self, heading: str, message: str, path: str, status: int) -> HTMLResponse:
        """Return a page that says why the reader may not see a page, and how to sign in."""
        return self.answer("frame/refusal.html", heading, path, status, heading=heading, message=message)

    def reader_or_refusal(
        self, request: Request, ask: Callable[[Request], T], heading: str, sign_in: str, no_access: str = ""
    ) -> T | HTMLResponse:
        """Return the result of ``ask`` (the reader who made the request), or a page that refuses access.

        The page has the status 401 and the message ``sign_in`` if nobody is signed in, 403 and ``no_access``
        if the account has no access, and 503 if the Hub does not answer.
        """
        path = request.url.path
        try:
            return ask(request)
        except HubUnavailable as error:
            return self.refusal(heading, error.detail, path, 503)
        except AccessRefused:  # an invalid token counts as not signed in
            return self.refusal(heading, sign_in, path, 401)
        except HTTPException:
            return self.refusal(heading, no_access, path, 403)

    def problem(self, heading: str, message: str, status: int, path: str = "") -> HTMLResponse:
        """Return an error page, such as for 404 or 500. It says what is wrong and links to other pages."""
        if status == 404 and heading.casefold() == message.rstrip(".").casefold():  # the message adds nothing
            heading = "There is no such page"
            message = "The address may be mistyped, or the page was removed."
        return self.answer("frame/problem.html", heading, path, status, heading=heading, message=message)

    def _policy(self, html: str, path: str, evaluates: bool = False) -> str:
        # What people wrote is escaped, so every script in the page is ours.
        return content_policy(self._on_space, script_hashes(html), evaluates, path in EMBEDDABLE)
