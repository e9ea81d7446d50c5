"""docs/troubleshooting.md: the code prints every quoted message in the situation that the page describes."""

import json
import os
import re
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from arb.__main__ import app
from arb.core.settings import Settings
from arb.core.suite import SuiteRules, load_suite
from arb.judges.engine.storage import StorageError, storing
from leaderboard.labels import source
from space.app import create_app
from space.auth.auth import with_checked_host
from submissions.errors import RateLimited
from submissions.intake.accounts import remaining_quota, require_quota
from tests import conftest
from tests.space.gradio_app.conftest import running
from tests.support.hub_server.server import HubServer
from tests.support.llm_server.chat import Scripted
from tests.support.llm_server.server import LLMServer
from tests.support.ports import hold_port, port_of
from tests.support.submissions import settings_for, write_suite

REPOSITORY = Path(__file__).parents[1]
PAGE = (REPOSITORY / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### ([^\n]+)\n(.*?)(?=^##|\Z)", PAGE, flags=re.MULTILINE | re.DOTALL))
DECLARED = ("--kind", "Rule-based", "--inputs", "other", "--authors", "Ada", "--no-test-labels-used")
SAY: dict[str, Callable[[pytest.FixtureRequest], str]] = {}
"""What brings each message about, by its heading."""


def says(heading: str):
    def keep(function):
        SAY[heading] = function
        return function

    return keep


def arb(*arguments: object, **environment: str) -> str:
    """What the command prints, as `arb` names its own commands."""
    result = CliRunner().invoke(app, [str(each) for each in arguments], env=environment)
    assert not isinstance(result.exception, (AssertionError, TypeError)), result.exception
    return result.output


def judge(server: LLMServer | None, *more: object, address: str = "") -> str:
    base_url = server.base_url if server else address
    given = ("simplified-neither", "--suite", "sample", "--split", "dev", "--model", "m")
    return arb("judges", "run", *given, "--base-url", base_url, "--cache", "cache", "--out", "run", *more)


def python(code: str, folder: Path, **environment: str) -> str:
    """What a Python of its own writes, in a folder."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env={**os.environ, **environment}, capture_output=True,
        text=True, timeout=240,
    )  # fmt: skip
    return done.stdout + done.stderr


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    """A reader's folder, and a command that was called as ``arb``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["arb"])
    for name in ("ARB_SUITE", "ARB_SECRET", "OPENAI_API_KEY", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ARB_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("COLUMNS", "4000")
    return tmp_path


@says("The shell does not find `arb`")
def _(request):
    return subprocess.run(
        ["/bin/sh", "-c", "arb"], env={"PATH": ""}, capture_output=True, text=True
    ).stderr.replace("not found", "command not found")  # as bash and zsh say


@says("Python is too old")
def _(request):
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    return (
        f"ERROR: Package {project['name']!r} requires a different Python: 3.10 "
        f"not in {project['requires-python']!r}"
    )  # of pip


@says("An extra is missing")
def _(request):
    monkeypatch = request.getfixturevalue("monkeypatch")
    monkeypatch.setattr("arb.judges.endpoints.providers._is_installed", lambda module: False)
    return arb(
        "judges", "run", "simplified-neither", "--suite", "sample", "--split", "dev", "--out", "run",
        "--provider", "anthropic", ANTHROPIC_API_KEY="x",
    )  # fmt: skip


@says("`/docs` of a Space is not found")
def _(request):
    request.getfixturevalue("monkeypatch").setattr("space.app.project_file", lambda name: Path("absent"))
    client = TestClient(create_app(Settings(labels="none"), wait_s=0))
    return client.get("/docs", headers={"Accept": "text/html"}).text


@says("`load_dataset` does not find the dataset")
def _(request):
    with HubServer() as hub:
        code = "from datasets import load_dataset; load_dataset('agent-reward-bench')"
        return python(code, Path(), HF_ENDPOINT=hub.url, HF_HOME=str(Path("hf").absolute()))


@says("`load_dataset` returns old rows")
def _(request):
    Path("elsewhere").mkdir()
    arb("data", "get", "--sample")
    code = (
        "import os; from datasets import load_dataset; load_dataset('agent-reward-bench'); "
        "os.chdir('elsewhere'); print(load_dataset('agent-reward-bench')['dev'])"
    )
    with HubServer() as hub:
        return python(code, Path(), HF_ENDPOINT=hub.url, HF_HOME=str(Path("hf").absolute()))


@says("There are no recorded runs")
def _(request):
    return arb("judges", "run", "rule-based", "--split", "dev", "--out", "run")


@says("There is no such judge")
def _(request):
    return arb("judges", "run", "aer-x", "--split", "dev", "--out", "run")


@says("The run refuses its folder")
def _(request):
    arb("judges", "run", "always-successful", "--split", "dev", "--out", "runs/a")
    return arb("judges", "run", "never-successful", "--split", "dev", "--out", "runs/a")


@says("The key is not set")
def _(request):
    given = ("gpt-4o-mini-noscreen", "--suite", "sample", "--split", "dev", "--out", "run")
    return arb("judges", "run", *given, "--provider", "openai")


@says("The key is wrong, or there is no credit")
def _(request):
    with LLMServer(api_key="another") as server:
        return judge(server)


@says("Nothing answers at the address")
def _(request):
    held = hold_port()
    return judge(None, address=f"http://127.0.0.1:{port_of(held)}/v1")


@says("Only rate limits")
def _(request):
    with LLMServer(lambda _: Scripted("", fault="rate_limit")) as server:
        return judge(server, "--rate-limit-timeout", "0.5")


@says("The run reached `--max-usd`")
def _(request):
    with LLMServer() as server:
        return judge(server, "--price", "m=1000,1000", "--max-usd", "0.01")


@says("The price of a model is unknown")
def _(request):
    with LLMServer() as server:
        return judge(server, "--max-usd", "1")


@says("The disk is full")
def _(request):
    with pytest.raises(StorageError) as found, storing("runs/mine"):
        Path("/dev/full").write_text("a device that is always full")
    return str(found.value)  # `arb/judges/hostile/test_full_disk.py` fills a disk


def score(rows: list[str], split: str = "dev") -> str:
    Path("predictions.jsonl").write_text("\n".join(rows) + "\n")
    return arb("score", "predictions.jsonl", "--split", split)


def rows(prefix: str = "") -> list[str]:
    ids = [each.trajectory_id for each in load_suite().split("dev")]
    return [json.dumps({"trajectory_id": prefix + each, "success": True}) for each in ids]


@says("The file is refused with findings")
def _(request):
    return score(rows()[:5])


@says("The file is for the other split")
def _(request):
    return score(rows(), "test")


@says("Ids have a prefix")
def _(request):
    return score(rows("run7/"))


@says("A verdict is not understood")
def _(request):
    Path("maybe.csv").write_text("trajectory_id,success\nwebarena/AGENT/webarena.1,maybe\n")
    return arb("score", "maybe.csv", "--split", "dev")


@says("The official labels are missing")
def _(request):
    Path("cache").mkdir()
    with pytest.raises(source.LabelsUnavailable) as found:
        source._cached_wheel(Settings(cache_dir=Path("cache")), fetch=False)
    return str(found.value)


def submit(token: str = "", address: str = "", **settings: str) -> str:
    """What `submit` prints if a file is sent twice."""
    write_suite(Path())
    given = settings_for(Path().absolute(), Path("state").absolute(), max_upload_bytes=100_000, **settings)
    more = ("--token", token) if token else ("--account", "ada")
    with running(given, Path("files")) as space:
        Path("predictions.jsonl").write_bytes(space.valid())
        line = ("predictions.jsonl", "--space", address or space.url, *more, "--judge", "mine", *DECLARED)
        return "".join(arb("submissions", "submit", *line, ARB_SUITE=given.suite) for _ in range(2))


@says("The file was already submitted")
def _(request):
    return submit()


@says("The limit of files is reached")
def _(request):
    now = datetime(2026, 1, 2, tzinfo=UTC)
    with pytest.raises(RateLimited) as found:
        require_quota(remaining_quota([now, now], SuiteRules(), now), SuiteRules())
    return str(found.value)


@says("The Space asks you to sign in")
def _(request):
    return submit(host="0.0.0.0")


@says("The token is refused")
def _(request):
    return submit(token="arb_mistyped", host="0.0.0.0")


@says("The token would be sent unencrypted")
def _(request):
    return submit(token="arb_x", address="http://board.example.org")


@says("The port is in use")
def _(request):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = str(listening.getsockname()[1])
        return arb("space", "serve", "--port", port).replace(port, "7860")


@says("The host header is invalid")
def _(request):
    settings = Settings(labels="none")
    client = TestClient(with_checked_host(create_app(settings, wait_s=0), settings))
    return client.get("/", headers={"Host": "board.example.org"}).text


def serve(**environment: str) -> str:
    return arb("space", "serve", "--port", 0, ARB_LABELS="none", **environment)


@says("The secret changed")
def _(request):
    create_app(Settings(labels="none", secret="863bf41c30eb455c968d136c2c02861a"), wait_s=0)
    return serve(ARB_SECRET="eab69819ef1c1cd52f14e04168d8698e")


@says("The secret is too weak")
def _(request):
    return serve(ARB_SECRET="123e4567-e89b-12d3-a456-426614174000")


@says("Chromium is missing")
def _(request):
    no_browser = SimpleNamespace(chromium=SimpleNamespace(executable_path="absent"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(conftest.shutil, "which", lambda name: None)
        patched.setattr("playwright.sync_api.sync_playwright", lambda: nullcontext(no_browser))
        with pytest.raises(BaseException) as found:  # skipped, or failed where every test is required
            conftest.chromium.__wrapped__()
    return str(found.value)


def test_every_section_says_what_the_message_is_why_it_comes_and_what_to_do():
    assert len(SECTIONS) >= 15 and SECTIONS.keys() == SAY.keys()
    for heading, text in SECTIONS.items():
        assert text.count("```text\n") == text.count("**Cause.**") == text.count("**What to do.**") == 1, (
            heading
        )


@pytest.mark.slow
@pytest.mark.parametrize("heading", SECTIONS)
def test_the_message_is_what_the_code_says(heading, request):
    (quoted,) = re.findall(r"^```text\n(.*?)^```", SECTIONS[heading], flags=re.MULTILINE | re.DOTALL)
    said = " ".join(SAY[heading](request).split())
    pattern = ".*?".join(re.escape(part.strip()) for part in " ".join(quoted.split()).split("…"))
    assert re.search(pattern, said), f"{quoted}\nbut it says\n{said[-2000:]}"
