"""Authentication of requests by session or token, and roles, for routes and page handlers.

On a Space, a caller needs a session or a token that the Hub confirms. Outside the Hub, a server that only
this machine can reach accepts every name. A server that other machines can reach requires an access token, or
signing in with Hugging Face if that is set up. The session cookie is signed. It says who signed in, how, and
since when the account exists, and contains no token of the Hub.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Final
from urllib.parse import urlsplit

from fastapi import Request, Response
from sqlalchemy import Engine
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp

from arb.core.settings import Settings
from space.auth.access_tokens import AccessTokens
from space.auth.sessions import Mode, SessionCookie, Sessions, session_key
from space.auth.tokens import ConfirmedTokens, bearer_token, sent_token
from space.web.http_errors import AccessRefused, InvalidToken, NotAMaintainer, NotSignedIn
from submissions.intake.accounts import Actor, is_same_name

NOT_SIGNED_IN: Final[Mapping[Mode, str]] = {
    "hub": "you are not signed in; sign in on the page with Hugging Face, or send an access token: "
    "Authorization: Bearer hf_…, made at https://huggingface.co/settings/tokens",
    "tokens": "you are not signed in; use an access token of this Space on the page, or send it "
    "(Authorization: Bearer arb_…). The operator of the Space makes one with `arb space token NAME`",
    "local": "you are not signed in; enter a name on the page /sign-in",
}

_LOCAL = re.compile(r"/(?![/\\])[^\x00-\x20\x7f\\]*")
"""Matches a path of this site without tabs, line breaks and ``\\``, which browsers drop or replace."""
LONGEST_PATH = 2_000
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")


def local_path(path: str | None) -> str:
    """Return ``path`` (with its query) if it leads to a page of this site, else ``/``."""
    if path is None or len(path) > LONGEST_PATH or _LOCAL.fullmatch(path) is None:
        return "/"
    return path


def is_same_origin(headers: Mapping[str, str], own_hosts: Collection[str]) -> bool:
    """Return whether one of our own pages made a request, according to the browser that sent it.

    Every browser sends ``Sec-Fetch-Site`` or, with each POST, ``Origin``. A request with neither header
    counts as foreign. ``own_hosts`` are our host names with port, in lower case.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    return urlsplit(headers.get("origin") or "").netloc.lower() in own_hosts


