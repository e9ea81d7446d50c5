"""``/rates``: agents' rates according to experts, the paper and judges, and estimates from few labels.

An agent's rate is the share of its runs with a positive outcome, such as those that reached their goal. The
page also shows the effect of judges on training.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from fastapi import APIRouter, Request, Response

from arb.core.console import percent
from arb.core.suite import OFFICIAL
from arb.core.vocabulary import AGENT_TITLES, BENCHMARK_TITLES, BENCHMARKS
from leaderboard.board.board import BoardRow
from leaderboard.paper.rate_tables import LLM_JUDGE, RULE_BASED, printed_evaluator
from leaderboard.success_rates.estimate import AgentEstimate
from leaderboard.success_rates.rates import (
    OVERALL,
    Evaluator,
    FinetuningEffect,
    estimate_by_draw,
    evaluate_agents,
    ranking,
    rejection_finetuning,
    swapped_pairs,
)
from space.pages.compare.view import points
from space.pages.rows import in_order, is_best, overall_of, rated_target
from space.services import Services
from space.verdicts import JudgeVerdicts
from space.web.cells import Axis, distinct_names
from space.web.frame import PageFrame
from space.web.query import QueryParam, choices_in
from submissions.app import SubmissionsApp

PATH: Final = "/rates"
TEMPLATE = "agent/success_rates.html"
EXPERTS = "Experts"
PRINTED = (
    (LLM_JUDGE, "llm_judge", "GPT-4o (tree, paper)"),
    (RULE_BASED, "rule_based", "Rule-based (reward, paper)"),
)
NO_JUDGE: Final = "There is no evaluator with the id {!r}. Choose one from the list."
MOST_EVALUATORS = 5
MOST_KEPT: Final = 12
"""The table on rejection fine-tuning has at most this many judges, those with fewest wrong trajectories."""
N_LABELS: Final = 60
OFFERED: Final = (15, 30, 60, 100, 150)
FEWEST_LABELS, MOST_LABELS = 10, 300
MOST_ASSISTING: Final = 4
MOST_OFFERED: Final = 50
N_DEFAULT: Final = 3
SEED: Final = 0
"""The seed of the draw that the page shows, equal to the default of `annotation-template --for-estimate`."""
SPLITS: Final = ("test", "dev")


class RateSources:
    """The evaluators of a service, and the judges and labels from which rates are estimated.

    Hidden labels are never used, not even with noise: the draw and the verdicts are known, so the difference
    between the rates from 60 and from 61 labels would reveal a label.
    """

    def __init__(self, service: SubmissionsApp, verdicts: JudgeVerdicts) -> None:
        self._service, self._verdicts = service, verdicts
        self._rated = rated_target(service.suite).name

    def choices(self) -> list[tuple[str, str]]:
        """Return (name, id) of evaluators other than experts: the paper's, then judges with verdicts."""
        printed = [(name, row_id) for row_id, _, name in PRINTED] if self._is_official else []
        named = {row_id for _, row_id in printed}
        rows = [
            row
            for row in self._service.records.board().rows
            if row.id not in named and self._verdicts.are_known(row)
        ]
        return [*printed, *zip(distinct_names(rows), (row.id for row in rows), strict=True)]

    @property
    def _is_official(self) -> bool:
        return self._service.suite.name == OFFICIAL

    def experts(self) -> Evaluator | None:
        """Return the experts' rates on test, or None if the labels are hidden or not available."""
        labels = self._service.labels_for_public_figures()
        if labels is None:
            return None
        answers = labels.primary[self._rated]
        return evaluate_agents(EXPERTS, "labels", answers, labels.trajectories, "published")

    def default(self) -> list[str]:
        """Return the ids of the evaluators shown by default: the paper's on the official suite, else none."""
        return [row_id for row_id, _, _ in PRINTED] if self._is_official else []

    def find(self, ids: Sequence[str]) -> tuple[list[Evaluator], list[str]]:
        """Return (evaluators, problems): the experts, if visible, then the evaluators with these ids.

        Ids after the first five are ignored. ``problems`` has a message for each unknown id.
        """
        experts = self.experts()
        found = [experts] if experts else []
        problems = []
        names = {row_id: words for words, row_id in self.choices()}
        for row_id in dict.fromkeys(ids[:MOST_EVALUATORS]):
            try:
                found.append(self._evaluator(row_id, names.get(row_id, row_id), experts))
            except KeyError:
                problems.append(NO_JUDGE.format(row_id[:60]))
        return found, problems

    def _evaluator(self, row_id: str, name: str, experts: Evaluator | None) -> Evaluator:
        row = self._service.records.board().row(row_id)  # only judges on the board count
        column = self._verdicts.for_row(row) if row else None
        if row is not None and column is not None:
            basis = "verdicts scored here" if row.provenance == "scored" else "its verdicts"
            runs = self._service.suite.split("test")  # they come first in the column
            return evaluate_agents(name, basis, column.verdicts.codes(self._rated)[: len(runs)], runs)
        for printed_id, printed, title in PRINTED:
            if row_id == printed_id and self._is_official and experts is not None:
                return printed_evaluator(printed, title, experts)
        raise KeyError(row_id)

    def splits(self) -> tuple[str, ...]:
        return tuple(split for split in SPLITS if split in self._verdicts.splits())

    def judges(self, split: str, chosen: Sequence[str]) -> list[tuple[str, str]]:
        """Return (name, id) of judges with verdicts on every run; on test, only the best and chosen ones."""
        if split == "test":
            ranked = self._service.records.board().ranking(self._rated)
            best = [row for row in ranked if is_best(row, self._rated) and self._verdicts.are_known(row)]
            rows = [row for place, row in enumerate(best) if place < MOST_OFFERED or row.id in chosen]
            return list(zip(distinct_names(rows), (row.id for row in rows), strict=True))
        columns = self._verdicts.by_judge(split).values()
        return [(column.name, column.judge) for column in columns if column.is_complete]

    def estimates(self, split: str, ids: Sequence[str], n_labels: int) -> dict[str, Any]:
        """Return the template's values for estimates. If no id is known, the first few judges are used."""
        offered = self.judges(split, ids) if split else []
        known = [row_id for _, row_id in offered]
        judges = [row_id for row_id in ids if row_id in known][:MOST_ASSISTING] or known[:N_DEFAULT]
        return {
            "problems": [NO_JUDGE.format(row_id[:60]) for row_id in ids if row_id not in known],
            "estimates": self._estimate(split, [each for each in offered if each[1] in judges], n_labels),
            "splits": self.splits(),
            "judges": judges,
            "assisting": offered,
            "default_judges": known[:N_DEFAULT],
            "most_assisting": MOST_ASSISTING,
            "counts_offered": [(f"{n} labels", n) for n in sorted({*OFFERED, n_labels})],
            "n_labels": N_LABELS,
            "seed": SEED,
        }

    def _estimate(
        self, split: str, judges: Sequence[tuple[str, str]], n_labels: int
    ) -> dict[str, Any] | None:
        """Return the template's values for estimates with these judges, or None if labels are missing."""
        labels = self._verdicts.labels(split) if judges else None
        board = self._service.records.board()
        columns: dict[str, np.ndarray] = {}
        for name, row_id in judges:
            if split == "test":
                row = board.row(row_id)
                found = self._verdicts.for_row(row) if row else None
            else:
                found = self._verdicts.by_judge(split)[row_id]
            if found is not None:
                columns[name] = found.verdicts.codes(self._rated)
        if labels is None or not columns:
            return None
        agents, rates, warnings = estimate_by_draw(columns, labels, n_labels, SEED)
        return view_estimates(list(columns), agents, rates, warnings)


