"""Tests that an export and a restore give the same records, files and board, byte for byte."""

import pytest

from submissions.app import SubmissionsApp
from submissions.records.backup import BackupError, export_to_folder, restore_from_folder
from tests.support.submissions import counts, send, verdicts


@pytest.fixture
def filled(settings) -> SubmissionsApp:
    """Return an application with three submissions of two judges."""
    service = SubmissionsApp(settings)
    for n in range(3):
        send(service, verdicts(service.suite, misses=n), judge=f"Judge {n % 2}")
    return service


def files_in(folder) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def elsewhere(settings, tmp_path, name="other"):
    return settings.model_copy(update={"state_dir": tmp_path / name})


def test_what_is_restored_is_exported_again_byte_by_byte(filled, tmp_path):
    made = export_to_folder(filled, tmp_path / "one")
    # 3 submitted and 3 scored; three different files.
    assert (made.records, made.files, made.missing) == (6, 3, ())
    settings = elsewhere(filled.settings, tmp_path)
    assert restore_from_folder(settings, tmp_path / "one") == made
    restored = SubmissionsApp(settings)
    assert restored.records.board().to_bytes() == filled.records.board().to_bytes()
    assert counts(restored) == counts(filled)
    export_to_folder(restored, tmp_path / "two")
    assert files_in(tmp_path / "two") == files_in(tmp_path / "one")
    assert {"records.jsonl", "board.json", "board.csv"} < files_in(tmp_path / "one").keys()
    assert not send(restored, verdicts(restored.suite), judge="Judge 0").is_new


def test_an_export_without_a_format_is_restored_and_one_of_a_newer_format_is_refused(filled, tmp_path):
    made = export_to_folder(filled, tmp_path / "one")
    manifest = tmp_path / "one" / "manifest.json"
    assert manifest.read_bytes() == b'{"format":1}\n'
    settings = elsewhere(filled.settings, tmp_path)
    manifest.write_text('{"format": 2}')
    with pytest.raises(BackupError, match=r"^the export has format 2, .* upgrade it$"):
        restore_from_folder(settings, tmp_path / "one")
    manifest.write_text("{")
    with pytest.raises(BackupError, match=r"manifest\.json in 'one' cannot be read"):
        restore_from_folder(settings, tmp_path / "one")
    manifest.unlink()
    assert restore_from_folder(settings, tmp_path / "one") == made


def test_nothing_is_written_over_and_nothing_half_written_stays(filled, tmp_path, monkeypatch):
    folder = tmp_path / "one"
    export_to_folder(filled, folder)
    before = files_in(tmp_path)
    with pytest.raises(BackupError, match="not empty"):
        export_to_folder(filled, folder)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("submissions.records.backup.atomic_write", full)
    with pytest.raises(BackupError, match="No space left"):
        export_to_folder(filled, tmp_path / "two")
    assert files_in(tmp_path) == before
    assert not (tmp_path / "two").exists()


def test_a_changed_record_or_file_is_named_and_nothing_is_restored(filled, tmp_path):
    export_to_folder(filled, tmp_path / "one")
    records = tmp_path / "one" / "records.jsonl"
    whole = records.read_bytes()
    settings = elsewhere(filled.settings, tmp_path)

    lines = whole.splitlines(keepends=True)
    records.write_bytes(
        b"".join([lines[0].replace(b"Judge 0", b"Judge 9"), *lines[1:3], b"{}\n", *lines[4:]])
    )
    with pytest.raises(BackupError) as problem:
        restore_from_folder(settings, tmp_path / "one")
    assert "line 1: record 1: its content was changed" in str(problem.value)
    assert "line 4: this is not a record" in str(problem.value)

    records.write_bytes(b"".join([lines[0], *lines[2:]]))
    with pytest.raises(BackupError, match="record 2 is missing"):
        restore_from_folder(settings, tmp_path / "one")

    records.write_bytes(whole)
    damaged = next((tmp_path / "one" / "files").glob("*/*"))
    damaged.write_bytes(b"other bytes")
    with pytest.raises(BackupError, match=damaged.name):
        restore_from_folder(settings, tmp_path / "one")
    assert counts(SubmissionsApp(settings))["submissions"] == 0


def test_a_file_that_is_gone_is_named_and_the_rest_is_saved(filled, tmp_path):
    gone = next((filled.settings.state_dir / "files").glob("*/*"))
    gone.unlink()
    assert export_to_folder(filled, tmp_path / "one").missing == (gone.name,)
    settings = elsewhere(filled.settings, tmp_path)
    assert restore_from_folder(settings, tmp_path / "one").missing == (gone.name,)
    assert SubmissionsApp(settings).records.board().to_bytes() == filled.records.board().to_bytes()


def test_a_folder_that_is_no_backup_is_told_so(settings, tmp_path):
    with pytest.raises(BackupError, match=r"records\.jsonl"):
        restore_from_folder(settings, tmp_path)
