"""Steps and other parts of a run: their labels, next to the answers of judges.

Like all labels, they are shown only for splits whose labels may be shown (`Suite.shows_labels`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from arb.core.annotation import Annotation
from arb.core.ids import ItemKey, Trajectory
from arb.core.predictions.table import Predictions, is_answered
from arb.core.suite import Suite
from arb.core.suites.targets import NO_ANSWER, Target
from leaderboard.labels.labels import LabelSet
from space.pages.trajectories.verdicts import SubmittedJudge
from space.web.cells import short_name


@dataclass(frozen=True, slots=True)
class PartAnswer:
    """A judge's answer about a part. ``is_wrong`` says whether it contradicts the label; None if unknown."""

    judge: str
    id: str
    answer: str | None
    is_wrong: bool | None


@dataclass(frozen=True, slots=True)
class RunPart:
    """A step or another part of a run. Its label and the judges' answers are values of one target."""

    step: str | None
    part: str | None
    target: str
    label: str | None
    answers: tuple[PartAnswer, ...]


def parts_of_run(
    suite: Suite, run: Trajectory, labels: Mapping[ItemKey, Annotation], judges: Sequence[SubmittedJudge]
) -> tuple[RunPart, ...]:
    """Return the parts of a run that the suite asks about, in order, or none if their labels are hidden.

    Only test runs have answers of judges.
    """
    if not suite.shows_labels(run.split):
        return ()
    judges = judges if run.split == "test" else ()
    found = []
    for place, item in enumerate(suite.items(run.split)):
        if item.trajectory_id != run.trajectory_id or item.level == "run":
            continue
        row = labels.get(item.key)
        for target in (each for each in suite.targets if each.level == item.level):
            label = row.answers.get(target.name) if row else None
            answers = tuple(_answer_of(judge, place, target, label) for judge in judges)
            found.append(RunPart(item.step, item.part, target.name, label, answers))
    return tuple(found)


def _answer_of(judge: SubmittedJudge, place: int, target: Target, label: str | None) -> PartAnswer:
    code = judge.verdicts.codes(target.name)[place]
    answer, is_wrong = None, None
    if is_answered(code) and target.type == "score":
        answer = f"{code:g}"
    elif is_answered(code):
        answer = next(value for value in target.values if target.code(value) == code)
        is_wrong = bool(code != target.code(label)) if target.code(label) != NO_ANSWER else None
    return PartAnswer(short_name(judge.row), judge.row.id, answer, is_wrong)


def wrong_parts(parts: Sequence[RunPart]) -> dict[str, list[RunPart]]:
    """Return the parts on which a judge is wrong, keyed by the judge's name."""
    found: dict[str, list[RunPart]] = {}
    for part in parts:
        for answer in part.answers:
            if answer.is_wrong:
                found.setdefault(answer.judge, []).append(part)
    return found


def wrong_items(suite: Suite, labels: LabelSet, verdicts: Predictions) -> Iterator[tuple[Trajectory, Target]]:
    """Yield (item, target) for each step or part on which a judge is wrong, in the order of the labels."""
    for target in suite.scored_targets:
        codes, truth = verdicts.codes(target.name), labels.primary[target.name]
        if target.level != "run" and target.type != "score" and len(codes) == len(truth):
            is_wrong = (truth != NO_ANSWER) & (codes != NO_ANSWER) & (codes != truth)
            for place in np.flatnonzero(is_wrong):
                yield labels.trajectories[place], target
