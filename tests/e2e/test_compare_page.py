"""The compare page in a real browser, over the three real verdict files."""

from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.labels, pytest.mark.shared]


@pytest.fixture
def space(judged_space):
    return judged_space


def address(space, *judges, **choices) -> str:
    ids = ",".join(space.ids.get(judge, judge) for judge in judges)
    return "&".join([f"{space.url}/compare?judges={ids}", *(f"{k}={v}" for k, v in choices.items())])


def open_comparison(page, space, *judges, **choices):
    page.goto(address(space, *judges, **choices))


def texts(page, selector: str) -> list[str]:
    return [text.strip() for text in page.locator(selector).all_inner_texts()]


def test_two_judges_are_told_apart_with_the_numbers_of_the_statistics_tests(page, space):
    open_comparison(page, space, "AER-C", "NNetNav")
    assert page.locator("h1").inner_text() == "Is AER-C (caption) better than NNetNav (changes)?"
    # 212/313 - 243/463; the interval is held against scipy in tests/leaderboard
    assert texts(page, "table.forest tbody.overall td.main") == ["+15.2"]
    assert "better on WebArena and WorkArena++" in page.locator(".verdict").inner_text()
    (pair,) = page.locator("table.pairs tbody tr").all()
    told = {
        cell.get_attribute("data-heading"): cell.inner_text()
        for cell in pair.locator("td[data-heading]").all()
    }
    assert (told["Kappa"], told["Only 1st right"], told["Only 2nd right"]) == ("0.47", "179", "91")
    assert (told["p"], told["Both wrong"]) == ("< 0.0001", "93")


def wait_for_choices(page, choices: dict[str, str]) -> None:
    """Wait until the address holds these choices and no others."""
    page.wait_for_url(lambda url: dict(parse_qsl(urlsplit(url).query)) == choices)


def test_choosing_redraws_and_rewrites_the_address_and_back_undoes_it(page, space):
    open_comparison(page, space, "AER-C", "NNetNav")
    two = f"{space.ids['AER-C']},{space.ids['NNetNav']}"
    page.get_by_label("Metric").select_option("recall")
    page.wait_for_selector("h2:has-text('difference in recall')")
    wait_for_choices(page, {"judges": two, "figure": "recall"})
    # 212/295 - 243/295
    assert texts(page, "table.forest tbody.overall td.main") == ["−10.5"]

    page.get_by_label("Judge 3").select_option(label="GPT-4o (tree) · paper")
    page.wait_for_selector("h1:has-text('How do these 3 judges differ?')")
    three = {"judges": f"{two},paper/gpt-4o-tree", "figure": "recall"}
    wait_for_choices(page, three)
    page.get_by_label("Judge 2").select_option(label="Remove")
    page.wait_for_selector("h1:has-text('Is AER-C (caption) better than GPT-4o (tree)?')")
    page.go_back()
    page.wait_for_selector("h1:has-text('How do these 3 judges differ?')")
    wait_for_choices(page, three)
    expect(page.get_by_label("Judge 2")).to_have_value(space.ids["NNetNav"])
    page.go_back()
    page.wait_for_selector("h1:has-text('Is AER-C (caption) better than NNetNav (changes)?')")


def test_a_choice_made_the_moment_the_page_changed_counts(page, space):
    open_comparison(page, space, "AER-C", "NNetNav")
    page.evaluate(
        """document.addEventListener("htmx:afterSwap", () => setTimeout(() => {
            const metric = document.querySelector("[name=figure]");
            metric.value = "recall";
            metric.dispatchEvent(new Event("change", { bubbles: true }));
        }), { once: true })"""
    )
    page.get_by_label("Judge 3").select_option(label="GPT-4o (tree) · paper")
    page.wait_for_selector("h2:has-text('difference in recall')")
    expect(page.locator("h1")).to_have_text("How do these 3 judges differ?")


def test_judges_are_chosen_without_scripts(browser, space):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    open_comparison(page, space, "AER-C", "NNetNav")
    page.get_by_label("Judge 3").select_option(label="GPT-4o (tree) · paper")
    page.get_by_role("button", name="Show").click()
    page.wait_for_selector("h1:has-text('How do these 3 judges differ?')")
    context.close()


def test_a_judge_that_came_after_the_start_of_the_server_can_be_chosen(page, space, shared):
    content = (shared / "data/agent-reward-bench/verdicts/nnetnav.jsonl").read_bytes()
    late = space.submit(content, "Late arrival")
    open_comparison(page, space, "AER-C", "NNetNav")
    page.get_by_label("Judge 2").select_option(label="Late arrival (tree) · by Ada")
    page.wait_for_selector("h1:has-text('Is AER-C (caption) better than Late arrival (tree)?')")
    wait_for_choices(page, {"judges": f"{space.ids['AER-C']},{late}"})


def test_a_wide_table_can_be_scrolled_by_keyboard(page, space):
    page.set_viewport_size({"width": 800, "height": 850})
    open_comparison(page, space, "AER-C", "NNetNav")
    frame = page.locator(".frame:has(table.pairs)")
    frame.focus()
    expect(frame).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.querySelector('.frame:has(table.pairs)').scrollLeft > 0")
