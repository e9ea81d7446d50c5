"""Tests of the permission matrix: every route and page handler, called as every actor (see `permissions`)."""

import json
import re
import uuid
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from starlette.routing import Mount

from space.app import create_app
from space.services import Services
from space.suites import SuiteRoutes
from submissions.app import SubmissionsApp
from tests.support.hub_server.answers import Account
from tests.support.hub_server.server import running_hub
from tests.support.permissions import ACTORS, HANDLERS, NOT_ALWAYS_THE_SAME, QUERIES, expected
from tests.support.submissions import send, settings_for, verdicts

HOST = "ada-board.hf.space"
NAMES = {"submitter": "ada", "another": "bob", "maintainer": "grace"}
TABLE = expected()


@pytest.fixture(scope="module")
def settings(suite_folder, tmp_path_factory):
    """Return settings of a Space with a submission by Ada."""
    folder = tmp_path_factory.mktemp("permissions")
    settings = settings_for(
        suite_folder,
        folder / "state",
        secret="eab69819ef1c1cd52f14e04168d8698e",
        maintainers="grace",
        space_id="ada/board",
        space_host=HOST,
        state_lasts=True,
        checks_a_minute=10_000,  # one address sends all requests
    )
    service = SubmissionsApp(settings)
    send(service, verdicts(service.suite), account="ada")
    return settings


@pytest.fixture(scope="module")
def client(settings) -> Iterator[TestClient]:
    with pytest.MonkeyPatch.context() as patched, running_hub(patched) as hub:
        hub.api.accounts |= {f"hf_token_of_{name}": Account(name) for name in NAMES.values()}
        app = create_app(settings)
        with TestClient(
            app, base_url=f"https://{HOST}", follow_redirects=False, raise_server_exceptions=False
        ) as client:
            yield client


def by_token(actor: str) -> dict[str, str]:
    """Return the headers of an actor who sends a token."""
    if actor == "anonymous":
        return {}
    return {"authorization": f"Bearer hf_token_of_{NAMES.get(actor, 'nobody_now')}"}


def by_session(settings, actor: str) -> dict[str, str]:
    """Return the headers of an actor's browser on our pages. A session that ended does not count."""
    from tests.space.auth.conftest import session_cookie

    headers = {"sec-fetch-site": "same-origin"}
    if actor in NAMES:
        headers["cookie"] = session_cookie(Services(SubmissionsApp(settings), None).auth, NAMES[actor])
    return headers


def routes_of(routes, prefix: str = "") -> Iterator[str]:
    """Yield ``METHOD path`` of every route, including those of routers and mounted applications."""
    for route in routes:
        if (included := getattr(route, "original_router", None)) is not None:
            yield from routes_of(included.routes, prefix)
        elif isinstance(route, Mount):
            yield from routes_of(route.routes, prefix + route.path)
        elif not isinstance(route, SuiteRoutes):  # further suites have the same routes
            methods = set(
                route.methods or ("POST",)
            )  # an application that is mounted at one address has no methods
            for method in sorted(methods - {"HEAD"}):  # no route gets HEAD, which `HeadLikeGet` makes GET
                yield f"{method} {prefix}{route.path}"


def handlers_of(app) -> list:
    """Return every function behind an event of a page, as Gradio stores them."""
    (pages,) = [
        route.app.get_blocks()
        for route in app.routes
        if isinstance(route, Mount) and hasattr(route.app, "get_blocks")
    ]
    return [event for event in pages.fns.values() if event.fn is not None]


def test_every_route_is_in_the_table_and_no_other(client):
    found = {line if line.endswith(" /") else line.rstrip("/") for line in routes_of(client.app.routes)}
    assert sorted(found - TABLE.keys()) == [], "place these in tests/support/permissions.py"
    assert sorted(TABLE.keys() - found) == [], "these are no more: take them out of the table"


@pytest.mark.slow
@pytest.mark.parametrize("line", TABLE)
def test_each_actor_gets_what_the_table_says(client, settings, line):
    method, path = line.split()
    address = re.sub(r"\{[^}]*\}", "x", path)
    bodies = {}
    for actor, status in zip(ACTORS, TABLE[line], strict=True):
        answer = client.request(method, address, params=QUERIES.get(line), headers=by_token(actor))
        assert answer.status_code == int(status), f"{line} as {actor}: {answer.text[:200]}"
        bodies.setdefault(status, set()).add(answer.content)
        if actor in NAMES and path != "/sign-out":  # which a page of ours may ask for
            answer = client.request(
                method, address, params=QUERIES.get(line), headers=by_session(settings, actor)
            )
            assert answer.status_code == int(status), f"{line} as {actor} by session: {answer.text[:200]}"
    if method == "GET" and line not in NOT_ALWAYS_THE_SAME:  # pages are prepared once for all readers
        assert {status: len(found) for status, found in bodies.items() if len(found) > 1} == {}


