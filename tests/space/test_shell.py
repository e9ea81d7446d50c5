import asyncio

import pytest
from fastapi import FastAPI
from fastapi.responses import HTMLResponse, PlainTextResponse
from fastapi.testclient import TestClient

from space.kept_assets import KeptAssets
from space.look import TOKENS, Look, in_order
from space.page import Opening, Page
from space.shell import KEPT_FRAMES, PageShell

GRADIO_PAGE = (
    '<!doctype html><html><head><meta charset="utf-8" /><meta property="og:title" content="Gradio" />'
    '<script>window.gradio_config = {"title":"AgentRewardBench"};</script></head>'
    '<body style="x"><gradio-app></gradio-app></body></html>'
)


class Inner:
    """Stands for Gradio: counts how often it is asked, and under which host."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.app = FastAPI()

        @self.app.get("/")
        @self.app.get("/about")
        def page(request_path: str = "") -> HTMLResponse:
            self.asked.append("page")
            return HTMLResponse(GRADIO_PAGE)

        @self.app.get("/broken")
        def broken() -> PlainTextResponse:
            return PlainTextResponse("not now", 503)

        @self.app.get("/assets/{name}")
        def asset(name: str):
            self.asked.append(name)
            known = name.startswith("known")
            return PlainTextResponse("x" * 5000 if known else "none", 200 if known else 404)

        @self.app.get("/api/x")
        def other() -> PlainTextResponse:
            return PlainTextResponse("other")


@pytest.fixture
def inner() -> Inner:
    return Inner()


@pytest.fixture
def content() -> dict:
    """What the opening of the first page shows; a test may change it."""
    return {"html": "<p>first table</p>"}


@pytest.fixture
def client(inner, content) -> TestClient:
    def opening(_services, query: str) -> Opening:
        return Opening(f"{content['html']}<i>{len(query)}</i>", f"{content['html']} {len(query)}")

    pages = (
        Page("Leaderboard", "/", lambda _: None, opening=opening),
        Page("About", "/about", lambda _: None),
        Page("Judge", "/judge", lambda _: None, in_menu=False),
        Page("Broken", "/broken", lambda _: None, in_menu=False),
        Page("Submit", "/submit", lambda _: None),
    )
    return TestClient(PageShell(KeptAssets(inner.app), pages=pages, services=None, look=Look()))


# The frame


def test_a_page_brings_its_content_its_menu_and_its_style_before_any_script_has_run(client):
    page = client.get("/").text
    assert page.index("<p>first table</p>") < page.index("<gradio-app>")
    assert '<a href="/" aria-current="page">Leaderboard</a>' in page
    assert '<a href="/about">About</a>' in page
    assert "/judge" not in page
    assert page.index('rel="stylesheet" href="/look/') < page.index("<body")
    assert "<title>Leaderboard · AgentRewardBench</title>" in page
    assert '"title":"Leaderboard · AgentRewardBench"' in page
    assert "Gradio" not in page


def test_the_inner_page_is_asked_for_once_and_its_frame_used_for_every_content(client, inner, content):
    first = client.get("/").text
    content["html"] = "<p>second table</p>"
    second = client.get("/").text
    assert inner.asked == ["page"]
    assert first.replace("first table", "second table") == second


def test_the_content_follows_the_query_of_the_address(client):
    assert "<i>7</i>" in client.get("/?figure=").text
    assert "<i>0</i>" in client.get("/").text


def test_an_unchanged_page_is_not_sent_again(client, content):
    etag = client.get("/").headers["etag"]
    assert client.get("/", headers={"If-None-Match": etag}).status_code == 304
    content["html"] = "<p>another</p>"
    assert client.get("/", headers={"If-None-Match": etag}).status_code == 200


def test_a_page_is_sent_packed_to_those_who_take_it(client):
    packed = client.get("/", headers={"Accept-Encoding": "gzip"})
    plain = client.get("/", headers={"Accept-Encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert packed.text == plain.text


def test_hosts_have_frames_of_their_own_and_many_of_them_are_not_kept(client, inner):
    for host in ("a.example", "b.example", "a.example"):
        client.get("/about", headers={"Host": host})
    assert len(inner.asked) == 2
    for number in range(KEPT_FRAMES + 5):
        assert client.get("/about", headers={"Host": f"{number}.example"}).status_code == 200
    assert len(client.app._frames) <= KEPT_FRAMES


def test_what_the_inner_application_cannot_serve_it_says_itself(client):
    answer = client.get("/broken")
    assert (answer.status_code, answer.text) == (503, "not now")
    assert client.get("/submit").status_code == 404


def test_other_requests_pass_through(client):
    assert client.get("/api/x").text == "other"
    assert client.post("/").status_code == 405
    assert client.head("/").status_code == 200


# Assets


def test_an_asset_is_made_once_packed_and_kept_by_browsers_for_good(client, inner):
    for _ in range(3):
        answer = client.get("/assets/known.js", headers={"Accept-Encoding": "gzip"})
    assert inner.asked == ["known.js"]
    assert answer.text == "x" * 5000
    assert answer.headers["content-encoding"] == "gzip"
    assert "immutable" in answer.headers["cache-control"]


def test_what_is_not_there_is_asked_for_each_time_and_not_kept(client, inner):
    assert [client.get("/assets/nothing.js").status_code for _ in range(2)] == [404, 404]
    assert client.get("/assets/nothing.js").text == "none"
    assert len(inner.asked) > 2


def test_assets_over_the_room_for_them_are_served_and_not_kept(client, inner, monkeypatch):
    monkeypatch.setattr("space.kept_assets.KEPT_BYTES", 4000)
    assert [client.get("/assets/known.js").text for _ in range(2)] == ["x" * 5000] * 2
    assert len(inner.asked) > 1


# Style and scripts


def test_style_and_scripts_are_named_by_their_content(tmp_path):
    (tmp_path / "style.css").write_text("p {}")
    (tmp_path / "a.js").write_text("1;")
    first = Look(tmp_path)
    assert first.style == Look(tmp_path).style
    (tmp_path / "style.css").write_text("p { margin: 0 }")
    assert Look(tmp_path).style != first.style
    assert Look(tmp_path).script == first.script


def test_the_tokens_come_first_and_stand_outside_the_rule_that_lifts_the_rest(tmp_path):
    for name, text in {"judge.css": "i {}", TOKENS: ":root {}", "style.css": "p {}"}.items():
        (tmp_path / name).write_text(text)
    assert [file.name for file in in_order(tmp_path.glob("*.css"))] == [TOKENS, "style.css", "judge.css"]
    app = FastAPI()
    look = Look(tmp_path)
    app.include_router(look.router())
    sent = TestClient(app).get(look.style)
    assert sent.text.startswith(":root {}")
    assert sent.text.count("body:is(body, .a.b)") == 2
    assert "immutable" in sent.headers["cache-control"]
    assert TestClient(app).get("/look/0000.css").status_code == 404


def test_our_styles_have_balanced_braces_and_nothing_that_a_rule_cannot_hold():
    from space.look import STATIC

    for file in STATIC.glob("*.css"):
        text = file.read_text(encoding="utf-8")
        assert text.count("{") == text.count("}"), file.name
        if file.name != TOKENS:
            assert "@keyframes" not in text, file.name
            assert ":root" not in text, file.name


# Asking within the server


def test_who_streams_an_answer_is_heard_to_its_end():
    from space.inner_answer import ask

    async def streaming(scope, receive, send):
        assert (await receive())["type"] == "http.request"
        gone = asyncio.ensure_future(receive())  # Starlette waits so for a client that leaves
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]}
        )
        for piece in (b"a", b"b"):
            await asyncio.sleep(0)
            await send({"type": "http.response.body", "body": piece, "more_body": piece == b"a"})
        assert not gone.done()
        gone.cancel()

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "query_string": b"q=1",
        "headers": [(b"cookie", b"x")],
    }
    answer = asyncio.run(ask(streaming, scope))
    assert (answer.status, answer.media_type, answer.body) == (200, "text/plain", b"ab")
