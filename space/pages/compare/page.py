"""The page ``/compare``, which shows whether one judge is better than another, and on which benchmarks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, Final

import numpy as np
from fastapi import APIRouter, Request, Response

from arb.core.console import percent
from arb.core.suites.targets import Target, scored
from arb.core.vocabulary import BENCHMARK_TITLES, is_low, metric_name
from leaderboard.board.board import Board, BoardRow
from leaderboard.board.rows import parts_of
from leaderboard.compare import FEWEST, MOST, Comparison, Entrant, Pair, compare
from leaderboard.labels.labels import LabelSet
from leaderboard.paired import compared_metrics
from leaderboard.paper.published import SECOND_ANNOTATOR
from leaderboard.report import score_verdicts, verdicts_of
from space.pages.compare.view import (
    Ensembles,
    favours,
    interval_in_points,
    p_value,
    points,
    rests_on_few,
    single_judges,
    view_comparison,
    view_dev_ensembles,
)
from space.pages.rows import in_order, ranked_rows, subset_titles
from space.services import Services
from space.verdicts import JudgeVerdicts
from space.web.cells import (
    choices_of,
    distinct_names,
    metric_cell,
    metric_title,
    noise_on_board,
    origin,
    short_name,
    unit_of,
)
from space.web.frame import PageFrame
from space.web.query import QueryParam, choices_in, link_to

PATH: Final = "/compare"
EXAMPLE_SIZE: Final = 3
QUESTION: Final = "Is one judge really better than another?"


def build_compare_router(services: Services, pages: PageFrame) -> APIRouter:
    router, suite = APIRouter(), services.submissions.suite
    targets = {target.name: target for target in suite.scored_targets}
    known = {name for target in targets.values() for name in metrics_of(target)}
    controls = (
        QueryParam("judges", "many", []),
        QueryParam("label", "one", suite.main_target.name, tuple(targets)),
        QueryParam("figure", "one", "", tuple(known)),
        QueryParam("subset", "one", "", ("", *subset_titles(suite))),
    )

    @router.get(PATH, include_in_schema=False)
    def compare_page(request: Request) -> Response:
        chosen, unknown = choices_in(request.scope["query_string"].decode("latin-1"), controls)
        board = services.submissions.records.board()
        rows = [row for row in map(board.row, chosen["judges"]) if row is not None]
        n_absent = len(chosen["judges"]) - len(rows)
        label, subset = chosen["label"], chosen["subset"]
        metrics = metrics_of(targets[label])
        metric = chosen["figure"] if chosen["figure"] in metrics else next(iter(metrics))

        def values() -> Mapping[str, Any]:
            found = _values(services, board, rows, label, metric, subset)
            if n_absent:
                found["notices"].insert(0, f"Judges left out because they are not on the board: {n_absent}.")
            return {
                **found,
                "label": label,
                "main": suite.main_target.name,
                "metric": metric,
                "subset": subset,
                "subsets": [("All", ""), *((title, name) for name, title in subset_titles(suite).items())],
                "judges": choices_of(board),
            }

        version = services.verdicts.version
        key = (board.key, version, label, metric, subset, n_absent, *(row.id for row in rows))
        return pages.cached(request, key, "compare/page.html", "Compare", PATH, values, unknown=unknown)

    return router


def metrics_of(target: Target) -> dict[str, str]:
    """Return the titles of the metrics by which judges are compared on a target, the main one first."""
    names = sorted(compared_metrics(target), key=lambda name: name != target.main_metric)
    return {name: metric_title(name) for name in names}


def _values(
    services: Services, board: Board, rows: Sequence[BoardRow], label: str, metric: str, subset: str
) -> dict[str, Any]:
    """Return the template's values; if fewer than two rows are chosen, the best judges are added."""
    service, verdicts, target = services.submissions, services.verdicts, board.target(label)
    metrics = metrics_of(target)

    def has_figures(row: BoardRow) -> bool:
        score = row.labels.get(label)
        if score and subset:
            return subset in parts_of(verdicts.with_figures(row), label, "by_subset")
        return bool(score)

    answering = [row for row in rows if has_figures(row)]
    notices = _notices(rows, answering, target, subset)
    compared = answering[:MOST]
    is_example = len(compared) < FEWEST
    if is_example:
        ranked = [row for row, _ in ranked_rows(board, label) if has_figures(row)]
        compared = examples(ranked, compared, verdicts.are_known)
        if answering and len(compared) >= FEWEST:
            others = ", ".join(distinct_names(compared)[1:])
            notices.append(f"Only one judge was chosen. It is compared with {others}.")
    common = {
        "chosen": [row.id for row in compared],
        "most": MOST,
        "labels": [(target.title, target.name) for target in scored(board.targets)],
        "metrics": [(title, name) for name, title in metrics.items()],
        "default_metric": next(iter(metrics)),
        "notices": notices,
        "suggestions": _suggestions(board, label) if is_example else [],
        "is_example": is_example and not answering,
    }
    if len(compared) < FEWEST:
        return {**common, "heading": QUESTION, "found": None}
    labels = service.labels_for_public_figures()
    entrants = []
    for row in compared:
        column = verdicts.for_row(row) if labels is not None else None
        answers = verdicts_of(column.verdicts, label) if column else None
        entrants.append(Entrant(verdicts.with_figures(row), answers))
    if subset:
        entrants = [entrant_on(each, labels, label, subset) for each in entrants]
        labels = labels.only(_in_subset(labels, subset)) if labels is not None else None
    found = compare(entrants, labels, label, metric)
    view = view_comparison(found, target)
    names = view["names"]
    heading = f"How do these {len(names)} judges differ?"
    if common["is_example"]:
        heading = QUESTION
    elif len(names) == 2:
        heading = f"Is {names[0]} better than {names[1]}?"
    return common | {
        **view,
        "heading": heading,
        "sentences": [
            (
                pair_sentence(found, pair, names, target.noun),
                "" if subset else board_sentence(board, found, pair, names),
            )
            for pair in found.against_first()
        ],
        "letters": "ABCDE",
        "group_titles": {"by_benchmark": "By benchmark", "by_agent": "By agent"},
        "origin": origin,
        "metric_cell": metric_cell,
        "points": partial(points, unit=unit_of(metric)),
        "interval_in_points": partial(interval_in_points, unit=unit_of(metric)),
        "favours": partial(favours, metric),
        "is_low": is_low(metric),
        "p_value": p_value,
        "basis": f"{basis_sentence(found)} {noise_on_board(compared, label)}".strip(),
        "has_human": any(entrant.row.id == SECOND_ANNOTATOR for entrant in found.entrants),
        "ensemble_words": vote_sentence(found, names, target.noun),
        "dev_ensembles": None if subset else _dev_ensembles(verdicts, compared, names, label),
        "labels_are_public": service.suite.labels_are_public,
        "target": target,
    }


