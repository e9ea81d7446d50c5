"""The leaderboard in light and dark, on a desk and on a phone."""

import pytest
from playwright.sync_api import expect

from tests.support.browsing import open_board

pytestmark = [pytest.mark.browser, pytest.mark.labels]


def test_a_card_on_a_phone_shows_all_figures_on_demand(browser, space):
    context = browser.new_context(viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.goto(space.url)
    page.wait_for_selector("#board-table")
    page.get_by_role("button", name="All metrics").click()
    assert "WorkArena++" in page.locator("tr[data-row='paper/rule-based'] td.part").last.evaluate(
        "cell => getComputedStyle(cell, '::before').content"
    )
    expect(page.locator("tr[data-row='paper/rule-based'] td.part").last).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()


def test_the_theme_can_be_chosen_and_stays_chosen(page, space):
    open_board(page, space)
    dark, toggle = page.locator("body.dark"), page.get_by_role("button", name="Dark theme")
    expect(dark).to_have_count(0)
    toggle.click()
    expect(dark).to_have_count(1)
    page.goto(space.url + "/about")
    expect(dark).to_have_count(1)
    expect(toggle).to_have_attribute("aria-pressed", "true")
    toggle.click()
    expect(dark).to_have_count(0)


def test_on_a_phone_every_page_is_reached_by_the_menu_button(browser, space):
    context = browser.new_context(viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.goto(space.url + "/about")
    page.get_by_text("Menu", exact=True).click()
    for name in ("Errors", "Disputes", "Labels", "Trajectories"):
        box = page.locator(".narrow-menu").get_by_role("link", name=name).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    page.locator(".narrow-menu").get_by_role("link", name="Labels").click()
    page.wait_for_url("**/labels")
    context.close()


def test_the_foot_stands_at_the_bottom_of_a_short_page(browser, space):
    context = browser.new_context(viewport={"width": 1280, "height": 1000})
    page = context.new_page()
    page.goto(space.url + "/nowhere")
    expect(page.get_by_role("heading", name="There is no such page")).to_be_visible()
    box = page.locator(".colophon").bounding_box()
    assert abs(box["y"] + box["height"] - 1000) <= 1
    context.close()
