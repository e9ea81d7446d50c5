"""Tests of re-scoring: new scores under a new label version, old scores kept, ranks before and after."""

from dataclasses import replace
from datetime import timedelta

import pytest

from arb.core.settings import Settings
from submissions.app import SubmissionsApp
from submissions.errors import RateLimited, SubmissionError
from submissions.intake.accounts import Actor
from submissions.moderation.overview import own_submissions
from submissions.scoring.rescore import rescore, rescorings
from tests.attacks.service_oracle import Clock
from tests.support.submissions import send, verdicts, with_rules

MAINTAINER = Actor("Mia", is_maintainer=True)


@pytest.fixture
def corrected(service, suite_folder):
    """Return the service with other success labels for the first six test trajectories."""
    return SubmissionsApp(with_swapped(service.settings, suite_folder, 6))


def test_ranks_before_and_after_are_recorded_once_and_old_scores_stay(service, corrected):
    # Before: Right has 10 TP of 10; Noisy has 10 TP and 5 FP, precision 10/15.
    right = send(service, verdicts(service.suite), judge="Right").submission_id
    noisy = send(service, verdicts(service.suite, false_alarms=5), judge="Noisy").submission_id
    before = service.records.board()
    assert [row.id for row in before.rows] == [right, noisy]

    found = rescore(corrected, MAINTAINER)
    # After: of the first six, places 0 and 3 were positive and are negative, the other four the other way.
    # Right calls 0, 3, 6, … positive: 8 TP of 10. Noisy calls 0 to 6 and 7 too: of its 15, 0 and 3 are wrong
    # and of its five false alarms (1, 2, 4, 5, 7) four are right: TP = 8 + 4 = 12 of 15. 0.8 ties with 0.8,
    # and the recall decides: 8 of 12 positives against 12 of 12.
    assert found.scored == 2
    assert (found.before, found.after) == (service.label_version, corrected.label_version)
    assert {c.id: (c.before, c.after) for c in found.changes} == {right: (1, 2), noisy: (2, 1)}
    assert corrected.records.board_under(service.label_version).to_bytes() == before.to_bytes()

    assert rescore(corrected, MAINTAINER).scored == 0
    (record,) = rescorings(corrected)
    assert record.actor == "Mia"
    assert record.body["ranks"] == {right: [1, 2], noisy: [2, 1]}


def test_the_first_version_has_nothing_before_it(service):
    send(service, verdicts(service.suite))
    found = rescore(service, MAINTAINER)
    assert (found.before, found.scored) == (None, 0)
    assert rescorings(service) == []


def with_swapped(settings, folder, swapped: int) -> Settings:
    """Return settings with labels in which the first ``swapped`` success labels are inverted."""
    lines = (folder / "labels.csv").read_text().splitlines()
    swap = {"Successful": "Unsuccessful", "Unsuccessful": "Successful"}
    for place in range(1, swapped + 1):
        cells = lines[place].split(",")
        cells[5] = swap[cells[5]]
        lines[place] = ",".join(cells)
    path = settings.state_dir.parent / f"labels-{swapped}.csv"
    path.write_text("\n".join(lines) + "\n")
    return settings.model_copy(update={"labels": f"csv:{path}"})


def private_service(settings, folder, swapped: int, clock) -> SubmissionsApp:
    """Return a service with hidden labels, of which ``swapped`` are inverted."""
    given = with_swapped(settings, folder, swapped)
    rules = {"fewest_positives": 1, "files_a_year": 4, "public_rows_a_year": 2, "round_days": 1}
    return with_rules(SubmissionsApp(given, clock=clock), is_public=False, **rules)


ADA = Actor("Ada")


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def versions(settings, suite_folder, clock):
    """Score the same records under three label versions, one after another."""
    return [private_service(settings, suite_folder, swapped, clock) for swapped in (0, 4, 8)]


def test_where_labels_are_private_a_new_version_shows_nothing_new(versions, clock):
    first, second, _ = versions
    sent = send(first, verdicts(first.suite, misses=1, false_alarms=6)).submission_id
    first.moderation.publish(sent, ADA)
    clock.now += timedelta(days=2)
    owner, board, leak = (
        first.records.submission(sent, ADA).report,
        first.records.board(),
        first.records.leak.get(),
    )
    assert rescore(second, MAINTAINER).scored == 1
    assert second.records.submission(sent, ADA).report == owner
    assert owner["label_version"] == first.label_version
    (row,) = second.records.board().rows
    assert row.labels == board.rows[0].labels
    assert row.note == f"scored under label version {first.label_version}"
    assert second.records.leak.get().total == leak.total
    # A maintainer sees the exact score under the current labels.
    assert second.records.submission(sent, MAINTAINER).report["label_version"] == second.label_version


