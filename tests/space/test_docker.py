"""Tests of the image's command and environment, without Docker: a Space on all addresses, read-only."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from submissions.app import SubmissionsApp
from tests.conftest import REPOSITORY
from tests.space.gradio_app.conftest import DECLARED, Running
from tests.space.gradio_app.test_mcp_server import failed, text_of, tool, value_of
from tests.support.ports import hold_port, port_of
from tests.support.submissions import counts, settings_for, verdicts, write_suite
from tests.support.waiting import until_served

pytestmark = pytest.mark.slow

SECONDS = 180
NAME = "board.example.org"


def instruction(name: str) -> str:
    """Return the text after an instruction of the Dockerfile."""
    text = (REPOSITORY / "Dockerfile").read_text()
    return re.search(rf"^{name} (.*)$", text, re.MULTILINE)[1]


class Container:
    """A process that is started as in the image, but with another state folder and suite."""

    def __init__(self, folder: Path, **environment: str) -> None:
        write_suite(folder)
        self.settings = settings_for(folder, folder / "state")
        self.service = SubmissionsApp(self.settings)
        self._held = hold_port()
        port = port_of(self._held)
        self.url, self._log = f"http://127.0.0.1:{port}", folder / "log"
        named = dict(part.split("=", 1) for part in shlex.split(instruction("ENV")))
        assert named == {"ARB_STATE_DIR": "/home/arb/state", "ARB_PORT": "7860"}
        self.environment = {
            **os.environ, **named, "ARB_STATE_DIR": str(self.settings.state_dir), "ARB_PORT": str(port),
            "ARB_SUITE": self.settings.suite, "ARB_LABELS": self.settings.labels,
            "ARB_SECRET": self.settings.secret.get_secret_value(), "ARB_MAINTAINERS": "mia", **environment,
        }  # fmt: skip
        command = json.loads(instruction("CMD"))
        assert command[0] == "arb"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *command], cwd=REPOSITORY, env=self.environment, stdout=log, stderr=log
            )

    def arb(self, *words: str) -> str:
        """Return the output of a command in the container."""
        command = [sys.executable, "-m", "arb", *words]
        done = subprocess.run(
            command, cwd=REPOSITORY, env=self.environment, capture_output=True, text=True, timeout=SECONDS
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def wait(self) -> "Container":
        until_served(self.url, lambda: self.process.poll() is not None, self._log)
        return self

    def submit(self, **headers: str) -> httpx.Response:
        form = {**DECLARED, "account": "Ada"} if not headers else DECLARED
        files = {"file": ("a.jsonl", verdicts(self.service.suite))}
        address = f"{self.url}/api/submissions"
        return httpx.post(address, data=form, files=files, headers=headers, timeout=SECONDS)

    def end(self) -> None:
        self.process.kill()
        self.process.wait(timeout=SECONDS)
        self._held.close()


@pytest.fixture(scope="module")
def container(tmp_path_factory) -> Iterator[Container]:
    found = Container(tmp_path_factory.mktemp("container"), ARB_ALLOWED_HOSTS=NAME)
    yield found.wait()
    found.end()


def test_a_published_port_is_answered_and_the_health_check_passes(container):
    assert container.process.poll() is None
    for path in ("/", "/submit", "/api/board.json", "/readyz"):
        assert httpx.get(container.url + path, timeout=SECONDS).status_code == 200
    check = instruction("HEALTHCHECK").partition("CMD ")[2]
    assert subprocess.run(check, shell=True, env=container.environment, timeout=SECONDS).returncode == 0


def test_it_is_asked_under_known_host_names_only(container):
    for name, status in ((NAME, 200), ("localhost:7860", 200), ("evil.example", 400)):
        answer = httpx.get(f"{container.url}/healthz", headers={"host": name}, timeout=SECONDS)
        assert answer.status_code == status, name


def test_nobody_submits_moderates_or_signs_in_under_a_name(container):
    refused = container.submit()
    assert refused.status_code == 401 and "access token" in refused.json()["detail"]
    content = verdicts(container.service.suite).decode()
    found = tool(Running(container.url, None, None), "submit", content=content, **DECLARED, account="Ada")
    assert failed(found) and "access token" in text_of(found)
    here = {"origin": container.url}
    answer = httpx.post(f"{container.url}/sign-in", data={"name": "mia"}, headers=here, timeout=SECONDS)
    assert answer.status_code == 401 and "not an access token of this Space" in answer.text
    for headers in ({"Authorization": "Bearer arb_" + "x" * 43}, {"Authorization": "Bearer hf_made_up"}):
        assert container.submit(**headers).status_code == 401
    body = {"decision": "banned", "reason": "x", "even_if_unknown": True}
    address = f"{container.url}/api/maintain/accounts/ada"
    assert httpx.post(address, json=body, timeout=SECONDS).status_code == 401
    assert counts(container.service)["submissions"] == 0


def test_an_account_submits_with_its_access_token_until_that_is_revoked(container):
    token = container.arb("space", "token", "ada")
    bearer = {"Authorization": f"Bearer {token}"}
    sent = container.submit(**bearer)
    assert (sent.status_code, sent.json()["account"]) == (201, "ada")
    content = verdicts(container.service.suite, misses=1).decode()
    found = tool(Running(container.url, None, None), "submit", headers=bearer, content=content, **DECLARED)
    assert value_of(found)["account"] == "ada"

    with httpx.Client(base_url=container.url, headers={"origin": container.url}, timeout=SECONDS) as browser:
        assert 'name="token"' in browser.get("/sign-in").text
        assert browser.post("/sign-in", data={"token": token}).status_code == 303
        assert browser.get("/api/me").json()["name"] == "ada"
        assert sent.json()["submission_id"] in browser.get("/mine").text
        assert browser.get("/maintain").status_code == 403
        assert container.arb("space", "token", "Ada", "--revoke") == "Revoked 1 token of Ada."
        assert browser.get("/api/me").json()["name"] is None
    assert container.submit(**bearer).status_code == 401


def test_a_maintainer_is_an_account_with_a_token(container):
    token = json.loads(container.arb("space", "token", "mia", "--json"))["token"]
    headers = {"Authorization": f"Bearer {token}"}
    assert httpx.get(f"{container.url}/maintain", headers=headers, timeout=SECONDS).status_code == 200


def test_no_token_is_stored_as_it_is(container):
    token = container.arb("space", "token", "bob")
    stored = b"".join(path.read_bytes() for path in container.settings.state_dir.iterdir() if path.is_file())
    assert token.encode() not in stored
    assert token not in container._log.read_text()
