import hashlib
import itertools
import json
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from leaderboard.labels.labels import load_labels
from leaderboard.report import score_report
from submissions.app import SubmissionsApp
from submissions.errors import SubmissionError
from submissions.intake import service as service_module
from submissions.records import event_log
from submissions.records.database import ScoreRow, Submission, snapshot
from tests.attacks.service_oracle import Clock
from tests.support.submissions import (
    FORM,
    again,
    assert_nothing_was_written,
    counts,
    declaration,
    log_of,
    send,
    stored_files,
    verdicts,
)

# The result of a submission


def test_a_submission_gives_a_receipt_for_exactly_the_file_that_was_sent(settings):
    noon = datetime(2026, 1, 2, 12, 0, 0, 5, tzinfo=UTC)
    service = SubmissionsApp(settings, clock=lambda: noon)
    content = verdicts(service.suite)
    receipt = send(service, content)
    assert receipt.file_sha256 == hashlib.sha256(content).hexdigest()
    assert (receipt.judge, receipt.account) == (FORM["judge"], FORM["account"])
    assert receipt.submitted_at == noon
    assert receipt.label_version == load_labels(service.suite, "test", settings).version
    assert receipt.is_new
    assert service.files.read(receipt.file_sha256) == content


def test_the_record_holds_what_was_declared_and_what_was_sent(service):
    content = verdicts(service.suite, misses=2)
    upload = service.intake.check(content, "../../my verdicts.jsonl", "test")
    receipt = service.intake.submit(upload, declaration(test_labels_used=True)).receipt
    with snapshot(service.engine) as session:
        record = session.get(Submission, receipt.submission_id)
        assert (record.judge.name, record.judge.account.name) == (FORM["judge"], FORM["account"])
        declared = {name: getattr(record, name) for name in ("kind", "inputs", "model", "authors", "link")}
    assert declared == {name: FORM[name] for name in declared}
    assert record.test_labels_used is True
    assert (record.suite, record.split, record.rows, record.coverage) == ("small", "test", 30, 1.0)
    assert (record.file_name, record.size_bytes) == ("my verdicts.jsonl", len(content))
    assert record.content_hash == upload.check.aligned.content_hash(service.suite.targets)


def test_the_score_is_the_report_of_the_scorer(service, settings):
    upload = service.intake.check(verdicts(service.suite, misses=4, false_alarms=2), "a.jsonl", "test")
    service.intake.submit(upload, declaration())
    with snapshot(service.engine) as session:
        score = session.scalars(select(ScoreRow)).one()
    labels = load_labels(service.suite, "test", settings)
    assert score.report == json.loads(json.dumps(score_report(upload.check.aligned, labels, "strict")))
    # TP 10 - 4, FP 2, FN 4, TN 20 - 2: precision 6/8, recall 6/10
    overall = score.report["labels"]["success"]["overall"]
    assert [overall[name] for name in ("tp", "fp", "fn", "tn")] == [6, 2, 4, 18]
    assert (overall["precision"], overall["recall"]) == (0.75, 0.6)
    assert (score.label_version, score.policy) == (labels.version, "strict")


# Which files are the same submission


def test_the_same_file_of_a_judge_is_one_submission_however_often_it_is_sent(service):
    content = verdicts(service.suite)
    first = send(service, content)
    second = send(service, content)
    restarted = again(service)
    third = send(restarted, content)
    assert [receipt.is_new for receipt in (first, second, third)] == [True, False, False]
    assert first.submission_id == second.submission_id == third.submission_id
    assert first.submitted_at == second.submitted_at == third.submitted_at
    assert counts(service) == {"accounts": 1, "judges": 1, "submissions": 1, "scores": 1}
    assert len(stored_files(service)) == 1


def test_the_same_file_by_another_judge_is_another_submission(service):
    content = verdicts(service.suite)
    receipts = [
        send(service, content),
        send(service, content, judge="Second judge"),
        send(service, content, account="Bob"),
    ]
    assert len({receipt.submission_id for receipt in receipts}) == 3
    assert all(receipt.is_new for receipt in receipts)
    assert counts(service) == {"accounts": 2, "judges": 3, "submissions": 3, "scores": 3}
    assert len(stored_files(service)) == 1


def test_of_two_equal_judges_the_earlier_ranks_first_to_the_microsecond(settings):
    moments = iter(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=n) for n in range(1000))
    service = SubmissionsApp(settings, clock=lambda: next(moments))
    names = [f"judge {n}" for n in (3, 1, 4, 8, 5, 9, 2, 6)]
    for name in names:
        send(service, verdicts(service.suite, misses=3), judge=name)
    assert [row.judge for row in service.records.board().ranking("success")] == names


def test_what_differs_in_the_declaration_only_keeps_the_first_record(service):
    content = verdicts(service.suite)
    send(service, content, model="first", test_labels_used=True)
    send(service, content, model="second", test_labels_used=False)
    (row,) = service.records.board().rows
    assert (row.model, row.test_labels_used) == ("first", True)


# Refused files


@pytest.mark.parametrize("defect", ["half", "duplicate", "empty", "binary"])
def test_a_file_with_errors_is_refused_and_nothing_is_written(service, defect):
    content = verdicts(service.suite)
    lines = content.splitlines(keepends=True)
    content = {
        "half": b"".join(lines[:15]),
        "duplicate": content + lines[0],
        "empty": b"",
        "binary": b"\x00\xff" * 50,
    }[defect]
    with pytest.raises(SubmissionError, match="not acceptable"):
        send(service, content)
    assert_nothing_was_written(service)


def test_a_dev_file_is_not_submitted(service):
    upload = service.intake.check(verdicts(service.suite, "dev"), "a.jsonl", "dev")
    assert upload.check.acceptable
    with pytest.raises(SubmissionError, match="test split"):
        service.intake.submit(upload, declaration())
    assert_nothing_was_written(service)


def test_a_refused_file_is_refused_before_a_label_counts(service, monkeypatch):
    monkeypatch.setattr(service_module, "score_report", None)
    upload = service.intake.check(verdicts(service.suite) + b"{}\n", "a.jsonl", "test")
    with pytest.raises(SubmissionError):
        service.intake.submit(upload, declaration())


# Dry runs on dev


def test_a_test_file_and_one_with_errors_have_no_dry_run(service):
    with pytest.raises(SubmissionError, match="dev"):
        service.intake.dry_run(service.intake.check(verdicts(service.suite), "a.jsonl", "test"))
    with pytest.raises(SubmissionError, match="fix the errors found by the check"):
        service.intake.dry_run(service.intake.check(b"{}\n", "a.jsonl", "dev"))


def test_a_rehearsal_without_dev_labels_is_refused_in_words(settings):
    service = SubmissionsApp(settings.model_copy(update={"labels": "none"}))
    with pytest.raises(SubmissionError, match="dev files cannot be scored: no labels are configured"):
        service.intake.dry_run(service.intake.check(verdicts(service.suite, "dev"), "a.jsonl", "dev"))


def test_the_same_acts_with_the_same_nonces_have_the_same_hashes(settings, tmp_path, monkeypatch):
    def hashes(folder: str, nonces) -> list[str]:
        state = settings.model_copy(update={"state_dir": tmp_path / folder})
        monkeypatch.setattr(event_log, "random_nonce", lambda: bytes([next(nonces)]) * 32)
        service = SubmissionsApp(state, clock=Clock())
        send(service, verdicts(service.suite))
        return [record["hash"] for record in log_of(service)]

    first = hashes("first", itertools.count(1))
    assert hashes("same", itertools.count(1)) == first
    assert not set(hashes("other", itertools.count(7))) & set(first)
