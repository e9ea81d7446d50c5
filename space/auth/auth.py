"""Who makes a request, and where it comes from: the one place where routes and page handlers ask.

On a Space: a signed-in account or a confirmed token. Off the Hub: if only this machine reaches the server,
whoever asks is believed their name; if others reach it, an access token is needed, or signing in with Hugging
Face if that is set up. The session cookie says who signed in, how and when, signed by the server; no token is
in it.
"""

import logging
import re
import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from fastapi import Request, Response
from itsdangerous import BadSignature, URLSafeTimedSerializer
from sqlalchemy import Engine, delete, select
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp

from arb.core.settings import Settings
from space.auth.access_tokens import AccessTokens, digest_of
from space.auth.tokens import ConfirmedTokens, HubAccounts, bearer_token, sent_token
from space.web.http_errors import AccessRefused, InvalidToken, NotAMaintainer, NotSignedIn
from submissions.intake.accounts import Actor, is_same_name
from submissions.privacy.server_secret import SecretUnavailable, ServerSecret
from submissions.records.database import BrowserSession, snapshot, transaction

logger = logging.getLogger(__name__)
Mode = Literal["local", "hub", "tokens"]
NO_ACCESS_TOKEN: Final = (
    "nobody is signed in: use an access token of this Space on the page, or send it (Authorization: Bearer "
    "arb_…); whoever runs the Space makes one with `python -m space token NAME`"
)
SESSION_SECONDS: Final = 480 * 60
HINT: Final = "arb-signed-in"
"""A cookie that scripts may read, and that says only that it is worth asking ``/api/me`` who it is."""
LONGEST_COOKIE: Final = 2_000

_LOCAL = re.compile(r"/(?![/\\])[^\x00-\x20\x7f\\]*")
"""A path of this site. Browsers drop tabs and line breaks and read ``\\`` as ``/``: such are not taken."""
LONGEST_PATH = 2_000
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")


def local_path(path: str | None) -> str:
    """The path (with query) to go to, when it is one of this site; ``/`` for everything else."""
    is_local = path is not None and len(path) <= LONGEST_PATH and _LOCAL.fullmatch(path) is not None
    return path if is_local else "/"


def is_same_origin(headers: Mapping[str, str], own_hosts: Collection[str]) -> bool:
    """Whether a page of ours made this request, as the browser tells.

    ``own_hosts`` are host names with port, in small letters. Every browser sends ``Sec-Fetch-Site`` or, with
    each POST, ``Origin``; a request with neither carries no cookie that somebody else could misuse, so that
    it is not ours.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    return urlsplit(headers.get("origin") or "").netloc.lower() in own_hosts


def session_key(settings: Settings) -> bytes:
    """The key that sessions are signed with; of this process only where the server has no secret."""
    try:
        return ServerSecret.of(settings).key("session")
    except SecretUnavailable as reason:
        logger.warning("sessions end when this process does: %s", reason)
        return secrets.token_bytes(32)


class SessionCookie:
    """Writes and reads the cookie of one mode; a cookie of the other mode does not count.

    On a Space it goes over HTTPS only and into the frame that huggingface.co shows the Space in, which takes
    ``SameSite=None``: what a cookie may do is therefore decided by where a request comes from, too.
    """

    def __init__(self, key: bytes, mode: Mode) -> None:
        self._serializer = URLSafeTimedSerializer(key, salt=f"arb-session-{mode}")
        self._is_hub = mode == "hub"
        self.name = "__Host-arb-session" if self._is_hub else "arb-session"

    def read(self, cookies: Mapping[str, str]) -> tuple[Actor, str | None] | None:
        """Who signed in, and what names the session in the database.

        None without a session, with an old one, or with one that we did not sign. Whether that is a
        maintainer is not in it: `Auth.actor_of` asks the settings each time.
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
        """Put the session into an answer; ``token`` names it in the database."""
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
    """A session as its account sees it; ``id`` ends it, and opens nothing."""

    id: str
    begun_at: datetime
    browser: str
    is_this: bool


