"""What maintainers see and do: the queue, decisions, accounts, re-scoring, the log, the leak budget.

``/maintain``: the queue, every submission with exact figures, accounts, re-scoring, leak budget, log.

The maintainers' page in words and numbers. Pure.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response

from core.console import percent
from core.vocabulary import LABEL_TITLES
from space.auth.auth import Auth
from space.pages.maintain.api import RescoringJob
from space.pages.mine import PATH as OWN_PATH
from space.web.frame import PageFrame
from space.web.submission_text import describe_status
from submissions.intake.review import TITLES, Flag, ListedSubmission
from submissions.moderation.overview import Overview, exact_figures, overview, read_log
from submissions.privacy.leak_budget import Leak
from submissions.records.event_log import KINDS
from submissions.records.statuses import SubmissionStatus
from submissions.scoring.leak_report import LeakReport
from submissions.scoring.rescore import rescorings
from submissions.service import SubmissionService

DECISIONS: Final = (
    ("released", "Release: score it"),
    ("hidden", "Hide its row"),
    ("shown", "Show its row again"),
    ("verified", "Mark as verified"),
    ("rejected", "Reject"),
    ("label_exposed", "Mark: labels exposed"),
)


@dataclass(frozen=True)
class Figures:
    """The exact figures of a label: precision and recall in percent, and the counts."""

    title: str
    precision: str
    recall: str
    counts: str


@dataclass(frozen=True)
class Line:
    """A submission on the page: where it stands, why it is flagged, what may be decided."""

    listed: ListedSubmission
    status: str
    marks: tuple[str, ...]
    flags: tuple[tuple[str, str], ...]
    figures: tuple[Figures, ...]
    decisions: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class LeakLine:
    """What was shown by one group: an account, a judge, a label version."""

    name: str
    figures: int
    epsilon: str


def view_line(listed: ListedSubmission, flags: Iterable[Flag], cells: Mapping[str, Any], status: str) -> Line:
    """A submission with its flags and the exact overall cell of each label; ``status`` is where it stands."""
    standing = listed.status
    marks = {"verified": standing.is_verified, "labels exposed": standing.is_label_exposed,
             "given back": standing.is_refunded, "public": standing.published_at is not None}  # fmt: skip
    return Line(
        listed=listed,
        status=status,
        marks=tuple(mark for mark, is_so in marks.items() if is_so),
        flags=tuple((TITLES[flag.kind], flag.reason) for flag in flags),
        figures=tuple(_figures(label, cell) for label, cell in cells.items() if cell),
        decisions=decisions_on(standing),
    )


def decisions_on(standing: SubmissionStatus) -> tuple[tuple[str, str], ...]:
    """What makes sense to decide as things stand, as (decision, words)."""
    if standing.is_withdrawn:
        return ()
    sensible = {
        "released": standing.is_held,
        "hidden": not standing.is_hidden,
        "shown": standing.is_hidden,
        "verified": not standing.is_verified,
        "rejected": not standing.is_rejected,
        "label_exposed": not standing.is_label_exposed,
    }
    return tuple((decision, words) for decision, words in DECISIONS if sensible[decision])


def is_found(listed: ListedSubmission, search: str) -> bool:
    """Whether every word of a search is in what a submission is called."""
    said = f"{listed.id} {listed.account} {listed.judge} {listed.first_name} {listed.content_hash}".casefold()
    return all(word in said for word in search.casefold().split())


def leak_tables(revealed: LeakReport) -> dict[str, list[LeakLine]]:
    """Who was shown most, the highest first: by account, by judge, by label version."""
    judges = {f"{judge} by {account}": leak for (account, judge), leak in revealed.by_judge.items()}
    return {
        "Account": _highest_first(revealed.by_account),
        "Judge": _highest_first(judges),
        "Labels": _highest_first(revealed.by_label_version),
    }


def describe_epsilon(leak: Leak) -> str:
    """The bound with two decimals; a word where there is none."""
    return "no bound" if leak.epsilon == inf else f"{leak.epsilon:.2f}"


def _highest_first(leaks: Mapping[str, Leak]) -> list[LeakLine]:
    ordered: Sequence[tuple[str, Leak]] = sorted(leaks.items(), key=lambda item: (-item[1].rho, item[0]))
    return [LeakLine(name, leak.figures, describe_epsilon(leak)) for name, leak in ordered]


def _figures(label: str, cell: Mapping[str, Any]) -> Figures:
    counts = " ".join(f"{name.upper()} {cell[name]:,}" for name in ("tp", "fp", "fn", "tn"))
    return Figures(LABEL_TITLES[label], percent(cell["precision"]), percent(cell["recall"]), counts)


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
            "account/maintain.html",
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
