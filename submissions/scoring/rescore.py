"""Publishing a label set, and scoring everything again under it: ranks and figures before and after.

A set is checked whole, stored by its hash and recorded with its reason. Old scores stay as they are, under
the version that they were made with.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from sqlalchemy.orm import Session

from arb.core.vocabulary import LABELS
from leaderboard.board.board import Board, BoardRow, rank_rows
from leaderboard.board.ranks import RankingData
from leaderboard.judge_precision.confusion import confusion_counts, figures
from leaderboard.labels.labels import LabelSet, LabelsInvalid
from leaderboard.labels.source import LabelsUnavailable
from leaderboard.report import verdicts_of
from leaderboard.score import Cell
from submissions.app import SubmissionsApp
from submissions.errors import PermissionDenied, SubmissionError
from submissions.intake.accounts import Actor
from submissions.labels.decisions import Decision
from submissions.labels.versions import (
    LabelVersion,
    load_base,
    load_set,
    publication_body,
    published_versions,
    serves_records,
)
from submissions.privacy.server_secret import SecretUnavailable
from submissions.records.database import transaction
from submissions.records.event_log import Event, add_event, events_after, lock_event_log
from submissions.records.queries import POLICY, ScoreLine, current_statuses, score_lines, versions_scored
from submissions.scoring.verdicts import VerdictsUnavailable


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


FIGURES: Final = ("precision", "recall", "f1")


@dataclass(frozen=True)
class JudgeEffect:
    """What new labels do to the figures of a submission on one question, exact ones.

    ``places`` are those by precision before and after, among the rows of the board (where labels are private:
    among all submissions that may stand there, which is not what the board shows). ``to_wrong`` counts
    verdicts that were right and are wrong now, ``to_right`` the other way; one on a label that is unsure
    before or after is neither.
    """

    id: str
    places: tuple[int | None, int | None]
    before: Mapping[str, float | None]
    after: Mapping[str, float | None]
    to_wrong: int
    to_right: int


Effects = Mapping[str, Sequence[JudgeEffect]]
"""By question that is scored, its rows in the order of the newer places; only where labels differ."""


def label_effects(service: SubmissionsApp, before: LabelSet, after: LabelSet) -> Effects:
    """What each submission that was scored under one label set would be under another one, from its verdicts.

    Nothing is recorded. A submission whose file cannot be read is left out.
    """
    changed = [label for label in LABELS if (before.primary[label] != after.primary[label]).any()]
    if not changed:
        return {}
    published = [row for row in service.records.board().rows if row.provenance != "scored"]
    with service.snapshot() as session:
        statuses = current_statuses(session)
        lines = score_lines(session, service.suite.name, before.version)
    verdicts = {}
    for line in lines:
        if statuses.of(line.submission_id).is_on_the_board:
            with suppress(VerdictsUnavailable):
                verdicts[line] = service.records.verdicts(line.submission_id)
    effects = {}
    for label in changed:
        answers = ((line, verdicts_of(found, label)) for line, found in verdicts.items())
        if columns := {line: column for line, column in answers if column is not None}:
            labels = before.primary[label], after.primary[label]
            effects[label] = _effects_on(label, *labels, columns, published)
    return effects


def _effects_on(
    label: str,
    before: np.ndarray,
    after: np.ndarray,
    columns: Mapping[ScoreLine, np.ndarray],
    published: Sequence[BoardRow],
) -> list[JudgeEffect]:
    sides = [{line: _cell(column, labels) for line, column in columns.items()} for labels in (before, after)]
    old, new = (_places(label, cells, published) for cells in sides)
    found = []
    for line, column in columns.items():
        was_right, is_right = ((column == 1) == (labels == 1) for labels in (before, after))
        is_known = (before >= 0) & (after >= 0)
        name = line.submission_id
        found.append(
            JudgeEffect(
                name,
                (old.get(name), new.get(name)),
                *({figure: cells[line][figure] for figure in FIGURES} for cells in sides),
                to_wrong=int((is_known & was_right & ~is_right).sum()),
                to_right=int((is_known & ~was_right & is_right).sum()),
            )
        )
    return sorted(found, key=lambda each: (each.places[1] is None, each.places[1] or 0, each.id))


def _cell(column: np.ndarray, labels: np.ndarray) -> Cell:
    """The CELL of all verdicts, without intervals."""
    one_group = np.zeros(len(labels), dtype=np.int64)
    counts = confusion_counts(column, labels, one_group, 1, POLICY)[0]
    return figures(*(int(count) for count in counts), policy=POLICY)


def _places(label: str, cells: Mapping[ScoreLine, Cell], published: Sequence[BoardRow]) -> dict[str, int]:
    """The place of each row that stands for its judge among all of them."""
    rows = [
        BoardRow(
            id=line.submission_id, judge=line.judge, account=line.account, kind="", provenance="scored",
            date=line.submitted_at.isoformat(timespec="microseconds"), source="",
            labels={label: {"overall": cell}},
        )
        for line, cell in cells.items()
    ]  # fmt: skip
    ranks = rank_rows([*rows, *published], label, "precision", RankingData())
    return {row_id: rank.place for row_id, rank in ranks.items() if rank is not None}


def rescore(service: SubmissionsApp, actor: Actor) -> Rescoring:
    """Score every submission under the labels as they are now, and record what it did to ranks and figures.

    Stopped half way, it goes on where it was when it is called again. Doing it twice adds no second record.
    Raises SubmissionError where there are no labels.
    """
    version = service.label_version
    if version is None:
        raise SubmissionError(f"nothing can be scored: {service.intake.read_only_reason}")
    scored = service.intake.finish_scoring()
    before = _version_before(service, version)
    old = service.records.board_under(before) if before else None
    found = Rescoring(before, version, scored, _rank_changes(old, service.records.board_under(version)))
    if before and not _is_recorded(service, before, version):
        ranks = {change.id: [change.before, change.after] for change in found.changes}
        effects = _effects_of(service, before)
        body = {"from": before, "to": version, "submissions": len(ranks), "ranks": ranks, "effects": effects}
        with transaction(service.engine) as session:
            lock_event_log(session)
            if not _is_among(session, before, version, service.suite.name):
                add_event(session, "rescored", actor.name, service.clock(), body)
    return found


def finish(service: SubmissionsApp) -> None:
    """What a stop left undone: scores, and after publishing labels the record of what they changed."""
    service.intake.finish_scoring()
    for newest in published_versions(service.engine, service.suite.name)[-1:]:
        before, after = newest.replaces, newest.version
        is_new = before not in (None, after) and after == service.label_version
        if is_new and not _is_recorded(service, before, after):
            rescore(service, Actor(newest.by, is_maintainer=True))


def _effects_of(service: SubmissionsApp, before: str) -> dict[str, list[dict[str, Any]]] | None:
    """The effects of the labels of now as the record holds them; None where the earlier ones are gone."""
    old, new = label_set_of(service, before), service.labels.test
    if old is None or new is None:
        return None
    found = label_effects(service, old, new)
    return {label: [asdict(each) for each in effects] for label, effects in found.items()}


def label_set_of(service: SubmissionsApp, version: str) -> LabelSet | None:
    """Return the test labels of a version, from a published set or the file in ARB_LABELS; None if neither
    has it.

    Raises SecretUnavailable if the labels are hidden and there is no secret to name their version with.
    """
    key = service.labels.version_key("test")
    known = published_versions(service.engine, service.suite.name)
    file = next((each.file_sha256 for each in reversed(known) if each.version == version), None)
    try:
        if file is not None:
            return load_set(service.suite, service.settings, service.files.path(file), key)
        found = None if serves_records(service.settings) else load_base(service.suite, service.settings, key)
    except (LabelsInvalid, LabelsUnavailable):
        return None
    return found if found is not None and found.version == version else None


def _version_before(service: SubmissionsApp, version: str) -> str | None:
    """Return the version that was served before the labels of now were published.

    Without a record of that it is the version that submissions were scored under before; None if there is
    none.
    """
    newest = published_versions(service.engine, service.suite.name)[-1:]
    if newest and newest[0].version == version and newest[0].replaces:
        return newest[0].replaces if newest[0].replaces != version else None
    with service.snapshot() as session:
        versions = versions_scored(session, service.suite.name)
    if version in versions:
        versions = versions[: versions.index(version)]
    return versions[-1] if versions else None


def _rank_changes(before: Board | None, after: Board) -> tuple[RankChange, ...]:
    """Return the places of every scored row on two boards, in the order of the newer one."""
    ranks = [board.ranks("success") if board else {} for board in (before, after)]
    changes = []
    for row in after.rows:
        if row.provenance == "scored":
            places = (found[row.id].place if found.get(row.id) else None for found in ranks)
            changes.append(RankChange(row.id, row.judge, row.account, *places))
    return tuple(changes)


def rescorings(service: SubmissionsApp) -> list[Event]:
    """Return the record of every re-scoring, oldest first."""
    with service.snapshot() as session:
        return events_after(session, kinds=["rescored"])


def _is_recorded(service: SubmissionsApp, before: str, after: str) -> bool:
    with service.snapshot() as session:
        return _is_among(session, before, after, service.suite.name)


def _is_among(session: Session, before: str, after: str, suite: str) -> bool:
    """Return whether the change is recorded, and the newer labels were not published once more since."""
    found = False
    for event in events_after(session, kinds=("labels_published", "rescored")):
        if event.kind == "rescored":
            found = found or (event.body["from"], event.body["to"]) == (before, after)
        elif event.body["suite"] == suite and event.body["version"] == after:
            found = False
    return found


REASON_LENGTH = 2_000


def publish(
    service: SubmissionsApp,
    content: bytes,
    actor: Actor,
    why: str,
    base: str | None = None,
    corrections: Sequence[Decision] = (),
    since: int | None = None,
) -> LabelVersion:
    """Make a file in the released format the newest label set of the suite.

    What was scored stays as it is; `rescore` scores everything under the new set. Publishing the set that is
    the newest already changes nothing. ``base`` and ``corrections`` are those of `LabelVersion`; ``since`` is
    the last event that the set was made from: where a label set was published or a dispute decided behind it,
    nothing is published. Raises PermissionDenied, and SubmissionError naming every bad row (never a label).
    """
    if not actor.is_maintainer:
        raise PermissionDenied("only maintainers may publish labels")
    reason = " ".join(why.split())
    if not reason or len(reason) > REASON_LENGTH:
        raise SubmissionError(f"say what changed and why in up to {REASON_LENGTH} characters")
    sha256 = service.files.keep(content)
    try:
        key = service.labels.version_key("test")
        found = load_set(service.suite, service.settings, service.files.path(sha256), key)
    except (LabelsInvalid, LabelsUnavailable, SecretUnavailable) as problem:
        raise SubmissionError(f"the label file cannot be used: {problem}") from None
    known = published_versions(service.engine, service.suite.name)
    if known and known[-1].version == found.version and not corrections:
        return known[-1]
    before = _previous(service, known, key)
    with transaction(service.engine) as session:
        lock_event_log(session)
        if since is not None:
            for event in events_after(session, since, ("labels_published", "dispute_decided")):
                raise SubmissionError(
                    f"{event.actor} {_deed(event)} at the same time: look at the next version again"
                )
        body = publication_body(
            service.suite, found, before, sha256, reason, service.label_version, base, corrections
        )
        add_event(session, "labels_published", actor.name, service.clock(), body)
    service.forget_labels()
    return published_versions(service.engine, service.suite.name)[-1]


def _deed(event: Event) -> str:
    if event.kind == "labels_published":
        return f"published label version {event.body['version']}"
    return f"decided dispute {event.body['dispute_id']}"


def publish_file(service: SubmissionsApp, path: Path, actor: Actor, why: str) -> LabelVersion:
    """The same of a file on this machine, every column of which has to be known.

    Our Parquet is turned into the released format first, and titles of own answers, which may change, into
    values; else the file stays as it is.
    """
    from leaderboard.labels.annotations import write_released
    from leaderboard.labels.labels import load_annotations

    suite = service.suite
    try:
        annotations = load_annotations(suite, service.settings, file=path, is_strict=True)
        is_kept = path.suffix != ".parquet" and not suite.own_questions
        content = (
            path.read_bytes() if is_kept else write_released(annotations, questions=suite.questions).encode()
        )
    except (LabelsInvalid, LabelsUnavailable, ValueError) as problem:
        raise SubmissionError(f"the label file cannot be used: {problem}") from None
    return publish(service, content, actor, why)


def _previous(service: SubmissionsApp, known: list[LabelVersion], key: bytes | None) -> LabelSet | None:
    """The label set before: the newest published one where such are served, else what is served."""
    if not (known and serves_records(service.settings)):
        return service.labels.test
    return load_set(service.suite, service.settings, service.files.path(known[-1].file_sha256), key)