class Sessions:
    """Sessions in the records' database: what a cookie names counts until its session ends here.

    So signing out ends a session wherever its cookie was copied to, at every replica, and an account sees its
    sessions and ends them. Where the database does not outlive a restart, everybody signs in again after one.
    Safe for threads.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def begin(self, account: str, browser: str) -> str:
        """What the cookie of a new session holds. Sessions that are over are removed."""
        token = secrets.token_urlsafe(32)
        now = datetime.now(UTC)
        with transaction(self._engine) as session:
            session.execute(delete(BrowserSession).where(BrowserSession.begun_at <= now - _LASTING))
            browser = browser.encode(errors="replace").decode()[:_BROWSER_LENGTH].replace("\0", "")
            session.add(BrowserSession(id=digest_of(token), account=account, begun_at=now, browser=browser))
        return token

    def is_open(self, token: str) -> bool:
        """Whether the session of a cookie goes on."""
        with snapshot(self._engine) as session:
            found = session.get(BrowserSession, digest_of(token))
            return found is not None and found.begun_at > datetime.now(UTC) - _LASTING

    def end(self, token: str) -> None:
        """End the session of a cookie."""
        with transaction(self._engine) as session:
            session.execute(delete(BrowserSession).where(BrowserSession.id == digest_of(token)))

    def of(self, account: str, token: str | None) -> list[SessionLine]:
        """The open sessions of an account, newest first; ``token`` is the one of whoever asks."""
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
        """End a session of an account, or all of them; how many there were."""
        wanted = delete(BrowserSession).where(BrowserSession.account == account)
        if session_id is not None:
            wanted = wanted.where(BrowserSession.id == session_id)
        with transaction(self._engine) as session:
            return session.execute(wanted).rowcount


class Auth:
    """Three modes.

    ``hub``, on a Space (SPACE_ID) or if OAuth is set up: a session made by signing in with Hugging Face, or a
    bearer token that the Hub confirms.
    ``tokens``, if other machines reach a server off the Hub: a session made with an access token, or the
    token itself. While there are no tokens the server is read-only.
    ``local``, if only this machine reaches the server (`Settings.is_local`): whoever asks is believed the
    name they say, and the Hub is never asked. Maintainers are those who signed in under a name of
    ARB_MAINTAINERS.

    Sessions and access tokens are kept in the database of ``engine``; without one a session is its cookie
    only, and there are no tokens. ``identify`` gives an actor the name that its account has in the records,
    and records it where the second argument says so.

    The methods with a request are FastAPI dependencies, ``Depends(auth.require_actor)``, and take the
    ``gr.Request`` of a page handler too. They may ask the Hub: call them in a thread.
    """

    def __init__(
        self,
        settings: Settings,
        engine: Engine | None = None,
        identify: Callable[[Actor, bool], Actor] = lambda actor, for_good: actor,
    ) -> None:
        self.settings, self._identify = settings, identify
        self.sessions = Sessions(engine) if engine is not None else None
        self.access_tokens = AccessTokens(engine) if engine is not None else None
        self.mode: Mode = "local" if settings.is_local else "hub" if settings.has_oauth else "tokens"
        self.tokens = ConfirmedTokens(HubAccounts())

    @cached_property
    def cookie(self) -> SessionCookie:
        return SessionCookie(session_key(self.settings), self.mode)

    @cached_property
    def space_hosts(self) -> tuple[str, ...]:
        """The addresses of the Space: on the Hub its own first, then its custom domains."""
        hosts = tuple(host.strip().lower() for host in (self.settings.space_host or "").split(",") if host)
        return hosts or self.settings.allowed_host_names

    def actor_of(self, request: Request) -> Actor | None:
        """Who makes the request; None for a reader whom nobody knows. Raises InvalidToken, HubUnavailable."""
        inner: Any = getattr(request, "request", None) or request  # what a gr.Request holds
        if self.mode == "hub" and (token := bearer_token(inner.headers)) is not None:
            return self._with_role(self._identify(self.tokens.holder(token), False))
        if self.mode == "tokens" and (token := sent_token(inner.headers)) is not None:
            return self._with_role(self.holder(token))
        signed_in = self.cookie.read(inner.cookies)
        if signed_in is None or not (inner.method in SAFE_METHODS or self.is_own_page(inner)):
            return None
        actor, session = signed_in
        if self.sessions is not None and not (session and self.sessions.is_open(session)):
            return None
        return self._with_role(self._identify(actor, False))

    def holder(self, token: str) -> Actor:
        """Return who holds an access token of this Space. Raises InvalidToken."""
        found = self.access_tokens.holder(token.strip()) if self.access_tokens is not None else None
        if found is None:
            raise InvalidToken("this is no access token of this Space: it is mistyped, or it was revoked")
        return found

    def sign_in(self, response: Response, actor: Actor, browser: str = "") -> None:
        """Begin a session, and put it into an answer; whose account it is, is recorded."""
        actor = self._identify(actor, True)
        token = self.sessions.begin(actor.name, browser) if self.sessions is not None else None
        self.cookie.write(response, actor, token)

    def sign_out(self, request: Request, response: Response) -> None:
        """End the session of a request, wherever else its cookie may be."""
        if self.sessions is not None and (session := self.session_of(request)):
            self.sessions.end(session)
        self.cookie.clear(response)

    def session_of(self, request: Request) -> str | None:
        """What names the session of a request in the database."""
        signed_in = self.cookie.read(request.cookies)
        return signed_in and signed_in[1]

    def require_actor(self, request: Request) -> Actor:
        """Who makes the request. Raises NotSignedIn where nobody is known, and what ``actor_of`` raises."""
        actor = self.actor_of(request)
        if actor is None:
            raise NotSignedIn(NO_ACCESS_TOKEN) if self.mode == "tokens" else NotSignedIn()
        return actor

    def require_maintainer(self, request: Request) -> Actor:
        """The maintainer who makes the request. Raises NotSignedIn, NotAMaintainer."""
        actor = self.require_actor(request)
        if not actor.is_maintainer:
            raise NotAMaintainer(actor.name)
        return actor

    def is_maintainer(self, request: Request) -> bool:
        """Whether a maintainer makes the request; a token that cannot be confirmed makes none."""
        try:
            actor = self.actor_of(request)
        except AccessRefused:
            return False
        return actor is not None and actor.is_maintainer

    def submitter_of(self, request: Request) -> Actor | None:
        """Return who submits; None only in the mode ``local``, in which the form's own name will do."""
        return self.actor_of(request) if self.mode == "local" else self.require_actor(request)

    def is_own_page(self, request: Request) -> bool:
        """Whether a page of this server made the request; what may change something has to ask."""
        hosts = {request.headers.get("host", "").lower(), *self.space_hosts}
        return is_same_origin(request.headers, hosts)

    def _with_role(self, actor: Actor) -> Actor:
        names = self.settings.maintainer_names
        return replace(actor, is_maintainer=any(is_same_name(actor.name, name) for name in names))


def with_checked_host(app: ASGIApp, settings: Settings) -> ASGIApp:
    """Return the application as it is served: on a Space as it is, elsewhere under known host names only.

    These are the names of this machine and those of ARB_ALLOWED_HOSTS. The name that a browser asked for is
    checked because a page of another site may let its own name point here once it is loaded (DNS rebinding).
    """
    if settings.space_id:
        return app
    allowed = [*LOOPBACK_NAMES, settings.host.lower(), *settings.allowed_host_names]
    return TrustedHostMiddleware(app, allowed_hosts=allowed, www_redirect=False)
