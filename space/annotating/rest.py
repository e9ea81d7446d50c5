"""REST for annotators: their queue, their answers, and the screenshots and trees of their trajectories.

These addresses give nothing that others said: no label, no verdict, no other annotator's answer.
"""

from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from leaderboard.annotations import COMMENT_LENGTH
from space.annotating.access import Access, Seat
from space.annotating.item_view import API, address_of, next_of
from space.explorer.explorer import Explorer, Form
from space.explorer.rest import Id, Version, Width, picture_answer, tree_answer
from space.web.http_errors import NO_STORE, REFUSALS, require_open
from submissions.labelling.acts import NOT_YOURS
from submissions.labelling.desk import LabellingDesk
from submissions.labelling.drafts import Draft
from submissions.labelling.state import AssignedTask, SavedAnswers

OWN_FOR_GOOD = "private, max-age=31536000, immutable"
ANSWERS_PATH = f"{API}/answers"
MOST_ANSWER_BYTES = 6 * COMMENT_LENGTH + 4_000
"""JSON may spell a letter of the comment in six bytes."""


class Answers(BaseModel):
    """An annotation so far; unanswered questions are left out."""

    model_config = ConfigDict(extra="forbid")
    trajectory_id: str = Field(max_length=300)
    answers: dict[str, str | None] = Field(
        default_factory=dict, description="The answer to each question: yes, no, 1 to 4, or unsure."
    )
    comment: str = Field("", description="A comment for others.")
    seconds: float = Field(0.0, description="Seconds spent on it so far.")
    is_done: bool = Field(False, description="Whether it is finished; every question then needs an answer.")
    seen: int = Field(0, description="The value of `saved` when the answers were loaded.")


def build_annotating_router(desk: LabellingDesk, explorer: Explorer, access: Access) -> APIRouter:
    """The routes, for annotators; screenshots and trees also for maintainers."""
    router = APIRouter()
    Annotator = Annotated[Seat, Depends(access.annotator)]
    Reader = Annotated[Seat, Depends(access.seat)]

    @router.get(API, summary="Your queue: what is assigned to you, and your progress", responses=REFUSALS)
    def queue(seat: Annotator) -> JSONResponse:
        tasks = seat.state.queue(seat.annotator or "")
        found = {
            "annotator": seat.annotator,
            "done": sum(task.is_done for task in tasks),
            "next": next_of(tasks),
            "tasks": [
                {"trajectory_id": task.trajectory_id, "begun": task.given is not None, "done": task.is_done}
                for task in tasks
            ],
        }
        return JSONResponse(found, headers=NO_STORE)

    @router.get(ANSWERS_PATH, summary="Your own answers on a trajectory", responses=REFUSALS)
    def own(seat: Annotator, trajectory_id: Id) -> JSONResponse:
        task = _task(seat, trajectory_id)
        is_closed = seat.state.is_closed(trajectory_id, seat.annotator or "")
        return JSONResponse({**_told(task.given), "is_closed": is_closed}, headers=NO_STORE)

    @router.put(
        ANSWERS_PATH,
        summary="Save your answers on a trajectory, finished or not",
        responses=REFUSALS,
    )
    def save(seat: Annotator, body: Answers) -> JSONResponse:
        """Send ``saved`` of the answer as ``seen`` of the next call: 409 means that another window or device
        saved in between. ``next`` is the trajectory to continue with."""
        draft = Draft(body.answers, body.comment, body.seconds, body.is_done)
        require_open(desk.service)
        saved = desk.actions.save(body.trajectory_id, draft, body.seen, seat.actor)
        following = next_of(desk.now().queue(seat.annotator or ""), body.trajectory_id)
        found = {
            "saved": saved,
            "lasts": desk.service.durability.wait(saved, 0.0),
            "next": following,
            "next_address": address_of(following) if following else None,
        }
        return JSONResponse(found, headers=NO_STORE)

    @router.get(f"{API}/screenshot", summary="A screenshot of a trajectory in your queue", responses=REFUSALS)
    def screenshot(
        request: Request, seat: Reader, trajectory_id: Id, num: str, width: Width = None, v: Version = ""
    ) -> Response:
        seat.must_be_shown(trajectory_id)
        return picture_answer(explorer, request, "step", trajectory_id, num, width, v, OWN_FOR_GOOD)

    @router.get(f"{API}/goal_image", summary="A picture of its goal", responses=REFUSALS)
    def goal_image(
        request: Request, seat: Reader, trajectory_id: Id, num: str, width: Width = None, v: Version = ""
    ) -> Response:
        seat.must_be_shown(trajectory_id)
        return picture_answer(explorer, request, "goal", trajectory_id, num, width, v, OWN_FOR_GOOD)

    @router.get(f"{API}/tree", summary="The accessibility tree of one of its steps", responses=REFUSALS)
    def tree(
        request: Request, seat: Reader, trajectory_id: Id, num: int, form: Form = "full", v: Version = ""
    ) -> Response:
        seat.must_be_shown(trajectory_id)
        return tree_answer(explorer, request, trajectory_id, num, form, v, OWN_FOR_GOOD)

    return router


def _task(seat: Seat, trajectory_id: str) -> AssignedTask:
    for task in seat.state.queue(seat.annotator or ""):
        if task.trajectory_id == trajectory_id:
            return task
    raise HTTPException(403, NOT_YOURS)


def _told(given: SavedAnswers | None) -> dict:
    if given is None:
        return {"answers": {}, "comment": "", "seconds": 0.0, "is_done": False, "saved": 0}
    return {
        "answers": dict(given.answers),
        "comment": given.comment,
        "seconds": given.seconds,
        "is_done": given.is_done,
        "saved": given.sequence,
    }
