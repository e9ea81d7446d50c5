"""The typed columns of a prediction file, with one finding per column for each kind of invalid cell."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from arb.core.ids import Trajectory
from arb.core.predictions.cells import ABSENT, EMPTY_ID, NO_NUMBER, TOO_LONG, Problem, meaning_of, target_code
from arb.core.predictions.columns import PredictionColumn
from arb.core.predictions.findings import MAX_EXAMPLES, Finding, finding_in_rows, quoted, row_finding
from arb.core.predictions.raw import RawTable, ReadingLimits
from arb.core.suites.targets import NO_ANSWER, Target, default_targets, main_target, scored

Codes = NDArray[np.int8]
Numbers = NDArray[np.float64]

NUMBER_COLUMNS: Final[Mapping[str, type]] = MappingProxyType(
    dict.fromkeys(("score", "cost_usd", "input_tokens", "output_tokens", "latency_s"), np.float64)
    | {"row_numbers": np.int64}
)
TEXT_COLUMNS: Final = ("trajectory_ids", "step", "part", "state", "reasoning")


@dataclass(frozen=True, eq=False)
class Predictions:
    """The rows that could be read, in the order of the file or, after `align`, of a split.

    A missing column is None. A cell with an error counts as empty. In a numeric column, an empty cell is NaN.

    Attributes:
        trajectory_ids: The ids as written ("" if not text) or, after `align`, as released.
        targets: The answers, keyed by target: codes (see `Target.code`), or floats for a score.
        step: The step that each row is about, as a string, or None for the whole run.
        part: The other part that each row is about, or None for the whole run.
        reasoning: Kept only with `ReadingLimits.keep_reasoning`.
    """

    trajectory_ids: tuple[str, ...]
    targets: Mapping[str, Codes] = field(default_factory=dict)
    step: tuple[str | None, ...] | None = None
    part: tuple[str | None, ...] | None = None
    score: Numbers | None = None
    state: tuple[str | None, ...] | None = None
    cost_usd: Numbers | None = None
    input_tokens: Numbers | None = None
    output_tokens: Numbers | None = None
    latency_s: Numbers | None = None
    reasoning: tuple[str | None, ...] | None = None
    row_numbers: NDArray[np.int64] | None = None

    @property
    def rows(self) -> int:
        return len(self.trajectory_ids)

    @property
    def texts(self) -> dict[str, tuple[str | None, ...]]:
        """The file's text columns, keyed by name."""
        columns = {name: getattr(self, name) for name in TEXT_COLUMNS}
        return {name: texts for name, texts in columns.items() if texts is not None}

    @property
    def numbers(self) -> dict[str, np.ndarray]:
        """The file's numeric columns and the row numbers, keyed by name."""
        columns = {name: getattr(self, name) for name in NUMBER_COLUMNS}
        return {name: numbers for name, numbers in columns.items() if numbers is not None}

    def items(self) -> Iterator[tuple[str, str | None, str | None]]:
        """Yield the id of each row's trajectory, its step and its part."""
        none = repeat(None, self.rows)
        return zip(self.trajectory_ids, self.step or none, self.part or repeat(None, self.rows), strict=True)

    def numbers_of(self, rows: Sequence[int]) -> list[int]:
        """Return the row numbers in the file for these indexes, or index + 1 if the numbers are unknown."""
        return [row + 1 for row in rows] if self.row_numbers is None else self.row_numbers[rows].tolist()

    def codes(self, target: str) -> Codes:
        """Return the codes of a target's answers. If its column is missing, all mean "no answer"."""
        return self.targets.get(target, np.full(self.rows, NO_ANSWER, dtype=np.int8))

    def take(self, rows: NDArray[np.int64]) -> "Predictions":
        """Return the rows at these indexes, with all columns."""
        changes: dict[str, Any] = {"targets": {name: codes[rows] for name, codes in self.targets.items()}}
        for name, texts in self.texts.items():
            changes[name] = tuple(texts[row] for row in rows)
        for name, numbers in self.numbers.items():
            changes[name] = numbers[rows]
        return replace(self, **changes)

    def align(self, positions: NDArray[np.int64], items: Sequence[Trajectory]) -> "Predictions":
        """Return the rows in the order of ``items``. Row i is about the item at ``positions[i]``.

        An item without a row gets one without values.
        """
        row_of = np.full(len(items), -1, dtype=np.int64)
        row_of[positions] = np.arange(self.rows)
        absent = row_of < 0
        taken = self.take(np.where(absent, 0, row_of))
        if absent.any():
            taken = taken._blank(absent)
        return replace(
            taken,
            trajectory_ids=tuple(item.trajectory_id for item in items),
            step=None if self.step is None else tuple(item.step for item in items),
            part=None if self.part is None else tuple(item.part for item in items),
        )

    def _blank(self, rows: NDArray[np.bool_]) -> "Predictions":
        """Return the table with empty cells in ``rows``, except in the columns that identify an item."""

        def blanked(values: np.ndarray) -> np.ndarray:
            empty = NO_NUMBER if values.dtype.kind == "f" else NO_ANSWER
            return np.where(rows, np.array(empty, dtype=values.dtype), values)

        changes: dict[str, Any] = {"targets": {name: blanked(codes) for name, codes in self.targets.items()}}
        for name, numbers in self.numbers.items():
            changes[name] = blanked(numbers)
        for name in self.texts.keys() - {"trajectory_ids", "step", "part"}:
            texts = getattr(self, name)
            changes[name] = tuple(None if empty else text for text, empty in zip(texts, rows, strict=True))
        return replace(self, **changes)

    def content_hash(self, targets: Sequence[Target]) -> str:
        """Return the SHA-256 (hex) of the answers to those ``targets`` that are scored. Rows must be aligned.

        The hash does not depend on the order of rows, the spelling of ids and words, the file format or other
        columns. If the column of a target is missing, it counts as a column without answers.
        """
        digest = hashlib.sha256("\n".join(self.trajectory_ids).encode())
        for target in scored(targets):
            digest.update(f"\n{target.name}\n".encode())
            digest.update(self.codes(target.name).tobytes())
        return digest.hexdigest()


