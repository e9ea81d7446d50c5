"""``/disputes``: disputes about labels with their decisions, as a page and over REST.

If labels are private, a dispute about a test trajectory together with a changed label would disclose the
label. Readers then see only that a dispute was decided, and the form does not name the label.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, TypeVar

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.encoders import jsonable_encoder
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field, create_model

from arb.core.ids import Trajectory
from arb.core.suite import Suite
from arb.core.suites.targets import UNSURE
from space.pages.labels.access import IN_YOUR_QUEUE
from space.pages.trajectories.labels import Expert
from space.services import Services
from space.web.frame import PageFrame
from space.web.http_errors import NO_STORE, RequestBody, recorded, require_open
from space.web.paging import Page
from space.web.query import link_to
from submissions.app import SubmissionsApp
from submissions.intake.accounts import Actor
from submissions.labels.decisions import Outcome, view_dispute
from submissions.labels.versions import published_versions
from submissions.moderation.reader_actions import DISPUTES_A_DAY, REASON_LENGTH, TEXT_LENGTH, ReaderActions

PATH: Final = "/disputes"
MOST: Final = 200
"""The maximum number of disputes in one REST response."""
ON_A_PAGE: Final = 25
NO_TRAJECTORY = "the suite has no such trajectory; give its id as <benchmark>/<agent>/<task_id>"
NO_DISPUTE = "there is no such dispute; GET /api/disputes lists all disputes"
State = Literal["", "open", "decided"]
BodyType = TypeVar("BodyType", bound=BaseModel)


class NewDispute(RequestBody):
    """A dispute of one label of one trajectory."""

    trajectory_id: str = Field(max_length=300, description="`<benchmark>/<agent>/<task_id>`.")
    question: str = Field(description="The question whose answer is disputed.")
    text: str = Field(max_length=TEXT_LENGTH, description="What is wrong, and where it can be seen.")
    answer: str = Field("", max_length=40, description="The right answer, or unsure; optional.")
    judge: str = Field(
        "",
        max_length=120,
        description="Row id of the judge whose error led to the dispute; ignored if its errors are hidden.",
    )


class DisputeVerdict(RequestBody):
    """A maintainer's decision on a dispute."""

    decision: Outcome = Field(
        description="corrected: the label is wrong; kept: it is right; declined: there is nothing to review."
    )
    reason: str = Field(max_length=REASON_LENGTH, description="The reason; stored with the decision.")
    answer: str = Field("", max_length=40, description="The right answer; needed for a correction.")
    seen: int | None = Field(
        None, description="The value of `n_decisions` when the dispute was loaded; 409 if it has grown since."
    )


def with_questions(model: type[BodyType], suite: Suite) -> type[BodyType]:
    """Return a copy of a request model that accepts only questions of the suite as ``question``."""
    names = tuple(question.name for question in suite.targets)
    question: Any = (Literal[names], model.model_fields["question"])
    return create_model(model.__name__, __base__=model, __doc__=model.__doc__, question=question)


def visible_disputes(
    services: Services, request: Request, trajectory_id: str, state: State
) -> list[dict[str, Any]]:
    """Return the disputes as a reader may see them, newest first; an empty id means all trajectories."""
    suite, is_maintainer = services.submissions.suite, services.auth.is_maintainer(request)
    blind = services.access.blind_items(request)
    known = suite.find(trajectory_id) if trajectory_id else None
    wanted = known.trajectory_id if known else trajectory_id
    found = []
    for dispute in reversed(services.actions.disputes()):
        is_of_state = not state or (dispute.decided is None) == (state == "open")
        is_of_trajectory = not wanted or dispute.trajectory_id == wanted
        if is_of_state and is_of_trajectory and not blind.hides(dispute.trajectory_id):
            found.append(view_dispute(dispute, suite, is_maintainer))
    return found


