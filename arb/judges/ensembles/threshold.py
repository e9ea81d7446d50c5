"""Thresholds on a judge's score: chosen on dev for a stated aim, frozen in a file, applied to any split."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from arb.core.console import percent
from arb.judges.contract import open_session
from arb.judges.ensembles.voting import probability
from arb.judges.types import Judge, JudgeSession, OptionsError, View
from arb.judges.wrappers import WrappedJudge

if TYPE_CHECKING:
    import numpy as np

FORMAT: Final = 1
FIGURES: Final = ("precision", "recall", "f1")
FOLDS: Final = 5
SCORE_SETTINGS: Final = (
    "judge",
    "prompts_hash",
    "compat",
    "cascade",
    "cascade_band",
    "cascade_trusts_yes",
    "samples",
    "vote",
    "models",
    "images",
)
"""What of a run's configuration makes its scores what they are."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """A frozen threshold: from ``value`` on, a score is a success.

    ``figure`` says in words what was maximised. ``chosen_on`` has the figures of the rows it was chosen on,
    and ``held_out`` those of rows that each choice did not see (`choose_threshold`). ``plain`` has those of
    the judge's own verdicts, None in older files. ``configuration`` is what made the scores, as in run.json.
    """

    suite: str
    split: str
    label_version: str
    judge: str
    figure: str
    value: float
    chosen_on: Mapping[str, Any]
    held_out: Mapping[str, Any] | None
    configuration: Mapping[str, Any]
    plain: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class ThresholdedJudge(WrappedJudge):
    """A judge whose score decides. An answer without a score counts as 1 for yes and 0 for no.

    It keeps its name: the run's configuration has the threshold.
    """

    value: float

    def ask(self, view: View) -> JudgeSession:
        """The judge's answer, with success by its score; no verdict stays none."""
        answer = yield from open_session(self.judge, view)
        if answer.success is None:
            return answer
        score = probability(answer)
        return replace(answer, success=score >= self.value, score=score)


def with_threshold(judge: Judge, threshold: Threshold) -> ThresholdedJudge:
    """Return the judge with its frozen threshold.

    Raises:
        OptionsError: The threshold was chosen for another judge. Older files name a judge by its display
            name, newer ones by its key.
    """
    from arb.judges.registry import key_of

    if threshold.judge not in (judge.name, key := key_of(judge)):
        raise OptionsError(
            f"--threshold: was chosen for the scores of {threshold.judge}, not of {key}; choose one on dev "
            "with `python -m arb judges threshold`"
        )
    return ThresholdedJudge(judge, threshold.value)


