from datetime import date

import pytest
from fastapi import Response
from pydantic import SecretStr

from arb.core.settings import Settings
from space.auth import sessions
from space.auth.auth import Auth
from space.auth.sessions import SESSION_SECONDS, SessionCookie, session_key
from space.services import Services
from submissions.app import SubmissionsApp
from submissions.intake.accounts import Actor
from tests.space.auth.conftest import session_cookie
from tests.support.space_app import local_client

ADA = Actor("ada", since=date(2024, 5, 6), how="session")
KEY = b"k" * 32


def cookies_of(response: Response) -> dict[str, str]:
    found = (text.split(";")[0].partition("=") for text in response.headers.getlist("set-cookie"))
    return {name: value.strip('"') for name, _, value in found}


def written(cookie: SessionCookie, actor: Actor = ADA) -> dict[str, str]:
    response = Response()
    cookie.write(response, actor)
    return cookies_of(response)


@pytest.mark.parametrize("actor", [ADA, Actor("Ada Lovelace, née B.")])
@pytest.mark.parametrize("mode", ["local", "hub"])
def test_what_was_written_is_read(mode, actor):
    cookie = SessionCookie(KEY, mode)
    assert cookie.read(written(cookie, actor)) == (actor, None)


def test_a_changed_cookie_is_no_session():
    cookie = SessionCookie(KEY, "hub")
    text = written(cookie)[cookie.name]
    for at in range(len(text)):
        changed = text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]
        # The last letter of a part may contain unused bits, so that changing it has no effect.
        assert cookie.read({cookie.name: changed}) in (None, (ADA, None))
    assert cookie.read({cookie.name: "B" + text[1:]}) is None


@pytest.mark.parametrize("text", ["", "x", ".", "..", "a.b.c", "é", "x" * 10_000, "\x00"])
def test_rubbish_is_no_session_and_no_error(text):
    assert SessionCookie(KEY, "hub").read({"__Host-arb-session": text}) is None


def test_another_key_or_mode_does_not_open_it():
    text = written(SessionCookie(KEY, "hub"))["__Host-arb-session"]
    assert SessionCookie(b"j" * 32, "hub").read({"__Host-arb-session": text}) is None
    assert SessionCookie(KEY, "local").read({"arb-session": text}) is None


def test_a_session_ends_after_480_minutes(monkeypatch):
    cookie = SessionCookie(KEY, "hub")
    cookies = written(cookie)
    monkeypatch.setattr(sessions, "SESSION_SECONDS", SESSION_SECONDS - 28_801)  # as if 480 minutes had passed
    assert cookie.read(cookies) is None


def test_scripts_may_read_only_that_there_is_a_session():
    response = Response()
    SessionCookie(KEY, "hub").write(response, ADA)
    hint = next(t for t in response.headers.getlist("set-cookie") if t.startswith("arb-signed-in="))
    assert hint.startswith("arb-signed-in=1;")
    assert "httponly" not in hint.lower()


def test_a_restart_keeps_sessions_where_there_is_a_secret_and_ends_them_where_there_is_none(tmp_path):
    settings = Settings(state_dir=tmp_path / "state")
    assert session_key(settings) == session_key(settings)
    on_space = Settings(state_dir=tmp_path / "other", space_id="ada/board")
    assert session_key(on_space) != session_key(on_space)


# Sessions that the server keeps


@pytest.fixture
def pages(service):
    """Return a client, and a function that signs an account in and returns its browser's headers."""
    auth = Services(service, None).auth

    def browser(name: str = "Ada") -> dict[str, str]:
        return {"sec-fetch-site": "same-origin", "cookie": session_cookie(auth, name)}

    return local_client(service), browser


def is_known(client, headers) -> bool:
    return client.get("/api/me", headers=headers).json()["name"] is not None


def test_signing_out_ends_the_session_wherever_its_cookie_was_copied_to(pages):
    client, browser = pages
    headers, other = browser(), browser()
    assert client.post("/sign-out", headers=headers).status_code == 303
    client.cookies.clear()
    assert not is_known(client, headers)  # although the cookie itself is valid
    assert is_known(client, other)


def test_an_account_sees_its_sessions_and_ends_one_or_all(pages):
    client, browser = pages
    here, there, bobs = browser(), browser(), browser("Bob")
    found = client.get("/api/sessions", headers=here).json()["sessions"]
    assert sorted(each["is_this"] for each in found) == [False, True]
    (other,) = [each["id"] for each in found if not each["is_this"]]
    assert client.get("/mine", headers=here).text.count("End this session") == 1

    refused = client.post("/api/sessions/end", json={"id": other}, headers=bobs)
    assert refused.status_code == 404 and is_known(client, there)
    ended = client.post("/api/sessions/end", json={"id": other}, headers=here)
    assert ended.json() == {"ended": 1}
    assert (is_known(client, here), is_known(client, there)) == (True, False)
    assert client.post("/api/sessions/end", json={}, headers=here).json() == {"ended": 1}
    assert (is_known(client, here), is_known(client, bobs)) == (False, True)


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_session_begun_at_one_replica_is_known_at_the_other_and_ends_at_both(
    database, service, request, tmp_path
):
    """Return two Spaces that share a database but no disk. A browser may reach either of them."""
    is_sqlite = database == "sqlite"
    url = f"sqlite:///{tmp_path / 'records.sqlite'}" if is_sqlite else request.getfixturevalue("postgres_url")
    shared = service.settings.model_copy(
        update={"database_url": url, "secret": SecretStr("d60e39385ce3bf93624150de2b763b69")}
    )
    one, two = (
        local_client(SubmissionsApp(shared.model_copy(update={"state_dir": tmp_path / name})))
        for name in ("one", "two")
    )
    own_page = {"sec-fetch-site": "same-origin"}

    def signed_in_at(replica) -> dict[str, str]:
        answer = replica.post("/sign-in", data={"name": "Ada"}, headers=own_page)
        assert answer.status_code == 303
        cookie = "; ".join(text.split(";")[0] for text in answer.headers.get_list("set-cookie"))
        replica.cookies.clear()
        return {**own_page, "cookie": cookie}

    first, second = signed_in_at(one), signed_in_at(two)
    assert [is_known(replica, each) for replica in (one, two) for each in (first, second)] == [True] * 4
    assert len(one.get("/api/sessions", headers=second).json()["sessions"]) == 2

    assert two.post("/sign-out", headers=first).status_code == 303
    two.cookies.clear()
    assert [is_known(replica, first) for replica in (one, two)] == [False, False]
    assert [is_known(replica, second) for replica in (one, two)] == [True, True]
    assert one.post("/api/sessions/end", json={}, headers=second).json() == {"ended": 1}
    assert [is_known(replica, second) for replica in (one, two)] == [False, False]


def test_what_a_session_is_listed_by_opens_none(pages, service):
    client, browser = pages
    headers = browser()
    (found,) = client.get("/api/sessions", headers=headers).json()["sessions"]
    assert not Services(service, None).auth.sessions.is_open(found["id"])
    assert found["id"] not in headers["cookie"]


def test_a_session_that_the_database_does_not_know_is_none(pages, service):
    client, _ = pages
    cookie = session_cookie(Auth(service.settings), "Ada")  # signed by the same key
    assert not is_known(client, {"cookie": cookie, "sec-fetch-site": "same-origin"})
