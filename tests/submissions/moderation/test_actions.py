"""Owners withdraw, rename and publish; maintainers moderate; nothing is edited and all of it is recorded."""

from datetime import UTC, datetime, timedelta

import pytest

from arb.core.judge_info import DeclarationError
from submissions.app import SubmissionsApp
from submissions.errors import PermissionDenied, RateLimited, SubmissionError
from submissions.intake.accounts import Actor
from submissions.records.database import snapshot
from submissions.records.event_log import events_after
from submissions.scoring.rescore import publish
from tests.support.submissions import declaration, send, verdicts, with_rules

ADA, BOB = Actor("Ada"), Actor("Bob")
MAINTAINER = Actor("Mia", is_maintainer=True)


@pytest.fixture
def sent(service):
    return send(service, verdicts(service.suite)).submission_id


def board_ids(service) -> list[str]:
    return [row.id for row in service.records.board().rows]


def kinds(service) -> list[str]:
    with snapshot(service.engine) as session:
        return [record.kind for record in events_after(session)]


def test_only_the_owner_and_maintainers_withdraw_rename_or_look(service, sent):
    for act in (
        lambda: service.moderation.withdraw(sent, BOB),
        lambda: service.moderation.rename("Ada", "First judge", "Other", BOB),
        lambda: service.records.submission(sent, BOB),
    ):
        with pytest.raises(PermissionDenied, match="only its owner and maintainers"):
            act()
    assert kinds(service) == ["submitted", "scored"]
    service.moderation.withdraw(sent, MAINTAINER)
    assert service.records.submission(sent, MAINTAINER).status.is_withdrawn


def test_a_renamed_judge_is_one_judge_under_its_new_name(service, sent):
    service.moderation.rename("Ada", "First judge", "Second name", ADA)
    (row,) = service.records.board().rows
    assert (row.judge, row.attempts) == ("Second name", 1)
    # A further file under the new name is the same judge's second try.
    send(service, verdicts(service.suite, misses=1), judge="Second name")
    assert [row.attempts for row in service.records.board().rows] == [2, 2]
    assert [row.judge for row in service.records.board().rows] == ["Second name"] * 2
    # And the first file sent under the new name is still the same submission.
    assert send(service, verdicts(service.suite), judge="Second name").submission_id == sent


def test_a_name_that_cannot_be_is_refused(service, sent):
    send(service, verdicts(service.suite, misses=1), judge="Another")
    with pytest.raises(SubmissionError, match="already has a judge of that name"):
        service.moderation.rename("Ada", "First judge", "Another", ADA)
    with pytest.raises(SubmissionError, match="already has this name"):
        service.moderation.rename("Ada", "First judge", "First judge", ADA)
    with pytest.raises(DeclarationError):
        service.moderation.rename("Ada", "First judge", "two\nlines", ADA)
    with pytest.raises(KeyError):
        service.moderation.rename("Ada", "No judge", "Name", ADA)
    service.moderation.rename("Ada", "First judge", "New name", ADA)
    with pytest.raises(KeyError):  # it has another name by now
        service.moderation.rename("Ada", "First judge", "Newer name", ADA)


@pytest.mark.parametrize("character", ["\0", "\x1b", "\x7f", "\x9b"])
def test_a_reason_with_control_characters_is_refused_everywhere(service, sent, character):
    reason = f"it{character}copies"
    for act in (
        lambda: service.moderation.decide("hidden", sent, MAINTAINER, reason),
        lambda: service.moderation.decide_account("banned", "Ada", MAINTAINER, reason),
        lambda: publish(service, b"", MAINTAINER, reason),
    ):
        with pytest.raises(SubmissionError, match="contains control characters; remove them"):
            act()
    assert kinds(service) == ["submitted", "scored"]
    service.moderation.decide("hidden", sent, MAINTAINER, "two\tlines\r\nbecome one")


@pytest.mark.parametrize("decision", ["hidden", "verified", "rejected", "label_exposed", "released", "shown"])
def test_nobody_but_a_maintainer_decides(service, sent, decision):
    with pytest.raises(PermissionDenied, match="only maintainers"):
        service.moderation.decide(decision, sent, ADA, "because")
    assert kinds(service) == ["submitted", "scored"]


