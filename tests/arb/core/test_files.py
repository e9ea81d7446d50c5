"""A file is written whole or not at all."""

import os
import stat

import pytest

from arb.core.files import atomic_write


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "report.json"
    atomic_write(path, "one")

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        atomic_write(path, "two")
    assert path.read_text() == "one"
    assert list(tmp_path.iterdir()) == [path]


def test_a_mode_holds_also_where_the_old_file_was_open_to_all(tmp_path):
    path = tmp_path / "labels.csv"
    atomic_write(path, "old")
    path.chmod(0o644)
    atomic_write(path, "new", mode=0o600)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
