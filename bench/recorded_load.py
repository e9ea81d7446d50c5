"""What Chromium asks a server for when it opens a page: recorded once, to be asked again by many."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from bench.readers import Target, fresh_page, open_until_filled

REST_SECONDS = 1.5
MOST_RESTS = 60
EVENTS = ("requestWillBeSent", "requestWillBeSentExtraInfo", "loadingFinished")
OF_ITS_CONNECTION = {"host", "connection", "content-length", "cookie"}
"""Headers that a client sets anew for each connection and reader."""


@dataclass(frozen=True)
class Request:
    """One request of a load.

    ``after`` numbers the requests of the load that had been answered when Chromium made this one.
    ``before_filled`` says whether it was made before the table stood filled.
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
    """All that one reader with an empty cache asks the page's own server for, in the order of asking.

    ``left_out`` are addresses that cannot be asked again: at other servers, or never answered to the end.
    """

    origin: str
    requests: tuple[Request, ...]
    left_out: tuple[str, ...]

    @property
    def to_filled(self) -> tuple[int, int]:
        """Bytes over the wire, packed bodies and headers, and requests: those made before it was filled."""
        sizes = [request.n_bytes for request in self.requests if request.before_filled]
        return sum(sizes), len(sizes)

    @property
    def in_all(self) -> tuple[int, int]:
        """Bytes over the wire and requests until the page rests."""
        return sum(request.n_bytes for request in self.requests), len(self.requests)


async def record(browser, target: Target) -> Load:
    """Open a page in Chromium with an empty cache, until nothing more comes."""
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
    """The load in events of the DevTools protocol's Network domain, named without the domain.

    ``filled_at`` is in seconds since 1970. Images that lie in the page (``data:``) are not requests.
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
