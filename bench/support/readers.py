"""Readers of the Space, who repeat the requests that Chromium made when it opened a page.

A reader over HTTP has its own connections, as many as a browser opens to one server, and an empty cache. A
request is sent once the responses have arrived that Chromium had when it made the same request. Pages are not
rendered, and scripts do not run.
"""

import asyncio
import re
import shutil
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from uuid import uuid4

import httpx2

WAIT_SECONDS = 300
REST_SECONDS = 1.5
WINDOW = {"width": 1280, "height": 900}
WATCH = """
(() => {
  const shown = (elements) => [...elements].filter(
    (element) => element.checkVisibility() && element.getBoundingClientRect().height > 0);
  const look = () => {
    if (document.body && (%s)) window.filledAfter = performance.now();
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
  window.largestPaint = window.layoutShift = 0;
  const watch = (type, add) =>
    new PerformanceObserver((list) => list.getEntries().forEach(add)).observe({ type, buffered: true });
  watch("largest-contentful-paint", (entry) => { window.largestPaint = entry.startTime; });
  watch("layout-shift", (entry) => { window.layoutShift += entry.hadRecentInput ? 0 : entry.value; });
})()
"""
REQUESTS = "performance.getEntriesByType('resource').map((entry) => [entry.name, entry.transferSize])"
SCROLL_STEP, SCROLL_SECONDS, MOST_STEPS = 700, 0.2, 400
"""Pixels and seconds per turn of the wheel, and the most turns: a reader who scrolls to the end."""
AT_THE_END = "window.scrollY + window.innerHeight >= document.documentElement.scrollHeight - 2"


@dataclass(frozen=True)
class Target:
    """A page: its address, and a condition that is true once its table is filled on the screen.

    ``is_filled`` is an expression in JavaScript. In it, ``shown(elements)`` returns the elements that have a
    height and are rendered (``content-visibility``).
    """

    name: str
    url: str
    is_filled: str

    @property
    def watch(self) -> str:
        """Return a script that notes the moment when the table is filled on the screen."""
        return WATCH % self.is_filled


@dataclass(frozen=True)
class FirstLoad:
    """A page opened once: seconds to its filled table and to its largest paint, and its layout shift.

    The other attributes are for scrolling to its end: requests as (address, bytes over the wire), and shift.
    """

    filled: float
    largest_paint: float
    layout_shift: float
    when_scrolled: tuple[tuple[str, int], ...] = ()
    shift_when_scrolled: float = 0.0


@asynccontextmanager
async def fresh_page(browser, target: Target) -> AsyncIterator:
    """Yield a Playwright page with an empty cache that watches for the filled table."""
    context = await browser.new_context(viewport=WINDOW)
    try:
        page = await context.new_page()
        await page.add_init_script(target.watch)
        yield page
    finally:
        await context.close()


async def open_until_filled(page, target: Target) -> tuple[float, float]:
    """Open the target; return (time of opening in seconds since 1970, seconds to the filled table)."""
    await page.goto(target.url, wait_until="commit", timeout=WAIT_SECONDS * 1000)
    await page.wait_for_function("() => window.filledAfter", timeout=WAIT_SECONDS * 1000, polling=250)
    opened, after = await page.evaluate("[performance.timeOrigin, window.filledAfter]")
    return opened / 1000, after / 1000


async def read_in_chromium(browser, target: Target) -> FirstLoad:
    """Open the page without other readers, wait until it is idle, then scroll to its end."""
    async with fresh_page(browser, target) as page:
        _, filled = await open_until_filled(page, target)
        await asyncio.sleep(REST_SECONDS)
        paint, shift, before = await page.evaluate(f"[window.largestPaint, window.layoutShift, {REQUESTS}]")
        await page.mouse.move(WINDOW["width"] / 2, WINDOW["height"] / 2)
        for _ in range(MOST_STEPS):
            await page.mouse.wheel(0, SCROLL_STEP)
            await asyncio.sleep(SCROLL_SECONDS)
            if await page.evaluate(AT_THE_END):
                break
        await asyncio.sleep(REST_SECONDS)
        in_all, after = await page.evaluate(f"[window.layoutShift, {REQUESTS}]")
    more = tuple((address, n_bytes) for address, n_bytes in after[len(before) :])
    return FirstLoad(filled, paint / 1000, shift, more, in_all - shift)


def chromium_path() -> str | None:
    """Return the machine's Chromium, preferably a full one as readers have; None means Playwright's own."""
    names = ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell")
    return next(filter(None, map(shutil.which, names)), None)


MOST_RESTS = 60
EVENTS = ("requestWillBeSent", "requestWillBeSentExtraInfo", "loadingFinished")
OF_ITS_CONNECTION = {"host", "connection", "content-length", "cookie"}
"""Headers that a client sets for each connection and reader."""


