"""Check a prediction table against a suite's split. Labels are never read here."""

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from arb.core.console import counted
from arb.core.ids import Trajectory, TrajectoryId, reading_key
from arb.core.predictions.findings import (
    MAX_EXAMPLES,
    UNREAD_ROW_CODES,
    Finding,
    finding,
    finding_in_rows,
    quoted,
    quoted_id,
)
from arb.core.predictions.replacements import find_replacement
from arb.core.predictions.table import Codes, Predictions, is_answered
from arb.core.suite import Suite
from arb.core.suites.targets import Target
from arb.core.vocabulary import BENCHMARKS, SPLITS

_SUGGESTIONS: Final = 3
MOST_IDS: Final = 20
"""The maximum number of rows for which a finding gives the id in the file and the id that was probably
meant."""
_LONGEST_SUGGESTED_FOR: Final = 200
NOWHERE: Final = -1


def _is_malformed(spelled: str) -> bool:
    try:
        TrajectoryId.parse(spelled)
    except ValueError:
        return True
    return False


LONGEST_ID: Final = 500
"""The maximum length of an id, in characters."""


def rows_by_id(table: Predictions, has_parts: bool = True) -> tuple[dict[str, int], list[Finding]]:
    """Return row indexes, keyed by the id's `reading_key`, and findings about malformed and repeated ids.

    If ``has_parts`` is false, an id may be any text.
    """
    found: dict[str, int] = {}
    malformed: list[int] = []
    repeated: list[int] = []
    for row, spelled in enumerate(table.trajectory_ids):
        if len(spelled) > LONGEST_ID or not spelled.strip() or (has_parts and _is_malformed(spelled)):
            malformed.append(row)
        elif found.setdefault(reading_key(spelled), row) != row:
            repeated.append(row)
    wrong = _id_error(table, malformed, "malformed_id") + _id_error(table, repeated, "repeated_id")
    return found, wrong


def _id_error(
    table: Predictions,
    rows: Sequence[int],
    name: str,
    hint: Callable[[int, str], str] = lambda _number, _spelled: "",
    **words: str,
) -> list[Finding]:
    """Return a list with the finding ``name`` about the ids in ``rows``, or [] if there are no rows.

    In the message, ``hint(i, id)`` follows each id.
    """
    if not rows:
        return []

    def show(i: int) -> str:
        spelled = table.trajectory_ids[rows[i]]
        return quoted_id(spelled) + hint(i, spelled)

    numbers = table.numbers_of(rows)
    found = finding_in_rows(name, numbers, column="trajectory_id", show=show, **words)
    by_number = dict(zip(numbers, rows, strict=True))
    ids = tuple(table.trajectory_ids[by_number[n]] for n in found.rows[:MOST_IDS])
    return [replace(found, ids=ids)]


def _closest(spelled: str, ids: Sequence[str]) -> str:
    if len(spelled) > _LONGEST_SUGGESTED_FOR:
        return ""
    return next(iter(difflib.get_close_matches(spelled.strip(), ids, n=1, cutoff=0.8)), "")


def _quoted_item(item: Trajectory) -> str:
    part = f", {item.level} {item.step or item.part}" if item.level != "run" else ""
    return f"{quoted_id(item.trajectory_id)}{part}"


LOW_COVERAGE: Final = 0.9
_FEWEST_FOR_CONSTANT: Final = 10
"""If a file has fewer verdicts than this, it is not suspicious that all of them are the same."""


