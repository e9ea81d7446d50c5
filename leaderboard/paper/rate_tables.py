"""Tables 3 and 6 of the paper: success rates of agents according to different evaluators."""

from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from types import MappingProxyType
from typing import Final

from arb.core.suite import read_rows
from arb.core.vocabulary import AGENT_TITLES, BENCHMARK_TITLES, BENCHMARKS
from leaderboard.paper.audit import OVERALL
from leaderboard.paper.evidence import NO_FILE, POLICY, Records
from leaderboard.paper.published_files import MAIN_LABEL, PUBLISHED
from leaderboard.paper.table import FROM_COUNTS, FROM_VERDICTS, PaperCell, PaperTable, TableRow
from leaderboard.success_rates.rates import Evaluator, Rate, evaluate_agents, rate_of

LLM_JUDGE: Final = "paper/gpt-4o-tree"
RULE_BASED: Final = "paper/rule-based"
TITLES: Final = MappingProxyType({"expert": "Experts", "llm_judge": "GPT-4o (A)", "rule_based": "Rule-based"})
"""The evaluators, keyed by the name of their column in the file of printed rates."""
IN_TABLE_3: Final = ("visualwebarena", "webarena", "workarena++")

FRACTIONS: Final = (
    "the paper prints the mean of the rewards, which may be fractions; here it is the share above 0.5"
)
ROUNDED_TWICE: Final = "the paper's figure was rounded twice, to four digits and then to a tenth of a percent"
NO_TRAJECTORIES: Final = "this agent has no trajectories on this benchmark; the paper prints 0.0"


@dataclass(frozen=True, slots=True)
class PrintedRates:
    """A line of Table 6: success rates according to experts, GPT-4o with the tree, and benchmark rules."""

    benchmark: str
    agent: str
    expert: float
    llm_judge: float
    rule_based: float


def printed_rates() -> tuple[PrintedRates, ...]:
    """Return the rates printed in Table 6, from success_rates.csv."""
    return tuple(
        PrintedRates(line["benchmark"], line["agent"], *(float(line[name]) / 100 for name in TITLES))
        for line in read_rows(PUBLISHED / "success_rates.csv")
    )


def evaluators(records: Records) -> dict[str, Evaluator | None]:
    """Return the evaluators of Table 6, keyed by column. An evaluator without verdicts is None."""
    found: dict[str, Evaluator | None] = dict.fromkeys(TITLES)
    if records.labels is None:
        return found
    trajectories = records.labels.trajectories
    found["expert"] = evaluate_agents(
        "Experts", "labels", records.labels.primary[MAIN_LABEL], trajectories, POLICY
    )
    for name, row_id in (("llm_judge", LLM_JUDGE), ("rule_based", RULE_BASED)):
        values = records.verdicts[row_id].targets.get(MAIN_LABEL) if row_id in records.verdicts else None
        if values is not None:
            found[name] = evaluate_agents(name, FROM_VERDICTS, values, trajectories, POLICY)
    return found


def printed_evaluator(column: str, name: str, experts: Evaluator) -> Evaluator:
    """Return an evaluator called ``name``, with the rates printed in a ``column`` of Table 6.

    If a count of the runs that ``experts`` labelled gives a printed rate, the rate has that count and an
    interval.
    """
    rates = {}
    for line in printed_rates():
        n, printed = experts.rates[line.benchmark, line.agent].n, getattr(line, column)
        fitted = count_behind(printed, n)
        rates[line.benchmark, line.agent] = Rate(printed, n) if fitted is None else rate_of(fitted, n)
    return Evaluator(name, "printed in the paper's Table 6", rates)


def table_6(records: Records) -> PaperTable:
    """Make Table 6: the rates for every benchmark and agent."""
    by_whom = evaluators(records)
    titles = {OVERALL: "Overall", **BENCHMARK_TITLES}
    rows = []
    for line in printed_rates():
        headings = (titles[line.benchmark], AGENT_TITLES[line.agent])
        rows.append(TableRow(headings, tuple(_cell(line, name, by_whom) for name in TITLES)))
    title, headings = "Success rates of agents, by evaluator", ("Benchmark", "Agent")
    remarks = _remarks(records, by_whom["expert"])
    return PaperTable(6, title, headings, (("", 3),), tuple(TITLES.values()), tuple(rows), remarks)


