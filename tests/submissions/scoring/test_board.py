"""Tests of boards: the reference row of the second annotators, and figures of public and private suites."""

import csv
import io
from datetime import timedelta
from types import SimpleNamespace

import pytest
from pydantic import SecretStr
from sqlalchemy import text

from leaderboard.paper.published import SECOND_ANNOTATOR
from submissions.app import SubmissionsApp
from submissions.intake.accounts import Actor
from submissions.records import queries
from submissions.records.database import Changes, open_database, snapshot
from submissions.scoring.board import CurrentBoard
from submissions.scoring.rescore import publish, rescore
from tests.attacks.service_oracle import Clock
from tests.support.submissions import again, send, verdicts, with_rules

ADA, MIA = Actor("Ada"), Actor("Mia", is_maintainer=True)


def with_doubles(released: bytes, **differing: str) -> bytes:
    """Return the file with second annotations of the first six test trajectories; the first one differs.

    Success is true for trajectories 0 and 3 of the six.
    """
    rows = list(csv.DictReader(io.StringIO(released.decode())))
    doubles = [{**row, "annotator_name": "Second"} for row in rows[:6]]
    doubles[0] |= differing
    output = io.StringIO()
    writer = csv.DictWriter(output, rows[0].keys())
    writer.writeheader()
    writer.writerows([*rows, *doubles])
    return output.getvalue().encode()


@pytest.fixture
def doubled(suite_folder) -> bytes:
    return with_doubles((suite_folder / "labels.csv").read_bytes(), trajectory_success="Unsuccessful")


@pytest.fixture
def serving(service, doubled) -> SubmissionsApp:
    found = again(service, labels="records")
    publish(found, doubled, MIA, "with second annotations")
    return found


def ceiling_of(board):
    return next((row for row in board.rows if row.id == SECOND_ANNOTATOR), None)


def test_second_annotations_are_a_reference_row_with_intervals(serving):
    row = ceiling_of(serving.records.board())
    cell = row.labels["success"]["overall"]
    # Of trajectories 0 and 3 the second annotator finds 3. Both call the other four failures.
    assert [cell[name] for name in ("tp", "fp", "fn", "tn")] == [1, 0, 1, 4]
    assert row.labels["success"]["intervals"] == "tasks"
    assert (row.provenance, row.labels["success"]["rank"]) == ("reference", None)
    assert row.date[:10] == serving.clock().date().isoformat()


def test_it_follows_the_labels_that_are_served(serving, suite_folder):
    send(serving, verdicts(serving.suite))
    before = serving.label_version
    publish(serving, with_doubles((suite_folder / "labels.csv").read_bytes()), MIA, "looked again")
    rescore(serving, MIA)
    assert ceiling_of(serving.records.board()).labels["success"]["overall"]["fn"] == 0
    assert ceiling_of(serving.records.board_under(before)) is None  # these labels are not available


def test_where_labels_are_private_there_is_no_such_row(serving):
    private = with_rules(again(serving), is_public=False)
    assert private.label_version is not None
    assert ceiling_of(private.records.board()) is None


@pytest.fixture
def engine(tmp_path):
    opened = open_database(f"sqlite:///{tmp_path / 'records.sqlite'}")
    yield opened
    opened.dispose()


def add_account(engine, name: str) -> None:
    with engine.begin() as connection:
        connection.execute(
            text("INSERT INTO accounts (name, created_at) VALUES (:name, '2026-01-01')"), {"name": name}
        )


def count_accounts(session) -> int:
    return session.execute(text("SELECT count(*) FROM accounts")).scalar_one()


def test_a_change_is_seen_whoever_made_it_and_nothing_else(engine, tmp_path):
    changes = Changes(engine)
    first = changes.seen()
    with snapshot(engine) as session:
        assert count_accounts(session) == 0
    assert changes.seen() == first
    add_account(engine, "here")
    second = changes.seen()
    assert second != first
    elsewhere = open_database(f"sqlite:///{tmp_path / 'records.sqlite'}")
    add_account(elsewhere, "another process")
    assert changes.seen() != second


