"""From a figure to its reason: a number of a judge's page, the errors behind it, the step of one of them."""

import pytest
from playwright.sync_api import expect

from tests.support.browsing import every_form, faults, keep_picture
from tests.support.running_space import WHY

pytestmark = pytest.mark.browser


@pytest.fixture
def space(sample_space):
    return sample_space


@pytest.mark.slow
def test_a_figure_leads_to_its_errors_and_an_error_to_its_step(page, space):
    page.goto(space.url)
    row = page.locator("#board-table tr", has=page.get_by_role("link", name="Says yes")).first
    with page.expect_navigation():
        row.locator("td.main a").click()
    expect(page.locator("h1")).to_contain_text("Errors of Says yes")
    page.go_back()
    with page.expect_navigation():
        page.locator("#board-table").get_by_role("link", name="Says yes").first.click()
    figures = page.locator("table.judge-figures")
    benchmark = figures.locator("tbody").nth(1).locator("tr:has(td[data-heading=FP] a)").first
    n_false_positives = int(benchmark.locator("td[data-heading=FP]").inner_text())
    title = benchmark.locator("th").inner_text()
    with page.expect_navigation():
        benchmark.locator("td[data-heading=FP] a").click()
    expect(page.locator("h1")).to_contain_text("Errors of Says yes")
    listed = page.locator("article.error")
    expect(listed).to_have_count(min(10, n_false_positives))
    expect(page.locator(".only-these")).to_contain_text(f"{n_false_positives} error")
    assert all(title in words for words in listed.locator("p.footnote").all_inner_texts())

    goal = listed.first.locator("h2").inner_text()
    with page.expect_navigation():
        listed.first.get_by_role("link", name="Open the last step").click()
    step = page.locator("section.step:visible")
    expect(step).to_have_count(1)
    n_steps = page.locator("section.step").count()
    expect(step).to_have_attribute("data-place", str(n_steps))  # where success is decided
    assert page.locator(".goal-text").inner_text() == goal
    picture = step.locator(".picture img")
    picture.wait_for()
    page.wait_for_function("image => image.complete && image.naturalWidth > 0", arg=picture.element_handle())
    opened = page.locator("details.judge[open]")
    expect(opened.locator("summary")).to_have_text("Says yes (tree)")
    expect(opened).to_contain_text(WHY)


@pytest.mark.slow
def test_the_judge_page_and_its_errors_stand_without_a_fault(page, space):
    for path in (f"/judge?id={space.judge}", f"/errors?judge={space.judge}&split=test&kind=fp"):
        page.goto(space.url + path)
        for form in every_form(page):
            assert faults(page) == [], (path, form)
    keep_picture(page, "errors-of-the-sample")


@pytest.mark.labels
@pytest.mark.shared
def test_where_only_the_sample_is_built_the_page_says_what_is_missing(page, judged_space):
    page.goto(f"{judged_space.url}/errors?judge={judged_space.ids['AER-C']}")
    assert "ARB_DATA_DIR=agent-reward-bench" in page.locator("#no-trajectories").inner_text()
    assert page.locator("article.error").count() == 0
    assert page.locator("table.bare-errors tbody tr").count() == 10
    keep_picture(page, "errors-without-trajectories")


BROKEN_WORDS = """() => [...document.querySelectorAll(".bare-errors td")].flatMap((cell) => {
  const words = [];
  for (const part of [...cell.childNodes].map((node) => (node.nodeType === 3 ? node : node.firstChild)))
    for (const word of part.data.matchAll(/[^\\s]+/g)) {
      const range = document.createRange();
      range.setStart(part, word.index);
      range.setEnd(part, word.index + word[0].length);
      if (range.getClientRects().length > 1) words.push(word[0]);
    }
  return words;
})"""
"""The words of the table that are on two lines."""


@pytest.mark.labels
@pytest.mark.shared
def test_on_a_phone_no_word_of_the_errors_is_broken_and_the_form_looks_like_others(page, judged_space):
    page.set_viewport_size({"width": 390, "height": 900})
    page.goto(f"{judged_space.url}/errors?judge={judged_space.ids['Scored']}&split=test")
    expect(page.locator(".bare-errors td").first).to_be_visible()
    assert page.evaluate(BROKEN_WORDS) == []
    expect(page.locator("[name=tag]")).to_have_css("border-radius", "8px")
    assert page.evaluate("() => document.documentElement.scrollWidth") == 390
