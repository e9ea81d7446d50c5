"""The paper page: its tables computed here, beside the printed metrics."""

from typing import Final

from fastapi import APIRouter, Request, Response

from dataset_script.suite import OFFICIAL
from leaderboard.paper_tables.make import TABLES
from space.address import QueryParam, choices_in
from space.page import Services
from space.paper_source import PaperTables
from space.paper_view import describe_cell, kind_of, numbered_notes, text_of
from space.plain_page import PageFrame

PATH: Final = "/paper"
FIRST: Final = "1"
CONTROLS: Final = (QueryParam("table", "one", FIRST, tuple(map(str, TABLES))),)


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
            "is_official": services.submissions.suite.name == OFFICIAL,
            "unknown": unknown,
            "kind_of": kind_of,
            "text_of": text_of,
            "describe_cell": describe_cell,
        }
        return pages.cached(
            request, (table, *unknown), "paper.html", f"Table {table.number}", PATH, lambda: values
        )

    return router
