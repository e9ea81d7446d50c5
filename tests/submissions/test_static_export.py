"""The static site on the disk: whole or not there, never over somebody's own files."""

import pytest

from submissions.static_export import FolderTaken, write_static_site
from tests.submissions.synthetic import send, verdicts


def test_a_site_is_written_and_replaced_whole(service, tmp_path):
    folder = tmp_path / "public" / "site"
    send(service, verdicts(service.suite), judge="One")
    # index, style, JSON, CSV, and a page for the judge
    assert write_static_site(service.board(), folder) == 5
    send(service, verdicts(service.suite, misses=1), judge="Two")
    assert write_static_site(service.board(), folder) == 6
    assert (folder / "board.json").read_bytes() == service.board().to_bytes()
    assert len(list((folder / "judges").iterdir())) == 2
    assert [path.name for path in folder.parent.iterdir()] == ["site"]


def test_somebodys_files_are_left_alone(service, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(FolderTaken, match="something else"):
        write_static_site(service.board(), tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
    with pytest.raises(FolderTaken):
        write_static_site(service.board(), tmp_path / "thesis.tex")


def test_a_write_that_fails_leaves_nothing(service, tmp_path, monkeypatch):
    from pathlib import Path

    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        write_static_site(service.board(), tmp_path / "site")
    assert list(tmp_path.glob("*site*")) == []
