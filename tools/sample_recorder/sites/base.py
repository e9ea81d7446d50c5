"""The common parts of the sites: serving on loopback, pages, forms, and the market's pictures."""

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from html import escape
from typing import Any, Final
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse

HOST: Final = "127.0.0.1"
START_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True)
class Place:
    """The port of a site, and a function that makes the site in its initial state."""

    make: Callable[..., Any]
    port: int

    @property
    def url(self) -> str:
        """The address of the first page, without a trailing slash."""
        return f"http://{HOST}:{self.port}"


class ServingError(OSError):
    """Raised for a site that cannot be served; the message names the port and says what to do."""


class Stage:
    """An ASGI application that passes requests to ``app``, which can be replaced between two runs."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.app(scope, receive, send)


@contextmanager
def serve_sites(places: Mapping[str, Place]) -> Iterator[dict[str, Stage]]:
    """Serve the sites until the block ends. Yield their stages, keyed by benchmark folder.

    Raises ServingError if a port is taken or a server does not start.
    """
    with ExitStack() as stack:
        stages = {}
        for benchmark, place in places.items():
            stages[benchmark] = Stage(place.make().app())
            stack.enter_context(_served(stages[benchmark], benchmark, place.port))
        yield stages


@contextmanager
def _served(stage: Stage, name: str, port: int) -> Iterator[None]:
    import uvicorn

    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise ServingError(
                f"{name} needs port {port} of {HOST}, which is taken ({error.strerror}); "
                "end what listens there (the port is fixed because it is part of what is recorded)"
            ) from error
    server = uvicorn.Server(uvicorn.Config(stage, HOST, port, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, name=name, daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + START_SECONDS
        while not server.started:
            if not thread.is_alive() or time.monotonic() > deadline:
                raise ServingError(f"{name} did not come up on port {port}")
            time.sleep(0.01)
        yield
    finally:
        server.should_exit = True
        thread.join(START_SECONDS)


COMMON_STYLE = """
* { box-sizing: border-box; caret-color: transparent; }
body { margin: 0; font: 14px "DejaVu Sans", Arial, sans-serif; }
a { color: inherit; } main { padding: 20px 28px; max-width: 1180px; }
input[type=text], select, textarea { font: inherit; padding: 6px 8px; border: 1px solid #9aa5ad; background:
#fff; }
button { font: inherit; padding: 7px 16px; border: 0; color: #fff; background: #333; cursor: pointer; }
button:disabled { background: #bbb; } label { display: block; margin: 8px 0 3px; }
.note { padding: 10px 14px; background: #eef4ee; border-left: 4px solid #4b8b5a; }
.wrong { padding: 10px 14px; background: #fbeeea; border-left: 4px solid #b4472e; }
table { border-collapse: collapse; } th, td { text-align: left; padding: 7px 18px 7px 0; border-bottom: 1px
solid #dde3e6; }
"""
FRESH = {"Cache-Control": "no-store"}
"""Headers that disable the browser's cache, so that no run depends on an earlier run."""


def page(title: str, body: str, style: str, status: int = 200) -> HTMLResponse:
    """Return an HTML page; ``title`` is escaped here, ``body`` is HTML already."""
    return HTMLResponse(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{COMMON_STYLE}{style}</style></head><body>{body}</body></html>",
        status_code=status,
        headers=FRESH,
    )


async def fields(request: Request) -> dict[str, str]:
    """Return the fields of a posted form; if a field has several values, the last one counts."""
    parsed = parse_qs((await request.body()).decode("utf-8"), keep_blank_values=True)
    return {name: values[-1].strip() for name, values in parsed.items()}


def go_to(path: str) -> RedirectResponse:
    """Redirect to another page after a form, so that reloading does not post again."""
    return RedirectResponse(path, status_code=303, headers=FRESH)


def choices(values: Iterable[str], chosen: str = "") -> str:
    return "".join(
        f"<option{' selected' if value == chosen else ''}>{escape(value)}</option>" for value in values
    )


def not_found(style: str) -> HTMLResponse:
    return page("Not found", "<main><h1>Not found</h1><p>There is no such page here.</p></main>", style, 404)


def picture(kind: str, colour: str, pattern: str) -> str:
    """Return an SVG image of an item for sale, 240 by 160 units. Raises KeyError for an unknown kind."""
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 240 160" shape-rendering="crispEdges"><rect '
        'width="240" height="160" fill="#eef0ec"/>'
        f"{_DRAWN[kind](colour, pattern)}</svg>"
    )


def _bicycle(colour: str, pattern: str) -> str:
    wheel = '<circle cx="{}" cy="110" r="34" fill="none" stroke="#333" stroke-width="5"/>'
    return (
        f"{wheel.format(65)}{wheel.format(175)}"
        '<path d="M65 110 L100 60 L155 60 L120 110 Z M155 60 L175 110 M100 60 L120 110" fill="none" '
        f'stroke="{colour}" stroke-width="8"/>'
        '<path d="M88 50 H112 M148 44 H170 M155 60 L152 44" stroke="#333" stroke-width="6" fill="none"/>'
    )


def _armchair(colour: str, pattern: str) -> str:
    lines = ""
    if pattern == "striped":
        lines = "".join(
            f'<rect x="{x}" y="36" width="7" height="80" fill="#fff"/>' for x in range(78, 166, 18)
        )
    elif pattern == "dotted":
        lines = "".join(
            f'<circle cx="{x}" cy="{y}" r="5" fill="#fff"/>' for x in range(84, 166, 18) for y in (50, 72, 96)
        )
    return (
        f'<rect x="70" y="30" width="100" height="90" rx="14" fill="{colour}"/>{lines}'
        f'<rect x="48" y="74" width="28" height="56" rx="10" fill="{colour}"/><rect x="164" y="74" '
        f'width="28" height="56" rx="10" fill="{colour}"/>'
        '<path d="M60 130 V146 M180 130 V146" stroke="#5b4636" stroke-width="8"/>'
    )


def _lamp(colour: str, pattern: str) -> str:
    shade = (
        f'<circle cx="120" cy="52" r="36" fill="{colour}"/>'
        if pattern == "round"
        else f'<path d="M98 18 H142 L168 84 H72 Z" fill="{colour}"/>'
    )
    return (
        '<path d="M120 80 V138" stroke="#555" stroke-width="7"/>'
        f'<rect x="86" y="136" width="68" height="9" fill="#555"/>{shade}'
    )


def _guitar(colour: str, pattern: str) -> str:
    return (
        f'<circle cx="84" cy="98" r="38" fill="{colour}"/><circle cx="126" cy="84" r="27" fill="{colour}"/>'
        '<circle cx="104" cy="91" r="11" fill="#222"/><path d="M112 88 L212 42" stroke="#5b4636" '
        'stroke-width="9"/>'
    )


_DRAWN = {"bicycle": _bicycle, "armchair": _armchair, "lamp": _lamp, "guitar": _guitar}
