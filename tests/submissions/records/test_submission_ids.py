"""Ids of submissions: 128 bits, another one if it is taken, and the short ones of older records."""

import re

import pytest

from submissions.intake.accounts import Actor
from submissions.records.database import transaction
from submissions.records.event_log import add_event
from submissions.scoring import scorer
from submissions.service import SubmissionService
from tests.support.submissions import declaration, verdicts


@pytest.fixture(params=["sqlite", "postgresql"])
def own_settings(request, settings, tmp_path):
    is_sqlite = request.param == "sqlite"
    url = f"sqlite:///{tmp_path / 'records.sqlite'}" if is_sqlite else request.getfixturevalue("postgres_url")
    return settings.model_copy(update={"database_url": url})


def test_a_submission_whose_id_is_taken_gets_another_one(own_settings):
    service = SubmissionService(own_settings)
    upload = service.check(verdicts(service.suite), "a.jsonl", "test")
    version = service.label_version
    wanted = scorer.submission_body("small", upload, declaration(), "First judge", version)
    other = scorer.submission_body("small", upload, declaration(account="Eve"), "First judge", version)
    taken = {**other, "submission_id": wanted["submission_id"]}
    with transaction(service.engine) as session:
        add_event(session, "submitted", "Eve", service.clock(), taken)
    receipt = service.submit(upload, declaration()).receipt
    assert receipt.is_new and receipt.submission_id != wanted["submission_id"]
    assert re.fullmatch("[0-9a-f]{32}", receipt.submission_id)
    again = service.submit(upload, declaration()).receipt
    assert (again.submission_id, again.is_new) == (receipt.submission_id, False)
    assert service.submission(receipt.submission_id, Actor("Ada")).receipt.account == "Ada"
