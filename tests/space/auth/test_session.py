from datetime import date

import pytest
from fastapi import Response

from core.settings import Settings
from space.auth import auth
from space.auth.auth import SESSION_SECONDS, SessionCookie, session_key
from submissions.intake.accounts import Actor

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
    assert cookie.read(written(cookie, actor)) == actor


def test_a_changed_cookie_is_no_session():
    cookie = SessionCookie(KEY, "hub")
    text = written(cookie)[cookie.name]
    for at in range(len(text)):
        changed = text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]
        # The last letter of a part may hold bits that are not read; then it says the same.
        assert cookie.read({cookie.name: changed}) in (None, ADA)
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
    monkeypatch.setattr(auth, "SESSION_SECONDS", SESSION_SECONDS - 28_801)  # as if 480 minutes had passed
    assert cookie.read(cookies) is None


def test_clearing_ends_both_cookies():
    cookie, response = SessionCookie(KEY, "hub"), Response()
    cookie.clear(response)
    assert cookies_of(response) == {"__Host-arb-session": "", "arb-signed-in": ""}
    assert all("Max-Age=0" in text for text in response.headers.getlist("set-cookie"))


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
