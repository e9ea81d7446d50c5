"""Thresholds on a judge's score: chosen on dev for a stated aim, frozen in a file, applied to any split."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from judges.base import Judge, JudgeSession, OptionsError, View
from judges.engine.run_folder import diff_configurations
from judges.voting import probability
from judges.wrapped import WrappedJudge

FORMAT: Final = 1
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
    and ``held_out`` those of rows that each choice did not see (`choosing.choose_threshold`).
    ``configuration`` is what made the scores, as in run.json.
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


@dataclass(frozen=True)
class ThresholdedJudge(WrappedJudge):
    """A judge whose score decides. An answer without a score counts as 1 for yes and 0 for no.

    It keeps its name: the run's configuration has the threshold.
    """

    value: float

    def ask(self, view: View) -> JudgeSession:
        """The judge's answer, with success by its score; no verdict stays none."""
        answer = yield from self.judge.ask(view)
        if answer.success is None:
            return answer
        score = probability(answer)
        return replace(answer, success=score >= self.value, score=score)


def with_threshold(judge: Judge, threshold: Threshold) -> ThresholdedJudge:
    """The judge with its frozen threshold. Raises OptionsError when it was chosen for another judge."""
    if judge.name != threshold.judge:
        raise OptionsError(
            f"--threshold: was chosen for the scores of {threshold.judge}, not of {judge.name}; choose one "
            "on dev with `python -m judges threshold`"
        )
    return ThresholdedJudge(judge, threshold.value)


def score_settings(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a run's configuration that its scores depend on, besides the runs that are judged."""
    return {name: configuration.get(name) for name in SCORE_SETTINGS}


def check_score_settings(path: Path, configuration: Mapping[str, Any]) -> None:
    """Raise OptionsError when a run makes its scores otherwise than those the threshold was chosen on."""
    if differences := diff_configurations(read_threshold(path).configuration, score_settings(configuration)):
        raise OptionsError(
            f"--threshold {path}: was chosen on scores made with other settings; use the same options as on "
            "dev, or choose another:\n" + "\n".join(f"  {each}" for each in differences)
        )


def write_threshold(path: Path, threshold: Threshold) -> None:
    from core.files import atomic_write

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
    """The threshold that a file's content stands for. Raises OptionsError, which begins with ``place``."""
    names = [field.name for field in fields(Threshold)]
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise OptionsError(
            f"{place}: is not a threshold file of format {FORMAT}; make it with `judges threshold`"
        )
    problems = [f"{name} is missing" for name in names if name not in content]
    value = content.get("value")
    if "value" in content and (not isinstance(value, int | float) or not 0 <= value <= 1):
        problems.append(f"value is {value!r}, not a number from 0 to 1")
    if "configuration" in content and not isinstance(content["configuration"], dict):
        problems.append("configuration is not an object")
    if problems:
        raise OptionsError(f"{place}: {'; '.join(problems)}; make it again with `judges threshold`")
    return Threshold(**{name: content[name] for name in names})
