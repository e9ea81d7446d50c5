"""The success rates page in words and numbers: who says how often agents succeed, and what follows. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from dataset_script.vocabulary import AGENT_TITLES, BENCHMARK_TITLES
from leaderboard.board import Board, BoardRow
from leaderboard.rates import OVERALL, Evaluator, Kept, Rate, ranking, rejection_finetuning, swapped_pairs
from leaderboard.report_tables import percent
from space.axis import Axis, Span
from space.row_names import distinct_names

HOW_MANY_KEPT = 12
"""Judges in the table on training, best precision first."""


@dataclass(frozen=True)
class RateCell:
    """A rate as a table shows it: figure, whisker, words."""

    text: str
    span: Span | None
    words: str


@dataclass(frozen=True)
class AgentLine:
    """An agent on the chosen benchmark, with a cell for each evaluator."""

    agent: str
    n: int
    cells: tuple[RateCell, ...]


@dataclass(frozen=True)
class Order:
    """The agents as an evaluator ranks them, and the pairs that it puts the other way round than experts."""

    evaluator: str
    agents: tuple[str, ...]
    swaps: tuple[str, ...]


@dataclass(frozen=True)
class KeptLine:
    """What training on the runs that a judge keeps means."""

    row_id: str
    name: str
    kept: Kept
    span: Span
    words: str


@dataclass(frozen=True)
class RatesView:
    """The whole page for a benchmark and a choice of evaluators; the first evaluator is the reference."""

    benchmark: str
    title: str
    evaluators: tuple[Evaluator, ...]
    axis: Axis
    lines: tuple[AgentLine, ...]
    orders: tuple[Order, ...]
    sentences: tuple[str, ...]


def view_rates(evaluators: Sequence[Evaluator], benchmark: str) -> RatesView:
    """The page's tables for a benchmark, or for ``overall``."""
    agents = _agents(evaluators, benchmark)
    rates = [evaluator.rate(benchmark, agent) for evaluator in evaluators for agent in agents]
    ends = [end for rate in rates if rate for end in (rate.value, *(rate.interval or ()))]
    axis = Axis.around(ends, include=(0.0,))
    lines = [
        AgentLine(
            agent_title(agent),
            max((rate.n for e in evaluators if (rate := e.rate(benchmark, agent))), default=0),
            tuple(_cell(evaluator.rate(benchmark, agent), axis) for evaluator in evaluators),
        )
        for agent in agents
    ]
    reference = evaluators[0]
    orders = tuple(
        Order(
            evaluator.name,
            tuple(map(agent_title, ranking(evaluator, benchmark))),
            tuple(
                f"{agent_title(swap.worse)} above {agent_title(swap.better)}"
                for swap in swapped_pairs(reference, evaluator, benchmark)
            ),
        )
        for evaluator in evaluators
    )
    return RatesView(
        benchmark, benchmark_title(benchmark), tuple(evaluators), axis, tuple(lines), orders,
        tuple(_sentences(evaluators, benchmark)),
    )  # fmt: skip


def view_training(board: Board, label: str = "success") -> tuple[Axis, tuple[KeptLine, ...]]:
    """Judges by how many of 1,000 trajectories that they keep are wrong, the fewest first."""
    found = [(row, kept) for row in board.ranking(label) if (kept := _kept(row, label))]
    found = sorted(found, key=lambda pair: pair[1].wrong)[:HOW_MANY_KEPT]
    ends = [end / 1000 for _, kept in found for end in (kept.wrong, *(kept.wrong_interval or ()))]
    axis = Axis.around(ends)
    names = distinct_names([row for row, _ in found])
    return axis, tuple(
        KeptLine(row.id, name, kept, axis.span(kept.wrong / 1000, _thousandths(kept)), _kept_words(kept))
        for name, (row, kept) in zip(names, found, strict=True)
    )


def agent_title(agent: str) -> str:
    """The agent as tables name it."""
    return AGENT_TITLES.get(agent, agent)


def benchmark_title(benchmark: str) -> str:
    """The benchmark as tables name it; ``All benchmarks`` for overall."""
    return "All benchmarks" if benchmark == OVERALL else BENCHMARK_TITLES.get(benchmark, benchmark)


def _agents(evaluators: Sequence[Evaluator], benchmark: str) -> list[str]:
    """The agents that ran there, in the reference's order, best first."""
    ordered = list(ranking(evaluators[0], benchmark))
    others = {agent for evaluator in evaluators for cell, agent in evaluator.rates if cell == benchmark}
    return [*ordered, *sorted(others - set(ordered))]


def _cell(rate: Rate | None, axis: Axis) -> RateCell:
    if rate is None or rate.value is None:
        return RateCell("–", None, "no runs")
    words = f"{percent(rate.value)} %"
    if rate.successes is not None:
        words = f"{rate.successes} of {rate.n} runs, {words}"
    if rate.interval:
        words += f", 95 % interval {percent(rate.interval[0])} to {percent(rate.interval[1])}"
    return RateCell(percent(rate.value), axis.span(rate.value, rate.interval), words)


def _kept(row: BoardRow, label: str) -> Kept | None:
    cell = row.labels[label]["overall"]
    if cell["tp"] is None or (row.provenance == "scored" and not row.labels[label]["best"]):
        return None
    return rejection_finetuning(*(cell[name] for name in ("tp", "fp", "fn", "tn")), cell["precision_ci"])


def _thousandths(kept: Kept) -> tuple[float, float] | None:
    return kept.wrong_interval and (kept.wrong_interval[0] / 1000, kept.wrong_interval[1] / 1000)


def _kept_words(kept: Kept) -> str:
    words = f"{kept.wrong:,.0f} of 1,000 are wrong"
    if kept.wrong_interval:
        words += f", 95 % interval {kept.wrong_interval[0]:,.0f} to {kept.wrong_interval[1]:,.0f}"
    return words


def _sentences(evaluators: Sequence[Evaluator], benchmark: str) -> list[str]:
    """What the table says: who over- and underestimates, and whose ranking differs."""
    reference, *others = evaluators
    found = []
    where = "overall" if benchmark == OVERALL else f"on {benchmark_title(benchmark)}"
    for other in others:
        pairs = [
            (agent, rate.value - true.value)
            for agent in ranking(reference, benchmark)
            if (rate := other.rate(benchmark, agent)) and rate.value is not None
            and (true := reference.rate(benchmark, agent))
        ]  # fmt: skip
        if not pairs:
            continue
        above = sum(1 for _, gap in pairs if gap > 0)
        below = sum(1 for _, gap in pairs if gap < 0)
        agent, gap = max(pairs, key=lambda pair: abs(pair[1]))
        found.append(
            f"{other.name} puts {_of(above, len(pairs))} above and {_of(below, len(pairs))} below "
            f"{reference.name.lower()} {where}; the widest gap is {100 * abs(gap):.1f} points "
            f"{'too high' if gap > 0 else 'too low'} for {agent_title(agent)}."
            if gap
            else f"{other.name} gives every agent the rate of {reference.name.lower()} {where}."
        )
        swaps = swapped_pairs(reference, other, benchmark)
        if swaps:
            said = ", ".join(f"{agent_title(s.worse)} above {agent_title(s.better)}" for s in swaps)
            found.append(f"Its ranking is another one: it puts {said}, {reference.name.lower()} the reverse.")
    return found


def _of(count: int, total: int) -> str:
    if count == total:
        return f"all {total} agents"
    return "none" if not count else f"{count} of {total} agents"
