"""Signing in with Hugging Face on a Space in a real browser: to the Hub, back to the page, and out again."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.submissions.conftest import suite_folder
from tests.support.browsing import keep_picture
from tests.support.hub_server.answers import Account
from tests.support.hub_server.server import HubServer
from tests.support.running_space import RunningSpace
from tests.support.submissions import verdicts

__all__ = ["suite_folder"]
pytestmark = [pytest.mark.browser, pytest.mark.slow]


class SpaceOfTheHub(RunningSpace):
    """A Space that believes itself on the Hub, with the small suite."""

    def __init__(self, state: Path, hub: HubServer, suite: Path) -> None:
        super().__init__(
            state,
            SPACE_ID="ada/board",
            OAUTH_CLIENT_ID="space-client",
            OAUTH_CLIENT_SECRET="space-secret",
            OPENID_PROVIDER_URL=hub.url,
            HF_ENDPOINT=hub.url,
            ARB_SECRET="eab69819ef1c1cd52f14e04168d8698e",
            ARB_STATE_LASTS="true",
            ARB_SUITE=str(suite / "small"),
            ARB_LABELS=f"csv:{suite / 'labels.csv'}",
        )

    def start(self) -> None:
        """With the address that the Hub would tell."""
        self._environment["SPACE_HOST"] = f"127.0.0.1:{self.port}"
        super().start()

    def submitted(self) -> list[tuple[str, str]]:
        """(account, judge) of every record of a submission."""
        from arb.core.settings import Settings
        from submissions.records.database import open_database, snapshot
        from submissions.records.event_log import events_after

        state = Path(self._environment["ARB_STATE_DIR"])
        with snapshot(open_database(Settings(state_dir=state).records_url())) as session:
            found = [record.body for record in events_after(session, 0) if record.kind == "submitted"]
        return [(body["account"], body["judge"]) for body in found]


@pytest.fixture
def hub():
    with HubServer() as hub:
        hub.api.accounts["hf_ada_token"] = Account("ada")
        hub.api.openid.reader = "ada"
        yield hub


@pytest.fixture
def space(hub, suite_folder, tmp_path):
    running = SpaceOfTheHub(tmp_path / "state", hub, suite_folder)
    hub.api.openid.apps["space-client"] = ("space-secret", f"{running.url}/login/callback")
    yield running
    running.kill()


def fill_in(page, judge: str) -> None:
    page.get_by_label("Name of the judge").fill(judge)
    page.locator("#kind input").click()
    page.get_by_role("option", name="LLM judge").click()
    page.locator("#inputs input").click()
    page.get_by_role("option", name="caption", exact=True).click()
    page.get_by_label("No, they were not used").check()


def submit(page) -> str:
    page.get_by_role("button", name="Submit").click()
    page.wait_for_selector("#outcome .notice")
    return page.locator("#outcome").inner_text()


def test_a_reader_signs_in_submits_under_that_name_and_signs_out(page, space, suite_folder, tmp_path):
    from arb.core.suite import load_suite

    file = tmp_path / "verdicts.jsonl"
    file.write_bytes(verdicts(load_suite(str(suite_folder / "small")), misses=1))

    page.goto(space.url + "/submit")
    page.get_by_text("to submit. Checking and the dry run on dev need no account.").wait_for()
    assert page.get_by_label("Your name").count() == 0
    expect(page.locator(".account-menu")).to_be_hidden()
    page.locator("#submit-form.is-ready").wait_for()
    page.locator("#prediction-file input[type=file]").set_input_files(file)
    page.wait_for_selector("#check-result .notice.good")
    assert "you are not signed in" in submit(page)

    page.locator(".masthead").get_by_role("link", name="Sign in").click()
    page.get_by_text("You submit as").wait_for()
    expect(page).to_have_url(space.url + "/submit")
    expect(page.locator(".signed-in-name")).to_have_text("ada")
    expect(page.get_by_role("link", name="Sign in")).to_have_count(0)
    keep_picture(page, "signed-in")
    assert page.evaluate("document.cookie") == "arb-signed-in=1"  # the session is not for scripts

    page.locator("#submit-form.is-ready").wait_for()
    page.locator("#prediction-file input[type=file]").set_input_files(file)
    page.wait_for_selector("#check-result .notice.good")
    fill_in(page, "A judge of Ada's")
    assert re.search(r"\b[0-9a-f]{64}\b", submit(page))

    page.goto(space.url + "/about")
    page.locator(".signed-in-name", has_text="ada").wait_for()
    page.locator(".account-menu summary").click()
    page.get_by_role("button", name="Sign out").click()
    page.locator(".masthead").get_by_role("link", name="Sign in").wait_for()
    expect(page).to_have_url(space.url + "/about")
    assert page.evaluate("fetch('/api/me').then((answer) => answer.json())")["name"] is None
    assert space.submitted() == [("ada", "A judge of Ada's")]
