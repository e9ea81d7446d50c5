"""Tests with a real PostgreSQL server; skipped if none is installed."""

import threading
from datetime import UTC, datetime

import pytest
from sqlalchemy import func, select, text

from submissions.app import SubmissionsApp
from submissions.privacy.server_secret import SecretChanged, ServerSecret
from submissions.records.database import (
    Account,
    JudgeRow,
    ScoreRow,
    SecretCheck,
    Submission,
    open_database,
    snapshot,
    transaction,
)
from tests.support.submissions import declaration, send, verdicts
from tests.support.waiting import eventually


@pytest.fixture
def url(postgres_url) -> str:
    return postgres_url


@pytest.mark.parametrize("is_same", [True, False], ids=["of one secret", "of two secrets"])
def test_of_services_that_open_a_new_database_at_once_one_stores_the_secrets_check_value(
    url, settings, is_same
):
    service, ended = SubmissionsApp(settings.model_copy(update={"database_url": url})), []
    value = ServerSecret.of(settings).check_value if is_same else "0" * 16

    def check() -> None:
        try:
            ended.append(service.secret.check_value)
        except SecretChanged as problem:
            ended.append(type(problem))

    with transaction(open_database(url)) as other:
        other.add(SecretCheck(id=1, check_value=value, derivation=2))
        other.flush()
        checking = threading.Thread(target=check)
        checking.start()
        eventually(lambda: other.scalar(text("SELECT count(*) FROM pg_locks WHERE NOT granted")))
    checking.join(timeout=120)
    assert ended == [value if is_same else SecretChanged]


@pytest.mark.parametrize("scheme", ["postgres", "postgresql"])
def test_the_short_schemes_that_hosts_hand_out_are_understood(url, scheme):
    engine = open_database(url.replace("postgresql+psycopg", scheme))
    assert engine.dialect.driver == "psycopg"


def test_the_board_is_the_same_bytes_as_from_sqlite(url, settings, tmp_path):
    boards = []
    for state, database_url in (("postgres", url), ("sqlite", None)):
        changed = settings.model_copy(update={"state_dir": tmp_path / state, "database_url": database_url})
        moments = iter(datetime(2026, 1, 1, 0, 0, n // 10, n, tzinfo=UTC) for n in range(1000))
        service = SubmissionsApp(changed, clock=lambda moments=moments: next(moments))
        for n in range(3):
            send(service, verdicts(service.suite, misses=n, side_effect=False), judge=f"Judge {n % 2}")
        boards.append(service.records.board().to_bytes())
        assert SubmissionsApp(changed).records.board().to_bytes() == boards[-1]
    assert boards[0] == boards[1]


def test_threads_that_send_the_same_and_other_files_at_once_make_each_record_once(url, settings):
    service = SubmissionsApp(settings.model_copy(update={"database_url": url}))
    uploads = [service.intake.check(verdicts(service.suite, misses=n), "a.jsonl", "test") for n in range(2)]
    barrier, receipts, problems = threading.Barrier(8), [], []

    def work(n: int) -> None:
        try:
            barrier.wait(timeout=120)
            # Eight files: two accounts with two judges each, and two files each.
            who = declaration(account=f"Account {n % 2}", judge=f"Judge {n // 2 % 2}")
            receipts.extend(service.intake.submit(upload, who).receipt for upload in uploads)
        except Exception as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=300)
    assert problems == []
    assert len({receipt.submission_id for receipt in receipts}) == sum(r.is_new for r in receipts) == 8
    with snapshot(service.engine) as session:
        found = [
            session.scalar(select(func.count()).select_from(t))
            for t in (Account, JudgeRow, Submission, ScoreRow)
        ]
    assert found == [2, 4, 8, 8]
    assert len(service.records.board().rows) == 8
