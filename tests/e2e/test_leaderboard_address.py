"""The leaderboard's choices: shared by their address, made by keyboard, shown without waiting for scripts."""

from urllib.parse import parse_qs, urlparse

import pytest

from tests.e2e.leaderboard_page import PAPER_ROWS, ROWS, open_board

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
    page.get_by_label("Figure").select_option("F1")
    page.get_by_label("Search").fill("gpt")
    page.locator("[data-menu=inputs] summary").click()
    page.locator("[data-menu=inputs]").get_by_label("tree").check()
    page.wait_for_function(f"document.querySelectorAll('{PAPER_ROWS}').length === 2")
    assert chosen(page) == {"label": ["repetition"], "figure": ["f1"], "inputs": ["tree"], "q": ["gpt"]}
    rows, address = shown(page), page.url

    page.reload()
    page.wait_for_selector("#precision-recall .js-plotly-plot")
    assert page.url == address
    assert shown(page) == rows
    assert page.get_by_label("Repetition").is_checked()
    assert page.get_by_label("Figure").input_value() == "f1"
    assert page.get_by_label("Search").input_value() == "gpt"
    assert page.locator("[data-menu=inputs] summary").inner_text().endswith("tree")


def test_choices_at_their_defaults_leave_the_address_plain(page, space):
    open_board(page, space)
    page.get_by_label("Side effect").check()
    page.wait_for_url("**/?label=side_effect")
    page.get_by_label("Success", exact=True).check()
    page.wait_for_function("location.search === ''")


def test_an_address_with_nonsense_shows_the_board_and_says_so(page, space):
    page.goto(space.url + "/?label=nonsense&q=qwen&other=kept")
    page.wait_for_selector(".address-notice")
    assert (
        "sets label to something that this page does not know" in page.locator(".address-notice").inner_text()
    )
    assert len(shown(page)) == 2
    page.get_by_label("Search").fill("")
    page.wait_for_url("**/?other=kept")


# Without waiting for scripts


def test_the_filled_table_stands_before_gradio_has_loaded(browser, space):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(space.url + "/?q=qwen")
    assert len(shown_without_scripts(page)) == 2
    page.get_by_label("Search").fill("aer")
    page.get_by_role("button", name="Show", exact=True).click()
    page.wait_for_url("**q=aer**")
    assert len(shown_without_scripts(page)) == 2
    context.close()


def shown_without_scripts(page) -> list[str]:
    return [row.get_attribute("data-row") for row in page.locator(ROWS).all()]


def test_the_table_is_not_moved_or_drawn_twice_when_gradio_comes(page, space):
    page.goto(space.url, wait_until="commit")
    page.wait_for_selector("#opening #board-table tbody.judges tr >> nth=12")
    before = page.locator("tr[data-row='paper/rule-based']").bounding_box()
    page.wait_for_selector("gradio-app #board-table")
    page.wait_for_selector("#precision-recall .js-plotly-plot")
    after = page.locator("tr[data-row='paper/rule-based']").bounding_box()
    assert abs(before["y"] - after["y"]) <= 2
    assert abs(before["x"] - after["x"]) <= 2
    assert page.locator("#board-table").count() == 1


def test_a_table_that_cannot_be_loaded_says_so_and_can_be_tried_again(browser, space):
    context = browser.new_context()
    page = context.new_page()
    open_board(page, space)
    context.route("**/parts/board*", lambda route: route.abort())
    page.get_by_label("Repetition").check()
    page.wait_for_selector("text=The table could not be loaded.")
    context.unroute("**/parts/board*")
    page.get_by_role("button", name="Try again").click()
    page.wait_for_function(f"document.querySelectorAll('{PAPER_ROWS}').length === 9")
    context.close()


# By keyboard


def test_the_first_tab_leads_to_the_content_and_choices_are_made_by_keys(page, space):
    open_board(page, space)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.name") == "label"
    page.keyboard.press("ArrowRight")
    page.wait_for_function("location.search === '?label=side_effect'")

    page.locator("[data-menu=kind] summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.wait_for_function("location.search.includes('kind=')")
    page.keyboard.press("Escape")
    assert page.locator("[data-menu=kind]").get_attribute("open") is None
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"  # still there after the table changed

    page.wait_for_load_state("networkidle")  # the table of the last choice is there
    page.get_by_role("button", name="Recall").focus()
    page.keyboard.press("Enter")
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("Recall")


def test_what_has_the_focus_shows_it(page, space):
    open_board(page, space)
    page.get_by_label("Success", exact=True).focus()
    page.keyboard.press("Tab")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"