def build_disputes_router(services: Services) -> APIRouter:
    router, service = APIRouter(), services.submissions
    auth, actions = services.auth, services.actions
    Known = Annotated[Actor, Depends(auth.require_actor)]
    Maintainer = Annotated[Actor, Depends(auth.require_maintainer)]
    if TYPE_CHECKING:
        Body: TypeAlias = NewDispute
    else:  # the schema lists the questions of the suite
        Body = with_questions(NewDispute, service.suite)

    @router.post("/api/disputes", summary="Dispute a label of a trajectory", status_code=201)
    def dispute(actor: Known, body: Body) -> JSONResponse:
        """Any account may dispute a label, up to a daily limit.

        If the labels are private, only maintainers can read the text of a dispute about a test trajectory.
        """
        require_open(service)
        known = service.suite.find(body.trajectory_id)
        if known is None:
            raise HTTPException(404, NO_TRAJECTORY)
        judge = body.judge if disputed_verdict(services, body.judge, known) else ""
        text, answer = body.text, body.answer
        record = actions.dispute(known.trajectory_id, body.question, text, actor, answer, judge)
        return recorded(service, 201, dispute_id=record.body["dispute_id"])

    @router.get("/api/disputes", summary="The disputes and their decisions, newest first")
    def disputes(
        request: Request,
        trajectory_id: Annotated[
            str, Query(max_length=300, description="Only disputes of this trajectory.")
        ] = "",
        state: Annotated[State, Query(description="Empty for all.")] = "",
        page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
    ) -> JSONResponse:
        """Only maintainers see how a dispute about a private test label was decided."""
        found = visible_disputes(services, request, trajectory_id, state)
        disputes = jsonable_encoder(found[(page - 1) * MOST : page * MOST])
        return JSONResponse({"disputes": disputes, "of": len(found)}, headers=NO_STORE)

    @router.post(
        "/api/maintain/disputes/{dispute_id}", summary="Decide on a dispute: corrected, kept or declined"
    )
    def decide(dispute_id: str, actor: Maintainer, body: DisputeVerdict) -> JSONResponse:
        """A correction takes effect with the next label version; see `POST /api/maintain/labels`."""
        require_open(service)
        try:
            actions.decide(dispute_id, body.decision, body.reason, actor, body.answer or None, body.seen)
        except KeyError:
            raise HTTPException(404, NO_DISPUTE) from None
        return recorded(service, dispute_id=dispute_id, decision=body.decision)

    return router


@dataclass(frozen=True)
class DisputedVerdict:
    """A judge's verdict that led to a dispute. ``says`` is the answer to the main target, or None."""

    judge: str
    name: str
    says: str | None


def dispute_form(
    suite: Suite,
    trajectory: Trajectory,
    experts: Sequence[Expert] = (),
    goal: str = "",
    judge: DisputedVerdict | None = None,
) -> dict[str, Any]:
    """Return the template's values for the dispute form of a trajectory.

    ``questions`` has (name, title, label, answers). The label is the answer of the first of the ``experts``
    in words, or empty if it may not be shown or is missing. ``question`` and ``answer`` are preselected.
    ``address`` leads to the disputes about the trajectory. ``is_public`` says whether everybody can read the
    labels and the text of the dispute.
    """
    is_public = suite.shows_labels(trajectory.split)
    return {
        "trajectory_id": trajectory.trajectory_id,
        "goal": goal,
        "address": link_to(PATH, trajectory_id=trajectory.trajectory_id),
        "questions": questions_to_dispute(suite, experts if is_public else ()),
        "judge": judge,
        "main": suite.main_target,
        "question": suite.main_target.name if judge else "",
        # Who disputes a label because of a judge's error proposes the judge's answer.
        "answer": (judge.says or "") if judge else "",
        "is_public": is_public,
    }


def questions_to_dispute(
    suite: Suite, experts: Sequence[Expert] = ()
) -> list[tuple[str, str, str, list[tuple[str, str]]]]:
    """Return (name, title, label by the first expert, answers) for each question about runs."""
    asked = [each for each in suite.targets if each.level == "run"]
    labels = [each.answer_words(experts[0].answer(each)) if experts else "" for each in asked]
    return [
        (each.name, each.title, label, answer_choices(suite, each.name))
        for each, label in zip(asked, labels, strict=True)
    ]


