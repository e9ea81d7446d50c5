"""REST of annotation for maintainers: annotators, assignments, label sets."""

from typing import Annotated, Literal

from fastapi import APIRouter, Body, Depends
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from space.annotating.access import Access, Seat
from space.annotating.discuss_rest import API
from space.explorer.explorer import Explorer
from space.web.http_errors import NO_STORE, REFUSALS, require_open, wait_until_durable
from submissions.declaration import NAME_LENGTH
from submissions.label_versions import serves_records
from submissions.labelling.assigning import chosen
from submissions.labelling.desk import LabellingDesk
from submissions.publishing_labels import REASON_LENGTH as WHY_LENGTH
from submissions.rescoring import rescore


class Invitation(BaseModel):
    """An account."""

    model_config = ConfigDict(extra="forbid")
    account: str = Field(max_length=NAME_LENGTH, description="The name with which the account signs in.")


class Assigning(BaseModel):
    """What to assign to the invited annotators."""

    model_config = ConfigDict(extra="forbid")
    split: Literal["test", "dev", "both"] = Field("test", description="The split of the trajectories.")
    most: int | Literal[""] = Field(
        "", description="How many unassigned trajectories, evenly over the benchmarks. Empty for all."
    )
    percent_twice: float = Field(
        10, ge=0, le=100, description="The percentage of assigned trajectories that get a second annotation."
    )
    seed: int = Field(1, ge=0, lt=2**31, description="Seed of the random assignment.")


class Publication(BaseModel):
    """Why there is a new label set."""

    model_config = ConfigDict(extra="forbid")
    why: str = Field(max_length=WHY_LENGTH, description="What changed and why, for the change log.")


def build_label_office_router(desk: LabellingDesk, explorer: Explorer, access: Access) -> APIRouter:
    """The routes, all for maintainers: invite and assign, and publish the label set."""
    router = APIRouter()
    Maintainer = Annotated[Seat, Depends(access.maintainer)]
    _add_people_routes(router, desk, Maintainer)
    _add_assigning_route(router, desk, explorer, Maintainer)
    _add_publishing_route(router, desk, Maintainer)
    return router


def _add_people_routes(router: APIRouter, desk: LabellingDesk, Maintainer) -> None:
    @router.post(
        f"{API}/invite",
        summary="Invite an account to annotate; for maintainers",
        responses=REFUSALS,
    )
    def invite(seat: Maintainer, body: Invitation) -> JSONResponse:
        require_open(desk.service)
        annotator = desk.actions.invite(body.account, seat.actor)
        return _done(desk, {"annotator": annotator})

    @router.post(
        f"{API}/uninvite",
        summary="End an invitation; for maintainers",
        responses=REFUSALS,
    )
    def uninvite(seat: Maintainer, body: Invitation) -> JSONResponse:
        """Finished annotations stay; the next assignment gives the rest to others."""
        require_open(desk.service)
        desk.actions.uninvite(body.account, seat.actor)
        return _done(desk, {})


def _add_assigning_route(router: APIRouter, desk: LabellingDesk, explorer: Explorer, Maintainer) -> None:
    @router.post(
        f"{API}/assign",
        summary="Assign trajectories to the invited annotators; for maintainers",
        responses=REFUSALS,
    )
    def assign(seat: Maintainer, body: Annotated[Assigning, Body(default_factory=Assigning)]) -> JSONResponse:
        """Assignments made before stay. Trajectories that the dataset does not have are left out."""
        ids = _new(desk, explorer, seat, body)
        wished = ids if body.most == "" else chosen(ids, max(0, body.most), body.seed)
        require_open(desk.service)
        added = desk.actions.assign(wished, body.percent_twice / 100, body.seed, seat.actor)
        return _done(desk, {"assignments": added})


def _add_publishing_route(router: APIRouter, desk: LabellingDesk, Maintainer) -> None:
    service = desk.service

    @router.post(
        f"{API}/publish",
        summary="Publish the current label set as a new version; for maintainers",
        responses=REFUSALS,
    )
    def publish(seat: Maintainer, body: Publication) -> JSONResponse:
        """Where the Space scores with these labels, every submission is scored again at once."""
        require_open(desk.service)
        version = desk.publish(seat.actor, body.why)
        found = {
            "version": version.version,
            "labelled": version.labelled,
            "changes": dict(version.changes),
        }
        if serves_records(service.settings) and service.label_version == version.version:
            found["rescored"] = rescore(service, seat.actor).to_json()
        return _done(desk, found)


def _new(desk: LabellingDesk, explorer: Explorer, seat: Seat, body: Assigning) -> list[str]:
    splits = ("dev", "test") if body.split == "both" else (body.split,)
    shown = {name for dataset in explorer.datasets() for name in dataset.index.by_id}
    return [
        trajectory.trajectory_id
        for split in splits
        for trajectory in desk.service.suite.split(split)
        if trajectory.trajectory_id in shown and trajectory.trajectory_id not in seat.state.assigned
    ]


def _done(desk: LabellingDesk, found: dict) -> JSONResponse:
    return JSONResponse({**found, "lasts": wait_until_durable(desk.service)}, headers=NO_STORE)
