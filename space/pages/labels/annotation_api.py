"""REST of annotation: for annotators their queue and answers, for maintainers invitations and label sets.

Addresses for annotators give nothing that others said: no label, no verdict, no other annotator's answer.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Body, Depends, HTTPException
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from arb.core.judge_info import NAME_LENGTH
from leaderboard.labels.annotations import COMMENT_LENGTH
from space.pages.labels.access import Access, AnnotatorContext
from space.pages.labels.annotation_item import API, next_of
from space.pages.labels.annotation_pages import DISCUSSION_API
from space.pages.trajectories.dataset import Explorer
from space.pages.trajectories.page import Id, add_story_routes
from space.web.http_errors import ERROR_RESPONSES, NO_STORE, recorded, require_open
from submissions.labels.annotation_service import NOT_YOURS, AnnotationService
from submissions.labels.annotation_state import FLAG_LENGTH, AssignedTask, Draft, SavedAnswers
from submissions.scoring.rescore import REASON_LENGTH as WHY_LENGTH
from submissions.scoring.rescore import rescore

OWN_FOR_GOOD = "private, max-age=31536000, immutable"
ANSWERS_PATH = f"{API}/answers"
MOST_ANSWER_BYTES = 6 * (COMMENT_LENGTH + FLAG_LENGTH) + 4_000
"""JSON may spell a letter of a text in six bytes."""


@dataclass(frozen=True, repr=False)
class Answers(Draft):
    """An annotation so far; unanswered questions are left out."""

    __pydantic_config__ = ConfigDict(extra="forbid")
    item: Annotated[str, Field(max_length=300, description="The item's token, from your queue.")] = ""
    trajectory_id: Annotated[
        str, Field(max_length=300, description="Without an item: the trajectory's own id.")
    ] = ""
    seen: Annotated[int, Field(description="The value of `saved` when the answers were loaded.")] = 0


def build_annotating_router(annotations: AnnotationService, explorer: Explorer, access: Access) -> APIRouter:
    """The routes, for annotators; screenshots and trees also for maintainers."""
    router = APIRouter(responses=ERROR_RESPONSES)
    Annotator = Annotated[AnnotatorContext, Depends(access.annotator)]

    @router.get(API, summary="Your queue: what is assigned to you, and your progress")
    def queue(reader: Annotator) -> JSONResponse:
        """An item has a token instead of its id, which names the agent, until you have finished it."""
        tasks = reader.state.queue(reader.annotator or "")
        waiting = next_of(tasks)
        blind = reader.state.blind_items(reader.annotator or "")
        found = {
            "annotator": reader.annotator,
            "done": sum(task.is_done for task in tasks),
            "next": reader.token(waiting) if waiting else None,
            "tasks": [
                {
                    "item": reader.token(task.trajectory_id),
                    "trajectory_id": None if task.trajectory_id in blind else task.trajectory_id,
                    "begun": task.saved is not None,
                    "done": task.is_done,
                }
                for task in tasks
            ],
        }
        return JSONResponse(found, headers=NO_STORE)

    @router.get(ANSWERS_PATH, summary="Your own answers on a trajectory")
    def own(reader: Annotator, item: Id = "", trajectory_id: Id = "") -> JSONResponse:
        task = _task(reader, reader.named(item, trajectory_id))
        is_closed = reader.state.is_closed(task.trajectory_id, reader.annotator or "")
        return JSONResponse({**_answers_response(task.saved), "is_closed": is_closed}, headers=NO_STORE)

    @router.put(ANSWERS_PATH, summary="Save your answers on a trajectory, finished or not")
    def save(reader: Annotator, body: Answers) -> JSONResponse:
        """Send ``saved`` of the answer as ``seen`` of the next call: 409 means that another window or device
        saved in between. ``next`` is the item to continue with."""
        trajectory_id = reader.named(body.item, body.trajectory_id)
        require_open(annotations.service)
        saved = annotations.save(trajectory_id, body, body.seen, reader.actor)
        following = next_of(annotations.now().queue(reader.annotator or ""), trajectory_id)
        found = {
            "saved": saved,
            "lasts": annotations.service.durability.wait(saved, 0.0),
            "next": reader.token(following) if following else None,
            "next_address": reader.address_of(following) if following else None,
        }
        return JSONResponse(found, headers=NO_STORE)

    def visible_story(
        reader: Annotated[AnnotatorContext, Depends(access.reader)], item: Id = "", trajectory_id: Id = ""
    ) -> str:
        found = reader.named(item, trajectory_id)
        reader.require_story_access(found)
        return found

    StoryId = Annotated[str, Depends(visible_story)]
    add_story_routes(router, API, explorer, StoryId, "a trajectory in your queue", OWN_FOR_GOOD)
    return router


def _task(reader: AnnotatorContext, trajectory_id: str) -> AssignedTask:
    for task in reader.state.queue(reader.annotator or ""):
        if task.trajectory_id == trajectory_id:
            return task
    raise HTTPException(403, NOT_YOURS)


def _answers_response(saved: SavedAnswers | None) -> dict:
    draft = saved or Draft()
    names = ("comment", "seconds", "is_done", "step", "flag", "is_skipped")
    found = {name: getattr(draft, name) for name in names}
    return {"answers": dict(draft.answers), **found, "saved": saved.sequence if saved else 0}


class Invitation(BaseModel):
    """An account."""

    model_config = ConfigDict(extra="forbid")
    account: str = Field(max_length=NAME_LENGTH, description="The name with which the account signs in.")


class Assigning(BaseModel):
    """What to assign to the invited annotators."""

    model_config = ConfigDict(extra="forbid")
    split: Literal["test", "dev", "both"] = Field("test", description="The split of the trajectories.")
    most: int | Literal[""] = Field(
        "", description="How many unassigned trajectories, evenly over the benchmarks. Empty for all."
    )
    percent_twice: float = Field(
        10, ge=0, le=100, description="The percentage of assigned trajectories that get a second annotation."
    )
    percent_gold: float = Field(
        0,
        ge=0,
        le=100,
        description="The percentage of gold items on top of what each annotator gets.",
    )
    seed: int = Field(1, ge=0, lt=2**31, description="Seed of the random assignment.")


class GoldMark(BaseModel):
    """Whether a trajectory is a gold item."""

    model_config = ConfigDict(extra="forbid")
    trajectory_id: str = Field(max_length=300)
    gold: Literal["yes", "no"] = Field("yes", description="no: it is given to nobody any more.")


class PublicationForm(BaseModel):
    """Why there is a new label set."""

    model_config = ConfigDict(extra="forbid")
    why: str = Field(max_length=WHY_LENGTH, description="What changed and why, for the change log.")


def build_annotation_admin_router(
    annotations: AnnotationService, explorer: Explorer, access: Access
) -> APIRouter:
    """The routes, all for maintainers: invite and assign, and publish the label set."""
    router = APIRouter(responses=ERROR_RESPONSES)
    service = annotations.service
    Maintainer = Annotated[AnnotatorContext, Depends(access.maintainer)]

    @router.post(f"{DISCUSSION_API}/invite", summary="Invite an account to annotate; for maintainers")
    def invite(reader: Maintainer, body: Invitation) -> JSONResponse:
        require_open(service)
        annotator = annotations.invite(body.account, reader.actor)
        return recorded(service, annotator=annotator)

    @router.post(f"{DISCUSSION_API}/uninvite", summary="End an invitation; for maintainers")
    def uninvite(reader: Maintainer, body: Invitation) -> JSONResponse:
        """Finished annotations stay; the next assignment gives the rest to others."""
        require_open(service)
        annotations.uninvite(body.account, reader.actor)
        return recorded(service)

    @router.post(
        f"{DISCUSSION_API}/assign",
        summary="Assign trajectories to the invited annotators; for maintainers",
    )
    def assign(
        reader: Maintainer, body: Annotated[Assigning, Body(default_factory=Assigning)]
    ) -> JSONResponse:
        """Assignments made before stay. Trajectories that the dataset does not have are left out."""
        available = {name for dataset in explorer.datasets() for name in dataset.index.by_id}
        most = None if body.most == "" else body.most
        require_open(service)
        shares = body.percent_twice / 100, body.percent_gold / 100
        added = annotations.assign(
            body.split, most, shares[0], body.seed, available, reader.actor, gold_share=shares[1]
        )
        return recorded(service, assignments=added)

    @router.post(
        f"{DISCUSSION_API}/gold",
        summary="Make a finished trajectory a gold item, or end that; for maintainers",
    )
    def mark_gold(reader: Maintainer, body: GoldMark) -> JSONResponse:
        """Its answers as they count now are the known ones. Annotators meet it among others."""
        require_open(service)
        annotations.mark_gold(body.trajectory_id, reader.actor, body.gold == "yes")
        return recorded(service, trajectory_id=body.trajectory_id)

    @router.post(
        f"{DISCUSSION_API}/publish",
        summary="Publish the current label set as a new version; for maintainers",
    )
    def publish(reader: Maintainer, body: PublicationForm) -> JSONResponse:
        """Where the Space scores with these labels, every submission is scored again at once."""
        require_open(service)
        version = annotations.publish(reader.actor, body.why)
        found = {
            "version": version.version,
            "labelled": version.labelled,
            "changes": dict(version.changes),
            "questions_changed": version.questions_changed,
        }
        if service.label_version == version.version:
            found["rescored"] = rescore(service, reader.actor).to_json()
        return recorded(service, **found)

    return router
