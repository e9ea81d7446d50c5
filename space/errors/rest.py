"""REST for error analysis: tag an error, download all tags as CSV."""

import re
from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Query, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from leaderboard.error_tags import tags_to_csv
from space.auth.auth import Auth
from space.errors.judge_columns import JudgeColumns
from space.errors.view import errors_of
from space.web.http_errors import NO_STORE, REFUSALS, require_open, wait_until_durable
from submissions.accounts import Actor
from submissions.error_records import error_tags
from submissions.reader_acts import ReaderActions
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
    service: SubmissionService, auth: Auth, acts: ReaderActions, columns: JudgeColumns
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
        # Hidden splits are refused by `acts`, before any label is asked for.
        if trajectory is not None and columns.labels(trajectory.split) is not None:
            column = columns.one(body.judge, trajectory.split)
            errors = errors_of(service, columns, column, trajectory.split) if column else ()
            if trajectory.trajectory_id not in {error.trajectory_id for error in errors}:
                raise HTTPException(404, NO_ERROR)
        require_open(service)
        try:
            found = acts.tag(body.judge, body.trajectory_id, category, body.note, actor)
        except KeyError:
            raise HTTPException(404, NO_ERROR) from None
        fields = {"judge": found.judge, "trajectory_id": found.trajectory_id, "category": found.category}
        return JSONResponse({**fields, "lasts": wait_until_durable(service)}, 201, NO_STORE)

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
