import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from dataset_script.settings import Settings
from space.__main__ import app as command
from space.auth.loopback import host_problem, is_loopback, with_checked_host


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "::1", "[::1]", "127.1.2.3"])
def test_this_machines_own_addresses_are_served(host):
    assert is_loopback(host)
    assert host_problem(host, Settings()) is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.org", "localhost.example.org", ""])
def test_other_addresses_are_not_served_without_a_space(host):
    said = host_problem(host, Settings())
    assert "without a Space (SPACE_ID)" in said
    assert host_problem(host, Settings(space_id="ada/board")) is None


def test_the_command_stops_with_one_line_before_anything_is_opened(tmp_path, monkeypatch):
    monkeypatch.setenv("ARB_STATE_DIR", str(tmp_path / "state"))
    done = CliRunner().invoke(command, ["serve", "--host", "0.0.0.0"])
    assert done.exit_code == 2
    assert len(done.output.strip().splitlines()) == 1
    for said in ("0.0.0.0", "nobody signs in", "127.0.0.1", "as a Space"):
        assert said in done.output
    assert not (tmp_path / "state").exists()


def served(settings: Settings, host="127.0.0.1") -> TestClient:
    app = FastAPI()
    app.get("/")(lambda: "here")
    return TestClient(with_checked_host(app, settings, host))


@pytest.mark.parametrize("name", ["127.0.0.1:7860", "localhost", "localhost:1234", "[::1]:7860", "LocalHost"])
def test_a_browser_may_ask_under_the_machines_own_names(name):
    assert served(Settings()).get("/", headers={"host": name}).status_code == 200


@pytest.mark.parametrize("name", ["evil.example", "127.0.0.1.evil.example:78", "localhost.evil.example", ""])
def test_a_name_that_was_pointed_here_from_elsewhere_is_refused(name):
    assert served(Settings()).get("/", headers={"host": name}).status_code == 400


def test_on_a_space_the_hub_decides_under_which_name():
    client = served(Settings(space_id="ada/board"), "0.0.0.0")
    assert client.get("/", headers={"host": "ada-board.hf.space"}).status_code == 200
