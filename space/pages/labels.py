"""``/disputes`` and ``/labels``: disputes of labels with their decisions, and the published label versions.

Where labels are private, a dispute of a test trajectory and a changed label together would disclose it:
readers then see only that something was decided, and the form is blind, without the labels it is about.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, create_model

from arb.core.suite import Suite
from arb.core.suites.questions import UNSURE
from space.auth.auth import Auth
from space.pages.annotate.access import IN_YOUR_QUEUE, BlindItems
from space.pages.maintain.api import RescoringJob
from space.pages.trajectories.index import Labels
from space.web.cells import origin, short_name
from space.web.frame import PageFrame
from space.web.http_errors import NO_STORE, REFUSALS, recorded, require_open
from space.web.query import link_to
from submissions.errors import SubmissionError
from submissions.intake.accounts import Actor
from submissions.labels.corrections import next_labels, outdated_dev_labels
from submissions.labels.versions import Correction, have_questions_changed, published_versions
from submissions.moderation.overview import judge_names
from submissions.moderation.reader_actions import DISPUTES_A_DAY, REASON_LENGTH, TEXT_LENGTH, ReaderActions
from submissions.records.event_log import Event
from submissions.records.statuses import DECISIONS, Decision, Dispute, DisputeView, view_dispute
from submissions.scoring.rescore import REASON_LENGTH as WHY_LENGTH
from submissions.scoring.rescore import label_effects, rescorings
from submissions.service import SubmissionService

PATH: Final = "/disputes"
API: Final = "/api/disputes"
VERSIONS_PATH: Final = "/labels"
MOST: Final = 200
"""Disputes in an answer of REST."""
ON_A_PAGE: Final = 25
MOST_RESCORINGS: Final = 10
NO_TRAJECTORY = "the suite has no such trajectory: name it <benchmark>/<agent>/<task_id>"
NO_DISPUTE = "there is no such dispute"


class NewDispute(BaseModel):
    """A dispute of one label of one trajectory."""

    model_config = ConfigDict(extra="forbid")
    trajectory_id: str = Field(max_length=300, description="`<benchmark>/<agent>/<task_id>`.")
    question: str = Field(description="The question whose answer is disputed.")
    text: str = Field(max_length=TEXT_LENGTH, description="What is wrong, and where it can be seen.")


class DisputeDecision(BaseModel):
    """What a maintainer decides of a dispute."""

    model_config = ConfigDict(extra="forbid")
    decision: Decision = Field(
        description="corrected: the label was wrong; kept: it is right; declined: not examined."
    )
    reason: str = Field(max_length=REASON_LENGTH, description="Why; stored with the decision.")
    answer: str = Field("", max_length=40, description="The right answer, where it is corrected.")
    seen: int | None = Field(
        None, description="The value of `n_decisions` when the dispute was loaded; 409 where it has grown."
    )


def with_questions(model: type[BaseModel], suite: Suite) -> type[BaseModel]:
    """A body whose ``question`` is one of the suite's."""
    names = tuple(question.name for question in suite.questions)
    field = model.model_fields["question"]
    return create_model(
        model.__name__, __base__=model, __doc__=model.__doc__, question=(Literal[names], field)
    )


def visible_disputes(
    service: SubmissionService,
    actions: ReaderActions,
    is_maintainer: bool,
    blind: BlindItems,
    trajectory_id: str = "",
    state: str = "",
) -> list[DisputeView]:
    """The disputes as a reader may see them, newest first: of one trajectory, open or decided, if asked.

    Without those of trajectories that the reader has yet to annotate.
    """
    found = service.suite.find(trajectory_id) if trajectory_id else None
    wanted = found.trajectory_id if found else trajectory_id

    def is_wanted(dispute: Dispute) -> bool:
        is_of_state = not state or (dispute.decided is None) == (state == "open")
        is_visible = is_of_state and not blind.hides(dispute.trajectory_id)
        return is_visible and (not wanted or dispute.trajectory_id == wanted)

    public = service.suite.labels_are_public
    return [
        view_dispute(each, public, is_maintainer) for each in reversed(actions.disputes()) if is_wanted(each)
    ]


