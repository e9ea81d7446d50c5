"""``/mine``: an account's submissions, receipts and quota; withdraw, publish and rename, as page and REST."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from markupsafe import Markup
from pydantic import BaseModel, ConfigDict, Field

from space.auth.auth import Auth
from space.web.frame import PageFrame
from space.web.http_errors import (
    NO_STORE,
    NOT_YOURS,
    REFUSALS,
    AccessRefused,
    HubUnavailable,
    hide_unknown,
    require_open,
    wait_until_durable,
)
from space.web.submission_text import (
    StatusText,
    allowance_json,
    allowance_sentence,
    describe_status,
    receipt_link,
    report_html,
    rules_sentence,
    submission_response,
)
from submissions.errors import PermissionDenied
from submissions.intake.accounts import Actor, age_problem, is_same_name
from submissions.intake.declaration import NAME_LENGTH
from submissions.moderation.actions import REASON_LENGTH
from submissions.moderation.overview import ModerationAction, actions_on, own_submissions
from submissions.scoring.submission_view import SubmissionView
from submissions.service import SubmissionService

PATH = "/mine"
ON_A_PAGE = 20
SIGN_IN = "Sign in to see your submissions, your remaining quota and your receipts."
PRIVATE_PAGE = (
    "Only the owner of a submission and maintainers can see its page, or no submission has this id."
)


class Withdrawal(BaseModel):
    """Why a submission is withdrawn; optional."""

    model_config = ConfigDict(extra="forbid")
    reason: str = Field("", max_length=REASON_LENGTH, description="Why; stored with the record.")


class Nothing(BaseModel):
    """An empty object."""

    model_config = ConfigDict(extra="forbid")


class Renaming(BaseModel):
    """A judge's name now and then."""

    model_config = ConfigDict(extra="forbid")
    judge: str = Field(max_length=NAME_LENGTH, description="The judge's current name.")
    to: str = Field(max_length=4 * NAME_LENGTH, description="The new name.")
    account: str = Field(
        "",
        max_length=NAME_LENGTH,
        description="The judge's account; default: yours. Maintainers may name others.",
    )


def build_mine_router(service: SubmissionService, auth: Auth) -> APIRouter:
    """The routes over a service; ``auth`` says who makes a request."""
    router = APIRouter()
    Known = Annotated[Actor, Depends(auth.require_actor)]

    @router.get(
        "/api/submissions/{submission_id}",
        summary="A submission: receipt, status, and the metrics that its owner may see",
        responses=REFUSALS,
    )
    def one(submission_id: str, actor: Known) -> JSONResponse:
        """For its owner and maintainers. ``report`` is null until it is scored. Where a suite's labels are
        private, the metrics carry noise."""
        return _answer(submission_id, actor)

    @router.post(
        "/api/submissions/{submission_id}/withdraw",
        summary="Take a submission off the board for good",
        responses=REFUSALS,
    )
    def withdraw(
        submission_id: str, actor: Known, body: Annotated[Withdrawal, Body(default_factory=Withdrawal)]
    ) -> JSONResponse:
        """Its record stays, and it still counts towards the limits."""
        require_open(service, even_if_lost=True)
        hide_unknown(actor, service.actions.withdraw, submission_id, actor, body.reason)
        wait_until_durable(service)
        return _answer(submission_id, actor)

    @router.post(
        "/api/submissions/{submission_id}/publish",
        summary="Publish a submission's row, where a suite's labels are private",
        responses=REFUSALS,
    )
    def publish(
        submission_id: str, actor: Known, body: Annotated[Nothing, Body(default_factory=Nothing)]
    ) -> JSONResponse:
        """It appears with the next round, on the day in ``appears_at``. The rows per year are limited."""
        require_open(service, even_if_lost=True)
        hide_unknown(actor, service.actions.publish, submission_id, actor)
        wait_until_durable(service)
        return _answer(submission_id, actor)

    @router.post(
        "/api/judges/rename",
        summary="Rename a judge",
        responses=REFUSALS,
    )
    def rename(actor: Known, body: Renaming) -> JSONResponse:
        """It keeps its submissions, and the records keep both names."""
        account = body.account or actor.name
        if not (actor.is_maintainer or is_same_name(account, actor.name)):
            raise HTTPException(403, NOT_YOURS)
        require_open(service, even_if_lost=True)
        try:
            record = service.actions.rename(account, body.judge, body.to, actor)
        except KeyError:
            raise HTTPException(404, f"there is no judge {body.judge!r} of {account}") from None
        found = {"account": account, "judge": record.body["to"], "lasts": wait_until_durable(service)}
        return JSONResponse(found, headers=NO_STORE)

    @router.get("/api/allowance", summary="How many test files you may still submit, and when the next one")
    def left(request: Request, account: Annotated[str, Query(max_length=NAME_LENGTH)] = "") -> JSONResponse:
        """``account`` is used only by a local server, when nobody is signed in."""
        actor = auth.actor_of(request)
        if actor is None and auth.mode == "local" and account:
            actor = Actor(account)
        actor = actor or auth.require_actor(request)
        found = allowance_json(service.quota(actor.name), service.suite.rules)
        return JSONResponse({"account": actor.name, **found}, headers=NO_STORE)

    def _answer(submission_id: str, actor: Actor) -> JSONResponse:
        view = hide_unknown(actor, service.submission, submission_id, actor)
        return JSONResponse(submission_response(view), headers=NO_STORE)

    return router