def score_settings(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a run's configuration that its scores depend on, besides the runs that are judged.

    The models' addresses are left out: a server of one's own has another one in every job.
    """
    models = {
        role: {name: value for name, value in model.items() if name != "address"}
        for role, model in (configuration.get("models") or {}).items()
    }
    return {name: configuration.get(name) for name in SCORE_SETTINGS} | {"models": models}


def write_threshold(path: Path, threshold: Threshold) -> None:
    from arb.core.files import atomic_write

    content = {"format": FORMAT, **asdict(threshold)}
    atomic_write(path, json.dumps(content, indent=2, allow_nan=False).encode("ascii") + b"\n")


def read_threshold(path: Path) -> Threshold:
    """A frozen threshold. Raises OptionsError, which names what is wrong with the file."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise OptionsError(f"--threshold {path}: cannot be read ({error})") from None
    return threshold_of(content, f"--threshold {path}")


def threshold_of(content: Any, place: str) -> Threshold:
    """The threshold in a file's content. Raises OptionsError, which begins with ``place``."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise OptionsError(
            f"{place}: is not a threshold file of format {FORMAT}; make it with `judges threshold`"
        )
    from pydantic import TypeAdapter, ValidationError  # most runs have no threshold, and it takes memory

    try:
        found = TypeAdapter(Threshold).validate_json(json.dumps(content), strict=True)
    except ValidationError as invalid:
        problems = "; ".join(f"{each['loc'][0]}: {each['msg']}" for each in invalid.errors())
        raise OptionsError(f"{place}: {problems}; make it again with `judges threshold`") from None
    if not 0 <= found.value <= 1:
        raise OptionsError(f"{place}: value: use a number from 0 to 1; make it again with `judges threshold`")
    return found


class NoThresholdError(ValueError):
    """Scores that no threshold can be recommended for; the message says why."""


@dataclass(frozen=True, slots=True)
class Objective:
    """What a threshold is to maximise, and what it must keep: "precision where recall >= 0.7"."""

    maximise: str
    keep: str | None = None
    at_least: float = 0.0

    def __str__(self) -> str:
        return self.maximise + (f" where {self.keep} >= {self.at_least:g}" if self.keep else "")


@dataclass(frozen=True, slots=True)
class ChosenThreshold:
    """A threshold with its figures on the rows it was chosen on, and held out (None if that fails)."""

    value: float
    chosen_on: dict[str, Any]
    held_out: dict[str, Any] | None
    plain: dict[str, Any] | None = None


def read_aim(aim: str | None, maximise: str | None = None, at_least: str | None = None) -> Objective:
    """Return the aim of ``--aim``, or of the older ``--maximise`` and ``--at-least FIGURE=NUMBER``.

    Raises ValueError with what to write instead.
    """
    if aim is None:
        figure, kept = maximise or "f1", at_least
    elif maximise is not None or at_least is not None:
        raise ValueError("--aim: replaces --maximise and --at-least; leave these out")
    else:
        figure, at, bound = aim.replace(" ", "").partition("@")
        kept = bound.replace(">=", "=", 1) if at else None
    if figure not in FIGURES:
        raise ValueError(f"--aim {figure}: use one of {', '.join(FIGURES)}")
    other = "precision" if figure == "recall" else "recall"
    if kept is None and figure == "f1":
        return Objective(figure)
    if kept is None:
        raise ValueError(
            f"--aim {figure}: alone it would cost all of the other; say what to keep, such as --aim "
            f'"{figure}@{other}>=0.5"'
        )
    found = re.fullmatch(rf"({'|'.join(FIGURES)})=(0(?:\.\d+)?|\.\d+|1(?:\.0+)?)", kept)
    if found is None or found[1] == figure:
        raise ValueError(
            f"--aim: {kept!r} is not what can be kept; write another figure and a fraction, such as "
            f'"{figure}@{other}>=0.5"'
        )
    return Objective(figure, found[1], float(found[2]))


def recommend_threshold(
    scores: np.ndarray, plain: np.ndarray, labels: np.ndarray, tasks: Sequence[str], aim: Objective
) -> ChosenThreshold:
    """Return the threshold that `choose_threshold` gives if it beats the plain verdicts on held-out data.

    Args:
        scores: Float of shape (n,), NaN for no verdict.
        plain: The judge's own verdicts: 1, 0, -1 for none.
        labels: 1, 0, -1 for unsure.
        tasks: The task of each row.
        aim: What to maximise, and what to keep.

    Raises:
        NoThresholdError: No threshold can be chosen, tried on held-out data, or is better.
    """
    choice = replace(choose_threshold(scores, labels, tasks, aim), plain=_figures(plain, labels, tasks))
    if choice.held_out is None:
        raise NoThresholdError(
            f"no threshold is recommended: whether one is better for {aim} cannot be tried on held-out data; "
            f"that takes {FOLDS} tasks or more, and scores that reach the aim on any four fifths of them"
        )
    if not _beats(choice.held_out, choice.plain, aim):
        found = {"the best threshold": choice.held_out, "the plain verdict": choice.plain}
        sentences = (
            f"{name} has precision {percent(cell['precision'])} %, recall {percent(cell['recall'])} % and F1 "
            f"{percent(cell['f1'])} %"
            for name, cell in found.items()
        )
        raise NoThresholdError(
            f"no threshold is recommended for {aim}: on held-out data {'; '.join(sentences)}"
        )
    return choice


def _beats(held_out: Mapping[str, Any], plain: Mapping[str, Any], aim: Objective) -> bool:
    """Return whether held-out figures are better for the aim than those of the plain verdicts.

    F1 alone must not be bought with precision, by which judges are ranked.
    """
    found, before = ({name: cell[name] or 0.0 for name in FIGURES} for cell in (held_out, plain))
    is_higher = found[aim.maximise] > before[aim.maximise]
    if aim.keep is None:
        return is_higher and found["precision"] >= before["precision"]
    is_kept = found[aim.keep] >= aim.at_least
    return is_kept and (is_higher or before[aim.keep] < aim.at_least)


def choose_threshold(
    scores: np.ndarray, labels: np.ndarray, tasks: Sequence[str], aim: Objective
) -> ChosenThreshold:
    """The threshold that best meets the aim on these rows.

    ``scores``: float of shape (n,), NaN for no verdict, which counts as a no; ``labels``: 1, 0, -1 for unsure
    (left out); ``tasks``: the task of each row. The figures of ``chosen_on`` are as good as the choice made
    them; those of ``held_out`` come from five parts of the tasks, each judged by the threshold chosen on the
    other four. Both have intervals over tasks. Raises NoThresholdError.
    """
    value = _best(scores, labels, aim)
    return ChosenThreshold(
        value,
        _figures(_verdicts(scores, value), labels, tasks),
        _held_out(scores, labels, tasks, aim),
    )


def candidates(scores: np.ndarray) -> list[float]:
    """Thresholds between every two neighbouring scores, and 0 for all of them; NaN left out."""
    import numpy as np

    known = np.unique(scores[~np.isnan(scores)])
    return [0.0, *((known[:-1] + known[1:]) / 2).tolist()]


def _best(scores: np.ndarray, labels: np.ndarray, aim: Objective) -> float:
    import numpy as np

    from leaderboard.calibration import sweep

    scored = ~np.isnan(scores) & (labels >= 0)
    if len(np.unique(scores[scored])) < 2:
        raise NoThresholdError(
            "all labelled runs have the same score, or none, so there is no threshold to choose"
        )
    if not (labels == 1).any() or not (labels == 0).any():
        raise NoThresholdError("the labels of these runs are all the same, so nothing can be chosen on them")
    swept = sweep(scores, labels, candidates(scores[scored]))
    swept = [asdict(each) for each in swept]
    defined = [each for each in swept if each[aim.maximise] is not None]
    fitting = [each for each in defined if aim.keep is None or (each[aim.keep] or 0.0) >= aim.at_least]
    if not fitting:
        most = max((each[aim.keep] or 0.0 for each in swept), default=0.0) if aim.keep else 0.0
        raise NoThresholdError(f"no threshold gives {aim}; the most that {aim.keep} reaches is {most:.3f}")
    return max(fitting, key=lambda each: (each[aim.maximise], each["precision"] or 0.0, each["at"]))["at"]


def _held_out(
    scores: np.ndarray, labels: np.ndarray, tasks: Sequence[str], aim: Objective
) -> dict[str, Any] | None:
    import numpy as np

    from leaderboard.judge_precision.scores import cluster_codes

    codes, n_tasks = cluster_codes(tasks, len(scores))
    if n_tasks < FOLDS:
        return None
    verdicts = np.full(len(scores), -1, dtype=np.int8)
    for fold in range(FOLDS):
        inside = codes % FOLDS == fold
        try:
            value = _best(scores[~inside], labels[~inside], aim)
        except NoThresholdError:
            return None
        verdicts[inside] = _verdicts(scores, value)[inside]
    return _figures(verdicts, labels, tasks)


def _verdicts(scores: np.ndarray, value: float) -> np.ndarray:
    import numpy as np

    return np.where(np.isnan(scores), -1, scores >= value).astype(np.int8)


def _figures(verdicts: np.ndarray, labels: np.ndarray, tasks: Sequence[str]) -> dict[str, Any]:
    from leaderboard.judge_precision.scores import judge_scores

    return judge_scores(verdicts, labels, clusters=tasks)
