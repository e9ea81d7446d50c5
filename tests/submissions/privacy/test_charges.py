"""Tests of charges to the leak budget and of refunds, on both databases."""

import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta

import pytest

from submissions.app import SubmissionsApp
from submissions.errors import PermissionDenied, RateLimited
from submissions.intake.accounts import Actor
from submissions.privacy.leak_budget import charges_in, file_cost, strangers_budget
from submissions.records.backup import export_to_folder, restore_from_folder
from submissions.records.integrity import verify
from submissions.records.queries import current_statuses
from submissions.scoring import scorer
from tests.attacks.service_oracle import Clock
from tests.support.submissions import declaration, send, verdicts, with_rules

MIA = Actor("Mia", is_maintainer=True)
ADA = Actor("Ada")
RULES = {
    "files_a_day": 2, "files_a_year": 2, "accounts_a_year": 4, "public_rows_a_year": 0, "fewest_positives": 5,
}  # fmt: skip
"""All accounts together: 4 x 2 = 8 files in a year, of which 4 are reserved for confirmed accounts."""
HELD = {"misses": 8}
"""Of 10 successes two are called so: fewer than five, so the file is held."""


def open_private(settings, clock=None, **rules) -> SubmissionsApp:
    service = SubmissionsApp(settings, clock=clock or Clock())
    return with_rules(service, is_public=False, **{**RULES, **rules})


@pytest.fixture
def suite(settings) -> SubmissionsApp:
    return open_private(settings)


def charged(service: SubmissionsApp) -> list[str]:
    """Return the accounts of all charges, in order."""
    with service.snapshot() as session:
        return [charge.account for charge in charges_in(session, service.suite, current_statuses(session))]


def send_held(service: SubmissionsApp, account: str, **changes) -> str:
    receipt = send(service, verdicts(service.suite, **{**HELD, **changes}), account=account)
    assert receipt.status == "held"
    return receipt.submission_id


def figures_of(service: SubmissionsApp, account: str, **changes) -> object:
    receipt = send(service, verdicts(service.suite, **changes), account=account)
    return service.records.submission(receipt.submission_id, Actor(account)).report


def test_a_confirmation_can_be_taken_back_and_needs_a_maintainer_and_a_known_name(suite):
    with pytest.raises(PermissionDenied):
        suite.moderation.decide_account("confirmed", "Ada", ADA, "me")
    figures_of(suite, "Ada", misses=1)
    suite.moderation.decide_account("confirmed", "ada", MIA, "known to us")
    assert 2 * file_cost(suite.suite.rules) * 2 == pytest.approx(strangers_budget(suite.suite.rules))
    for number in range(4):  # Ada is confirmed, so her file does not count
        figures_of(suite, f"Stranger {number}", misses=1)
    suite.moderation.decide_account("unconfirmed", "ADA", MIA, "left the project")
    with pytest.raises(RateLimited, match="unconfirmed accounts"):
        figures_of(suite, "Ada", misses=2)


def test_a_held_file_is_charged_when_it_is_released_and_only_if_it_fits(suite):
    held = send_held(suite, "Ada")
    for number in range(4):
        figures_of(suite, f"Stranger {number}", misses=number)
    with pytest.raises(RateLimited, match="confirm your account"):
        suite.moderation.decide("released", held, MIA, "looks right")
    view = suite.records.submission(held, ADA)
    assert view.status.is_held and view.report is None
    assert "Ada" not in charged(suite)
    suite.clock.now += timedelta(days=365)
    suite.moderation.decide("released", held, MIA, "looks right")
    assert suite.records.submission(held, ADA).report is not None
    assert charged(suite)[-1] == "Ada"
    # It counts from its release on, which is 365 days after it was submitted.
    suite.clock.now += timedelta(days=364)
    with suite.snapshot() as session:
        found = charges_in(session, suite.suite, current_statuses(session))
    assert found[-1].at == suite.clock() - timedelta(days=364)


def test_a_held_file_that_is_rejected_is_never_charged_and_one_that_was_shown_stays_charged(suite):
    held = send_held(suite, "Ada")
    suite.moderation.decide("rejected", held, MIA, "a probe")
    shown = send(suite, verdicts(suite.suite, misses=1), account="Bob").submission_id
    suite.moderation.decide("rejected", shown, MIA, "a probe")
    assert charged(suite) == ["Bob"]
    assert suite.records.quota("Ada").left_this_year == 2 and suite.records.quota("Bob").left_this_year == 1


def test_a_held_file_that_was_withdrawn_cannot_be_released(suite):
    held = send_held(suite, "Ada")
    suite.moderation.withdraw(held, ADA)
    with pytest.raises(Exception, match="is withdrawn"):
        suite.moderation.decide("released", held, MIA, "looks right")
    assert charged(suite) == []