def test_head_has_the_status_of_get_and_no_body(client):
    for line in TABLE:
        method, path = line.split()
        if method == "GET" and "{" not in path and not path.startswith("/gradio_api/"):
            answer, got = (client.request(each, path, params=QUERIES.get(line)) for each in ("HEAD", "GET"))
            assert (answer.status_code, answer.content) == (got.status_code, b""), path
            assert answer.headers.get("etag") == got.headers.get("etag"), path


def test_every_page_handler_is_in_the_table_and_no_other(client):
    found = {f"{event.fn.__module__}.{event.fn.__qualname__}" for event in handlers_of(client.app)}
    assert sorted(found - HANDLERS.keys()) == [], "place these in tests/support/permissions.py"
    assert sorted(HANDLERS.keys() - found) == [], "these are no more: take them out of the table"


def test_only_the_four_endpoints_are_a_named_api(client):
    info = client.get("/gradio_api/info").json()
    assert set(info["named_endpoints"]) == {"/check", "/submit", "/board", "/judges"}
    assert info["unnamed_endpoints"] == {}
    public = {event.fn.__name__ for event in handlers_of(client.app) if event.api_visibility != "private"}
    assert public == {"check", "submit", "board", "judges"}
    of_the_page = [e for e in handlers_of(client.app) if "submit_page" in e.fn.__module__]
    assert {event.api_visibility for event in of_the_page} == {"private"}


def call(client, event: int, data: list, headers: dict[str, str]) -> dict:
    """Do what a page's script does: join the queue and listen until the end."""
    session = uuid.uuid4().hex
    asked = {"fn_index": event, "data": data, "session_hash": session}
    assert client.post("/gradio_api/queue/join", json=asked, headers=headers).status_code == 200
    stream = client.get(f"/gradio_api/queue/data?session_hash={session}").text
    messages = [json.loads(line[5:]) for line in stream.splitlines() if line.startswith("data:")]
    (completed,) = [message for message in messages if message["msg"] == "process_completed"]
    return completed


@pytest.mark.parametrize("name", [name for name, who in HANDLERS.items() if who != "anyone"])
@pytest.mark.parametrize("actor", ACTORS)
@pytest.mark.parametrize("way", ["token", "session"])
def test_a_page_handler_for_those_who_are_known_refuses_all_others(client, settings, name, actor, way):
    (event,) = [
        event for event in handlers_of(client.app) if f"{event.fn.__module__}.{event.fn.__qualname__}" == name
    ]
    headers = by_token(actor) if way == "token" else by_session(settings, actor)
    data = ["test" if part.elem_id == "split" else None for part in event.inputs]
    completed = call(client, event._id, data, headers)
    refusals = ("you are not signed in", "expired or revoked", "only a maintainer")
    is_refused = any(refusal in json.dumps(completed) for refusal in refusals)
    may = {"signed in": tuple(NAMES), "maintainer": ("maintainer",)}[HANDLERS[name]]
    assert is_refused == (actor not in may), completed


def test_a_page_of_another_site_acts_for_nobody(client, settings):
    headers = {**by_session(settings, "submitter"), "sec-fetch-site": "cross-site"}
    assert client.post("/api/submissions", headers=headers).status_code == 401


def test_the_account_of_a_submission_is_the_one_that_is_signed_in(client, settings):
    from tests.support.submissions import FORM

    service = SubmissionsApp(settings)
    form = {**FORM, "judge": "Of Bob", "test_labels_used": "no", "account": "ada"}
    files = {"file": ("a.jsonl", verdicts(service.suite, misses=1))}
    answer = client.post("/api/submissions", data=form, files=files, headers=by_token("another"))
    assert answer.status_code == 422
    assert "you are signed in as bob" in answer.text
    form["account"] = ""
    answer = client.post("/api/submissions", data=form, files=files, headers=by_token("another"))
    assert answer.status_code == 201, answer.text
    assert answer.json()["account"] == "bob"
