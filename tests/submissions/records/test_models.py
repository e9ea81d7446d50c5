from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from arb.core.judge_info import NAME_LENGTH, declared_fields
from arb.core.vocabulary import JUDGE_INPUTS, JUDGE_KINDS
from submissions.intake.upload import safe_file_name
from submissions.records.database import (
    Account,
    JudgeRow,
    ScoreRow,
    Submission,
    open_database,
    snapshot,
    transaction,
)

NOON = datetime(2026, 1, 2, 12, 0, 0, 123456, tzinfo=UTC)


@pytest.fixture
def engine(database_url):
    return open_database(database_url)


def account() -> Account:
    return Account(id=1, name="Ada", created_at=NOON)


def judge(**changes) -> JudgeRow:
    return JudgeRow(**{"id": 1, "account_id": 1, "name": "First", "created_at": NOON, **changes})


def submission(**changes) -> Submission:
    fields = {
        "id": "a", "judge_id": 1, "suite": "small", "split": "test", "file_sha256": "0" * 64,
        "content_hash": "1" * 64, "file_name": "a.jsonl", "size_bytes": 1, "rows": 30, "coverage": 1.0,
        "kind": "Other", "inputs": "other", "model": "", "authors": "", "link": "",
        "test_labels_used": False, "submitted_at": NOON,
    }  # fmt: skip
    return Submission(**{**fields, **changes})


def score(**changes) -> ScoreRow:
    fields = {
        "submission_id": "a", "label_version": "v1", "policy": "strict", "report": {},
        "counts_by_task": {}, "scored_at": NOON,
    }  # fmt: skip
    return ScoreRow(**{**fields, **changes})


def write(engine, *entries) -> None:
    with transaction(engine) as session:
        for entry in entries:
            session.add(entry)
            session.flush()


@pytest.mark.parametrize(
    "zone", [UTC, timezone(timedelta(hours=5)), timezone(timedelta(hours=-11, minutes=-30))]
)
def test_a_moment_comes_back_as_the_same_instant_in_utc(engine, zone):
    write(engine, Account(name="Ada", created_at=NOON.astimezone(zone)))
    with snapshot(engine) as session:
        kept = session.scalar(select(Account.created_at))
    assert kept == NOON
    assert kept.isoformat() == "2026-01-02T12:00:00.123456+00:00"


@pytest.mark.parametrize(
    "twin",
    [
        lambda: Account(name="Ada", created_at=NOON),
        lambda: judge(id=2),
        lambda: submission(id="b"),
        lambda: score(),
    ],
    ids=["account", "judge", "submission", "score"],
)
def test_nothing_is_recorded_twice_whoever_writes_it(engine, twin):
    write(engine, account(), judge(), submission(), score())
    with pytest.raises(IntegrityError):
        write(engine, twin())


def test_whatever_a_form_may_hold_fits_its_column():
    # SQLite takes any length; PostgreSQL refuses what is too long.
    def longest(column) -> float:
        return column.type.length or float("inf")

    columns = Submission.__table__.columns
    assert longest(Account.__table__.columns.name) >= NAME_LENGTH <= longest(JudgeRow.__table__.columns.name)
    assert longest(columns.kind) >= max(map(len, JUDGE_KINDS))
    assert longest(columns.inputs) >= max(map(len, JUDGE_INPUTS))
    for name in ("model", "authors", "link"):
        assert longest(columns[name]) >= declared_fields()[name]["maxLength"]
    assert longest(columns.file_name) >= len(safe_file_name("x" * 1000 + ".jsonl"))