def view_rates(evaluators: Sequence[Evaluator], benchmark: str) -> dict[str, Any]:
    """Return the tables of a benchmark, or of ``overall``; the first evaluator is the reference.

    ``agents`` maps each agent to its number of trajectories. ``orders`` has (evaluator, agents from best to
    worst, pairs of agents that it ranks differently from the reference).
    """
    reference = evaluators[0]
    ordered = ranking(reference, benchmark)  # agents without a rate by the reference follow
    others = {agent for evaluator in evaluators for cell, agent in evaluator.rates if cell == benchmark}
    agents: dict[str, int] = {}
    ends: list[float | None] = []
    for agent in (*ordered, *sorted(others - set(ordered))):
        agents[agent] = 0
        for rate in filter(None, (evaluator.rate(benchmark, agent) for evaluator in evaluators)):
            agents[agent] = max(agents[agent], rate.n)
            ends += [rate.value, *(rate.interval or ())]
    return {
        "benchmark": benchmark,
        "evaluators": evaluators,
        "agents": agents,
        "axis": Axis.around(ends, include=(0.0,)),
        "orders": [
            (each, ranking(each, benchmark), _swaps(reference, each, benchmark)) for each in evaluators
        ],
        "reference": reference.name.replace(EXPERTS, "the experts"),
        "sentences": _sentences(evaluators, benchmark),
    }