def test_an_owner_who_asks_for_the_metrics_under_newer_labels_pays_for_them(versions, clock):
    first, second, third = versions
    sent = send(first, verdicts(first.suite, misses=1, false_alarms=6)).submission_id
    clock.now += timedelta(days=2)
    with pytest.raises(SubmissionError, match="already computed with the current labels"):
        first.moderation.refresh(sent, ADA, first.label_version)
    with pytest.raises(SubmissionError, match="no score under the current labels"):
        second.moderation.refresh(sent, ADA, second.label_version)
    rescore(second, MAINTAINER)
    assert second.records.quota("Ada").left_this_year == 3
    second.moderation.refresh(sent, ADA, second.label_version)
    assert second.records.quota("Ada").left_this_year == 2
    assert second.records.submission(sent, ADA).report["label_version"] == second.label_version
    # Two figures of one file cost as much as two files: 1/72 each.
    assert second.records.leak.get().total.rho == pytest.approx(2 / 72)
    clock.now += timedelta(days=2)
    rescore(third, MAINTAINER)
    assert third.records.submission(sent, ADA).report["label_version"] == second.label_version


def test_a_file_and_a_refreshed_one_share_the_limits_of_the_year_over_all_versions(versions, clock):
    first, second, third = versions
    start = clock.now
    sent = send(first, verdicts(first.suite, misses=1, false_alarms=6)).submission_id
    first.moderation.publish(sent, ADA)
    for misses, service in ((2, first), (3, second)):
        clock.now += timedelta(days=2)
        send(service, verdicts(service.suite, misses=misses, false_alarms=6))
    rescore(second, MAINTAINER)
    clock.now += timedelta(days=2)
    assert [row.note for row in second.records.board().rows] == [
        f"scored under label version {first.label_version}"
    ]
    second.moderation.refresh(sent, ADA, second.label_version)
    assert [row.note for row in second.records.board().rows] == [""]
    clock.now += timedelta(days=2)
    rescore(third, MAINTAINER)
    # Three files and one request for newer labels use up four. The first leaves the window after 365 days.
    with pytest.raises(RateLimited, match="from 2027-03-01") as refused:
        send(third, verdicts(third.suite, misses=4, false_alarms=6))
    assert refused.value.next_at == start + timedelta(days=365)
    with pytest.raises(RateLimited, match="4 in a year"):
        third.moderation.refresh(sent, ADA, third.label_version)
    # A request for newer labels of a public row uses up the second of two rows.
    clock.now = start + timedelta(days=364)
    with pytest.raises(RateLimited, match="limit of 2 public rows") as refused:
        third.moderation.publish(_second_of(third), ADA)
    assert refused.value.next_at == start + timedelta(days=365)


def _second_of(service) -> str:
    """Return a submission that is not public."""
    with service.snapshot() as session:
        found = own_submissions(session, service.suite.name, service.label_version, "Ada")
    return next(each.id for each in found if each.status.published_at is None)


def test_what_everybody_may_be_shown_in_a_year_is_one_number_whatever_the_accounts(
    settings, suite_folder, clock
):
    service = private_service(settings, suite_folder, 0, clock)
    rules = replace(service.suite.rules, accounts_a_year=1, public_rows_a_year=0, reserved_share=0.0)
    service.__dict__["suite"] = replace(service.suite, rules=rules)
    start = clock.now
    for number in range(4):  # the limit of one account: four files
        send(service, verdicts(service.suite, misses=number + 1, false_alarms=6), account=f"Account {number}")
    assert service.records.quota("Somebody").is_suite_full
    with pytest.raises(RateLimited, match=r"all accounts together .* from 2027-03-01") as refused:
        send(service, verdicts(service.suite, misses=6, false_alarms=6), account="Somebody")
    assert refused.value.next_at == start + timedelta(days=365)
    clock.now = refused.value.next_at
    send(service, verdicts(service.suite, misses=6, false_alarms=6), account="Somebody")
