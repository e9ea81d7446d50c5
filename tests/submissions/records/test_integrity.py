"""Tests that `verify` computes everything again, and names what differs or cannot be checked."""

from dataclasses import replace

import pytest
from sqlalchemy import text

from submissions.intake.accounts import Actor
from submissions.records.database import transaction
from submissions.records.event_log import events_after, hash_of, head
from submissions.records.integrity import verify
from submissions.scoring import scorer
from submissions.scoring.rescore import publish
from tests.support.submissions import again, send, verdicts


@pytest.fixture
def sent(service):
    ids = [send(service, verdicts(service.suite, misses=n), judge=f"Judge {n}").submission_id for n in (1, 2)]
    service.moderation.withdraw(ids[1], Actor("Ada"))
    return ids


def test_untouched_records_are_found_whole(service, sent):
    steps = []
    found = verify(service, lambda done, of: steps.append((done, of)))
    assert (found.records, found.files, found.scores, found.problems) == (5, 2, 2, ())
    assert found.board_digest == service.records.board().digest
    assert steps == [(1, 2), (2, 2)]


def test_a_changed_score_is_found_in_the_table_and_in_the_record(service, sent):
    with service.engine.begin() as connection:
        connection.execute(text("""UPDATE scores SET report = '{"labels": {}}' WHERE id = 1"""))
    assert verify(service).problems == ("the table scores differs from the records",)
    with service.engine.begin() as connection:
        connection.exec_driver_sql(
            "UPDATE records SET body = replace(body, '\"tp\":9', '\"tp\":10') WHERE kind = 'scored'"
        )
    problems = verify(service).problems
    assert "record 2: its content was changed (the hash differs)" in problems
    assert f"submission {sent[0]}: its recomputed score differs (report)" in problems
    assert not any("10" in problem.replace(sent[0], "").replace(sent[1], "") for problem in problems)


def test_a_row_that_no_record_made_is_found(service, sent):
    with service.engine.begin() as connection:
        connection.execute(text("INSERT INTO accounts (name, created_at) VALUES ('Eve', '2026-01-01')"))
    assert verify(service).problems == ("the table accounts differs from the records",)


@pytest.mark.parametrize(("kind", "noun"), [("submitted", "submission"), ("scored", "score")])
def test_a_submission_or_score_that_is_recorded_twice_is_reported(service, sent, kind, noun):
    with transaction(service.engine) as session:
        sequence, previous = head(session)
        first = events_after(session, kinds=[kind])[0]
        twice = replace(first, sequence=sequence + 1, previous=previous)
        twice.hash = hash_of(twice)
        session.add(twice)  # the event only, since the tables would refuse a second row
    problem = f"record {sequence + 1}: this {noun} of {sent[0]} is recorded twice"
    assert problem in verify(service).problems


def test_a_score_verifies_after_the_metric_has_grown(service, sent, monkeypatch):
    """Older scores failed when `balanced_accuracy` and `fpr` were added after commit ac8dcee."""
    report_of_today = scorer.score_report

    def grown(*arguments) -> dict:
        report = report_of_today(*arguments)
        report["tomorrow"] = 1
        for found in filter(None, report["labels"].values()):
            for cell in (found["overall"], *found["by_benchmark"].values(), *found["by_agent"].values()):
                cell["f2"] = 0.5
        return report

    monkeypatch.setattr(scorer, "score_report", grown)
    found = verify(service)
    assert (found.problems, found.scores) == ((), 2)


def test_a_score_of_a_metric_from_the_future_is_not_called_checked(service, monkeypatch):
    monkeypatch.setattr(scorer, "METRIC_VERSION", 99)
    receipt = send(service, verdicts(service.suite))
    assert verify(service).problems == (
        f"submission {receipt.submission_id}: its score could not be checked, because version "
        "99 of the metric is newer than this program; update the program",
    )


def test_scores_whose_labels_are_not_here_are_not_called_checked(service, sent):
    found = verify(again(service, labels="none"))
    assert (found.scores, found.board_digest) == (0, None)
    (problem,) = found.problems
    version = service.label_version
    assert problem.startswith(f"2 scores could not be checked: the labels of version {version} are missing (")


def test_scores_under_labels_that_were_replaced_are_not_called_checked(service, sent, tmp_path):
    path = tmp_path / "labels.csv"
    labels = (service.settings.cache_dir.parent / "labels.csv").read_text()
    path.write_text(labels.replace("Unsuccessful", "Successful", 1))
    (problem,) = verify(again(service, labels=f"csv:{path}")).problems
    assert problem.endswith(f"version {service.label_version} are missing (ARB_LABELS names other labels)")


def test_scores_under_every_published_label_version_are_made_again(service, tmp_path):
    labels = (service.settings.cache_dir.parent / "labels.csv").read_text()
    published = again(service, labels="records")
    mia = Actor("Mia", is_maintainer=True)
    for content in (labels, labels.replace("Unsuccessful", "Successful", 1)):
        publish(published, content.encode(), mia, "why not")
        send(published, verdicts(published.suite))
        published.intake.finish_scoring()
    found = verify(published)
    assert (found.problems, found.scores) == ((), 2)
    first = published.files.path(published.labels.origin.version.file_sha256)
    first.unlink()
    problems = verify(again(published)).problems
    assert any("its stored file is missing or damaged" in problem for problem in problems)
    assert any(problem.startswith("1 score could not be checked") for problem in problems)
