"""Everything is made again from records, files and labels; whatever was touched is named."""

import pytest
from sqlalchemy import text

from submissions.intake.accounts import Actor
from submissions.records.database import open_database, snapshot, transaction
from submissions.records.event_log import NotEmpty, events_after, restore_events
from submissions.records.integrity import verify
from tests.support.submissions import again, remove_nonces, send, verdicts


@pytest.fixture
def sent(service):
    ids = [send(service, verdicts(service.suite, misses=n), judge=f"Judge {n}").submission_id for n in (1, 2)]
    service.actions.withdraw(ids[1], Actor("Ada"))
    return ids


def test_untouched_records_are_found_whole(service, sent):
    steps = []
    found = verify(service, lambda done, of: steps.append((done, of)))
    assert (found.records, found.files, found.scores, found.problems) == (5, 2, 2, ())
    assert found.board_digest == service.board().digest
    assert steps == [(1, 2), (2, 2)]


def test_a_changed_score_is_found_in_the_table_and_in_the_record(service, sent):
    with service.engine.begin() as connection:
        connection.execute(text("""UPDATE scores SET report = '{"labels": {}}' WHERE id = 1"""))
    assert verify(service).problems == ("the table scores is not what the records say",)
    with service.engine.begin() as connection:
        connection.exec_driver_sql(
            "UPDATE records SET body = replace(body, '\"tp\":9', '\"tp\":10') WHERE kind = 'scored'"
        )
    problems = verify(service).problems
    assert "record 2: its content was changed (the hash differs)" in problems
    assert f"submission {sent[0]}: its score, made again, differs (report)" in problems
    assert not any("10" in problem.replace(sent[0], "").replace(sent[1], "") for problem in problems)


def test_a_damaged_file_is_named_by_its_submission(service, sent):
    told = service.submission(sent[0], Actor("Ada"))
    service.files.path(told.receipt.file_sha256).write_bytes(b"rubbish")
    assert verify(service).problems == (f"submission {sent[0]}: its stored file is missing or damaged",)


def test_a_row_that_no_record_made_is_found(service, sent):
    with service.engine.begin() as connection:
        connection.execute(text("INSERT INTO accounts (name, created_at) VALUES ('Eve', '2026-01-01')"))
    assert verify(service).problems == ("the table accounts is not what the records say",)


def test_restored_into_an_empty_database_the_records_give_the_same_tables(service, sent):
    with snapshot(service.engine) as session:
        records = events_after(session)
    fresh = open_database("sqlite://")
    with transaction(fresh) as session:
        assert restore_events(session, records) == 5
    with snapshot(fresh) as session:
        assert events_after(session) == records
    with pytest.raises(NotEmpty), transaction(fresh) as session:
        restore_events(session, records)
    with pytest.raises(ValueError, match="record 1 is missing"), transaction(open_database("sqlite://")) as s:
        restore_events(s, records[1:])


def test_records_from_before_nonces_verify_and_their_receipts_stay_as_they_were(service, sent):
    remove_nonces(service)
    old = [service.submission(name, Actor("Ada")).receipt for name in sent]
    started = again(service)
    started.finish_scoring()
    with snapshot(started.engine) as session:
        events = events_after(session)
    assert [event.nonce is None for event in events] == [True] * 5 + [False]
    assert (events[-1].kind, events[-1].body) == ("salted", {"through": 5})
    assert verify(started).problems == ()
    assert [started.submission(name, Actor("Ada")).receipt for name in sent] == old
    started.finish_scoring()
    assert verify(started).records == 6


def test_a_database_of_the_version_before_gets_its_column(service, sent):
    remove_nonces(service)
    with service.engine.begin() as connection:
        connection.execute(text("ALTER TABLE records DROP COLUMN nonce"))
        connection.execute(text("DROP TABLE files"))
        for table in ("sessions", "secret", "access_tokens"):
            connection.execute(text(f"DROP TABLE {table}"))
        connection.execute(text("UPDATE alembic_version SET version_num = '0002'"))
    started = again(service)
    started.finish_scoring()
    assert verify(started).problems == ()
