"""Read a threshold on a judge's score from a file and apply it. `threshold_selection` chooses thresholds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from arb.core.files import atomic_write
from arb.judges.contract import open_session
from arb.judges.ensembles.voting import probability
from arb.judges.registry import key_of
from arb.judges.types import Judge, JudgeSession, OptionsError, View
from arb.judges.wrappers import WrappedJudge

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
"""The parts of a run's configuration that its scores depend on."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """A threshold as it is stored in a file: a score of ``value`` or more means success.

    ``figure`` is the aim in words. ``chosen_on`` has the figures on the rows that it was chosen on, and
    ``held_out`` those on held-out rows (`choose_threshold`). ``plain`` has the figures of the judge's own
    verdicts, or None in older files. ``configuration`` has the settings of the scores (`score_settings`).
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
    """A judge whose score decides its verdict. A yes without a score counts as 1, a no as 0.

    The judge's name does not change, since the run's configuration records the threshold.
    """

    value: float

    def ask(self, view: View) -> JudgeSession:
        """Return the judge's answer with the verdict by its score, or unchanged if it has no verdict."""
        answer = yield from open_session(self.judge, view)
        if answer.success is None:
            return answer
        score = probability(answer)
        return replace(answer, success=score >= self.value, score=score)


def with_threshold(judge: Judge, threshold: Threshold) -> ThresholdedJudge:
    """Return the judge with the threshold applied.

    Raises:
        OptionsError: The threshold was chosen for another judge. Older files name a judge by its display
            name, newer ones by its key.
    """
    if threshold.judge not in (judge.name, key := key_of(judge)):
        raise OptionsError(
            f"--threshold was chosen on the scores of {threshold.judge}, not of {key}; choose one on dev "
            "with `python -m arb judges threshold`"
        )
    return ThresholdedJudge(judge, threshold.value)


def score_settings(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a run's configuration that its scores depend on, without the recorded runs.

    The models' addresses are left out, since your own server may have a new address in every job.
    """
    models = {role: dict(model) for role, model in (configuration.get("models") or {}).items()}
    for model in models.values():
        model.pop("address", None)
    return {name: configuration.get(name) for name in SCORE_SETTINGS} | {"models": models}


def write_threshold(path: Path, threshold: Threshold) -> None:
    content = {"format": FORMAT, **asdict(threshold)}
    atomic_write(path, json.dumps(content, indent=2, allow_nan=False).encode("ascii") + b"\n")


def read_threshold(path: Path) -> Threshold:
    """Read a threshold file. Raises OptionsError, which names the problem with the file."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise OptionsError(f"--threshold {path}: cannot be read ({error})") from None
    return threshold_of(content, f"--threshold {path}")


def threshold_of(content: Any, place: str) -> Threshold:
    """Return the threshold in a parsed file. Raises OptionsError, whose message begins with ``place``."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise OptionsError(f"{place}: is not a threshold file of format {FORMAT}; run `judges threshold`")
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - heavy, most runs have no threshold

    try:
        found = TypeAdapter(Threshold).validate_json(json.dumps(content), strict=True)
    except ValidationError as invalid:
        problems = "; ".join(f"{each['loc'][0]}: {each['msg']}" for each in invalid.errors())
        raise OptionsError(f"{place}: {problems}; make it again with `judges threshold`") from None
    if not 0 <= found.value <= 1:
        raise OptionsError(f"{place}: value: use a number from 0 to 1; make it again with `judges threshold`")
    return found
