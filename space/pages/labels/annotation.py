"""``/annotate``: an annotator's queue, and one trajectory with its questions, as pages and over REST.

Annotators see no labels, no verdicts and no answers of other annotators here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import ConfigDict, Field

from arb.core.ids import TrajectoryId
from arb.core.suite import Suite
from arb.core.suites.targets import CONTRADICTIONS
from leaderboard.labels.annotations import COMMENT_LENGTH
from space.pages.labels.access import NOT_INVITED_PAGE, PATH, SIGN_IN, AnnotatorContext
from space.pages.trajectories.dataset import Story, TrajectoriesUnavailable
from space.pages.trajectories.page import Id, add_story_routes, story_values
from space.services import Services
from space.web.frame import PageFrame
from space.web.http_errors import NO_STORE, require_open
from space.web.query import link_to
from submissions.labels.annotation_service import NOT_YOURS
from submissions.labels.annotation_state import (
    FLAG_LENGTH,
    AssignedTask,
    Draft,
    SavedAnswers,
    discussion_items,
)

API: Final = "/api/annotate"
NOT_IN_DATASET: Final = "The dataset of this Space does not contain it."
NOT_ASSIGNED: Final = "This trajectory is not assigned to you, or it does not exist."
OWN_FOR_GOOD = "private, max-age=31536000, immutable"
ANSWERS_PATH = f"{API}/answers"
MOST_ANSWER_BYTES = 6 * (COMMENT_LENGTH + FLAG_LENGTH) + 4_000
"""The maximum size of a body with answers, in bytes. JSON may need six bytes per character."""


@dataclass(frozen=True, repr=False)
class Answers(Draft):
    """The answers to save; unanswered questions are left out."""

    __pydantic_config__ = ConfigDict(extra="forbid")
    item: Annotated[str, Field(max_length=300, description="The item's token, from your queue.")] = ""
    seen: Annotated[int, Field(description="The value of `saved` when the answers were loaded.")] = 0


def view_queue(reader: AnnotatorContext) -> dict[str, Any]:
    """Return the template's values for a queue; it has no lines for a maintainer who does not annotate.

    A line has a task and its parsed trajectory id. ``next`` is the address of the first unfinished
    trajectory, and ``undo`` is the address of the trajectory saved last. Either can be None.
    """
    tasks = own_tasks(reader)
    waiting = next_of(tasks)
    return {
        **progress_of(reader),
        "lines": [(task, TrajectoryId.parse(task.trajectory_id)) for task in tasks],
        "next": reader.address_of(waiting) if waiting else None,
    }


def progress_of(reader: AnnotatorContext, but: str = "") -> dict[str, Any]:
    """Return the template variables that describe a reader's progress.

    ``undo`` is the address of the last saved item that can still change, other than ``but``, or None.
    """
    tasks, undo = own_tasks(reader), undo_of(reader, but)
    return {
        "n_done": sum(task.is_done for task in tasks),
        "n_all": len(tasks),
        "undo": reader.address_of(undo) if undo else None,
        "time": describe_time(tasks),
    }


def own_tasks(reader: AnnotatorContext) -> tuple[AssignedTask, ...]:
    return reader.state.queue(reader.annotator) if reader.annotator else ()


def undo_of(reader: AnnotatorContext, but: str = "") -> str | None:
    """Return the id of the last saved trajectory that may still change, other than ``but``, or None."""
    last, found = 0, None
    for task in own_tasks(reader):
        if task.saved is None or task.trajectory_id == but:
            continue
        if task.saved.sequence > last and not reader.is_closed(task.trajectory_id):
            last, found = task.saved.sequence, task.trajectory_id
    return found


def describe_time(tasks: Sequence[AssignedTask]) -> str:
    """Return a phrase with the time spent and an estimate of the time left, or "" if nothing is done."""
    took = [task.saved.seconds for task in tasks if task.saved and task.is_done]
    if not took:
        return ""
    left = (len(tasks) - len(took)) * median(took)
    elapsed = f"{_minutes(sum(took))} spent"
    return f"{elapsed}, about {_minutes(left)} left" if len(took) < len(tasks) else elapsed


def _minutes(seconds: float) -> str:
    minutes = max(1, round(seconds / 60))
    return f"{minutes} min" if minutes < 100 else f"{minutes / 60:.1f} h"


def contradictions_of(suite: Suite) -> list[tuple[tuple[str, str], ...]]:
    """Return the `CONTRADICTIONS` that the answers to a suite's released questions can have.

    The page asks for confirmation before it saves such answers.
    """
    known = {(each.name, value) for each in suite.targets if not each.is_own for value in each.values}
    return [pair for pair in CONTRADICTIONS if known.issuperset(pair)]


def next_of(tasks: Sequence[AssignedTask], after: str = "") -> str | None:
    """Return the first unfinished trajectory after ``after``, wrapping around, or None if all are done."""
    ids = [task.trajectory_id for task in tasks]
    start = ids.index(after) + 1 if after in ids else 0
    ahead = [*tasks[start:], *tasks[:start]]
    return next((task.trajectory_id for task in ahead if not task.is_done), None)


def item_values(suite: Suite, story: Story, reader: AnnotatorContext, step: str) -> dict[str, Any]:
    """Return the template's values for annotating a trajectory, at the step that the URL asks for.

    ``task`` is None if the reader does not annotate the trajectory. ``token`` names the trajectory in every
    URL, since its id contains the agent's name.
    """
    trajectory_id = story.entry.trajectory_id
    task = next((task for task in own_tasks(reader) if task.trajectory_id == trajectory_id), None)
    token = reader.token(trajectory_id)
    asked_steps, asked_parts = suite.asked_in(trajectory_id)
    return {
        **story_values(story, API, step, item=token),
        **progress_of(reader, but=trajectory_id),
        "step_address": lambda place: link_to(PATH, item=token, step=place if place > 1 else ""),
        "suite": suite,
        "asked_steps": asked_steps,
        "asked_parts": asked_parts,
        "contradictions": contradictions_of(suite),
        "token": token,
        "task": task,
        "saved": task and task.saved,
        "is_closed": task is not None and reader.is_closed(trajectory_id),
    }


def build_annotation_pages(services: Services, pages: PageFrame) -> APIRouter:
    router, access = APIRouter(), services.access
    suite = services.submissions.suite

    @router.get(PATH, include_in_schema=False)
    def annotate(
        request: Request, item: Id = "", step: Annotated[str, Query(max_length=10)] = ""
    ) -> Response:
        """Show the queue or one item."""
        reader = pages.reader_or_refusal(request, access.reader, "Annotate", SIGN_IN, NOT_INVITED_PAGE)
        if isinstance(reader, HTMLResponse):
            return reader
        if not item:
            items = discussion_items(reader.state, reader.annotator, False)
            n_open = sum(bool(each.open) for each in items)
            values = {**view_queue(reader), "reader": reader, "n_open": n_open}
            values |= {"questions": suite.targets, "asked_in": suite.asked_in}
            return pages.answer("labels/queue.html", "Annotate", PATH, **values)
        try:
            story = services.trajectories.blind_story(reader.trajectory_of(item))
        except HTTPException as refused:
            return pages.refusal("You cannot see this page", NOT_ASSIGNED, PATH, refused.status_code)
        except KeyError:
            return pages.refusal("This trajectory cannot be shown", NOT_IN_DATASET, PATH, 404)
        except TrajectoriesUnavailable as problem:
            return pages.refusal("This trajectory cannot be shown now", f"{problem}.", PATH, 503)
        title, values = f"Annotate {story.entry.task}", item_values(suite, story, reader, step)
        return pages.answer("labels/item.html", title, PATH, **values)

    return router


def build_annotation_router(services: Services) -> APIRouter:
    """Return the routes for annotators. Maintainers may also read screenshots and trees."""
    router, annotations, access = APIRouter(), services.annotations, services.access
    Annotator = Annotated[AnnotatorContext, Depends(access.annotator)]

    @router.get(API, summary="Your queue: what is assigned to you, and your progress")
    def queue(reader: Annotator) -> JSONResponse:
        """An unfinished item has a token instead of its id, because the id contains the agent's name."""
        tasks = own_tasks(reader)
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
    def own(reader: Annotator, item: Id = "") -> JSONResponse:
        task = _task(reader, reader.trajectory_of(item))
        found = {**_answers_response(task.saved), "is_closed": reader.is_closed(task.trajectory_id)}
        return JSONResponse(found, headers=NO_STORE)

    @router.put(ANSWERS_PATH, summary="Save your answers on a trajectory, finished or not")
    def save(reader: Annotator, body: Answers) -> JSONResponse:
        """As ``seen``, send the value of ``saved`` that the previous response contained.

        The status 409 means that another window or device has saved since then. ``next`` is the item to
        continue with.
        """
        trajectory_id = reader.trajectory_of(body.item)
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

    def visible_story(reader: Annotated[AnnotatorContext, Depends(access.reader)], item: Id = "") -> str:
        return reader.trajectory_of(item)

    StoryId = Annotated[str, Depends(visible_story)]
    add_story_routes(router, API, services.trajectories, StoryId, "a trajectory in your queue", OWN_FOR_GOOD)
    return router


def _task(reader: AnnotatorContext, trajectory_id: str) -> AssignedTask:
    for task in own_tasks(reader):
        if task.trajectory_id == trajectory_id:
            return task
    raise HTTPException(403, NOT_YOURS)


def _answers_response(saved: SavedAnswers | None) -> dict[str, Any]:
    draft = saved or Draft()
    names = ("comment", "seconds", "is_done", "step", "flag", "is_skipped")
    found = {name: getattr(draft, name) for name in names}
    found |= {"steps": draft.answered_steps, "parts": draft.answered_parts}
    return {"answers": dict(draft.answers), **found, "saved": saved.sequence if saved else 0}
