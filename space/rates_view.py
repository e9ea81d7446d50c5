"""The success rates page: who says how often agents succeed, and what follows for training. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dataset_script.vocabulary import AGENT_TITLES, BENCHMARK_TITLES
from leaderboard.board import Board, BoardRow
from leaderboard.rates import OVERALL, Evaluator, Kept, Rate, ranking, rejection_finetuning, swapped_pairs
from leaderboard.report_tables import percent
from space.axis import Axis, Span
from space.row_names import distinct_names

MOST_KEPT: Final = 12
"""Judges in the table on rejection fine-tuning, the fewest wrong trajectories first."""


@dataclass(frozen=True)
class RatesView:
    """The rates of a choice of evaluators on a benchmark; the first evaluator is the reference.

    ``orders`` are (evaluator, agents from best to worst, the pairs that it swaps against the reference).
    """

    benchmark: str
    evaluators: tuple[Evaluator, ...]
    agents: tuple[str, ...]
    axis: Axis
    orders: tuple[tuple[Evaluator, tuple[str, ...], tuple[str, ...]], ...]
    sentences: tuple[str, ...]

    def n(self, agent: str) -> int:
        """How many trajectories an agent has on the benchmark."""
        rates = (evaluator.rate(self.benchmark, agent) for evaluator in self.evaluators)
        return max((rate.n for rate in rates if rate), default=0)


def view_rates(evaluators: Sequence[Evaluator], benchmark: str) -> RatesView:
    """The page's tables for a benchmark, or for ``overall``."""
    reference = evaluators[0]
    ordered = ranking(reference, benchmark)  # the reference's order, then who it has no rate for
    others = {agent for evaluator in evaluators for cell, agent in evaluator.rates if cell == benchmark}
    agents = (*ordered, *sorted(others - set(ordered)))
    rates = [evaluator.rate(benchmark, agent) for evaluator in evaluators for agent in agents]
    ends = [end for rate in rates if rate for end in (rate.value, *(rate.interval or ()))]
    orders = tuple(
        (evaluator, ranking(evaluator, benchmark), _swaps(reference, evaluator, benchmark))
        for evaluator in evaluators
    )
    sentences = tuple(_sentences(evaluators, benchmark))
    return RatesView(
        benchmark, tuple(evaluators), agents, Axis.around(ends, include=(0.0,)), orders, sentences
    )


def view_training(board: Board, label: str = "success") -> tuple[Axis, list[tuple[BoardRow, str, Kept]]]:
    """(row, name, effect) of the judges with the fewest wrong trajectories, and the axis of their shares."""
    found = [(row, kept) for row in board.ranking(label) if (kept := _kept(row, label))]
    found = sorted(found, key=lambda pair: pair[1].wrong)[:MOST_KEPT]
    ends = [end / 1000 for _, kept in found for end in (kept.wrong, *(kept.wrong_interval or ()))]
    names = distinct_names([row for row, _ in found])
    return Axis.around(ends), [(row, name, kept) for name, (row, kept) in zip(names, found, strict=True)]


def kept_span(axis: Axis, kept: Kept) -> Span | None:
    """The share of wrong trajectories on the axis."""
    ends = kept.wrong_interval
    return axis.span(kept.wrong / 1000, ends and (ends[0] / 1000, ends[1] / 1000))


def describe_kept(kept: Kept) -> str:
    """``162 of 1,000 are wrong, 95 % interval 110 to 220``."""
    text = f"{kept.wrong:,.0f} of 1,000 are wrong"
    if kept.wrong_interval:
        text += f", 95 % interval {kept.wrong_interval[0]:,.0f} to {kept.wrong_interval[1]:,.0f}"
    return text


def describe_rate(rate: Rate | None) -> str:
    """``8 of 10 trajectories, 80.0 %, 95 % interval 49.0 to 94.3``."""
    if rate is None or rate.value is None:
        return "no trajectories"
    text = f"{percent(rate.value)} %"
    if rate.successes is not None:
        text = f"{rate.successes} of {rate.n} trajectories, {text}"
    if rate.interval:
        text += f", 95 % interval {percent(rate.interval[0])} to {percent(rate.interval[1])}"
    return text


def agent_title(agent: str) -> str:
    """The agent as tables name it."""
    return AGENT_TITLES.get(agent, agent)


def benchmark_title(benchmark: str) -> str:
    """The benchmark as tables name it; ``All benchmarks`` for overall."""
    return "All benchmarks" if benchmark == OVERALL else BENCHMARK_TITLES.get(benchmark, benchmark)


def _kept(row: BoardRow, label: str) -> Kept | None:
    cell = row.labels[label]["overall"]
    if cell["tp"] is None or (row.provenance == "scored" and not row.labels[label]["best"]):
        return None
    return rejection_finetuning(*(cell[name] for name in ("tp", "fp", "fn", "tn")), cell["precision_ci"])


def _swaps(reference: Evaluator, other: Evaluator, benchmark: str) -> tuple[str, ...]:
    return tuple(
        f"{agent_title(swap.worse)} above {agent_title(swap.better)}"
        for swap in swapped_pairs(reference, other, benchmark)
    )


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
        if swaps := _swaps(reference, other, benchmark):
            found.append(
                f"It ranks the agents differently: it puts {', '.join(swaps)}, {reference.name.lower()} "
                "the reverse."
            )
    return found


def _of(count: int, total: int) -> str:
    if count == total:
        return f"all {total} agents"
    return "none" if not count else f"{count} of {total} agents"
