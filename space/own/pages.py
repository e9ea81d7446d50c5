"""``/mine`` and ``/mine/ID``: what an account has submitted, where it stands, what may be done with it."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from space.auth.auth import Auth
from space.own.allowance_told import allowance_sentence, rules_sentence
from space.own.receipt_link import report_html
from space.own.view import OwnView, overall_only, view_submission
from space.plain_page import PageFrame
from space.web.http_errors import AccessRefused, HubUnavailable
from submissions.accounts import Actor, age_problem
from submissions.overview import own_submissions
from submissions.refusals import PermissionDenied
from submissions.service import SubmissionService

PATH = "/mine"
ON_A_PAGE = 20
SIGN_IN = "Sign in to see your submissions, your remaining quota and your receipts."
NOT_YOURS = "Only the owner of a submission and maintainers can see its page, or no submission has this id."


def build_own_pages(service: SubmissionService, auth: Auth, pages: PageFrame) -> APIRouter:
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
            return pages.refusal("You cannot see this page", NOT_YOURS, PATH, status)
        return pages.answer(
            "mine_submission.html", f"{view.judge}, submission", PATH, **_shown([view], is_whole=True)
        )

    def _shown(views: Sequence[OwnView], is_whole: bool) -> dict:
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
            "mine.html",
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


def _report(view: OwnView, is_whole: bool) -> Markup:
    """The figures; in a list those over all trajectories. Their values are escaped already."""
    if view.report is None:
        return Markup("")
    return Markup(report_html(view.report if is_whole else overall_only(view.report)))
