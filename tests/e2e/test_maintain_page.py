"""The maintainers' page in a real browser: sign in by name, hide a row, release a held file, re-score."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import expect

from submissions.app import SubmissionsApp
from tests.support.browsing import keep_picture, sign_in
from tests.support.running_space import RunningSpace
from tests.support.submissions import send, settings_for, verdicts, write_suite

pytestmark = pytest.mark.browser


class SmallSpace(RunningSpace):
    """A Space with the small suite, where Grace maintains: ``shown`` and Ada's ``owned`` are on its board,
    ``held`` waits."""

    def __init__(self, folder: Path) -> None:
        write_suite(folder)
        settings = settings_for(folder, folder / "state", secret=None)  # that of the Space
        service = SubmissionsApp(settings)
        content = verdicts(service.suite, misses=4, false_alarms=2)
        self.shown = send(service, content, judge="Alpha", account="Cleo").submission_id
        own = verdicts(service.suite, misses=2, false_alarms=1)
        self.owned = send(service, own, judge="Delta", account="Ada").submission_id
        held = SubmissionsApp(settings)
        held.__dict__["suite"] = replace(held.suite, labels_are_public=False)  # fewer than 30 positives
        self.held = send(held, verdicts(held.suite, misses=1), judge="Beta", account="Bob").submission_id
        service.engine.dispose()
        held.engine.dispose()
        super().__init__(
            folder / "state",
            ARB_SUITE=str(folder / "small"),
            ARB_LABELS=f"csv:{folder / 'labels.csv'}",
            ARB_MAINTAINERS="Grace",
        )

    def judges(self) -> set[str]:
        return {row["judge"] for row in json.loads(self.get("/api/board.json"))["rows"]}


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    running = SmallSpace(tmp_path_factory.mktemp("small"))
    yield running
    running.kill()


def decide(page, space, submission_id: str, decision: str, reason: str) -> None:
    row = page.locator(f"#submission-{submission_id}").last
    row.locator("summary").click()
    row.get_by_label("Decision").select_option(decision)
    row.get_by_label("Reason").fill(reason)
    with page.expect_navigation():  # it is drawn anew
        row.get_by_role("button", name="Decide").click()
    page.locator(".notice.good", has_text="Done.").wait_for()


@pytest.mark.slow
def test_a_maintainer_hides_a_row_releases_a_held_file_and_scores_again(space, page):
    assert "Alpha" in space.judges()
    sign_in(page, space, "Grace")
    page.locator(".account-menu summary").click()
    with page.expect_navigation():
        page.locator(".masthead").get_by_role("link", name="Maintain").click()
    page.get_by_role("heading", name="Maintain", exact=True).wait_for()
    expect(page.locator("section[aria-labelledby=queue]")).to_contain_text("Held")
    keep_picture(page, "maintain")

    decide(page, space, space.shown, "hidden", "a test of hiding")
    assert "Alpha" not in space.judges()
    decide(page, space, space.held, "released", "looked at it")
    assert "Beta" in space.judges()
    log = page.locator("section[aria-labelledby=log]")
    expect(log).to_contain_text("a test of hiding")
    expect(log).to_contain_text("looked at it")

    page.once("dialog", lambda dialog: dialog.accept())
    page.locator("section[aria-labelledby=rescoring] summary").click()
    with page.expect_navigation():
        page.get_by_role("button", name="Re-score all").click()
    page.locator(".notice.good", has_text="Done.").wait_for()
    page.get_by_text("The last re-scoring since the server started: 0 submissions scored").wait_for()

    page.set_viewport_size({"width": 390, "height": 844})
    keep_picture(page, "maintain-on-a-phone")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.slow
def test_a_phone_shows_the_form_of_a_decision_without_scrolling_to_the_right(space, page):
    page.set_viewport_size({"width": 390, "height": 844})
    sign_in(page, space, "Grace")
    page.goto(space.url + "/maintain")
    summary = page.locator(f"#submission-{space.owned} summary").last
    box = summary.bounding_box()  # before a click, which scrolls
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390
    summary.click()
    for frame in page.locator(".frame:has(table.maintained)").all():
        assert frame.evaluate("each => each.scrollWidth <= each.clientWidth")
    keep_picture(page, "maintain-on-a-phone-deciding")


def test_an_action_can_be_sent_once_the_script_that_sends_it_is_there(space, page):
    sign_in(page, space, "Ada")
    held = []
    page.route("**/bundles/*.js", lambda route: held.append(route))
    page.goto(space.url + "/mine", wait_until="commit")
    page.locator("summary", has_text="Rename the judge").click()
    button = page.get_by_role("button", name="Rename", exact=True)
    expect(button).to_be_disabled()
    page.route("**/bundles/*.js", lambda route: route.continue_())  # late ones are not held
    for route in held:
        route.continue_()
    expect(button).to_be_enabled()


def test_an_owner_saves_a_receipt_renames_and_withdraws(space, page, tmp_path):
    sign_in(page, space, "Ada")
    page.locator(".account-menu summary").click()
    expect(page.get_by_role("link", name="Maintain")).to_be_hidden()
    keep_picture(page, "account-menu")
    with page.expect_navigation():
        page.locator(".masthead").get_by_role("link", name="Your submissions").click()
    page.get_by_role("heading", name="Your submissions", exact=True).wait_for()
    keep_picture(page, "your-submissions")
    with page.expect_download() as saved:
        page.get_by_role("link", name="Save the receipt").click()
    receipt = json.loads(Path(saved.value.path()).read_text())
    assert (receipt["submission_id"], saved.value.suggested_filename) == (
        space.owned, f"receipt-{space.owned}.json",
    )  # fmt: skip

    page.locator("summary", has_text="Rename the judge").click()
    page.get_by_label("New name of the judge").fill("Gamma")
    page.get_by_role("button", name="Rename", exact=True).click()
    page.get_by_role("link", name="Gamma").wait_for()
    assert {"Gamma", "Delta"} & space.judges() == {"Gamma"}

    page.once("dialog", lambda dialog: dialog.accept())
    page.locator("summary", has_text="Withdraw it").click()
    page.get_by_role("button", name="Withdraw", exact=True).click()
    page.get_by_text("It was withdrawn from the board for good").wait_for()
    assert "Gamma" not in space.judges()


@pytest.mark.slow
def test_the_submit_page_says_what_is_left_before_submitting(space, page):
    page.goto(space.url + "/submit")
    page.get_by_label("Your name").fill("Ada")
    page.get_by_text("You have left: 999 of 1000 files today").wait_for()
    sign_in(page, space, "Bob")
    page.goto(space.url + "/submit")
    page.get_by_text("You have left: 999 of 1000 files today").wait_for()  # under all label versions
