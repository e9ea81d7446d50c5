"""The leaderboard in light and dark, on a desk and on a phone."""

import pytest
from playwright.sync_api import expect

from tests.support.browsing import faults, open_board

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
    menu, beside = page.locator(".narrow-menu"), page.locator(".masthead-end")
    entries = dict.fromkeys(("Leaderboard", "Compare", "My agent", "Trajectories", "Labels", "About"), menu)
    for name, place in {**entries, "Submit": beside}.items():
        box = place.get_by_role("link", name=name, exact=True).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    menu.get_by_role("link", name="Labels").click()
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


@pytest.fixture
def phone(browser):
    """A page of a phone with a touch screen."""
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    yield context.new_page()
    context.close()


def test_a_phone_sorts_the_table_and_shows_the_column_it_is_sorted_by(phone, space):
    open_board(phone, space)
    phone.get_by_label("Sort by").select_option("Recall, descending")
    expect(phone).to_have_url(space.url + "/?sort=-recall")
    first = phone.locator("tbody.judges tr").first
    expect(first).to_have_attribute("data-row", "paper/qwen2.5-vl-tree")
    expect(first.locator("td.sorted")).to_be_visible()
    phone.get_by_label("Sort by").select_option("Recall, ascending")
    expect(phone.locator("tbody.judges tr").first).to_have_attribute("data-row", "reported/hunter-seeker")


def test_a_tap_shows_reasons_and_names_of_points_and_leads_to_the_judge(phone, space):
    open_board(phone, space)
    note = phone.locator(".tap-note")
    phone.locator("tr[data-row='paper/rule-based'] .mark.front").tap()
    expect(note).to_contain_text("no other judge that can be compared has at least")
    phone.locator("h1").tap()
    expect(note).to_have_count(0)
    point = phone.locator("#precision-recall a.point[href='/judge?id=paper/nnetnav']")
    point.scroll_into_view_if_needed()
    point.locator(".mark").tap(force=True)
    expect(note).to_contain_text("NNetNav (changes)")
    assert phone.url == space.url + "/"
    note.get_by_role("link").tap()
    expect(phone.get_by_role("heading", level=1)).to_have_text("NNetNav (changes)")


@pytest.mark.slow
def test_columns_are_chosen_with_and_without_scripts_and_stay_in_the_address(page, browser, space):
    open_board(page, space)
    page.locator("[data-menu=columns] summary").click()
    page.locator("[data-menu=columns]").get_by_label("Licence").check()
    expect(page.locator("tr[data-row='paper/nnetnav'] td.fact")).to_have_text("Llama 3.3 Community License")
    expect(page.locator("[data-menu=columns]").get_by_label("Licence")).to_be_focused()
    assert faults(page) == []
    address = page.url
    page.locator("[data-menu=columns]").get_by_label("Licence").uncheck()
    expect(page).to_have_url(space.url + "/")
    context = browser.new_context(java_script_enabled=False)
    plain = context.new_page()
    plain.goto(address)
    expect(plain.locator("thead")).to_contain_text("Licence")
    plain.locator("[data-menu=columns] summary").click()
    plain.locator("[data-menu=columns]").get_by_label("Maker").check()
    plain.get_by_role("button", name="Show", exact=True).click()
    expect(plain.locator("tr[data-row='paper/nnetnav'] td.fact")).to_have_text(
        ["Meta", "Llama 3.3 Community License"]
    )
    context.close()
