"""The page ``/maintain``, which only maintainers can see.

It shows the review queue, submissions, accounts, re-scoring, the leak budget and the log. Metrics have no
noise here, even if the suite adds it elsewhere.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import inf
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from space.pages.account import PATH as OWN_PATH
from space.services import Services
from space.web.frame import PageFrame
from space.web.paging import Page
from space.web.submission_text import describe_status
from submissions.app import SubmissionsApp
from submissions.moderation.actions import conflict_of
from submissions.moderation.log_view import read_log
from submissions.moderation.overview import TITLES, Flag, ListedSubmission, Overview, exact_figures, overview
from submissions.privacy.leak_budget import Leak, LeakReport
from submissions.records.event_log import KINDS
from submissions.scoring.rescore import rescorings

PATH = "/maintain"
ON_A_PAGE = 25
RECORDS_ON_A_PAGE = 50
MOST_RESCORINGS = 3
MOST_FLAGGED = 100
REFUSED = "This page is for maintainers. If you are one, sign in with a name in ARB_MAINTAINERS."
Place = Annotated[int, Query(ge=1, le=1_000_000)]
Search = Annotated[str, Query(max_length=200)]


def ranks_in_order(ranks: Mapping[str, Sequence[int | None]]) -> list[tuple[str, Sequence[int | None]]]:
    """Return (id, (rank before, rank after)), sorted by the rank after; rows without a rank come last."""
    return sorted(ranks.items(), key=lambda item: (item[1][1] is None, item[1][1]))


def is_found(listed: ListedSubmission, search: str) -> bool:
    """Return whether a submission's names or ids contain every word of a search."""
    text = f"{listed.id} {listed.account} {listed.judge} {listed.first_name} {listed.content_hash}".casefold()
    return all(word in text for word in search.casefold().split())


def leak_tables(report: LeakReport) -> dict[str, list[tuple[str, Leak]]]:
    """Return tables of the leak per account, per judge and per label version, the highest leak first."""
    judges = {f"{judge} by {account}": leak for (account, judge), leak in report.by_judge.items()}
    return {
        "Account": _highest_first(report.by_account),
        "Judge": _highest_first(judges),
        "Labels": _highest_first(report.by_label_version),
    }


def describe_epsilon(leak: Leak) -> str:
    """Return the epsilon of a leak with two decimals, or "no bound" if it is infinite."""
    return "no bound" if leak.epsilon == inf else f"{leak.epsilon:.2f}"


def _highest_first(leaks: Mapping[str, Leak]) -> list[tuple[str, Leak]]:
    return sorted(leaks.items(), key=lambda item: (-item[1].rho, item[0]))


def build_maintain_pages(services: Services, pages: PageFrame) -> APIRouter:
    router, service = APIRouter(), services.submissions

    @router.get(PATH, include_in_schema=False)
    def maintain(
        request: Request,
        q: Search = "",
        page: Place = 1,
        before: Annotated[int | None, Query(ge=1)] = None,
        kind: Annotated[str, Query(max_length=32)] = "",
    ) -> Response:
        if not services.auth.is_maintainer(request):
            return pages.refusal("For maintainers", REFUSED, PATH, 403)
        kind = kind if kind in KINDS else ""
        with service.snapshot() as session:
            found = overview(session, service.suite.name, service.label_version)
            log = read_log(session, before, kind or None, RECORDS_ON_A_PAGE)
        report = service.records.leak.get()
        return pages.answer(
            "maintain/page.html",
            "Maintain",
            PATH,
            own_path=OWN_PATH,
            suite=service.suite.name,
            label_version=service.label_version,
            is_private=not service.suite.labels_are_public,
            durability=service.durability,
            search=q,
            **_submissions(service, found, q, page),
            banned=sorted(found.banned),
            confirmed=sorted(found.confirmed),
            row_names={row.id: f"{row.judge} by {row.account}" for row in service.records.board().rows},
            rescorings=rescorings(service)[-MOST_RESCORINGS:][::-1],
            ranks_in_order=ranks_in_order,
            job=services.rescoring.state,
            leak=report and report.total,
            leaks=leak_tables(report) if report else {},
            describe_epsilon=describe_epsilon,
            flag_titles=TITLES,
            label_titles=service.suite.target_titles,
            records=services.access.blind_items(request).redacted(log),
            n_records=RECORDS_ON_A_PAGE,
            kinds=sorted(KINDS),
            kind=kind,
        )

    return router


def _submissions(service: SubmissionsApp, found: Overview, search: str, page: int) -> dict[str, Any]:
    """Return the template's values for the review queue and for one page of all submissions, newest first."""
    flags: defaultdict[str, list[Flag]] = defaultdict(list)
    for flag in found.flags:
        flags[flag.submission.id].append(flag)
    flagged = [each for each in found.submissions if each.id in flags]
    flagged.sort(key=lambda each: not each.status.is_held)
    n_flagged, flagged = len(flagged), flagged[:MOST_FLAGGED]
    chosen = [each for each in reversed(found.submissions) if is_found(each, search)]
    on_page = Page.of(chosen, page, ON_A_PAGE)
    is_private, now = not service.suite.labels_are_public, service.clock()

    def row(each: ListedSubmission) -> dict[str, Any]:
        at = service.disclosure_policy.appears_at(each.status.published_at)
        text = describe_status(
            each.status, is_scored=each.is_scored, is_private=is_private, appears_at=at, now=now
        )
        return {"listed": each, "status": text.word, "flags": flags[each.id], "cells": cells.get(each.id, {})}

    ids = [each.id for each in (*flagged, *on_page.items)]
    with service.snapshot() as session:
        cells = exact_figures(session, service.label_version, ids)
    return {
        "queue": [row(each) for each in flagged],
        "submissions": [row(each) for each in on_page.items],
        "n_flagged": n_flagged,
        "page": on_page,
        "conflict_of": conflict_of,
    }
