import asyncio
import re
import threading
import time

import httpx2
import pytest

from bench import space
from bench.space import Measured, at_95th, first_load_holds, holds, report, requests_a_second
from bench.support.readers import CONNECTIONS, FirstLoad, Load, Request, Target, read_at_once, record
from tests.bench.tiny_server import TinyServer

HERE = "http://127.0.0.1:1"
PAGE = """<!doctype html><table></table><script>
addEventListener("load", async () => {
  document.querySelector("table").innerHTML = await (await fetch("/rows")).text();
  setTimeout(() => fetch("/later", {method: "POST", body: "x"}).then((answer) => answer.text()), 300);
});</script>"""
"""A page that asks for its rows once it is loaded itself."""
ROWS = "<tr><td>first</td></tr>"


def request(
    path: str, *after: int, filled: bool = True, method: str = "GET", body: str | None = None
) -> Request:
    return Request(method, path, {"Accept-Encoding": "gzip, br"}, body, after, filled, 100)


def test_every_reader_asks_for_each_once_and_for_nothing_before_what_it_waits_for():
    requests = (request("/"), request("/style", 0), request("/script", 0), request("/rows", 0, 2))
    with TinyServer({}).running() as server:
        seconds = asyncio.run(read_at_once(Load(server.url, requests, ()), 3))
    assert len(seconds) == 3
    paths = [path for path, *_ in server.asked]
    assert sorted(paths) == sorted(["/", "/style", "/script", "/rows"] * 3)
    # the k-th reader to get its rows has its script, so as many scripts as rows were asked for before
    for place, path in enumerate(paths):
        if path == "/rows":
            assert paths[:place].count("/script") > paths[:place].count("/rows")
    assert {headers["Accept-Encoding"] for _, _, headers, _ in server.asked} == {"gzip, br"}


def test_a_reader_has_as_many_connections_as_a_browser():
    together = threading.Barrier(CONNECTIONS, timeout=120)  # breaks when fewer than six ask at once
    requests = tuple(request("/file") for _ in range(2 * CONNECTIONS))
    with TinyServer({"/file": lambda _: str(together.wait())}).running() as server:
        asyncio.run(read_at_once(Load(server.url, requests, ()), 1))
    assert len({port for *_, port in server.asked}) == CONNECTIONS == 6


def test_the_table_is_filled_before_the_rest_of_the_load_is_asked_for():
    rest_asked_at = []
    requests = (request("/"), request("/rest", 0, filled=False))
    with TinyServer({"/rest": lambda _: str(rest_asked_at.append(time.perf_counter()))}).running() as server:
        before = time.perf_counter()
        (seconds,) = asyncio.run(read_at_once(Load(server.url, requests, ()), 1))
    assert len(rest_asked_at) == 1
    assert before + seconds <= rest_asked_at[0]


def test_every_reader_has_a_session_of_its_own():
    requests = (
        request("/queue/join", method="POST", body='{"data": [], "session_hash":"abc123xyz"}'),
        request("/queue/data?session_hash=abc123xyz", 0),
    )
    with TinyServer({}).running() as server:
        asyncio.run(read_at_once(Load(server.url, requests, ()), 2))
    joined = {
        re.search(r'"session_hash":"(\w+)"', body)[1] for path, body, *_ in server.asked if "join" in path
    }
    listened = {path.partition("=")[2] for path, *_ in server.asked if "data?" in path}
    assert joined == listened
    assert len(joined) == 2
    assert "abc123xyz" not in joined


def test_an_answer_that_is_no_success_ends_the_benchmark():
    with (
        TinyServer({}, status=500).running() as server,
        pytest.RaisesGroup(pytest.RaisesExc(httpx2.HTTPStatusError, match="500"), flatten_subgroups=True),
    ):
        asyncio.run(read_at_once(Load(server.url, (request("/"),), ()), 1))


def test_a_connection_that_the_server_closed_without_an_answer_is_no_failure():
    closed = []

    def close_once(path: str) -> str:
        if path not in closed:
            closed.append(path)
            raise ConnectionAbortedError
        return "rows"

    requests = (request("/"), request("/rows", 0))
    with TinyServer({"/rows": close_once}).running() as server:
        asyncio.run(read_at_once(Load(server.url, requests, ()), 1))
    assert [path for path, *_ in server.asked] == ["/", "/rows", "/rows"]


@pytest.mark.slow
@pytest.mark.browser
def test_what_chromium_asks_for_is_recorded_and_asked_again(chromium):
    from playwright.async_api import async_playwright

    async def record_once(target: Target) -> Load:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=chromium)
            load = await record(browser, target)
            await browser.close()
            return load

    with TinyServer({"/": PAGE, "/rows": ROWS}).running() as server:
        is_filled = "shown(document.querySelectorAll('td')).length === 1"
        load = asyncio.run(record_once(Target("a table", server.url, is_filled)))
        found = {one.path: one for one in load.requests if one.path != "/favicon.ico"}
        assert list(found) == ["/", "/rows", "/later"]
        assert found["/rows"].after == (0,)
        assert [one.before_filled for one in found.values()] == [True, True, False]
        assert "br" in found["/rows"].headers["Accept-Encoding"]
        assert found["/later"].body == "x"
        assert found["/rows"].n_bytes > len(ROWS)  # with its headers
        server.asked.clear()
        asyncio.run(read_at_once(load, 2))
    assert sorted(path for path, *_ in server.asked) == sorted(2 * [one.path for one in load.requests])


