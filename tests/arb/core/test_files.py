"""Files and folders appear when they are complete, or not at all."""

import os
import stat
from pathlib import Path

import pytest

from arb.core.files import atomic_write, new_folder


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "report.json"
    atomic_write(path, "one")

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as found:
        atomic_write(path, "two")
    assert found.value.filename == str(path)
    assert path.read_text() == "one"
    assert list(tmp_path.iterdir()) == [path]


def test_a_mode_holds_also_where_the_old_file_was_open_to_all(tmp_path):
    path = tmp_path / "labels.csv"
    atomic_write(path, "old")
    path.chmod(0o644)
    atomic_write(path, "new", mode=0o600)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_folder_gets_its_name_when_it_is_complete(tmp_path):
    out = tmp_path / "made" / "folder"
    with new_folder(out, mode=0o700) as part:
        (part / "one.txt").write_text("1")
        assert not out.exists()
    assert (out / "one.txt").read_text() == "1"
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    assert list(out.parent.iterdir()) == [out]


def test_a_folder_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt), new_folder(tmp_path / "folder") as part:
        (part / "one.txt").write_text("1")
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def test_an_error_in_a_new_folder_names_the_folder_and_not_its_temporary_name(tmp_path):
    with pytest.raises(FileNotFoundError) as found, new_folder(tmp_path / "folder") as part:
        (part / "none" / "one.txt").write_text("1")
    assert found.value.filename == str(tmp_path / "folder" / "none" / "one.txt")
    with pytest.raises(OSError, match="No space left") as found, new_folder(tmp_path / "folder"):
        raise OSError(28, "No space left on device")
    assert found.value.filename == str(tmp_path / "folder")


def test_an_empty_folder_behind_a_link_is_filled_and_the_current_directory_is_refused(tmp_path, monkeypatch):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there")
    with new_folder(tmp_path / "link") as part:
        (part / "one.txt").write_text("1")
    assert (tmp_path / "there" / "one.txt").read_text() == "1"
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    for busy in (Path(), Path("/proc")):  # /proc is a mount point
        with pytest.raises(OSError, match="name a folder in it"), new_folder(busy):
            pass
    assert Path.cwd().is_dir()


def test_a_folder_with_files_is_never_replaced(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(OSError), new_folder(tmp_path) as part:
        (part / "mine.txt").write_text("other")
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert not list(tmp_path.parent.glob(".part-*"))
