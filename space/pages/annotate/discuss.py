"""The discussion of annotations: answers side by side, decisions, agreement, boards before and after."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from core.ids import TrajectoryId
from leaderboard.board.board import Board
from leaderboard.labels.agreement import Agreement, AgreementReport, QuestionAgreement, agreement_json
from leaderboard.labels.annotations import ANSWERS
from space.pages.annotate.access import Access, AnnotatorContext
from space.pages.annotate.guidelines import BY_NAME, QUESTIONS_ASKED, Question
from space.pages.annotate.item import address_of
from space.pages.trajectories.filters import benchmark_title
from space.web.http_errors import NO_STORE, REFUSALS, require_open, wait_until_durable
from submissions.labels.annotation_actions import REASON_LENGTH
from submissions.labels.annotation_service import AnnotationService
from submissions.labels.annotation_state import AnnotationState, Decision, DiscussionItem, discussion_items


@dataclass(frozen=True)
class QuestionRow:
    """A question of a trajectory: every annotator's answer in words, and what was decided."""

    question: Question
    answers: tuple[str, ...]
    is_disputed: bool
    is_open: bool
    decisions: tuple[tuple[str, Decision], ...]


@dataclass(frozen=True)
class DiscussionView:
    """A trajectory that is talked about."""

    trajectory_id: str
    address: str
    benchmark: str
    task: str
    goal: str
    people: tuple[str, ...]
    comments: tuple[tuple[str, str], ...]
    rows: tuple[QuestionRow, ...]

    @property
    def is_open(self) -> bool:
        """Whether a question waits for a decision."""
        return any(row.is_open for row in self.rows)


def view_discussion(discussion: DiscussionItem, goal: str) -> DiscussionView:
    """An item of the discussion with its answers in words."""
    item = discussion.item
    people = tuple(who or "not known" for who in item.annotators)
    return DiscussionView(
        trajectory_id=item.trajectory_id,
        address=address_of(item.trajectory_id),
        benchmark=benchmark_title(item.benchmark),
        task=TrajectoryId.parse(item.trajectory_id).task,
        goal=goal,
        people=people,
        comments=tuple((who, said) for who, said in zip(people, discussion.comments, strict=True) if said),
        rows=tuple(
            QuestionRow(
                question=question,
                answers=tuple(question.words(answer) for answer in item.answers[question.name]),
                is_disputed=question.name in (*item.disagreeing, *item.unsure),
                is_open=question.name in discussion.open,
                decisions=tuple(
                    (question.words(decision.answer), decision)
                    for decision in discussion.decisions.get(question.name, ())
                ),
            )
            for question in QUESTIONS_ASKED
        ),
    )


def view_discussions(
    discussions: Sequence[DiscussionItem], goal_of: Callable[[str], str]
) -> list[DiscussionView]:
    """All of them, those with an open question first."""
    found = [
        view_discussion(discussion, goal_of(discussion.item.trajectory_id)) for discussion in discussions
    ]
    return sorted(found, key=lambda view: (not view.is_open, view.trajectory_id))


@dataclass(frozen=True)
class AnnotatorProgress:
    """An annotator for maintainers: account, how far they are, how long a trajectory takes (median)."""

    annotator: str
    account: str
    is_active: bool
    n_done: int
    n_assigned: int
    seconds: float | None


def view_annotators(state: AnnotationState) -> list[AnnotatorProgress]:
    """Everybody who was ever invited, in the order of their ids."""
    found = []
    for annotator, account in state.accounts.items():
        tasks = state.queue(annotator)
        took = [task.given.seconds for task in tasks if task.given and task.is_done]
        found.append(
            AnnotatorProgress(
                annotator, account, annotator in state.active, len(took), len(tasks),
                median(took) if took else None,
            )
        )  # fmt: skip
    return found


@dataclass(frozen=True)
class Figure:
    """Agreement of one group of doubles, as it is written: a dash where a figure is not defined."""

    name: str
    pairs: int
    percent: str
    kappa: str
    alpha: str
    left_out: int


@dataclass(frozen=True)
class AgreementView:
    """Agreement on one question: over all, then by benchmark, by two people, by week."""

    question: Question
    overall: Figure
    parts: tuple[tuple[str, tuple[Figure, ...]], ...]
    grades: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]


