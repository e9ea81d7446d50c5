"""The integer audit: which integer counts of verdicts give a printed precision, recall and F1.

The released scorer (``eval/metrics.py``) prints precision and recall as TP / (TP + FP) and TP / (TP + FN),
rounded once to a tenth of a percent. It computes F1 from the two after rounding each to four digits, then
rounds to a tenth of a percent. It prints 0 / 0 as 0. A value exactly half way may have been rounded either
way, so both ways fit. All computations use integers, so that no floating-point error matters.

None of the three figures involves TN: TN is the rest of the cell's trajectories. So a missing judgment can go
unnoticed if its label is negative; if the label is positive, it shows in the recall.

Each cell is audited on its own, then with its row, because the benchmarks must add up to the overall
figures. The sum can rule out some of a cell's possible counts, and it exposes rows whose figures contradict
each other. A missing judgment is missing for every label, so if the figures of one label reveal it, the audit
assumes that it is missing for the others too.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Final, Literal, NamedTuple


class Counts(NamedTuple):
    """The confusion counts of verdicts against labels."""

    tp: int
    fp: int
    fn: int
    tn: int

    @property
    def n(self) -> int:
        """Return the number of trajectories with both a verdict and a label."""
        return sum(self)

    @property
    def positives(self) -> int:
        """The number of trajectories whose label is true."""
        return self.tp + self.fn

    def __str__(self) -> str:
        return "/".join(map(str, self))


@dataclass(frozen=True, slots=True)
class Figures:
    """Printed figures in tenths of a percent (68.8 % is 688). A figure that is not printed is None."""

    precision: int | None
    recall: int | None
    f1: int | None

    def __bool__(self) -> bool:
        return any(figure is not None for figure in (self.precision, self.recall, self.f1))


def read_tenths(value: str | float | None) -> int | None:
    """Return a percentage as printed (``68.8``) in tenths, or None if it is empty. Raises ValueError."""
    if value is None or value == "":
        return None
    try:
        tenths = Decimal(str(value)) * 10
    except InvalidOperation:
        tenths = Decimal("NaN")
    if not tenths.is_finite() or tenths != int(tenths) or not 0 <= tenths <= 1000:
        raise ValueError(f"{str(value)[:40]!r} is not a percentage from 0 to 100 with at most one decimal")
    return int(tenths)


Status = Literal["unique", "narrowed", "several", "none", "not printed"]
"""How many sets of counts fit all of a cell's trajectories: exactly one; several, which the row's total
narrows down to one; several; none. In a cell that is "not printed" there is no figure to fit."""

MOST_MISSING: Final = 3
"""The maximum number of missing judgments to assume. If nothing fits, the figures are considered wrong."""


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The counts behind one cell.

    ``candidates`` are the counts that fit all ``n`` trajectories. ``missing`` is the number of judgments that
    are assumed to be missing: 0 unless nothing fits otherwise, or other cells of the row reveal it.
    ``possible`` are the counts that fit the remaining trajectories and agree with the row's total. ``alone``
    is the number of sets of counts that fit before the total is considered.
    """

    figures: Figures
    positives: int
    n: int
    candidates: tuple[Counts, ...]
    missing: int
    possible: tuple[Counts, ...]
    alone: int

    @property
    def status(self) -> Status:
        """The `Status` on all ``n`` trajectories: if counts fit only with missing judgments, it is "none"."""
        if not self.figures:
            return "not printed"
        if not self.candidates:
            return "none"
        if len(self.possible) != 1:
            return "several"
        return "unique" if self.alone == 1 else "narrowed"

    @property
    def counts(self) -> Counts | None:
        """The counts if only one set is possible, else None."""
        return self.possible[0] if len(self.possible) == 1 else None

    @property
    def bounds(self) -> tuple[Counts, Counts] | None:
        """The smallest and the largest value of each count in ``possible``; None if nothing is possible."""
        if not self.possible:
            return None
        columns = list(zip(*self.possible, strict=True))
        return Counts(*map(min, columns)), Counts(*map(max, columns))

    @property
    def note(self) -> str:
        """A remark for readers on how the counts were found; empty if exactly one set fits."""
        notes = [self._misfit() if self.status == "none" else self._choice()]
        if self.missing and self.status != "none":
            notes.append(f"{_judgments(self.missing)} left out as missing, according to another label")
        if self.counts and self.counts.tp + self.counts.fp == 0 and self.figures.precision is not None:
            notes.append("never says yes: the precision is undefined, printed as 0")
        return "; ".join(filter(None, notes))

    def _choice(self) -> str:
        bounds = self.bounds
        if self.status not in ("several", "narrowed") or bounds is None:
            return ""
        left = len(self.possible)
        start = f"{max(self.alone, left)} sets of counts fit"
        if left < self.alone:
            start += f", the row's total leaves {'one' if left == 1 else left}"
        return start if left == 1 else f"{start}: {_ranges(*bounds)}"

    def _misfit(self) -> str:
        start = f"no whole numbers fit {self.positives} positives of {self.n}"
        bounds = self.bounds
        if bounds is None:
            return start
        positives = " or ".join(str(p) for p in sorted({counts.positives for counts in self.possible}))
        fit = f"fits {positives} positives of {self.n - self.missing}: {_judgments(self.missing)} missing"
        return f"{start}; {fit}" + ("" if self.counts else f"; {_ranges(*bounds)}")


