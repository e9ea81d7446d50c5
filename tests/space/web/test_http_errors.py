"""Tests of errors over HTTP: each has one status and one form, as JSON or as a page."""

from datetime import UTC, datetime, timedelta

import pytest
from fastapi import HTTPException
from fastapi.responses import HTMLResponse
from fastapi.testclient import TestClient
from pydantic import BaseModel, ConfigDict, Field

from arb.core.judge_info import DeclarationError
from space.auth.auth import Auth
from space.web.http_errors import add_error_handlers, hide_unknown
from submissions.errors import PermissionDenied, RateLimited, SubmissionError, TemporarilyClosed
from submissions.intake.accounts import Actor
from tests.support.space_app import rest_app

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def page(heading: str, message: str, status: int) -> HTMLResponse:
    return HTMLResponse(f"{heading}|{message}", status)


PAGE = {"accept": "text/html,*/*"}


class Item(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str = Field(max_length=5)
    size: int


@pytest.fixture
def client_raising(service):
    """Return a client of a server whose routes raise a given exception."""
    service.clock = lambda: NOW

    def client(error: Exception, path: str = "/api/x") -> TestClient:
        app = rest_app(service)
        add_error_handlers(
            app, service, lambda heading, said, status: HTMLResponse(f"{heading}|{said}", status)
        )

        @app.get(path)
        @app.post(path)
        def fail():
            raise error

        return TestClient(app, raise_server_exceptions=False)

    return client


PROBLEMS = [("judge", "Judge: fill it in"), ("kind", "Kind: choose one")]


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (SubmissionError("it is withdrawn already"), 409, "it is withdrawn already"),
        (PermissionDenied("only maintainers may do this"), 403, "only maintainers may do this"),
        (TemporarilyClosed("it is restored"), 503, "it is restored"),
        (RateLimited("20 a day", NOW + timedelta(hours=1)), 429, "20 a day"),
        (DeclarationError(PROBLEMS), 422, "Judge: fill it in; Kind: choose one"),
        (HTTPException(404, "no such thing"), 404, "no such thing"),
    ],
)
def test_an_error_of_the_domain_has_its_status_and_its_own_message(client_raising, error, status, message):
    answer = client_raising(error).get("/api/x")
    assert (answer.status_code, answer.json()["detail"]) == (status, message)


def test_a_limit_says_when_the_next_one_may_come_unless_there_is_none(client_raising):
    answer = client_raising(RateLimited("20 a day", NOW + timedelta(minutes=2))).get("/api/x")
    assert answer.headers["retry-after"] == "120"
    assert answer.json()["next_at"] == "2026-01-01T00:02:00+00:00"
    answer = client_raising(RateLimited("used up", datetime(9999, 1, 1, tzinfo=UTC))).get("/api/x")
    assert "retry-after" not in answer.headers and answer.json()["next_at"] is None


def test_errors_of_submitting_are_under_error_with_every_field(client_raising, monkeypatch):
    monkeypatch.setattr(Auth, "submitter_of", lambda self, request: None)
    client = client_raising(DeclarationError(PROBLEMS), "/api/submissions")
    assert client.get("/api/submissions").json() == {
        "detail": "the declaration is not complete",
        "fields": [{"field": field, "message": message} for field, message in PROBLEMS],
    }


def test_a_browser_gets_a_page_outside_the_api_and_programs_get_json(client_raising):
    error = HTTPException(404, "there is no such run")
    answer = client_raising(error, "/runs").get("/runs", headers=PAGE)
    assert (answer.status_code, answer.text) == (404, "Not found|There is no such run.")
    assert client_raising(error, "/runs").get("/runs").json() == {"detail": "there is no such run"}
    assert client_raising(error).get("/api/x", headers=PAGE).json() == {"detail": "there is no such run"}
    invalid = HTTPException(422, "page: must be a whole number")
    answer = client_raising(invalid, "/runs").get("/runs", headers=PAGE)
    assert answer.text == "Invalid request|Page: must be a whole number."
    redirect = HTTPException(303, headers={"location": "/"})
    answer = client_raising(redirect, "/runs").get("/runs", headers=PAGE, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the body must be a JSON object"),
        (b"[]", "the body must be a JSON object"),
        (b"null", "the body must be a JSON object"),
        (b"{", "the body is not JSON; send an object in UTF-8"),
        (b'"\xff"', "the body is not JSON; send an object in UTF-8"),
        (b"[" * 7_000, "the body is not JSON; send an object in UTF-8"),
        (b"{}", "name: fill it in; size: fill it in"),
        (b'{"name": "secret", "size": 1}', "name: is over 5 characters; shorten it"),
        (b'{"name": "a", "size": 1, "more": 2}', "'more': there is no such field"),
    ],
)
def test_every_problem_of_a_body_comes_at_once_and_without_what_was_sent(service, body, message):
    app = rest_app(service)

    @app.post("/api/items")
    def add(item: Item) -> None: ...

    answer = TestClient(app).post("/api/items", content=body)
    assert (answer.status_code, answer.json()) == (422, {"detail": message})


def test_nobody_but_maintainers_learns_whether_an_id_exists():
    def missing():
        raise KeyError

    def foreign():
        raise PermissionDenied("yours it is not")

    def answer(act, actor):
        with pytest.raises(HTTPException) as caught:
            hide_unknown(actor, act)
        return caught.value.status_code, caught.value.detail

    bob = Actor("Bob")
    assert answer(missing, bob) == answer(foreign, bob)
    assert answer(missing, bob)[0] == 403
    assert answer(missing, Actor("Grace", is_maintainer=True))[0] == 404
