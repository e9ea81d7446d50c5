"""The integer audit: which whole numbers of verdicts give a printed precision, recall and F1.

How the released scorer prints (its ``eval/metrics.py``): precision and recall are TP / (TP + FP) and
TP / (TP + FN), rounded once to a tenth of a percent; F1 is made from the two after each was rounded to four
digits, then rounded to a tenth of a percent; 0 / 0 is printed as 0. A value exactly half way may have been
rounded either way, so both ways fit. Everything here is in integers; no float decides.

None of the three figures involves TN: TN is what remains of the cell's trajectories, and a trajectory whose
judgment is missing can go unnoticed when its label is negative. A missing positive shows, in the recall.

A cell is audited alone, then with its row: the benchmarks must add up to the overall figures. The total
narrows cells of which several counts fit, and shows rows that contradict themselves. A judgment that the
judge lacks is left out of every label, so one that shows in a label counts for the others too.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Final, Literal, NamedTuple


class Counts(NamedTuple):
    """Verdicts against labels."""

    tp: int
    fp: int
    fn: int
    tn: int

    @property
    def n(self) -> int:
        """Trajectories with a verdict and a label."""
        return sum(self)

    @property
    def positives(self) -> int:
        """Trajectories whose label is true."""
        return self.tp + self.fn

    def __str__(self) -> str:
        return "/".join(map(str, self))


@dataclass(frozen=True, slots=True)
class Figures:
    """Printed figures in tenths of a percent (68.8 % is 688); None for a figure that is not given."""

    precision: int | None
    recall: int | None
    f1: int | None

    def __bool__(self) -> bool:
        return any(figure is not None for figure in (self.precision, self.recall, self.f1))


def read_tenths(value: str | float | None) -> int | None:
    """Return a percentage as printed (``68.8``) in tenths of a percent, or None if it is empty."""
    if value is None or value == "":
        return None
    try:
        tenths = Decimal(str(value)) * 10
    except InvalidOperation:
        tenths = Decimal("NaN")
    if not tenths.is_finite() or tenths != int(tenths) or not 0 <= tenths <= 1000:
        raise ValueError(f"{str(value)[:40]!r} is no percentage from 0 to 100 with at most one decimal")
    return int(tenths)


Status = Literal["unique", "narrowed", "several", "none", "not printed"]
"""How many sets of whole numbers fit all of a cell's trajectories: exactly one; several, of which the row's
total leaves one; several; none; or no figure was printed."""

MOST_MISSING: Final = 3
"""How many judgments may be missing before a misfit is called an error of the figures."""


@dataclass(frozen=True, slots=True)
class AuditResult:
    """What stands behind one cell.

    ``candidates`` fit all ``n`` trajectories. ``missing`` is how many judgments are taken to be missing, 0
    unless no whole numbers fit without (or the row says so), and ``possible`` what fits then, less what
    contradicts the row's total; ``alone`` is how many fitted before another cell was looked at.
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
        """See `Status`; it speaks of all ``n`` trajectories, so a fit with some missing is "none"."""
        if not self.figures:
            return "not printed"
        if not self.candidates:
            return "none"
        if len(self.possible) != 1:
            return "several"
        return "unique" if self.alone == 1 else "narrowed"

    @property
    def counts(self) -> Counts | None:
        """The counts, when only one set is possible; None otherwise: nothing is chosen among several."""
        return self.possible[0] if len(self.possible) == 1 else None

    @property
    def bounds(self) -> tuple[Counts, Counts] | None:
        """The least and the greatest of each count over all that is possible; None when nothing is."""
        if not self.possible:
            return None
        columns = list(zip(*self.possible, strict=True))
        return Counts(*map(min, columns)), Counts(*map(max, columns))

    @property
    def note(self) -> str:
        """What a reader must know about the counts, in words; empty for a plain unique fit."""
        notes = [self._misfit() if self.status == "none" else self._choice()]
        if self.missing and self.status != "none":
            notes.append(f"{_judgments(self.missing)} left out, missing as another label shows")
        if self.counts and self.counts.tp + self.counts.fp == 0 and self.figures.precision is not None:
            notes.append("never says yes: the precision is undefined, printed as 0")
        return "; ".join(filter(None, notes))

    def _choice(self) -> str:
        if self.status not in ("several", "narrowed") or self.bounds is None:
            return ""
        left = len(self.possible)
        start = f"{max(self.alone, left)} sets of counts fit"
        if left < self.alone:
            start += f", the row's total leaves {'one' if left == 1 else left}"
        return start if left == 1 else f"{start}: {self._ranges()}"

    def _misfit(self) -> str:
        start = f"no whole numbers fit {self.positives} positives of {self.n}"
        if not self.possible:
            return start
        positives = " or ".join(str(p) for p in sorted({counts.positives for counts in self.possible}))
        fit = f"fits {positives} positives of {self.n - self.missing}: {_judgments(self.missing)} missing"
        return f"{start}; {fit}" + ("" if self.counts else f"; {self._ranges()}")

    def _ranges(self) -> str:
        low, high = self.bounds
        return ", ".join(
            f"{name.upper()} {a}" if a == b else f"{name.upper()} {a} to {b}"
            for name, a, b in zip(Counts._fields, low, high, strict=True)
        )


