"""``/paper``: the paper's tables computed here, beside the printed metrics, with a note where they differ."""

import threading
from typing import Final

from fastapi import APIRouter, Request, Response

from arb.core.console import percent
from arb.core.suite import OFFICIAL
from leaderboard.paper import TABLES
from leaderboard.paper.evidence import gather
from leaderboard.paper.table import DERIVED, PaperCell, PaperTable
from space.services import Services
from space.verdicts import JudgeVerdicts
from space.web.frame import PageFrame
from space.web.query import QueryParam, choices_in
from submissions.app import SubmissionsApp

PATH: Final = "/paper"
FIRST: Final = "1"
CONTROLS: Final = (QueryParam("table", "one", FIRST, tuple(map(str, TABLES))),)


class PaperTables:
    """The tables from the official labels and the judges' verdicts, where these are known."""

    def __init__(self, service: SubmissionsApp, verdicts: JudgeVerdicts) -> None:
        self._service, self._verdicts = service, verdicts
        self._lock = threading.Lock()
        self._made: tuple[tuple, dict[int, PaperTable]] | None = None

    def get(self, number: int) -> PaperTable:
        """A table by its number; raises KeyError for one that holds no results."""
        labels = self._service.labels_for_public_figures() if self._service.suite.name == OFFICIAL else None
        key = (labels and labels.version, self._verdicts.version)
        with self._lock:
            if self._made is None or self._made[0] != key:
                records = gather(labels, self._verdicts.of_papers() if labels is not None else None)
                self._made = (key, {known: make(records) for known, make in TABLES.items()})
            return self._made[1][number]


def describe_cell(cell: PaperCell) -> str:
    """What it was computed from, for hovering."""
    if cell.computed is None:
        return cell.note
    parts = [f"printed {percent(cell.printed)}" if cell.printed is not None else "nothing printed"]
    parts.append(f"computed {100 * cell.computed:.2f} from {cell.basis}")
    parts += [f"{cell.n:,} trajectories"] if cell.n is not None else []
    return ", ".join(parts)


def build_paper_router(services: Services, pages: PageFrame) -> APIRouter:
    """``GET /paper``."""
    router, tables = APIRouter(), PaperTables(services.submissions, services.verdicts)

    @router.head(PATH, include_in_schema=False)
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
            "unknown": unknown,
            "describe_cell": describe_cell,
        }
        return pages.cached(
            request, (table, *unknown), "pages/paper.html", f"Table {table.number}", PATH, lambda: values
        )

    return router
