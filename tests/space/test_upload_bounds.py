"""A form is bounded as a whole while it comes in, and nothing is left of what broke off."""

import os
import time
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from space.app import create_app
from space.web.body_limits import FORM_BYTES, remove_left_over
from tests.submissions.synthetic import settings_for

MOST = 100_000
ROUTES = (("/api/check", "file"), ("/gradio_api/upload", "files"))
HEADERS = {"content-type": "multipart/form-data; boundary=x"}


@pytest.fixture(scope="module")
def uploads(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("uploads").resolve()


@pytest.fixture(scope="module")
def client(suite_folder, tmp_path_factory, uploads):
    settings = settings_for(suite_folder, tmp_path_factory.mktemp("state"), max_upload_bytes=MOST)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("GRADIO_TEMP_DIR", str(uploads))
        with TestClient(create_app(settings), raise_server_exceptions=False) as client:
            yield client


def files_in(folder: Path) -> int:
    return sum(path.is_file() for path in folder.rglob("*"))


@pytest.mark.parametrize(("path", "part"), ROUTES)
def test_a_form_that_says_that_it_is_too_large_is_not_read(client, uploads, path, part):
    before = files_in(uploads)
    answer = client.post(path, files={part: ("a.jsonl", b"x" * (MOST + FORM_BYTES))})
    assert answer.status_code == 413
    assert answer.json()["detail"].startswith("more than 100,000 bytes: send a smaller file")
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
    assert answer.status_code in (400, 413)  # REST takes one file only, and says so before
    assert len(answer.text) < 200
    assert files_in(uploads) == before


def test_a_form_of_just_the_size_is_taken(client):
    body = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\n%s\r\n--x--\r\n'
    answer = client.post("/gradio_api/upload", content=body % (b"x" * MOST), headers=HEADERS)
    assert answer.status_code == 200
    assert Path(answer.json()[0]).stat().st_size == MOST


def test_what_is_no_form_is_not_bounded_here(client):
    assert client.get("/healthz").status_code == 200
    assert client.post("/api/check", content=b"{}", headers={"content-type": "text/plain"}).status_code == 422


def aged(path: Path, seconds: float) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text("x")
    os.utime(path, (time.time() - seconds,) * 2)
    return path


def test_what_uploads_left_goes_after_its_time_and_nothing_else(tmp_path):
    left = aged(tmp_path / "tmpab12_x9z", 4_000)
    kept = [
        aged(tmp_path / "tmpab12_x9y", 3_000),  # may still be coming in
        aged(tmp_path / "verdicts.jsonl", 4_000),
        aged(tmp_path / "abc" / "tmpab12_x9z", 4_000),  # arrived: Gradio removes it
        aged(tmp_path / "tmpab12_x9z9", 4_000),
    ]
    (tmp_path / "tmpfolder__"[:11]).mkdir()
    remove_left_over(tmp_path, 3_600)
    assert not left.exists()
    assert all(path.exists() for path in kept)
    remove_left_over(tmp_path / "nowhere", 3_600)


def test_the_systems_folder_for_temporary_files_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left = aged(tmp_path / "tmpab12_x9z", 4_000)
    remove_left_over(tmp_path, 3_600)
    assert left.exists()


def test_what_gradio_left_of_an_upload_is_removed_when_its_time_is_over(client, uploads):
    # Gradio refuses the name after it has written the file.
    refused = b'--x\r\nContent-Disposition: form-data; name="files"; filename=".."\r\n\r\nxxx\r\n--x--\r\n'
    assert client.post("/gradio_api/upload", content=refused, headers=HEADERS).status_code == 400
    left = [path for path in uploads.iterdir() if path.is_file()]
    assert left
    for path in left:
        os.utime(path, (0, 0))
    remove_left_over(uploads, 3_600)
    assert not [path for path in uploads.iterdir() if path.is_file()]


def test_uploads_of_pages_are_counted_by_address(suite_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "uploads"))
    settings = settings_for(suite_folder, tmp_path / "state", checks_a_minute=2)
    with TestClient(create_app(settings)) as client:
        answers = [client.post("/gradio_api/upload", files={"files": ("a.jsonl", b"{}")}) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert "one address may have 2 files checked in a minute" in answers[2].json()["detail"]
        assert int(answers[2].headers["retry-after"]) >= 1
        # REST counts its own: nothing of it is used up.
        assert client.post("/api/check", files={"file": ("a.jsonl", b"{}")}).status_code == 200