def view_agreement(report: AgreementReport) -> list[AgreementView]:
    """The report in words and figures."""
    return [_agreement(BY_NAME[name], found) for name, found in report.questions.items()]


def _agreement(question: Question, found: QuestionAgreement) -> AgreementView:
    parts = (
        ("Benchmark", [(benchmark_title(name), each) for name, each in found.by_benchmark.items()]),
        ("Two people", [(f"{pair.first}, {pair.second}", pair.agreement) for pair in found.by_pair]),
        ("Week", [(period.name, period.agreement) for period in found.over_time]),
    )
    return AgreementView(
        question=question,
        overall=_figure("All", found.overall),
        parts=tuple((title, tuple(_figure(*each) for each in rows)) for title, rows in parts if rows),
        grades=tuple(question.words(answer) for answer in ANSWERS[question.name]),
        confusion=found.confusion,
    )


def _figure(name: str, found: Agreement) -> Figure:
    percent = "–" if found.percent is None else f"{100 * found.percent:.1f} %"
    kappa, alpha = ("–" if value is None else f"{value:.2f}" for value in (found.kappa, found.alpha))
    return Figure(name, found.pairs, percent, kappa, alpha, found.left_out)


@dataclass(frozen=True)
class RankComparison:
    """A row of the board before and after: place and precision on success; None where it has none."""

    judge: str
    account: str
    place_before: int | None
    place_after: int | None
    precision_before: str
    precision_after: str


def view_boards(before: Board, after: Board) -> list[RankComparison]:
    """The scored rows of two boards beside each other, in the order of the newer one."""
    old = {row.id: row.labels.get("success") for row in before.rows}
    return [
        RankComparison(
            row.judge, row.account, _place(old.get(row.id)), _place(row.labels.get("success")),
            _precision(old.get(row.id)), _precision(row.labels.get("success")),
        )
        for row in after.rows
        if row.provenance == "scored"
    ]  # fmt: skip


def _place(found: Mapping | None) -> int | None:
    return found["rank"]["place"] if found and found["rank"] else None


def _precision(found: Mapping | None) -> str:
    value = found["overall"].get("precision") if found else None
    return "–" if value is None else f"{100 * value:.1f} %"


DISCUSSION_API = "/api/discuss"


class DiscussionDecision(BaseModel):
    """The decision on a question of a trajectory."""

    model_config = ConfigDict(extra="forbid")
    trajectory_id: str = Field(max_length=300)
    question: Literal["success", "side_effect", "repetition", "optimality"]
    answer: str = Field(max_length=10, description="yes, no, 1 to 4, or unsure.")
    reason: str = Field(max_length=REASON_LENGTH, description="Why; stored with the record.")


def build_discussion_router(annotations: AnnotationService, access: Access) -> APIRouter:
    """The routes: the discussion for maintainers and who has done the item, agreement for maintainers."""
    router = APIRouter()
    service = annotations.service
    Reader = Annotated[AnnotatorContext, Depends(access.reader)]
    Maintainer = Annotated[AnnotatorContext, Depends(access.maintainer)]

    @router.get(DISCUSSION_API, summary="The open questions that you may see", responses=REFUSALS)
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

    @router.get(
        f"{DISCUSSION_API}/agreement",
        summary="Inter-annotator agreement; for maintainers",
        responses=REFUSALS,
    )
    def agreement(request: Request, reader: Maintainer) -> JSONResponse:
        return JSONResponse(agreement_json(annotations.agreement()), headers=NO_STORE)

    @router.post(
        f"{DISCUSSION_API}/decisions",
        summary="Decide a question that annotators answered differently or with Unsure",
        responses=REFUSALS,
    )
    def decide(reader: Reader, body: DiscussionDecision) -> JSONResponse:
        """The latest decision counts; earlier ones stay in the records."""
        require_open(annotations.service)
        annotations.actions.resolve(body.trajectory_id, body.question, body.answer, body.reason, reader.actor)
        return JSONResponse(
            {"question": body.question, "lasts": wait_until_durable(service)}, headers=NO_STORE
        )

    return router