def test_percentiles_and_targets():
    # 1 to 101: five in a hundred lie above 96
    assert at_95th(range(1, 102)) == 96
    assert at_95th([3.0]) == 3.0
    bare = [1.0] * 10
    assert holds([0.15] * 10, bare)
    assert not holds([0.16] * 10, bare)  # slower at the median
    assert holds([0.1] * 9 + [0.28], bare)  # 95th, 0.95 * 9 = 8.55 places up: 0.1 + 0.55 * 0.18 = 0.199
    assert not holds([0.1] * 9 + [0.29], bare)  # 0.1 + 0.55 * 0.19 = 0.2045


def test_the_report_names_what_was_not_asked_again(capsys):
    load = Load(HERE, (request("/"), request("/rest", filled=False)), (f"{HERE}/heartbeat",))
    ours, bare = (
        Measured(Target(name, HERE, "true"), load, [seconds], [FirstLoad(seconds, seconds, 0.0)], [seconds])
        for name, seconds in (("ours", 0.5), ("bare", 5.0))
    )
    assert report(ours, bare, 50)
    printed = capsys.readouterr().out
    assert printed.count(f"not asked again: {HERE}/heartbeat") == 2
    assert "50 readers over HTTP      median   0.10     95th   0.10" in printed
    assert "2 requests (targets 100 kB, 8)" in printed
    assert (
        "scrolled to its end: 0 kB in 0 requests for more rows, 0 of them for something else (0)" in printed
    )
    assert "largest paint after 0.50 s, of the bare page after 5.00 s: 0.10" in printed


MORE_ROWS = (f"{HERE}/board/rows?after=100&rows=1-200", 14_000)


@pytest.mark.parametrize(
    ("load", "is_met"),
    [
        (FirstLoad(1, 1, 0, (MORE_ROWS, MORE_ROWS)), True),
        (FirstLoad(1, 2, 0), False),
        (FirstLoad(1, 1, 0.01), False),
        (FirstLoad(1, 1, 0, (MORE_ROWS, (f"{HERE}/font", 9))), False),
        (FirstLoad(1, 1, 0, (), 0.01), False),
    ],
)
def test_a_late_paint_a_shift_and_scrolling_that_asks_for_more_than_rows_miss_the_target(load, is_met):
    requests = Load(HERE, (request("/"),), ())
    ours = Measured(Target("ours", HERE, "true"), requests, alone=[load])
    bare = Measured(Target("bare", HERE, "true"), requests, alone=[FirstLoad(5, 5, 0)])
    assert first_load_holds(ours, bare) == is_met


def test_the_etag_is_sent_as_often_as_asked():
    with TinyServer({"/board": "{}"}).running() as server:
        rate = asyncio.run(requests_a_second(server.url, "/board", 40, 4))
    assert rate > 0
    with_tag = [port for *_, headers, port in server.asked if headers.get("If-None-Match") == '"one"']
    assert len(with_tag) == 40
    assert {headers["Host"] for *_, headers, _ in server.asked} == {server.url.removeprefix("http://")}
    assert len(set(with_tag)) == 4


def test_the_bare_page_gets_the_boards_rows(tmp_path):
    cell = {"precision": 0.5, "recall": None, "f1": 0.25, "precision_ci": [0.4, 0.6]}
    found = {"overall": cell, "by_benchmark": {"webarena": cell}, "rank": {"place": 2}}
    row = {"judge": "A", "kind": "LLM judge", "inputs": "tree", "model": "m", "date": "2026-01-02T03:04:05Z"}
    board = {"rows": [row | {"labels": {"success": found}}, row | {"labels": {"success": None}}]}
    assert space.write_csv(board, tmp_path / "rows.csv") == 1
    assert (tmp_path / "rows.csv").read_text().splitlines() == [
        "rank,judge,kind,inputs,model,precision,recall,f1,low,high,webarena,date",
        "2,A,LLM judge,tree,m,50.0,,25.0,40.0,60.0,50.0,2026-01-02",
    ]


@pytest.mark.slow
@pytest.mark.browser
def test_one_command_measures_both_pages(printed_by, tmp_path):
    printed = printed_by("space", "--quick", "--folder", str(tmp_path))
    for line in (
        r"the leaderboard: \d+ kB in \d+ requests to the filled table, \d+ kB in \d+ until the page is idle",
        r"8 readers over HTTP +median +[\d.]+ s +95th +[\d.]+ s   \(8 of them\)",
        r"Chromium, one page +median +[\d.]+ s +95th +[\d.]+ s   \(1 of them\)",
        r"Chromium among 8 +median +[\d.]+ s +95th +[\d.]+ s   \(1 of them\)",
        r"first load in Chromium: \d+ kB in \d+ requests",
        r"scrolled to its end: \d+ kB in \d+ requests for more rows, 0 of them for something else",
        r"largest paint after [\d.]+ s, of the bare page after [\d.]+ s: [\d.]+ .*; layout shift [\d.]+",
        r"GET /api/board.json with its ETag \(304\): [\d,]+ a second",
    ):
        assert re.search(line, printed), line