def view_training(
    rows: Iterable[BoardRow], label: str
) -> tuple[Axis, list[tuple[BoardRow, str, FinetuningEffect]]]:
    """Return an axis for shares, and (row, name, effect) of the judges with the fewest wrong trajectories."""
    found = []
    for row in rows:
        effect = _effect_on_training(row, label)
        if effect:
            found.append((row, effect))
    found = sorted(found, key=lambda pair: pair[1].wrong)[:MOST_KEPT]
    ends = [end / 1000 for _, kept in found for end in (kept.wrong, *(kept.wrong_interval or ()))]
    names = distinct_names([row for row, _ in found])
    return Axis.around(ends), [(row, name, kept) for name, (row, kept) in zip(names, found, strict=True)]


def agent_title(agent: str) -> str:
    return AGENT_TITLES.get(agent, agent)


def benchmark_title(benchmark: str) -> str:
    return "All benchmarks" if benchmark == OVERALL else BENCHMARK_TITLES.get(benchmark, benchmark)


def _effect_on_training(row: BoardRow, label: str) -> FinetuningEffect | None:
    cell = overall_of(row, label)
    if cell is None or (row.provenance == "scored" and not is_best(row, label)):
        return None
    tp, fp, fn, tn = cell["tp"], cell["fp"], cell["fn"], cell["tn"]
    if tp is None or fp is None or fn is None or tn is None:
        return None
    return rejection_finetuning(tp, fp, fn, tn, row.interval(cell, "precision"))


def _swaps(reference: Evaluator, other: Evaluator, benchmark: str) -> list[str]:
    swaps = swapped_pairs(reference, other, benchmark)
    return [f"{agent_title(worse)} above {agent_title(better)}" for better, worse in swaps]


def _sentences(evaluators: Sequence[Evaluator], benchmark: str) -> list[str]:
    """Return sentences on how the other evaluators' rates and rankings differ from those of the first."""
    reference, *others = evaluators
    compared = reference.name.replace(EXPERTS, "the experts")
    found = []
    where = "overall" if benchmark == OVERALL else f"on {benchmark_title(benchmark)}"
    for other in others:
        gaps: dict[str, float] = {}
        for agent in ranking(reference, benchmark):
            rate, expected = other.rate(benchmark, agent), reference.rate(benchmark, agent)
            if rate and expected and rate.value is not None and expected.value is not None:
                gaps[agent] = rate.value - expected.value
        if not gaps:
            continue
        agent, gap = max(gaps.items(), key=lambda item: abs(item[1]))
        if gap:
            above = _of(sum(each > 0 for each in gaps.values()), len(gaps))
            below = _of(sum(each < 0 for each in gaps.values()), len(gaps))
            found.append(
                f"{other.name} gives higher rates than {compared} to {above} {where}, and lower rates to "
                f"{below}. The largest difference is {points(gap)} points, for {agent_title(agent)}."
            )
        else:
            found.append(f"{other.name} gives every agent the same rate as {compared} {where}.")
        if swaps := _swaps(reference, other, benchmark):
            found.append(f"{other.name} ranks agents differently from {compared}: {', '.join(swaps)}.")
    return found


def _of(count: int, total: int) -> str:
    if count == total:
        return f"all {total} agents"
    return "no agent" if not count else f"{count} of {total} agents"


