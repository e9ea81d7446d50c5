"""The leaderboard's choices: shared by their address, made by keyboard, shown without waiting for scripts."""

import re
from urllib.parse import parse_qs, urlparse

import pytest
from playwright.sync_api import expect

from tests.support.browsing import PAPER_ROWS, ROWS, open_board

pytestmark = [pytest.mark.browser, pytest.mark.labels]


# Shared addresses


def shown(page) -> list[str]:
    """The rows of the table, as ids, from the top."""
    return page.eval_on_selector_all(ROWS, "rows => rows.map(row => row.dataset.row)")


def chosen(page) -> dict[str, list[str]]:
    """What the address holds."""
    return parse_qs(urlparse(page.url).query)


def test_every_choice_is_in_the_address_and_a_reload_gives_the_same_page(page, space):
    open_board(page, space)
    page.get_by_label("Repetition").check()
    page.get_by_label("Metric").select_option("F1")
    page.get_by_label("Search").fill("gpt")
    page.locator("[data-menu=inputs] summary").click()
    page.locator("[data-menu=inputs]").get_by_label("tree").check()
    expect(page).to_have_url(re.compile("inputs=tree"))
    expect(page.locator(PAPER_ROWS)).to_have_count(2)
    assert chosen(page) == {"label": ["repetition"], "figure": ["f1"], "inputs": ["tree"], "q": ["gpt"]}
    rows, address = shown(page), page.url

    page.reload()
    assert page.url == address
    assert shown(page) == rows
    assert page.get_by_label("Repetition").is_checked()
    assert page.get_by_label("Metric").input_value() == "f1"
    assert page.get_by_label("Search").input_value() == "gpt"
    assert page.locator("[data-menu=inputs] summary").inner_text().endswith("tree")


def test_an_address_with_nonsense_shows_the_board_and_says_so(browser, space):
    page = browser.new_context().new_page()  # Chromium writes a 422 into the console
    page.goto(space.url + "/?label=nonsense&q=qwen&other=kept")
    notice = page.locator(".address-notice")
    expect(notice).to_contain_text("has an invalid value for label")
    expect(page.locator("#board-table tbody.judges tr[data-row]")).to_have_count(3)
    page.get_by_label("Search").fill("")
    expect(page).to_have_url(space.url + "/")
    page.context.close()


def test_back_undoes_a_choice_and_forward_makes_it_again(page, space):
    open_board(page, space)
    page.get_by_label("Repetition").check()
    page.wait_for_url("**/?label=repetition")
    expect(page.locator(PAPER_ROWS)).to_have_count(9)
    page.get_by_label("Metric").select_option("F1")
    page.wait_for_url("**/?label=repetition&figure=f1")
    page.go_back()
    expect(page.get_by_label("Metric")).to_have_value("precision")
    expect(page.get_by_label("Repetition")).to_be_checked()
    page.go_back()
    expect(page.locator(PAPER_ROWS)).to_have_count(13)
    expect(page.get_by_label("Success", exact=True)).to_be_checked()
    page.go_forward()
    expect(page.locator(PAPER_ROWS)).to_have_count(9)


# Without waiting for scripts


def test_without_scripts_the_table_is_filled_and_the_form_works(browser, space):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(space.url + "/?q=qwen")
    expect(page.locator(ROWS)).to_have_count(3)
    page.get_by_label("Search").fill("aer")
    page.get_by_role("button", name="Show", exact=True).click()
    page.wait_for_url("**q=aer**")
    expect(page.locator(ROWS)).to_have_count(2)
    context.close()


def test_choices_made_before_the_scripts_came_count_once_they_are_there(page, space):
    held = []
    page.route("**/bundles/*.js", lambda route: held.append(route))
    page.goto(space.url, wait_until="commit")
    page.get_by_label("Repetition").check()
    page.locator("[data-menu=inputs] summary").click()
    page.locator("[data-menu=inputs]").get_by_label("tree").check()
    page.get_by_label("Metric").select_option("F1")
    page.get_by_label("Search").fill("gpt")
    expect(page).to_have_url(space.url + "/")
    page.route("**/bundles/*.js", lambda route: route.continue_())  # late ones are not held
    for route in held:
        route.continue_()
    expect(page).to_have_url(space.url + "/?label=repetition&figure=f1&inputs=tree&q=gpt")
    expect(page.locator(PAPER_ROWS)).to_have_count(2)
    expect(page.locator("[data-menu=inputs] summary")).to_contain_text("tree")


