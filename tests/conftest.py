"""What several packages' tests share: the shared folder, the official labels, a browser."""

import fcntl
import gc
import logging
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import pytest
import typer.main
import typer.testing
from httpx._config import DEFAULT_TIMEOUT_CONFIG
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from sqlalchemy import Engine, create_engine
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

from arb.core.settings import Settings
from leaderboard.labels.source import LabelsUnavailable, locate_labels
from tests.support import next_steps
from tests.support.canary import Watch, files_with_canaries, recognisable_nonce, watching

REPOSITORY = Path(__file__).parents[1]
EVERY_TEST = bool(os.environ.get("REQUIRE_EVERY_TEST"))

# What is imported to collect the tests stays: looking for garbage in it again and again took a fifth of their
# time.
gc.disable()

# Machines are noisy: nothing fails for the time that an example, or drawing it, takes.
# `make test` draws the same 50 examples in every run. Where every test is required (.ci/run), 100 new ones
# are drawn; a failure prints how to draw it again.
ANY_TIME = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
hypothesis_settings.register_profile("fixed", **ANY_TIME, derandomize=True, max_examples=50)
hypothesis_settings.register_profile("fresh", **ANY_TIME, print_blob=True)
hypothesis_settings.load_profile("fresh" if EVERY_TEST else "fixed")


def examples(number: int) -> int:
    """Of a property that needs many: all are drawn only where every test is required."""
    return number if EVERY_TEST else max(50, number // 5)


def _absent(what: str) -> None:
    """Skip with a line on a user's machine; where every test is required (CI), fail."""
    if EVERY_TEST:
        pytest.fail(f"{what}: required here (REQUIRE_EVERY_TEST)")
    pytest.skip(what)


APART = (
    "tests/e2e/test_every_page.py", "tests/e2e/test_documentation.py",
    "tests/arb/judges/ray/test_run.py::test_of_twenty_kills",
)  # fmt: skip
"""Minutes of tests that share little with the others of their folder or file: a process of their own."""

LONGEST = (
    "tests/space/test_hostile_uploads.py", "tests/arb/judges/ray/test_run.py::test_of_twenty_kills",
    "tests/e2e/", "tests/submissions/test_hub_storm.py", "tests/e2e/test_every_page.py",
    "tests/e2e/test_documentation.py", "tests/arb/judges/ray/test_run.py",
    "tests/arb/judges/ray/test_nodes.py", "tests/test_readme.py", "tests/test_package.py",
    "tests/arb/judges/run/test_runner.py", "tests/bench/",
    "tests/arb/judges/run/test_hostile_endpoint.py", "tests/attacks/test_gain_attacks.py",
    "tests/test_docs.py", "tests/space/deploy/", "tests/dataset_script/test_streaming.py",
    "tests/test_golden.py", "tests/space/test_serve.py", "tests/submissions/test_storm.py",
    "tests/submissions/test_two_replicas.py", "tests/test_contributing.py", "tests/arb/judges/hostile/",
    "tests/arb/test_hub.py",
)  # fmt: skip
"""What takes longest is begun first, in this order: begun last, it would leave one process alone with it."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first; see ``--no-loadscope-reorder`` in the Makefile."""

    def place(item: pytest.Item) -> int:
        names = [name for name in LONGEST if item.nodeid.startswith(name)]
        return LONGEST.index(max(names, key=len)) if names else len(LONGEST)

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """Only what tests make is searched for garbage, and less often than by default (700)."""
    if "gradio" in sys.modules:
        from tests.support.gradio_servers import leave_out_unused_servers
        from tests.support.route_fields import share_validators

        leave_out_unused_servers()
        share_validators()
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()


class BrowserTestsTogether(LoadFileScheduling):
    """A file's tests run in one process, and the browser's in one, where they share Spaces; some `APART`."""

    def _split_scope(self, nodeid: str) -> str:
        return next(
            (name for name in (*APART, "tests/e2e/") if nodeid.startswith(name)), super()._split_scope(nodeid)
        )

    def _assign_work_unit(self, node: WorkerController) -> None:
        """A process is given more once it has less than three tests left; while one of them is long, that is
        the last of the queue, which is short: a long one would wait.
        """
        left = [name for unit in self.assigned_work.get(node, {}).values() for name in unit if not unit[name]]
        if any(name.startswith(LONGEST) for name in left):
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes name no test: processes started in different seconds would compress them to different names."""
    return argname if isinstance(val, bytes) else None


def pytest_xdist_make_scheduler(config: pytest.Config, log) -> BrowserTestsTogether:
    """The scheduler of `pytest -n`."""
    return BrowserTestsTogether(config, log)


@contextmanager
def one_worker_at_a_time(tmp_path_factory, name: str) -> Iterator[Path]:
    """Run the block in one process of the test run at a time (pytest-xdist starts several).

    Gives the folder that all of them have.
    """
    folder = tmp_path_factory.getbasetemp()
    shared_by_workers = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    with (shared_by_workers / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield shared_by_workers


@pytest.fixture(scope="session", autouse=True)
def _no_settings_from_outside(tmp_path_factory):
    """Tests do not see the caller's settings, and keep uploads in a folder of their worker."""
    for name in list(os.environ):
        if name.startswith(("ARB_", "SPACE_", "OAUTH_")) or name in ("DATABASE_URL", "HF_TOKEN"):
            del os.environ[name]
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    os.environ["GRADIO_TEMP_DIR"] = str(tmp_path_factory.mktemp("gradio"))


@pytest.fixture(autouse=True)
def _next_steps_are_commands(monkeypatch):
    """Whatever a command under test prints as the next step can be typed as it stands."""
    from arb.core import cli

    def checked(text: str) -> str:
        if text.startswith("Next, "):
            next_steps.parse(text)
        return printable(text)

    printable = cli.printable
    monkeypatch.setattr(cli, "printable", checked)


@pytest.fixture(scope="session", autouse=True)
def _httpx_is_patient():
    """Clients wait for an answer longer than five seconds, which a busy machine may need."""
    with pytest.MonkeyPatch.context() as patched:
        for wait in ("connect", "read", "write", "pool"):
            patched.setattr(DEFAULT_TIMEOUT_CONFIG, wait, 120)
        yield


@pytest.fixture
def within_a_minute(monkeypatch):
    """The clock stands still: limits are counted by the minute, and none ends while a test sends."""
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)


