"""A threshold on a judge's score: chosen on dev, frozen into a file, and part of the judge from then on."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from judges.base import Answer, Asking, Judge, View, Wants
from judges.command_options import OptionsError

Figure = Literal["f1", "precision"]
FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class Threshold:
    """Yes from ``value`` on. Chosen for ``judge`` on the dev labels of this version, to maximise ``figure``
    with a recall of at least ``min_recall``; the counts and figures (fractions) are those on dev.
    """

    judge: str
    suite: str
    label_version: str
    figure: Figure
    min_recall: float
    value: float
    tp: int
    fp: int
    fn: int
    tn: int
    precision: float
    recall: float
    f1: float
    format: int = FORMAT


@dataclass(frozen=True, slots=True)
class Scored:
    """A run with the judge's score, None where it gave none, and the expert's label."""

    score: float | None
    label: bool


def choose_threshold(
    runs: Sequence[Scored], figure: Figure, min_recall: float, judge: str, suite: str, label_version: str
) -> Threshold:
    """The lowest of the scores given at which the figure is highest; a run without a score is a no.

    Raises OptionsError when no run is positive, none has a score, or no score reaches the recall.
    """
    positives = sum(run.label for run in runs)
    given = sorted({run.score for run in runs if run.score is not None})
    if not positives or not given:
        why = "no run has a score (see --logprobs and --samples)" if positives else "no run is a success"
        raise OptionsError(f"no threshold can be chosen: {why}")
    best: Threshold | None = None
    for value in given:
        said = [run.label for run in runs if run.score is not None and run.score >= value]
        tp = sum(said)
        fp, fn = len(said) - tp, positives - tp
        found = Threshold(
            judge, suite, label_version, figure, min_recall, value, tp, fp, fn,
            tn=len(runs) - tp - fp - fn, precision=tp / len(said), recall=tp / positives,
            f1=2 * tp / (2 * tp + fp + fn),
        )  # fmt: skip
        if found.recall >= min_recall and (best is None or getattr(found, figure) > getattr(best, figure)):
            best = found
    if best is None:
        raise OptionsError(f"no threshold reaches a recall of {min_recall:g}; lower --min-recall")
    return best


def read_threshold(path: Path) -> Threshold:
    """The threshold in a file that `judges threshold` wrote. Raises OptionsError for any other file."""
    try:
        said = json.loads(path.read_bytes())
        found = Threshold(**said)
    except (OSError, ValueError, TypeError) as error:
        raise OptionsError(f"--threshold {path}: is no threshold of `judges threshold` ({error})") from error
    is_number = isinstance(found.value, int | float) and not isinstance(found.value, bool)
    if found.format != FORMAT or not is_number or not 0 <= found.value <= 1:
        raise OptionsError(f"--threshold {path}: its value is no probability; choose it again")
    return found


def to_json(threshold: Threshold) -> bytes:
    """The file's content."""
    return json.dumps(asdict(threshold), indent=2).encode() + b"\n"


def thresholded(judge: Judge, threshold: Threshold) -> "ThresholdedJudge":
    """The judge with its threshold. Raises OptionsError when it was chosen for another one."""
    if threshold.judge != judge.name:
        raise OptionsError(f"--threshold: was chosen for {threshold.judge!r}, not for {judge.name!r}")
    return ThresholdedJudge(judge, threshold)


@dataclass(frozen=True)
class ThresholdedJudge:
    """A judge that says yes from a score on. Without a score an answer is a no, as it was on dev."""

    judge: Judge
    threshold: Threshold

    @property
    def name(self) -> str:
        """The judge's, and from where on it says yes."""
        return f"{self.judge.name}, from {self.threshold.value:.2f}"

    @property
    def inputs(self) -> str:
        """The judge's."""
        return self.judge.inputs

    @property
    def calls(self) -> str:
        """The judge's."""
        return self.judge.calls

    @property
    def source(self) -> str:
        """The judge's."""
        return self.judge.source

    @property
    def wants(self) -> Wants:
        """The judge's."""
        return self.judge.wants

    @property
    def models(self) -> Mapping[str, str]:
        """The judge's."""
        return self.judge.models

    @property
    def prompts_hash(self) -> str:
        """The judge's: the threshold changes no prompt."""
        return self.judge.prompts_hash

    def ask(self, view: View) -> Asking:
        """The judge's answer, its success decided by the score."""
        answer: Answer = yield from self.judge.ask(view)
        return decided(answer, self.threshold.value)


def decided(answer: Answer, value: float) -> Answer:
    """The answer with success from its score; one that is no verdict stays as it is."""
    if answer.state != "ok":
        return answer
    success = answer.score is not None and answer.score >= value
    fields: dict[str, Any] = asdict(answer)
    return Answer(**{**fields, "success": success})
