"""REST for maintainers: decisions on submissions and accounts, re-scoring, the log. Each is recorded."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from space.auth.auth import Auth
from space.maintain.rescoring_job import RescoringJob
from space.web.http_errors import NO_STORE, REFUSALS, hide_unknown, require_open, wait_until_durable
from submissions.accounts import Actor
from submissions.acts import REASON_LENGTH, Decision
from submissions.audit import MOST, read_log
from submissions.service import SubmissionService

Reason = Annotated[str, Field(max_length=2 * REASON_LENGTH, description="Why; stored with the record.")]


class SubmissionDecision(BaseModel):
    """What a maintainer decides of a submission."""

    model_config = ConfigDict(extra="forbid")
    decision: Decision = Field(description="The decision. released: it is scored at once.")
    reason: Reason


class AccountDecision(BaseModel):
    """What a maintainer decides of an account."""

    model_config = ConfigDict(extra="forbid")
    decision: Literal["banned", "unbanned"] = Field(description="banned: it may no longer submit.")
    reason: Reason


def build_maintain_router(service: SubmissionService, auth: Auth, job: RescoringJob) -> APIRouter:
    """The routes over a service; each asks ``auth`` for a maintainer first."""
    router = APIRouter()
    Maintainer = Annotated[Actor, Depends(auth.require_maintainer)]

    @router.post(
        "/api/maintain/submissions/{submission_id}",
        summary="Decide on a submission: hide, show, verify, reject, release, mark labels exposed",
        responses=REFUSALS,
    )
    def decide(
        submission_id: str,
        actor: Maintainer,
        body: SubmissionDecision,
    ) -> JSONResponse:
        """Rejecting a held submission does not count towards the limits of its account."""
        require_open(service, even_if_lost=True)
        hide_unknown(actor, service.decide, body.decision, submission_id, actor, body.reason)
        return _done(submission_id=submission_id, decision=body.decision)

    @router.post(
        "/api/maintain/accounts/{name:path}",
        summary="Ban an account from submitting, or lift the ban",
        responses=REFUSALS,
    )
    def close(
        name: str,
        actor: Maintainer,
        body: AccountDecision,
    ) -> JSONResponse:
        """Its submissions stay as they are."""
        require_open(service, even_if_lost=True)
        (service.actions.ban if body.decision == "banned" else service.actions.unban)(
            name, actor, body.reason
        )
        return _done(account=name, decision=body.decision)

    @router.post(
        "/api/maintain/rescore",
        summary="Score every submission again with the current labels",
        status_code=202,
        responses=REFUSALS,
    )
    def rescore(actor: Maintainer) -> JSONResponse:
        """Runs in the background, one at a time: poll with GET until ``state`` is no longer ``running``. Old
        scores stay under their label version."""
        require_open(service, even_if_lost=True)
        job.begin(actor)
        return JSONResponse({"state": "running"}, 202, NO_STORE)

    @router.get("/api/maintain/rescore", summary="The state of re-scoring, and what it changed")
    def rescored(actor: Maintainer) -> JSONResponse:
        """``state`` is idle, running, done or failed; ``found`` has the ranks before and after."""
        return JSONResponse(job.state.to_json(), headers=NO_STORE)

    @router.get("/api/maintain/log", summary="The event log, newest first, without anything about labels")
    def log(
        actor: Maintainer,
        before: Annotated[int | None, Query(ge=1, description="Only records before this number.")] = None,
        kind: Annotated[str | None, Query(max_length=32, description="Only records of this kind.")] = None,
        most: Annotated[int, Query(ge=1, le=MOST)] = 50,
    ) -> JSONResponse:
        """Of a score, only which submission it belongs to."""
        return JSONResponse({"records": read_log(service, before, kind, most)}, headers=NO_STORE)

    def _done(**fields: str) -> JSONResponse:
        return JSONResponse({**fields, "lasts": wait_until_durable(service)}, headers=NO_STORE)

    return router
