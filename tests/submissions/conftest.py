"""A synthetic suite, a service over it, and a PostgreSQL server where one is installed."""

import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.settings import Settings
from submissions.service import SubmissionService
from tests.conftest import EVERY_TEST
from tests.support.submissions import settings_for, write_suite


@pytest.fixture(scope="session")
def suite_folder(tmp_path_factory) -> Path:
    """The folder of the synthetic suite and its labels; not to be changed."""
    folder = tmp_path_factory.mktemp("synthetic")
    write_suite(folder)
    return folder


@pytest.fixture
def settings(suite_folder, tmp_path) -> Settings:
    """Settings of the synthetic suite with a state folder of the test's own.

    One secret in every run: which tasks are hidden, and every noise, follow from it.
    """
    secret = "0c6d3b8e51f7a9242e9d7f40b1c85a36"
    return settings_for(suite_folder, tmp_path / "state", secret=secret)


@pytest.fixture
def service(settings) -> SubmissionService:
    """A service over the synthetic suite, nothing submitted yet."""
    return SubmissionService(settings)


@pytest.fixture(scope="session")
def postgres_folder() -> Iterator[Path]:
    """The socket folder of a PostgreSQL server of our own; skipped where there is none to start."""
    pytest.importorskip("psycopg", reason="no PostgreSQL driver: pip install 'psycopg[binary]'")
    initdb, pg_ctl = (_program(name) for name in ("initdb", "pg_ctl"))
    as_whom = _unprivileged()
    folder = Path(tempfile.mkdtemp(prefix="arb-postgres-"))
    if as_whom:
        shutil.chown(folder, as_whom["user"], as_whom["group"])

    def run(*command: str) -> None:
        subprocess.run(command, check=True, capture_output=True, cwd="/", timeout=300, **as_whom)

    data = str(folder / "data")
    run(initdb, "-D", data, "-U", "arb", "-A", "trust", "-E", "UTF8", "--no-sync")
    # It writes to a file: pg_ctl's own output would be held open by the server.
    options = f"-c listen_addresses='' -k {folder} -c fsync=off"
    run(pg_ctl, "-D", data, "-w", "-o", options, "-l", str(folder / "log"), "start")
    yield folder
    run(pg_ctl, "-D", data, "-m", "immediate", "stop")
    shutil.rmtree(folder)


@pytest.fixture
def postgres_url(postgres_folder) -> str:
    """The URL of a new, empty database."""
    import psycopg

    name = f"records_{uuid.uuid4().hex}"
    with psycopg.connect(f"host={postgres_folder} user=arb dbname=postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"postgresql+psycopg://arb@/{name}?host={postgres_folder}"


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
