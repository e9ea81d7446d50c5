import logging
import os

import pytest

from submissions.scoring import scorer
from submissions.scoring import verdicts as verdicts_module
from tests.support.submissions import again, send, stored_files, verdicts


@pytest.mark.parametrize("damage", ["changed", "gone"])
def test_one_damaged_file_keeps_no_other_submission_from_its_score(service, monkeypatch, caplog, damage):
    bad, good = verdicts(service.suite, misses=1), verdicts(service.suite, misses=2)
    with monkeypatch.context() as patched:
        patched.setattr(scorer, "record_score", lambda *arguments: False)
        hurt, whole = send(service, bad), send(service, good, judge="Second judge")
    path = service.files.path(hurt.file_sha256)
    path.write_bytes(b"rubbish") if damage == "changed" else path.unlink()

    restarted = again(service)
    with caplog.at_level(logging.ERROR):
        assert restarted.intake.finish_scoring() == 1
    assert f"submission {hurt.submission_id} cannot be scored" in caplog.text
    assert str(service.settings.state_dir) not in caplog.text
    assert [row.id for row in restarted.records.board().rows] == [whole.submission_id]

    assert not send(restarted, bad).is_new  # submitting the file again repairs it
    assert {row.id for row in restarted.records.board().rows} == {hurt.submission_id, whole.submission_id}


def test_a_submission_within_the_limit_of_its_day_is_scored_under_a_lower_one(service, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(scorer, "record_score", lambda *arguments: False)
        send(service, verdicts(service.suite))
    lowered = again(service, max_upload_bytes=100)
    assert lowered.intake.finish_scoring() == 1
    assert len(lowered.records.board().rows) == 1


def test_a_file_that_the_checker_takes_no_more_is_named_in_the_log(service, monkeypatch, caplog):
    with monkeypatch.context() as patched:
        patched.setattr(scorer, "record_score", lambda *arguments: False)
        receipt = send(service, verdicts(service.suite))
    read = verdicts_module.read_predictions

    def stricter(content, *arguments, **options):
        return read(content + b"{}\n", *arguments, **options)

    monkeypatch.setattr(verdicts_module, "read_predictions", stricter)
    assert again(service).intake.finish_scoring() == 0
    assert f"submission {receipt.submission_id} cannot be scored" in caplog.text


def test_starting_removes_what_killed_processes_left_half_written(service):
    receipt = send(service, verdicts(service.suite))
    left = service.files.path(receipt.file_sha256).with_name(".part-old")
    left.write_bytes(b"half")
    os.utime(left, (0, 0))
    again(service).intake.finish_scoring()
    assert [path.name for path in stored_files(service)] == [receipt.file_sha256]