@dataclass(frozen=True, eq=False)
class _SplitCheck:
    """A check of a table against the items of a split. ``earlier`` has the findings of the reader."""

    table: Predictions
    suite: Suite
    split: str
    earlier: Sequence[Finding]

    @cached_property
    def items(self) -> Sequence[Trajectory]:
        return self.suite.items(self.split)

    @cached_property
    def ids(self) -> list[str]:
        return [each.trajectory_id for each in self.suite.split(self.split)]

    @cached_property
    def positions(self) -> NDArray[np.int64]:
        """The index of each row's item in ``items``, or `NOWHERE`. Ids are recognised in every spelling."""
        position_of = {item.key: i for i, item in enumerate(self.items)}
        # All rows of a Parquet file may share one text of a megabyte, so each distinct text is read once.
        keys = {text: reading_key(text) for text in set(self.table.trajectory_ids)}
        rows = self.table.items()
        found = [position_of.get((keys[text], step, part), NOWHERE) for text, step, part in rows]
        return np.array(found, dtype=np.int64)

    def id_findings(self) -> list[Finding]:
        """Return findings about malformed, unknown, duplicate and missing ids, and ids of the other split."""
        malformed: list[int] = []
        unknown: list[int] = []
        elsewhere: list[int] = []
        kinds: dict[str, list[int]] = {"": []}  # the reader has reported ids that are not text
        for row in np.flatnonzero(self.positions == NOWHERE).tolist():
            spelled = self.table.trajectory_ids[row]
            if spelled in kinds:
                pass
            elif self.suite.find(spelled) is not None:
                kinds[spelled] = elsewhere
            else:
                kinds[spelled] = malformed if _is_malformed(spelled) else unknown
            kinds[spelled].append(row)
        other = next(name for name in SPLITS if name != self.split)

        def hint(i: int, spelled: str) -> str:
            close = _closest(spelled, self.ids) if i < _SUGGESTIONS else ""
            return f" (did you mean {quoted_id(close)}?)" if close else ""

        places: dict[str, Any] = {"suite": quoted(self.suite.name), "split": self.split, "other": other}
        wrong = _id_error(self.table, malformed, "malformed_id")
        wrong += _id_error(self.table, unknown, "unknown_id", hint, **places)
        return [
            *self._with_corrections(wrong, [*malformed, *unknown]),
            *_id_error(self.table, elsewhere, "wrong_split", **places),
            *self._duplicates(),
            *self._missing(),
        ]

    def _with_corrections(self, findings: Sequence[Finding], rows: Sequence[int]) -> list[Finding]:
        """Return findings about wrong ids, completed with the ids that were probably meant (`Finding.meant`).

        If one replacement makes most of the ids in ``rows`` valid, the messages end with a sentence about it.
        """
        found = find_replacement([self.table.trajectory_ids[row] for row in rows], self.ids)
        sentence = f" {found.sentence()}" if found else ""
        known = set(self.ids)

        def meant(found_id: str, place: int) -> str:
            replaced = found.apply(found_id) if found else None
            if replaced in known:
                return replaced
            return _closest(found_id, self.ids) if place < _SUGGESTIONS else ""

        return [
            replace(
                finding,
                message=finding.message + sentence,
                summary=finding.summary + sentence,
                meant=tuple(meant(found_id, place) for place, found_id in enumerate(finding.ids)),
            )
            for finding in findings
        ]

    def _duplicates(self) -> list[Finding]:
        positions = self.positions
        times = np.bincount(positions[positions >= 0], minlength=len(self.items))
        doubled = np.flatnonzero((positions >= 0) & (times[positions] > 1)).tolist()
        # Show the rows of a trajectory next to each other, and trajectories in the order of their first rows.
        first: dict[int, int] = {}
        for row in doubled:
            first.setdefault(int(positions[row]), row)
        doubled.sort(key=lambda row: (first[int(positions[row])], row))
        return _id_error(self.table, doubled, "duplicate_id")

    def _missing(self) -> list[Finding]:
        """Return an error if items have no row. Only items that an answered target asks about count."""
        targets = [each for each in self.suite.targets if each.name in self.table.targets]
        answered = targets or [self.suite.main_target]
        levels = {target.level for target in answered}
        present = set(self.positions.tolist())
        expected = [place for place, item in enumerate(self.items) if item.level in levels]
        absent = [self.items[place] for place in expected if place not in present]
        if not absent:
            return []
        named = [*map(_quoted_item, absent[:MAX_EXAMPLES])]
        if len(absent) > MAX_EXAMPLES:
            named.append(f"and {len(absent) - MAX_EXAMPLES:,} more")
        unread = sum(each.count for each in self.earlier if each.code in UNREAD_ROW_CODES)
        maybe = f" {counted(unread, 'row')} could not be read and may contain some of them." if unread else ""
        words: dict[str, Any] = {
            "absent": len(absent),
            "expected": len(expected),
            "nouns": "trajectories" if levels == {"run"} else "trajectories, steps and parts",
            "split": self.split,
            "named": "; ".join(named),
            "maybe": maybe,
            "target": answered[0].name,
        }
        return [finding("missing_id", count=len(absent), column="trajectory_id", **words)]

    def verdict_findings(self) -> list[Finding]:
        """Return findings about targets whose verdicts are all the same, and about missing verdicts."""
        table, main = self.table, self.suite.main_target
        is_known = self.positions != NOWHERE
        findings: list[Finding] = []
        for target in self.suite.scored_targets:
            findings += _constant(target, table.targets.get(target.name), is_known)
        codes = table.targets.get(main.name)
        unreadable = any(each.level == "error" and each.column == main.name for each in self.earlier)
        if codes is None or unreadable:
            return findings  # the reader has reported the column
        answered = is_answered(codes)
        expected = sum(item.level == main.level for item in self.items)
        covered = np.unique(self.positions[is_known & answered]).size
        noun = "trajectories" if main.level == "run" else f"{main.level}s"
        if not answered.any():
            values = "true or false" if main.type == "binary" else "a value"
            about = finding("no_verdicts", count=table.rows, column=main.name, values=values, noun=noun)
            findings.append(about)
        elif covered < LOW_COVERAGE * expected:
            rules = {
                "negative": f" The ranking counts the rest as no {main.title.lower()}.",
                "wrong": " The ranking counts the rest as wrong.",
            }
            counts: dict[str, Any] = {"covered": covered, "expected": expected, "share": covered / expected}
            counts |= {"noun": noun, "rule": rules.get(main.missing, "")}
            findings.append(finding("low_coverage", count=expected - covered, column=main.name, **counts))
        return findings


