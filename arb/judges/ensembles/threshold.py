"""Read a threshold on a judge's score from a file, and apply it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from arb.core.files import atomic_write
from arb.core.formats import FORMATS, format_problem
from arb.judges.contract import open_session
from arb.judges.ensembles.voting import probability
from arb.judges.registry import key_of
from arb.judges.types import Judge, JudgeSession, OptionsError, View
from arb.judges.wrappers import WrappedJudge

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
"""The settings in a run's configuration that its scores depend on."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """A threshold as it is stored in a file: a score of ``value`` or more means success.

    Attributes:
        figure: What the threshold was chosen for, in words.
        chosen_on: The metrics on the rows on which it was chosen.
        held_out: The metrics on held-out rows (see `choose_threshold`).
        plain: The metrics of the judge's own verdicts.
        configuration: The settings that the scores depend on (see `score_settings`).
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
    plain: Mapping[str, Any]


@dataclass(frozen=True)
class ThresholdedJudge(WrappedJudge):
    """A judge that says yes if its score (see `probability`) is ``value`` or more.

    It has the name of the judge without a threshold, since the run's configuration records the threshold.
    """

    value: float

    def ask(self, view: View) -> JudgeSession:
        """Return the judge's answer with the verdict that follows from its score, if there is one."""
        answer = yield from open_session(self.judge, view)
        if answer.success is None:
            return answer
        score = probability(answer)
        return replace(answer, success=score >= self.value, score=score)


def with_threshold(judge: Judge, threshold: Threshold) -> ThresholdedJudge:
    """Return the judge with the threshold. Raises OptionsError if that was chosen for another judge."""
    if threshold.judge != (key := key_of(judge)):
        raise OptionsError(
            f"--threshold was chosen for the scores of {threshold.judge}, not of {key}; choose a threshold "
            f"for {key} on dev with `arb judges threshold`"
        )
    return ThresholdedJudge(judge, threshold.value)


def score_settings(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a run's configuration that its scores depend on, except for the recorded runs.

    The models' addresses are left out, since a self-hosted server may have a new address in every job.
    """
    models = {role: dict(model) for role, model in (configuration.get("models") or {}).items()}
    for model in models.values():
        model.pop("address", None)
    return {name: configuration.get(name) for name in SCORE_SETTINGS} | {"models": models}


def write_threshold(path: Path, threshold: Threshold) -> None:
    content = {"format": FORMATS["threshold"], **asdict(threshold)}
    atomic_write(path, json.dumps(content, indent=2, allow_nan=False).encode("ascii") + b"\n")


def read_threshold(path: Path) -> Threshold:
    """Read a threshold file. Raises OptionsError if it cannot be read or is invalid."""
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise OptionsError(f"--threshold {path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        content = None
    return threshold_of(content, f"--threshold {path}")


def threshold_of(content: Any, place: str) -> Threshold:
    """Return the threshold in a parsed file. Raises OptionsError, whose message starts with ``place``."""
    if problem := format_problem("threshold", content):
        raise OptionsError(f"{place}: {problem}")
    if not isinstance(content, dict) or "format" not in content:
        raise OptionsError(f"{place}: is not a threshold file; create one with `judges threshold`")
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - heavy, most runs have no threshold

    try:
        found = TypeAdapter(Threshold).validate_json(json.dumps(content), strict=True)
    except ValidationError as invalid:
        problems = "; ".join(f"{each['loc'][0]}: {each['msg']}" for each in invalid.errors())
        raise OptionsError(f"{place}: {problems}; create it again with `judges threshold`") from None
    if not 0 <= found.value <= 1:
        raise OptionsError(
            f"{place}: value: is not from 0 to 1; create the file again with `judges threshold`"
        )
    return found
