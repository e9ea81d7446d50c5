"""``/errors``: which errors a judge makes, read and tagged by people."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response

from leaderboard.error_analysis import CATEGORIES
from space.address import link_to
from space.errors.judge_columns import JudgeColumns
from space.errors.rest import NOTE_LENGTH, OWN
from space.errors.view import (
    KINDS,
    PATH,
    category_title,
    count_tables,
    judge_choices,
    pairs_of,
    queue_page,
)
from space.plain_page import PageFrame
from submissions.error_records import error_tags
from submissions.service import SubmissionService

Kind = Literal["", "fp", "fn"]
Split = Literal["", "dev", "test"]


def build_errors_pages(service: SubmissionService, columns: JudgeColumns, pages: PageFrame) -> APIRouter:
    """The route; what it shows is the same for every reader."""
    router = APIRouter()

    @router.get(PATH, include_in_schema=False)
    def errors(
        judge: Annotated[str, Query(max_length=120)] = "",
        split: Split = "",
        kind: Kind = "",
        page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
    ) -> Response:
        has_it = [name for name in columns.splits() if columns.one(judge, name)] if judge else []
        splits = has_it or columns.splits()
        chosen = split if split in splits else next(reversed(splits), "")
        column = columns.one(judge, chosen) if has_it else None
        every = error_tags(service.engine, service.suite.name)
        tags = [tag for tag in every if not judge or tag.judge == judge]
        names = {each.judge: each.name for each in columns.on(chosen).values()} if chosen else {}
        return pages.answer(
            "errors.html",
            f"Errors of {column.name}" if column else "Errors of judges",
            PATH,
            status=404 if judge and column is None else 200,
            judge=judge,
            column=column,
            queue=queue_page(service, columns, column, chosen, kind, page, tags) if column else None,
            choices=[] if column else judge_choices(service, columns, chosen, every),
            split=chosen,
            splits=splits,
            kind=kind,
            kinds=list(KINDS.items()),
            address=lambda **changes: link_to(
                PATH, **{"judge": judge, "split": chosen, "kind": kind, **changes}
            ),
            judge_address=link_to("/judge", id=judge),
            csv_address=link_to("/api/errors.csv", judge=judge),
            categories=list(CATEGORIES.items()),
            own=OWN,
            note_length=NOTE_LENGTH,
            title_of=category_title,
            n_tags=len(tags),
            tables=count_tables(tags, names),
            pairs=pairs_of(tags),
            is_private=not service.suite.labels_are_public,
        )

    return router
