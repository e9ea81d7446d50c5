"""Lists of submissions, the log as maintainers read it, and the leak budget: over a service."""

import json

import pytest

from submissions.intake.accounts import Actor
from submissions.moderation.overview import decisions_on, overview, own_submissions
from submissions.privacy.leak_budget import DELTA
from tests.support.clocks import one_a_day
from tests.support.submissions import SECRET_ANNOTATOR, log_of, send, verdicts, with_rules

MAINTAINER = Actor("Grace", is_maintainer=True)


def test_an_account_sees_its_own_newest_first_whatever_its_capitals(service):
    first = send(service, verdicts(service.suite, misses=1)).submission_id
    second = send(service, verdicts(service.suite, misses=2)).submission_id
    send(service, verdicts(service.suite, misses=3), account="Bob")
    with service.snapshot() as session:
        known = {
            name: own_submissions(session, service.suite.name, service.label_version, name)
            for name in ("ada", "nobody")
        }
    assert [each.id for each in known["ada"]] == [second, first]
    assert known["nobody"] == []


def overview_of(service):
    with service.snapshot() as session:
        return overview(session, service.suite.name, service.label_version)


def test_the_overview_tells_standings_names_flags_and_closed_accounts(service):
    first = send(service, verdicts(service.suite)).submission_id
    copy = send(service, verdicts(service.suite, reasoning="other bytes"), account="Bob").submission_id
    service.moderation.rename("Ada", "First judge", "Renamed", Actor("Ada"))
    service.moderation.decide_account("banned", "Bob", MAINTAINER, "copies")
    found = overview_of(service)
    assert [(each.id, each.judge, each.first_name) for each in found.submissions] == [
        (first, "Renamed", "First judge"), (copy, "First judge", "First judge"),
    ]  # fmt: skip
    assert [(flag.submission.id, flag.kind) for flag in found.flags] == [(copy, "same verdicts")]
    assert found.banned == {"Bob"}
    service.moderation.decide("hidden", copy, MAINTAINER, "a copy")
    assert overview_of(service).flags == ()


def test_what_was_decided_of_a_submission_is_told_in_order_with_reasons(service):
    first = send(service, verdicts(service.suite)).submission_id
    service.moderation.decide("verified", first, MAINTAINER, "ran it")
    service.moderation.withdraw(first, Actor("Ada"), "")
    with service.snapshot() as session:
        found = [(event.kind, event.actor, event.reason) for event in decisions_on(session, first)]
    assert found == [("verified", "Grace", "ran it"), ("withdrawn", "Ada", "")]


def test_the_log_holds_nothing_that_labels_went_into(service):
    send(service, verdicts(service.suite))
    scored = next(record for record in log_of(service) if record["kind"] == "scored")
    assert scored["body"].keys() == {"submission_id", "label_version", "policy"}
    text = json.dumps(log_of(service))
    for word in ("counts_by_task", "digests", '"tp"', "precision", SECRET_ANNOTATOR):
        assert word not in text


@pytest.fixture
def private(service):
    service.clock = one_a_day()
    return with_rules(
        service, is_public=False, fewest_positives=1, private_noise=6.0, public_noise=3.0, round_days=3
    )


def test_public_labels_have_no_budget(service):
    send(service, verdicts(service.suite))
    assert service.records.leak.get() is None


def test_the_budget_counts_what_an_owner_sees_once_for_the_same_verdicts(private):
    send(private, verdicts(private.suite, misses=1))
    first = private.records.leak.get()
    # One label, overall only, sd 6: rho = 1 / 72, epsilon = rho + 2 sqrt(rho ln 10^6) = 0.014 + 0.876
    assert first.total.figures == 1
    assert first.total.rho == pytest.approx(1 / 72)
    assert first.total.epsilon == pytest.approx(0.890, abs=0.001)
    assert DELTA == 1e-6
    send(private, verdicts(private.suite, misses=1, reasoning="other bytes"), account="Bob")
    again = private.records.leak.get()
    assert again.total == first.total
    assert again.by_account.keys() == {"Ada", "Bob"}
    assert again.by_judge.keys() == {("Ada", "First judge"), ("Bob", "First judge")}
    assert again.by_label_version == {private.label_version: first.total}


def test_a_public_row_counts_from_its_round_on_and_stays_counted_when_hidden(private):
    first = send(private, verdicts(private.suite, misses=1)).submission_id
    private.moderation.publish(first, Actor("Ada"))
    before = private.records.leak.get()
    assert before.total.figures == 1
    for _ in range(4):  # days: the round ends
        private.clock()
    after = private.records.leak.get()
    # The finer public figure takes the place of the owner's: overall, and one for each of three benchmarks.
    assert after.total.figures > before.total.figures
    assert after.total.rho > before.total.rho
    private.moderation.decide("hidden", first, MAINTAINER, "a test")
    assert private.records.leak.get().total == after.total


def test_rules_without_noise_have_no_bound(service):
    private = with_rules(service, is_public=False, fewest_positives=1, private_noise=0.0)
    send(private, verdicts(private.suite, misses=1))
    assert private.records.leak.get().total.epsilon == float("inf")
