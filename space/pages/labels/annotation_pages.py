"""``/annotate`` and ``/discuss``: pages that are another one for every reader, and never kept by a cache.

A discussion has answers side by side, decisions, agreement, and boards before and after.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from pydantic import BaseModel, ConfigDict, Field

from arb.core.ids import TrajectoryId
from arb.core.suite import Suite
from leaderboard.board.board import Board, BoardRow
from leaderboard.labels.agreement import Agreement, QuestionAgreement, agreement_json
from space.pages.labels.access import PATH, Access, AnnotatorContext
from space.pages.labels.annotation_item import view_item, view_queue
from space.pages.labels.disputes import with_questions
from space.pages.trajectories.dataset import Explorer, TrajectoriesUnavailable
from space.pages.trajectories.filters import benchmark_title
from space.web.frame import PageFrame
from space.web.http_errors import ERROR_RESPONSES, NO_STORE, recorded, require_open
from submissions.labels.annotation_service import REASON_LENGTH, AnnotationService, progress_of_annotators
from submissions.labels.annotation_state import AnnotationState, DiscussionItem, discussion_items
from submissions.labels.assignment import gold_agreement, gold_candidates
from submissions.labels.versions import have_questions_changed, published_versions
from submissions.scoring.rescore import rescorings

DISCUSS = "/discuss"
SIGN_IN = "Sign in with the account that was invited."
NOT_INVITED = (
    "Only annotators and maintainers can see this page. Maintainers invite annotators by the name of "
    "their account."
)
NOT_IN_DATASET = "The dataset of this Space does not have it."
NOT_YOURS = "This trajectory is not assigned to you, or it does not exist."
Step = Annotated[str, Query(max_length=10)]
Id = Annotated[str, Query(max_length=300)]


def build_annotating_pages(
    annotations: AnnotationService, explorer: Explorer, access: Access, pages: PageFrame
) -> APIRouter:
    """The routes; a reader whom nobody knows is asked to sign in."""
    router = APIRouter()
    suite = annotations.service.suite

    @router.get(PATH, include_in_schema=False)
    def annotate(request: Request, item: Id = "", id: Id = "", step: Step = "") -> Response:
        """``id``, the trajectory's own, is how addresses were before they were blind."""
        reader = pages.reader_or_refusal(request, access.reader, "Annotate", SIGN_IN, NOT_INVITED)
        if isinstance(reader, HTMLResponse):
            return reader
        if item or id:
            return _item_page(pages, suite, explorer, reader, item, id, step)
        return _queue_page(pages, suite, reader)

    @router.get(DISCUSS, include_in_schema=False)
    def discuss(request: Request) -> Response:
        reader = pages.reader_or_refusal(request, access.reader, "Discuss", SIGN_IN, NOT_INVITED)
        if isinstance(reader, HTMLResponse):
            return reader
        items = discussion_items(reader.state, reader.annotator, reader.actor.is_maintainer)
        return pages.answer(
            "labels/discuss.html",
            "Discuss",
            DISCUSS,
            discussions=discussions_in_order(items, partial(_goal, explorer)),
            questions=suite.questions,
            benchmark_title=benchmark_title,
            task_of=lambda trajectory_id: TrajectoryId.parse(trajectory_id).task,
            reader=reader,
            **(_for_maintainers(annotations, reader) if reader.actor.is_maintainer else {}),
        )

    return router


def _queue_page(pages: PageFrame, suite: Suite, reader: AnnotatorContext) -> HTMLResponse:
    items = discussion_items(reader.state, reader.annotator, False)
    return pages.answer(
        "labels/queue.html",
        "Annotate",
        PATH,
        view=view_queue(reader),
        questions=suite.questions,
        reader=reader,
        n_open=sum(bool(item.open) for item in items),
    )


def _item_page(
    pages: PageFrame,
    suite: Suite,
    explorer: Explorer,
    reader: AnnotatorContext,
    item: str,
    id: str,
    step: str,
) -> Response:
    try:
        trajectory_id = reader.named(item, id)
        reader.require_story_access(trajectory_id)
        if not item:
            return RedirectResponse(reader.address_of(trajectory_id), 303, {"Cache-Control": "no-store"})
        story = explorer.blind_story(trajectory_id)
    except HTTPException as refused:
        return pages.refusal("You cannot see this page", NOT_YOURS, PATH, refused.status_code)
    except KeyError:
        return pages.refusal("This trajectory cannot be shown", NOT_IN_DATASET, PATH, 404)
    except TrajectoriesUnavailable as problem:
        return pages.refusal("This trajectory cannot be shown now", f"{problem}.", PATH, 503)
    view = view_item(suite, story, reader, step)
    return pages.answer("labels/item.html", view.title, PATH, view=view, story=story)


def _goal(explorer: Explorer, trajectory_id: str) -> str:
    try:
        return explorer.holding(trajectory_id).entry(trajectory_id).goal
    except (KeyError, TrajectoriesUnavailable):
        return ""


