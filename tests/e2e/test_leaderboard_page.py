"""The leaderboard in a real browser."""

import pytest
from playwright.sync_api import expect

from tests.support.browsing import PAPER_ROWS, ROWS, open_board

pytestmark = [pytest.mark.browser, pytest.mark.labels]


def column(page, name: str) -> list[str]:
    """The texts of a column of the table, from the top."""
    return page.eval_on_selector_all(
        f"{ROWS} [data-heading='{name}']", "cells => cells.map(c => c.innerText.trim())"
    )


def test_the_board_shows_the_papers_thirteen_judges_with_the_figures_of_its_first_table(page, space):
    open_board(page, space)
    expect(page.locator(PAPER_ROWS)).to_have_count(13)
    rule_based = page.locator("tr[data-row='paper/rule-based']")
    shown = rule_based.locator("td.number").all_inner_texts()
    # Ranked first to eleventh, as rows of verdicts in files are ranked too. Table 1: P 83.8 R 55.9 F1 67.1,
    # then AB 25.0, VWA 85.2, WA 79.0, Work 100.0, Wk++ 83.3.
    assert [text.strip() for text in shown][:9] == [
        "1–11",
        "83.8",
        "55.9",
        "67.1",
        "25.0",
        "85.2",
        "79.0",
        "100.0",
        "83.3",
    ]


def test_a_heading_sorts_as_numbers_both_ways_and_filters_stay(page, space):
    page.goto(space.url + "/?kind=LLM%20judge&from=published")
    before = len(column(page, "WorkArena"))
    page.get_by_role("link", name="WorkArena", exact=True).click()
    page.wait_for_url("**/?kind=LLM%20judge&from=published&sort=-workarena")
    page.wait_for_selector("th[aria-sort=descending]")
    falling = [float(text) for text in column(page, "WorkArena")]
    assert len(falling) == before
    assert falling == sorted(falling, reverse=True)
    page.get_by_role("link", name="WorkArena ↓").or_(
        page.get_by_role("link", name="WorkArena", exact=True)
    ).click()
    page.wait_for_url("**/?kind=LLM%20judge&from=published&sort=workarena")
    page.wait_for_selector("th[aria-sort=ascending]")
    assert [float(text) for text in column(page, "WorkArena")] == sorted(falling)
    page.get_by_label("Search").fill("claude")
    page.wait_for_url("**/?kind=LLM%20judge&from=published&q=claude&sort=workarena")


def test_the_figure_changes_the_main_column_and_the_benchmarks(page, space):
    open_board(page, space)
    page.get_by_label("Metric").select_option("Recall")
    page.wait_for_selector("tr[data-row='paper/rule-based'] td.main:has-text('55.9')")
    texts = page.locator("tr[data-row='paper/rule-based'] td.number").all_inner_texts()
    # Table 8, recall of Functional: AB 12.5, VWA 58.2, WA 53.8, Work 91.9, Wk++ 38.5.
    assert [text.strip() for text in texts][4:9] == ["12.5", "58.2", "53.8", "91.9", "38.5"]


# Ranks


def test_a_rank_names_who_is_separated_on_pointing_focus_and_tap(page, space):
    open_board(page, space)
    rank = page.locator("tr[data-row='paper/nnetnav'] .range")
    note = page.locator("#rank-note")
    rank.hover()
    # Rows of verdicts in files are ranked, too: the 13 of the paper and the three of WebJudge.
    expect(note).to_contain_text("separated from 9 of 15 other judges.")
    expect(note).to_contain_text("Worse than Rule-based (reward), WebJudge (o4-mini, all screenshots)")
    expect(rank).to_have_attribute("aria-describedby", "rank-note")
    note.hover()  # so that a long list can be scrolled
    expect(note).to_be_visible()
    page.keyboard.press("Escape")
    expect(note).to_have_count(0)
    page.mouse.move(0, 0)
    rank.focus()
    expect(note).to_contain_text("Worse than")
    page.keyboard.press("Tab")
    expect(note).to_have_count(0)
    rank.click()
    expect(note).to_be_visible()
    page.locator("h1").click()
    expect(note).to_have_count(0)


def test_a_rank_by_another_metric_names_who_is_separated_by_it(page, space):
    page.goto(space.url + "/?figure=recall")
    page.locator("tr[data-row='paper/rule-based'] .range").click()
    note = page.locator("#rank-note")
    expect(note).to_contain_text("rank by recall")
    expect(note).to_contain_text("Worse than Qwen2.5-VL (tree)")


def test_on_a_phone_a_rank_opens_on_tap_and_a_row_without_one_says_so(browser, space):
    context = browser.new_context(viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(space.url)
    page.locator("tr[data-row='paper/nnetnav'] .range").tap()
    note = page.locator("#rank-note")
    expect(note).to_contain_text("Worse than Rule-based (reward)")
    box = note.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390
    page.locator("h1").tap()
    expect(note).to_have_count(0)
    expect(page.locator("tr[data-row='reported/hunter-seeker'] td.rank")).to_have_text("not ranked")
    expect(page.locator("tr[data-row='reported/hunter-seeker'] td.rank")).to_be_visible()
    context.close()


# Onwards


def test_a_name_opens_the_page_of_its_judge(page, space):
    open_board(page, space)
    page.locator("tr[data-row='paper/nnetnav'] a.name").click()
    page.wait_for_url("**/judge?id=paper/nnetnav")
    page.wait_for_selector("h1:has-text('NNetNav')")


def test_a_point_of_the_plot_tells_its_figures_and_opens_its_judge(page, space):
    page.goto(space.url + "/?q=nnetnav")
    point = page.locator("#precision-recall a.point")
    expect(point.locator("title")).to_contain_text("precision 52.5")
    point.locator(".reach").click()
    page.wait_for_url("**/judge?id=paper/nnetnav")


def test_ticked_judges_are_compared(page, space):
    open_board(page, space)
    page.get_by_label("Compare NNetNav").check()
    expect(page.locator(".pick-bar")).to_contain_text("choose another judge")
    expect(page.locator(".pick-bar a")).to_be_hidden()  # one judge cannot be compared
    page.get_by_label("Compare AER-C").check()
    page.get_by_label("Repetition").check()  # another table: what is ticked stays ticked
    expect(page.locator(PAPER_ROWS)).to_have_count(9)
    page.locator(".pick-bar a").click()
    page.wait_for_url("**/compare?judges=paper/nnetnav,paper/aer-c")