def build_disputes_router(
    service: SubmissionService,
    auth: Auth,
    actions: ReaderActions,
    blind_items: Callable[[Request], BlindItems],
) -> APIRouter:
    """The routes over a service."""
    router = APIRouter()
    Known = Annotated[Actor, Depends(auth.require_actor)]
    Maintainer = Annotated[Actor, Depends(auth.require_maintainer)]
    Body = with_questions(NewDispute, service.suite)

    @router.post(
        "/api/disputes",
        summary="Dispute a label of a trajectory",
        status_code=201,
        responses=REFUSALS,
    )
    def dispute(actor: Known, body: Body) -> JSONResponse:
        """For any account, with a daily limit. Where labels are private, only maintainers can read the text
        of a dispute about a test trajectory."""
        require_open(service)
        try:
            record = actions.dispute(body.trajectory_id, body.question, body.text, actor)
        except KeyError:
            raise HTTPException(404, NO_TRAJECTORY) from None
        return recorded(service, 201, dispute_id=record.body["dispute_id"])

    @router.get("/api/disputes", summary="The disputes and their decisions, newest first")
    def disputes(
        request: Request,
        trajectory_id: Annotated[str, Query(max_length=300, description="Only of this trajectory.")] = "",
        state: Annotated[Literal["", "open", "decided"], Query(description="Empty for all.")] = "",
        page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
    ) -> JSONResponse:
        """Of a test trajectory of a private suite it says only that a dispute was decided, so that no hidden
        label is revealed. Maintainers get everything."""
        found = visible_disputes(
            service, actions, auth.is_maintainer(request), blind_items(request), trajectory_id, state
        )
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
        """The ``answer`` of a correction waits for the next label version: `POST /api/maintain/labels`
        publishes it."""
        require_open(service)
        try:
            actions.decide(dispute_id, body.decision, body.reason, actor, body.answer or None, body.seen)
        except KeyError:
            raise HTTPException(404, NO_DISPUTE) from None
        return recorded(service, dispute_id=dispute_id, decision=body.decision)

    return router


@dataclass(frozen=True)
class DisputeForm:
    """The form for one trajectory. ``questions`` are (value, words); only on dev the words tell the label.

    ``is_public`` says whether everybody will read what is written here.
    """

    trajectory_id: str
    questions: Sequence[tuple[str, str]]
    is_public: bool

    @property
    def api(self) -> str:
        """Where it is sent."""
        return API

    @property
    def list_address(self) -> str:
        """The disputes of this trajectory."""
        return link_to(PATH, trajectory_id=self.trajectory_id)


def dispute_form(suite: Suite, trajectory_id: str, split: str, labels: Labels | None) -> DisputeForm:
    """The form for a trajectory; labels of a test trajectory are left out, whoever passes them."""
    shown = labels if split == "dev" else None
    questions = [
        (each.name, each.title if shown is None or each.is_own else f"{each.title} (labelled: {word})")
        for each in suite.questions
        for word in [_word(getattr(shown, each.name, None))]
    ]
    return DisputeForm(trajectory_id, questions, split == "dev" or suite.labels_are_public)


def _word(answer: bool | int | None) -> str:
    if answer is None:
        return "unsure"
    return {True: "yes", False: "no"}[answer] if isinstance(answer, bool) else f"{answer} of 4"


def answer_words(suite: Suite, question: str, answer: str) -> str:
    """An answer to a question, as people read it; as it was recorded where the suite no longer asks it."""
    asked = suite.question(question)
    return asked.answer_words(answer) if asked else answer