def is_answered(codes: np.ndarray) -> NDArray[np.bool_]:
    """Return, for each of a target's codes or scores, whether it is an answer."""
    answered: NDArray[np.bool_] = ~np.isnan(codes) if codes.dtype.kind == "f" else codes != NO_ANSWER
    return answered


_NOTHING_TO_SHOW: Final = (ABSENT, EMPTY_ID)


def to_table(raw: RawTable, limits: ReadingLimits) -> tuple[Predictions | None, list[Finding]]:
    """Return the typed table, or None if the file has no ids, and findings about its cells."""
    findings: list[Finding] = []
    typed: dict[str, Any] = {}
    for name, column in limits.columns.items():
        if name in raw.columns:
            typed[name], found = _read_column(name, column, raw, limits)
            findings += found
    if not limits.keep_reasoning:
        typed.pop("reasoning", None)
    asked = limits.targets or default_targets()
    findings += _state_findings(typed, raw, main_target(asked))
    ids = typed.pop("trajectory_id", None)
    if ids is None:
        return None, findings
    targets = {target.name: typed.pop(target.name) for target in asked if target.name in typed}
    numbers = np.asarray(raw.row_numbers, dtype=np.int64)
    return Predictions(ids, targets, **typed, row_numbers=numbers), findings


def _read_column(
    name: str, column: PredictionColumn, raw: RawTable, limits: ReadingLimits
) -> tuple[Any, list[Finding]]:
    """Return a typed column (a tuple of strings, or an array of numbers) and its findings."""
    values = raw.columns[name]
    meaning, empty = meaning_of(column)
    meanings = _meanings(values, meaning)
    bad: dict[Problem, list[int]] = {}
    for position, found in enumerate(meanings):
        if found.__class__ is Problem:
            bad.setdefault(found, []).append(position)
            meanings[position] = empty
    is_text = name in TEXT_COLUMNS or name == "trajectory_id"
    if is_text:  # in other columns, a long text is an unknown word
        long = [i for i, v in enumerate(values) if v.__class__ is str and len(v) > limits.max_cell_chars]
        if long:
            bad[TOO_LONG] = long
    findings = [_bad_cells(problem, name, column, raw, rows) for problem, rows in bad.items()]
    if is_text:
        return tuple(meanings), findings
    is_score = column.target is not None and column.target.type == "score"
    return np.array(meanings, dtype=np.float64 if is_score else NUMBER_COLUMNS.get(name, np.int8)), findings


def _bad_cells(
    problem: Problem, name: str, column: PredictionColumn, raw: RawTable, positions: Sequence[int]
) -> Finding:
    """Return the error about the cells of a column that have the same problem."""

    def show(i: int) -> str:
        return quoted(raw.columns[name][positions[i]])

    return row_finding(
        "error",
        problem.code,
        problem.says,
        [raw.row_numbers[position] for position in positions],
        column.advice,
        column=name,
        show=None if problem in _NOTHING_TO_SHOW else show,
    )


def _meanings(values: Sequence[object], meaning: Callable[[object], Any]) -> list[Any]:
    """Parse all values with ``meaning``, which is called once per distinct value."""
    known: dict[tuple[type, object], Any] = {}
    meanings = []
    for value in values:
        key = (value.__class__, value)  # with the class, because True, 1 and 1.0 are equal
        try:
            found = known[key]
        except KeyError:
            found = known[key] = meaning(value)
        except TypeError:  # a list or an object
            found = meaning(value)
        meanings.append(found)
    return meanings


def _state_findings(typed: Mapping[str, Any], raw: RawTable, main: Target) -> list[Finding]:
    """Return findings about rows whose state does not fit their verdict on the main target."""
    states, verdicts = typed.get("state"), typed.get(main.name)
    if states is None or verdicts is None or main.type == "score":
        return []
    has_verdict = (verdicts != NO_ANSWER).tolist()
    contradicting = [i for i, state in enumerate(states) if state not in (None, "ok") and has_verdict[i]]
    silent = [i for i, state in enumerate(states) if state == "ok" and not has_verdict[i]]
    # A cell with an error has no verdict either, but is reported already.
    cells = raw.columns[main.name]
    silent = [i for i in silent if target_code(cells[i], main) == NO_ANSWER]
    findings: list[Finding] = []
    where: dict[str, Any] = {"column": "state", "target": main.name}
    if contradicting:
        rows = [raw.row_numbers[i] for i in contradicting]
        words = [quoted(states[i]) for i in contradicting[:MAX_EXAMPLES]]
        findings.append(finding_in_rows("state_contradicts_verdict", rows, show=words.__getitem__, **where))
    if silent:
        rows = [raw.row_numbers[i] for i in silent]
        findings.append(finding_in_rows("state_without_verdict", rows, **where))
    return findings