def view_estimates(
    judges: Sequence[str],
    agents: Sequence[AgentEstimate],
    by_all: Mapping[str, float],
    warnings: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the template's values for estimates; ``by_all`` has agents' rates from all labels, if known."""
    rates = [rate for each in agents for rate in (each.labels_only, each.assisted)]
    ends = [end for rate in rates for end in (*(rate.ci or ()), *(rate.ci_on_tasks or ()))]
    ends += [alone.rate for each in agents for alone in each.judge_alone if alone.rate is not None]
    return {
        "judges": judges,
        "agents": agents,
        "by_all": by_all,
        "axis": Axis.around((*ends, *by_all.values()), include=(0.0,)),
        "sentences": _on_estimates(agents, by_all),
        "warnings": warnings,
    }


def _on_estimates(agents: Sequence[AgentEstimate], by_all: Mapping[str, float]) -> list[str]:
    found = []
    errors: list[tuple[float, str, str, float]] = []
    saved: list[float] = []
    widths: list[tuple[float, float]] = []
    is_covered: list[bool] = []
    for each in agents:
        rate, without, assisted = by_all.get(each.agent), each.labels_only.width, each.assisted.width
        if rate is not None:
            errors += [
                (abs(alone.rate - rate), alone.judge, each.agent, alone.rate)
                for alone in each.judge_alone
                if alone.rate is not None
            ]
        if each.saved is None or without is None or assisted is None:
            continue
        saved.append(each.saved)
        widths.append((without, assisted))
        if rate is not None and each.assisted.ci is not None:
            low, high = each.assisted.ci
            is_covered.append(low <= rate <= high)
    if errors:
        gap, judge, agent, alone = max(errors)
        found.append(
            f"Without labels, a judge is off by up to {100 * gap:.1f} points: {judge} gives "
            f"{agent_title(agent)} a rate of {percent(alone)} %; all labels give {percent(by_all[agent])} %."
        )
    if saved:
        half_widths = 50 * np.mean(widths, axis=0)
        least, most = round(100 * min(saved)), round(100 * max(saved))
        fewer = "none"
        if most > 0:
            fewer = f"{least} to {most} %" if least > 0 else f"up to {most} %"
        found.append(
            f"On average, the intervals on these runs are ±{half_widths[0]:.1f} points with labels only and "
            f"±{half_widths[1]:.1f} points with labels and verdicts. For intervals of the same width, the "
            f"verdicts save {fewer} of the labels."
        )
    else:
        found.append(
            "To see how many labels the verdicts save, label at least ten runs of each agent, but not all."
        )
    if is_covered:
        found.append(
            f"The assisted interval on these runs contains the rate from all labels for {sum(is_covered)} of "
            f"{len(is_covered)} agents. In the long run, 95 % of such intervals do."
        )
    return found


def benchmarks_of(service: SubmissionsApp) -> tuple[str, ...]:
    """Return ``overall`` and the benchmarks of the test split, the official ones in the paper's order."""
    found = {trajectory.benchmark for trajectory in service.suite.split("test")}
    return (OVERALL, *in_order(found, BENCHMARKS))


FORMATS: Final = {"agent_title": agent_title, "benchmark_title": benchmark_title}


def build_rates_router(services: Services, pages: PageFrame) -> APIRouter:
    service, router = services.submissions, APIRouter()
    sources, benchmarks = RateSources(service, services.verdicts), benchmarks_of(service)
    main = rated_target(service.suite)
    title = f"{main.title} rates"

    def choices_of(request: Request) -> tuple[Mapping[str, Any], list[str]]:
        splits = sources.splits()
        controls = (
            QueryParam("benchmark", "one", OVERALL, benchmarks),
            QueryParam("by", "many", sources.default()),
            QueryParam("split", "one", splits[0] if splits else "", splits),
            QueryParam("judges", "many", []),
            QueryParam("labels", "one", N_LABELS, tuple(range(FEWEST_LABELS, MOST_LABELS + 1))),
        )
        chosen, unknown = choices_in(request.scope["query_string"].decode("latin-1"), controls)
        return chosen | {"by": chosen["by"] or sources.default()}, unknown

    def values(query: Mapping[str, Any]) -> Mapping[str, Any]:
        evaluators, problems = sources.find(query["by"])
        choices = sources.choices()
        known = {row_id for _, row_id in choices}
        ranked = service.records.board().ranking(main.name)
        training_axis, training = view_training(map(services.verdicts.with_figures, ranked), main.name)
        found = FORMATS | sources.estimates(query["split"], query["judges"], query["labels"])
        return found | {
            "main": main,
            "view": view_rates(evaluators, query["benchmark"]) if evaluators else None,
            "problems": [*problems, *found["problems"]],
            "query": query,
            "labels_are_public": service.labels_for_public_figures() is not None,
            "benchmarks": [(benchmark_title(name), name) for name in benchmarks],
            "chosen": [row_id for row_id in query["by"] if row_id in known][:MOST_EVALUATORS],
            "choices": choices,
            "default": sources.default(),
            "most": MOST_EVALUATORS,
            "training_axis": training_axis,
            "training": training,
        }

    @router.get(PATH, include_in_schema=False)
    def rates_page(request: Request) -> Response:
        board, (query, unknown) = service.records.board(), choices_of(request)
        labels = [found.version if found else None for found in map(services.verdicts.labels, SPLITS)]
        key = (board.key, services.verdicts.version, *labels, json.dumps(query))
        return pages.cached(request, key, TEMPLATE, title, PATH, lambda: values(query), unknown=unknown)

    return router
