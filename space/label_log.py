"""``/labels``: every published label set with what changed and why, and what re-scoring did to the ranks."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fastapi import APIRouter, Request, Response

from leaderboard.annotations import QUESTION_TITLES
from leaderboard.board import BoardRow
from space.auth.auth import Auth
from space.plain_page import PageFrame
from space.row_names import origin, short_name
from submissions.chain import Event
from submissions.label_versions import published_versions
from submissions.rescoring import rescorings
from submissions.service import SubmissionService

PATH: Final = "/labels"
MOST_RESCORINGS: Final = 10


@dataclass(frozen=True)
class RankLine:
    """The rank of a row before and after; None where it had none."""

    name: str
    before: int | None
    after: int | None


@dataclass(frozen=True)
class RescoringLine:
    """A re-scoring that followed a new label set; ``moved`` of ``ranks`` differ from before."""

    before: str
    after: str
    at: datetime
    moved: int
    ranks: tuple[RankLine, ...]


def rescoring_line(record: Event, rows: Mapping[str, BoardRow]) -> RescoringLine:
    """A re-scoring with the names that its rows have now, in the order of the newer ranks."""
    ranks = [
        RankLine(f"{short_name(row)}, {origin(row)}" if row else row_id, *places)
        for row_id, places in record.body["ranks"].items()
        for row in [rows.get(row_id)]
    ]
    ranks.sort(key=lambda line: (line.after is None, line.after or 0, line.before is None, line.before or 0))
    moved = sum(line.before != line.after for line in ranks)
    return RescoringLine(record.body["from"], record.body["to"], record.at, moved, tuple(ranks))


def build_label_log(service: SubmissionService, auth: Auth, pages: PageFrame) -> APIRouter:
    """The route. Where labels are private, only maintainers see changes, reasons and ranks under other
    labels: a change of one label and a dispute of it together would disclose the label."""
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
            versions=versions[::-1],
            titles=QUESTION_TITLES,
            rescorings=[rescoring_line(record, rows) for record in reversed(found)],
            tells_all=tells_all,
        )

    return router
