"""Tests of error tags and disputes: who may add or decide them, daily limits, and what is public."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.core.suite import load_suite
from leaderboard.errors import ErrorTagInvalid
from submissions.errors import PermissionDenied, RateLimited, SubmissionError
from submissions.intake.accounts import Actor
from submissions.labels.decisions import OUTCOMES, Decision, Dispute, view_dispute
from submissions.moderation import reader_actions
from submissions.moderation.reader_actions import DISPUTES_A_DAY, ReaderActions
from submissions.records.database import snapshot
from submissions.records.event_log import check_event_log, events_after
from submissions.records.statuses import SubmissionStatuses, error_tags
from tests.attacks.service_oracle import Clock

ADA, BOB, MIA = Actor("ada"), Actor("bob"), Actor("mia", is_maintainer=True)
NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def acts(service, clock) -> ReaderActions:
    service.clock = clock
    return ReaderActions(service)


@pytest.fixture
def ids(service) -> list[str]:
    return [trajectory.trajectory_id for trajectory in service.suite.split("test")]


NAMES = st.sampled_from(["ada", "Ada", "bob", "BOB", "eve"])


@given(accounts=st.dictionaries(st.text("0123"), NAMES), hub_names=st.dictionaries(NAMES, NAMES))
def test_an_account_is_shown_by_its_name_at_the_hub_unless_another_was_known_by_that(accounts, hub_names):
    found = SubmissionStatuses(accounts=accounts, hub_names=hub_names)
    for account in ("ada", "Ada", "bob", "BOB", "eve"):
        name = hub_names.get(account, account)
        others = [other for other in accounts.values() if other != account]
        is_taken = any(name.lower() == other.lower() for other in others)
        assert found.current_name(account) == (account if is_taken else name)


def test_a_tag_that_is_not_in_order_is_refused_with_every_problem(acts, service, ids):
    with pytest.raises(ErrorTagInvalid) as refused:
        acts.tag("", ids[0], "Not A Name", "", ADA)
    assert {field for field, _ in refused.value.problems} == {"judge", "category"}
    assert error_tags(service.engine, "small") == []


def test_an_account_has_so_many_tags_in_24_hours(acts, ids, monkeypatch):
    monkeypatch.setattr(reader_actions, "TAGS_A_DAY", 2)
    for name in ids[:2]:
        acts.tag("a", name, "missed_instruction", "", ADA)
    with pytest.raises(RateLimited, match="2 tags in 24 hours"):
        acts.tag("a", ids[2], "missed_instruction", "", ADA)
    acts.tag("a", ids[2], "missed_instruction", "", BOB)


def test_a_dispute_is_a_record_and_so_is_its_decision(acts, service, ids):
    filed = acts.dispute(ids[0], "success", "  Step 4 opens another product.\nSee the title. ", ADA)
    assert filed.body == {
        "dispute_id": "1", "suite": "small", "split": "test", "trajectory_id": ids[0],
        "question": "success", "text": "Step 4 opens another product.\nSee the title.",
    }  # fmt: skip
    acts.decide("1", "corrected", "the product is another one", MIA, "no")
    (found,) = acts.disputes()
    assert (found.by, found.decided.outcome, found.decided.by) == ("ada", "corrected", "mia")
    assert (found.decided.value, found.decided.sequence) == ("no", 2)
    with snapshot(service.engine) as session:
        records = events_after(session)
    assert [record.kind for record in records] == ["disputed", "dispute_decided"]
    assert check_event_log(records) == []


def test_every_spelling_of_a_trajectory_is_that_trajectory(acts, service):
    name = "assistantbench/agent-a/assistantbench.improved.validation.0"
    filed = acts.dispute(name.replace(".improved.", "."), "repetition", "it scrolls in circles", ADA)
    assert filed.body["trajectory_id"] == service.suite.find(name).trajectory_id


def test_of_several_decisions_the_last_one_counts_and_all_are_kept(acts, ids):
    acts.dispute(ids[0], "success", "wrong", ADA)
    acts.decide("1", "kept", "the goal was reached", MIA)
    acts.decide("1", "corrected", "no: the cart was empty", MIA, "no")
    (found,) = acts.disputes()
    assert [each.outcome for each in found.decisions] == ["kept", "corrected"]
    assert found.decided.outcome == "corrected"
    with pytest.raises(SubmissionError, match="already corrected"):
        acts.decide("1", "corrected", "again", MIA, "no")
    acts.decide("1", "corrected", "nobody can tell", MIA, "unsure")
    assert acts.disputes()[0].decided.value == "unsure"


@pytest.mark.parametrize(
    ("question", "decision", "answer", "why"),
    [
        ("success", "corrected", None, "a correction needs one of no, yes, unsure"),
        ("success", "corrected", "3", "a correction needs one of"),
        ("optimality", "corrected", "yes", "of 1, 2, 3, 4, unsure"),
        ("success", "kept", "yes", "only a correction has an answer"),
    ],
)
def test_a_correction_names_an_answer_of_its_question_and_nothing_else_does(
    acts, ids, question, decision, answer, why
):
    acts.dispute(ids[0], question, "wrong", ADA)
    with pytest.raises(SubmissionError, match=why):
        acts.decide("1", decision, "looked again", MIA, answer)
    assert acts.disputes()[0].decided is None


def test_of_two_maintainers_who_decide_at_once_the_second_is_told_of_the_first(acts, ids):
    acts.dispute(ids[0], "success", "wrong", ADA)
    acts.decide("1", "kept", "the goal was reached", MIA, seen=0)
    with pytest.raises(SubmissionError, match=r"mia has just decided this dispute \(kept\)"):
        acts.decide("1", "corrected", "it was not", Actor("zoe", is_maintainer=True), "no", seen=0)
    assert [each.by for each in acts.disputes()[0].decisions] == ["mia"]


def test_who_may_not_is_refused_and_nothing_is_recorded(acts, service, ids):
    acts.dispute(ids[0], "success", "wrong", ADA)
    with pytest.raises(PermissionDenied):
        acts.decide("1", "kept", "mine", ADA)
    service.moderation.decide_account("banned", "bob", MIA, "spam", even_if_unknown=True)
    with pytest.raises(PermissionDenied, match="banned"):
        acts.dispute(ids[1], "success", "wrong", Actor("Bob"))
    assert len(acts.disputes()) == 1 and acts.disputes()[0].decided is None


def test_the_same_open_dispute_of_an_account_is_refused_until_it_is_decided(acts, ids):
    acts.dispute(ids[0], "success", "wrong", ADA)
    with pytest.raises(SubmissionError, match=r"your dispute 1 about this answer is still open"):
        acts.dispute(ids[0], "success", "wrong, I say", Actor("Ada"))
    acts.dispute(ids[0], "repetition", "another question", ADA)
    acts.dispute(ids[0], "success", "another person", Actor("bob"))
    acts.decide("1", "kept", "looked again", MIA)
    assert acts.dispute(ids[0], "success", "new: the log shows it", ADA).body["dispute_id"] == "4"


def test_an_account_has_so_many_in_24_hours_whatever_its_capitals(acts, clock, ids):
    for n in range(DISPUTES_A_DAY):
        acts.dispute(ids[n], "success", "wrong", ADA)
    with pytest.raises(RateLimited, match="20 disputes in 24 hours") as refused:
        acts.dispute(ids[-1], "success", "wrong", Actor("ADA"))
    assert refused.value.next_at == NOW + timedelta(hours=24)
    acts.dispute(ids[-1], "success", "another account", Actor("bob"))
    clock.now += timedelta(hours=24)
    acts.dispute(ids[-1], "success", "a day later", ADA)


def test_disputes_make_no_new_board(acts, service, ids):
    before = service.records.board()
    acts.dispute(ids[0], "success", "wrong", ADA)
    assert service.records.board() is before


def dispute(split: str, decision: str | None) -> Dispute:
    found = Decision(
        trajectory_id="w/a/w.1", target="success", value=None, origin="dispute", sequence=2,
        reason="the reason of it", by="mia", at=NOW, outcome=decision,
    )  # fmt: skip
    decided = () if decision is None else (found,)
    return Dispute("1", "w/a/w.1", "success", split, "it says success", "ada", NOW, decided)


@pytest.mark.parametrize("decision", [None, *OUTCOMES])
def test_of_a_hidden_label_everybody_reads_only_that_it_was_decided(decision):
    suite = replace(load_suite(), labels_are_public=False)
    found = view_dispute(dispute("test", decision), suite, is_maintainer=False)
    assert (found["text"], found["reason"]) == (None, None)
    assert "reason of it" not in str(found) and "it says" not in str(found)
    assert found["outcome"] == {None: "open", "declined": "declined"}.get(decision, "decided")


def test_a_dispute_shows_nothing_in_a_log():
    assert "corrected" not in repr(dispute("test", "corrected"))
    assert "corrected" not in repr(dispute("test", "corrected").decided)
