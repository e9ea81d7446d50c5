"""Tags of errors among the records: who may tag what, and what is read again."""

from datetime import UTC, datetime, timedelta

import pytest

from leaderboard.error_tags import ErrorTagInvalid, count_tags
from submissions import reader_acts
from submissions.accounts import Actor
from submissions.error_records import error_tags
from submissions.reader_acts import ReaderActions
from submissions.refusals import PermissionDenied, RateLimited
from tests.submissions.synthetic import with_rules

ADA, BOB = Actor("ada"), Actor("bob")


@pytest.fixture
def acts(service) -> ReaderActions:
    moments = (datetime(2026, 3, 1, tzinfo=UTC) + timedelta(minutes=n) for n in range(10_000))
    return ReaderActions(service.engine, service.suite, lambda: next(moments))


@pytest.fixture
def ids(service) -> list[str]:
    return [trajectory.trajectory_id for trajectory in service.suite.split("test")]


def test_tags_are_read_again_as_they_were_given(acts, service, ids):
    acts.tag("0123456789ab", ids[0], "grounding_mismatch", " it clicks the second row ", ADA)
    acts.tag("0123456789ab", ids[0], "wrong_page", "", BOB)
    acts.tag("0123456789ab", ids[0], "missed_instruction", "", ADA)  # in place of the first
    tags = error_tags(service.engine, "small")
    assert [(tag.tagger, tag.category, tag.note) for tag in tags] == [
        ("ada", "grounding_mismatch", "it clicks the second row"),
        ("bob", "wrong_page", ""),
        ("ada", "missed_instruction", ""),
    ]
    assert dict(count_tags(tags).overall) == {"missed_instruction": 1, "wrong_page": 1}
    assert error_tags(service.engine, "another") == []


def test_a_tag_that_is_not_in_order_is_refused_with_every_problem(acts, service, ids):
    with pytest.raises(ErrorTagInvalid) as refused:
        acts.tag("", ids[0], "Not A Name", "", ADA)
    assert {field for field, _ in refused.value.problems} == {"judge", "category"}
    assert error_tags(service.engine, "small") == []


def test_hidden_test_labels_admit_no_tag_of_a_test_error(service):
    private = with_rules(service, is_public=False)
    acts = ReaderActions(private.engine, private.suite, private.clock)
    with pytest.raises(PermissionDenied, match="hidden"):
        acts.tag("a", private.suite.split("test")[0].trajectory_id, "missed_instruction", "", ADA)
    acts.tag("a", private.suite.split("dev")[0].trajectory_id, "missed_instruction", "", ADA)


def test_an_account_has_so_many_tags_in_24_hours(acts, ids, monkeypatch):
    monkeypatch.setattr(reader_acts, "TAGS_A_DAY", 2)
    for name in ids[:2]:
        acts.tag("a", name, "missed_instruction", "", ADA)
    with pytest.raises(RateLimited, match="2 tags in 24 hours"):
        acts.tag("a", ids[2], "missed_instruction", "", ADA)
    acts.tag("a", ids[2], "missed_instruction", "", BOB)
