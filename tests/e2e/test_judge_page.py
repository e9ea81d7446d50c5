"""A judge's own page in a real browser."""

import re

import pytest
import yaml
from playwright.sync_api import expect

from tests.support.browsing import click_and_read

pytestmark = [pytest.mark.browser, pytest.mark.labels, pytest.mark.shared]


@pytest.fixture
def space(judged_space):
    return judged_space


def open_judge(page, space, judge, more=""):
    page.goto(f"{space.url}/judge?id={space.ids.get(judge, judge)}{more}")


def test_a_scored_judge_has_figures_counts_scores_costs_and_a_receipt(page, space):
    open_judge(page, space, "Scored")
    # AER-C: 212 / 101 / 83 / 710
    assert page.locator("table.confusion strong").all_inner_texts() == ["212", "101", "83", "710"]
    assert (
        page.locator("table.judge-figures tbody th[scope=row]").count() == 10
    )  # all, 5 benchmarks, 4 agents
    assert page.locator("figure svg").count() == 2
    assert page.locator("svg g.mark").count() == 10
    assert "$10.00" in page.locator("main").inner_text()
    assert space.ids["Scored"] in page.locator("dl.facts").all_inner_texts()[-1]


def test_the_sweep_opens_by_keyboard(page, space):
    open_judge(page, space, "Scored")
    page.locator("summary", has_text="Both plots in numbers").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("table.sweep", state="visible")
    expect(page.locator("table.sweep tbody tr")).to_have_count(19)


def test_label_and_judge_live_in_the_address(page, space):
    open_judge(page, space, "paper/gpt-4o-tree")
    page.get_by_role("radio", name="Repetition").check()
    page.wait_for_selector("h2:has-text('Repetition: metrics')")
    page.wait_for_url("**/judge?id=paper%2Fgpt-4o-tree&label=repetition")
    page.reload()
    page.wait_for_selector("h2:has-text('Repetition: metrics')")
    expect(page.get_by_role("radio", name="Repetition")).to_be_checked()
    expect(page.get_by_label("Judge")).to_have_value("paper/gpt-4o-tree")

    page.get_by_label("Judge").select_option(label="AER-C (caption) · paper")
    page.wait_for_selector("text=This judge gives no verdicts on this label (repetition).")
    page.wait_for_url("**/judge?id=paper%2Faer-c&label=repetition")
    page.go_back()
    page.wait_for_selector("h2:has-text('Repetition: metrics')")
    expect(page.get_by_label("Judge")).to_have_value("paper/gpt-4o-tree")
    page.go_forward()
    page.wait_for_selector("text=This judge gives no verdicts on this label (repetition).")
    page.locator(".judge-index a", has_text="Success").click()
    page.wait_for_url("**/judge?id=paper/aer-c")
    page.wait_for_selector("h2:has-text('Success: metrics')")


def test_a_judge_and_a_label_are_chosen_without_scripts(browser, space):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    open_judge(page, space, "paper/gpt-4o-tree")
    page.get_by_label("Judge").select_option(label="GPT-4o (screenshot) · paper")
    page.locator("label", has_text="Repetition").click()
    page.get_by_role("button", name="Show").click()
    page.wait_for_selector("h2:has-text('Repetition: metrics')")
    expect(page.get_by_label("Judge")).to_have_value("paper/gpt-4o-screenshot")
    context.close()


def test_the_card_snippet_is_copied_whole(browser, space):
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    open_judge(page, space, "AER-C")
    assert click_and_read(page.locator("button[data-copy=eval-results]")) == "Copied"
    (entry,) = yaml.safe_load(page.evaluate("navigator.clipboard.readText()"))
    assert (entry["dataset"]["task_id"], entry["value"]) == ("success", 67.7)
    context.close()


def test_a_neighbour_in_the_ranking_is_one_click_from_a_comparison(page, space):
    open_judge(page, space, "NNetNav")
    page.locator(".beside a[href^='/compare']").first.click()
    page.wait_for_selector("h1:has-text('Is NNetNav (changes)')")
    expect(page).to_have_url(re.compile(f"judges={space.ids['NNetNav']},"))
