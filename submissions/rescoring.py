"""Scoring everything again when the labels, or the metric, have another version: ranks before and after.

Old scores stay as they are, under the version that they were made with.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from leaderboard.board import Board
from submissions.accounts import Actor
from submissions.chain import Event, events_after
from submissions.database import snapshot, transaction
from submissions.lookup import versions_scored
from submissions.projection import add_event
from submissions.refusals import SubmissionError
from submissions.scorer import POLICY
from submissions.service import SubmissionService


@dataclass(frozen=True)
class RankChange:
    """A row's place in the success ranking under two label versions; None where it has none."""

    id: str
    judge: str
    account: str
    before: int | None
    after: int | None


@dataclass(frozen=True)
class Rescoring:
    """What a new label version changed. ``scored`` is how many submissions were scored just now."""

    before: str | None
    after: str
    scored: int
    changes: tuple[RankChange, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def rescore(service: SubmissionService, actor: Actor) -> Rescoring:
    """Score every submission under the labels as they are now, and record what it did to the ranks.

    Stopped half way, it goes on where it was when it is called again. Doing it twice adds no second record.
    Raises SubmissionError where there are no labels.
    """
    version = service.label_version
    if version is None:
        raise SubmissionError(f"nothing can be scored: {service.read_only_reason}")
    scored = service.finish_scoring()
    before = previous_version(service, version)
    old = service.board_under(before) if before else None
    found = Rescoring(before, version, scored, rank_changes(old, service.board_under(version)))
    if before and not _is_recorded(service, before, version):
        ranks = {change.id: [change.before, change.after] for change in found.changes}
        body = {"from": before, "to": version, "submissions": len(ranks), "ranks": ranks}
        with transaction(service.engine) as session:
            add_event(session, "rescored", actor.name, service.clock(), body)
    return found


def previous_version(service: SubmissionService, version: str) -> str | None:
    """The label version that submissions were scored under before this one; None where it is the first."""
    with snapshot(service.engine) as session:
        versions = versions_scored(session, service.suite.name, POLICY)
    if version in versions:
        versions = versions[: versions.index(version)]
    return versions[-1] if versions else None


def rank_changes(before: Board | None, after: Board) -> tuple[RankChange, ...]:
    """The places of every scored row on two boards, in the order of the newer one."""
    places = {row.id: _place(row.labels) for row in before.rows} if before else {}
    return tuple(
        RankChange(row.id, row.judge, row.account, places.get(row.id), _place(row.labels))
        for row in after.rows
        if row.provenance == "scored"
    )


def rescorings(service: SubmissionService) -> list[Event]:
    """The records of the re-scorings so far, in order."""
    with snapshot(service.engine) as session:
        return events_after(session, kinds=["rescored"])


def _is_recorded(service: SubmissionService, before: str, after: str) -> bool:
    return any((r.body["from"], r.body["to"]) == (before, after) for r in rescorings(service))


def _place(labels: Mapping[str, Any]) -> int | None:
    rank = (labels.get("success") or {}).get("rank")
    return rank["place"] if rank else None