@dataclass(frozen=True)
class Request:
    """One request of a load.

    ``after`` are the numbers of the requests that had been answered when Chromium made this one.
    ``before_filled`` says whether it was made before the table was filled.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: str | None
    after: tuple[int, ...]
    before_filled: bool
    n_bytes: int


@dataclass(frozen=True)
class Load:
    """The requests of one reader with an empty cache to the page's own server, in their order.

    ``left_out`` are addresses that cannot be repeated: at other servers, or never answered to the end.
    """

    origin: str
    requests: tuple[Request, ...]
    left_out: tuple[str, ...]

    @property
    def to_filled(self) -> tuple[int, int]:
        """Return bytes over the wire (packed bodies and headers) and requests before the table was filled."""
        sizes = [request.n_bytes for request in self.requests if request.before_filled]
        return sum(sizes), len(sizes)

    @property
    def in_all(self) -> tuple[int, int]:
        """Return bytes over the wire and requests until the page is idle."""
        return sum(request.n_bytes for request in self.requests), len(self.requests)


async def record(browser, target: Target) -> Load:
    """Open a page in Chromium with an empty cache, and return its requests once no more follow."""
    events: list[tuple[str, dict]] = []
    async with fresh_page(browser, target) as page:
        client = await page.context.new_cdp_session(page)
        await client.send("Network.enable")
        for name in EVENTS:
            client.on(f"Network.{name}", lambda event, name=name: events.append((name, event)))
        opened, seconds = await open_until_filled(page, target)
        for _ in range(MOST_RESTS):
            before = len(events)
            await asyncio.sleep(REST_SECONDS)
            if len(events) == before:
                break
    return load_of(events, target.url.rstrip("/"), opened + seconds)


def load_of(events: Sequence[tuple[str, dict]], origin: str, filled_at: float) -> Load:
    """Return the load recorded by (name, event) pairs of the DevTools protocol's Network domain.

    ``filled_at`` is in seconds since 1970. Images within the page (``data:``) are not requests.
    """
    made, sent, answered = ({event["requestId"]: event for kind, event in events if kind == name}
                            for name in EVENTS)  # fmt: skip
    made = {number: event for number, event in made.items() if event["request"]["url"].startswith("http")}
    again = [number for number, event in made.items()
             if number in answered and event["request"]["url"].startswith(origin + "/")]  # fmt: skip
    again.sort(key=lambda number: made[number]["timestamp"])
    requests = []
    for number in again:
        event, asked = made[number], made[number]["request"]
        headers = sent.get(number, asked)["headers"]
        requests.append(Request(
            method=asked["method"],
            path=asked["url"].removeprefix(origin),
            headers={name: value for name, value in headers.items() if name.lower() not in OF_ITS_CONNECTION},
            body=asked.get("postData"),
            after=tuple(place for place, earlier in enumerate(again)
                        if answered[earlier]["timestamp"] <= event["timestamp"]),
            before_filled=event["wallTime"] <= filled_at,
            n_bytes=int(answered[number]["encodedDataLength"]),
        ))  # fmt: skip
    left_out = tuple(event["request"]["url"] for number, event in made.items() if number not in again)
    return Load(origin, tuple(requests), left_out)


CONNECTIONS = 6
TIMES_AGAIN = 3
SESSION = re.compile(r"""(?:session_hash["']?\s*[=:]\s*["']?|/heartbeat/)(\w+)""")


async def read_at_once(load: Load, n_readers: int) -> list[float]:
    """Return the seconds until each reader has all that Chromium asked for before the table was filled.

    The readers start together, and then ask for the rest of the load as a browser does.

    Raises:
        ExceptionGroup: Of httpx2.HTTPStatusError or httpx2.TransportError, if a response is not a success.
    """
    clients = [_client(load) for _ in range(n_readers)]
    try:
        begun = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            readers = [group.create_task(_read(client, load, begun)) for client in clients]
        return [reader.result() for reader in readers]
    finally:
        for client in clients:
            await client.aclose()


def _client(load: Load) -> httpx2.AsyncClient:
    limits = httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
    return httpx2.AsyncClient(
        base_url=load.origin, limits=limits, timeout=WAIT_SECONDS, trust_env=False, verify=False
    )


async def _read(client: httpx2.AsyncClient, load: Load, begun: float) -> float:
    sessions = sessions_of(load)
    there = [asyncio.Event() for _ in load.requests]

    async def ask(number: int, request: Request) -> float:
        for earlier in request.after:
            await there[earlier].wait()
        await _fetch(client, request, sessions)
        there[number].set()
        return time.perf_counter() - begun

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask(number, request)) for number, request in enumerate(load.requests)]
    asked = zip(tasks, load.requests, strict=True)
    return max(task.result() for task, request in asked if request.before_filled)


async def _fetch(client: httpx2.AsyncClient, request: Request, sessions: dict[str, str]) -> None:
    """Send a request and read the response to its end without decompressing it, as only browsers do that."""
    path, body = (in_session(text, sessions) for text in (request.path, request.body))
    answer = await _send(
        client, client.build_request(request.method, path, headers=request.headers, content=body)
    )
    try:
        answer.raise_for_status()
        async for _ in answer.aiter_raw():
            pass
    finally:
        await answer.aclose()


async def _send(client: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
    """Return a response whose body is still unread. Like browsers, repeat a GET on a closed connection."""
    for _ in range(TIMES_AGAIN if request.method == "GET" else 0):
        with suppress(httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError):
            return await client.send(request, stream=True)
    return await client.send(request, stream=True)


def sessions_of(load: Load) -> dict[str, str]:
    """Return a new name for each of Gradio's session hashes in the load; readers do not share sessions."""
    texts = [text for request in load.requests for text in (request.path, request.body) if text]
    found = {name for text in texts for name in SESSION.findall(text)}
    return {name: uuid4().hex[: len(name)] for name in found}


def in_session(text: str | None, sessions: dict[str, str]) -> str | None:
    """Return a path or body with the recorded session names replaced by ``sessions``."""
    for recorded, own in sessions.items():
        text = text and text.replace(recorded, own)
    return text
