"""Helpers for pages that show rows of a board: metrics, ranks, names and their order."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from arb.core.suite import Suite
from arb.core.suites.targets import Target, outcome_target
from arb.core.vocabulary import METRIC_TITLES, metric_name
from leaderboard.board.board import Board, BoardRow
from leaderboard.board.ranks import Rank
from leaderboard.metrics import metrics_of
from leaderboard.score import Cell

INPUTS: Final[Mapping[str, str]] = {
    "tree": "the accessibility tree of the last page",
    "screenshot": "the screenshot of the last page",
    "tree and screenshot": "the accessibility tree and the screenshot of the last page",
    "all screenshots": "the screenshots of all steps",
    "steps only": "the agent's steps, without any page",
    "changes": "descriptions of what each action changed on the page",
    "caption": "a description of the last screenshot that another model wrote",
    "reward": "the benchmark's own check of the result, as a reward of 0 or 1",
    "other": "something else; see the judge's page",
}
"""Descriptions of what a judge sees, keyed by its declared inputs."""


def metric_titles_of(target: Target) -> dict[str, str]:
    """Return the titles of the metrics of a target, keyed by name, in the order in which pages list them."""
    names = in_order(target.metrics, METRIC_TITLES) if target.type == "binary" else target.metrics
    return {name: metrics_of(target)[name].title for name in names}


MEANINGS: Final[Mapping[str, str]] = {
    "precision": "the share of a judge's yes answers that are right",
    "recall": "the share of positives to which a judge says yes",
    "accuracy": "the share of right answers",
    "balanced_accuracy": "the mean of the shares of positives and of negatives that a judge recognises",
}
MISSING: Final[Mapping[str, str]] = {
    "negative": "counts as a no", "wrong": "counts as wrong", "left out": "is left out",
}  # fmt: skip
"""How a missing answer affects the metrics, keyed by the target's rule for missing answers."""


def meaning_of(target: Target) -> str:
    """Return the meaning of a target's main metric, in words or as a formula, or "" if only /about has it."""
    metric = target.main_metric
    return MEANINGS.get(metric) or ("" if target.is_ranked_by_counts else metrics_of(target)[metric].formula)


def rated_target(suite: Suite) -> Target:
    """Return the target by which agents are rated: an outcome, or the main target if ``/rates`` is off."""
    return outcome_target(suite.targets) if suite.profile.serves("/rates") else suite.main_target


def subset_titles(suite: Suite) -> dict[str, str]:
    """Return the titles of the suite's subsets, keyed by their names in URLs, such as ``difficulty=hard``."""
    names = sorted({name for run in suite.trajectories for name in run.subsets})
    return {name: name.replace("=", ": ") for name in names}


def ranked_by(target: Target) -> str:
    """Return what judges are ranked by on a target, in words: ``precision on side effect``."""
    return f"{metric_name(target.main_metric)} on {target.title.lower()}"


def overall_of(row: BoardRow, label: str) -> Cell | None:
    """Return the cell over all trajectories, or None if the judge gives no verdicts on the label."""
    score = row.labels.get(label)
    return score["overall"] if score else None


def is_best(row: BoardRow, label: str) -> bool:
    """Return whether the row is its judge's best submission for the label."""
    score = row.labels.get(label)
    return bool(score and score.get("best"))


def ranked_rows(board: Board, label: str, figure: str | None = None) -> list[tuple[BoardRow, Rank]]:
    """Return (row, rank) of the rows with a rank by a metric (by default the main one), best first."""
    ranks = board.ranks(label, figure)
    found = []
    for row in board.ranking(label, figure):
        rank = ranks.get(row.id)
        if rank:
            found.append((row, rank))
    return found


def in_order(names: Collection[str], titles: Iterable[str]) -> list[str]:
    """Return the names in the order of ``titles``, and then those not in ``titles`` in alphabetical order."""
    known = [name for name in titles if name in names]
    return [*known, *sorted(set(names) - set(known))]