def test_an_account_is_banned_under_every_spelling_of_its_name(service, sent):
    service.moderation.decide_account("banned", "ADA", MAINTAINER, "many accounts")
    with pytest.raises(PermissionDenied, match="may no longer submit"):
        send(service, verdicts(service.suite, misses=2))
    assert not send(service, verdicts(service.suite)).is_new  # what is there stays
    assert board_ids(service) == [sent]
    with pytest.raises(SubmissionError, match="is banned"):
        service.moderation.decide_account("banned", "Ada", MAINTAINER, "again")
    service.moderation.decide_account("unbanned", "ada", MAINTAINER, "explained")
    assert send(service, verdicts(service.suite, misses=2)).is_new


def test_the_limit_holds_over_all_judges_of_an_account_and_a_resent_file_costs_nothing(settings):
    now = [datetime(2026, 3, 1, tzinfo=UTC)]
    service = with_rules(SubmissionsApp(settings, clock=lambda: now[0]), files_a_day=2)
    send(service, verdicts(service.suite, misses=1), judge="One")
    now[0] += timedelta(hours=2)
    send(service, verdicts(service.suite, misses=2), judge="Two")
    assert not send(service, verdicts(service.suite, misses=1), judge="One").is_new
    with pytest.raises(RateLimited, match="2 in 24 hours") as refused:
        send(service, verdicts(service.suite, misses=3), judge="Three")
    assert refused.value.next_at == datetime(2026, 3, 2, tzinfo=UTC)
    assert send(service, verdicts(service.suite, misses=3), account="Bob").is_new
    assert service.records.quota("Ada").left_today == 0
    now[0] = refused.value.next_at
    assert send(service, verdicts(service.suite, misses=3), judge="Three").is_new


def test_a_fault_of_ours_gives_the_file_back(service, monkeypatch):
    from submissions.scoring import scorer

    with_rules(service, files_a_day=1)
    with monkeypatch.context() as patched, pytest.raises(ZeroDivisionError):
        patched.setattr(scorer, "record_score", lambda *arguments: 1 / 0)
        send(service, verdicts(service.suite))
    assert kinds(service) == ["submitted", "refunded"]
    assert service.records.quota("Ada").left_today == 1
    assert send(service, verdicts(service.suite, misses=1)).is_new
    # The one that failed was given back; scored now, it would be a second file of the day.
    assert service.intake.finish_scoring() == 0
    with pytest.raises(RateLimited):
        send(service, verdicts(service.suite))


def test_a_file_that_was_given_back_and_is_scored_after_all_counts_from_then_on(settings, monkeypatch):
    from submissions.scoring import scorer

    now = [datetime(2026, 3, 1, tzinfo=UTC)]
    service = with_rules(SubmissionsApp(settings, clock=lambda: now[0]), files_a_day=1)
    with monkeypatch.context() as patched, pytest.raises(ZeroDivisionError):
        patched.setattr(scorer, "record_score", lambda *arguments: 1 / 0)
        send(service, verdicts(service.suite))
    now[0] += timedelta(hours=30)
    assert service.intake.finish_scoring() == 1
    assert kinds(service) == ["submitted", "refunded", "counted", "scored"]
    with pytest.raises(RateLimited) as refused:
        send(service, verdicts(service.suite, misses=1))
    assert refused.value.next_at == now[0] + timedelta(hours=24)


def test_in_a_private_suite_a_row_is_public_when_its_owner_says_so_and_the_round_is_over(settings):
    now = [datetime(2026, 3, 1, tzinfo=UTC)]
    service = with_rules(
        SubmissionsApp(settings, clock=lambda: now[0]), is_public=False,
        fewest_positives=1, files_a_day=9, public_rows_a_year=1, round_days=10,
    )  # fmt: skip
    first, second = (send(service, verdicts(service.suite, misses=n)).submission_id for n in (1, 2))
    assert board_ids(service) == []
    service.moderation.publish(first, ADA)
    assert board_ids(service) == []
    told = service.records.submission(first, ADA)
    # Rounds of 10 days from 2025-01-01: day 424 lies in round 42, which ends on day 430, 2026-03-07.
    assert told.appears_at == datetime(2026, 3, 7, tzinfo=UTC)
    now[0] = told.appears_at
    assert board_ids(service) == [first]
    with pytest.raises(SubmissionError, match="already public"):
        service.moderation.publish(first, ADA)
    with pytest.raises(SubmissionError, match="limit of 1 public rows"):
        service.moderation.publish(second, ADA)
    now[0] += timedelta(days=366)
    service.moderation.publish(second, ADA)


