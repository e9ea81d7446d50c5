"""A board of more judges than the page opens with, in a real browser: scrolled, shared, without scripts."""

import threading
from types import SimpleNamespace

import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from playwright.sync_api import expect

from arb.core.suites.profile import SuiteProfile
from space.pages.leaderboard.page import build_leaderboard_router
from space.services import Services
from space.web.frame import PageFrame
from space.web.responses import StaticAssets
from tests.support.boards import board, cell, label, row
from tests.support.browsing import every_form, faults

pytestmark = pytest.mark.browser

N_ROWS = 250


def many_judges():
    """Judges of falling precision, the even ones with a cost: a long name and wide ranks come late."""
    return board(
        *(
            row(
                f"Judge {n}" if n < 150 else f"Judge {n} of a name that is much longer than those before it",
                label(cell(600 - 2 * n, 200 + n, 100, 300, ci=[0.4, 0.8]), (n + 1, 1 + n // 2, N_ROWS)),
                id=f"j{n}",
                cost=None if n % 2 else {"usd_per_1000": 0.5 + n * 9, "rows": 1, "of": 1},
            )
            for n in range(N_ROWS)
        )
    )


@pytest.fixture(scope="module")
def long_board():
    """The address of the page over the board, served from a thread."""
    found = many_judges()
    profile = SuiteProfile(title="A suite")
    suite = SimpleNamespace(split=lambda name: [], profile=profile, main_target=found.main)
    records, intake = SimpleNamespace(board=lambda: found), SimpleNamespace(read_only_reason=None)
    service = SimpleNamespace(
        records=records, intake=intake, suite=suite, labels_for_public_figures=lambda: None
    )
    static = StaticAssets()
    app = FastAPI()
    app.include_router(static.router())
    services = Services(service, None)
    services.__dict__["verdicts"] = SimpleNamespace(
        version="", splits_with_errors=lambda row: (), has_hard_subset=lambda: False
    )
    app.include_router(build_leaderboard_router(services, PageFrame(static, profile=profile)))

    @app.get("/judge")
    def judge():
        return HTMLResponse("<link rel='icon' href='data:,'>a judge")

    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.05)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


SHIFTS = """
window.shift = 0;
new PerformanceObserver((list) => { for (const entry of list.getEntries()) window.shift += entry.value; })
    .observe({ type: "layout-shift", buffered: true });
"""


JUDGE_ROWS = "#board-table tbody.judges tr[data-row]"
ASKS_FOR_MORE = "() => document.querySelector('.ahead')?.getBoundingClientRect().top < innerHeight"
"""Whether what asks for the next rows is in sight."""


def numbers(page) -> list[int]:
    return [int(found[1:]) for found in page.eval_on_selector_all(
        JUDGE_ROWS, "rows => rows.map(row => row.dataset.row)")]  # fmt: skip


def rows_are(page, expected) -> None:
    """Wait until these rows stand there, in this order."""
    expect(page.locator(JUDGE_ROWS)).to_have_count(len(expected))
    assert numbers(page) == list(expected)


def scroll_to_the_end(page) -> None:
    """Turn the wheel until the rows are all there; each step is loaded before one comes to it."""
    rows = page.locator(JUDGE_ROWS)
    while (n := rows.count()) < N_ROWS:
        height = page.evaluate("scrollY")
        page.mouse.wheel(0, 500)
        page.wait_for_function("before => scrollY > before", arg=height)
        if page.evaluate(ASKS_FOR_MORE):
            expect(rows).not_to_have_count(n)


@pytest.mark.slow
def test_scrolling_brings_all_rows_in_their_order_and_moves_nothing(page, long_board):
    page.add_init_script(SHIFTS)
    asked = []
    page.on("request", lambda request: asked.append(request.url.removeprefix(long_board)))
    page.goto(long_board)
    page.wait_for_load_state("networkidle")
    rows_are(page, range(100))
    expect(page.locator("#board-count")).to_have_text("100 of 250 judges")
    first, while_loading = len(asked), page.evaluate("window.shift")
    scroll_to_the_end(page)
    expect(page.locator("#board-count")).to_have_text("250 judges")
    rows_are(page, range(N_ROWS))
    assert asked[first:] == ["/board/rows?after=100&rows=1-200", "/board/rows?after=200&rows=1-300"]
    page.wait_for_url("**/?rows=1-300")
    assert page.evaluate("window.shift") == while_loading
    # A slow network brings half of the masthead first, and its last words move: 0.0006 with SLOW_BROWSER=6.
    assert round(while_loading, 2) == 0
    expect(page.locator("template, tr.step")).to_have_count(0)


@pytest.mark.slow
def test_a_reload_and_back_show_the_rows_that_were_there(page, long_board):
    page.goto(long_board)
    scroll_to_the_end(page)
    page.wait_for_url("**/?rows=1-300")
    page.reload()
    rows_are(page, range(N_ROWS))
    page.locator("a.name", has_text="Judge 199").click()
    page.wait_for_url("**/judge?id=j199")
    page.go_back()
    rows_are(page, range(N_ROWS))


def test_search_is_over_all_rows_and_back_undoes_it(page, long_board):
    page.goto(long_board)
    page.get_by_label("Search").fill("judge 249")
    rows_are(page, [249])
    page.wait_for_url("**/?q=judge%20249")
    page.go_back()
    rows_are(page, range(100))


@pytest.mark.slow
def test_what_was_ticked_before_stays_ticked_and_rows_that_come_can_be_ticked(page, long_board):
    page.goto(long_board)
    page.get_by_label("Compare Judge 0 (tree)", exact=True).check()
    scroll_to_the_end(page)
    page.locator("tr[data-row=j249] .pick").check()
    expect(page.locator(".pick-bar a")).to_have_attribute("href", "/compare?judges=j0,j249")


def test_rows_that_cannot_be_loaded_leave_the_link_to_them(browser, long_board):
    context = browser.new_context()
    page = context.new_page()
    page.goto(long_board)
    context.route("**/board/rows?*", lambda route: route.abort())
    page.locator(".step a").scroll_into_view_if_needed()
    page.get_by_text("This could not be loaded").wait_for()
    page.get_by_role("link", name="Rows 101 to 200").click()
    page.wait_for_url("**/?rows=101-200#board")
    rows_are(page, range(100, 200))
    context.close()


def test_without_scripts_links_lead_through_the_rows(browser, long_board):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(long_board)
    for step in ("Rows 101 to 200", "Rows 201 to 250"):
        page.get_by_role("link", name=step).click()
    page.wait_for_url("**/?rows=201-250#board")
    expect(page.locator(JUDGE_ROWS)).to_have_count(50)
    page.get_by_role("link", name="Show all 250").click()
    expect(page.locator(JUDGE_ROWS)).to_have_count(250)
    context.close()


def test_a_printed_page_says_which_rows_it_has_and_offers_no_others(page, long_board):
    page.goto(long_board)
    page.emulate_media(media="print")
    expect(page.locator("tr.step")).to_be_hidden()
    expect(page.get_by_role("link", name="Show all")).to_be_hidden()
    expect(page.locator("#board-count")).to_be_visible()


@pytest.mark.slow
def test_a_long_board_stands_without_a_fault_in_every_form(page, long_board):
    for form in every_form(page):
        page.goto(f"{long_board}/?rows=101-200")
        page.wait_for_load_state("networkidle")
        assert faults(page) == [], form
