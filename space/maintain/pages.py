"""``/maintain``: the queue, every submission with exact figures, accounts, re-scoring, leak budget, log."""

from collections import defaultdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from space.auth.auth import Auth
from space.maintain.rescoring_job import RescoringJob
from space.maintain.view import Line, describe_epsilon, is_found, leak_tables, view_line
from space.own.pages import PATH as OWN_PATH
from space.plain_page import PageFrame
from space.standing_words import describe_status
from submissions.audit import read_log
from submissions.chain import KINDS
from submissions.flags import Flag, ListedSubmission
from submissions.overview import Overview, exact_figures, overview
from submissions.rescoring import rescorings
from submissions.service import SubmissionService

PATH = "/maintain"
ON_A_PAGE = 25
RECORDS_ON_A_PAGE = 50
RESCORINGS_TOLD = 3
MOST_FLAGGED = 100
REFUSED = "This page is for maintainers. If you are one, sign in under a name of ARB_MAINTAINERS."
Place = Annotated[int, Query(ge=1, le=1_000_000)]
Search = Annotated[str, Query(max_length=200)]


def build_maintain_pages(
    service: SubmissionService, auth: Auth, job: RescoringJob, pages: PageFrame
) -> APIRouter:
    """The route; whoever is no maintainer gets one and the same refusal."""
    router = APIRouter()

    @router.get(PATH, include_in_schema=False)
    def maintain(
        request: Request,
        q: Search = "",
        page: Place = 1,
        before: Annotated[int | None, Query(ge=1)] = None,
        kind: Annotated[str, Query(max_length=32)] = "",
    ) -> Response:
        if not auth.is_maintainer(request):
            return pages.refusal("For maintainers", REFUSED, PATH, 403)
        kind = kind if kind in KINDS else ""
        found = overview(service)
        return pages.answer(
            "maintain.html",
            "Maintain",
            PATH,
            own_path=OWN_PATH,
            service=_about(service),
            search=q,
            number=page,
            **_submissions(service, found, q, page),
            banned=sorted(found.banned),
            **_rescoring(service, job),
            **_leak(service),
            records=read_log(service, before, kind or None, RECORDS_ON_A_PAGE),
            n_records=RECORDS_ON_A_PAGE,
            kinds=sorted(KINDS),
            kind=kind,
        )

    return router


def _about(service: SubmissionService) -> dict[str, Any]:
    return {
        "suite": service.suite.name,
        "label_version": service.label_version,
        "is_private": not service.suite.labels_are_public,
        "closed": service.durability.closed,
        "waiting": service.durability.message,
    }


def _submissions(service: SubmissionService, found: Overview, search: str, page: int) -> dict[str, Any]:
    """The queue, and a page of all submissions, newest first."""
    flags: defaultdict[str, list[Flag]] = defaultdict(list)
    for flag in found.flags:
        flags[flag.submission.id].append(flag)
    flagged = [each for each in found.submissions if each.id in flags]
    flagged.sort(key=lambda each: not each.status.is_held)
    n_flagged, flagged = len(flagged), flagged[:MOST_FLAGGED]
    chosen = [each for each in reversed(found.submissions) if is_found(each, search)]
    shown = chosen[(page - 1) * ON_A_PAGE : page * ON_A_PAGE]
    is_private, now = not service.suite.labels_are_public, service.clock()

    def line(each: ListedSubmission) -> Line:
        at = service.disclosure_policy.appears_at(each.status.published_at)
        told = describe_status(
            each.status, is_scored=each.is_scored, is_private=is_private, appears_at=at, now=now
        )
        return view_line(each, flags.get(each.id, ()), cells.get(each.id, {}), told.word)

    cells = exact_figures(service, [each.id for each in (*flagged, *shown)])
    return {
        "queue": [line(each) for each in flagged],
        "lines_shown": [line(each) for each in shown],
        "n_flagged": n_flagged,
        "n_chosen": len(chosen),
        "n_pages": -(-len(chosen) // ON_A_PAGE),
    }


def _rescoring(service: SubmissionService, job: RescoringJob) -> dict[str, Any]:
    """The last re-scorings that changed labels, with the names that their rows have now."""
    names = {row.id: f"{row.judge} by {row.account}" for row in service.board().rows}
    told = [
        {
            "at": record.at,
            "actor": record.actor,
            "before": record.body["from"],
            "after": record.body["to"],
            "changes": sorted(
                ((names.get(row_id, row_id), *places) for row_id, places in record.body["ranks"].items()),
                key=lambda change: (change[2] is None, change[2]),
            ),
        }
        for record in rescorings(service)[-RESCORINGS_TOLD:][::-1]
    ]
    return {"rescorings": told, "job": job.state}


def _leak(service: SubmissionService) -> dict[str, Any]:
    revealed = service.leak.get()
    if revealed is None:
        return {"leak": None, "epsilon": "", "leaks": {}}
    return {
        "leak": revealed.total,
        "epsilon": describe_epsilon(revealed.total),
        "leaks": leak_tables(revealed),
    }
