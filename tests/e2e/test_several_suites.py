"""Choosing a suite in the masthead, and submitting to it, in a real browser."""

import json

import pytest
from playwright.sync_api import expect

from tests.space.test_several_suites import devai_file
from tests.support.browsing import declare, submit
from tests.support.running_space import ANNOTATIONS, RunningSpace

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suites")
    running = RunningSpace(
        folder / "state", ARB_SUITES="sample,devai", ARB_LABELS=f"csv:{ANNOTATIONS}", ARB_DATA_DIR=str(folder)
    )
    yield running
    running.kill()


@pytest.mark.slow
def test_a_file_that_is_submitted_on_a_suites_page_is_on_the_board_of_that_suite(page, space, tmp_path):
    page.goto(space.url)
    expect(page.locator(".suite-menu nav")).not_to_be_visible()
    page.locator(".suite-menu summary").click()
    page.get_by_role("navigation", name="Suites").get_by_role("link", name="DevAI").click()
    expect(page).to_have_url(f"{space.url}/s/devai/")
    expect(page.locator(".brand")).to_have_text("DevAI")
    page.locator(".suite-menu summary").click()
    expect(page.locator(".suite-menu a[aria-current]")).to_have_text("DevAI")
    page.keyboard.press("Escape")
    expect(page.locator(".suite-menu nav")).not_to_be_visible()

    page.get_by_role("link", name="Submit", exact=True).click()
    expect(page).to_have_url(f"{space.url}/s/devai/submit")
    expect(page.locator("#curl-text")).to_contain_text(f"SPACE={space.url}/s/devai")
    expect(page.locator("#python-text")).to_contain_text(f'Client("{space.url}")')
    file = tmp_path / "devai.jsonl"
    file.write_bytes(devai_file())
    page.locator("#prediction-file input[type=file]").set_input_files(file)
    expect(page.locator("#check-result")).to_contain_text("is valid for test: 1,098 rows")
    declare(page, "Says yes")
    submit(page)
    expect(page.locator("#receipt")).to_contain_text("Submitted and scored.")
    link = page.locator("#receipt a[href*='/judge?id=']")
    assert link.get_attribute("href").startswith("/s/devai/judge?id=")
    boards = [json.loads(space.get(f"/api/judges{suite}")) for suite in ("", "?suite=devai")]
    assert ["Says yes" in [judge["judge"] for judge in board["judges"]] for board in boards] == [False, True]

    page.goto(f"{space.url}/s/devai/")
    page.locator(".sign-in-link").click()
    page.get_by_label("name").fill("Ada")
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(f"{space.url}/s/devai/")
    expect(page.locator(".signed-in-name")).to_have_text("Ada")
    page.goto(space.url)
    expect(page.locator(".signed-in-name")).to_have_text("Ada")