def answer_choices(suite: Suite, question: str) -> list[tuple[str, str]]:
    """The answers to a question, as (value, words)."""
    asked = suite.question(question)
    values = (*asked.values, UNSURE) if asked else ()
    return [(value, answer_words(suite, question, value)) for value in values]


OUTCOMES = {
    "open": "open",
    "decided": "decided",
    "corrected": "label corrected",
    "kept": "label kept",
    "declined": "declined",
}
DECISION_WORDS = {
    "corrected": "Correct the label",
    "kept": "Keep the label",
    "declined": "Decline: nothing to review",
}


def build_disputes_pages(
    service: SubmissionService,
    auth: Auth,
    actions: ReaderActions,
    pages: PageFrame,
    blind_items: Callable[[Request], BlindItems],
) -> APIRouter:
    """The route."""
    router = APIRouter()

    @router.get(PATH, include_in_schema=False)
    def disputes(
        request: Request,
        trajectory_id: Annotated[str, Query(max_length=300)] = "",
        state: Literal["", "open", "decided"] = "",
        page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
    ) -> Response:
        suite, is_maintainer = service.suite, auth.is_maintainer(request)
        public = suite.labels_are_public
        blind = blind_items(request)
        found = visible_disputes(service, actions, is_maintainer, blind, trajectory_id, state)
        known = suite.find(trajectory_id) if trajectory_id else None
        split = known.split if known else "test"  # blind: no labels are passed on
        return pages.answer(
            "labels/disputes.html",
            "Disputes of labels",
            PATH,
            disputes=found[(page - 1) * ON_A_PAGE : page * ON_A_PAGE],
            n_found=len(found),
            number=page,
            n_pages=-(-len(found) // ON_A_PAGE),
            address=lambda **changes: link_to(
                PATH, **{"trajectory_id": trajectory_id, "state": state, **changes}
            ),
            story_address=lambda name: link_to("/trajectories", id=name),
            trajectory_id=trajectory_id,
            is_unknown=bool(trajectory_id) and known is None,
            in_your_queue=IN_YOUR_QUEUE if known and blind.hides(known.trajectory_id) else "",
            state=state,
            form=dispute_form(service.suite, known.trajectory_id if known else "", split, None),
            api=API,
            titles=service.suite.question_titles,
            outcomes=OUTCOMES,
            decisions=[(each, DECISION_WORDS[each]) for each in DECISIONS],
            answers=partial(answer_choices, service.suite),
            words_of=partial(answer_words, service.suite),
            version_of=_versions_by_dispute(service, actions) if is_maintainer or public else {},
            is_maintainer=is_maintainer,
            is_private=not public,
            most_a_day=DISPUTES_A_DAY,
            text_length=TEXT_LENGTH,
            reason_length=REASON_LENGTH,
        )

    return router


def _versions_by_dispute(service: SubmissionService, actions: ReaderActions) -> dict[str, str]:
    """The newest label version that holds the correction of a dispute as it was decided last."""
    decided = {(each.dispute_id, each.decided.sequence) for each in actions.disputes() if each.decided}
    versions = published_versions(service.engine, service.suite.name)
    return {
        each.dispute_id: version.version
        for version in versions
        for each in version.corrections
        if (each.dispute_id, each.decision) in decided
    }


@dataclass(frozen=True)
class CorrectionList:
    """Corrections as a reader may see them.

    ``shown`` have their trajectory and answers; of ``hidden``, those of private labels, maintainers see which
    disputes they decide, and everybody else nothing.
    """

    shown: Sequence[Correction] = ()
    hidden: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.shown) + len(self.hidden)


def visible_corrections(
    corrections: Iterable[Correction], labels_are_public: bool, is_maintainer: bool, blind: BlindItems
) -> CorrectionList:
    """Without those of trajectories that the reader has yet to annotate."""
    found = [each for each in corrections if not blind.hides(each.trajectory_id)]
    shown = [each for each in found if labels_are_public or each.split == "dev"]
    hidden = [each.dispute_id for each in found if is_maintainer and each not in shown]
    return CorrectionList(shown, hidden)


