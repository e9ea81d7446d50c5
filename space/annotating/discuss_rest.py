"""REST of the discussion of annotations: open questions, decisions, agreement."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from leaderboard.agreement_report import agreement_json
from space.annotating.access import Access, Seat
from space.web.http_errors import NO_STORE, REFUSALS, require_open, wait_until_durable
from submissions.labelling.acts import REASON_LENGTH
from submissions.labelling.desk import LabellingDesk
from submissions.labelling.discussion import discussion_items

API = "/api/discuss"


class Decision(BaseModel):
    """The decision on a question of a trajectory."""

    model_config = ConfigDict(extra="forbid")
    trajectory_id: str = Field(max_length=300)
    question: Literal["success", "side_effect", "repetition", "optimality"]
    answer: str = Field(max_length=10, description="yes, no, 1 to 4, or unsure.")
    reason: str = Field(max_length=REASON_LENGTH, description="Why; stored with the record.")


def build_discussing_router(desk: LabellingDesk, access: Access) -> APIRouter:
    """The routes: the discussion for maintainers and who has done the item, agreement for maintainers."""
    router = APIRouter()
    service = desk.service
    Reader = Annotated[Seat, Depends(access.seat)]
    Maintainer = Annotated[Seat, Depends(access.maintainer)]

    @router.get(API, summary="The open questions that you may see", responses=REFUSALS)
    def discussion(seat: Reader) -> JSONResponse:
        """Never contains the answers of others to what you have yet to answer yourself."""
        found = [
            {
                "trajectory_id": talk.item.trajectory_id,
                "annotators": talk.item.annotators,
                "answers": dict(talk.item.answers),
                "comments": talk.comments,
                "open": talk.open,
                "decisions": {
                    question: [{"answer": d.answer, "reason": d.reason, "by": d.by} for d in decisions]
                    for question, decisions in talk.decisions.items()
                },
            }
            for talk in discussion_items(seat.state, seat.annotator, seat.actor.is_maintainer)
        ]
        return JSONResponse({"items": found}, headers=NO_STORE)

    @router.get(f"{API}/agreement", summary="Inter-annotator agreement; for maintainers", responses=REFUSALS)
    def agreement(request: Request, seat: Maintainer) -> JSONResponse:
        return JSONResponse(agreement_json(desk.agreement()), headers=NO_STORE)

    @router.post(
        f"{API}/decisions",
        summary="Decide a question that annotators answered differently or with Unsure",
        responses=REFUSALS,
    )
    def decide(seat: Reader, body: Decision) -> JSONResponse:
        """The latest decision counts; earlier ones stay in the records."""
        require_open(desk.service)
        desk.actions.resolve(body.trajectory_id, body.question, body.answer, body.reason, seat.actor)
        return JSONResponse(
            {"question": body.question, "lasts": wait_until_durable(service)}, headers=NO_STORE
        )

    return router
