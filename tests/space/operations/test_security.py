"""Tests of security headers and closed routes: our own scripts run and no others."""

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import gradio
import pytest
from fastapi.testclient import TestClient

from space.app import create_app
from space.operations.security import HUB, PACKED, is_closed, security_headers
from tests.support.submissions import settings_for


@pytest.mark.parametrize(
    "path",
    [
        "/monitoring", "/monitoring/summary", "/logout", "/login", "/login/", "/gradio_api/dev/reload",
        "/gradio_api/proxy=https://example.org", "/gradio_api/vibe-code", "/gradio_api/undo-vibe-edit",
        "/gradio_api/stream/x/close", "/gradio_api/runs", "/gradio_api/component_server",
        "/gradio_api/call/board", "/gradio_api/call/board/x", "/gradio_api/run/check",
        "/gradio_api/api/check",
        "/gradio_api/heartbeat/x", "/gradio_api/queue/status", "/gradio_api/startup-events",
        "/gradio_api/file=https://example.org/x", "/gradio_api/file//etc/passwd", "/gradio_api/upload/x",
        "/gradio_api/queue/join\n", "/openapi.json", "/submit/",
    ],
)  # fmt: skip
def test_addresses_that_no_page_uses_are_closed(path):
    assert is_closed(path)


@pytest.mark.parametrize(
    "path",
    [
        "/", "/login/start", "/login/callback", "/gradio_api/queue/join", "/gradio_api/upload",
        "/trajectories/list", "/gradio_api/file=/x", "/gradio_api/info", "/config",
        "/gradio_api/queue/data", "/api/maintain/log",
    ],
)  # fmt: skip
def test_addresses_that_pages_use_are_open(path):
    assert not is_closed(path)


def directives(policy: str) -> dict[str, list[str]]:
    return {name: values for name, *values in (part.split() for part in policy.split("; "))}


@pytest.fixture(scope="module")
def client(suite_folder, tmp_path_factory):
    state = tmp_path_factory.mktemp("headers") / "state"
    with TestClient(create_app(settings_for(suite_folder, state))) as client:
        yield client


ADDRESSES = (
    "/", "/about", "/submit", "/api", "/api/board.json", "/healthz", "/config", "/nowhere", "/metrics",
    "/gradio_api/info", "/gradio_api/file=/etc/passwd", "/manifest.json", "/theme.css",
)  # fmt: skip


EMBEDDED = ("/", "/compare", "/judge", "/about")
WITH_ACTIONS = (
    "/rates",
    "/submit",
    "/trajectories",
    "/errors",
    "/labels",
    "/disputes",
    "/sign-in",
    "/mine",
    "/api",
)


@pytest.mark.parametrize("address", EMBEDDED)
def test_every_site_may_embed_a_page_that_is_only_read(client, address):
    headers = client.get(address).headers
    assert directives(headers["content-security-policy"])["frame-ancestors"] == ["*"]
    assert "x-frame-options" not in headers


@pytest.mark.parametrize("address", WITH_ACTIONS)
def test_no_other_site_may_embed_a_page_with_actions(client, address):
    headers = client.get(address).headers
    assert directives(headers["content-security-policy"])["frame-ancestors"] == ["'self'"]
    assert headers["x-frame-options"] == "SAMEORIGIN"


@pytest.mark.parametrize("address", EMBEDDED)
def test_a_page_that_every_site_may_embed_has_no_form_that_changes_anything(client, address):
    """Only the form that signs people out: a site that lays something over it gains nothing."""
    html = client.get(address).text
    posts = re.findall(r"<form[^>]*method=.?post[^>]*>", html, re.IGNORECASE)
    assert all("/sign-out" in form for form in posts), posts
    assert "data-action" not in html


@pytest.mark.parametrize("address", ADDRESSES)
def test_every_answer_has_them(client, address):
    headers = client.get(address).headers
    for name in security_headers(on_space=False):
        assert name in headers or (address in EMBEDDED and name == "X-Frame-Options"), name
    assert headers["x-content-type-options"] == "nosniff"
    assert directives(headers["content-security-policy"]).get("object-src", ["'none'"]) == ["'none'"]


