"""A Space in a process of its own, and a browser that fails a test on an error in the console."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
START_SECONDS = 90


class RunningSpace:
    """The Space as `make demo` starts it, on a free port, with a state folder of its own."""

    def __init__(self, state: Path, **environment: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.log_path = state.parent / f"space-{self.port}.log"
        self._environment = {
            **os.environ,
            "ARB_STATE_DIR": str(state),
            "ARB_PORT": str(self.port),
            "GRADIO_TEMP_DIR": str(state.parent / "uploads"),
            **environment,
        }
        self.start()

    def start(self) -> None:
        """Start the process and wait until it serves."""
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "space", "serve"],
                cwd=REPOSITORY, env=self._environment, stdout=log, stderr=log,
            )  # fmt: skip
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise AssertionError(f"the Space ended at its start:\n{self.log_path.read_text()}")
            try:
                self.get("/healthz")
                return
            except OSError:
                time.sleep(0.2)
        raise AssertionError(f"the Space does not answer:\n{self.log_path.read_text()}")

    def get(self, path: str) -> bytes:
        """The body of an address."""
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return answer.read()

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=30)


@pytest.fixture(scope="module")
def space(tmp_path_factory, official_settings):
    """A Space with the official labels and no submission yet."""
    running = RunningSpace(tmp_path_factory.mktemp("space") / "state")
    yield running
    running.kill()


@pytest.fixture(scope="module")
def browser(chromium):
    """Chromium, headless; for a module, since Playwright holds the thread's event loop while it runs."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium)
        yield launched
        launched.close()


LEFT_BEHIND = ("signal is aborted", "Connection errored out")
"""Gradio's page complains so of its own open stream, or of a call under way, when one leaves it; harmless. A
call that fails for another reason is seen as a request that failed."""
ABORTED = "net::ERR_ABORTED"
"""What Chromium calls a request that ended because the page was left."""


@pytest.fixture
def page(browser):
    """A page whose console errors, and requests to anywhere but this machine, fail the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
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
