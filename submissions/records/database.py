"""The database of records: tables, connections, transactions and migrations, for SQLite and PostgreSQL.

The events are authoritative. The tables of accounts, judges, submissions and scores are for lookups: each row
is made from an event, in the same transaction (`event_log`), and is never edited.
"""

import json
import logging
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoFreeConnection
from sqlalchemy.orm import DeclarativeBase, Mapped, MappedAsDataclass, Session, mapped_column, relationship
from sqlalchemy.pool import PoolProxiedConnection
from tenacity import retry, retry_if_exception, stop_after_delay, wait_fixed

from submissions.errors import DatabaseAway, RecordsUnavailable

logger = logging.getLogger(__name__)
MIGRATIONS = Path(__file__).parent / "migrations"
BUSY_TIMEOUT_SECONDS = 30
_POSTGRESQL_ARGUMENTS = {
    "connect_timeout": 3, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 2,
    "tcp_user_timeout": 10_000,
}  # fmt: skip
"""Timeouts for a server that does not answer, in seconds; the last one is in milliseconds."""
WAIT_FOR_CONNECTION_SECONDS = 10
_SQLITE_AWAY = frozenset(
    (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
)
"""Error codes for a file that cannot be used at the moment; all other operational errors are our bugs."""
_SQLITE_BUSY = frozenset((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED))
"""Error codes for a file that another process has locked."""
_READS_ONLY = "reads_only"


class DatabaseUnavailable(RecordsUnavailable):
    """Raised when records cannot be opened. The message says why and what to do, without a password."""


def open_database(url: str) -> sa.Engine:
    """Return an engine for the records, after bringing its tables up to date.

    A SQLite file is created if needed and kept in WAL mode. Every write transaction takes its lock at the
    start, so that two processes wait for each other instead of failing halfway. Error messages never contain
    the values of a statement, since the counts of a score reveal much about the labels.

    Raises DatabaseUnavailable if the records cannot be opened.
    """
    try:
        engine = _engine(parse_url(url))
        migrate(engine)
    except (ArgumentError, ImportError) as error:
        raise _unusable_url(error) from error
    except CommandError as error:
        raise DatabaseUnavailable(
            f"the records were made by another version of this program ({error}); use a newer version, "
            "or upgrade records from before commit 7d56a80 with that commit first"
        ) from error
    except OSError as error:
        raise DatabaseUnavailable(
            f"the folder of the records cannot be created ({error.strerror}); set ARB_STATE_DIR or "
            "DATABASE_URL to a place where this user may write"
        ) from error
    except DBAPIError as error:
        reason = " ".join(str(error.orig).split())  # of PostgreSQL, several lines
        raise DatabaseUnavailable(
            f"the records cannot be opened ({reason}); check DATABASE_URL, or that this user may write to "
            "ARB_STATE_DIR and its disk is not full"
        ) from error
    return engine


def migrate(engine: sa.Engine) -> None:
    """Upgrade the tables to the newest revision, or create them in a new database.

    Processes that start at the same time wait for each other.
    """
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            # SQLite alters a table by replacing it with a copy. It must not check the rows that refer to the
            # table meanwhile. The setting has no effect within a transaction, so use the driver's cursor.
            connection.connection.cursor().execute("PRAGMA foreign_keys=OFF")
        with connection.begin():
            if engine.dialect.name == "postgresql":
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(20250411)")
                if connection.exec_driver_sql("SELECT current_schema()").scalar() is None:
                    schema = connection.exec_driver_sql("SHOW search_path").scalar_one()  # of one suite
                    connection.exec_driver_sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
        if engine.dialect.name == "sqlite":
            connection.connection.cursor().execute("PRAGMA foreign_keys=ON")


@contextmanager
def transaction(engine: sa.Engine) -> Iterator[Session]:
    """Yield a session; commit at the end, or roll back if the block raises. Raises DatabaseAway."""
    try:
        with Session(engine, expire_on_commit=False) as session, session.begin():
            yield session
    except NoFreeConnection as error:
        raise DatabaseAway from error
    except DBAPIError as error:
        is_away = error.connection_invalidated or isinstance(error, OperationalError | InterfaceError)
        if isinstance(error.orig, sqlite3.Error):
            is_away = _sqlite_code(error.orig) in _SQLITE_AWAY
            if is_away:  # such as a full disk, which only the operator can mend
                logger.warning("the database cannot be used: %s", error.orig.sqlite_errorname)
        if is_away:
            raise DatabaseAway from error
        raise


def _sqlite_code(error: BaseException) -> int:
    """Return SQLite's primary error code, or 0 if the error is not from SQLite."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


@contextmanager
def snapshot(engine: sa.Engine) -> Iterator[Session]:
    """Yield a read-only session that sees the records as of one moment and blocks no writer."""
    options = {} if engine.dialect.name == "sqlite" else {"isolation_level": "REPEATABLE READ"}
    with transaction(engine.execution_options(**{_READS_ONLY: True}, **options)) as session:
        yield session


class Moment(sa.TypeDecorator[datetime]):
    """A time in UTC. The type is needed because SQLite stores no time zone."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        return value if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Changes:
    """A detector of writes to the records. Not thread-safe."""

    def __init__(self, engine: sa.Engine) -> None:
        self._connection: PoolProxiedConnection | None = None
        if engine.dialect.name == "sqlite" and engine.url.database not in (None, "", ":memory:"):
            # This connection never writes, so SQLite reports every change of the other connections to it.
            self._connection = engine.raw_connection()
            self._connection.detach()

    def seen(self) -> int | None:
        """Return a number that changes with every commit, within microseconds.

        It is None on PostgreSQL, where only a query can find changes. See
        https://sqlite.org/pragma.html#pragma_data_version.
        """
        if self._connection is None:
            return None
        cursor = self._connection.cursor()
        cursor.execute("PRAGMA data_version")
        (version,) = cursor.fetchall()[0]
        return version


def _unusable_url(error: Exception) -> DatabaseUnavailable:
    return DatabaseUnavailable(
        f"DATABASE_URL cannot be used ({type(error).__name__}): write sqlite:///FILE or "
        "postgresql+psycopg://USER@HOST/NAME, and install the driver that it names"
    )


def parse_url(url: str) -> URL:
    """Return the address of a database with a driver that SQLAlchemy knows. Raises DatabaseUnavailable."""
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise _unusable_url(error) from error
    # Hosting services give out postgres:// and postgresql:// addresses. SQLAlchemy does not know the first,
    # and before 2.1 it looks for another driver for the second.
    is_short = parsed.drivername in ("postgres", "postgresql")
    return parsed.set(drivername="postgresql+psycopg") if is_short else parsed


def _engine(url: URL) -> sa.Engine:
    is_sqlite = url.get_backend_name() == "sqlite"
    if is_sqlite and url.database not in (None, "", ":memory:"):
        Path(url.database).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if is_sqlite:
        arguments = {"timeout": BUSY_TIMEOUT_SECONDS, "check_same_thread": False}
        engine = sa.create_engine(url, connect_args=arguments, hide_parameters=True)
        _use_immediate_transactions(engine)
        return engine
    own = {name: value for name, value in _POSTGRESQL_ARGUMENTS.items() if name not in url.query}
    arguments = own if url.get_driver_name() in ("psycopg", "psycopg2") else {}
    options = {"pool_pre_ping": True, "pool_timeout": WAIT_FOR_CONNECTION_SECONDS}
    return sa.create_engine(url, connect_args=arguments, hide_parameters=True, **options)


def _use_immediate_transactions(engine: sa.Engine) -> None:
    @sa.event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # we begin transactions ourselves, below
        _use_write_ahead_log(connection)
        for pragma in ("synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        reads_only = connection.get_execution_options().get(_READS_ONLY)
        connection.exec_driver_sql("BEGIN" if reads_only else "BEGIN IMMEDIATE")


def _is_busy(error: BaseException) -> bool:
    return _sqlite_code(error) in _SQLITE_BUSY


@retry(
    retry=retry_if_exception(_is_busy),
    stop=stop_after_delay(BUSY_TIMEOUT_SECONDS),
    wait=wait_fixed(0.02),
    reraise=True,
)
def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Set WAL mode, with retries because SQLite does not wait for a lock in this statement."""
    connection.execute("PRAGMA journal_mode=WAL")


class Base(DeclarativeBase):
    """The base class of the tables; ``migrations/`` upgrades a database to them."""

    type_annotation_map: ClassVar = {dict[str, Any]: sa.JSON, datetime: Moment}


def canonical(value: Mapping[str, Any]) -> bytes:
    """Return JSON in its canonical form: sorted keys, no spaces, UTF-8."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


class CanonicalJson(sa.TypeDecorator[dict[str, Any]]):
    """JSON stored as text, in the canonical form in which it was hashed."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: dict[str, Any] | None, dialect: sa.Dialect) -> str | None:
        return None if value is None else canonical(value).decode()

    def process_result_value(self, value: Any | None, dialect: sa.Dialect) -> dict[str, Any] | None:
        return None if value is None else json.loads(value)


class Event(MappedAsDataclass, Base):
    """An event: what happened (``kind``), when, by whom, and the details (``body``).

    ``nonce`` is hexadecimal and is stored only on the server and in private copies of the log. ``subject`` is
    the id of the submission that the event is about, if any.
    """

    __tablename__ = "records"
    sequence: Mapped[int] = mapped_column(sa.Integer, primary_key=True, autoincrement=False)
    kind: Mapped[str] = mapped_column(sa.String(32), index=True)
    at: Mapped[datetime]
    actor: Mapped[str] = mapped_column(sa.String(80))
    body: Mapped[dict[str, Any]] = mapped_column(CanonicalJson, repr=False)  # may contain annotators' answers
    previous: Mapped[str] = mapped_column(sa.String(64))
    hash: Mapped[str] = mapped_column(sa.String(64), unique=True)
    subject: Mapped[str | None] = mapped_column(sa.String(32), index=True, init=False)
    nonce: Mapped[str | None] = mapped_column(sa.String(64), default=None, repr=False)

    def __post_init__(self) -> None:
        self.subject = self.body.get("submission_id")

    @property
    def file_sha256(self) -> str | None:
        """The SHA-256 of the file that was submitted or published, or None if the event has no file."""
        return self.body.get("file_sha256")

    @property
    def reasons(self) -> tuple[str, ...]:
        named = self.body.get("reasons") or [self.body.get("reason")]
        return tuple(reason for reason in named if reason)

    @property
    def reason(self) -> str:
        """The reasons for the event as one string, without the final full stop."""
        return "; ".join(reason.rstrip(".") for reason in self.reasons)

    def line(self) -> bytes:
        """Return the event as a line of canonical JSON without a line end, for copies that are not public."""
        return canonical({**self.hashed_fields(), "hash": self.hash})

    def hashed_fields(self) -> dict[str, Any]:
        names = ("sequence", "kind", "actor", "body", "previous", *(() if self.nonce is None else ("nonce",)))
        at = self.at.isoformat(timespec="microseconds")
        return {**{name: getattr(self, name) for name in names}, "at": at}


class Commit(Base):
    """A commit on the Hub that contains every record up to ``through_sequence``."""

    __tablename__ = "commits"
    through_sequence: Mapped[int] = mapped_column(sa.Integer, primary_key=True, autoincrement=False)
    commit: Mapped[str] = mapped_column(sa.String(64))
    committed_at: Mapped[datetime]


class StoredFile(Base):
    """An uploaded file or a published label set, byte for byte; only used if DATABASE_URL is set."""

    __tablename__ = "files"
    sha256: Mapped[str] = mapped_column(sa.String(64), primary_key=True)
    content: Mapped[bytes] = mapped_column(sa.LargeBinary)


class BrowserSession(Base):
    """The session of a browser that is signed in; ``id`` is a hash of the cookie's value."""

    __tablename__ = "sessions"
    id: Mapped[str] = mapped_column(sa.String(64), primary_key=True)
    account: Mapped[str] = mapped_column(sa.String(80), index=True)
    begun_at: Mapped[datetime]
    browser: Mapped[str] = mapped_column(sa.String(200))


class AccessToken(Base):
    """An access token of an account; ``id`` is its SHA-256."""

    __tablename__ = "access_tokens"
    id: Mapped[str] = mapped_column(sa.String(64), primary_key=True)
    account: Mapped[str] = mapped_column(sa.String(80), index=True)
    made_at: Mapped[datetime]


class SecretCheck(Base):
    """The check value and the derivation of the secret in use; the table has one row."""

    __tablename__ = "secret"
    id: Mapped[int] = mapped_column(primary_key=True)
    check_value: Mapped[str] = mapped_column(sa.String(16))
    derivation: Mapped[int] = mapped_column(sa.Integer, server_default="1")


class Account(Base):
    """An account with submissions. On a local server without sign-in, submitters choose its name freely."""

    __tablename__ = "accounts"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(sa.String(80), unique=True)
    created_at: Mapped[datetime]


class JudgeRow(Base):
    """A judge, identified by its account and its original name. Boards rank judges."""

    __tablename__ = "judges"
    __table_args__ = (sa.UniqueConstraint("account_id", "name"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    account_id: Mapped[int] = mapped_column(sa.ForeignKey("accounts.id"))
    name: Mapped[str] = mapped_column(sa.String(80))
    created_at: Mapped[datetime]
    account: Mapped[Account] = relationship(lazy="joined", innerjoin=True)


class Submission(Base):
    """A submitted prediction file of a judge, with its declaration."""

    __tablename__ = "submissions"
    __table_args__ = (sa.UniqueConstraint("judge_id", "suite", "split", "file_sha256"),)
    id: Mapped[str] = mapped_column(sa.String(32), primary_key=True)
    judge_id: Mapped[int] = mapped_column(sa.ForeignKey("judges.id"))
    suite: Mapped[str] = mapped_column(sa.String(200))
    split: Mapped[str] = mapped_column(sa.String(10))
    file_sha256: Mapped[str] = mapped_column(sa.String(64))
    content_hash: Mapped[str] = mapped_column(sa.String(64))
    file_name: Mapped[str] = mapped_column(sa.String(200))
    size_bytes: Mapped[int] = mapped_column(sa.Integer)
    rows: Mapped[int] = mapped_column(sa.Integer)
    coverage: Mapped[float] = mapped_column(sa.Float)
    kind: Mapped[str] = mapped_column(sa.String(40))
    inputs: Mapped[str] = mapped_column(sa.String(120))
    model: Mapped[str] = mapped_column(sa.String(120))
    authors: Mapped[str] = mapped_column(sa.Text)
    link: Mapped[str] = mapped_column(sa.Text)
    test_labels_used: Mapped[bool]
    submitted_at: Mapped[datetime]
    label_version: Mapped[str] = mapped_column(sa.String(16), default="", server_default="")
    judge: Mapped[JudgeRow] = relationship(lazy="joined", innerjoin=True)
    scores: Mapped[list["ScoreRow"]] = relationship(back_populates="submission")


class ScoreRow(Base):
    """The score of a submission under one label version.

    ``counts_by_task`` is never shown, and neither is ``report`` if the labels are private. ``digests``
    identify sets of verdicts and determine the noise. ``halves`` is empty unless the suite ranks by a hidden
    half. See `submissions.privacy.disclosure` for both.
    """

    __tablename__ = "scores"
    __table_args__ = (sa.UniqueConstraint("submission_id", "label_version", "policy"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    submission_id: Mapped[str] = mapped_column(sa.ForeignKey("submissions.id"))
    label_version: Mapped[str] = mapped_column(sa.String(16))
    policy: Mapped[str] = mapped_column(sa.String(16))
    report: Mapped[dict[str, Any]]
    counts_by_task: Mapped[dict[str, Any]]
    scored_at: Mapped[datetime]
    digests: Mapped[dict[str, Any]] = mapped_column(default=dict, server_default="{}")
    halves: Mapped[dict[str, Any]] = mapped_column(default=dict, server_default="{}")
    submission: Mapped[Submission] = relationship(back_populates="scores")