@dataclass(frozen=True, slots=True)
class BenchmarkSummary:
    """A summary of the rows of one benchmark in a prediction file.

    Attributes:
        expected: The number of trajectories in the split.
        rows: The number of rows with one of these trajectories.
        coverage: The share of the expected trajectories that have a verdict on the main target.
        success_share: The share of these verdicts that are positive; None without verdicts, or if the main
            target is not binary.
    """

    expected: int
    rows: int
    coverage: float
    success_share: float | None


@dataclass(frozen=True, eq=False)
class CheckResult:
    """The result of a check. ``aligned`` is the table in the split's order; None if there are errors."""

    suite: str
    split: str
    rows: int
    coverage: float
    success_share: float | None
    findings: tuple[Finding, ...]
    by_benchmark: Mapping[str, BenchmarkSummary]
    aligned: Predictions | None = None
    file_name: str | None = None

    @property
    def acceptable(self) -> bool:
        return self.aligned is not None

    def to_json(self) -> dict[str, object]:
        """Return the check report as a dict of plain values."""
        return {
            "file": self.file_name,
            "suite": self.suite,
            "split": self.split,
            "acceptable": self.acceptable,
            "rows": self.rows,
            "coverage": self.coverage,
            "success_share": self.success_share,
            "findings": [finding.to_json() for finding in self.findings],
            "by_benchmark": {name: asdict(part) for name, part in self.by_benchmark.items()},
        }


def check(
    table: Predictions | None,
    findings: Sequence[Finding],
    suite: Suite,
    split: str,
    file_name: str | None = None,
) -> CheckResult:
    """Check the results of `read_predictions` against a split. Raises SuiteError for an unknown split."""
    items, main = suite.items(split), suite.main_target
    codes, positions = np.empty(0, dtype=np.int8), np.empty(0, dtype=np.int64)
    checked = None if table is None else _SplitCheck(table, suite, split, findings)
    if checked is not None:
        codes, positions = checked.table.codes(main.name), checked.positions
    found = list(findings)
    if not items:
        found.append(finding("empty_split", suite=quoted(suite.name), split=split))
    elif checked is not None:
        found += checked.id_findings() + checked.verdict_findings()
    found.sort(key=lambda finding: finding.level != "error")
    has_errors = any(finding.level == "error" for finding in found)
    aligned = table.align(positions, items) if table is not None and not has_errors else None
    asked = np.array([item.level == main.level for item in items], dtype=bool)
    is_binary = main.type == "binary"
    overall = _summary(codes, positions, np.flatnonzero(asked), is_binary)
    return CheckResult(
        suite=suite.name,
        split=split,
        rows=table.rows if table is not None else 0,
        coverage=overall.coverage,
        success_share=overall.success_share,
        findings=tuple(found),
        by_benchmark={
            name: _summary(codes, positions, rows, is_binary) for name, rows in _benchmarks(items, asked)
        },
        aligned=aligned,
        file_name=file_name,
    )


def _benchmarks(
    items: Sequence[Trajectory], asked: NDArray[np.bool_]
) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Yield each benchmark with the positions of those of its items that the main target asks about."""
    names = np.array([item.benchmark for item in items], dtype=object)
    # Official benchmarks come first, in their order, then the others of a custom suite.
    present = set(names)
    for name in [name for name in BENCHMARKS if name in present] + sorted(present - set(BENCHMARKS)):
        yield name, np.flatnonzero((names == name) & asked)


def _summary(
    codes: Codes, positions: NDArray[np.int64], expected: NDArray[np.int64], is_binary: bool
) -> BenchmarkSummary:
    """Summarize the rows for the items at the positions ``expected``. An item with two rows counts once."""
    is_expected = np.isin(positions, expected)
    decided = is_expected & is_answered(codes)
    covered = np.unique(positions[decided]).size
    return BenchmarkSummary(
        expected=int(expected.size),
        rows=int(is_expected.sum()),
        coverage=covered / expected.size if expected.size else 0.0,
        success_share=float(codes[decided].mean()) if is_binary and decided.any() else None,
    )


def _constant(target: Target, codes: np.ndarray | None, is_known: NDArray[np.bool_]) -> list[Finding]:
    if codes is None or target.type == "score":
        return []
    decided = codes[is_answered(codes) & is_known]
    if decided.size < _FEWEST_FOR_CONSTANT or decided.min() != decided.max():
        return []
    word = ("false", "true")[decided[0]] if target.type == "binary" else target.values[decided[0]]
    number = int(decided.size)
    return [finding("constant_verdicts", count=number, column=target.name, number=number, word=word)]