def _dev_ensembles(
    verdicts: JudgeVerdicts, rows: Sequence[BoardRow], names: Sequence[str], label: str
) -> Ensembles | None:
    """Return ensembles of the judges with verdicts on dev, or None if the main target is not binary."""
    is_main = label == verdicts.target.name and verdicts.target.type == "binary"
    labels = verdicts.labels("dev") if is_main else None
    if labels is None:
        return None
    known = verdicts.by_judge("dev")
    carried = {name: known[row.id].answers for name, row in zip(names, rows, strict=True) if row.id in known}
    return view_dev_ensembles(list(carried), list(carried.values()), labels, label)


def entrant_on(entrant: Entrant, labels: LabelSet | None, label: str, subset: str) -> Entrant:
    """Return an entrant with its figures and verdicts on a subset only. ``labels`` covers all items.

    If its verdicts are not known, the entrant has only the board's overall figures on the subset.
    """
    row, verdicts = entrant.row, None
    if labels is not None and entrant.verdicts is not None:
        chosen = _in_subset(labels, subset)
        verdicts = entrant.verdicts[chosen]
        score = score_verdicts(verdicts, labels.only(chosen), label)
    else:
        overall = parts_of(row, label, "by_subset")[subset]
        score = {**row.score(label), "overall": overall, "by_benchmark": {}, "by_agent": {}}
    return Entrant(replace(row, labels={**row.labels, label: score}), verdicts)


def _in_subset(labels: LabelSet, subset: str) -> np.ndarray:
    return np.array([subset in item.subsets for item in labels.trajectories], dtype=bool)