def _for_maintainers(annotations: AnnotationService, reader: AnnotatorContext) -> dict[str, Any]:
    """What only maintainers see below the discussion."""
    service, state = annotations.service, reader.state
    blind = state.blind_items(reader.annotator) if reader.annotator else frozenset()
    versions = published_versions(service.engine, service.suite.name)
    last = rescorings(service)[-1:]
    boards = [service.records.board_under(event.body[name]) for event in last for name in ("from", "to")]
    return {
        "people": progress_of_annotators(state),
        "report": annotations.agreement(),
        "agreement_groups": agreement_groups,
        "questions_changed": have_questions_changed(service.suite, versions),
        "versions": list(enumerate(versions, start=1))[::-1],
        "n_done": sum(len(state.finished(name)) for name in {name for name, _ in state.saved}),
        "flags": flagged(state, blind),
        "gold": gold_agreement(state),
        "gold_items": sorted(set(state.gold) - blind),
        "gold_candidates": [name for name in gold_candidates(state) if name not in blind],
        "rescored": last[0].body if last else None,
        "boards": compare_boards(*boards) if boards else (),
    }


def discussions_in_order(
    discussions: Sequence[DiscussionItem], goal_of: Callable[[str], str]
) -> list[tuple[DiscussionItem, str]]:
    """Each discussion with the goal of its trajectory, those with an open question first."""
    found = sorted(discussions, key=lambda each: (not each.open, each.item.trajectory_id))
    return [(each, goal_of(each.item.trajectory_id)) for each in found]


def agreement_groups(found: QuestionAgreement) -> list[tuple[str, list[tuple[str, Agreement]]]]:
    """Agreement on one question by benchmark, by two people, by week, as (heading, rows); no empty group."""
    groups = (
        ("Benchmark", [(benchmark_title(name), each) for name, each in found.by_benchmark.items()]),
        ("Two people", [(", ".join(annotators), each) for annotators, each in found.by_pair.items()]),
        ("Week", list(found.over_time.items())),
    )
    return [group for group in groups if group[1]]


def flagged(state: AnnotationState, blind: Collection[str]) -> list[dict[str, Any]]:
    """Return what annotators flagged and why, newest first, without what the reader has yet to answer."""
    found = [
        {"trajectory_id": name, "annotator": who, "saved": saved}
        for (name, who), saved in state.saved.items()
        if saved.flag and name not in blind
    ]
    return sorted(found, key=lambda each: -each["saved"].sequence)


LabelFigures = Mapping[str, Any]
"""What the board holds of a row under a label."""


def compare_boards(
    before: Board, after: Board
) -> list[tuple[BoardRow, LabelFigures | None, LabelFigures | None]]:
    """The scored rows of the newer board in their order, with what either board says of their success."""
    old = {row.id: row.labels.get("success") for row in before.rows}
    return [
        (row, old.get(row.id), row.labels.get("success")) for row in after.rows if row.provenance == "scored"
    ]


DISCUSSION_API = "/api/discuss"


class DiscussionDecision(BaseModel):
    """The decision on a question of a trajectory."""

    model_config = ConfigDict(extra="forbid")
    trajectory_id: str = Field(max_length=300)
    question: str
    answer: str = Field(max_length=40, description="One of the answers to the question, or unsure.")
    reason: str = Field(max_length=REASON_LENGTH, description="Why; stored with the record.")


def build_discussion_router(annotations: AnnotationService, access: Access) -> APIRouter:
    """The routes: the discussion for maintainers and who has done the item, agreement for maintainers."""
    router = APIRouter(responses=ERROR_RESPONSES)
    service = annotations.service
    Reader = Annotated[AnnotatorContext, Depends(access.reader)]
    Maintainer = Annotated[AnnotatorContext, Depends(access.maintainer)]
    Decision = with_questions(DiscussionDecision, service.suite)

    @router.get(DISCUSSION_API, summary="The open questions that you may see")
    def discussion(reader: Reader) -> JSONResponse:
        """Never contains the answers of others to what you have yet to answer yourself."""
        found = [
            {
                "trajectory_id": discussion.item.trajectory_id,
                "annotators": discussion.item.annotators,
                "answers": dict(discussion.item.answers),
                "comments": discussion.comments,
                "open": discussion.open,
                "decisions": {
                    question: [{"answer": d.value, "reason": d.reason, "by": d.by} for d in decisions]
                    for question, decisions in discussion.decisions.items()
                },
            }
            for discussion in discussion_items(reader.state, reader.annotator, reader.actor.is_maintainer)
        ]
        return JSONResponse({"items": found}, headers=NO_STORE)

    @router.get(f"{DISCUSSION_API}/agreement", summary="Inter-annotator agreement; for maintainers")
    def agreement(reader: Maintainer) -> JSONResponse:
        return JSONResponse(agreement_json(annotations.agreement()), headers=NO_STORE)

    @router.post(
        f"{DISCUSSION_API}/decisions",
        summary="Decide a question that annotators answered differently or with Unsure",
    )
    def decide(reader: Reader, body: Decision) -> JSONResponse:
        """The latest decision counts; earlier ones stay in the records."""
        require_open(service)
        annotations.resolve(body.trajectory_id, body.question, body.answer, body.reason, reader.actor)
        return recorded(service, question=body.question)

    return router
