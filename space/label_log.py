"""``/labels``: every published label set with what changed and why, and what re-scoring did to the ranks."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fastapi import APIRouter, Request, Response

from leaderboard.annotations import QUESTION_TITLES
from leaderboard.board import BoardRow
from space.auth.auth import Auth
from space.plain_page import PlainPages
from space.row_names import origin, short_name
from submissions.chain import Record
from submissions.label_versions import LabelVersion, published_versions
from submissions.rescoring import rescorings
from submissions.service import SubmissionService

PATH: Final = "/labels"
MOST_RESCORINGS: Final = 10


@dataclass(frozen=True)
class VersionLine:
    """A label set on the page; ``changes`` and ``why`` are None where they are for maintainers."""

    version: str
    at: datetime
    by: str
    labelled: int
    is_served: bool
    changes: tuple[tuple[str, int], ...] | None
    why: str | None


@dataclass(frozen=True)
class RankLine:
    """A row's place before and after; None where it had none."""

    name: str
    before: int | None
    after: int | None


@dataclass(frozen=True)
class RescoringLine:
    """A re-scoring that followed a new label set; ``moved`` of ``ranks`` have another place than before."""

    before: str
    after: str
    at: datetime
    moved: int
    ranks: tuple[RankLine, ...]


def version_line(found: LabelVersion, served: str | None, tells_all: bool) -> VersionLine:
    """A label set in words. Counts of changes and the reason speak of single labels, so that they are for
    maintainers where labels are private."""
    changes = tuple((QUESTION_TITLES[name], count) for name, count in found.changes.items())
    return VersionLine(
        version=found.version,
        at=found.at,
        by=found.by,
        labelled=found.labelled,
        is_served=found.version == served,
        changes=changes if tells_all else None,
        why=found.why if tells_all else None,
    )


def rescoring_line(record: Record, rows: Mapping[str, BoardRow]) -> RescoringLine:
    """A re-scoring with the names that its rows have now, in the order of the newer places."""
    ranks = [
        RankLine(f"{short_name(row)}, {origin(row)}" if row else row_id, *places)
        for row_id, places in record.body["ranks"].items()
        for row in [rows.get(row_id)]
    ]
    ranks.sort(key=lambda line: (line.after is None, line.after or 0, line.before is None, line.before or 0))
    moved = sum(line.before != line.after for line in ranks)
    return RescoringLine(record.body["from"], record.body["to"], record.at, moved, tuple(ranks))


def build_label_log(service: SubmissionService, auth: Auth, pages: PlainPages) -> APIRouter:
    """The route. Where labels are private, changes, reasons and ranks under other labels are for
    maintainers: a change of one label and a dispute of it together would tell the label."""
    router = APIRouter()

    @router.get(PATH, include_in_schema=False)
    def labels(request: Request) -> Response:
        tells_all = service.suite.labels_are_public or auth.is_maintainer(request)
        served = service.label_version
        versions = published_versions(service.engine, service.suite.name)
        rows = {row.id: row for row in service.board().rows}
        found = rescorings(service)[-MOST_RESCORINGS:] if tells_all else []
        return pages.answer(
            "labels.html",
            "Label versions",
            PATH,
            suite=service.suite.name,
            served=served,
            is_served_published=any(each.version == served for each in versions),
            versions=[version_line(each, served, tells_all) for each in reversed(versions)],
            rescorings=[rescoring_line(record, rows) for record in reversed(found)],
            tells_all=tells_all,
        )

    return router