def disputed_verdict(services: Services, judge: str, trajectory: Trajectory) -> DisputedVerdict | None:
    """Return a judge's verdict on the main target, or None if it is missing or may not be shown."""
    column = services.verdicts.find(judge, trajectory.split) if judge else None
    if column is None:
        return None
    place = services.submissions.suite.split(trajectory.split).index(trajectory)
    says = services.verdicts.target.value_of(int(column.answers[place]))
    return DisputedVerdict(column.judge, column.name, says)


def answer_words(suite: Suite, question: str, answer: str) -> str:
    """Return an answer in words, or unchanged if the suite no longer asks the question."""
    asked = suite.target(question)
    return asked.answer_words(answer) if asked else answer


def answer_choices(suite: Suite, question: str) -> list[tuple[str, str]]:
    asked = suite.target(question)
    values = (*asked.values, UNSURE) if asked else ()
    return [(value, answer_words(suite, question, value)) for value in values]


def build_disputes_pages(services: Services, pages: PageFrame) -> APIRouter:
    router, service, actions = APIRouter(), services.submissions, services.actions

    @router.get(PATH, include_in_schema=False)
    def disputes(
        request: Request,
        trajectory_id: Annotated[str, Query(max_length=300)] = "",
        state: State = "",
        judge: Annotated[str, Query(max_length=120)] = "",
        page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
    ) -> Response:
        suite, is_maintainer = service.suite, services.auth.is_maintainer(request)
        public = suite.labels_are_public
        blind = services.access.blind_items(request)
        found = visible_disputes(services, request, trajectory_id, state)
        known = suite.find(trajectory_id) if trajectory_id else None
        is_blind = known is not None and blind.hides(known.trajectory_id)
        return pages.answer(
            "labels/disputes.html",
            "Disputes about labels",
            PATH,
            page=Page.of(found, page, ON_A_PAGE),
            address=lambda **changes: link_to(
                PATH, **{"trajectory_id": trajectory_id, "state": state, **changes}
            ),
            trajectory_id=trajectory_id,
            questions=questions_to_dispute(suite),
            is_unknown=bool(trajectory_id) and known is None,
            in_your_queue=IN_YOUR_QUEUE if is_blind else "",
            state=state,
            form=about_trajectory(services, known, judge) if known and not is_blind else None,
            titles=suite.target_titles,
            answers=partial(answer_choices, suite),
            words_of=partial(answer_words, suite),
            version_of=_versions_by_dispute(service, actions) if is_maintainer or public else {},
            is_maintainer=is_maintainer,
            is_private=not public,
            most_a_day=DISPUTES_A_DAY,
            text_length=TEXT_LENGTH,
            reason_length=REASON_LENGTH,
        )

    return router


def about_trajectory(services: Services, trajectory: Trajectory, judge: str) -> dict[str, Any]:
    """Return the values of `dispute_form` for a reader who may see everything about the trajectory."""
    experts = services.trajectories.labels.by_id().get(trajectory.trajectory_id, ())
    entry = services.verdicts.entry(trajectory)
    verdict = disputed_verdict(services, judge, trajectory)
    return dispute_form(services.submissions.suite, trajectory, experts, entry.goal if entry else "", verdict)


def _versions_by_dispute(service: SubmissionsApp, actions: ReaderActions) -> dict[str, str]:
    """Return the newest label version with each dispute's latest correction, keyed by dispute id."""
    decided = {(each.dispute_id, each.decided.sequence) for each in actions.disputes() if each.decided}
    versions = published_versions(service.engine, service.suite.name)
    return {
        each.dispute_id: version.version
        for version in versions
        for each in version.corrections
        if (each.dispute_id, each.sequence) in decided
    }
