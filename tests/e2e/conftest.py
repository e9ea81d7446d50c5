"""Spaces that several tests read, each started once, and a browser that fails a test on a console error."""

from contextlib import contextmanager

import pytest

from tests.support.browsing import make_patient
from tests.support.running_space import JudgedSpace, RunningSpace, SampleSpace


def _running(folder, **environment: str):
    running = RunningSpace(folder / "state", **environment)
    yield running
    running.kill()


@pytest.fixture(scope="package")
def space(tmp_path_factory, official_settings):
    """A Space with the official labels and no submission; tests only read it."""
    yield from _running(tmp_path_factory.mktemp("space"))


@pytest.fixture(scope="package")
def submitted_space(tmp_path_factory, official_settings):
    """A Space with the official labels to which tests submit."""
    yield from _running(tmp_path_factory.mktemp("submitted"))


@pytest.fixture(scope="package")
def unlabelled_space(tmp_path_factory):
    """A Space without labels, which takes no submission."""
    yield from _running(tmp_path_factory.mktemp("unlabelled"), ARB_LABELS="none")


@pytest.fixture(scope="package")
def judged_space(tmp_path_factory, official_settings, shared):
    """A Space on which the three real judges were submitted; Grace maintains it."""
    verdicts = shared / "data" / "agent-reward-bench" / "verdicts"
    running = JudgedSpace(
        tmp_path_factory.mktemp("judged"),
        verdicts,
        ARB_MAINTAINERS="Grace",
        ARB_CHECKS_A_MINUTE="10000",  # one address sends the files of all tests
    )
    yield running
    running.kill()


@pytest.fixture(scope="package")
def sample_space(tmp_path_factory):
    """A Space of the sample with two judges; Grace maintains it."""
    running = SampleSpace(tmp_path_factory.mktemp("sample"))
    yield running
    running.kill()


@pytest.fixture(scope="package")
def browser(chromium):
    """Chromium, headless, started once; it ends with these tests, since Playwright holds the thread's event
    loop while it runs."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium)
        make_patient(launched)
        yield launched
        launched.close()


LEFT_BEHIND = ("signal is aborted", "Connection errored out")
"""Gradio's page complains so of its own open stream, or of a call under way, when one leaves it; harmless. A
call that fails for another reason is seen as a request that failed."""
ABORTED = "net::ERR_ABORTED"
"""What Chromium calls a request that ended because the page was left."""


@contextmanager
def watched_page(browser, **options):
    """A page whose console errors, and requests to anywhere but this machine, fail the test."""
    context = browser.new_context(**options)
    page = context.new_page()
    errors: list[str] = []

    def on_console(message) -> None:
        if message.type == "error" and not any(words in message.text for words in LEFT_BEHIND):
            errors.append(message.text)

    def on_failed(request) -> None:
        if request.failure != ABORTED:
            errors.append(f"{request.url}: {request.failure}")

    def on_request(request) -> None:
        if not request.url.startswith(("http://127.0.0.1:", "data:", "blob:")):
            errors.append(f"request to {request.url}")

    page.on("console", on_console)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", on_request)
    page.on("requestfailed", on_failed)
    yield page
    context.close()
    assert errors == []


@pytest.fixture
def page(browser):
    """A watched page as wide as a desktop's."""
    with watched_page(browser, viewport={"width": 1280, "height": 900}) as page:
        yield page
