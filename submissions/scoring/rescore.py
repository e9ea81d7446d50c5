"""Publishes a label set, scores every submission under it, and records how ranks and figures change.

A label set is stored by its hash and recorded with the reason for publishing it. Old scores are kept under
their label version.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from sqlalchemy.orm import Session

from arb.core.predictions.table import is_answered
from arb.core.suites.targets import Target, scored
from leaderboard.board.board import Board, BoardRow, rank_rows
from leaderboard.board.ranks import RankingData
from leaderboard.labels.aggregation import aggregate
from leaderboard.labels.annotations import write_released
from leaderboard.labels.labels import LabelSet, LabelsInvalid, load_annotations
from leaderboard.labels.source import LabelsUnavailable
from leaderboard.report import score_verdicts, verdicts_of
from leaderboard.score import Cell, metric_of
from submissions.app import SubmissionsApp
from submissions.errors import SubmissionError
from submissions.intake.accounts import Actor, require_maintainer
from submissions.labels.decisions import Decision
from submissions.labels.versions import (
    UNREADABLE,
    LabelVersion,
    changes_between,
    published_versions,
    serves_records,
    versions_at,
)
from submissions.moderation.actions import checked_line
from submissions.records.database import Event
from submissions.records.event_log import add_event, events_after, recording
from submissions.records.queries import POLICY, ScoreLine, current_statuses, score_lines, versions_scored
from submissions.scoring.verdicts import VerdictsUnavailable

FIGURES: Final = ("precision", "recall", "f1")
REASON_LENGTH: Final = 2_000


@dataclass(frozen=True)
class RankChange:
    """A row's place on the main target before and after; a place is None if the row had none."""

    id: str
    judge: str
    account: str
    before: int | None
    after: int | None