class Auth:
    """The authentication of one application, in one of three modes.

    - ``hub``: on a Space (SPACE_ID), or if OAuth is set up. A caller has a session, made by signing in with
      Hugging Face, or a bearer token that the Hub confirms.
    - ``tokens``: if a server outside the Hub can be reached from other machines. A caller has an access
      token, or a session made with one. Until the first token is made, the server is read-only.
    - ``local``: if only this machine can reach the server (`Settings.is_local`). Every name is accepted and
      the Hub is never asked. Callers who sign in with a name in ARB_MAINTAINERS are maintainers.

    Methods that take only a request can be FastAPI dependencies: ``Depends(auth.require_actor)``. They may
    ask the Hub, so call them in a thread.
    """

    def __init__(
        self,
        settings: Settings,
        engine: Engine | None = None,
        identify: Callable[[Actor, bool], Actor] = lambda actor, for_good: actor,
    ) -> None:
        """Choose the mode from the settings.

        Without an ``engine`` (the database of sessions and access tokens) a session is only a cookie, and
        there are no access tokens. ``identify`` returns an actor with the name that its account has in the
        records. If its second argument is true, it also records the account.
        """
        self.settings, self._identify = settings, identify
        self.sessions = Sessions(engine) if engine is not None else None
        self.access_tokens = AccessTokens(engine) if engine is not None else None
        self.mode: Mode = "hub" if settings.has_oauth else "tokens"
        if settings.is_local:
            self.mode = "local"
        self.tokens = ConfirmedTokens()

    @cached_property
    def cookie(self) -> SessionCookie:
        return SessionCookie(session_key(self.settings), self.mode)

    @cached_property
    def space_hosts(self) -> tuple[str, ...]:
        """The host names of the Space. On the Hub, custom domains follow the Space's own host name."""
        hosts = tuple(host.strip().lower() for host in (self.settings.space_host or "").split(",") if host)
        return hosts or self.settings.allowed_host_names

    def actor_of(self, request: Request) -> Actor | None:
        """Return the account that made the request, or None if the caller is not signed in.

        A session is used only for reading and for requests from our own pages. Raise InvalidToken or
        HubUnavailable if the request has a token that cannot be confirmed.
        """
        if self.mode == "hub" and (token := bearer_token(request.headers)) is not None:
            return self._with_role(self._identify(self.tokens.holder(token), False))
        if self.mode == "tokens" and (token := sent_token(request.headers)) is not None:
            return self._with_role(self.holder(token))
        signed_in = self.cookie.read(request.cookies)
        if signed_in is None or not (request.method in SAFE_METHODS or self.is_own_page(request)):
            return None
        actor, session = signed_in
        if self.sessions is not None and not (session and self.sessions.is_open(session)):
            return None
        return self._with_role(self._identify(actor, False))

    def holder(self, token: str) -> Actor:
        """Return the account that holds an access token of this Space, or raise InvalidToken."""
        found = self.access_tokens.holder(token.strip()) if self.access_tokens is not None else None
        if found is None:
            raise InvalidToken("this is not an access token of this Space; it is mistyped or was revoked")
        return found

    def sign_in(self, response: Response, actor: Actor, browser: str = "") -> None:
        """Record the account, begin a session for it, and set the session cookie in the response."""
        actor = self._identify(actor, True)
        token = self.sessions.begin(actor.name, browser) if self.sessions is not None else None
        self.cookie.write(response, actor, token)

    def sign_out(self, request: Request, response: Response) -> None:
        """End the session of a request, so that no copy of its cookie stays valid, and clear the cookie."""
        if self.sessions is not None and (session := self.session_of(request)):
            self.sessions.end(session)
        self.cookie.clear(response)

    def session_of(self, request: Request) -> str | None:
        """Return the token in the session cookie of the request, or None if there is no valid cookie."""
        signed_in = self.cookie.read(request.cookies)
        return signed_in[1] if signed_in is not None else None

    def require_actor(self, request: Request) -> Actor:
        """Return the account that made the request. Raises NotSignedIn, or what `actor_of` raises."""
        actor = self.actor_of(request)
        if actor is None:
            raise NotSignedIn(NOT_SIGNED_IN[self.mode])
        return actor

    def require_maintainer(self, request: Request) -> Actor:
        """Return the maintainer who made the request, or raise NotAMaintainer or NotSignedIn."""
        actor = self.require_actor(request)
        if not actor.is_maintainer:
            raise NotAMaintainer(actor.name)
        return actor

    def is_maintainer(self, request: Request) -> bool:
        """Return whether the request was made by a maintainer; False if its token cannot be confirmed."""
        try:
            actor = self.actor_of(request)
        except AccessRefused:
            return False
        return actor is not None and actor.is_maintainer

    def submitter_of(self, request: Request) -> Actor | None:
        """Return the submitting account. It can be None in mode ``local``, where a name is enough."""
        return self.actor_of(request) if self.mode == "local" else self.require_actor(request)

    def is_own_page(self, request: Request) -> bool:
        """Return whether a page of this server made the request. Check this before changing anything."""
        hosts = {request.headers.get("host", "").lower(), *self.space_hosts}
        return is_same_origin(request.headers, hosts)

    def _with_role(self, actor: Actor) -> Actor:
        names = self.settings.maintainer_names
        return replace(actor, is_maintainer=any(is_same_name(actor.name, name) for name in names))


def with_checked_host(app: ASGIApp, settings: Settings) -> ASGIApp:
    """Return an application that, outside the Hub, answers only requests for known host names.

    The known names are those of this machine, ``settings.host`` and ARB_ALLOWED_HOSTS. Without this check, a
    page of another site could point its own host name to this machine and read the responses (DNS rebinding).
    """
    if settings.space_id:
        return app
    allowed = [*LOOPBACK_NAMES, settings.host.lower(), *settings.allowed_host_names]
    return TrustedHostMiddleware(app, allowed_hosts=allowed, www_redirect=False)
