"""REST for owners: one's submission, withdrawing it, making it public, naming its judge, what is left."""

from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from space.acting import NO_STORE, NOT_YOURS, REFUSALS, acting, told_to, wait_until_it_lasts
from space.auth.auth import Auth
from space.json_body import described, json_body
from space.own.allowance_told import allowance_json
from space.standing_words import status_sentence
from submissions.accounts import Actor, is_same_name
from submissions.acts import REASON_LENGTH
from submissions.declaration import NAME_LENGTH
from submissions.service import SubmissionService
from submissions.told import ToldSubmission


class Withdrawal(BaseModel):
    """Why a submission is withdrawn; may be left out."""

    model_config = ConfigDict(extra="forbid")
    reason: str = Field("", max_length=REASON_LENGTH, description="Why; kept with the record.")


class Nothing(BaseModel):
    """An empty object."""

    model_config = ConfigDict(extra="forbid")


class Renaming(BaseModel):
    """A judge's name now and then."""

    model_config = ConfigDict(extra="forbid")
    judge: str = Field(max_length=NAME_LENGTH, description="The name that it has now.")
    to: str = Field(max_length=4 * NAME_LENGTH, description="The new one.")
    account: str = Field("", max_length=NAME_LENGTH, description="Whose judge; maintainers may name others.")


def told_json(told: ToldSubmission) -> dict:
    """A submission as its owner gets it: receipt, standing, figures, and its status in a sentence."""
    found = told.to_json()
    return {**found, "told": status_sentence(told.receipt.status, told.standing.reasons)}


def build_own_router(service: SubmissionService, auth: Auth) -> APIRouter:
    """The routes over a service; whoever asks is known by ``auth``."""
    router = APIRouter()
    Known = Annotated[Actor, Depends(auth.require_actor)]

    @router.get(
        "/api/submissions/{submission_id}",
        summary="A submission: receipt, standing, and the figures that its owner may see",
        responses=REFUSALS,
    )
    def one(submission_id: str, actor: Known) -> JSONResponse:
        """For its owner and maintainers. ``report`` is null before there is a score; where a suite's labels
        are private its owner's figures carry noise."""
        return JSONResponse(told_json(told_to(service, submission_id, actor)), headers=NO_STORE)

    @router.post(
        "/api/submissions/{submission_id}/withdraw",
        summary="Take a submission off the board for good",
        openapi_extra=described(Withdrawal),
        responses=REFUSALS,
    )
    def withdraw(
        submission_id: str, actor: Known, said: Annotated[Withdrawal, Depends(json_body(Withdrawal))]
    ) -> JSONResponse:
        """Its record and its share of the limits stay."""
        with acting(service, actor):
            service.acts.withdraw(submission_id, actor, said.reason)
        return _done(submission_id, actor)

    @router.post(
        "/api/submissions/{submission_id}/publish",
        summary="Make a submission's row public, where a suite's labels are private",
        openapi_extra=described(Nothing),
        responses=REFUSALS,
    )
    def publish(
        submission_id: str, actor: Known, said: Annotated[Nothing, Depends(json_body(Nothing))]
    ) -> JSONResponse:
        """It appears with the next round, on the day in ``appears_at``; so many rows a year."""
        with acting(service, actor):
            service.acts.publish(submission_id, actor)
        return _done(submission_id, actor)

    @router.post(
        "/api/judges/rename",
        summary="Give a judge another name",
        openapi_extra=described(Renaming),
        responses=REFUSALS,
    )
    def rename(actor: Known, said: Annotated[Renaming, Depends(json_body(Renaming))]) -> JSONResponse:
        """Its submissions stay its own, and the record keeps both names."""
        account = said.account or actor.name
        if not (actor.is_maintainer or is_same_name(account, actor.name)):
            raise HTTPException(403, NOT_YOURS)
        try:
            with acting(service, actor):
                record = service.acts.rename(account, said.judge, said.to, actor)
        except HTTPException as refusal:
            if refusal.detail != NOT_YOURS:
                raise
            raise HTTPException(404, f"there is no judge {said.judge!r} of {account}") from None
        found = {"account": account, "judge": record.body["to"], "lasts": wait_until_it_lasts(service)}
        return JSONResponse(found, headers=NO_STORE)

    @router.get("/api/allowance", summary="How many test files are left to you, and when the next may come")
    def left(request: Request, account: Annotated[str, Query(max_length=NAME_LENGTH)] = "") -> JSONResponse:
        """``account`` counts only where the server is for its own machine, and nobody is signed in."""
        actor = auth.actor_of(request)
        if actor is None and auth.mode == "local" and account:
            actor = Actor(account)
        actor = actor or auth.require_actor(request)
        found = allowance_json(service.allowance(actor.name), service.suite.rules)
        return JSONResponse({"account": actor.name, **found}, headers=NO_STORE)

    def _done(submission_id: str, actor: Actor) -> JSONResponse:
        wait_until_it_lasts(service)
        return JSONResponse(told_json(told_to(service, submission_id, actor)), headers=NO_STORE)

    return router
