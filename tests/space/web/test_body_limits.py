"""Tests of forms sent to REST routes and to Gradio's upload route: content type, names and size."""

import asyncio
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from space.app import create_app
from space.web.body_limits import FORM_BYTES, form_problem
from tests.support.submissions import settings_for

BODY = (
    b'--x\r\nContent-Disposition: form-data; name="%s"; filename="a.jsonl"\r\n\r\n'
    b'{"trajectory_id": "a/b/c", "success": true}\n\r\n--x--\r\n'
)
ROUTES = (("/api/check", "file"), ("/gradio_api/upload", "files"))
HEADERS = {"content-type": "multipart/form-data; boundary=x"}
MOST = 100_000


@pytest.fixture(scope="module")
def settings(suite_folder, tmp_path_factory):
    state = tmp_path_factory.mktemp("state")
    return settings_for(suite_folder, state, max_upload_bytes=MOST, checks_a_minute=10_000)


@pytest.fixture
def uploads(settings) -> Path:
    """Return the folder for files that pages upload."""
    return settings.state_dir.resolve() / "uploads"


@pytest.fixture(scope="module")
def client(settings):
    with TestClient(create_app(settings), raise_server_exceptions=False) as client:
        yield client


@pytest.mark.parametrize(
    "content_type", ["", "text/plain", "application/x-www-form-urlencoded", ";", "multipart"]
)
def test_the_message_says_how_to_send_a_form_with_a_file(content_type):
    assert "curl -F file=@FILE" in form_problem(content_type)


@pytest.mark.parametrize("charset", ["punycode", "undefined", "a\0b", "utf-16", "é", "x" * 10_000])
def test_an_encoding_that_the_parser_of_forms_fails_over_is_refused(client, charset):
    for path, part in ROUTES:
        content_type = f"multipart/form-data; boundary=x; charset={charset}".encode("latin-1")
        answer = client.post(path, content=BODY % part.encode(), headers={"content-type": content_type})
        assert answer.status_code == 422
        assert "use UTF-8" in answer.json()["detail"]


def test_a_form_without_an_encoding_reaches_both_routes(client):
    for path, part in ROUTES:
        assert client.post(path, content=BODY % part.encode(), headers=HEADERS).status_code == 200


def test_a_body_of_empty_fields_is_not_taken_apart(client, monkeypatch):
    # 5 MB of & would keep the server from all else for seconds.
    monkeypatch.setattr("starlette.formparsers.FormParser.parse", None)
    headers = {"content-type": "application/x-www-form-urlencoded"}
    assert client.post("/api/check", content=b"&" * 1_000, headers=headers).status_code == 422


NAMES = (
    "../../../etc/passwd",
    "..\\..\\x",
    "/etc/passwd",
    "a/../../b",
    "C:\\x.jsonl",
    "a\0b",
    "\u202egnp.exe",
    "%2e%2e%2fx",
    "x" * 2_000,
    "\U0001f600" * 200,
    "CON",
    "-rf",
    "~",
    ".",
    "",
)


@pytest.mark.parametrize("name", NAMES)
def test_no_file_name_leads_out_of_the_folder_for_uploads(client, uploads, name):
    body = (BODY % b"files").replace(b"a.jsonl", name.encode())
    answer = client.post("/gradio_api/upload", content=body, headers=HEADERS)
    assert answer.status_code == 200
    (path,) = answer.json()
    found = uploads.joinpath(path).resolve()
    assert found.is_relative_to(uploads)
    assert found.is_file()


@pytest.mark.parametrize("name", [name for name in NAMES if len(name) < 1_000])
def test_an_answer_has_the_last_part_of_a_file_name_and_nothing_that_hides(client, name):
    body = (BODY % b"file").replace(b"a.jsonl", name.encode())
    answer = client.post("/api/check", content=body, headers=HEADERS)
    name = answer.json()["file"]
    assert answer.status_code == 200
    assert name.isprintable()
    assert not set(name) & set("/\\")
    assert 0 < len(name) <= 120


def files_in(folder: Path) -> int:
    return sum(path.is_file() for path in folder.rglob("*"))


@pytest.mark.parametrize(("path", "part"), ROUTES)
def test_a_form_that_says_that_it_is_too_large_is_not_read(client, uploads, path, part):
    before = files_in(uploads)
    answer = client.post(path, files={part: ("a.jsonl", b"x" * (MOST + FORM_BYTES))})
    assert answer.status_code == 413
    assert answer.json()["detail"].startswith("the upload has more than 100,000 bytes; send a smaller file")
    assert files_in(uploads) == before


