"""What an importer returns, and the folder that is written from it: a suite, its labels and verdicts."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from arb.core.annotation import Annotation
from arb.core.files import csv_text, new_folder
from arb.core.ids import ItemKey, Trajectory
from arb.core.predictions.write import write_predictions
from arb.core.suite import TEST_LABELS, load_suite
from leaderboard.labels.annotations import write_released


class ImportProblem(ValueError):
    """Raised if a checkout cannot be imported; the message names files and rows, and says what to do."""


@dataclass(frozen=True)
class ImportedSuite:
    """A suite that was read from a checkout.

    Attributes:
        toml: The content of ``suite.toml``.
        items: The labelled runs, steps and parts, all of the test split.
        labels: An annotation for each item.
        verdicts: The rows of each judge's prediction file, keyed by the judge's name.
        notes: What users should know about how the checkout was read, one sentence each.
    """

    toml: str
    items: Sequence[Trajectory]
    labels: Sequence[Annotation]
    verdicts: Mapping[str, Sequence[Mapping[str, object]]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def write_suite(found: ImportedSuite, out: Path) -> None:
    """Write the folder of a suite, completely or not at all. ``out`` must not exist yet.

    Raises FileExistsError, and SuiteError if the imported suite is not valid.
    """
    with new_folder(out) as folder:
        (folder / "suite.toml").write_text(found.toml, encoding="utf-8")
        runs = sorted(
            {item.trajectory_id: item for item in found.items}.values(), key=lambda run: run.trajectory_id
        )
        rows = ((run.trajectory_id, run.split) for run in runs)
        (folder / "trajectories.csv").write_text(csv_text(("trajectory_id", "split"), rows), encoding="utf-8")
        parts = [item for item in found.items if item.level != "run"]
        if parts:
            level = parts[0].level
            cells = ((item.trajectory_id, item.step or item.part or "") for item in parts)
            text = csv_text(("trajectory_id", level), cells)
            (folder / "items.csv").write_text(text, encoding="utf-8")
        suite = load_suite(folder)
        labels = write_released(found.labels, questions=suite.targets)
        (folder / TEST_LABELS).write_text(labels, encoding="utf-8")
        (folder / "verdicts").mkdir()
        for judge, predictions in found.verdicts.items():
            write_predictions(folder / "verdicts" / f"{judge}.jsonl", predictions, suite.targets)


def json_lines(path: Path) -> Iterable[tuple[int, dict[str, Any]]]:
    """Yield (line number, object) for each line. Raises ImportProblem for a line that is not an object."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ImportProblem(
            f"{path.name} cannot be read ({type(error).__name__}); check out the repository again"
        ) from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            content = json.loads(line)
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise ImportProblem(
                f"{path.name}: line {number} is not a JSON object; check out the repository again"
            )
        yield number, content


def keys_of(items: Iterable[Trajectory]) -> set[ItemKey]:
    return {item.key for item in items}
