"""What is told of scores: exact where labels are public; with noise, rounds and a hidden half where not."""

from datetime import UTC, datetime, timedelta

import pytest
from pydantic import SecretStr

from submissions.accounts import Actor
from submissions.service import SubmissionService
from tests.submissions.synthetic import send, verdicts, with_rules

ADA, MIA = Actor("Ada"), Actor("Mia", is_maintainer=True)
CELLS = ("tp", "fp", "fn", "tn")


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def private(settings, **rules) -> SubmissionService:
    given = settings.model_copy(update={"secret": SecretStr("one secret for every run of it")})
    service = SubmissionService(given, clock=Clock())
    plain = {"files_a_day": 99, "files_a_year": 99, "public_rows_a_year": 99, "round_days": 1}
    return with_rules(service, is_public=False, fewest_positives=1, **{**plain, **rules})


def success(report) -> dict:
    return report["labels"]["success"]


def test_with_public_labels_all_see_the_same_exact_report(service):
    sent = send(service, verdicts(service.suite, misses=2)).submission_id
    reports = [service.submission(sent, actor).report for actor in (ADA, MIA)]
    assert reports[0] == reports[1]
    assert [success(reports[0])["overall"][name] for name in CELLS] == [8, 0, 2, 20]
    assert service.board().rows[0].labels["success"]["by_agent"]


def test_with_private_labels_owner_and_public_see_noise_and_a_maintainer_does_not(settings):
    service = private(settings, private_noise=4, public_noise=4)
    sent = send(service, verdicts(service.suite, misses=2, false_alarms=6)).submission_id
    service.actions.publish(sent, ADA)
    service.clock.now += timedelta(days=1)
    owner, maintainer = (service.submission(sent, actor).report for actor in (ADA, MIA))
    assert [success(maintainer)["overall"][name] for name in CELLS] == [8, 6, 2, 14]
    cell = success(owner)["overall"]
    assert cell["noise"] == {"tp_sd": 4}
    # 14 called positive and 10 positives stay as they are, whatever the noise.
    assert (cell["tp"] + cell["fp"], cell["tp"] + cell["fn"]) == (14, 10)
    assert success(owner)["by_benchmark"] == {} and success(owner)["by_agent"] == {}
    (row,) = service.board().rows
    assert row.labels["success"]["overall"]["noise"] == {"tp_sd": 4}
    assert row.labels["success"]["by_agent"] == {}


def test_the_same_verdicts_in_another_dress_show_the_same_figures(settings):
    service = private(settings)
    content = verdicts(service.suite, misses=2, false_alarms=6)
    lines = content.splitlines()
    dresses = [
        content,
        b"\n".join(reversed(lines)) + b"\n",
        content.replace(b"false", b"null"),
        verdicts(service.suite, misses=2, false_alarms=6, side_effect=True, cost_usd=0.5),
        content.replace(b"assistantbench.improved.", b"assistantbench."),
    ]
    told = [
        service.submission(send(service, dress, judge=f"Judge {n}").submission_id, ADA).report
        for n, dress in enumerate(dresses)
    ]
    shown = [[success(report)["overall"][name] for name in CELLS] for report in told]
    assert shown[0][0] + shown[0][1] == 14
    assert shown == [shown[0]] * len(dresses)


def test_a_suite_that_ranks_by_a_hidden_half_shows_the_other_half_with_noise(settings):
    service = private(settings, ranking_half=True)
    ids = [
        send(service, verdicts(service.suite, misses=n, false_alarms=8), judge=f"Judge {n}").submission_id
        for n in (1, 2)
    ]
    for sent in ids:
        service.actions.publish(sent, ADA)
    service.clock.now += timedelta(days=1)
    board = service.board()
    assert {row.id for row in board.rows} == set(ids)
    assert [row.labels["success"]["rank"]["place"] for row in board.rows] == [1, 2]
    for row in board.rows:
        label = row.labels["success"]
        assert label["ranked_by"] == "a half of the tasks that is not shown"
        # 15 tasks of two runs: 2 + 3 + 2 + 2 tasks of the benchmarks' 3, 6, 3 and 3 are hidden, 6 are shown.
        assert label["overall"]["n"] == 12
    assert board.to_bytes() == SubmissionService.board(service).to_bytes()


def test_the_exact_figures_of_a_private_suite_are_not_in_the_board(settings):
    service = private(settings, private_noise=4, public_noise=4)
    sent = send(service, verdicts(service.suite, misses=3, false_alarms=6)).submission_id
    service.actions.publish(sent, ADA)
    service.clock.now += timedelta(days=1)
    exact = 7 / 13  # precision
    content = service.board().to_bytes().decode()
    assert repr(exact) not in content
    assert repr(exact) in str(service.submission(sent, MIA).report)


@pytest.mark.parametrize("days", [0, 30])
def test_the_board_follows_the_clock_where_rows_appear_in_rounds(settings, days):
    service = private(settings, round_days=10)
    sent = send(service, verdicts(service.suite)).submission_id
    service.actions.publish(sent, ADA)
    assert service.board().rows == ()
    service.clock.now += timedelta(days=days)
    assert len(service.board().rows) == (1 if days else 0)
    assert (service.cached_board() is None) or len(service.cached_board().rows) == (1 if days else 0)
