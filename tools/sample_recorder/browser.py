"""Run BrowserGym with any Chromium: find the browser, open the environment, write a tree as text."""

import importlib.util
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from tools.sample_recorder.rewards import LastMessage

NEEDS: Final = "pip install -e '.[record]' (or: make record-sample)"
INLINE_TEXT: Final = "InlineTextBox"
"""A role that newer Chromium adds below every text. It is left out, since released trees do not have it."""
WINDOW: Final = {"width": 1280, "height": 720, "deviceScaleFactor": 1, "mobile": False}
ENDS: Final = ("assistant", "infeasible")
"""The roles of the messages that end a run: an answer, or a report that the task is infeasible."""


class BrowserMissing(RuntimeError):
    """Raised if BrowserGym or a Chromium is missing; the message says what to install."""


class BrowserFailed(RuntimeError):
    """Raised if the browser ended or stopped answering during a run."""


def find_browser(cache: Path) -> None:
    """Let Playwright use the system's Chromium, unless there is none or PLAYWRIGHT_BROWSERS_PATH is set.

    BrowserGym also opens a browser for its chat window, without launch options, so an executable path is not
    enough. A folder in ``cache`` that looks like Playwright's own works for both. Raises BrowserMissing.
    """
    if importlib.util.find_spec("browsergym") is None:
        raise BrowserMissing(f"recording needs BrowserGym, which is not installed: {NEEDS}")
    import playwright

    if os.environ.get("PLAYWRIGHT_BROWSERS_PATH"):
        return
    names = ("chromium", "chromium-browser", "google-chrome")
    system = next((path for path in map(shutil.which, names) if path), None)
    if system is None:
        _require_own_browser()
        return
    listed = Path(playwright.__file__).parent / "driver" / "package" / "browsers.json"
    revisions = {b["name"]: b["revision"] for b in json.loads(listed.read_text())["browsers"]}
    place = cache / "browsers" / f"chromium-{revisions['chromium']}" / "chrome-linux" / "chrome"
    place.parent.mkdir(parents=True, exist_ok=True)
    if not (place.is_symlink() and place.readlink() == Path(system)):
        place.unlink(missing_ok=True)
        place.symlink_to(system)
    os.environ["PLAYWRIGHT_BROWSERS_PATH"] = str(cache / "browsers")


def _require_own_browser() -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        if not Path(started.chromium.executable_path).is_file():
            raise BrowserMissing(
                "there is no Chromium: `apt-get install chromium` or `python -m playwright install chromium`"
            )


def open_environment(url: str, goal: str, reward: Callable[[LastMessage], float]) -> Any:
    """Return a BrowserGym environment for one task; ``reward`` rates the agent's last message."""
    from browsergym.core.action.highlevel import HighLevelActionSet
    from browsergym.core.env import BrowserEnv
    from browsergym.core.task import AbstractBrowserTask

    class SampleTask(AbstractBrowserTask):
        """One task of the sample."""

        def __init__(self, seed: int) -> None:
            super().__init__(seed)
            self.slow_mo = 0

        def setup(self, page: Any) -> tuple[str, dict]:
            page.goto(url, timeout=10_000)
            return goal, {}

        def validate(self, page: Any, chat_messages: list[dict]) -> tuple[float, bool, str, dict]:
            last = chat_messages[-1]
            if last["role"] not in ENDS:
                return 0.0, False, "", {}
            return reward(LastMessage(last["message"], last["role"] == "infeasible")), True, "", {}

    class SteadyEnv(BrowserEnv):
        """An environment that restores the page's size after a screenshot.

        Otherwise the trees and boxes of later observations would not match their screenshots.
        """

        def _get_obs(self) -> dict[str, Any]:
            seen = super()._get_obs()
            session = self.context.new_cdp_session(self.page)  # left open: closing it undoes the override
            session.send("Emulation.setDeviceMetricsOverride", WINDOW)
            return seen

    actions = HighLevelActionSet(subsets=["chat", "nav", "bid", "coord", "infeas"], multiaction=False)
    return SteadyEnv(task_entrypoint=SampleTask, headless=True, action_mapping=actions.to_python_code)


@contextmanager
def closing(environment: Any) -> Iterator[Any]:
    """Close an environment at the end of the block. After an error, errors of closing it are ignored.

    Raises BrowserFailed, with one line, for Playwright's errors.
    """
    from playwright.sync_api import Error

    try:
        yield environment
    except KeyboardInterrupt:
        raise  # Ctrl-C has also ended the browser, and closing it would wait forever
    except BaseException as error:
        with suppress(Exception):
            environment.close()
        if isinstance(error, Error):
            raise BrowserFailed(f"the browser failed: {first_line(str(error))}") from error
        raise
    environment.close()


def tree_texts(observation: dict[str, Any]) -> tuple[str, str]:
    """Return the accessibility tree in full and pruned, with the options of the released files."""
    from browsergym.utils import obs

    roles = [*obs.IGNORED_AXTREE_ROLES, INLINE_TEXT]
    given = (observation["axtree_object"], observation["extra_element_properties"])
    full = obs.flatten_axtree_to_str(*given, with_visible=True, with_clickable=True, ignored_roles=roles)
    pruned = obs.flatten_axtree_to_str(
        *given, filter_visible_only=True, filter_with_bid_only=True, ignored_roles=roles
    )
    return full, pruned


def first_line(error: str) -> str:
    """Return the first line of an error, without Playwright's log, which depends on the machine's speed."""
    return error.splitlines()[0].strip() if error.strip() else ""