@pytest.fixture(autouse=True)
def _logs_are_as_before():
    """A command under test may set up logs on the output of its own; after the test that is closed."""
    root = logging.getLogger()
    before = list(root.handlers)
    yield
    for handler in [each for each in root.handlers if each not in before]:
        if not type(handler).__module__.startswith("_pytest"):
            root.removeHandler(handler)


@pytest.fixture(scope="session", autouse=True)
def _databases_begin_as_copies(tmp_path_factory):
    """A new SQLite file of records is a copy of one whose tables were made once."""
    from submissions.records import database

    migrate, empty = database.migrate, tmp_path_factory.mktemp("records") / "empty.sqlite"

    def begin_or_migrate(engine: Engine) -> None:
        path = engine.url.database
        if engine.dialect.name != "sqlite" or not path or path == ":memory:" or Path(path).exists():
            migrate(engine)
            return
        if not empty.exists():
            begun = create_engine(f"sqlite:///{empty}")
            migrate(begun)
            begun.dispose()
        copy = Path(f"{path}-{threading.get_ident()}")
        shutil.copyfile(empty, copy)
        with suppress(FileExistsError):  # another thread or process was faster
            Path(path).hardlink_to(copy)
        copy.unlink()

    database.migrate = begin_or_migrate
    yield
    database.migrate = migrate


@pytest.fixture(scope="session", autouse=True)
def _commands_are_built_once():
    """Typer makes the commands out of their functions again for every call of its `CliRunner`."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(typer.testing, "_get_command", cache(typer.main.get_command))
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_label_gets_out(tmp_path_factory):
    """Canaries planted in label files are nowhere else: in no answer, no log, no file that a test made.

    Those of nonces are in no answer and no log.
    """
    from submissions.records import event_log

    watch = Watch()
    with watching(watch), pytest.MonkeyPatch.context() as patched:
        patched.setattr(event_log, "random_nonce", recognisable_nonce)
        yield
    left = [str(path.name) for path in files_with_canaries(tmp_path_factory.getbasetemp())]
    assert watch.found + left == []


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder beside the checkout with real verdict files and recorded trajectories."""
    folder = REPOSITORY.parent / "shared"
    if not (folder / "data").is_dir():
        _absent("the ../shared folder is not here; tests on its real files are left out")
    return folder


@pytest.fixture(scope="session")
def docs_site(tmp_path_factory) -> Path:
    """The documentation, built strictly, once for all processes of the test run."""
    with one_worker_at_a_time(tmp_path_factory, "docs") as shared_by_workers:
        folder = shared_by_workers / "docs-site"
        if not folder.exists():
            command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", f"{folder}.part"]
            done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, done.stderr
            Path(f"{folder}.part").rename(folder)
    return folder


@pytest.fixture(scope="session")
def official_settings(tmp_path_factory) -> Settings:
    """Settings whose labels are the official ones; fetched once into the user's private cache."""
    settings = Settings(state_dir=tmp_path_factory.mktemp("state"))
    try:
        with one_worker_at_a_time(tmp_path_factory, "labels"):
            locate_labels(settings)
    except LabelsUnavailable as reason:
        _absent(f"the official labels cannot be had ({reason})")
    return settings


@pytest.fixture(scope="session")
def chromium() -> str | None:
    """The path of a Chromium; None means Playwright's own.

    Best one without windows: a page takes it a fifth of the time of a processor that it takes a whole one.
    """
    for name in ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        if Path(playwright.chromium.executable_path).is_file():
            return None
    return _absent("no Chromium found: `apt-get install chromium` or `python -m playwright install chromium`")