def table_3(records: Records) -> PaperTable:
    """Make Table 3: three benchmarks of Table 6, with a row per agent."""
    by_whom = evaluators(records)
    lines = {(line.benchmark, line.agent): line for line in printed_rates()}
    rows = []
    for agent in sorted(AGENT_TITLES, key=AGENT_TITLES.__getitem__):
        cells = [
            _cell(lines[benchmark, agent], name, by_whom)
            if (benchmark, agent) in lines
            else PaperCell(0.0, None, "", NO_TRAJECTORIES, 0)
            for name in TITLES
            for benchmark in IN_TABLE_3
        ]
        rows.append(TableRow((AGENT_TITLES[agent],), tuple(cells)))
    return PaperTable(
        3,
        "Success rates of agents on three benchmarks",
        ("Agent",),
        tuple((name, len(IN_TABLE_3)) for name in TITLES.values()),
        tuple(BENCHMARK_TITLES[b] for b in IN_TABLE_3) * 3,
        tuple(rows),
        _remarks(records, by_whom["expert"]),
    )


def count_behind(rate: float, n: int) -> int | None:
    """Return the count k for which k / n is printed as ``rate``, rounded once or twice, or None."""
    k = round(rate * n)
    return k if PaperCell(rate, k / n).agrees or is_rounded_twice(k / n, rate) else None


def is_rounded_twice(value: float, printed: float) -> bool:
    """Return whether rounding to four digits and then to a tenth of a percent gives the printed fraction."""
    four_digits = Decimal(repr(value)).quantize(Decimal("0.0001"), ROUND_HALF_UP)
    return float(four_digits.quantize(Decimal("0.001"), ROUND_HALF_UP)) == round(printed, 3)


def _cell(line: PrintedRates, name: str, by_whom: dict[str, Evaluator | None]) -> PaperCell:
    printed = getattr(line, name)
    evaluator = by_whom[name]
    if evaluator is None:
        return _without_verdicts(line, printed, by_whom["expert"])
    rate = evaluator.rate(line.benchmark, line.agent) or Rate(None, 0)
    cell = PaperCell(printed, rate.value, evaluator.basis, "", rate.n)
    if rate.value is None or cell.agrees:
        return cell
    if is_rounded_twice(rate.value, printed):
        return replace(cell, note=f"{ROUNDED_TWICE}: {rate.successes} of {rate.n}")
    if name == "rule_based":
        return replace(cell, note=FRACTIONS)
    return replace(cell, note=f"computed from {rate.successes} of {rate.n}; the printed figure differs")


def _without_verdicts(line: PrintedRates, printed: float, experts: Evaluator | None) -> PaperCell:
    """Return a cell of an evaluator without verdicts, computed from a count that fits the printed rate."""
    if experts is None:
        return PaperCell(printed, None, "", "there are no labels")
    n = experts.rates[line.benchmark, line.agent].n
    fitted = count_behind(printed, n)
    if fitted is None:
        return PaperCell(printed, None, "", f"{NO_FILE}, and no count of {n} fits the printed rate", n)
    cell = PaperCell(printed, fitted / n, FROM_COUNTS, "", n)
    return cell if cell.agrees else replace(cell, note=f"{ROUNDED_TWICE}: {fitted} of {n}")


def _remarks(records: Records, experts: Evaluator | None) -> tuple[str, ...]:
    if experts is None:
        return ("There are no labels, so nothing can be computed.",)
    agreeing, contradicting = [], []
    for benchmark in BENCHMARKS:
        called = _called_successful(records, experts, benchmark)
        if called is None:
            continue
        in_table_8, summed = called
        title = BENCHMARK_TITLES[benchmark]
        if in_table_8 == summed:
            agreeing.append(f"{summed:,} on {title}")
        else:
            contradicting.append(f"{in_table_8:,} against {summed:,} on {title}")
    remarks = ["Test split, first annotator."]
    if agreeing:
        remarks.append(
            "GPT-4o (A) calls the same number of runs successful in Table 8 and in its success rates: "
            f"{', '.join(agreeing)}."
        )
    if contradicting:
        remarks.append(
            f"GPT-4o (A)'s figures in Table 8 and its success rates disagree: {', '.join(contradicting)}."
        )
    return tuple(remarks)


def _called_successful(records: Records, experts: Evaluator, benchmark: str) -> tuple[int, int] | None:
    """Return how many runs GPT-4o (A) calls successful in Table 8 and in Table 6, or None if not known."""
    published = records.published[LLM_JUDGE].labels[MAIN_LABEL]
    cell = None if published is None else published.cell(benchmark)
    if cell is None or cell.counts is None:
        return None
    summed = 0
    for line in printed_rates():
        if line.benchmark == benchmark:
            fitted = count_behind(line.llm_judge, experts.rates[benchmark, line.agent].n)
            if fitted is None:
                return None
            summed += fitted
    return cell.counts.tp + cell.counts.fp, summed
