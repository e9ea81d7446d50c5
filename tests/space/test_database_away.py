"""Tests of a real Space while its PostgreSQL server is stopped, and after it is started again."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from gradio_client import Client, handle_file
from gradio_client.exceptions import AppError
from sqlalchemy import text
from sqlalchemy.exc import OperationalError, ProgrammingError

from submissions.app import SubmissionsApp
from submissions.errors import DatabaseAway
from submissions.records.database import open_database, snapshot
from submissions.scoring import scorer
from tests.space.gradio_app.conftest import DECLARED, Running, running
from tests.space.gradio_app.test_mcp_server import failed, text_of, tool, value_of
from tests.support.postgres import PostgresServer, postgres_server
from tests.support.submissions import declaration, settings_for, verdicts
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

PAGE = {"accept": "text/html"}
AWAY = "the database does not answer; try again in 10 seconds"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """Yield a PostgreSQL server for this file only, because the tests stop it."""
    with postgres_server() as found:
        yield found


@pytest.fixture(scope="module")
def space(server, suite_folder, tmp_path_factory) -> Iterator[Running]:
    """Yield a Space with one judge on the board."""
    folder = tmp_path_factory.mktemp("away")
    settings = settings_for(suite_folder, folder / "state", database_url=server.new_database())
    with running(settings, folder / "files") as found:
        assert submit(found, misses=1).status_code == 201
        yield found


@pytest.fixture
def away(server, space) -> Iterator[Running]:
    """Yield the same Space while the database is stopped, after its pages were read once."""
    for path in ("/", "/api/board.json", "/readyz"):
        assert httpx.get(space.url + path, timeout=120).status_code == 200
    server.stop()
    try:
        yield space
    finally:
        server.start()


def submit(space: Running, **changes) -> httpx.Response:
    files = {"file": ("a.jsonl", space.valid(**changes))}
    data = {**DECLARED, "account": "Ada"}
    return httpx.post(f"{space.url}/api/submissions", files=files, data=data, timeout=120)


def test_liveness_stays_and_readiness_goes(away):
    assert httpx.get(f"{away.url}/healthz", timeout=120).json() == {"status": "ok"}
    answer = httpx.get(f"{away.url}/readyz", timeout=120)
    assert answer.status_code == 503 and int(answer.headers["retry-after"]) >= 1
    assert answer.json()["status"] == "unavailable" and AWAY in answer.json()["reason"]


@pytest.mark.parametrize(
    "path", ["/", "/?sort=-cost", "/compare", "/api/board.json", "/api/board.csv", "/api/judges", "/submit"]
)
def test_what_is_in_memory_is_served(away, path):
    answer = httpx.get(away.url + path, headers=PAGE, timeout=120)
    assert answer.status_code == 200
    if path != "/submit":
        assert "My judge" in answer.text


def test_other_pages_say_so_and_when_to_come_back(away):
    for path in ("/about", "/mine", "/labels"):
        answer = httpx.get(away.url + path, headers={**PAGE, "cookie": "arb-session=x"}, timeout=120)
        if answer.status_code == 401:
            continue  # nobody is signed in, which is known without the database
        assert (answer.status_code, path) == (503, path)
        assert "The database does not answer; try again in 10 seconds" in answer.text
        assert answer.headers["content-type"].startswith("text/html")
        assert int(answer.headers["retry-after"]) >= 1
    assert httpx.get(f"{away.url}/about", headers=PAGE, timeout=120).status_code == 503


def test_rest_says_so_in_json(away):
    sent = submit(away, misses=2)
    assert sent.status_code == 503 and AWAY in sent.json()["detail"]
    assert int(sent.headers["retry-after"]) >= 1
    left = httpx.get(f"{away.url}/api/allowance?account=Ada", timeout=120)
    assert left.status_code == 503 and AWAY in left.json()["detail"]
    assert int(left.headers["retry-after"]) >= 1


def test_gradio_and_mcp_say_so(away):
    client = Client(away.url, verbose=False)
    with pytest.raises(AppError, match=AWAY):
        path = away.file(away.valid(misses=2))
        client.predict(handle_file(path), **DECLARED, account="Ada", api_name="/submit")
    content = away.valid(misses=2).decode()
    found = tool(away, "submit", content=content, **DECLARED, account="Ada")
    assert failed(found) and AWAY in text_of(found)
    assert [row["judge"] for row in value_of(tool(away, "board"))["rows"]] == ["My judge"]
    assert [row["judge"] for row in client.predict(api_name="/board")["rows"]] == ["My judge"]


def test_many_readers_at_once_are_answered(away):
    def ask(number: int) -> int:
        path = ("/about", "/", "/api/board.json", "/readyz")[number % 4]
        return httpx.get(away.url + path, headers=PAGE, timeout=120).status_code

    with ThreadPoolExecutor(40) as threads:
        found = list(threads.map(ask, range(80)))
    assert found == [503, 200, 200, 503] * 20


def test_it_recovers_by_itself(server, space):
    server.stop()
    assert submit(space, misses=3).status_code == 503
    server.start()
    eventually(lambda: httpx.get(f"{space.url}/readyz", timeout=120).status_code == 200)
    assert submit(space, misses=3).status_code == 201
    assert httpx.get(f"{space.url}/about", headers=PAGE, timeout=120).status_code == 200
    board = f"{space.url}/api/board.json"
    eventually(lambda: len(httpx.get(board, timeout=120).json()["rows"]) == 2)


def test_a_file_that_was_recorded_before_the_database_went_away_is_scored_when_it_is_back(
    server, suite_folder, tmp_path, monkeypatch
):
    monkeypatch.setattr(DatabaseAway, "RETRY_AFTER_SECONDS", 0.1)
    settings = settings_for(suite_folder, tmp_path / "state", database_url=server.new_database())
    service = SubmissionsApp(settings)
    upload = service.intake.check(verdicts(service.suite), "a.jsonl", "test")
    score = scorer.record_score

    def stopped_before_the_score(*arguments):
        monkeypatch.setattr(scorer, "record_score", score)
        server.stop()
        return score(*arguments)

    monkeypatch.setattr(scorer, "record_score", stopped_before_the_score)
    with pytest.raises(DatabaseAway):
        service.intake.submit(upload, declaration())
    server.start()
    eventually(lambda: len(service.records.board().rows) == 1)
    service.close()


def test_a_statement_that_is_wrong_is_no_database_that_is_away(server):
    engine = open_database(server.new_database())
    with pytest.raises(ProgrammingError), snapshot(engine) as session:
        session.execute(text("SELECT nothing FROM nowhere"))


def test_an_error_of_sqlite_is_one_of_ours_unless_its_file_cannot_be_used(tmp_path):
    engine = open_database(f"sqlite:///{tmp_path / 'records.sqlite'}")
    with pytest.raises(OperationalError), snapshot(engine) as session:
        session.execute(text("SELECT nothing FROM nowhere"))
    engine.dispose()
    for path in tmp_path.iterdir():
        path.unlink()
    tmp_path.rmdir()
    with pytest.raises(DatabaseAway), snapshot(engine) as session:
        session.execute(text("SELECT 1"))
