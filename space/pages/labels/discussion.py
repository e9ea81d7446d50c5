"""``/discuss``: the discussion of annotators and the work of maintainers, as a page and over REST.

It shows answers side by side, decisions, agreement, and the boards before and after a new label set.
Maintainers invite, assign and publish here. The page differs for every reader and is never cached.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

from fastapi import APIRouter, Body, Depends, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import Field

from arb.core.ids import TrajectoryId
from arb.core.judge_info import NAME_LENGTH
from leaderboard.board.board import Board, BoardRow
from leaderboard.labels.agreement import agreement_json
from leaderboard.score import Score
from space.pages.labels.access import NOT_INVITED_PAGE, SIGN_IN, AnnotatorContext
from space.pages.labels.disputes import with_questions
from space.pages.trajectories.dataset import Explorer, TrajectoriesUnavailable
from space.services import Services
from space.web.frame import PageFrame
from space.web.http_errors import NO_STORE, RequestBody, recorded, require_open
from submissions.labels.annotation_service import REASON_LENGTH, AnnotationService, progress_of_annotators
from submissions.labels.annotation_state import AnnotationState, discussion_items
from submissions.labels.assignment import gold_agreement, gold_candidates
from submissions.labels.decisions import Rule
from submissions.labels.versions import have_questions_changed, published_versions
from submissions.scoring.rescore import REASON_LENGTH as WHY_LENGTH
from submissions.scoring.rescore import rescore, rescorings

PATH: Final = "/discuss"
API: Final = "/api/discuss"


def build_discussion_pages(services: Services, pages: PageFrame) -> APIRouter:
    router, annotations = APIRouter(), services.annotations

    @router.get(PATH, include_in_schema=False)
    def discuss(request: Request) -> Response:
        reader = pages.reader_or_refusal(
            request, services.access.reader, "Discuss", SIGN_IN, NOT_INVITED_PAGE
        )
        if isinstance(reader, HTMLResponse):
            return reader
        items = discussion_items(reader.state, reader.annotator, reader.actor.is_maintainer)
        open_first = sorted(items, key=lambda each: (not each.open, each.item.trajectory_id))
        return pages.answer(
            "labels/discuss.html",
            "Discuss",
            PATH,
            discussions=[
                (each, _goal(services.trajectories, each.item.trajectory_id)) for each in open_first
            ],
            questions=annotations.service.suite.targets,
            task_of=lambda trajectory_id: TrajectoryId.parse(trajectory_id).task,
            reader=reader,
            **(_for_maintainers(annotations, reader) if reader.actor.is_maintainer else {}),
        )

    return router


def _goal(explorer: Explorer, trajectory_id: str) -> str:
    try:
        return explorer.holding(trajectory_id).entry(trajectory_id).goal
    except (KeyError, TrajectoriesUnavailable):
        return ""


def _for_maintainers(annotations: AnnotationService, reader: AnnotatorContext) -> dict[str, Any]:
    service, state = annotations.service, reader.state
    blind = state.blind_items(reader.annotator) if reader.annotator else frozenset()
    versions = published_versions(service.engine, service.suite.name)
    annotated = {trajectory_id for trajectory_id, _ in state.saved}
    last = rescorings(service)[-1:]
    boards = [service.records.board_under(event.body[name]) for event in last for name in ("from", "to")]
    return {
        "main": service.suite.main_target,
        "people": progress_of_annotators(state),
        "report": annotations.agreement(),
        "questions_changed": have_questions_changed(service.suite, versions),
        "versions": list(enumerate(versions, start=1))[::-1],
        "n_done": sum(len(state.finished(trajectory_id)) for trajectory_id in annotated),
        "flags": flagged(state, blind),
        "gold": gold_agreement(state),
        "gold_items": sorted(set(state.gold) - blind),
        "gold_candidates": [name for name in gold_candidates(state) if name not in blind],
        "rescored": last[0].body if last else None,
        "boards": compare_boards(*boards) if boards else (),
    }


def flagged(state: AnnotationState, blind: Collection[str]) -> list[dict[str, Any]]:
    """Return flagged trajectories that are not in ``blind``, with annotator and answers, newest first."""
    found = [
        {"trajectory_id": name, "annotator": who, "saved": saved}
        for (name, who), saved in state.saved.items()
        if saved.flag and name not in blind
    ]
    return sorted(found, key=lambda each: -each["saved"].sequence)


def compare_boards(before: Board, after: Board) -> list[tuple[BoardRow, Score | None, Score | None]]:
    """Return the scored rows of the newer board, with their scores on the main target on both boards."""
    main = after.main.name
    old = {row.id: row.labels.get(main) for row in before.rows}
    return [(row, old.get(row.id), row.labels.get(main)) for row in after.rows if row.provenance == "scored"]


class DiscussionDecision(RequestBody):
    """The decision on a question of a trajectory."""

    trajectory_id: str = Field(max_length=300)
    question: str
    answer: str = Field(max_length=40, description="One of the answers to the question, or unsure.")
    reason: str = Field(max_length=REASON_LENGTH, description="The reason; stored with the record.")


def build_discussion_router(services: Services) -> APIRouter:
    """Return the routes: annotators discuss items that they have finished, maintainers do the rest."""
    router, annotations, access = APIRouter(), services.annotations, services.access
    service = annotations.service
    Reader = Annotated[AnnotatorContext, Depends(access.reader)]
    Maintainer = Annotated[AnnotatorContext, Depends(access.maintainer)]
    if TYPE_CHECKING:
        Decision: TypeAlias = DiscussionDecision
    else:  # the schema lists the questions of the suite
        Decision = with_questions(DiscussionDecision, service.suite)

    @router.get(API, summary="The open questions that you may see")
    def discussion(reader: Reader) -> JSONResponse:
        """You never see other people's answers to a question that you still have to answer yourself."""
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

    @router.get(f"{API}/agreement", summary="Inter-annotator agreement; for maintainers")
    def agreement(reader: Maintainer) -> JSONResponse:
        return JSONResponse(agreement_json(annotations.agreement()), headers=NO_STORE)

    @router.post(
        f"{API}/decisions", summary="Decide a question that annotators answered differently or with Unsure"
    )
    def decide(reader: Reader, body: Decision) -> JSONResponse:
        """The latest decision counts; earlier ones stay in the records."""
        require_open(service)
        annotations.resolve(body.trajectory_id, body.question, body.answer, body.reason, reader.actor)
        return recorded(service, question=body.question)

    _add_maintainers_routes(router, services)
    return router


