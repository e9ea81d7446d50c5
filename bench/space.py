"""Measure how fast the leaderboard is for many readers: ``python -m bench.space`` (``--quick`` for a look).

1. A Space has 500 submissions, made through its own service. A bare Gradio page has the same rows in a
   ``gr.Dataframe`` from a CSV. Chromium opens each page once and its requests are recorded. Then 50
   concurrent readers make the same requests over HTTP. The benchmark measures the seconds until a reader has
   everything that Chromium had requested before the table was filled; the readers then load the rest, as a
   browser does. Two cores cannot render 50 pages at the same time, so a few pages are also opened in
   Chromium, alone and together with the 50 readers, to measure the seconds to the filled table on the
   screen. For a page that is opened alone, it also measures the largest paint, the layout shift, and the
   requests while scrolling to the end, which may only ask for a hundred rows at a time. Chromium counts the
   bytes, with compressed bodies and headers.
2. Clients that have its ETag request ``GET /api/board.json``; the result is in requests per second.
"""

import argparse
import asyncio
import csv
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median, quantiles

from bench.support.readers import (
    CONNECTIONS,
    FirstLoad,
    Load,
    Target,
    chromium_path,
    fresh_page,
    open_until_filled,
    read_at_once,
    read_in_chromium,
    record,
)
from bench.support.space_records import make_records
from space.pages.leaderboard.query import PAGE_ROWS

MOST_TIMES_AT_MEDIAN = 0.15
MOST_TIMES_AT_95TH = 0.2
MOST_BYTES, MOST_REQUESTS, MOST_TIMES_AT_PAINT = 100_000, 8, 0.25
MORE_ROWS = "/board/rows?"
"""The path of further rows, which scrolling may request; it may request nothing else."""
OLD = {"table filled": "0.37", "bytes": "0.41 to 0.78"}
"""The ratios to the bare page when the leaderboard was still a page of Gradio."""


@dataclass(frozen=True)
class Measured:
    """A page's recorded requests, its loads alone in Chromium, and seconds for and among many readers."""

    target: Target
    load: Load
    over_http: list[float] = field(default_factory=list)
    alone: list[FirstLoad] = field(default_factory=list)
    among: list[float] = field(default_factory=list)


def report(ours: Measured, bare: Measured, n_readers: int) -> bool:
    """Print both sides and their ratios; return whether the targets hold."""
    filled_alone = [[load.filled for load in side.alone] for side in (ours, bare)]
    ways = {
        f"{n_readers} readers over HTTP": (ours.over_http, bare.over_http),
        "Chromium, one page": tuple(filled_alone),
        f"Chromium among {n_readers}": (ours.among, bare.among),
    }
    for place, one in enumerate((ours, bare)):
        (filled_bytes, filled), (all_bytes, in_all) = one.load.to_filled, one.load.in_all
        print(
            f"  {one.target.name}: {filled_bytes / 1e3:.0f} kB in {filled} requests to the filled table,",
            end=" ",
        )
        print(f"{all_bytes / 1e3:.0f} kB in {in_all} until the page is idle")
        for way, sides in ways.items():
            print(f"    {way:<26}{describe_seconds(sides[place])}   ({len(sides[place])} of them)")
        for address in one.load.left_out:
            print(f"    not asked again: {address}")
    ratio_of_bytes = [
        ours.load.to_filled[0] / bare.load.to_filled[0],
        ours.load.in_all[0] / bare.load.in_all[0],
    ]
    print(
        f"  ratios: bytes {ratio_of_bytes[0]:.2f} to the filled table, {ratio_of_bytes[1]:.2f} in all", end=""
    )
    print(f" (as a page of Gradio: {OLD['bytes']}; table filled {OLD['table filled']})")
    for way, (our_seconds, bare_seconds) in ways.items():
        print(f"    {way:<26}median {median(our_seconds) / median(bare_seconds):6.2f}     95th", end=" ")
        print(f"{at_95th(our_seconds) / at_95th(bare_seconds):6.2f}")
    print(f"    (targets for the readers: median at most {MOST_TIMES_AT_MEDIAN}, 95th {MOST_TIMES_AT_95TH})")
    return first_load_holds(ours, bare) and holds(ours.over_http, bare.over_http)


