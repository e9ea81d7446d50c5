"""Signing in and out, and who one is: ``/sign-in``, ``/sign-out``, ``/api/me``."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Form, HTTPException, Query, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from pydantic import TypeAdapter, ValidationError

from dataset_script.suite_rules import SuiteRules
from space.auth.auth import Auth
from space.auth.origin import local_path
from space.auth.session import SignedIn
from space.auth.sign_in_page import SignInPage
from space.web.http_errors import AccessRefused
from submissions.accounts import Actor, age_problem, qualifies_on
from submissions.declaration import Name

NO_STORE = {"Cache-Control": "no-store"}
_NAME = TypeAdapter(Name)


def build_auth_router(
    auth: Auth, page: SignInPage, rules: SuiteRules, is_annotator: Callable[[str], bool] = lambda name: False
) -> APIRouter:
    """The routes; on a Space ``/sign-in`` leads to the Hub (see `oauth`), elsewhere it asks for a name.

    ``is_annotator`` says whether an account is invited to annotate.
    """
    router = APIRouter()

    @router.get("/sign-in", include_in_schema=False)
    def sign_in(next_path: Annotated[str | None, Query(alias="next")] = None) -> Response:
        path = local_path(next_path)
        if auth.mode == "hub":
            return RedirectResponse(f"/login/start?{urlencode({'next': path})}", 303)
        return page.form(path)

    @router.post("/sign-in", include_in_schema=False)
    def sign_in_locally(
        request: Request,
        name: Annotated[str, Form(max_length=200)] = "",
        next_path: Annotated[str | None, Form(alias="next", max_length=2_000)] = None,
    ) -> Response:
        if auth.mode == "hub":
            raise HTTPException(404, "on a Space one signs in with Hugging Face: GET /sign-in")
        _only_own_pages(auth, request)
        try:
            found = _NAME.validate_python(name)
        except ValidationError as error:
            context = error.errors()[0].get("ctx", {})
            return page.form(local_path(next_path), f"Your name {context.get('error', 'is too long')}.", 422)
        if not found:
            return page.form(local_path(next_path), "Fill in your name.", 422)
        response = RedirectResponse(local_path(next_path), 303, NO_STORE)
        auth.cookie.write(response, SignedIn(found, None, "local"))
        return response

    @router.post("/sign-out", include_in_schema=False)
    def sign_out(
        request: Request, next_path: Annotated[str | None, Form(alias="next", max_length=2_000)] = None
    ) -> Response:
        _only_own_pages(auth, request)
        response = RedirectResponse(local_path(next_path), 303, NO_STORE)
        auth.cookie.clear(response)
        return response

    @router.get("/api/me", summary="Your account, and whether you are a maintainer or annotator")
    def me(request: Request) -> JSONResponse:
        actor = auth.actor_of(request)
        is_invited = actor is not None and is_annotator(actor.name)
        return JSONResponse({**_account(actor, rules), "is_annotator": is_invited}, headers=NO_STORE)

    return router


def _only_own_pages(auth: Auth, request: Request) -> None:
    if not auth.is_own_page(request):
        raise AccessRefused(403, "a page of another site may not sign anybody in or out here")


def _account(actor: Actor | None, rules: SuiteRules) -> dict:
    """Who it is, and the day from which the account may submit, with the reason where that is not today."""
    if actor is None:
        return {"name": None, "is_maintainer": False, "how": None, "may_submit_from": None, "problem": None}
    today = datetime.now(UTC).date()
    day = qualifies_on(actor, rules, today)
    return {
        "name": actor.name,
        "is_maintainer": actor.is_maintainer,
        "how": actor.how,
        "may_submit_from": day.isoformat() if day else None,
        "problem": age_problem(actor, rules, today),
    }
