import asyncio
from pathlib import Path

import gradio as gr
import pytest
from gradio.exceptions import InvalidPathError

from space.gradio_app.app import take_uploads_only


@pytest.fixture
def part(tmp_path, monkeypatch) -> gr.File:
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "uploads"))
    return take_uploads_only(gr.File(label="File"))


def take(part: gr.File, path: str | Path | None) -> str | None:
    return asyncio.run(part.async_move_resource_to_block_cache(path))


def test_a_file_in_the_folder_for_uploads_is_taken_where_it_lies(part, tmp_path):
    uploaded = tmp_path / "uploads" / "ab" / "verdicts.jsonl"
    uploaded.parent.mkdir(parents=True)
    uploaded.write_text("{}")
    assert take(part, uploaded) == take(part, str(uploaded)) == str(uploaded)
    assert take(part, None) is None


@pytest.mark.parametrize(
    "sent",
    [
        "secret.txt",
        "uploads/../secret.txt",
        "uploads/link.txt",
        "/etc/passwd",
        "http://example.org/x",
        "https://x",
        "file:///etc/passwd",
        "",
        "uploads-not/x",
    ],
)
def test_any_other_path_and_every_address_is_refused_and_not_copied(part, tmp_path, sent, monkeypatch):
    (tmp_path / "uploads").mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "uploads" / "link.txt").symlink_to(tmp_path / "secret.txt")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidPathError):
        take(part, sent)
    assert [path.name for path in (tmp_path / "uploads").iterdir()] == ["link.txt"]


def test_another_part_is_as_it_was(part, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    assert Path(take(gr.File(), tmp_path / "mine.txt")).read_text() == "mine"