def test_back_pressed_before_the_scripts_came_shows_what_was_there(page, space):
    open_board(page, space)
    page.get_by_label("Repetition").check()
    page.wait_for_url("**/?label=repetition")
    expect(page.locator(PAPER_ROWS)).to_have_count(9)
    page.route("**/bundles/*.js", lambda route: None)  # they never come
    page.reload(wait_until="commit")
    expect(page.locator(PAPER_ROWS)).to_have_count(9)
    page.go_back(wait_until="commit")
    expect(page.locator(PAPER_ROWS)).to_have_count(13)


def test_nothing_moves_while_the_page_loads_and_little_is_loaded(page, space):
    sent = page.context.new_cdp_session(page)
    sent.send("Network.enable")
    loaded: list[float] = []
    sent.on("Network.loadingFinished", lambda event: loaded.append(event["encodedDataLength"]))
    open_board(page, space)
    page.wait_for_load_state("networkidle")
    shift = page.evaluate(
        """() => new Promise((done) => {
            let sum = 0;
            new PerformanceObserver((list) => { for (const entry of list.getEntries()) sum += entry.value; })
                .observe({ type: "layout-shift", buffered: true });
            setTimeout(() => done(sum), 200);
        })"""
    )
    # A busy browser may paint half of the masthead first, and move its last words: some millionths.
    assert round(shift, 3) == 0
    before = len(loaded)
    assert before <= 8
    assert sum(loaded) <= 100_000
    page.mouse.wheel(0, 5000)
    page.wait_for_function("() => scrollY > 0")
    page.wait_for_load_state("networkidle")
    assert len(loaded) == before


def test_the_first_frame_leaves_out_the_board_and_keeps_its_place(page, space):
    animations = page.context.new_cdp_session(page)
    animations.send("Animation.enable")
    animations.send("Animation.setPlaybackRate", {"playbackRate": 0})  # the first frame stays
    page.goto(space.url)
    assert page.get_by_label("Search").is_visible()
    is_left_out = "() => !document.querySelector('%s').checkVisibility()"
    page.wait_for_function(is_left_out % ROWS)
    page.wait_for_function(is_left_out % ".colophon a")
    page.wait_for_function("() => document.documentElement.scrollHeight > 100_000")
    animations.send("Animation.setPlaybackRate", {"playbackRate": 1})
    page.wait_for_function("() => document.querySelector('.colophon a').checkVisibility()")
    page.wait_for_function("() => document.documentElement.scrollHeight < 100_000")
    assert page.locator(ROWS).first.is_visible()


def test_back_leads_on_a_phone_to_where_the_reader_was(browser, space):
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    open_board(page, space)
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    page.wait_for_function("() => scrollY > 2 * innerHeight")
    page.evaluate("scrollTo(0, scrollY - 300)")
    before = page.evaluate("scrollY")
    page.goto(space.url + "/about")
    page.go_back()
    page.wait_for_function("before => Math.abs(scrollY - before) < 5", arg=before)
    context.close()


def test_a_table_that_cannot_be_loaded_says_so_and_can_be_tried_again(browser, space):
    context = browser.new_context()
    page = context.new_page()
    open_board(page, space)
    context.route("**/?label=*", lambda route: route.abort())
    page.get_by_label("Repetition").check()
    page.wait_for_selector("text=This could not be loaded")
    context.unroute("**/?label=*")
    page.get_by_label("Side effect").check()
    page.get_by_label("Repetition").check()
    expect(page.locator(PAPER_ROWS)).to_have_count(9)
    expect(page.get_by_text("This could not be loaded")).to_have_count(0)
    context.close()


# By keyboard


def test_the_first_tab_leads_to_the_content_and_choices_are_made_by_keys(page, space):
    open_board(page, space)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_label("Success", exact=True)).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(space.url + "/?label=side_effect")

    page.locator("[data-menu=kind] summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(page).to_have_url(re.compile("kind="))  # pushed as the table changes
    page.keyboard.press("Escape")
    expect(page.locator("[data-menu=kind]")).not_to_have_attribute("open", "")
    expect(page.locator("[data-menu=kind] summary")).to_be_focused()  # still there after the table changed

    page.get_by_role("link", name="Recall").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("th[aria-sort=descending]:has-text('Recall')")


def test_what_has_the_focus_shows_it(page, space):
    open_board(page, space)
    page.get_by_label("Success", exact=True).focus()
    page.keyboard.press("Tab")
    expect(page.get_by_label("Metric")).to_be_focused()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"
