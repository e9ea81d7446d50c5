"""Signing in and out: ``/sign-in``, ``/sign-out``, ``/api/me``, and OpenID Connect under ``/login``.

Authlib handles signing in with Hugging Face. Gradio has routes for this, too, but they store the account's
access token in the session cookie. Here the token is dropped as soon as the account's name is known.
"""

import logging
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any, Final
from urllib.parse import urlencode

import httpx2
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.starlette_client import OAuth, OAuthError
from fastapi import APIRouter, Depends, Form, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from joserfc.errors import JoseError
from pydantic import Field, TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.routing import Route

from arb.core.judge_info import Name
from arb.core.settings import is_loopback
from arb.core.suite import SuiteRules
from space.auth.auth import Auth, local_path
from space.auth.sessions import Mode, session_key
from space.web.frame import PageFrame
from space.web.http_errors import NO_STORE, AccessRefused, InvalidToken, RequestBody, sentence
from submissions.intake.accounts import Actor, age_problem, qualifies_on

logger = logging.getLogger(__name__)
STATE_SECONDS: Final = 600
TIMEOUT: Final = httpx2.Timeout(10.0)
_NAME = TypeAdapter(Name)


class EndedSession(RequestBody):
    """Which session to end."""

    id: str | None = Field(
        None, max_length=64, description="The `id` of the session to end; leave it out to end all."
    )


def sign_in_page(
    pages: PageFrame,
    next_path: str,
    status: int = 200,
    *,
    mode: Mode | None = None,
    problem: str | None = None,
) -> HTMLResponse:
    """Return the page ``/sign-in`` with the form of a mode or, if ``mode`` is None, a link to start again.

    ``problem`` is a sentence to show, or the key of a problem that the template describes.
    """
    values = {"next_path": next_path, "mode": mode, "problem": problem}
    description = "Sign in to submit or to moderate."
    return pages.answer("account/sign_in.html", "Sign in", "", status, description=description, **values)


def build_login(auth: Auth, pages: PageFrame) -> Starlette:
    """Return the application under ``/login``, which redirects to the Hub and back to ``/callback``."""
    login = _Login(auth, pages)
    routes = [Route("/start", login.start), Route("/callback", login.finish)]
    # The OAuth state is kept for ten minutes in a separate cookie, sent only to /login. SameSite=Lax is
    # enough, because the Hub's redirect navigates the whole page.
    state = Middleware(
        SessionMiddleware,
        secret_key=session_key(auth.settings).hex(),
        session_cookie="__Secure-arb-login",
        max_age=STATE_SECONDS,
        path="/login",
        same_site="lax",
        https_only=True,
    )
    return Starlette(routes=routes, middleware=[state])


class _Login:
    def __init__(self, auth: Auth, pages: PageFrame) -> None:
        settings = auth.settings
        self._auth, self._pages = auth, pages
        self._is_set_up = bool(settings.oauth_client_id and settings.oauth_client_secret and auth.space_hosts)
        secret = settings.oauth_client_secret
        self._hub = OAuth().register(
            "huggingface",
            client_id=settings.oauth_client_id,
            client_secret=secret.get_secret_value() if secret else None,
            server_metadata_url=f"{settings.openid_provider_url.rstrip('/')}/.well-known/openid-configuration",
            client_kwargs={
                "scope": settings.oauth_scopes,
                "code_challenge_method": "S256",
                "timeout": TIMEOUT,
                "verify": httpx2.create_ssl_context(),  # made only once, since it takes longer than a request
            },
        )

    async def start(self, request: Request) -> Response:
        """Redirect to the Hub, or from a custom domain to the Space's own domain, which the Hub knows."""
        next_path = local_path(request.query_params.get("next"))
        if not self._is_set_up:
            return self._problem("not set up", next_path, 503)
        host = self._auth.space_hosts[0]
        base = f"{'http' if is_loopback(host.split(':')[0]) else 'https'}://{host}"
        if request.headers.get("host", "").lower() not in self._auth.space_hosts[:1]:
            return RedirectResponse(f"{base}/login/start?{urlencode({'next': next_path})}", 303)
        request.session["next"] = next_path
        try:
            return await self._hub.authorize_redirect(request, f"{base}/login/callback")
        except (httpx2.HTTPError, ValueError) as error:
            logger.warning("the Hub's sign-in cannot be reached: %s", type(error).__name__)
            return self._problem("silent", next_path, 503)

    async def finish(self, request: Request) -> Response:
        """Exchange the code for the account's name, sign the account in, and redirect to the earlier page."""
        next_path = local_path(request.session.pop("next", "/"))
        if not self._is_set_up:
            return self._problem("not set up", next_path, 503)
        try:
            name, subject = await self._person(request)
        except OAuthError as error:
            logger.info("a sign-in was not finished: %s", error.error)
            if error.error == "access_denied":
                return self._problem("declined", next_path, 403)
            return self._problem("unfinished", next_path, 400)
        except httpx2.HTTPError as error:
            logger.warning("the Hub's sign-in failed: %s", type(error).__name__)
            return self._problem("silent", next_path, 503)
        except (AuthlibBaseError, JoseError, ValueError, KeyError, TypeError) as error:
            logger.warning("the Hub's answer to a sign-in is not understood: %s", type(error).__name__)
            return self._problem("not understood", next_path, 502)
        since = await run_in_threadpool(self._auth.tokens.made_on, name, subject)
        response = RedirectResponse(next_path, 303, headers=NO_STORE)
        actor = Actor(name, since=since, how="session", subject=subject)
        await run_in_threadpool(self._auth.sign_in, response, actor, request.headers.get("user-agent", ""))
        return response

    def _problem(self, problem: str, next_path: str, status: int) -> HTMLResponse:
        return sign_in_page(self._pages, next_path, status, problem=problem)

    async def _person(self, request: Request) -> tuple[str, str]:
        """Return the account's name and id, from the signed identity token or, if it is missing, the Hub."""
        token = await self._hub.authorize_access_token(request)
        claims = token.get("userinfo") or await self._hub.userinfo(token=token)
        name, subject = claims["preferred_username"], claims["sub"]
        if not (isinstance(name, str) and name and isinstance(subject, str) and subject):
            raise ValueError("no name, or no id")
        return name, subject