def first_load_holds(ours: Measured, bare: Measured) -> bool:
    """Print the first load of our page in Chromium; return whether it meets its targets."""
    n_bytes, n_requests = ours.load.in_all
    paint, bare_paint = (median(load.largest_paint for load in side.alone) for side in (ours, bare))
    shift = max(load.layout_shift for load in ours.alone)
    print(f"  first load in Chromium: {n_bytes / 1e3:.0f} kB in {n_requests} requests", end=" ")
    print(f"(targets {MOST_BYTES / 1e3:.0f} kB, {MOST_REQUESTS})")
    print(f"    largest paint after {paint:.2f} s, of the bare page after {bare_paint:.2f} s:", end=" ")
    print(f"{paint / bare_paint:.2f} (target {MOST_TIMES_AT_PAINT}); layout shift {shift:.3f} (0)")
    more = max((load.when_scrolled for load in ours.alone), key=len)
    others = [address for address, _ in more if MORE_ROWS not in address]
    scrolled_shift = max(load.shift_when_scrolled for load in ours.alone)
    print(f"    scrolled to its end: {sum(n for _, n in more) / 1e3:.0f} kB in {len(more)} requests", end=" ")
    print(f"for more rows, {len(others)} of them for something else (0); shift {scrolled_shift:.3f} (0)")
    few = n_bytes <= MOST_BYTES and n_requests <= MOST_REQUESTS and not others
    still = round(shift, 3) == round(scrolled_shift, 3) == 0
    return few and still and paint / bare_paint <= MOST_TIMES_AT_PAINT


def holds(ours: Sequence[float], bare: Sequence[float]) -> bool:
    """Return whether our readers' waiting times meet the targets, at the median and the 95th percentile."""
    at_median = median(ours) / median(bare)
    return at_median <= MOST_TIMES_AT_MEDIAN and at_95th(ours) / at_95th(bare) <= MOST_TIMES_AT_95TH


def describe_seconds(seconds: Sequence[float]) -> str:
    return f"median {median(seconds):6.2f} s   95th {at_95th(seconds):6.2f} s"


def at_95th(seconds: Sequence[float]) -> float:
    """Return the 95th percentile, interpolated."""
    return quantiles(seconds, n=20, method="inclusive")[-1] if len(seconds) > 1 else seconds[0]


START_SECONDS = 180


@contextmanager
def serving(
    log: Path,
    command: list[str],
    port: int,
    at_start: Callable[[], object] | None = None,
    /,
    **environment: str,
) -> Iterator[str]:
    """Serve a Python module in the block, and yield its address once it answers.

    ``at_start`` is called in the new process before the module runs.

    Raises:
        RuntimeError: The server does not start. The message holds its output.
    """
    url = f"http://127.0.0.1:{port}"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", *command],
            env={**os.environ, **environment},
            stdout=out,
            stderr=out,
            preexec_fn=at_start,
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _answers(url):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{command[0]} does not serve:\n{log.read_text(errors='replace')}")
            time.sleep(0.2)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=120)