def _ranges(low: Counts, high: Counts) -> str:
    return ", ".join(
        f"{name.upper()} {a}" if a == b else f"{name.upper()} {a} to {b}"
        for name, a, b in zip(Counts._fields, low, high, strict=True)
    )


def audit_cell(figures: Figures, positives: int, n: int, *, missing: int | None = None) -> AuditResult:
    """Find every set of counts (TP, FP, FN, TN) for which the released scorer prints these figures.

    ``positives`` of the cell's ``n`` trajectories are labelled true. ``missing`` is the number of missing
    judgments. If it is None and nothing fits all trajectories, the smallest number that fits is assumed, up
    to `MOST_MISSING`. Raises ValueError if a count is out of range.
    """
    if not 0 <= positives <= n:
        raise ValueError(f"positives must be between 0 and n, got {positives} of {n}")
    if missing is not None and not 0 <= missing <= n:
        raise ValueError(f"missing must be between 0 and n = {n}, got {missing}")
    if not figures:
        return AuditResult(figures, positives, n, (), 0, (), 0)
    candidates = tuple(_fitting(figures, positives, n - positives))
    possible, left_out = candidates, 0
    if missing is not None:
        possible, left_out = _fitting_without(figures, positives, n, missing), missing
    elif not candidates:
        for number in range(1, MOST_MISSING + 1):
            possible = _fitting_without(figures, positives, n, number)
            if possible:
                left_out = number
                break
    alone = len(candidates) or len(possible)
    return AuditResult(figures, positives, n, candidates, left_out, possible, alone)


def _fitting_without(figures: Figures, positives: int, n: int, missing: int) -> tuple[Counts, ...]:
    """Return the counts that fit if exactly ``missing`` judgments, of either label, are left out."""
    negatives = n - positives
    return tuple(
        counts
        for lost in range(missing + 1)
        if lost <= positives and missing - lost <= negatives
        for counts in _fitting(figures, positives - lost, negatives - (missing - lost))
    )


def _fitting(figures: Figures, positives: int, negatives: int) -> Iterator[Counts]:
    for tp in numerators(figures.recall, positives):
        for predicted in _denominators(figures.precision, tp, negatives):
            if figures.f1 is None or _prints_f1(tp, predicted, positives, figures.f1):
                fp = predicted - tp
                yield Counts(tp, fp, positives - tp, negatives - fp)


