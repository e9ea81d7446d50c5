"""The discussion of annotations: answers side by side, decisions, agreement, boards before and after."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from leaderboard.board.board import Board, BoardRow
from leaderboard.labels.agreement import Agreement, QuestionAgreement, agreement_json
from space.pages.annotate.access import Access, AnnotatorContext
from space.pages.labels import with_questions
from space.pages.trajectories.filters import benchmark_title
from space.web.http_errors import NO_STORE, REFUSALS, recorded, require_open
from submissions.labels.annotation_actions import REASON_LENGTH
from submissions.labels.annotation_service import AnnotationService
from submissions.labels.annotation_state import AnnotationState, DiscussionItem, discussion_items


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
        ("Two people", [(f"{pair.first}, {pair.second}", pair.agreement) for pair in found.by_pair]),
        ("Week", [(period.name, period.agreement) for period in found.over_time]),
    )
    return [group for group in groups if group[1]]


@dataclass(frozen=True)
class FlaggedItem:
    """A trajectory that an annotator wants maintainers to look at, and why."""

    trajectory_id: str
    annotator: str
    reason: str
    is_done: bool


def flagged(state: AnnotationState, blind: Collection[str]) -> list[FlaggedItem]:
    """What annotators flagged, the newest first; nothing that the reader has yet to answer (``blind``)."""
    found = [
        (saved.sequence, FlaggedItem(name, who, saved.flag, saved.is_done))
        for (name, who), saved in state.saved.items()
        if saved.flag and name not in blind
    ]
    return [item for _, item in sorted(found, key=lambda each: -each[0])]


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
    router = APIRouter(responses=REFUSALS)
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
                    question: [{"answer": d.answer, "reason": d.reason, "by": d.by} for d in decisions]
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
        annotations.actions.resolve(body.trajectory_id, body.question, body.answer, body.reason, reader.actor)
        return recorded(service, question=body.question)

    return router