@dataclass(frozen=True)
class RescoringView:
    """A re-scoring that followed a new label set; ``moved`` of ``rows`` have another rank than before.

    ``effects`` are those of the record (`JudgeEffect` by question); of earlier records the ranks alone.
    """

    before: str
    after: str
    at: datetime
    moved: int
    rows: int
    effects: Mapping[str, Sequence[Mapping[str, Any]]]


def view_rescoring(record: Event) -> RescoringView:
    ranks = record.body["ranks"]
    effects = record.body.get("effects") or {"success": _ranks_alone(ranks)}
    moved = sum(before != after for before, after in ranks.values())
    return RescoringView(
        record.body["from"], record.body["to"], record.at, moved, len(ranks), effects if ranks else {}
    )


def _ranks_alone(ranks: Mapping[str, Sequence[int | None]]) -> list[dict[str, Any]]:
    rows = [{"id": row_id, "places": places} for row_id, places in ranks.items()]
    return sorted(rows, key=lambda row: [(place is None, place or 0) for place in row["places"][::-1]])


def build_label_versions(
    service: SubmissionService,
    auth: Auth,
    pages: PageFrame,
    job: RescoringJob,
    blind_items: Callable[[Request], BlindItems],
) -> APIRouter:
    """The route. Where labels are private, only maintainers see changes, reasons and ranks under other
    labels: a change of one label and a dispute of it together would disclose the label."""
    router = APIRouter()

    @router.get(VERSIONS_PATH, include_in_schema=False)
    def labels(request: Request) -> Response:
        is_public, is_maintainer = service.suite.labels_are_public, auth.is_maintainer(request)
        sees_all, blind = is_public or is_maintainer, blind_items(request)
        versions = published_versions(service.engine, service.suite.name)

        def visible(corrections: Iterable[Correction]) -> CorrectionList:
            return visible_corrections(corrections, is_public, is_maintainer, blind)

        found = rescorings(service)[-MOST_RESCORINGS:] if sees_all else []
        return pages.answer(
            "labels/versions.html",
            "Label versions",
            VERSIONS_PATH,
            suite=service.suite.name,
            served=service.label_version,
            origin=service.labels.origin if service.label_version else None,
            versions=[(each, visible(each.corrections)) for each in reversed(versions)],
            questions_changed=have_questions_changed(service.suite, versions),
            titles=service.suite.question_titles,
            words_of=partial(answer_words, service.suite),
            rescorings=[view_rescoring(record) for record in reversed(found)],
            names=_names(service) if sees_all else {},
            sees_all=sees_all,
            is_private=not is_public,
            dev=visible(outdated_dev_labels(service)),
            is_maintainer=is_maintainer,
            job=job.state,
            why_length=WHY_LENGTH,
            **(_next(service, visible) if is_maintainer else {}),
        )

    return router


def _next(
    service: SubmissionService, visible: Callable[[Iterable[Correction]], CorrectionList]
) -> dict[str, Any]:
    """The next label version for maintainers, with what it would do to every row."""
    try:
        found = next_labels(service)
    except SubmissionError as problem:
        return {"why_no_next": str(problem)}
    lists = {name: visible(getattr(found, name)) for name in ("applied", "conflicts", "missing")}
    effects = label_effects(service, found.served, found.test) if found.applied else {}
    return {"why_no_next": "", "next": found, **lists, "effects": effects}


def _names(service: SubmissionService) -> dict[str, str]:
    """What each submission is called now, by its id."""
    with service.snapshot() as session:
        names = judge_names(session, service.suite.name)
    rows = {row.id: f"{short_name(row)}, {origin(row)}" for row in service.board().rows}
    return {name: f"{judge}, by {account}" for name, (judge, account) in names.items()} | rows
