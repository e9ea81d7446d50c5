"""A synthetic suite, a service over it, and a PostgreSQL server where one is installed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from arb.core.settings import Settings
from submissions.__main__ import app
from submissions.app import SubmissionsApp
from tests.support.postgres import PostgresServer, postgres_server
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


def invoke(settings: Settings, *arguments: str, **environment: str) -> Result:
    """Call a command of `submissions` over the records of these settings; it may end with a code only."""
    variables = {
        "ARB_SUITE": settings.suite, "ARB_LABELS": settings.labels,
        "ARB_STATE_DIR": str(settings.state_dir), "ARB_CACHE_DIR": str(settings.cache_dir),
    }  # fmt: skip
    done = CliRunner().invoke(app, arguments, env={**variables, **environment})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


@pytest.fixture
def service(settings) -> SubmissionsApp:
    """A service over the synthetic suite, nothing submitted yet."""
    return SubmissionsApp(settings)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server of our own; skipped where there is none to start."""
    with postgres_server() as server:
        yield server


@pytest.fixture
def postgres_url(postgres) -> str:
    """The URL of a new, empty database."""
    return postgres.new_database()


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request, tmp_path) -> str:
    """The URL of a new database, of each kind."""
    if request.param == "postgresql":
        return request.getfixturevalue("postgres_url")
    return f"sqlite:///{tmp_path / 'records.sqlite'}"


@pytest.fixture
def own_settings(settings, database_url) -> Settings:
    """The settings with the records in such a database."""
    return settings.model_copy(update={"database_url": database_url})
