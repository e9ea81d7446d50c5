"""The page ``/paper``: the paper's tables recomputed, next to the printed metrics, with their differences."""

from typing import Final

from fastapi import APIRouter, Request, Response

from arb.core.cache import ByteCache
from arb.core.suite import OFFICIAL
from leaderboard.paper.evidence import gather
from leaderboard.paper.published import load_published_rows
from leaderboard.paper.table import DERIVED, PaperTable
from leaderboard.paper.tables import TABLES
from space.services import Services
from space.verdicts import JudgeVerdicts
from space.web.frame import PageFrame
from space.web.query import QueryParam, choices_in
from submissions.app import SubmissionsApp

PATH: Final = "/paper"
FIRST: Final = "1"
CONTROLS: Final = (QueryParam("table", "one", FIRST, tuple(map(str, TABLES))),)


class PaperTables:
    """The paper's tables, computed from the official labels and from the verdicts that are known."""

    def __init__(self, service: SubmissionsApp, verdicts: JudgeVerdicts) -> None:
        self._service, self._verdicts = service, verdicts
        self._made: ByteCache[dict[int, PaperTable]] = ByteCache(1, lambda _: 1)

    def get(self, number: int) -> PaperTable:
        """Return a table by its number; raise KeyError for a table without results."""
        labels = self._service.labels_for_public_figures() if self._service.suite.name == OFFICIAL else None
        key = (labels.version if labels else None, self._verdicts.version)

        def make() -> dict[int, PaperTable]:
            known_verdicts = self._verdicts.of_papers() if labels is not None else {}
            of_paper = {row.row_id for row in load_published_rows() if row.provenance == "published"}
            records = gather(
                labels, {name: found for name, found in known_verdicts.items() if name in of_paper}
            )
            return {known: build(records) for known, build in TABLES.items()}

        return self._made.get(key, make)[number]


def build_paper_router(services: Services, pages: PageFrame) -> APIRouter:
    router, tables = APIRouter(), PaperTables(services.submissions, services.verdicts)

    @router.get(PATH, include_in_schema=False)
    def paper_page(request: Request) -> Response:
        chosen, unknown = choices_in(request.scope["query_string"].decode("latin-1"), CONTROLS)
        table = tables.get(int(chosen["table"]))
        values = {
            "table": table,
            "numbers": TABLES,
            "first": int(FIRST),
            "derived": DERIVED,
            "is_official": services.submissions.suite.name == OFFICIAL,
        }
        title = f"Table {table.number}"
        return pages.cached(request, table, "about/paper.html", title, PATH, lambda: values, unknown=unknown)

    return router
