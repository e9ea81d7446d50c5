"""``/maintain``: the queue, every submission with exact metrics, accounts, re-scoring, leak budget, log.

Metrics are exact here whatever the suite adds as noise elsewhere; whoever is no maintainer gets one refusal.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response

from arb.core.vocabulary import LABEL_TITLES
from space.pages.account import PATH as OWN_PATH
from space.pages.maintain.rescoring import RescoringJob
from space.services import Services
from space.web.frame import PageFrame
from space.web.submission_text import describe_status
from submissions.app import SubmissionsApp
from submissions.moderation.actions import conflict_of
from submissions.moderation.overview import (
    TITLES,
    Flag,
    ListedSubmission,
    Overview,
    exact_figures,
    overview,
    read_log,
)
from submissions.privacy.leak_budget import Leak, LeakReport
from submissions.records.event_log import KINDS
from submissions.scoring.rescore import rescorings

DECISIONS: Final = (
    ("released", "Release: score it"),
    ("hidden", "Hide its row"),
    ("shown", "Show its row again"),
    ("verified", "Mark as verified"),
    ("rejected", "Reject"),
    ("label_exposed", "Mark: labels exposed"),
)


@dataclass(frozen=True)
class SubmissionRow:
    """A submission on the page: its status as a word, why it is flagged, the exact overall cell of each
    label, and what may be decided."""

    listed: ListedSubmission
    status: str
    flags: tuple[Flag, ...]
    cells: Mapping[str, Any]

    @property
    def marks(self) -> list[str]:
        """What is true of it besides its status."""
        status = self.listed.status
        marks = {"verified": status.is_verified, "labels exposed": status.is_label_exposed,
                 "given back": status.is_refunded, "public": status.published_at is not None}  # fmt: skip
        return [mark for mark, is_so in marks.items() if is_so]

    @property
    def decisions(self) -> list[tuple[str, str]]:
        """The possible decisions, as (decision, words)."""
        return [pair for pair in DECISIONS if conflict_of(pair[0], self.listed.status) is None]


def is_found(listed: ListedSubmission, search: str) -> bool:
    """Whether every word of a search is in what a submission is called."""
    text = f"{listed.id} {listed.account} {listed.judge} {listed.first_name} {listed.content_hash}".casefold()
    return all(word in text for word in search.casefold().split())


def leak_tables(report: LeakReport) -> dict[str, list[tuple[str, Leak]]]:
    """What was shown, the highest first: by account, by judge, by label version."""
    judges = {f"{judge} by {account}": leak for (account, judge), leak in report.by_judge.items()}
    return {
        "Account": _highest_first(report.by_account),
        "Judge": _highest_first(judges),
        "Labels": _highest_first(report.by_label_version),
    }


def describe_epsilon(leak: Leak) -> str:
    """The bound with two decimals; a word where there is none."""
    return "no bound" if leak.epsilon == inf else f"{leak.epsilon:.2f}"


def _highest_first(leaks: Mapping[str, Leak]) -> list[tuple[str, Leak]]:
    return sorted(leaks.items(), key=lambda item: (-item[1].rho, item[0]))


PATH = "/maintain"
ON_A_PAGE = 25
RECORDS_ON_A_PAGE = 50
MOST_RESCORINGS = 3
MOST_FLAGGED = 100
REFUSED = "This page is for maintainers. If you are one, sign in under a name of ARB_MAINTAINERS."
Place = Annotated[int, Query(ge=1, le=1_000_000)]
Search = Annotated[str, Query(max_length=200)]


def build_maintain_pages(services: Services, pages: PageFrame) -> APIRouter:
    """The route; whoever is no maintainer gets one and the same refusal."""
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
        return pages.answer(
            "maintain/page.html",
            "Maintain",
            PATH,
            own_path=OWN_PATH,
            service=_about(service),
            search=q,
            number=page,
            **_submissions(service, found, q, page),
            banned=sorted(found.banned),
            confirmed=sorted(found.confirmed),
            **_rescoring(service, services.rescoring),
            **_leak(service),
            records=services.access.blind_items(request).redacted(log),
            n_records=RECORDS_ON_A_PAGE,
            kinds=sorted(KINDS),
            kind=kind,
        )

    return router


def _about(service: SubmissionsApp) -> dict[str, Any]:
    return {
        "suite": service.suite.name,
        "label_version": service.label_version,
        "is_private": not service.suite.labels_are_public,
        "closed": service.durability.closed,
        "waiting": service.durability.message,
    }


def _submissions(service: SubmissionsApp, found: Overview, search: str, page: int) -> dict[str, Any]:
    """The queue, and a page of all submissions, newest first."""
    flags: defaultdict[str, list[Flag]] = defaultdict(list)
    for flag in found.flags:
        flags[flag.submission.id].append(flag)
    flagged = [each for each in found.submissions if each.id in flags]
    flagged.sort(key=lambda each: not each.status.is_held)
    n_flagged, flagged = len(flagged), flagged[:MOST_FLAGGED]
    chosen = [each for each in reversed(found.submissions) if is_found(each, search)]
    on_page = chosen[(page - 1) * ON_A_PAGE : page * ON_A_PAGE]
    is_private, now = not service.suite.labels_are_public, service.clock()

    def row(each: ListedSubmission) -> SubmissionRow:
        at = service.disclosure_policy.appears_at(each.status.published_at)
        text = describe_status(
            each.status, is_scored=each.is_scored, is_private=is_private, appears_at=at, now=now
        )
        return SubmissionRow(each, text.word, tuple(flags.get(each.id, ())), cells.get(each.id, {}))

    ids = [each.id for each in (*flagged, *on_page)]
    with service.snapshot() as session:
        cells = exact_figures(session, service.label_version, ids)
    return {
        "queue": [row(each) for each in flagged],
        "submissions": [row(each) for each in on_page],
        "n_flagged": n_flagged,
        "n_chosen": len(chosen),
        "n_pages": -(-len(chosen) // ON_A_PAGE),
    }


def _rescoring(service: SubmissionsApp, job: RescoringJob) -> dict[str, Any]:
    """The last re-scorings that changed labels, with the names that their rows have now."""
    names = {row.id: f"{row.judge} by {row.account}" for row in service.records.board().rows}
    found = [
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
        for record in rescorings(service)[-MOST_RESCORINGS:][::-1]
    ]
    return {"rescorings": found, "job": job.state}


def _leak(service: SubmissionsApp) -> dict[str, Any]:
    report = service.records.leak.get()
    return {
        "leak": report and report.total,
        "leaks": leak_tables(report) if report else {},
        "describe_epsilon": describe_epsilon,
        "flag_titles": TITLES,
        "label_titles": LABEL_TITLES,
    }