def build_auth_router(
    auth: Auth, pages: PageFrame, rules: SuiteRules, is_annotator: Callable[[str], bool] = lambda name: False
) -> APIRouter:
    """Return the routes for signing in and out, for sessions and for ``/api/me``.

    Depending on the mode, ``/sign-in`` redirects to the Hub or asks for an access token or a name.
    ``is_annotator`` returns whether an account is invited to annotate.
    """
    router = APIRouter()
    Known = Annotated[Actor, Depends(auth.require_actor)]

    @router.get("/sign-in", include_in_schema=False)
    def sign_in(next_path: Annotated[str | None, Query(alias="next")] = None) -> Response:
        path = local_path(next_path)
        if auth.mode == "hub":
            return RedirectResponse(f"/login/start?{urlencode({'next': path})}", 303)
        return sign_in_page(pages, path, mode=auth.mode)

    @router.post("/sign-in", include_in_schema=False)
    def sign_in_locally(
        request: Request,
        name: Annotated[str, Form(max_length=200)] = "",
        token: Annotated[str, Form(max_length=200)] = "",
        next_path: Annotated[str | None, Form(alias="next", max_length=2_000)] = None,
    ) -> Response:
        if auth.mode == "hub":
            raise HTTPException(404, "this Space signs people in with Hugging Face; use GET /sign-in")
        _only_own_pages(auth, request)
        path = local_path(next_path)

        def refused(problem: str, status: int) -> HTMLResponse:
            return sign_in_page(pages, path, status, mode=auth.mode, problem=problem)

        try:
            actor = auth.holder(token) if auth.mode == "tokens" else Actor(_NAME.validate_python(name))
        except ValidationError as error:
            context = error.errors()[0].get("ctx", {})
            return refused(f"Your name {context.get('error', 'is too long')}.", 422)
        except InvalidToken as invalid:
            return refused(sentence(invalid.detail), 401)
        if not actor.name:
            return refused("Fill in your name.", 422)
        response = RedirectResponse(path, 303, NO_STORE)
        auth.sign_in(response, actor, request.headers.get("user-agent", ""))
        return response

    @router.post("/sign-out", include_in_schema=False)
    def sign_out(
        request: Request, next_path: Annotated[str | None, Form(alias="next", max_length=2_000)] = None
    ) -> Response:
        _only_own_pages(auth, request)
        response = RedirectResponse(local_path(next_path), 303, NO_STORE)
        auth.sign_out(request, response)
        return response

    @router.get("/api/sessions", summary="Your sessions: where you are signed in, newest first")
    def sessions(request: Request, actor: Known) -> JSONResponse:
        """``is_this`` is true for the current session."""
        found = auth.sessions.of(actor.name, auth.session_of(request)) if auth.sessions else []
        lines = [{**asdict(each), "begun_at": each.begun_at.isoformat()} for each in found]
        return JSONResponse({"sessions": lines}, headers=NO_STORE)

    @router.post("/api/sessions/end", summary="End one of your sessions, or all of them")
    def end(actor: Known, body: EndedSession) -> JSONResponse:
        """If you send no ``id``, all your sessions end, including the current one.

        Tokens of Hugging Face stay valid; revoke them at https://huggingface.co/settings/tokens.
        """
        ended = auth.sessions.end_of(actor.name, body.id) if auth.sessions else 0
        if body.id is not None and not ended:
            raise HTTPException(404, "you have no session with this id; it may have ended")
        return JSONResponse({"ended": ended}, headers=NO_STORE)

    @router.get("/api/me", summary="Your account, and whether you are a maintainer or annotator")
    def me(request: Request) -> JSONResponse:
        actor = auth.actor_of(request)
        is_invited = actor is not None and is_annotator(actor.name)
        return JSONResponse({**_account(actor, rules), "is_annotator": is_invited}, headers=NO_STORE)

    return router


def _only_own_pages(auth: Auth, request: Request) -> None:
    if not auth.is_own_page(request):
        raise AccessRefused(403, "a page of another site may not sign anybody in or out here")


def _account(actor: Actor | None, rules: SuiteRules) -> dict[str, Any]:
    """Return the account, the day from which it may submit, and the reason if it may not submit yet."""
    if actor is None:
        return {"name": None, "is_maintainer": False, "how": None, "may_submit_from": None, "problem": None}
    today = datetime.now(UTC).date()
    day = qualifies_on(actor, rules, today)
    return {
        "name": actor.display_name,
        "is_maintainer": actor.is_maintainer,
        "how": actor.how,
        "may_submit_from": day.isoformat() if day else None,
        "problem": age_problem(actor, rules, today),
    }