def test_a_board_that_could_not_be_made_is_tried_again(engine):
    outcomes = iter([ValueError("no"), "made"])

    def make(session, version):
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    maker = SimpleNamespace(state=lambda session: (None, 0), make=make, moment=lambda: 0)
    board = CurrentBoard(engine, maker)
    with pytest.raises(ValueError, match="no"):
        board.get()
    assert board.get() == "made"


CELLS = ("tp", "fp", "fn", "tn")


def private(settings, **rules) -> SubmissionsApp:
    given = settings.model_copy(update={"secret": SecretStr("22f68a8477bd088b64a55b8a28acab93")})
    service = SubmissionsApp(given, clock=Clock())
    plain = {"ranking_half": False, "files_a_day": 99, "files_a_year": 99, "public_rows_a_year": 99}
    return with_rules(service, is_public=False, fewest_positives=1, **{**plain, "round_days": 1, **rules})


def success(report) -> dict:
    return report["labels"]["success"]


def test_with_public_labels_all_see_the_same_exact_report(service):
    sent = send(service, verdicts(service.suite, misses=2)).submission_id
    reports = [service.records.submission(sent, actor).report for actor in (ADA, MIA)]
    assert reports[0] == reports[1]
    assert [success(reports[0])["overall"][name] for name in CELLS] == [8, 0, 2, 20]
    assert service.records.board().rows[0].labels["success"]["by_agent"]


def test_a_suite_that_ranks_by_a_hidden_half_shows_the_other_half_with_noise(settings):
    service = private(settings, ranking_half=True)
    ids = [
        send(service, verdicts(service.suite, misses=n, false_alarms=8), judge=f"Judge {n}").submission_id
        for n in (1, 2)
    ]
    for sent in ids:
        service.moderation.publish(sent, ADA)
    service.clock.now += timedelta(days=1)
    board = service.records.board()
    assert {row.id for row in board.rows} == set(ids)
    assert [row.labels["success"]["rank"]["place"] for row in board.rows] == [1, 2]
    for row in board.rows:
        label = row.labels["success"]
        assert label["ranked_by"] == "a half of the tasks that is not shown"
        # 15 tasks of two runs: 2 + 3 + 2 + 2 tasks of the benchmarks' 3, 6, 3 and 3 are hidden, 6 are shown.
        assert label["overall"]["n"] == 12
    assert board.to_bytes() == service.records.board().to_bytes()


def test_the_exact_figures_of_a_private_suite_are_not_in_the_board(settings):
    service = private(settings, private_noise=4, public_noise=4)
    sent = send(service, verdicts(service.suite, misses=3, false_alarms=6)).submission_id
    service.moderation.publish(sent, ADA)
    service.clock.now += timedelta(days=1)
    exact = 7 / 13  # precision
    content = service.records.board().to_bytes().decode()
    assert repr(exact) not in content
    assert repr(exact) in str(service.records.submission(sent, MIA).report)


@pytest.mark.parametrize("days", [0, 30])
def test_the_board_follows_the_clock_where_rows_appear_in_rounds(settings, days):
    service = private(settings, round_days=10)
    sent = send(service, verdicts(service.suite)).submission_id
    service.moderation.publish(sent, ADA)
    assert service.records.board().rows == ()
    service.clock.now += timedelta(days=days)
    assert len(service.records.board().rows) == (1 if days else 0)
    assert (service.records.cached_board() is None) or len(service.records.cached_board().rows) == (
        1 if days else 0
    )


def test_a_new_row_of_a_private_board_reads_no_report_of_the_others(settings, monkeypatch):
    service, read = private(settings), []
    real = queries.scores_by_id

    def reading(session, ids):
        read.extend(ids)
        return real(session, ids)

    monkeypatch.setattr(queries, "scores_by_id", reading)
    for rows in (1, 2, 3):
        sent = send(service, verdicts(service.suite, misses=rows), judge=f"Judge {rows}").submission_id
        service.moderation.publish(sent, ADA)
        service.clock.now += timedelta(days=60)
        assert len(service.records.board().rows) == rows
        assert len(read) == rows  # one more each time