@contextmanager
def free_port() -> Iterator[int]:
    """Yield a free port, held in the block so that only a server with SO_REUSEADDR can use it."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.status == 200
    except OSError:
        return False


class _Asker(asyncio.Protocol):
    """A client that sends one request again and again on one connection, after each response."""

    def __init__(self, request: bytes, times: int, done: asyncio.Future) -> None:
        self._request, self._left, self._done = request, times, done
        self._seen = b""

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._seen += data
        if not self._seen.endswith(b"\r\n\r\n"):
            return
        if b" 304 " not in self._seen[:16]:
            self._done.set_exception(RuntimeError(f"not a 304: {self._seen[:80]!r}"))
            self._transport.close()
            return
        self._seen, self._left = b"", self._left - 1
        if self._left:
            self._transport.write(self._request)
        else:
            self._done.set_result(None)
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(error or ConnectionError("closed before the last answer"))


async def requests_a_second(url: str, path: str, n_requests: int, n_connections: int) -> float:
    """Return the requests per second for ``path`` by clients that have its ETag (304, no body)."""
    with urllib.request.urlopen(url + path, timeout=60) as answer:
        tag = answer.headers["ETag"]
    host = url.removeprefix("http://")
    request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nIf-None-Match: {tag}\r\n\r\n".encode()
    port = int(host.rpartition(":")[2])
    loop = asyncio.get_running_loop()
    done = [loop.create_future() for _ in range(n_connections)]
    begun = time.perf_counter()
    for future in done:
        times = n_requests // n_connections
        await loop.create_connection(lambda f=future, t=times: _Asker(request, t, f), "127.0.0.1", port)
    await asyncio.gather(*done)
    return n_requests / (time.perf_counter() - begun)


AT_LEAST_A_SECOND = 1_000
CLIENTS = 16
FIGURES = ("precision", "recall", "f1")


@dataclass(frozen=True)
class Sizes:
    """Numbers of submissions, readers, rounds, loads in Chromium alone, and requests with an ETag."""

    submissions: int
    readers: int
    rounds: int
    chromium: int
    requests: int


FULL = Sizes(submissions=500, readers=50, rounds=3, chromium=3, requests=10_000)
QUICK = Sizes(submissions=40, readers=8, rounds=1, chromium=1, requests=2_000)


def write_csv(board: dict, path: Path) -> int:
    """Write the board's rows for the bare page; return their number."""
    rows = [row for row in board["rows"] if row["labels"]["success"]]
    benchmarks = sorted({name for row in rows for name in row["labels"]["success"]["by_benchmark"]})
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["rank", "judge", "kind", "inputs", "model", *FIGURES, "low", "high", *benchmarks, "date"]
        )
        for row in rows:
            found = row["labels"]["success"]
            overall, by_benchmark = found["overall"], found["by_benchmark"]
            parts = [_percent((by_benchmark.get(name) or {}).get("precision")) for name in benchmarks]
            figures = [_percent(overall[name]) for name in FIGURES]
            ends = [_percent(end) for end in overall.get("precision_ci") or (None, None)]
            place = found["rank"]["place"] if found["rank"] else ""
            about = [row[name] for name in ("judge", "kind", "inputs", "model")]
            writer.writerow([place, *about, *figures, *ends, *parts, row["date"][:10]])
    return len(rows)


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"


async def measure(targets: Sequence[Target], sizes: Sizes) -> list[Measured]:
    """Record both pages, load each alone in Chromium, then load them in rounds with all readers."""
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium_path())
        found = [Measured(target, await record(browser, target)) for target in targets]
        for _ in range(sizes.chromium):
            for one in found:
                one.alone.append(await read_in_chromium(browser, one.target))
        for number in range(sizes.rounds):
            for one in found if number % 2 == 0 else found[::-1]:
                await _one_round(browser, one, sizes.readers)
        await browser.close()
    return found


async def _one_round(browser, one: Measured, n_readers: int) -> None:
    """Start one Chromium and the readers over HTTP together; record and print the seconds of both."""
    async with fresh_page(browser, one.target) as page:
        begun, worked = time.perf_counter(), time.process_time()
        (_, in_chromium), seconds = await asyncio.gather(
            open_until_filled(page, one.target), read_at_once(one.load, n_readers)
        )
    passed, worked = time.perf_counter() - begun, time.process_time() - worked
    one.over_http.extend(seconds)
    one.among.append(in_chromium)
    print(f"  {one.target.name:<19}{describe_seconds(seconds)}   in Chromium {in_chromium:5.2f} s", end="   ")
    print(f"(all loaded in {passed:.1f} s; {worked:.1f} s of CPU time of the readers)", flush=True)


