"""A PostgreSQL server of the tests' own, which they can stop and start again."""

import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import EVERY_TEST


class PostgresServer:
    """A server on a socket in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._data, self._as_whom = folder, str(folder / "data"), _unprivileged()
        if self._as_whom:
            shutil.chown(folder, self._as_whom["user"], self._as_whom["group"])
        self._run("initdb", "-U", "arb", "-A", "trust", "-E", "UTF8", "--no-sync")

    def start(self) -> None:
        # It writes to a file: pg_ctl's own output would be held open by the server.
        options = f"-c listen_addresses='' -k {self.folder} -c fsync=off"
        self._run("pg_ctl", "-w", "-o", options, "-l", str(self.folder / "log"), "start")

    def stop(self) -> None:
        """End it at once, with the connections that it has."""
        self._run("pg_ctl", "-w", "-m", "immediate", "stop")

    def new_database(self) -> str:
        """The URL of a new, empty database."""
        import psycopg

        name, where = f"records_{uuid.uuid4().hex}", f"host={self.folder} user=arb dbname=postgres"
        with psycopg.connect(where, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"postgresql+psycopg://arb@/{name}?host={self.folder}"

    def _run(self, program: str, *arguments: str) -> None:
        command = (_program(program), "-D", self._data, *arguments)
        subprocess.run(command, check=True, capture_output=True, cwd="/", timeout=300, **self._as_whom)


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """A server that runs in the block; the test is skipped if there is none to start."""
    pytest.importorskip("psycopg", reason="no PostgreSQL driver: pip install 'psycopg[binary]'")
    folder = Path(tempfile.mkdtemp(prefix="arb-postgres-"))
    try:
        server = PostgresServer(folder)
        server.start()
        yield server
        server.stop()
    finally:
        shutil.rmtree(folder)


def _program(name: str) -> str:
    """A program of the PostgreSQL server; Debian's package puts it into a folder that is not on the PATH."""
    debian = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    if found := shutil.which(name) or (str(debian[-1]) if debian else None):
        return found
    missing = "no PostgreSQL server here: `apt-get install postgresql`"
    if EVERY_TEST:
        pytest.fail(f"{missing}; required here (REQUIRE_EVERY_TEST)")
    pytest.skip(missing)


def _unprivileged() -> dict:
    """PostgreSQL refuses to run as root: then as the user that its package makes."""
    if os.geteuid() != 0:
        return {}
    try:
        pwd.getpwnam("postgres")
    except KeyError:
        pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
    return {"user": "postgres", "group": "postgres", "extra_groups": []}
