"""The page ``/mine`` and REST routes: an account's submissions, receipts and quota, and actions on them."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from markupsafe import Markup
from pydantic import Field

from arb.core.judge_info import NAME_LENGTH
from space.services import Services
from space.web.frame import PageFrame
from space.web.http_errors import (
    NO_STORE,
    NOT_YOURS,
    RequestBody,
    hide_unknown,
    is_durable,
    recorded,
    require_open,
)
from space.web.paging import Page
from space.web.submission_text import (
    FIGURES_WITHDRAWN,
    allowance_json,
    allowance_sentence,
    describe_status,
    receipt_link,
    report_html,
    rules_sentence,
    waiting_headers,
)
from submissions.app import SubmissionsApp
from submissions.errors import PermissionDenied
from submissions.intake.accounts import Actor, age_problem, is_same_name
from submissions.moderation.actions import REASON_LENGTH
from submissions.moderation.overview import decisions_on, own_submissions
from submissions.scoring.rescore import corrections_for, rescorings

PATH = "/mine"
ON_A_PAGE = 20
SIGN_IN = "Sign in to see your submissions, your remaining quota and your receipts."
PRIVATE_PAGE = "No submission has this id, or only its owner and maintainers can see it."


class Withdrawal(RequestBody):
    """The reason for a withdrawal; optional."""

    reason: str = Field("", max_length=REASON_LENGTH, description="The reason; stored with the record.")


class EmptyBody(RequestBody):
    """An empty object."""


NoFields = Annotated[EmptyBody, Body(default_factory=EmptyBody)]


class Renaming(RequestBody):
    """The current name and the new name of a judge."""

    judge: str = Field(max_length=NAME_LENGTH, description="The judge's current name.")
    to: str = Field(max_length=4 * NAME_LENGTH, description="The new name.")
    account: str = Field(
        "",
        max_length=NAME_LENGTH,
        description="The judge's account; default: yours. Only maintainers may give another.",
    )


def build_account_router(services: Services) -> APIRouter:
    router, service, auth = APIRouter(), services.submissions, services.auth
    Known = Annotated[Actor, Depends(auth.require_actor)]
    _add_submission_routes(router, service, Known)

    @router.post("/api/judges/rename", summary="Rename a judge")
    def rename(actor: Known, body: Renaming) -> JSONResponse:
        """The judge keeps its submissions, and the records keep both names."""
        account = body.account or actor.name
        if not (actor.is_maintainer or is_same_name(account, actor.name)):
            raise HTTPException(403, NOT_YOURS)
        require_open(service, even_if_lost=True)
        try:
            event = service.moderation.rename(account, body.judge, body.to, actor)
        except KeyError:
            raise HTTPException(404, f"the account {account} has no judge {body.judge!r}") from None
        return recorded(service, account=account, judge=event.body["to"])

    @router.get(
        "/api/allowance", summary="Your remaining quota of test files, and when the next one is allowed"
    )
    def left(request: Request, account: Annotated[str, Query(max_length=NAME_LENGTH)] = "") -> JSONResponse:
        """``account`` is used only on a local server, and only if nobody is signed in."""
        actor = auth.actor_of(request)
        if actor is None and auth.mode == "local" and account:
            actor = Actor(account)
        actor = actor or auth.require_actor(request)
        found = allowance_json(service.records.quota(actor.name), service.suite.rules)
        return JSONResponse({"account": actor.name, **found}, headers=NO_STORE)

    return router


def _add_submission_routes(router: APIRouter, service: SubmissionsApp, Known: Any) -> None:
    path = "/api/submissions/{submission_id}"

    def answer(submission_id: str, actor: Actor) -> JSONResponse:
        view = hide_unknown(actor, service.records.submission, submission_id, actor)
        return JSONResponse(view.to_json(), headers={**NO_STORE, **waiting_headers(view.receipt)})

    def act(
        action: Callable[..., object], submission_id: str, actor: Actor, *more: str | None
    ) -> JSONResponse:
        require_open(service, even_if_lost=True)
        hide_unknown(actor, action, submission_id, actor, *more)
        is_durable(service)  # wakes the thread that sends records to the Hub
        return answer(submission_id, actor)

    @router.get(path, summary="A submission: receipt, status, and the metrics that its owner may see")
    def one(submission_id: str, actor: Known) -> JSONResponse:
        """Only its owner and maintainers may see it; ``report`` is null until it is scored.

        The metrics carry noise if the suite's labels are private.
        """
        return answer(submission_id, actor)

    @router.post(f"{path}/withdraw", summary="Take a submission off the board for good")
    def withdraw(
        submission_id: str, actor: Known, body: Annotated[Withdrawal, Body(default_factory=Withdrawal)]
    ) -> JSONResponse:
        """The record stays, and the submission still counts towards the limits."""
        return act(service.moderation.withdraw, submission_id, actor, body.reason)

    @router.post(f"{path}/publish", summary="Publish a submission's row, if the suite's labels are private")
    def publish(submission_id: str, actor: Known, body: NoFields) -> JSONResponse:
        """The row appears with the next round, on the day in ``appears_at``. Rows per year are limited."""
        return act(service.moderation.publish, submission_id, actor)

    @router.post(
        f"{path}/refresh",
        summary="Show a submission's metrics under the current labels, if the suite's labels are private",
    )
    def refresh(submission_id: str, actor: Known, body: NoFields) -> JSONResponse:
        """Show metrics under the current labels instead of those that the file was first scored with.

        A refresh uses as much quota as a test file. For a public row it also uses one of the year's rows.
        """
        return act(service.moderation.refresh, submission_id, actor, service.label_version)


def own_submission(
    service: SubmissionsApp, submission_id: str, actor: Actor, is_whole: bool
) -> dict[str, Any]:
    """Return what an actor may see of a submission, with metrics by benchmark if ``is_whole``.

    ``corrections`` are the label versions that changed its metrics, newest first. With private labels there
    are none, since exact changes would reveal labels. ``is_older`` says whether its metrics were
    computed with labels older than the current ones.
    Raise KeyError for an unknown submission, and PermissionDenied for another account's submission.
    """
    found = service.records.submission(submission_id, actor)
    with service.snapshot() as session:
        decisions = decisions_on(session, submission_id)
    is_private = not service.suite.labels_are_public
    text = describe_status(
        found.status,
        is_scored=found.report is not None,
        lasts=found.receipt.status != "waiting",
        is_private=is_private,
        appears_at=found.appears_at,
        now=service.clock(),
        reasons={decision.kind: decision.reason for decision in decisions},
    )
    if found.are_figures_withdrawn and text.word == "not scored":
        text = FIGURES_WITHDRAWN
    report, is_older = Markup(""), False
    if found.report is not None:
        title = f"{found.judge}, submission {submission_id}"
        visible = found.report if is_whole else overall_only(found.report)
        report = Markup(report_html(visible, service.suite, title))  # its values are already escaped
        is_older = found.report["label_version"] != service.label_version
    may_change = is_private and found.status.is_on_the_board
    return {
        "view": found,
        "text": text,
        "report": report,
        "decisions": decisions,
        "may_publish": may_change and found.status.published_at is None,
        "may_refresh": may_change and is_older and not actor.is_maintainer,
        "is_older": is_older,
        "corrections": () if is_private else corrections_for(submission_id, rescorings(service)),
    }


def overall_only(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report without metrics by benchmark."""
    labels = {label: found and {**found, "by_benchmark": {}} for label, found in report["labels"].items()}
    return {**report, "labels": labels}