def space_target(url: str, board: dict) -> Target:
    """Return our leaderboard as a target: filled if its first rows are visible and all are in the page."""
    judges = [row for row in board["rows"] if row["labels"]["success"] and row["provenance"] != "reference"]
    n_rows = sum(row["provenance"] != "scored" or row["labels"]["success"]["best"] for row in judges)
    n_rows = min(n_rows, PAGE_ROWS)
    rows = "document.querySelectorAll('#board-table tbody.judges tr[data-row]')"
    return Target("the leaderboard", url, f"{rows}.length >= {n_rows} && shown({rows}).length > 10")


def bare_target(url: str, board: dict) -> Target:
    """Return the bare page as a target: filled if the first row's name is in a visible cell."""
    name = json.dumps(board["rows"][0]["judge"])
    cells = "shown(document.querySelectorAll('.cell-wrap'))"
    return Target("a bare Gradio page", url, f"{cells}.some((cell) => cell.textContent.includes({name}))")


def in_advance(sizes: Sizes, n_rows: int) -> str:
    """Return a text on what is going to be measured and what is not."""
    return f"""{n_rows} rows. The servers and the readers share {os.cpu_count()} cores.
{sizes.rounds} rounds of {sizes.readers} readers at once over HTTP, {CONNECTIONS} connections each. They
replay the requests of Chromium in one recorded load, and draw nothing. A real page in Chromium opens
together with them. Before that, {sizes.chromium} of each open one at a time."""


def bench(folder: Path, sizes: Sizes) -> bool:
    print(f"recording {sizes.submissions} submissions …", flush=True)
    make_records(folder / "state", sizes.submissions)
    with (
        free_port() as port,
        free_port() as bare_port,
        serving(
            folder / "space.log", ["space", "serve"], port,
            ARB_STATE_DIR=str(folder / "state"), ARB_PORT=str(port),
        ) as url,
    ):  # fmt: skip
        with urllib.request.urlopen(f"{url}/api/board.json", timeout=120) as answer:
            board = json.load(answer)
        n_rows = write_csv(board, folder / "rows.csv")
        command = ["bench.support.bare_page", str(folder / "rows.csv"), str(bare_port)]
        with serving(folder / "bare.log", command, bare_port) as bare_url:
            targets = space_target(url, board), bare_target(bare_url, board)
            print(in_advance(sizes, n_rows), flush=True)
            fast = report(*asyncio.run(measure(targets, sizes)), sizes.readers)
        rate = asyncio.run(requests_a_second(url, "/api/board.json", sizes.requests, CLIENTS))
    print(f"GET /api/board.json with its ETag (304): {rate:,.0f} a second", end="   ")
    print(f"(target over {AT_LEAST_A_SECOND:,})")
    print(f"  requested by one process on the same cores, over {CLIENTS} open sockets")
    return fast and rate > AT_LEAST_A_SECOND


def main(arguments: list[str] | None = None) -> int:
    """Print the figures; return 1 if a target is missed. ``--quick`` checks no targets."""
    parser = argparse.ArgumentParser(prog="python -m bench.space", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="use few submissions and readers, and no targets"
    )
    parser.add_argument("--rounds", type=int, default=FULL.rounds, help="number of rounds of readers")
    parser.add_argument("--folder", type=Path, help="folder to keep the records in, for the next run")
    options = parser.parse_args(arguments)
    sizes = QUICK if options.quick else replace(FULL, rounds=options.rounds)
    with tempfile.TemporaryDirectory(prefix="bench-space-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        holds = bench(folder, sizes)
    if options.quick:
        return 0
    print("All targets are met." if holds else "At least one target was MISSED.")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