def examples(
    ranked: Sequence[BoardRow],
    chosen: Sequence[BoardRow] = (),
    has_verdicts: Callable[[BoardRow], bool] = lambda row: row.provenance == "scored",
) -> list[BoardRow]:
    """Return up to three rows for an example: those chosen, then the best with verdicts, then the others."""
    ranked = sorted(ranked, key=lambda row: not has_verdicts(row))
    names = {row.judge for row in chosen}
    return [*chosen, *_best_of_each(row for row in ranked if row.judge not in names)][:EXAMPLE_SIZE]


def _best_of_each(rows: Iterable[BoardRow]) -> list[BoardRow]:
    """Return the first row of each judge name."""
    best: dict[str, BoardRow] = {}
    for row in rows:
        best.setdefault(row.judge, row)
    return list(best.values())


def _notices(
    rows: Sequence[BoardRow], answering: Sequence[BoardRow], target: Target, subset: str
) -> list[str]:
    within = f", {subset.replace('=', ': ')}" if subset else ""
    notices = [f"Only the {target.nouns} of a subset are compared{within}."] if subset else []
    silent = [short_name(row) for row in rows if row not in answering]
    if silent:
        on = target.title.lower() + within
        notices.append(f"Left out because they give no verdicts on {on}: {', '.join(silent)}.")
    if len(answering) > MOST:
        notices.append(f"{len(answering)} judges were chosen; the first {MOST} are compared.")
    return notices


def _suggestions(board: Board, label: str) -> list[tuple[str, str]]:
    """Return (names, address) of suggested comparisons: neighbours in rank, and the leader with the human."""
    leaders = _best_of_each(row for row, _ in ranked_rows(board, label))
    pairs = list(pairwise(leaders))[:3]
    human = board.row(SECOND_ANNOTATOR)
    if leaders and human is not None and human.labels.get(label):
        pairs.append((leaders[0], human))
    other_label = "" if label == board.main.name else label
    return [
        (
            " and ".join(distinct_names(pair)),
            link_to(PATH, judges=[row.id for row in pair], label=other_label),
        )
        for pair in pairs
    ]


def _digits(unit: int) -> int:
    return 1 if unit == 100 else 2


def pair_sentence(found: Comparison, pair: Pair, names: Sequence[str], noun: str = "trajectory") -> str:
    """Return a sentence that says which judge is better, overall and by benchmark, or why this is unclear."""
    first, second = names[pair.first], names[pair.second]
    figure, value, interval = metric_name(found.figure), pair.overall.value, pair.overall.interval
    for name, place in ((first, pair.first), (second, pair.second)):
        if why := found.entrants[place].row.why_not_comparable:
            return f"{first} and {second} cannot be compared: {name} is {why}."
    if value is None:
        return f"{first} and {second} cannot be compared by {figure}: it is undefined for one of them."
    if pair.runs is not None and pair.runs.agreement.percent == 1:
        return f"{first} and {second} gave the same verdict on every {noun}."
    unit, points_word = unit_of(found.figure), " points" if unit_of(found.figure) == 100 else ""
    if interval is None:
        side = "above" if value >= 0 else "below"
        return (
            f"{first} is {abs(unit * value):.{_digits(unit)}f}{points_word} {side} {second} in {figure}. "
            "The difference may be chance: without verdicts there is no interval for this metric."
        )
    better, worse = (_benchmarks(found, pair, side) for side in (1, -1))
    towards = favours(found.figure, pair.overall)
    if towards == 0:
        why = (
            f" The difference in {figure} is {points(value, unit)}{points_word}, and its 95 % interval "
            f"({interval_in_points(interval, unit)}) includes zero."
        )
        if not better and not worse:
            return f"The test set cannot tell {first} and {second} apart, overall or on any benchmark.{why}"
        head = f"The test set cannot tell {first} and {second} apart overall"
        parts = [("better", better), ("worse", worse)]
    else:
        why = ""
        is_better = towards > 0
        word, opposite = ("better", "worse") if is_better else ("worse", "better")
        same, reversed_on = (better, worse) if is_better else (worse, better)
        near, far = sorted(abs(unit * end) for end in interval)
        head = (
            f"{first} is {word} than {second} overall, by {abs(unit * value):.{_digits(unit)}f}{points_word} "
            f"(95 %: {near:.{_digits(unit)}f} to {far:.{_digits(unit)}f})"
        )
        parts = [(f"also {word}", same), (f"but {opposite}" if same else opposite, reversed_on)]
    found_on = [f"{word} on {_listed(where)}" for word, where in parts if where]
    if not found_on:
        return f"{head}; no single benchmark shows this on its own."
    who = "it" if towards else first
    return f"{head}; {who} is {' and '.join(found_on).replace(' and but', ', but')}.{why}"