# Identity: the Hub's id of an account, whatever its name


def hub_actor(name: str, subject: str, **more) -> Actor:
    return Actor(name, how="session", subject=subject, **more)


def submit_as(service, actor, content: bytes, judge: str = "First judge"):
    upload = service.intake.check(content, "verdicts.jsonl", "test")
    actor = service.moderation.identify(actor)
    return service.intake.submit(upload, declaration(account=actor.name, judge=judge), actor)


def test_a_renamed_account_keeps_its_rows_and_its_quota(service):
    with_rules(service, files_a_day=1)
    sent = submit_as(service, hub_actor("alice", "id-1"), verdicts(service.suite)).receipt.submission_id
    renamed = service.moderation.identify(hub_actor("alicia", "id-1"), for_good=True)
    assert (renamed.name, renamed.display_name) == ("alice", "alicia")
    assert service.records.submission(sent, renamed).receipt.submission_id == sent
    assert service.records.quota(renamed.name).left_today == 0
    with pytest.raises(RateLimited):
        submit_as(service, hub_actor("alicia", "id-1"), verdicts(service.suite, misses=1))
    assert [row.account for row in service.records.board().rows] == ["alicia"]


def test_who_takes_the_old_name_gets_nothing_of_it(service):
    with_rules(service, files_a_day=1)
    sent = submit_as(service, hub_actor("alice", "id-1"), verdicts(service.suite)).receipt.submission_id
    service.moderation.identify(hub_actor("alicia", "id-1"), for_good=True)
    other = service.moderation.identify(hub_actor("Alice", "id-2"), for_good=True)
    assert other.name != "alice" and other.name.startswith("Alice~")
    for act in (service.moderation.withdraw, lambda *a: service.records.submission(*a)):
        with pytest.raises(PermissionDenied):
            act(sent, other)
    assert service.records.quota(other.name).left_today == 1
    new = submit_as(service, hub_actor("Alice", "id-2"), verdicts(service.suite, misses=2))
    assert new.receipt.is_new
    assert sorted(row.account for row in service.records.board().rows) == [other.name, "alicia"]


def test_a_ban_stays_with_the_account_that_it_was_for(service):
    submit_as(service, hub_actor("mallory", "id-1"), verdicts(service.suite))
    service.moderation.decide_account("banned", "mallory", MAINTAINER, "copies")
    with pytest.raises(PermissionDenied, match="may no longer submit"):
        submit_as(service, hub_actor("innocent", "id-1"), verdicts(service.suite, misses=1))
    assert submit_as(service, hub_actor("mallory", "id-2"), verdicts(service.suite, misses=2)).receipt.is_new


def test_records_from_before_ids_belong_to_the_account_of_their_name_unless_that_is_younger(service):
    sent = send(service, verdicts(service.suite), account="bob").submission_id
    day = service.clock().date()
    thief = service.moderation.identify(hub_actor("bob", "id-8", since=day + timedelta(days=1)))
    with pytest.raises(PermissionDenied):
        service.records.submission(sent, thief)
    owner = service.moderation.identify(hub_actor("Bob", "id-9", since=day), for_good=True)
    assert owner.name == "bob"
    assert service.records.submission(sent, owner).receipt.submission_id == sent
    assert service.moderation.identify(hub_actor("bob", "id-7")).name != "bob"  # bound by now


def test_an_account_is_recorded_once_for_each_name(service):
    for name in ("ada", "ada", "ada-l", "ada-l"):
        service.moderation.identify(hub_actor(name, "id-1"), for_good=True)
    assert kinds(service) == ["identified", "identified"]