class Inline(HTMLParser):
    """The inline scripts that a browser finds in a page, and event handlers in attributes."""

    def __init__(self, html: str):
        super().__init__()
        self.texts: list[str] = []
        self.handlers: list[str] = []
        self._in = False
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        runs = named.get("type") in (None, "", "module", "text/javascript")
        self._in = tag == "script" and "src" not in named and runs
        if self._in:
            self.texts.append("")
        self.handlers += [name for name in named if name.startswith("on")]

    def handle_endtag(self, tag):
        self._in = self._in and tag != "script"

    def handle_data(self, data):
        if self._in:
            self.texts[-1] += data


@pytest.mark.parametrize(
    "page",
    [
        "/",
        "/compare",
        "/judge",
        "/my-agent",
        "/rates",
        "/validate",
        "/trajectories",
        "/about",
        "/api",
        "/errors",
        "/labels",
        "/disputes",
    ],
)
def test_a_page_allows_exactly_the_inline_scripts_that_it_has(client, page):
    answer = client.get(page)
    allowed = directives(answer.headers["content-security-policy"])["script-src"]
    found = Inline(answer.text)
    for text in found.texts:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in allowed
    assert found.texts and found.handlers == []
    assert "'unsafe-inline'" not in allowed
    assert "'unsafe-eval'" not in allowed


def allowed_origin(client, origin: str, path: str) -> str | None:
    """Return the origin that may read the responses to a preflight and to a call; both allow the same one."""
    asked = {"origin": origin, "host": "board.example", "access-control-request-method": "POST"}
    preflight, answer = client.options(path, headers=asked), client.get(path, headers=asked)
    name = "access-control-allow-origin"
    assert preflight.headers.get(name) == answer.headers.get(name)
    assert "access-control-allow-credentials" not in {**preflight.headers, **answer.headers}
    return answer.headers.get(name)


CROSS_SITE = ("/config", "/gradio_api/info", "/api/board.json")


@pytest.mark.parametrize("path", CROSS_SITE)
@pytest.mark.parametrize("origin", ["https://evil.example", "https://huggingface.co", "null"])
def test_pages_of_other_sites_can_read_no_answer(client, path, origin):
    assert allowed_origin(client, origin, path) is None


@pytest.mark.parametrize("path", CROSS_SITE)
def test_on_a_space_pages_of_the_hub_can_read_answers_and_no_other(suite_folder, tmp_path, path):
    settings = settings_for(
        suite_folder, tmp_path / "state", space_id="ada/board", space_host="board.example", state_lasts=True
    )
    with TestClient(create_app(settings)) as client:
        assert allowed_origin(client, HUB, path) == HUB
        for origin in ("https://evil.example", f"{HUB}.evil.example", "https://other.hf.space"):
            assert allowed_origin(client, origin, path) is None


def test_what_a_stranger_sent_is_opened_as_nothing(client):
    sent = client.post(
        "/gradio_api/upload", files={"files": ("x.html", b"<script>alert(1)</script>")}
    ).json()[0]
    answer = client.get(f"/gradio_api/file={sent}")
    assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"


def test_on_a_space_the_hub_may_frame_the_pages_and_nobody_else():
    here, there = security_headers(on_space=False), security_headers(on_space=True)
    assert here["X-Frame-Options"] == "SAMEORIGIN" and "X-Frame-Options" not in there
    assert directives(here["Content-Security-Policy"])["frame-ancestors"] == ["'self'"]
    framed = directives(there["Content-Security-Policy"])["frame-ancestors"]
    assert framed == ["'self'", "https://huggingface.co"]


def test_what_the_form_waits_for_is_packed_and_its_scripts_have_no_headers_of_pages(client):
    for path in PACKED:
        assert client.get(path).headers["content-encoding"] == "gzip"
    script = next((Path(gradio.__file__).parent / "templates" / "frontend" / "assets").glob("Blocks-*.js"))
    headers = client.get(f"/assets/{script.name}").headers
    assert headers["x-content-type-options"] == "nosniff"
    assert "content-security-policy" not in headers
