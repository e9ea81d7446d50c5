"""REST for owners of submissions: read, withdraw, publish, rename the judge, and the limits left."""

from typing import Annotated

from fastapi import APIRouter, Body, Depends, HTTPException, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from space.auth.auth import Auth
from space.own.allowance_told import allowance_json
from space.standing_words import status_sentence
from space.web.http_errors import (
    NO_STORE,
    NOT_YOURS,
    REFUSALS,
    hide_unknown,
    require_open,
    wait_until_durable,
)
from submissions.accounts import Actor, is_same_name
from submissions.acts import REASON_LENGTH
from submissions.declaration import NAME_LENGTH
from submissions.service import SubmissionService
from submissions.told import SubmissionView


class Withdrawal(BaseModel):
    """Why a submission is withdrawn; optional."""

    model_config = ConfigDict(extra="forbid")
    reason: str = Field("", max_length=REASON_LENGTH, description="Why; stored with the record.")


class Nothing(BaseModel):
    """An empty object."""

    model_config = ConfigDict(extra="forbid")


class Renaming(BaseModel):
    """A judge's name now and then."""

    model_config = ConfigDict(extra="forbid")
    judge: str = Field(max_length=NAME_LENGTH, description="The judge's current name.")
    to: str = Field(max_length=4 * NAME_LENGTH, description="The new name.")
    account: str = Field(
        "",
        max_length=NAME_LENGTH,
        description="The judge's account; default: yours. Maintainers may name others.",
    )


def submission_response(told: SubmissionView) -> dict:
    """A submission as its owner gets it: receipt, status, metrics, and the status as a sentence."""
    found = told.to_json()
    return {**found, "told": status_sentence(told.receipt.status, told.status.reasons)}


def build_own_router(service: SubmissionService, auth: Auth) -> APIRouter:
    """The routes over a service; ``auth`` says who makes a request."""
    router = APIRouter()
    Known = Annotated[Actor, Depends(auth.require_actor)]

    @router.get(
        "/api/submissions/{submission_id}",
        summary="A submission: receipt, status, and the metrics that its owner may see",
        responses=REFUSALS,
    )
    def one(submission_id: str, actor: Known) -> JSONResponse:
        """For its owner and maintainers. ``report`` is null until it is scored. Where a suite's labels are
        private, the metrics carry noise."""
        return _answer(submission_id, actor)

    @router.post(
        "/api/submissions/{submission_id}/withdraw",
        summary="Take a submission off the board for good",
        responses=REFUSALS,
    )
    def withdraw(
        submission_id: str, actor: Known, body: Annotated[Withdrawal, Body(default_factory=Withdrawal)]
    ) -> JSONResponse:
        """Its record stays, and it still counts towards the limits."""
        require_open(service, even_if_lost=True)
        hide_unknown(actor, service.actions.withdraw, submission_id, actor, body.reason)
        wait_until_durable(service)
        return _answer(submission_id, actor)

    @router.post(
        "/api/submissions/{submission_id}/publish",
        summary="Publish a submission's row, where a suite's labels are private",
        responses=REFUSALS,
    )
    def publish(
        submission_id: str, actor: Known, body: Annotated[Nothing, Body(default_factory=Nothing)]
    ) -> JSONResponse:
        """It appears with the next round, on the day in ``appears_at``. The rows per year are limited."""
        require_open(service, even_if_lost=True)
        hide_unknown(actor, service.actions.publish, submission_id, actor)
        wait_until_durable(service)
        return _answer(submission_id, actor)

    @router.post(
        "/api/judges/rename",
        summary="Rename a judge",
        responses=REFUSALS,
    )
    def rename(actor: Known, body: Renaming) -> JSONResponse:
        """It keeps its submissions, and the records keep both names."""
        account = body.account or actor.name
        if not (actor.is_maintainer or is_same_name(account, actor.name)):
            raise HTTPException(403, NOT_YOURS)
        require_open(service, even_if_lost=True)
        try:
            record = service.actions.rename(account, body.judge, body.to, actor)
        except KeyError:
            raise HTTPException(404, f"there is no judge {body.judge!r} of {account}") from None
        found = {"account": account, "judge": record.body["to"], "lasts": wait_until_durable(service)}
        return JSONResponse(found, headers=NO_STORE)

    @router.get("/api/allowance", summary="How many test files you may still submit, and when the next one")
    def left(request: Request, account: Annotated[str, Query(max_length=NAME_LENGTH)] = "") -> JSONResponse:
        """``account`` is used only by a local server, when nobody is signed in."""
        actor = auth.actor_of(request)
        if actor is None and auth.mode == "local" and account:
            actor = Actor(account)
        actor = actor or auth.require_actor(request)
        found = allowance_json(service.quota(actor.name), service.suite.rules)
        return JSONResponse({"account": actor.name, **found}, headers=NO_STORE)

    def _answer(submission_id: str, actor: Actor) -> JSONResponse:
        view = hide_unknown(actor, service.submission, submission_id, actor)
        return JSONResponse(submission_response(view), headers=NO_STORE)

    return router
