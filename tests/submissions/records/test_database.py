import multiprocessing
import sqlite3
import stat
import threading
from datetime import UTC, datetime

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import inspect, select
from sqlalchemy.exc import IntegrityError

from arb.core.settings import Settings
from submissions.app import SubmissionsApp
from submissions.errors import DatabaseAway
from submissions.records import database
from submissions.records.database import (
    Account,
    Base,
    DatabaseUnavailable,
    ScoreRow,
    migrate,
    open_database,
    snapshot,
    transaction,
)

NOON = datetime(2026, 1, 2, 12, 0, 0, 123456, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _begins_empty(monkeypatch):
    """Create databases with migrations, without the shortcut of `_databases_begin_as_copies`."""
    monkeypatch.setattr(database, "migrate", migrate)


@pytest.fixture
def url(tmp_path) -> str:
    return f"sqlite:///{tmp_path / 'records.sqlite'}"


def differences(engine) -> list:
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        return compare_metadata(context, Base.metadata)


def test_migrations_bring_an_empty_database_to_the_models_exactly_and_twice_is_harmless(database_url):
    engine = open_database(database_url)
    assert differences(engine) == []
    assert set(inspect(engine).get_table_names()) == {*Base.metadata.tables, "alembic_version"}
    migrate(engine)
    assert differences(open_database(database_url)) == []


def test_a_migration_that_fails_leaves_no_table_behind(url, monkeypatch):
    def upgrade_and_fail(config, revision, upgrade=database.command.upgrade):
        upgrade(config, revision)
        raise RuntimeError("power cut")

    with monkeypatch.context() as patched:
        patched.setattr(database.command, "upgrade", upgrade_and_fail)
        with pytest.raises(RuntimeError):
            open_database(url)
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == []
    assert differences(open_database(url)) == []


def test_a_database_of_a_version_that_is_not_known_is_named(url):
    with open_database(url).begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0001'")
    with pytest.raises(DatabaseUnavailable, match=r"another version .*'0001'"):
        open_database(url)


def _open_at_once(url, barrier, answers) -> None:
    barrier.wait(timeout=300)
    try:
        open_database(url).dispose()
    except Exception as problem:
        answers.put(repr(problem))
    else:
        answers.put(None)


@pytest.mark.slow
def test_processes_that_start_at_once_all_get_their_database(database_url):
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(3), context.Queue()
    arguments = (database_url, barrier, answers)
    processes = [context.Process(target=_open_at_once, args=arguments) for _ in range(3)]
    for process in processes:
        process.start()
    assert [answers.get(timeout=300) for _ in processes] == [None, None, None]
    for process in processes:
        process.join(timeout=120)
    assert differences(open_database(database_url)) == []


def test_opening_waits_for_a_process_that_is_writing_the_new_file(url):
    other = sqlite3.connect(url.removeprefix("sqlite:///"), check_same_thread=False, isolation_level=None)
    other.execute("CREATE TABLE unrelated (id INTEGER)")
    other.execute("BEGIN IMMEDIATE")  # now SQLite refuses WAL immediately, whatever its timeout
    threading.Timer(0.3, lambda: other.execute("DROP TABLE unrelated") and other.execute("COMMIT")).start()
    assert differences(open_database(url)) == []
    other.close()


def test_sqlite_keeps_a_write_ahead_log_and_syncs_every_commit(url):
    with open_database(url).connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1


def test_a_transaction_that_fails_leaves_nothing(url):
    engine = open_database(url)
    with pytest.raises(RuntimeError), transaction(engine) as session:
        session.add(Account(name="Ada", created_at=NOON))
        session.flush()
        raise RuntimeError
    with snapshot(engine) as session:
        assert session.scalars(select(Account)).all() == []


def test_reading_neither_waits_for_a_writer_nor_holds_one_up(database_url, monkeypatch):
    monkeypatch.setattr(database, "BUSY_TIMEOUT_SECONDS", 0.2)
    engine = open_database(database_url)
    with transaction(engine) as writer:
        writer.add(Account(name="Ada", created_at=NOON))
        writer.flush()
        with snapshot(engine) as reader:  # while the writer holds the lock
            assert reader.scalars(select(Account)).all() == []
    with snapshot(engine) as reader:
        assert len(reader.scalars(select(Account)).all()) == 1
        with transaction(engine) as writer:
            writer.add(Account(name="Bob", created_at=NOON))
        # … and it goes on seeing the moment that it began with.
        assert len(reader.scalars(select(Account)).all()) == 1


def test_writers_take_turns_from_the_start_of_a_transaction(url, monkeypatch):
    monkeypatch.setattr(database, "BUSY_TIMEOUT_SECONDS", 0.2)
    engine = open_database(url)
    with transaction(engine) as first:
        first.scalars(select(Account)).all()  # has only read so far
        with pytest.raises(DatabaseAway), transaction(engine) as second:
            second.scalars(select(Account)).all()


def test_an_error_text_holds_no_value_of_the_statement(url):
    # The counts of a score reveal much about the labels. SQLAlchemy would print them with the statement.
    score = ScoreRow(
        submission_id="nowhere", label_version="v", policy="strict", report={"secret": 31337},
        counts_by_task={"success": [[271, 828]]}, scored_at=NOON,
    )  # fmt: skip
    with pytest.raises(IntegrityError) as raised, transaction(open_database(url)) as session:
        session.add(score)
    assert "INSERT INTO scores" in str(raised.value)
    assert "31337" not in str(raised.value)
    assert "271" not in str(raised.value)


def test_the_records_are_where_database_url_says(settings, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere" / "my.sqlite"
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{elsewhere}")
    from_environment = Settings(**settings.model_dump(exclude={"database_url"}))
    SubmissionsApp(from_environment).records.board()
    assert elsewhere.is_file()
    assert not (settings.state_dir / "records.sqlite").exists()


def test_a_new_folder_of_records_is_its_owners_only(tmp_path):
    # counts_by_task reveals much about the labels, so it stays on the server.
    open_database(f"sqlite:///{tmp_path / 'state' / 'records.sqlite'}")
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700


def test_a_checkout_whose_path_has_a_percent_sign_migrates(url, tmp_path, monkeypatch):
    folder = tmp_path / "50%off" / "migrations"
    folder.parent.mkdir()
    folder.symlink_to(database.MIGRATIONS)
    monkeypatch.setattr(database, "MIGRATIONS", folder)
    assert differences(open_database(url)) == []


@pytest.mark.parametrize(
    "wrong",
    ["nonsense", "nosuch://user:hunter2@host/name", "mysql://user:hunter2@host/name"],
)
def test_a_database_url_that_cannot_be_used_is_said_without_its_password(wrong):
    with pytest.raises(DatabaseUnavailable, match="DATABASE_URL") as raised:
        open_database(wrong)
    assert "hunter2" not in str(raised.value)


def test_a_file_that_is_no_database_is_said_so(url, tmp_path):
    (tmp_path / "records.sqlite").write_bytes(b"not a database, but long enough to be taken for one" * 20)
    with pytest.raises(DatabaseUnavailable, match="not a database"):
        open_database(url)


def test_a_disk_that_cannot_be_written_is_said_at_once(url, tmp_path, monkeypatch):
    # Only a file that another process has locked is worth waiting for.
    (tmp_path / "records.sqlite-wal").mkdir()
    monkeypatch.setattr(database._use_write_ahead_log.retry, "sleep", lambda _: pytest.fail("it waits"))
    with pytest.raises(DatabaseUnavailable, match=r"disk I/O error.* its disk is not full"):
        open_database(url)


def test_a_disk_that_is_full_while_records_are_written_is_named_in_the_log(url, caplog):
    engine = open_database(url)
    with pytest.raises(DatabaseAway), transaction(engine) as session:
        pages = session.connection().exec_driver_sql("PRAGMA page_count").scalar()
        session.connection().exec_driver_sql(f"PRAGMA max_page_count={pages}")
        session.add_all(Account(name=f"{place} {'x' * 500}", created_at=NOON) for place in range(100))
    assert "the database cannot be used: SQLITE_FULL" in caplog.text


def test_a_server_that_refuses_the_connection_is_said_in_one_line():
    with pytest.raises(DatabaseUnavailable, match="the records cannot be opened") as raised:
        open_database("postgresql://ada:hunter2@127.0.0.1:1/records")
    assert str(raised.value).isprintable()
    assert "hunter2" not in str(raised.value)


def test_a_folder_that_cannot_be_made_is_said_so(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DatabaseUnavailable, match="ARB_STATE_DIR"):
        open_database(f"sqlite:///{tmp_path / 'file' / 'state' / 'records.sqlite'}")
