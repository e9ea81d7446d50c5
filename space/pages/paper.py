"""``/paper``: the paper's tables computed here, beside the printed metrics, with a note where they differ."""

import logging
import threading
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Request, Response

from core.console import percent
from core.suite import OFFICIAL, load_suite
from leaderboard.paper import TABLES, make_table
from leaderboard.paper.evidence import gather
from leaderboard.paper.table import DERIVED, PaperTable, TableCell
from leaderboard.report import VerdictFileError, read_verdict_file
from space.services import Services
from space.web.frame import PageFrame
from space.web.query import QueryParam, choices_in
from submissions.service import SubmissionService

logger = logging.getLogger(__name__)
PATH: Final = "/paper"
FIRST: Final = "1"
CONTROLS: Final = (QueryParam("table", "one", FIRST, tuple(map(str, TABLES))),)
VERDICT_FILES = (".jsonl", ".csv", ".parquet")


class PaperTables:
    """The tables from the official labels and the maintainer's verdict files (ARB_PAPER_VERDICTS)."""

    def __init__(self, service: SubmissionService) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._made: tuple[str | None, dict[int, PaperTable]] | None = None

    def get(self, number: int) -> PaperTable:
        """A table by its number; raises KeyError for one that holds no results."""
        labels = self._service.labels_for_public_figures() if self._service.suite.name == OFFICIAL else None
        version = labels and labels.version
        with self._lock:
            if self._made is None or self._made[0] != version:
                records = gather(labels, self._verdicts() if labels is not None else None)
                self._made = (version, {known: make_table(known, records) for known in TABLES})
            return self._made[1][number]

    def _verdicts(self) -> dict:
        """The judges' verdicts in the maintainer's folder; a file that cannot be used is named in the log."""
        settings = self._service.settings
        if settings.paper_verdicts is None:
            return {}
        suite, found = load_suite(OFFICIAL), {}
        for path in _files_in(settings.paper_verdicts):
            try:
                verdicts = read_verdict_file(path, suite, "test", settings.max_upload_bytes)
                gather(None, {path.stem: verdicts})  # the file's name has to be a judge's
                found[path.stem] = verdicts
            except (VerdictFileError, ValueError) as problem:
                logger.warning("a file of ARB_PAPER_VERDICTS cannot be used: %s", problem)
        return found


def _files_in(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix in VERDICT_FILES)
    except OSError as error:
        logger.warning("ARB_PAPER_VERDICTS cannot be read: %s", error)
        return []


KINDS = {True: "same", False: "other", None: "computed"}


def kind_of(cell: TableCell) -> str:
    """``same`` and ``other`` than printed, ``computed`` or ``printed`` alone, ``nothing``."""
    if cell.computed is None:
        return "nothing" if cell.printed is None else "printed"
    return KINDS[cell.agrees]


def text_of(cell: TableCell) -> str:
    """The metric with one decimal; with two where rounding would hide a difference to the printed one."""
    if kind_of(cell) == "other" and percent(cell.computed) == percent(cell.printed):
        return f"{100 * cell.computed:.2f}"
    return percent(cell.printed if cell.agrees or cell.computed is None else cell.computed)


def numbered_notes(table: PaperTable) -> dict[str, int]:
    """The notes of cells that do not agree, each once, with their numbers in the order of the table."""
    notes: dict[str, int] = {}
    for _, cell in table.cells():
        if cell.note and not cell.agrees and kind_of(cell) != "nothing":
            notes.setdefault(cell.note, len(notes) + 1)
    return notes


def describe_cell(cell: TableCell) -> str:
    """What it was computed from, for hovering."""
    if cell.computed is None:
        return cell.note
    parts = [f"printed {percent(cell.printed)}" if cell.printed is not None else "nothing printed"]
    parts.append(f"computed {100 * cell.computed:.2f} from {cell.basis}")
    parts += [f"{cell.n:,} trajectories"] if cell.n is not None else []
    return ", ".join(parts)


def build_paper_router(services: Services, pages: PageFrame) -> APIRouter:
    """``GET /paper``."""
    router, tables = APIRouter(), PaperTables(services.submissions)

    @router.head(PATH, include_in_schema=False)
    @router.get(PATH, include_in_schema=False)
    def paper_page(request: Request) -> Response:
        chosen, unknown = choices_in(request.scope["query_string"].decode("latin-1"), CONTROLS)
        table = tables.get(int(chosen["table"]))
        values = {
            "table": table,
            "numbers": TABLES,
            "first": int(FIRST),
            "notes": numbered_notes(table),
            "derived": DERIVED,
            "is_official": services.submissions.suite.name == OFFICIAL,
            "unknown": unknown,
            "kind_of": kind_of,
            "text_of": text_of,
            "describe_cell": describe_cell,
        }
        return pages.cached(
            request, (table, *unknown), "pages/paper.html", f"Table {table.number}", PATH, lambda: values
        )

    return router
