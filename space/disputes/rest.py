"""REST for disputes: file one, read the public list, decide."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from space.auth.auth import Auth
from space.web.http_errors import NO_STORE, REFUSALS, require_open, wait_until_durable
from submissions.accounts import Actor
from submissions.disputes import Decision, Dispute, DisputeView, view_dispute
from submissions.reader_acts import REASON_LENGTH, TEXT_LENGTH, ReaderActions
from submissions.service import SubmissionService

NO_TRAJECTORY = "the suite has no such trajectory: name it <benchmark>/<agent>/<task_id>"
NO_DISPUTE = "there is no such dispute"
MOST = 200
Question = Literal["success", "side_effect", "repetition", "optimality"]


class NewDispute(BaseModel):
    """A dispute of one label of one trajectory."""

    model_config = ConfigDict(extra="forbid")
    trajectory_id: str = Field(max_length=300, description="`<benchmark>/<agent>/<task_id>`.")
    question: Question = Field(description="The question whose answer is disputed.")
    text: str = Field(max_length=TEXT_LENGTH, description="What is wrong, and where it can be seen.")


class DisputeDecision(BaseModel):
    """What a maintainer decides of a dispute."""

    model_config = ConfigDict(extra="forbid")
    decision: Decision = Field(
        description="corrected: the label was wrong; kept: it is right; declined: not examined."
    )
    reason: str = Field(max_length=REASON_LENGTH, description="Why; stored with the decision.")


def shown_disputes(
    service: SubmissionService,
    acts: ReaderActions,
    is_maintainer: bool,
    trajectory_id: str = "",
    state: str = "",
) -> list[DisputeView]:
    """The disputes as a reader may see them, newest first: of one trajectory, open or decided, if asked."""
    found = service.suite.find(trajectory_id) if trajectory_id else None
    wanted = found.trajectory_id if found else trajectory_id

    def is_wanted(dispute: Dispute) -> bool:
        is_of_state = not state or (dispute.decided is None) == (state == "open")
        return is_of_state and (not wanted or dispute.trajectory_id == wanted)

    public = service.suite.labels_are_public
    return [
        view_dispute(each, public, is_maintainer) for each in reversed(acts.disputes()) if is_wanted(each)
    ]


def build_disputes_router(service: SubmissionService, auth: Auth, acts: ReaderActions) -> APIRouter:
    """The routes over a service."""
    router = APIRouter()
    Known = Annotated[Actor, Depends(auth.require_actor)]
    Maintainer = Annotated[Actor, Depends(auth.require_maintainer)]

    @router.post(
        "/api/disputes",
        summary="Dispute a label of a trajectory",
        status_code=201,
        responses=REFUSALS,
    )
    def dispute(actor: Known, body: NewDispute) -> JSONResponse:
        """For any account, with a daily limit. Where labels are private, only maintainers can read the text
        of a dispute about a test trajectory."""
        require_open(service)
        try:
            record = acts.dispute(body.trajectory_id, body.question, body.text, actor)
        except KeyError:
            raise HTTPException(404, NO_TRAJECTORY) from None
        found = {"dispute_id": record.body["dispute_id"], "lasts": wait_until_durable(service)}
        return JSONResponse(found, 201, NO_STORE)

    @router.get("/api/disputes", summary="The disputes and their decisions, newest first")
    def disputes(
        request: Request,
        trajectory_id: Annotated[str, Query(max_length=300, description="Only of this trajectory.")] = "",
        state: Annotated[Literal["", "open", "decided"], Query(description="Empty for all.")] = "",
        page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
    ) -> JSONResponse:
        """Of a test trajectory of a private suite it says only that a dispute was decided, so that no hidden
        label is revealed. Maintainers get everything."""
        found = shown_disputes(service, acts, auth.is_maintainer(request), trajectory_id, state)
        shown = [each.to_json() for each in found[(page - 1) * MOST : page * MOST]]
        return JSONResponse({"disputes": shown, "of": len(found)}, headers=NO_STORE)

    @router.post(
        "/api/maintain/disputes/{dispute_id}",
        summary="Decide on a dispute: corrected, kept or declined",
        responses=REFUSALS,
    )
    def decide(
        dispute_id: str,
        actor: Maintainer,
        body: DisputeDecision,
    ) -> JSONResponse:
        """``corrected`` does not change the label itself: publish a label set with the correction."""
        require_open(service)
        try:
            acts.decide(dispute_id, body.decision, body.reason, actor)
        except KeyError:
            raise HTTPException(404, NO_DISPUTE) from None
        found = {"dispute_id": dispute_id, "decision": body.decision}
        return JSONResponse({**found, "lasts": wait_until_durable(service)}, headers=NO_STORE)

    return router