@dataclass(frozen=True)
class SubmissionPage:
    """One submission. ``report`` is what the reader may see of its score, None before there is one."""

    id: str
    account: str
    judge: str
    submitted_at: datetime
    file_sha256: str
    label_version: str
    told: StatusText
    report: Mapping[str, Any] | None
    receipt_link: str
    acts: tuple[ModerationAction, ...]
    has_row: bool
    may_withdraw: bool
    may_publish: bool
    appears_at: datetime | None


def view_submission(service: SubmissionService, submission_id: str, actor: Actor) -> SubmissionPage:
    """What an actor may see of a submission. Raises KeyError, PermissionDenied."""
    found = service.submission(submission_id, actor)
    receipt, status = found.receipt, found.status
    acts = actions_on(service, submission_id)
    is_private = not service.suite.labels_are_public
    now = service.clock()
    told = describe_status(
        status,
        is_scored=found.report is not None,
        lasts=receipt.status != "waiting",
        is_private=is_private,
        appears_at=found.appears_at,
        now=now,
        reasons={act.kind: act.reason for act in acts},
    )
    return SubmissionPage(
        id=receipt.submission_id,
        account=receipt.account,
        judge=found.judge,
        submitted_at=receipt.submitted_at,
        file_sha256=receipt.file_sha256,
        label_version=receipt.label_version,
        told=told,
        report=found.report,
        receipt_link=receipt_link(receipt),
        acts=tuple(acts),
        has_row=told.word == "on the board",
        may_withdraw=not status.is_withdrawn,
        may_publish=may_publish(found, is_private),
        appears_at=found.appears_at,
    )


def may_publish(found: SubmissionView, is_private: bool) -> bool:
    """Whether its owner may ask for a public row: in a private suite, once, while nothing speaks against."""
    return is_private and found.status.published_at is None and found.status.is_on_the_board


def overall_only(report: Mapping[str, Any]) -> dict[str, Any]:
    """A report without its benchmarks, for a list."""
    labels = {label: found and {**found, "by_benchmark": {}} for label, found in report["labels"].items()}
    return {**report, "labels": labels}


def build_mine_pages(service: SubmissionService, auth: Auth, pages: PageFrame) -> APIRouter:
    """The routes; a reader whom nobody knows is asked to sign in."""
    router = APIRouter()

    def known(request: Request) -> Actor | HTMLResponse:
        try:
            actor = auth.actor_of(request)
        except HubUnavailable as silent:
            return pages.refusal("Your submissions", silent.detail, request.url.path, 503)
        except AccessRefused:  # a token that is none: as if nobody had signed in
            actor = None
        return actor or pages.refusal("Your submissions", SIGN_IN, request.url.path, 401)

    @router.get(PATH, include_in_schema=False)
    def mine(request: Request, page: Annotated[int, Query(ge=1, le=100_000)] = 1) -> Response:
        actor = known(request)
        return actor if isinstance(actor, HTMLResponse) else _list(service, pages, actor, page)

    @router.get(PATH + "/{submission_id}", include_in_schema=False)
    def one(request: Request, submission_id: str) -> Response:
        actor = known(request)
        if isinstance(actor, HTMLResponse):
            return actor
        try:
            view = view_submission(service, submission_id, actor)
        except (KeyError, PermissionDenied):
            status = 404 if actor.is_maintainer else 403
            return pages.refusal("You cannot see this page", PRIVATE_PAGE, PATH, status)
        return pages.answer(
            "account/submission.html", f"{view.judge}, submission", PATH, **_shown([view], is_whole=True)
        )

    def _shown(views: Sequence[SubmissionPage], is_whole: bool) -> dict:
        return {
            "views": views,
            "reports": {view.id: _report(view, is_whole) for view in views},
            "rules": service.suite.rules,
            "is_private": not service.suite.labels_are_public,
        }

    def _list(service: SubmissionService, pages: PageFrame, actor: Actor, number: int) -> HTMLResponse:
        listed = own_submissions(service, actor.name)
        shown = listed[(number - 1) * ON_A_PAGE : number * ON_A_PAGE]
        left = service.quota(actor.name)
        return pages.answer(
            "account/mine.html",
            "Your submissions",
            PATH,
            account=actor.name,
            left=allowance_sentence(left, service.suite.rules) if left else "",
            limits=rules_sentence(service.suite.rules),
            age=age_problem(actor, service.suite.rules, service.clock().date()),
            number=number,
            n_pages=-(-len(listed) // ON_A_PAGE),
            n_submissions=len(listed),
            waiting=service.durability.message,
            **_shown([view_submission(service, each.id, actor) for each in shown], is_whole=False),
        )

    return router


def _report(view: SubmissionPage, is_whole: bool) -> Markup:
    """The figures; in a list those over all trajectories. Their values are escaped already."""
    if view.report is None:
        return Markup("")
    return Markup(report_html(view.report if is_whole else overall_only(view.report)))
