"""Publishing a label set, and scoring everything again under it: ranks before and after.

A set is checked whole, stored by its hash and recorded with its reason. Old scores stay as they are, under
the version that they were made with.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from leaderboard.board.board import Board
from leaderboard.labels.labels import LabelsInvalid
from leaderboard.labels.source import LabelsUnavailable
from submissions.errors import PermissionDenied, SubmissionError
from submissions.intake.accounts import Actor
from submissions.labels.versions import (
    LabelVersion,
    load_set,
    publication_body,
    published_versions,
    serves_records,
)
from submissions.records.database import snapshot, transaction
from submissions.records.event_log import Event, add_event, events_after, lock_event_log
from submissions.records.queries import versions_scored
from submissions.scoring.scorer import POLICY
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
    with snapshot(service.engine) as session:
        return events_after(session, kinds=["rescored"])


def _is_recorded(service: SubmissionService, before: str, after: str) -> bool:
    return any((e.body["from"], e.body["to"]) == (before, after) for e in rescorings(service))


def _place(labels: Mapping[str, Any]) -> int | None:
    rank = (labels.get("success") or {}).get("rank")
    return rank["place"] if rank else None


REASON_LENGTH = 2_000


def publish(service: SubmissionService, content: bytes, actor: Actor, why: str) -> LabelVersion:
    """Make a file in the released format the newest label set of the suite.

    What was scored stays as it is; `rescore` scores everything under the new set. Publishing the set that is
    the newest already changes nothing. Raises PermissionDenied, and SubmissionError naming every bad row
    (never a label).
    """
    if not actor.is_maintainer:
        raise PermissionDenied("only maintainers may publish labels")
    reason = " ".join(why.split())
    if not reason or len(reason) > REASON_LENGTH:
        raise SubmissionError(f"say what changed and why in up to {REASON_LENGTH} characters")
    sha256 = service.files.keep(content)
    key = service.labels.version_key("test")
    try:
        found = load_set(service.suite, service.settings, service.files.path(sha256), key)
    except (LabelsInvalid, LabelsUnavailable) as problem:
        raise SubmissionError(f"the label file cannot be used: {problem}") from None
    known = published_versions(service.engine, service.suite.name)
    if known and known[-1].version == found.version:
        return known[-1]
    before = _previous(service, known, key)
    with transaction(service.engine) as session:
        lock_event_log(session)
        body = publication_body(service.suite.name, found, before, sha256, reason)
        add_event(session, "labels_published", actor.name, service.clock(), body)
    if serves_records(service.settings):
        service.forget_labels()
    return published_versions(service.engine, service.suite.name)[-1]


def publish_file(service: SubmissionService, path: Path, actor: Actor, why: str) -> LabelVersion:
    """The same of a file on this machine; our Parquet is turned into the released format first."""
    if path.suffix != ".parquet":
        return publish(service, path.read_bytes(), actor, why)
    from leaderboard.labels.annotations import write_released
    from leaderboard.labels.labels import load_annotations

    try:
        annotations = load_annotations(service.suite, service.settings, file=path)
        content = write_released(annotations).encode()
    except (LabelsInvalid, LabelsUnavailable, ValueError) as problem:
        raise SubmissionError(f"the label file cannot be used: {problem}") from None
    return publish(service, content, actor, why)


def _previous(service: SubmissionService, known: list[LabelVersion], key: bytes | None):
    """The label set before: the newest published one, else what the Space is set to."""
    if not known:
        return None if serves_records(service.settings) else service.labels.test
    return load_set(service.suite, service.settings, service.files.path(known[-1].file_sha256), key)
