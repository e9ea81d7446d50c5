"""REST of maintainers who have trajectories labelled: people, assignments, label sets."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from space.acting import NO_STORE, REFUSALS, wait_until_it_lasts
from space.annotating.access import Access, Seat
from space.annotating.discuss_rest import API
from space.annotating.refusals import refused_as_http
from space.explorer.explorer import Explorer
from space.json_body import described, json_body
from submissions.declaration import NAME_LENGTH
from submissions.label_versions import serves_records
from submissions.labelling.assigning import chosen
from submissions.labelling.desk import LabellingDesk
from submissions.publishing_labels import REASON_LENGTH as WHY_LENGTH
from submissions.rescoring import rescore


class Invitation(BaseModel):
    """An account."""

    model_config = ConfigDict(extra="forbid")
    account: str = Field(max_length=NAME_LENGTH, description="The account's name, as it signs in.")


class Assigning(BaseModel):
    """What to assign to those who are invited."""

    model_config = ConfigDict(extra="forbid")
    split: Literal["test", "dev", "both"] = Field("test", description="Of which split.")
    most: int | Literal[""] = Field(
        "", description="At most so many trajectories that nobody has yet, evenly over the benchmarks."
    )
    percent_twice: float = Field(
        10, ge=0, le=100, description="Of all assigned trajectories, so many percent get a second annotation."
    )
    seed: int = Field(1, ge=0, lt=2**31, description="Draws who gets what: the same seed, the same draw.")


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
    service = desk.service

    @router.post(
        f"{API}/invite",
        summary="Invite an account to annotate; for maintainers",
        openapi_extra=described(Invitation),
        responses=REFUSALS,
    )
    def invite(seat: Maintainer, said: Annotated[Invitation, Depends(json_body(Invitation))]) -> JSONResponse:
        with refused_as_http(service):
            annotator = desk.acts.invite(said.account, seat.actor)
        return _done(desk, {"annotator": annotator})

    @router.post(
        f"{API}/uninvite",
        summary="End an invitation; for maintainers",
        openapi_extra=described(Invitation),
        responses=REFUSALS,
    )
    def uninvite(
        seat: Maintainer, said: Annotated[Invitation, Depends(json_body(Invitation))]
    ) -> JSONResponse:
        """What was finished stays; the next assignment gives the rest to others."""
        with refused_as_http(service):
            desk.acts.uninvite(said.account, seat.actor)
        return _done(desk, {})


def _add_assigning_route(router: APIRouter, desk: LabellingDesk, explorer: Explorer, Maintainer) -> None:
    service = desk.service

    @router.post(
        f"{API}/assign",
        summary="Assign trajectories to those who are invited; for maintainers",
        openapi_extra=described(Assigning),
        responses=REFUSALS,
    )
    def assign(seat: Maintainer, said: Annotated[Assigning, Depends(json_body(Assigning))]) -> JSONResponse:
        """What is assigned stays so. Trajectories that the shown dataset does not have are left out."""
        ids = _new(desk, explorer, seat, said)
        wished = ids if said.most == "" else chosen(ids, max(0, said.most), said.seed)
        with refused_as_http(service):
            added = desk.acts.assign(wished, said.percent_twice / 100, said.seed, seat.actor)
        return _done(desk, {"assignments": added})


def _add_publishing_route(router: APIRouter, desk: LabellingDesk, Maintainer) -> None:
    service = desk.service

    @router.post(
        f"{API}/publish",
        summary="Publish the label set as it stands as a new version; for maintainers",
        openapi_extra=described(Publication),
        responses=REFUSALS,
    )
    def publish(
        seat: Maintainer, said: Annotated[Publication, Depends(json_body(Publication))]
    ) -> JSONResponse:
        """Where the Space serves the labels in its records, every submission is scored again at once."""
        with refused_as_http(service):
            version = desk.publish(seat.actor, said.why)
            found = {
                "version": version.version,
                "labelled": version.labelled,
                "changes": dict(version.changes),
            }
            if serves_records(service.settings) and service.label_version == version.version:
                found["rescored"] = rescore(service, seat.actor).to_json()
        return _done(desk, found)


def _new(desk: LabellingDesk, explorer: Explorer, seat: Seat, said: Assigning) -> list[str]:
    splits = ("dev", "test") if said.split == "both" else (said.split,)
    shown = {name for dataset in explorer.datasets() for name in dataset.index.by_id}
    return [
        trajectory.trajectory_id
        for split in splits
        for trajectory in desk.service.suite.split(split)
        if trajectory.trajectory_id in shown and trajectory.trajectory_id not in seat.state.assigned
    ]


def _done(desk: LabellingDesk, found: dict) -> JSONResponse:
    return JSONResponse({**found, "lasts": wait_until_it_lasts(desk.service)}, headers=NO_STORE)