def board_sentence(board: Board, found: Comparison, pair: Pair, names: Sequence[str]) -> str:
    """Return a sentence that explains why the board's test of a pair differs from the page's, if it does.

    The sentence is empty if the two tests agree, or if the board does not list which judges are separated.
    """
    ranks = board.ranks(found.label, found.figure)
    rank, other = (ranks.get(found.entrants[place].row.id) for place in (pair.first, pair.second))
    if rank is None or other is None or rank.separated_from is None:
        return ""
    is_separated = found.entrants[pair.second].row.id in rank.separated_from
    if is_separated == (pair.overall.favours != 0):
        return ""
    first, second, metric = names[pair.first], names[pair.second], metric_name(found.figure)
    n_ranked = sum(each is not None for each in ranks.values())
    verb = "separates" if is_separated else "does not separate"
    head = f"The board {verb} {first} and {second} by {metric}"
    if is_separated or n_ranked == 2:
        return f"{head}: its test is computed in another way than the interval on this page."
    return (
        f"{head}: it tests all {n_ranked * (n_ranked - 1) // 2:,} pairs of its judges at once and needs a "
        "larger difference, while this page tests one pair at a time."
    )


def basis_sentence(found: Comparison) -> str:
    """Return sentences on which intervals are paired by task, which are only approximate, and why."""
    pairs = found.comparable()
    if not pairs:
        return "Judges that cannot be compared have no differences and no intervals."
    paired = sum(pair.is_paired for pair in pairs)
    if paired == len(pairs):
        bases = set()
        for pair in pairs:
            bases |= {each.basis for each in (*pair.by_benchmark.values(), *pair.by_agent.values())}
        which = "Every interval not marked with ≈" if "approximate" in bases else "Every interval"
        return f"{which} is paired: the judges are compared on the same resamples of tasks."
    without = sum(pair.runs is None for pair in pairs)
    reasons = ["the verdicts of both judges are not known"] if without else []
    if len(pairs) - without > paired:
        reasons.append("a metric is the same in every resample")
    how = (
        f"If {' or '.join(reasons)}, the two judges' separate intervals are combined. The "
        "result is approximate, and wider than a paired interval (hollow dots)."
    )
    if not paired:
        which = "interval" if without == len(pairs) else "overall interval"
        return f"No {which} here is paired. {how}"
    are = "is" if paired == 1 else "are"
    return f"Of {len(pairs)} pairs, {paired} {are} compared on the same tasks (filled dots). {how}"


def vote_sentence(found: Comparison, names: Sequence[str], noun: str = "trajectory") -> str:
    """Return a sentence on the gain if all judges must say yes, or an empty string without ensembles."""
    if not found.votes:
        return ""
    unanimous = found.votes[-1].cells["overall"]
    known = [
        (cell["precision"], name, cell["recall"])
        for name, cell in single_judges(found, names)
        if cell["precision"] is not None
    ]
    if unanimous["precision"] is None or not known:
        return f"There is no {noun} on which all judges say yes."
    precision, name, recall = max(known, key=lambda judge: judge[0])
    gained = 100 * (unanimous["precision"] - precision)
    lost = 0.0
    if recall is not None and unanimous["recall"] is not None:
        lost = 100 * (recall - unanimous["recall"])
    who = "both" if len(found.voters) == 2 else f"all {len(found.voters)}"
    change = "more" if gained >= 0 else "less"
    return (
        f"If {who} must say yes, the precision is {percent(unanimous['precision'])} %, {abs(gained):.1f} "
        f"points {change} than with {name} only. This costs {lost:.1f} points of recall."
    )


def _benchmarks(found: Comparison, pair: Pair, side: int) -> list[str]:
    """Return the benchmarks on which the first (1) or second (-1) judge is better."""
    found_on = []
    for name in in_order(pair.by_benchmark, BENCHMARK_TITLES):
        if favours(found.figure, pair.by_benchmark[name]) == side:
            few = " (few trajectories)" if rests_on_few(found, pair, "by_benchmark", name) else ""
            found_on.append(f"{BENCHMARK_TITLES.get(name, name)}{few}")
    return found_on


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
