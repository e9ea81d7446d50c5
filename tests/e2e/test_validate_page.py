"""The page My judge in a browser: files stay chosen while columns are chosen, and the report can be saved."""

import json

import pytest
from playwright.sync_api import expect

from tests.support.browsing import faults

pytestmark = [pytest.mark.browser]

LABELS = "run,first,second\n" + "".join(f"r{n},{n % 2},1\n" for n in range(40))
VERDICTS = "run,verdict\n" + "".join(f"r{n},{int(n % 2 or n < 10)}\n" for n in range(40))
"""Of 25 yeses of the judge, 20 are right."""


@pytest.fixture
def page(browser):
    """A page without the check of the console, into which Chromium writes every 422 and 413."""
    context = browser.new_context()
    yield context.new_page()
    context.close()


@pytest.mark.slow
def test_files_stay_chosen_until_the_report_is_there_and_it_can_be_saved(space, page, tmp_path):
    for name, text in (("labels.csv", LABELS), ("judge.csv", VERDICTS)):
        (tmp_path / name).write_text(text)
    page.goto(f"{space.url}/my-agent")
    page.get_by_role("link", name="Measure the judge first").click()
    page.get_by_label("Labels, or labels and verdicts").set_input_files(tmp_path / "labels.csv")
    page.get_by_label("Verdicts, if they are in other files").set_input_files(tmp_path / "judge.csv")
    page.get_by_role("button", name="Measure").click()
    expect(page.locator("#validation-problem")).to_contain_text(
        "several columns are possible (first, second)"
    )
    assert faults(page) == []
    page.locator("select[name=label]").select_option("first")
    page.get_by_role("button", name="Measure").click()
    report = page.locator("#validated .validation")
    expect(report).to_contain_text("40 labelled rows, 50.0 % of them positive")
    expect(report).to_contain_text("80.0")
    expect(page.locator("select[name=label]")).to_have_value("first")
    assert faults(page) == []
    with page.expect_download() as saved:
        page.get_by_role("link", name="Download as JSON").click()
    assert json.loads(saved.value.path().read_text())["judges"][0]["tp"] == 20
    with page.expect_download() as saved:
        page.get_by_role("link", name="Download as HTML").click()
    assert saved.value.suggested_filename == "report.html"


def test_the_page_works_without_scripts(space, browser):
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(f"{space.url}/validate")
    page.get_by_label("Or paste a table").fill("label,verdict\n" + "yes,yes\nno,no\n" * 10)
    page.get_by_role("button", name="Measure").click()
    expect(page.locator("#validated")).to_contain_text("20 labelled rows")
    page.context.close()


def test_a_refusal_of_the_server_is_said_on_the_page(space, page, tmp_path):
    (tmp_path / "large.csv").write_bytes(b"a" * 6_000_000)
    page.goto(f"{space.url}/validate")
    page.get_by_label("Labels, or labels and verdicts").set_input_files(tmp_path / "large.csv")
    page.get_by_role("button", name="Measure").click()
    expect(page.get_by_role("alert")).to_contain_text("send a smaller file")
