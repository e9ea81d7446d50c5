"""Tests of submission ids: 128 bits, a new id if one is in use, and the short ids of older records."""

import re

from submissions.app import SubmissionsApp
from submissions.intake.accounts import Actor
from submissions.records.database import transaction
from submissions.records.event_log import add_event
from submissions.records.integrity import verify
from submissions.scoring import scorer
from tests.support.submissions import declaration, send, verdicts


def test_a_submission_whose_id_is_taken_gets_another_one(own_settings):
    service = SubmissionsApp(own_settings)
    upload = service.intake.check(verdicts(service.suite), "a.jsonl", "test")
    version = service.label_version
    wanted = scorer.submission_body(service.suite, upload, declaration(), "First judge", version)
    other = scorer.submission_body(service.suite, upload, declaration(account="Eve"), "First judge", version)
    taken = {**other, "submission_id": wanted["submission_id"]}
    with transaction(service.engine) as session:
        add_event(session, "submitted", "Eve", service.clock(), taken)
    receipt = service.intake.submit(upload, declaration()).receipt
    assert receipt.is_new and receipt.submission_id != wanted["submission_id"]
    assert re.fullmatch("[0-9a-f]{32}", receipt.submission_id)
    again = service.intake.submit(upload, declaration()).receipt
    assert (again.submission_id, again.is_new) == (receipt.submission_id, False)
    assert service.records.submission(receipt.submission_id, Actor("Ada")).receipt.account == "Ada"


def test_short_ids_of_older_records_stay_valid(own_settings, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(scorer, "ID_LENGTH", 12)
        old = SubmissionsApp(own_settings)
        ids = [send(old, verdicts(old.suite, misses=n)).submission_id for n in range(2)]
        old.engine.dispose()
    assert {len(name) for name in ids} == {12}
    service = SubmissionsApp(own_settings)
    new = send(service, verdicts(service.suite, misses=2)).submission_id
    for submission_id in (*ids, new):
        view = service.records.submission(submission_id, Actor("Ada"))
        assert view.receipt.submission_id == submission_id and view.report is not None
    assert {row.id for row in service.records.board().rows} == {*ids, new}
    assert verify(service).problems == ()
    assert not send(service, verdicts(service.suite, misses=1)).is_new
