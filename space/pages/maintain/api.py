"""REST routes for maintainers: decisions on submissions and accounts, background re-scoring, the log."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse
from pydantic import Field

from space.pages.labels.access import BlindItems
from space.services import Services
from space.web.http_errors import NO_STORE, RequestBody, hide_unknown, recorded, require_open
from submissions.app import SubmissionsApp
from submissions.errors import SubmissionError
from submissions.intake.accounts import Actor
from submissions.labels.corrections import next_labels, publish_corrections
from submissions.labels.decisions import Decision as LabelDecision
from submissions.moderation.actions import REASON_LENGTH, AccountChange, Decision
from submissions.moderation.log_view import MOST, read_log
from submissions.scoring.rescore import REASON_LENGTH as WHY_LENGTH
from submissions.scoring.rescore import label_effects

Reason = Annotated[str, Field(max_length=2 * REASON_LENGTH, description="Stored with the record.")]


class SubmissionDecision(RequestBody):
    """A maintainer's decision on a submission."""

    decision: Decision = Field(description="The decision. A released submission is scored immediately.")
    reason: Reason


class NextVersion(RequestBody):
    """The publication of the next label version."""

    why: str = Field("", max_length=WHY_LENGTH, description="The reason; default: the decided disputes.")
    digest: str = Field(
        "", max_length=64, description="Its `digest` when it was previewed; 409 if it has changed since."
    )


class AccountDecision(RequestBody):
    """A maintainer's decision on an account."""

    decision: AccountChange = Field(
        description="banned: it may no longer submit. confirmed: it may use the reserved part of the leak "
        "budget."
    )
    reason: Reason
    even_if_unknown: bool = Field(False, description="Also accept an account that has done nothing here.")


def _next_version(service: SubmissionsApp, blind: BlindItems) -> dict[str, Any]:
    try:
        found = next_labels(service)
    except SubmissionError as problem:
        return {"problem": str(problem)}
    effects = label_effects(service, found.served, found.test) if found.applied else {}

    def visible(decisions: Iterable[LabelDecision]) -> list[dict[str, Any]]:
        return [each.to_json(service.suite) for each in decisions if not blind.hides(each.trajectory_id)]

    return {
        "digest": found.digest,
        "why": found.why,
        "applied": visible(found.applied),
        "conflicts": visible(found.conflicts),
        "missing": visible(found.missing),
        "effects": {label: [asdict(each) for each in rows] for label, rows in effects.items()},
    }


def build_maintain_router(services: Services) -> APIRouter:
    router, service = APIRouter(), services.submissions
    Maintainer = Annotated[Actor, Depends(services.auth.require_maintainer)]

    @router.post(
        "/api/maintain/submissions/{submission_id}",
        summary="Decide on a submission: hide, show, verify, reject, release, mark labels exposed",
    )
    def decide(submission_id: str, actor: Maintainer, body: SubmissionDecision) -> JSONResponse:
        """A held submission that is rejected does not count towards the limits of its account."""
        require_open(service, even_if_lost=True)
        hide_unknown(actor, service.moderation.decide, body.decision, submission_id, actor, body.reason)
        return recorded(service, submission_id=submission_id, decision=body.decision)

    @router.post("/api/maintain/accounts/{name:path}", summary="Ban or confirm an account, or undo that")
    def decide_account(name: str, actor: Maintainer, body: AccountDecision) -> JSONResponse:
        """A banned account's files that have no score no longer count towards its limits.

        Figures that the account has seen stay charged to the leak budget.
        """
        require_open(service, even_if_lost=True)
        service.moderation.decide_account(body.decision, name, actor, body.reason, body.even_if_unknown)
        return recorded(service, account=name, decision=body.decision)

    _add_rescoring(router, services)

    @router.get("/api/maintain/log", summary="The event log, newest first, without anything about labels")
    def log(
        request: Request,
        actor: Maintainer,
        before: Annotated[int | None, Query(ge=1, description="Only records before this number.")] = None,
        kind: Annotated[str | None, Query(max_length=32, description="Only records of this kind.")] = None,
        most: Annotated[int, Query(ge=1, le=MOST)] = 50,
    ) -> JSONResponse:
        """A score is logged only with the id of its submission."""
        with service.snapshot() as session:
            found = read_log(session, before, kind, most)
        return JSONResponse(
            {"records": services.access.blind_items(request).redacted(found)}, headers=NO_STORE
        )

    return router


def _add_rescoring(router: APIRouter, services: Services) -> None:
    service, job = services.submissions, services.rescoring
    Maintainer = Annotated[Actor, Depends(services.auth.require_maintainer)]

    @router.post(
        "/api/maintain/rescore",
        summary="Score every submission again with the current labels",
        status_code=202,
    )
    def rescore(actor: Maintainer) -> JSONResponse:
        """Re-scoring runs in the background: poll with GET until ``state`` is no longer ``running``.

        Old scores stay under their label version.
        """
        require_open(service, even_if_lost=True)
        job.begin(actor)
        return JSONResponse({"state": "running"}, 202, NO_STORE)

    @router.get("/api/maintain/rescore", summary="The state of re-scoring, and what it changed")
    def rescored(actor: Maintainer) -> JSONResponse:
        """``state`` is idle, running, done or failed. ``found`` has the ranks before and after."""
        return JSONResponse(job.state.to_json(), headers=NO_STORE)

    @router.get("/api/maintain/labels", summary="The next label version: what it corrects, and its effects")
    def next_version(request: Request, actor: Maintainer) -> JSONResponse:
        """Preview the effect of the accepted corrections on every judge, before anything is published.

        Corrections of hidden labels are shown only as numbers of disputes. ``state`` is that of re-scoring,
        as in `rescore`.
        """
        found = {**job.state.to_json(), "label_version": service.label_version}
        if job.state.state != "running":
            found["next"] = _next_version(service, services.access.blind_items(request))
        return JSONResponse(found, headers=NO_STORE)

    @router.post(
        "/api/maintain/labels",
        summary="Publish the next label version, and score everything under it",
        status_code=202,
    )
    def publish_next_version(actor: Maintainer, body: NextVersion) -> JSONResponse:
        """The next version adds all accepted corrections to the current labels, and is served at once.

        Scoring runs in the background: poll with GET until ``state`` is no longer ``running``.
        """
        require_open(service)
        version = publish_corrections(service, actor, body.why, body.digest or None)
        job.begin(actor)
        return JSONResponse({"state": "running", "version": version.version}, 202, NO_STORE)