@dataclass(frozen=True)
class Rescoring:
    """The effect of a new label version; ``scored`` counts the submissions scored by this call."""

    before: str | None
    after: str
    scored: int
    changes: tuple[RankChange, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class JudgeEffect:
    """The effect of new labels on the exact figures of a submission for one question.

    ``places`` are the places by the main metric before and after. They are among the rows of the board or, if
    labels are private, among all submissions that may be on it. ``to_wrong`` counts verdicts that were right
    and are now wrong, and ``to_right`` the opposite. Neither counts items whose label is or was unsure.
    Numbers are right if they equal the label.
    """

    id: str
    places: tuple[int | None, int | None]
    before: Mapping[str, float | None]
    after: Mapping[str, float | None]
    to_wrong: int
    to_right: int


Effects = Mapping[str, Sequence[JudgeEffect]]
"""The effects on submissions in the order of their new places, for each question with changed labels."""


def label_effects(service: SubmissionsApp, before: LabelSet, after: LabelSet) -> Effects:
    """Return how the label set ``after`` would change the figures of each submission scored under ``before``.

    Nothing is recorded. A submission whose file cannot be read is left out.
    """
    changed = [
        target
        for target in scored(after.targets)
        if not np.array_equal(_numbers(before.primary[target.name]), _numbers(after.primary[target.name]))
    ]
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
    for target in changed:
        answers = ((line, verdicts_of(found, target.name)) for line, found in verdicts.items())
        if columns := {line: column for line, column in answers if column is not None}:
            effects[target.name] = _effects_on(target, before, after, columns, published)
    return effects


def _numbers(codes: np.ndarray) -> np.ndarray:
    """Return codes or scores as numbers, with negative infinity for missing values."""
    return np.where(is_answered(codes), codes, -np.inf)


def _effects_on(
    target: Target, before: LabelSet, after: LabelSet, columns: Mapping[ScoreLine, np.ndarray],
    published: Sequence[BoardRow],
) -> list[JudgeEffect]:  # fmt: skip
    cells: list[dict[ScoreLine, Cell]] = []
    for labels in (before, after):
        of_lines = {}
        for line, column in columns.items():
            score = score_verdicts(column, labels, target.name, POLICY, n_resamples=0, by_agent=False)
            of_lines[line] = score["overall"]
        cells.append(of_lines)
    places = [_places(target, found, published) for found in cells]
    truth = [_numbers(labels.primary[target.name]) for labels in (before, after)]
    is_known = np.isfinite(truth[0]) & np.isfinite(truth[1])
    figures = dict.fromkeys((*FIGURES, target.main_metric)) if target.type == "binary" else target.metrics
    found = []
    for line, column in columns.items():
        answers = _numbers(column)
        if target.missing == "negative":
            answers = np.where(np.isfinite(answers), answers, 0)
        was_wrong, now_wrong = (answers != labels for labels in truth)
        name = line.submission_id
        effect = JudgeEffect(
            name,
            (places[0].get(name), places[1].get(name)),
            before={figure: metric_of(cells[0][line], figure) for figure in figures},
            after={figure: metric_of(cells[1][line], figure) for figure in figures},
            to_wrong=int((is_known & ~was_wrong & now_wrong).sum()),
            to_right=int((is_known & was_wrong & ~now_wrong).sum()),
        )
        found.append(effect)
    return sorted(found, key=lambda each: (each.places[1] is None, each.places[1] or 0, each.id))


def _places(target: Target, cells: Mapping[ScoreLine, Cell], published: Sequence[BoardRow]) -> dict[str, int]:
    """Return the place by the main metric of each judge's best row, keyed by row id."""
    rows = [
        BoardRow(
            id=line.submission_id, judge=line.judge, account=line.account, kind="", provenance="scored",
            date=line.submitted_at.isoformat(timespec="microseconds"), source="",
            labels={target.name: {"overall": cell, "by_benchmark": {}, "by_agent": {}}},
        )
        for line, cell in cells.items()
    ]  # fmt: skip
    ranks = rank_rows([*rows, *published], target, target.main_metric, RankingData())
    return {row_id: rank.place for row_id, rank in ranks.items() if rank is not None}


def rescore(service: SubmissionsApp, actor: Actor) -> Rescoring:
    """Score every submission under the current labels, and record the effect on ranks and figures.

    Call this again after an interruption; the effect is recorded only once. Raises SubmissionError if there
    are no labels.
    """
    version, suite = service.label_version, service.suite.name
    if version is None:
        raise SubmissionError(f"nothing can be scored: {service.intake.read_only_reason}")
    scored = service.intake.finish_scoring()
    with service.snapshot() as session:
        before = _version_before(session, suite, version)
        is_recorded = before is None or _is_recorded(session, suite, before, version)
    old = service.records.board_under(before) if before else None
    found = Rescoring(before, version, scored, _rank_changes(old, service.records.board_under(version)))
    if before is not None and not is_recorded:
        ranks = {change.id: [change.before, change.after] for change in found.changes}
        labels, effects = label_set_of(service, before), None
        if labels is not None and service.labels.test is not None:
            by_label = label_effects(service, labels, service.labels.test)
            effects = {label: [asdict(each) for each in rows] for label, rows in by_label.items()}
        body = {"from": before, "to": version, "submissions": len(ranks), "ranks": ranks, "effects": effects}
        with recording(service.engine) as session:
            if not _is_recorded(session, suite, before, version):
                add_event(session, "rescored", actor.name, service.clock(), body)
    return found


def finish(service: SubmissionsApp) -> None:
    """Finish interrupted work: compute missing scores, and record the effect of the newest labels."""
    service.forget_labels()  # records that were restored may contain the label set to serve
    service.intake.finish_scoring()
    with service.snapshot() as session:
        versions = versions_at(session, service.suite.name)
        if not versions or versions[-1].version != service.label_version:
            return
        before, after = versions[-1].replaces, versions[-1].version
        if before in (None, after) or _is_recorded(session, service.suite.name, before, after):
            return
    rescore(service, Actor(versions[-1].by, is_maintainer=True))


def label_set_of(service: SubmissionsApp, version: str) -> LabelSet | None:
    """Return the test labels of a version from a published set or from ARB_LABELS, or None.

    Raises SecretUnavailable if labels are private and the secret that their version depends on is missing.
    """
    known = published_versions(service.engine, service.suite.name)
    file = next((each.file_sha256 for each in reversed(known) if each.version == version), None)
    if file is None and serves_records(service.settings):
        return None
    try:
        found = service.labels.load(file)
    except (LabelsInvalid, LabelsUnavailable):
        return None
    return found if file is not None or found.version == version else None


def _version_before(session: Session, suite: str, version: str) -> str | None:
    """Return the version that was served before ``version``, or None.

    If the records do not name it, this is the last other version that submissions were scored under.
    """
    published = versions_at(session, suite)
    if published and published[-1].version == version and published[-1].replaces:
        replaced = published[-1].replaces
        return replaced if replaced != version else None
    scored = versions_scored(session, suite)
    if version in scored:
        scored = scored[: scored.index(version)]
    return scored[-1] if scored else None


def _rank_changes(before: Board | None, after: Board) -> tuple[RankChange, ...]:
    """Return the places of every scored row on two boards, in the order of the newer board."""
    rankings = [board.ranks(board.main.name) if board else {} for board in (before, after)]
    changes = []
    for row in after.rows:
        if row.provenance == "scored":
            ranks = (ranking.get(row.id) for ranking in rankings)
            places = (rank.place if rank else None for rank in ranks)
            changes.append(RankChange(row.id, row.judge, row.account, *places))
    return tuple(changes)


def corrections_for(submission_id: str, records: Iterable[Event]) -> list[tuple[Event, dict[str, Any]]]:
    """Return the `rescorings` that changed a submission's figures, newest first, with effects per label."""
    found = []
    for record in records:
        effects = {
            label: each
            for label, rows in (record.body.get("effects") or {}).items()
            for each in rows
            if each["id"] == submission_id and each["before"] != each["after"]
        }
        if effects:
            found.append((record, effects))
    return found[::-1]


def rescorings(service: SubmissionsApp) -> list[Event]:
    with service.snapshot() as session:
        return events_after(session, kinds=["rescored"])


def _is_recorded(session: Session, suite: str, before: str | None, after: str) -> bool:
    """Return whether this change has been recorded since the newer labels were last published."""
    found = False
    for event in events_after(session, kinds=("labels_published", "rescored")):
        if event.kind == "rescored":
            found = found or (event.body["from"], event.body["to"]) == (before, after)
        elif event.body["suite"] == suite and event.body["version"] == after:
            found = False
    return found


def publish(
    service: SubmissionsApp, content: bytes, actor: Actor, why: str, base: str | None = None,
    corrections: Sequence[Decision] = (), since: int | None = None, left_out: Sequence[str] = (),
) -> LabelVersion:  # fmt: skip
    """Publish a file in the released format as the suite's newest label set, and return its version.

    Call `rescore` afterwards to score everything under the new set. Publishing the newest set again changes
    nothing. See `LabelVersion` for ``base``, ``corrections`` and ``left_out``.

    Raises PermissionDenied, or SubmissionError if the file is not valid or if, since the event ``since``, a
    label set was published or a dispute decided. Messages name every bad row, but no label.
    """
    require_maintainer(actor, "publish labels")
    reason = checked_line(
        why, f"say what changed and why, in up to {REASON_LENGTH:,} characters", REASON_LENGTH
    )
    sha256 = service.files.keep(content)
    try:
        found = service.labels.load(sha256)
    except UNREADABLE as problem:
        raise SubmissionError(f"the label file cannot be used: {problem}") from None
    known = published_versions(service.engine, service.suite.name)
    if known and known[-1].version == found.version and not corrections:
        return known[-1]
    is_next = bool(known) and serves_records(service.settings)
    before = service.labels.load(known[-1].file_sha256) if is_next else service.labels.test
    body: dict[str, Any] = {
        "suite": service.suite.name,
        "version": found.version,
        "file_sha256": sha256,
        "why": reason,
        "labelled": int(is_answered(found.primary[service.suite.main_target.name]).sum()),
        "changes": changes_between(before, found),
        "guidelines_sha256": service.suite.guidelines_sha256,
    }
    optional = {
        "replaces": service.label_version,
        "base": base,
        "corrections": [each.to_event() for each in corrections],
        "left_out": [*left_out],
    }
    body |= {name: value for name, value in optional.items() if value}
    with recording(service.engine) as session:
        newer = [] if since is None else events_after(session, since, ("labels_published", "dispute_decided"))
        for event in newer:
            what = f"decided dispute {event.body.get('dispute_id')}"
            if event.kind == "labels_published":
                what = f"published label version {event.body['version']}"
            raise SubmissionError(f"{event.actor} {what} at the same time; review the next version again")
        add_event(session, "labels_published", actor.name, service.clock(), body)
    service.forget_labels()
    return published_versions(service.engine, service.suite.name)[-1]


def publish_file(
    service: SubmissionsApp, path: Path, actor: Actor, why: str, with_open: bool = False
) -> LabelVersion:
    """Publish a local file of labels as the newest label set. Unknown columns are an error.

    The rules of the suite's targets turn several answers into one label; see `aggregate` for these rules and
    for ``with_open``. Parquet files, and all files of a suite with its own questions, are converted to the
    released format. It stores answers by value, because their titles may change.
    """
    suite = service.suite
    try:
        annotations = load_annotations(suite, service.settings, file=path, is_strict=True)
        has_rules = any(target.aggregate != "first" for target in suite.targets)
        left_out: Sequence[str] = ()
        if path.suffix != ".parquet" and not suite.own_targets and not has_rules:
            content = path.read_bytes()
        else:
            labels = aggregate(annotations, suite.targets, with_open)
            content = write_released(labels.annotations, questions=suite.targets).encode()
            left_out = labels.names_left_out()
    except (LabelsInvalid, LabelsUnavailable, ValueError) as problem:
        raise SubmissionError(f"the label file cannot be used: {problem}") from None
    return publish(service, content, actor, why, left_out=left_out)