def killed_before_scoring(service: SubmissionsApp, account: str, **changes) -> str:
    """Record a file without a score, as a process does that is killed between the two."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(scorer, "record_score", lambda *_: None)
        return send(service, verdicts(service.suite, **changes), account=account).submission_id


def test_a_ban_gives_back_what_was_not_shown_through_restart_restore_and_replay(own_settings, tmp_path):
    service = open_private(own_settings)
    shown = send(service, verdicts(service.suite, misses=1), account="Eve").submission_id
    unscored = killed_before_scoring(service, "Eve", misses=2)
    assert charged(service) == ["Eve", "Eve"]
    service.moderation.decide_account("banned", "Eve", MIA, "a farm")

    def assert_given_back(found: SubmissionsApp) -> None:
        assert charged(found) == ["Eve"]
        assert found.intake.finish_scoring() == 0
        assert found.records.submission(unscored, Actor("Eve")).report is None
        assert found.records.submission(shown, Actor("Eve")).report is not None

    assert_given_back(service)
    assert_given_back(open_private(own_settings, service.clock))
    export_to_folder(service, tmp_path / "backup")
    target = own_settings.model_copy(
        update={"database_url": f"sqlite:///{tmp_path / 'restored.sqlite'}", "state_dir": tmp_path / "two"}
    )
    restore_from_folder(target, tmp_path / "backup")
    restored = open_private(target, service.clock)
    assert_given_back(restored)
    assert verify(restored).problems == ()
    # After a restart, the refunded file counts from then on.
    restored.clock.now += timedelta(days=1)
    restored.moderation.decide_account("unbanned", "Eve", MIA, "explained")
    assert restored.intake.finish_scoring() == 1
    assert charged(restored) == ["Eve", "Eve"]


def test_a_ban_takes_back_rows_that_nobody_has_seen_yet(settings):
    clock = Clock()
    service = open_private(settings, clock, public_rows_a_year=1, round_days=30)
    first = send(service, verdicts(service.suite, misses=1), account="Eve").submission_id
    service.moderation.publish(first, Actor("Eve"))
    assert charged(service) == ["Eve", "Eve"]
    service.moderation.decide_account("banned", "Eve", MIA, "a farm")
    assert charged(service) == ["Eve"]
    clock.now += timedelta(days=60)
    assert service.records.board().rows == ()
    service.moderation.decide_account("unbanned", "Eve", MIA, "explained")
    service.moderation.publish(first, Actor("Eve"))  # the year's only row is available again
    clock.now += timedelta(days=60)
    assert [row.id for row in service.records.board().rows] == [first]
    service.moderation.decide_account("banned", "Eve", MIA, "again")
    assert charged(service) == ["Eve", "Eve"]
    assert [row.id for row in service.records.board().rows] == [first]


def test_a_file_whose_account_is_banned_while_it_is_scored_is_neither_shown_nor_charged(
    own_settings, monkeypatch
):
    service = open_private(own_settings)
    score_of = scorer.score_of

    def banned_meanwhile(*arguments):
        service.moderation.decide_account("banned", "Eve", MIA, "a farm")
        return score_of(*arguments)

    monkeypatch.setattr(scorer, "score_of", banned_meanwhile)
    receipt = send(service, verdicts(service.suite, misses=1), account="Eve")
    assert receipt.is_new
    assert service.records.submission(receipt.submission_id, Actor("Eve")).report is None
    assert charged(service) == []


def test_a_scored_file_that_cannot_be_read_any_more_stays_charged(suite):
    sent = send(suite, verdicts(suite.suite, misses=1), account="Ada").submission_id
    scorer.refund_submission(suite, sent, "its stored file is missing or damaged")
    assert charged(suite) == ["Ada"]


def release_all(settings, held, together) -> None:
    service = open_private(settings)
    together.wait(timeout=300)
    for name in held:
        try:
            service.moderation.decide("released", name, MIA, "looks right")
        except Exception as problem:  # it no longer fits, or the other process released it
            assert isinstance(problem, RateLimited) or "not held" in str(problem)


@pytest.mark.slow
def test_maintainers_who_release_at_once_never_pass_the_budget(own_settings):
    service = open_private(own_settings)
    held = [send_held(service, f"Stranger {number}") for number in range(12)]
    context = multiprocessing.get_context("spawn")
    together = context.Barrier(2)
    processes = [
        context.Process(target=release_all, args=(own_settings, order, together))
        for order in (held, held[::-1])
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=300)
        assert process.exitcode == 0
    assert len(charged(service)) == 4
    assert service.intake.finish_scoring() == 0  # each was scored when it was released


def test_strangers_who_submit_at_once_never_pass_their_part(own_settings):
    service = open_private(own_settings)
    files = [
        service.intake.check(verdicts(service.suite, misses=n % 5), "a.jsonl", "test") for n in range(12)
    ]
    start, taken = threading.Barrier(12), []

    def submit(number: int) -> None:
        start.wait(timeout=120)
        with suppress(RateLimited):
            taken.append(service.intake.submit(files[number], declaration(account=f"Stranger {number}")))

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(submit, range(12)))
    assert len(taken) == 4 == len(charged(service))