class Invitation(RequestBody):
    """An account to invite, or whose invitation to end."""

    account: str = Field(max_length=NAME_LENGTH, description="The name with which the account signs in.")


class Assigning(RequestBody):
    """What to assign to the invited annotators."""

    split: Literal["test", "dev", "both"] = Field("test", description="The split of the trajectories.")
    most: int | Literal[""] = Field(
        "", description="How many unassigned trajectories, spread evenly over the benchmarks. Empty for all."
    )
    percent_twice: float = Field(
        10, ge=0, le=100, description="The percentage of assigned trajectories that get a second annotation."
    )
    times: int | Literal[""] = Field(
        "", description="How many people annotate every trajectory. Empty: some are annotated twice."
    )
    percent_gold: float = Field(
        0, ge=0, le=100, description="The percentage of gold items on top of what each annotator gets."
    )
    seed: int = Field(1, ge=0, lt=2**31, description="Seed of the random assignment.")


class GoldMark(RequestBody):
    """Whether a trajectory is a gold item."""

    trajectory_id: str = Field(max_length=300)
    gold: Literal["yes", "no"] = Field("yes", description="no: it is no longer assigned to anyone.")


class PublicationForm(RequestBody):
    """The reason for a new label set."""

    why: str = Field(max_length=WHY_LENGTH, description="What changed and why, for the change log.")
    with_open: Literal["yes", "no"] = Field(
        "no", description="yes: the first annotator's answer is the label of an open question."
    )


class RuleForm(RequestBody):
    """A rule that decides open questions."""

    rule: Rule = Field(
        description="majority: the answer of more than half of the annotators. median: the middle answer to "
        "ordered questions, the majority for others."
    )


def _add_maintainers_routes(router: APIRouter, services: Services) -> None:
    annotations, service = services.annotations, services.submissions
    Maintainer = Annotated[AnnotatorContext, Depends(services.access.maintainer)]

    @router.post(f"{API}/invite", summary="Invite an account to annotate; for maintainers")
    def invite(reader: Maintainer, body: Invitation) -> JSONResponse:
        require_open(service)
        annotator = annotations.invite(body.account, reader.actor)
        return recorded(service, annotator=annotator)

    @router.post(f"{API}/uninvite", summary="End an invitation; for maintainers")
    def uninvite(reader: Maintainer, body: Invitation) -> JSONResponse:
        """Finished annotations stay; the next assignment gives the rest to others."""
        require_open(service)
        annotations.uninvite(body.account, reader.actor)
        return recorded(service)

    @router.post(f"{API}/assign", summary="Assign trajectories to the invited annotators; for maintainers")
    def assign(
        reader: Maintainer, body: Annotated[Assigning, Body(default_factory=Assigning)]
    ) -> JSONResponse:
        """Earlier assignments stay. Trajectories that the dataset does not have are left out."""
        available = {name for dataset in services.trajectories.datasets() for name in dataset.index.by_id}
        most = None if body.most == "" else body.most
        require_open(service)
        shares = body.percent_twice / 100, body.percent_gold / 100
        added = annotations.assign(
            body.split, most, shares[0], body.seed, available, reader.actor, gold_share=shares[1],
            times=None if body.times == "" else body.times,
        )  # fmt: skip
        return recorded(service, assignments=added)

    @router.post(f"{API}/rule", summary="Decide all open questions by a rule; for maintainers")
    def decide_by_rule(reader: Maintainer, body: RuleForm) -> JSONResponse:
        """A question stays open if the rule gives no answer, such as one yes and one no."""
        require_open(service)
        n_decided, n_open = annotations.resolve_by_rule(body.rule, reader.actor)
        return recorded(service, decided=n_decided, open=n_open)

    @router.post(
        f"{API}/gold", summary="Mark or unmark a finished trajectory as a gold item; for maintainers"
    )
    def mark_gold(reader: Maintainer, body: GoldMark) -> JSONResponse:
        """The trajectory's current answers become the known ones. Queues show it like any other item."""
        require_open(service)
        annotations.mark_gold(body.trajectory_id, reader.actor, body.gold == "yes")
        return recorded(service, trajectory_id=body.trajectory_id)

    @router.post(f"{API}/publish", summary="Publish the current label set as a new version; for maintainers")
    def publish(reader: Maintainer, body: PublicationForm) -> JSONResponse:
        """If the Space uses these labels for scoring, every submission is scored again immediately."""
        require_open(service)
        version = annotations.publish(reader.actor, body.why, body.with_open == "yes")
        found: dict[str, Any] = {
            "version": version.version,
            "labelled": version.labelled,
            "changes": dict(version.changes),
            "questions_changed": version.questions_changed,
        }
        if service.label_version == version.version:
            found["rescored"] = rescore(service, reader.actor).to_json()
        return recorded(service, **found)