def numerators(tenths: int | None, whole: int) -> range:
    """Return each part of ``whole`` that is printed as ``tenths``: |1000 part / whole - tenths| <= 1/2."""
    if tenths is None:
        return range(whole + 1)
    if whole == 0:
        return range(1 if tenths == 0 else 0)
    low = -((1 - 2 * tenths) * whole // 2000)
    return range(max(low, 0), min((2 * tenths + 1) * whole // 2000, whole) + 1)


def _denominators(tenths: int | None, part: int, most_beside: int) -> range:
    """Return each whole from part to part + most_beside for which part / whole is printed as ``tenths``."""
    everything = range(part, part + most_beside + 1)
    if tenths is None or (part == 0 and tenths == 0):
        return everything
    if part == 0:
        return range(0)
    low = -(-2000 * part // (2 * tenths + 1))
    high = everything[-1] if tenths == 0 else 2000 * part // (2 * tenths - 1)
    return range(max(low, part), min(high, everything[-1]) + 1)


def _prints_f1(tp: int, predicted: int, positives: int, tenths: int) -> bool:
    """Return whether F1 = 2PR / (P + R) of the four-digit P and R can be printed as ``tenths``."""
    for p in _four_digits(tp, predicted):
        for r in _four_digits(tp, positives):
            # 2PR / (P + R) is 2pr / (10 (p + r)) tenths of a percent, with p and r in ten-thousandths.
            if abs(2 * p * r - 10 * (p + r) * tenths) * 2 <= 10 * (p + r) and (p + r or tenths == 0):
                return True
    return False


def _four_digits(part: int, whole: int) -> tuple[int, ...]:
    """Return the ratio rounded to ten-thousandths, or both neighbours if it is half way between them."""
    if whole == 0:
        return (0,)
    floor, rest = divmod(part * 10_000, whole)
    if 2 * rest == whole:
        return floor, floor + 1
    return (floor + (2 * rest > whole),)


def prints(counts: Counts, figures: Figures) -> bool:
    """Return whether the released scorer can print these figures for these counts."""
    return counts in _fitting(figures, counts.positives, counts.n - counts.positives)


def _judgments(number: int) -> str:
    return "one judgment" if number == 1 else f"{number} judgments"


OVERALL: Final = "overall"

NOTHING_PRINTED: Final = Figures(None, None, None)


class Marginal(NamedTuple):
    """The number of trajectories in one cell, and how many of them are labelled true."""

    n: int
    positives: int


@dataclass(frozen=True, slots=True)
class LabelAudit:
    """The audit of one judge on one label: a result for each cell, and the contradictions found."""

    cells: Mapping[str, AuditResult]
    findings: tuple[str, ...]


def audit_row(
    figures: Mapping[str, Mapping[str, Figures]], marginals: Mapping[str, Mapping[str, Marginal]]
) -> dict[str, LabelAudit]:
    """Audit one judge. Both arguments are keyed by label, then by cell (`OVERALL` or a benchmark).

    A cell that is absent from ``figures`` counts as not printed. If a benchmark fits only with missing
    judgments, they are assumed to be missing in all labels.
    """
    first = {label: audit_label(cells, marginals[label]) for label, cells in figures.items()}
    missing: dict[str, int] = {}
    for audit in first.values():
        for cell, result in audit.cells.items():
            if cell != OVERALL and result.missing:
                missing[cell] = max(missing.get(cell, 0), result.missing)
    if not missing:
        return first
    return {label: audit_label(cells, marginals[label], missing) for label, cells in figures.items()}


def audit_label(
    figures: Mapping[str, Figures],
    marginals: Mapping[str, Marginal],
    missing: Mapping[str, int] | None = None,
) -> LabelAudit:
    """Audit one label of a judge: first each cell on its own, then all cells against the total.

    ``missing`` has the known numbers of missing judgments, keyed by benchmark.
    """
    known = missing or {}
    findings = []
    cells: dict[str, AuditResult] = {}
    for benchmark in (cell for cell in marginals if cell != OVERALL):
        printed = figures.get(benchmark, NOTHING_PRINTED)
        cells[benchmark] = _audit(printed, marginals[benchmark], known.get(benchmark))
        if printed and not cells[benchmark].possible:
            findings.append(f"{benchmark}: {cells[benchmark].note}")
    lost = sum(result.missing for result in cells.values())
    overall = _audit(figures.get(OVERALL, NOTHING_PRINTED), marginals[OVERALL], lost or None)
    if overall.figures and not overall.possible:
        findings.append(f"{OVERALL}: {overall.note}")
    if overall.possible and all(result.possible for result in cells.values()):
        narrowed = _narrow(cells, overall)
        if narrowed is None:
            findings.append("the benchmarks' counts do not add up to the overall figures")
        else:
            *parts, overall = narrowed
            cells = dict(zip(cells, parts, strict=True))
    return LabelAudit({OVERALL: overall, **cells}, tuple(findings))


def _audit(figures: Figures, marginal: Marginal, missing: int | None) -> AuditResult:
    """Audit a cell with the known number of missing judgments. If nothing fits, ignore this number."""
    result = audit_cell(figures, marginal.positives, marginal.n, missing=missing)
    if missing and not result.possible:
        return audit_cell(figures, marginal.positives, marginal.n)
    return result


def _narrow(cells: Mapping[str, AuditResult], overall: AuditResult) -> list[AuditResult] | None:
    """Remove counts that cannot add up. Return all cells' results, or None if no counts add up.

    The overall cell is last. A set of sums is stored as one integer: bit i is set if sum i occurs, so that a
    shift adds a candidate to every sum of the set.
    """
    results = [*cells.values(), overall]

    def number(result: AuditResult, counts: Counts) -> int:
        lost = result.positives - counts.positives
        return (lost * (overall.positives + 1) + counts.tp) * (overall.n + 1) + counts.fp

    numbers = [[number(result, counts) for counts in result.possible] for result in results]
    *parts, whole = numbers
    wanted = _sums([whole])
    reached = _sums(parts) & wanted
    if not reached:
        return None
    kept = []
    for i, part in enumerate(parts):
        # Keep a candidate if it and some sum of the other benchmarks give a wanted total.
        others = _sums(parts[:i] + parts[i + 1 :])
        kept.append([bool(others << candidate & wanted) for candidate in part])
    kept.append([bool(reached >> candidate & 1) for candidate in whole])
    return [
        replace(result, possible=tuple(c for c, keep in zip(result.possible, keeps, strict=True) if keep))
        for result, keeps in zip(results, kept, strict=True)
    ]


def _sums(parts: list[list[int]]) -> int:
    total = 1
    for candidates in parts:
        grown = 0
        for candidate in candidates:
            grown |= total << candidate
        total = grown
    return total
