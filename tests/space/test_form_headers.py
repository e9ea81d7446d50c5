"""What is asked of a form's content type, over the REST route and over the route for a page's uploads."""

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from space.app import create_app
from space.web.body_limits import form_problem
from tests.submissions.synthetic import settings_for

BODY = (
    b'--x\r\nContent-Disposition: form-data; name="%s"; filename="a.jsonl"\r\n\r\n'
    b'{"trajectory_id": "a/b/c", "success": true}\n\r\n--x--\r\n'
)
ROUTES = (("/api/check", b"file"), ("/gradio_api/upload", b"files"))


@pytest.fixture(scope="module")
def uploads(tmp_path_factory) -> Path:
    """The folder for what pages upload."""
    return tmp_path_factory.mktemp("uploads").resolve()


@pytest.fixture(scope="module")
def client(suite_folder, tmp_path_factory, uploads):
    settings = settings_for(suite_folder, tmp_path_factory.mktemp("state"), checks_a_minute=10_000)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("GRADIO_TEMP_DIR", str(uploads))
        with TestClient(create_app(settings), raise_server_exceptions=False) as client:
            yield client


@pytest.mark.parametrize(
    "content_type", ["multipart/form-data; boundary=x", 'Multipart/Form-Data; charset="UTF-8"; boundary=x']
)
def test_a_form_in_utf8_is_read(content_type):
    assert form_problem(content_type) is None


@pytest.mark.parametrize(
    "content_type", ["", "text/plain", "application/x-www-form-urlencoded", ";", "multipart"]
)
def test_what_is_no_form_with_files_is_told_how_to_be_one(content_type):
    assert "curl -F file=@FILE" in form_problem(content_type)


def test_a_form_names_no_encoding_but_utf8():
    assert "UTF-8" in form_problem("multipart/form-data; boundary=x; charset=latin-1")


@pytest.mark.parametrize("charset", ["punycode", "undefined", "a\0b", "utf-16", "é", "x" * 10_000])
def test_an_encoding_that_the_parser_of_forms_fails_over_is_refused(client, charset):
    for path, part in ROUTES:
        content_type = f"multipart/form-data; boundary=x; charset={charset}".encode("latin-1")
        answer = client.post(path, content=BODY % part, headers={"content-type": content_type})
        assert answer.status_code == 422
        assert "write its names in UTF-8" in answer.json()["detail"]


def test_a_form_without_an_encoding_reaches_both_routes(client):
    for path, part in ROUTES:
        headers = {"content-type": "multipart/form-data; boundary=x"}
        assert client.post(path, content=BODY % part, headers=headers).status_code == 200


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
    answer = client.post(
        "/gradio_api/upload", content=body, headers={"content-type": "multipart/form-data; boundary=x"}
    )
    assert answer.status_code == 200
    (path,) = answer.json()
    found = uploads.joinpath(path).resolve()
    assert found.is_relative_to(uploads)
    assert found.is_file()


@pytest.mark.parametrize("name", [name for name in NAMES if len(name) < 1_000])
def test_an_answer_tells_the_last_part_of_a_file_name_and_nothing_that_hides(client, name):
    body = (BODY % b"file").replace(b"a.jsonl", name.encode())
    answer = client.post(
        "/api/check", content=body, headers={"content-type": "multipart/form-data; boundary=x"}
    )
    told = answer.json()["file"]
    assert answer.status_code == 200
    assert told.isprintable()
    assert not set(told) & set("/\\")
    assert 0 < len(told) <= 120
