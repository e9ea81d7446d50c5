"""Sessions in the database, and the cookie that identifies a session."""

import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final, Literal

from fastapi import Response
from itsdangerous import BadSignature, URLSafeTimedSerializer
from sqlalchemy import Engine, delete, select

from arb.core.settings import Settings
from space.auth.access_tokens import digest_of
from submissions.intake.accounts import Actor
from submissions.privacy.server_secret import SecretUnavailable, ServerSecret
from submissions.records.database import BrowserSession, snapshot, transaction

logger = logging.getLogger(__name__)
Mode = Literal["local", "hub", "tokens"]
"""How an application identifies who makes a request; see `space.auth.auth.Auth`."""
SESSION_SECONDS: Final = 480 * 60
HINT: Final = "arb-signed-in"
"""A cookie that scripts can read. If it is missing, nobody is signed in, and scripts skip ``/api/me``."""
LONGEST_COOKIE: Final = 2_000


def session_key(settings: Settings) -> bytes:
    """Return the key that signs session cookies. Without a server secret it is random for each process."""
    try:
        return ServerSecret.of(settings).key("session")
    except SecretUnavailable as reason:
        logger.warning("sessions end when this process ends: %s", reason)
        return secrets.token_bytes(32)


class SessionCookie:
    """The session cookie of one mode; cookies of other modes are not valid.

    On a Space the cookie needs HTTPS and ``SameSite=None``, because huggingface.co shows the Space in a
    frame. Therefore a session counts only for requests from our own pages; see `is_same_origin`.
    """

    def __init__(self, key: bytes, mode: Mode) -> None:
        self._serializer = URLSafeTimedSerializer(key, salt=f"arb-session-{mode}")
        self._is_hub = mode == "hub"
        self.name = "__Host-arb-session" if self._is_hub else "arb-session"

    def read(self, cookies: Mapping[str, str]) -> tuple[Actor, str | None] | None:
        """Return the account and the session's token, or None if the request has no valid cookie.

        The token is None if sessions are not stored. The cookie does not say whether the account is a
        maintainer: `Auth.actor_of` reads the settings.
        """
        text = cookies.get(self.name, "")
        if not text or len(text) > LONGEST_COOKIE:
            return None
        try:
            name, since, how, subject, token = self._serializer.loads(text, max_age=SESSION_SECONDS)
            since = date.fromisoformat(since) if since else None
        except (BadSignature, ValueError, TypeError):
            return None
        return Actor(name, since=since, how=how, subject=subject), token

    def write(self, response: Response, actor: Actor, token: str | None = None) -> None:
        """Set the cookie of a session; ``token`` identifies the session in the database."""
        since = actor.since.isoformat() if actor.since else None
        name = actor.hub_name or actor.name
        text = self._serializer.dumps([name, since, actor.how, actor.subject, token])
        self._set(response, self.name, text, SESSION_SECONDS, is_for_scripts=False)
        self._set(response, HINT, "1", SESSION_SECONDS, is_for_scripts=True)

    def clear(self, response: Response) -> None:
        self._set(response, self.name, "", 0, is_for_scripts=False)
        self._set(response, HINT, "", 0, is_for_scripts=True)

    def _set(self, response: Response, name: str, value: str, seconds: int, is_for_scripts: bool) -> None:
        response.set_cookie(
            name,
            value,
            max_age=seconds,
            path="/",
            secure=self._is_hub,
            httponly=not is_for_scripts,
            samesite="none" if self._is_hub else "lax",
        )


_LASTING = timedelta(seconds=SESSION_SECONDS)
_BROWSER_LENGTH = 200


@dataclass(frozen=True)
class SessionLine:
    """A session in an account's list. Its ``id`` can be used to end the session, but not to sign in."""

    id: str
    begun_at: datetime
    browser: str
    is_this: bool


class Sessions:
    """The sessions in the database of the records. Thread-safe.

    A cookie is valid only while its session is in the database. Signing out therefore makes all copies of the
    cookie invalid, on every replica, and an account can see and end its sessions. If the database does not
    outlive a restart, everybody has to sign in again.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def begin(self, account: str, browser: str) -> str:
        """Delete expired sessions, begin a session, and return its token for the cookie."""
        token = secrets.token_urlsafe(32)
        now = datetime.now(UTC)
        with transaction(self._engine) as session:
            session.execute(delete(BrowserSession).where(BrowserSession.begun_at <= now - _LASTING))
            browser = browser.encode(errors="replace").decode()[:_BROWSER_LENGTH].replace("\0", "")
            session.add(BrowserSession(id=digest_of(token), account=account, begun_at=now, browser=browser))
        return token

    def is_open(self, token: str) -> bool:
        with snapshot(self._engine) as session:
            found = session.get(BrowserSession, digest_of(token))
            return found is not None and found.begun_at > datetime.now(UTC) - _LASTING

    def end(self, token: str) -> None:
        with transaction(self._engine) as session:
            session.execute(delete(BrowserSession).where(BrowserSession.id == digest_of(token)))

    def of(self, account: str, token: str | None) -> list[SessionLine]:
        """Return the open sessions of an account, newest first. ``token`` is that of the current session."""
        this = digest_of(token) if token else None
        wanted = (
            select(BrowserSession)
            .where(BrowserSession.account == account, BrowserSession.begun_at > datetime.now(UTC) - _LASTING)
            .order_by(BrowserSession.begun_at.desc(), BrowserSession.id)
        )
        with snapshot(self._engine) as session:
            return [
                SessionLine(found.id, found.begun_at, found.browser, found.id == this)
                for found in session.scalars(wanted)
            ]

    def end_of(self, account: str, session_id: str | None) -> int:
        """End one session of an account, or all of them if the id is None; return how many were ended."""
        wanted = delete(BrowserSession).where(BrowserSession.account == account)
        if session_id is not None:
            wanted = wanted.where(BrowserSession.id == session_id)
        with transaction(self._engine) as session:
            return session.connection().execute(wanted).rowcount
