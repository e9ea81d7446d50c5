"""A lease that lets only one of the processes that share a database commit to the Hub."""

import contextlib
import fcntl
import zlib
from pathlib import Path
from typing import BinaryIO, Final, Literal

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import SQLAlchemyError

_LOCKS: Final = {"records": 20261122, "board": 20261123}
"""The ids of the PostgreSQL advisory locks, keyed by kind of lease."""


class FileLease:
    """A lock on a file, for processes that share a state folder (SQLite). It ends with the process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None

    def acquire(self) -> bool:
        """Take the lease if it is free, without waiting; return whether this process holds it."""
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            file = self._path.open("ab")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.close()
                return False
            self._file = file
        return True

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class DatabaseLease:
    """An advisory lock held by a separate connection, for processes that share a PostgreSQL database."""

    def __init__(self, engine: Engine, what: str) -> None:
        self._engine, self._lock = engine, _LOCKS[what]
        if "search_path=" in (options := str(engine.url.query.get("options", ""))):
            self._lock += zlib.crc32(options.encode()) << 30  # each suite of a Space has its own lease
        self._connection: Connection | None = None

    def acquire(self) -> bool:
        """Take the lease if it is free; return whether it is held. A broken connection loses the lease."""
        try:
            if self._connection is None:
                connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
                if not connection.scalar(text(f"SELECT pg_try_advisory_lock({self._lock})")):
                    connection.close()
                    return False
                self._connection = connection
            else:
                self._connection.execute(text("SELECT 1"))
        except SQLAlchemyError:
            self.release()
            return False
        return True

    def release(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(SQLAlchemyError):
                # The server may notice a closed connection late, so unlock explicitly.
                connection.execute(text(f"SELECT pg_advisory_unlock({self._lock})"))
            with contextlib.suppress(SQLAlchemyError):
                connection.invalidate()  # ends the connection, and with it the lock if it is still held
                connection.close()


def open_lease(
    engine: Engine, state_dir: Path, what: Literal["records", "board"]
) -> FileLease | DatabaseLease:
    """Return the lease for processes that share this database: in PostgreSQL, or as a file for SQLite."""
    is_shared = engine.dialect.name == "postgresql"
    return DatabaseLease(engine, what) if is_shared else FileLease(state_dir / f"hub-{what}.lock")
