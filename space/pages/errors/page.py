"""``/errors``: a judge's errors, read and tagged by people; REST to tag them and to get all tags."""

import re
from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, HTTPException, Query, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from core.suite import OFFICIAL
from core.vocabulary import AGENT_TITLES, BENCHMARK_TITLES
from leaderboard.errors import CATEGORIES, tags_to_csv
from space.auth.auth import Auth
from space.pages.errors.view import (
    KINDS,
    PATH,
    ErrorFilter,
    category_title,
    count_tables,
    errors_of,
    judge_choices,
    pairs_of,
    queue_page,
)
from space.verdicts import JudgeVerdicts
from space.web.frame import PageFrame
from space.web.http_errors import NO_STORE, REFUSALS, recorded, require_open
from space.web.query import link_to
from submissions.intake.accounts import Actor
from submissions.moderation.reader_actions import ReaderActions
from submissions.records.statuses import error_tags
from submissions.service import SubmissionService

NOTE_LENGTH = 2_000
OWN = "own"
NO_ERROR = "this is not an error: the judge has no verdict there, or it agrees with the experts"


class NewTag(BaseModel):
    """The category of an error."""

    model_config = ConfigDict(extra="forbid")
    judge: str = Field(max_length=120, description="The judge's row on the board, or its name in the data.")
    trajectory_id: str = Field(max_length=300, description="`<benchmark>/<agent>/<task_id>`.")
    category: str = Field(
        max_length=60, description="grounding_mismatch, misleading_reasoning, missed_instruction, "
        "misunderstood_action, a custom name, or own.",
    )  # fmt: skip
    own: str = Field("", max_length=60, description="The custom name, where category is own.")
    note: str = Field("", max_length=NOTE_LENGTH, description="A note; optional.")


def build_errors_router(
    service: SubmissionService, auth: Auth, actions: ReaderActions, verdicts: JudgeVerdicts
) -> APIRouter:
    """The routes over a service."""
    router = APIRouter()

    @router.post(
        "/api/errors",
        summary="Tag an error of a judge with its category",
        status_code=201,
        responses=REFUSALS,
    )
    def tag(
        actor: Annotated[Actor, Depends(auth.require_actor)],
        body: NewTag,
    ) -> JSONResponse:
        """For any account, with a daily limit. Your latest tag of an error replaces the one before. Only on
        dev, and on test where a suite's labels are public."""
        category = own_name(body.own) if body.category == OWN else body.category
        trajectory = service.suite.find(body.trajectory_id)
        # Hidden splits are refused by `actions`, before any label is asked for.
        if trajectory is not None and verdicts.labels(trajectory.split) is not None:
            column = verdicts.one(body.judge, trajectory.split)
            errors = errors_of(service, verdicts, column, trajectory.split) if column else ()
            if trajectory.trajectory_id not in {error.trajectory_id for error in errors}:
                raise HTTPException(404, NO_ERROR)
        require_open(service)
        try:
            found = actions.tag(body.judge, body.trajectory_id, category, body.note, actor)
        except KeyError:
            raise HTTPException(404, NO_ERROR) from None
        fields = {"judge": found.judge, "trajectory_id": found.trajectory_id, "category": found.category}
        return recorded(service, 201, **fields)

    @router.get("/api/errors.csv", summary="Every tag of judges' errors, as CSV")
    def as_csv(
        judge: Annotated[str, Query(max_length=120, description="Only this judge; empty for all.")] = "",
    ) -> Response:
        """Oldest first, with tags that were replaced later: the last one of a person counts."""
        tags = error_tags(service.engine, service.suite.name)
        text = tags_to_csv(tag for tag in tags if not judge or tag.judge == judge)
        named = {"Content-Disposition": 'attachment; filename="errors.csv"'}
        return Response(text, media_type="text/csv; charset=utf-8", headers={**NO_STORE, **named})

    return router


def own_name(name: str) -> str:
    """A custom category as it is stored: ``Wrong page`` becomes ``wrong_page``."""
    return re.sub(r"[^a-z0-9]+", "_", name.casefold()).strip("_")


Kind = Literal["", "fp", "fn"]
Split = Literal["", "dev", "test"]
Group = Annotated[str, Query(max_length=120)]


def build_errors_pages(service: SubmissionService, verdicts: JudgeVerdicts, pages: PageFrame) -> APIRouter:
    """The route; what it shows is the same for every reader."""
    router = APIRouter()

    @router.get(PATH, include_in_schema=False)
    def errors(
        judge: Annotated[str, Query(max_length=120)] = "",
        split: Split = "",
        kind: Kind = "",
        benchmark: Group = "",
        agent: Group = "",
        page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
    ) -> Response:
        has_it = [name for name in verdicts.splits() if verdicts.one(judge, name)] if judge else []
        splits = has_it or verdicts.splits()
        chosen = split if split in splits else next(reversed(splits), "")
        column = verdicts.one(judge, chosen) if has_it else None
        wanted = ErrorFilter(kind, benchmark, agent)
        every = error_tags(service.engine, service.suite.name)
        tags = [tag for tag in every if not judge or tag.judge == judge]
        names = {each.judge: each.name for each in verdicts.on(chosen).values()} if chosen else {}
        return pages.answer(
            "pages/errors.html",
            f"Errors of {column.name}" if column else "Errors of judges",
            PATH,
            status=404 if judge and column is None else 200,
            judge=judge,
            column=column,
            queue=queue_page(service, verdicts, column, chosen, wanted, page, tags) if column else None,
            choices=[] if column else judge_choices(service, verdicts, chosen, every),
            split=chosen,
            splits=splits,
            wanted=wanted,
            kinds=list(KINDS.items()),
            benchmark_titles=BENCHMARK_TITLES,
            agent_titles=AGENT_TITLES,
            has_dataset=verdicts.has_dataset,
            suite=service.suite.name,
            is_official=service.suite.name == OFFICIAL,
            address=lambda **changes: link_to(
                PATH, **{"judge": judge, "split": chosen, **asdict(wanted), **changes}
            ),
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
