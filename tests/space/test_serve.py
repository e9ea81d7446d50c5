"""Tests of ``arb space serve`` in a separate process: what it prints, and when."""

import asyncio
import json
import os
import pty
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import typer

from arb.core.settings import Settings
from space.__main__ import _bind, _check_sign_in, _settings_of_source
from space.web.frame import PAGES
from submissions.app import SubmissionsApp
from tests.conftest import REPOSITORY
from tests.support.released_layout import SourceFolder
from tests.support.space_app import local_client
from tests.support.submissions import FORM, assert_nothing_was_written

SECONDS = 180
ADDRESS = re.compile(r"The Space is at (http://[^ ]+) \(stop it with Ctrl-C\)")


class Served:
    """The process and its stderr so far, which is a terminal if ``on_terminal`` is true."""

    def __init__(self, state: Path, *options: str, on_terminal: bool, **environment: str) -> None:
        reading, writing = pty.openpty() if on_terminal else os.pipe()
        self.text, self._reading = "", reading
        os.set_blocking(reading, False)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "space", "serve", "--port", "0", *options],
            cwd=REPOSITORY,
            env={**os.environ, "ARB_STATE_DIR": str(state), "ARB_LABELS": "none", **environment},
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=writing,
        )
        os.close(writing)

    def wait_for(self, is_there: Callable[[str], object]) -> str:
        """Return the complete lines once ``is_there`` finds what it wants, or the process has ended."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            has_ended = self.process.poll() is not None
            self._read()
            text = self.text if has_ended else self.text[: self.text.rfind("\n") + 1]
            if has_ended or is_there(text):
                return text
            time.sleep(0.05)
        raise AssertionError(f"not there after {SECONDS} s: {self.text}")

    def _read(self) -> None:
        try:
            while piece := os.read(self._reading, 65_536):
                self.text += piece.decode().replace("\r\n", "\n")
        except (BlockingIOError, OSError):  # no output now, or a terminal whose process has ended
            return

    def stop(self) -> int:
        self.process.terminate()
        status = self.process.wait(timeout=120)
        self._read()
        os.close(self._reading)
        return status


@pytest.fixture
def serve(tmp_path) -> Iterator[Callable[..., Served]]:
    started = []

    def start(*options: str, on_terminal: bool, **environment: str) -> Served:
        served = Served(tmp_path / "state", *options, on_terminal=on_terminal, **environment)
        started.append(served)
        return served

    yield start
    for served in started:
        if served.process.poll() is None:
            served.process.kill()
            served.process.wait(timeout=120)


@pytest.mark.slow
def test_a_terminal_gets_readable_lines_and_the_address_once_there_is_an_answer(serve):
    served = serve(on_terminal=True)
    text = served.wait_for(ADDRESS.search)
    address = ADDRESS.search(text)[1]
    assert urllib.request.urlopen(f"{address}/healthz", timeout=120).status == 200
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(f"{address}/api/tree", timeout=120)
    text = served.wait_for(lambda text: "/api/tree" in text)
    assert re.search(r"^\d\d:\d\d:\d\d GET /healthz 200 in [\d.]+ ms$", text, re.MULTILINE)
    lines = text.splitlines()
    assert not [line for line in lines if line.startswith("{")]
    assert not [line for line in lines if "Warning" in line or "warnings.warn" in line or "gradio" in line]
    served.stop()
    assert "Traceback" not in served.text


@pytest.mark.slow
def test_the_server_stops_at_once_although_clients_listen(serve):
    served = serve(on_terminal=True)
    address = ADDRESS.search(served.wait_for(ADDRESS.search))[1]
    events = json.load(urllib.request.urlopen(f"{address}/config", timeout=SECONDS))["dependencies"]
    board = next(each["id"] for each in events if each["api_name"] == "board")
    body = json.dumps({"fn_index": board, "data": [], "session_hash": "x"}).encode()
    asked = urllib.request.Request(
        f"{address}/gradio_api/queue/join", body, {"content-type": "application/json"}
    )
    urllib.request.urlopen(asked, timeout=SECONDS).read()
    listen = f"{address}/gradio_api/queue/data?session_hash=x"
    urllib.request.urlopen(listen, timeout=SECONDS).read()  # the result; the next streams wait for nothing
    listening = [urllib.request.urlopen(listen, timeout=SECONDS) for _ in range(3)]
    served.stop()
    assert len(listening) == 3
    assert "graceful shutdown exceeded" not in served.text  # uvicorn's words after LAST_ANSWERS_SECONDS
    assert "Traceback" not in served.text


@pytest.mark.slow
def test_json_lines_come_where_they_are_asked_for(serve):
    served = serve("--log-format", "json", on_terminal=True)
    address = ADDRESS.search(served.wait_for(ADDRESS.search))[1]
    urllib.request.urlopen(f"{address}/healthz", timeout=120)
    text = served.wait_for(lambda text: '"/healthz"' in text)
    others = [line for line in text.splitlines() if not ADDRESS.fullmatch(line)]
    assert "space.requests" in {json.loads(line)["logger"] for line in others}
    served.stop()


def test_connections_send_what_they_have_at_once():
    """Without TCP_NODELAY, the body of a page waits for 40 ms on a connection that is open already."""

    async def delays() -> bool:
        found = asyncio.get_running_loop().create_future()

        async def answer(_reader, writer) -> None:
            of = writer.get_extra_info("socket")
            found.set_result(not of.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        bound = _bind("127.0.0.1", 0)
        async with await asyncio.start_server(answer, sock=bound):
            _, writer = await asyncio.open_connection(*bound.getsockname())
            writer.close()
            return await found

    assert not asyncio.run(delays())


@pytest.mark.slow
def test_a_port_that_is_taken_is_one_plain_line_and_no_address(serve):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        served = serve("--port", str(port), on_terminal=True)
        text = served.wait_for(lambda text: False)
        assert served.process.wait(timeout=120) == 2
    assert text == (
        f"error: port {port} on 127.0.0.1 is in use; stop the program that uses it, or choose another port "
        "with --port\n"
    )


@pytest.mark.parametrize(
    "given",
    [
        {"OAUTH_CLIENT_ID": "id", "ARB_ALLOWED_HOSTS": "board.example.org"},
        {"OAUTH_CLIENT_SECRET": "planted", "ARB_ALLOWED_HOSTS": "board.example.org"},
        {"OAUTH_CLIENT_ID": "id", "OAUTH_CLIENT_SECRET": "planted"},
    ],
)
def test_half_of_the_settings_for_signing_in_is_refused_before_anything_starts(given, monkeypatch, capsys):
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(typer.Exit):
        _check_sign_in(Settings())
    said = capsys.readouterr().err
    assert "set all of OAUTH_CLIENT_ID, OAUTH_CLIENT_SECRET and ARB_ALLOWED_HOSTS" in said
    assert "planted" not in said


def test_all_or_none_of_the_settings_for_signing_in_are_accepted():
    _check_sign_in(Settings())
    _check_sign_in(Settings(space_id="ada/board", oauth_client_id="id", oauth_client_secret="secret"))
    _check_sign_in(
        Settings(oauth_client_id="id", oauth_client_secret="secret", allowed_hosts="board.example.org")
    )


SHOWN = ("shop/agent-a/shop.1", "shop/agent-a/shop.2", "shop/agent-b/shop.1")


@pytest.fixture
def runs(tmp_path, monkeypatch) -> Path:
    """Return a folder with three runs in the released layout and a broken one, and a cache for this test."""
    monkeypatch.setenv("ARB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(
        "dataset_script.build.workers.default_workers", lambda: 1
    )  # without a pool of processes
    source = SourceFolder(tmp_path / "my runs")
    for trajectory_id in SHOWN:
        source.put(trajectory_id)
    source.put("shop/agent-b/shop.2", b"{")
    return source.path


def test_the_runs_of_a_source_are_shown_and_nothing_can_be_submitted(runs, tmp_path, capsys):
    settings = Settings(records_repo="owner/records", state_dir=tmp_path / "own-state")
    settings = _settings_of_source(runs, settings)
    printed = capsys.readouterr().err
    assert "3 runs of 2 agents" in printed and "shop.2" in printed
    service = SubmissionsApp(settings)
    client = local_client(service)
    page = client.get("/trajectories")
    assert all(trajectory_id in page.text for trajectory_id in SHOWN)
    assert "<form" in client.get("/trajectories", params={"id": SHOWN[0]}).text
    for entry in PAGES:
        if entry.path != "/submit":  # Gradio's
            assert client.get(entry.path).status_code == 200, entry.path
    assert "ARB_LABELS is 'none'" in service.intake.read_only_reason
    content = b'{"trajectory_id": "shop/agent-a/shop.1", "success": true}'
    form = {**FORM, "test_labels_used": "no"}
    answer = client.post("/api/submissions", data=form, files={"file": ("a.jsonl", content)})
    assert answer.status_code in (409, 422)
    assert not (tmp_path / "own-state").exists() and settings.records_repo is None
    assert_nothing_was_written(service)


def test_agents_of_a_source_are_named_after_chosen_facts(runs, capsys):
    with pytest.raises(typer.Exit):
        _settings_of_source(runs, Settings(), ["model"])
    assert "--agent-from model: no run records this" in capsys.readouterr().err


def test_a_folder_without_runs_is_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("ARB_CACHE_DIR", str(tmp_path / "cache"))
    with pytest.raises(typer.Exit) as ended:
        _settings_of_source(tmp_path, Settings())
    assert ended.value.exit_code == 2
    printed = capsys.readouterr().err.strip()
    assert printed.startswith(f"error: --source {tmp_path} contains no runs in a known format")
    assert "\n" not in printed


def test_an_interrupted_build_says_that_the_same_command_goes_on(runs, capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(typer.Exit) as ended:
        patched.setattr("dataset_script.new_suite.build_source", interrupted)
        _settings_of_source(runs, Settings())
    assert ended.value.exit_code == 130
    assert "run the same command again to resume" in capsys.readouterr().err


@pytest.mark.slow
def test_the_address_of_a_source_is_that_of_its_trajectories(serve, runs):
    served = serve("--source", str(runs), on_terminal=True, ARB_CACHE_DIR=os.environ["ARB_CACHE_DIR"])
    address = ADDRESS.search(served.wait_for(ADDRESS.search))[1]
    assert address.endswith("/trajectories")
    assert SHOWN[2] in urllib.request.urlopen(address, timeout=120).read().decode()
    assert "3 runs of 2 agents" in served.text and "Traceback" not in served.text
    served.stop()