def build_account_pages(services: Services, pages: PageFrame) -> APIRouter:
    router, service, auth = APIRouter(), services.submissions, services.auth
    suite = service.suite
    common: dict[str, Any] = {"rules": suite.rules, "is_private": not suite.labels_are_public}
    common["titles"] = suite.target_titles
    common["receipt_link"] = receipt_link

    def known(request: Request) -> Actor | HTMLResponse:
        return pages.reader_or_refusal(request, auth.require_actor, "Your submissions", SIGN_IN)

    @router.get(PATH, include_in_schema=False)
    def mine(request: Request, page: Annotated[int, Query(ge=1, le=100_000)] = 1) -> Response:
        actor = known(request)
        if isinstance(actor, HTMLResponse):
            return actor
        with service.snapshot() as session:
            listed = own_submissions(session, suite.name, service.label_version, actor.name)
        on_page = Page.of(listed, page, ON_A_PAGE)
        left = service.records.quota(actor.name)
        return pages.answer(
            "account/mine.html",
            "Your submissions",
            PATH,
            account=actor.display_name,
            sessions=auth.sessions.of(actor.name, auth.session_of(request)) if auth.sessions else [],
            left=allowance_sentence(left, suite.rules) if left else "",
            limits=rules_sentence(suite.rules),
            age=age_problem(actor, suite.rules, service.clock().date()),
            page=on_page,
            waiting=service.durability.message,
            submissions=[own_submission(service, each.id, actor, is_whole=False) for each in on_page.items],
            **common,
        )

    @router.get(PATH + "/{submission_id}", include_in_schema=False)
    def one(request: Request, submission_id: str) -> Response:
        actor = known(request)
        if isinstance(actor, HTMLResponse):
            return actor
        try:
            found = own_submission(service, submission_id, actor, is_whole=True)
        except (KeyError, PermissionDenied):
            status = 404 if actor.is_maintainer else 403
            return pages.refusal("You cannot see this page", PRIVATE_PAGE, PATH, status)
        title = f"{found['view'].judge}, submission"
        return pages.answer("account/submission.html", title, PATH, submission=found, **common)

    return router