def audit_cell(figures: Figures, positives: int, n: int, *, missing: int | None = None) -> AuditResult:
    """Find every set of whole numbers (TP, FP, FN, TN) that is printed as these figures.

    ``positives`` of the cell's ``n`` trajectories are labelled true. ``missing`` fixes how many judgments
    are left out; None looks for the fewest, up to `MOST_MISSING`, when nothing fits without. Raises
    ValueError for counts that are no counts.
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
        attempts = ((k, _fitting_without(figures, positives, n, k)) for k in range(1, MOST_MISSING + 1))
        left_out, possible = next(((k, found) for k, found in attempts if found), (0, ()))
    alone = len(candidates) or len(possible)
    return AuditResult(figures, positives, n, candidates, left_out, possible, alone)


def _fitting_without(figures: Figures, positives: int, n: int, missing: int) -> tuple[Counts, ...]:
    """What fits with exactly ``missing`` judgments left out, on positives or on negatives."""
    negatives = n - positives
    return tuple(
        counts
        for lost in range(missing + 1)
        if lost <= positives and missing - lost <= negatives
        for counts in _fitting(figures, positives - lost, negatives - (missing - lost))
    )


def _fitting(figures: Figures, positives: int, negatives: int) -> Iterator[Counts]:
    for tp in _numerators(figures.recall, positives):
        for predicted in _denominators(figures.precision, tp, negatives):
            if figures.f1 is None or _prints_f1(tp, predicted, positives, figures.f1):
                fp = predicted - tp
                yield Counts(tp, fp, positives - tp, negatives - fp)


def _numerators(tenths: int | None, whole: int) -> range:
    """Every part 0..whole whose share is printed as ``tenths``: |1000 part / whole - tenths| <= 1/2."""
    if tenths is None:
        return range(whole + 1)
    if whole == 0:
        return range(1 if tenths == 0 else 0)
    low = -((1 - 2 * tenths) * whole // 2000)
    return range(max(low, 0), min((2 * tenths + 1) * whole // 2000, whole) + 1)


def _denominators(tenths: int | None, part: int, most_beside: int) -> range:
    """Every whole part..part + most_beside of which ``part`` is a share printed as ``tenths``."""
    everything = range(part, part + most_beside + 1)
    if tenths is None or (part == 0 and tenths == 0):
        return everything
    if part == 0:
        return range(0)
    low = -(-2000 * part // (2 * tenths + 1))
    high = everything[-1] if tenths == 0 else 2000 * part // (2 * tenths - 1)
    return range(max(low, part), min(high, everything[-1]) + 1)


def _prints_f1(tp: int, predicted: int, positives: int, tenths: int) -> bool:
    """Whether F1 = 2PR / (P + R) of the four-digit P and R can be printed as ``tenths``."""
    for p in _four_digits(tp, predicted):
        for r in _four_digits(tp, positives):
            # 2PR / (P + R) is 2pr / (10 (p + r)) tenths of a percent, with p and r in ten-thousandths.
            if abs(2 * p * r - 10 * (p + r) * tenths) * 2 <= 10 * (p + r) and (p + r or tenths == 0):
                return True
    return False


def _four_digits(part: int, whole: int) -> tuple[int, ...]:
    """The ratio in ten-thousandths, rounded; both neighbours when it lies half way between them."""
    if whole == 0:
        return (0,)
    floor, rest = divmod(part * 10_000, whole)
    if 2 * rest == whole:
        return floor, floor + 1
    return (floor + (2 * rest > whole),)


def prints(counts: Counts, figures: Figures) -> bool:
    """Whether the released scorer can print these figures of these counts."""
    return counts in _fitting(figures, counts.positives, counts.n - counts.positives)


def _judgments(number: int) -> str:
    return "one judgment" if number == 1 else f"{number} judgments"


OVERALL: Final = "overall"

NOTHING_PRINTED: Final = Figures(None, None, None)


class Marginal(NamedTuple):
    """What the labels say of one cell, before any judge."""

    n: int
    positives: int


@dataclass(frozen=True, slots=True)
class LabelAudit:
    """One label of one judge: a result for `OVERALL` and every benchmark, and what contradicts itself."""

    cells: Mapping[str, AuditResult]
    findings: tuple[str, ...]


def audit_row(
    figures: Mapping[str, Mapping[str, Figures]], marginals: Mapping[str, Mapping[str, Marginal]]
) -> dict[str, LabelAudit]:
    """Audit one judge: ``figures`` and ``marginals`` are by label, then by cell (`OVERALL` or a benchmark).

    Cells that ``figures`` lacks are taken as not printed. A benchmark where nothing fits without missing
    judgments is taken to lack them in all labels.
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
    """Audit one label of a judge, each cell alone and then against the total.

    ``missing`` is how many judgments are known to be missing in each benchmark; the others are audited on
    their own.
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
    """With the known number of judgments missing where that fits, otherwise as if none were known."""
    result = audit_cell(figures, marginal.positives, marginal.n, missing=missing)
    if missing and not result.possible:
        return audit_cell(figures, marginal.positives, marginal.n)
    return result


def _narrow(cells: Mapping[str, AuditResult], overall: AuditResult) -> list[AuditResult] | None:
    """Each cell, and the overall, without what no sum allows; None when nothing adds up.

    A set of sums is one whole number: bit i is set when the sum numbered i occurs, so that adding a
    candidate to every sum of a set is a shift.
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