@pytest.mark.parametrize("length", ["9" * 5_000, "164001"])
def test_a_length_without_end_is_too_large_too(client, length):
    answer = client.post("/api/check", content=b"--x--", headers={**HEADERS, "content-length": length})
    assert answer.status_code == 413


@pytest.mark.parametrize(("path", "part"), ROUTES)
def test_a_form_of_many_small_files_is_cut_off_where_it_is_too_large(client, uploads, path, part):
    before = files_in(uploads)

    def parts():
        for place in range(1_000):
            head = f'--x\r\nContent-Disposition: form-data; name="{part}"; filename="{place}"\r\n\r\n'
            yield head.encode() + b"x" * 10_000 + b"\r\n"
        yield b"--x--\r\n"

    answer = client.post(path, content=parts(), headers=HEADERS)
    assert answer.status_code in (400, 413)  # REST accepts only one file, and checks that first
    assert len(answer.text) < 200
    assert files_in(uploads) == before


def test_a_form_of_just_the_size_is_taken(client):
    body = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\n%s\r\n--x--\r\n'
    answer = client.post("/gradio_api/upload", content=body % (b"x" * MOST), headers=HEADERS)
    assert answer.status_code == 200
    assert Path(answer.json()[0]).stat().st_size == MOST


def test_uploads_of_pages_are_counted_by_address(suite_folder, tmp_path, within_a_minute):
    settings = settings_for(suite_folder, tmp_path / "state", checks_a_minute=2)
    with TestClient(create_app(settings)) as client:
        answers = [client.post("/gradio_api/upload", files={"files": ("a.jsonl", b"{}")}) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert "one address may have 2 files checked per minute" in answers[2].json()["detail"]
        assert int(answers[2].headers["retry-after"]) >= 1
        # REST has a separate limit, which is not used up.
        assert client.post("/api/check", files={"file": ("a.jsonl", b"{}")}).status_code == 200


def slow_form(client, path, part, pauses):
    """Return the status of a form whose body arrives in pieces, each after a pause."""

    async def send() -> list[dict]:
        body = BODY % part.encode()
        pieces = [body[: len(body) // 2], body[len(body) // 2 :]]
        sent = []

        async def receive():
            await asyncio.sleep(pauses.pop(0))
            return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

        async def answer(message):
            sent.append(message)

        headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
        scope = {
            "type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"",
            "headers": headers, "client": ("127.0.0.1", 1), "server": ("testserver", 80), "scheme": "http",
            "http_version": "1.1", "root_path": "", "asgi": {"version": "3.0"},
        }  # fmt: skip
        await client.app(scope, receive, answer)
        return sent

    return client.portal.call(send)[0]["status"]


@pytest.mark.parametrize(("path", "part"), ROUTES)
def test_a_body_that_comes_in_too_slowly_is_cut_off(client, monkeypatch, path, part):
    monkeypatch.setattr("space.web.body_limits.GRACE_SECONDS", 0.3)
    assert slow_form(client, path, part, [0, 60]) == 408
    monkeypatch.setattr("space.web.body_limits.GRACE_SECONDS", 60.0)
    assert slow_form(client, path, part, [0, 0.01]) == 200


def test_of_one_address_few_bodies_come_in_at_once(client, monkeypatch):
    monkeypatch.setattr("space.web.body_limits.MOST_OPEN_EACH", 0)
    answer = client.post("/api/check", content=BODY % b"file", headers=HEADERS)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    monkeypatch.undo()
    assert client.post("/api/check", content=BODY % b"file", headers=HEADERS).status_code == 200


def test_submissions_are_counted_by_address_before_anything_is_read(suite_folder, tmp_path, within_a_minute):
    settings = settings_for(suite_folder, tmp_path / "state", checks_a_minute=2)
    with TestClient(create_app(settings)) as client:
        answers = [client.post("/api/submissions", content=b"junk") for _ in range(3)]
        assert [answer.status_code for answer in answers] == [422, 422, 429]  # refused requests count too
        # Other requests with a body: ten times as many as files.
        answers = [client.post("/api/judges/rename", content=b"junk") for _ in range(21)]
        assert [answer.status_code for answer in answers[-2:]] == [422, 429]


def test_answers_of_annotators_are_read_of_who_is_signed_in_only(client):
    answer = client.put("/api/annotate/answers", content=b"x" * 1_000)
    assert (answer.status_code, answer.json()["detail"][:21]) == (401, "you are not signed in")
