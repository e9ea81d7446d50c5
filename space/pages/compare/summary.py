"""What a comparison says, in sentences made from it."""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Final

from core.console import percent
from core.vocabulary import BENCHMARK_TITLES
from leaderboard.compare import Comparison, Pair
from leaderboard.paired import Difference
from leaderboard.paper.published import SECOND_ANNOTATOR
from space.pages.compare.view import ordered, rests_on_few

FIGURE_WORDS: Final = MappingProxyType(
    {"precision": "precision", "recall": "recall", "f1": "F1", "accuracy": "accuracy", "kappa": "kappa"}
)


def question(names: Sequence[str]) -> str:
    """The page's title for these judges."""
    if len(names) == 2:
        return f"Is {names[0]} better than {names[1]}?"
    return f"How do these {len(names)} judges differ?"


def pair_sentence(found: Comparison, pair: Pair, names: Sequence[str]) -> str:
    """One sentence: who is better overall, and on which benchmarks that holds or turns around."""
    first, second = names[pair.first], names[pair.second]
    overall, figure = pair.overall, FIGURE_WORDS[found.figure]
    for name, place in ((first, pair.first), (second, pair.second)):
        if why := found.entrants[place].row.why_not_comparable:
            return f"{first} and {second} cannot be compared: {name} is {why}."
    if overall.value is None:
        return f"{first} and {second} cannot be compared by {figure}: it is undefined for one of them."
    if pair.runs is not None and pair.runs.agreement.percent == 1:
        return f"{first} and {second} gave the same verdict on every trajectory."
    if overall.interval is None:
        return (
            f"{first} is {_apart(overall)} {second} in {figure}. Without verdicts there is no "
            "interval for this metric, so the difference may be chance."
        )
    better, worse = (_benchmarks(found, pair, favours) for favours in (1, -1))
    if overall.favours == 0:
        if not better and not worse:
            return f"{first} is not separable from {second}, overall or on any benchmark."
        head, turns = (
            f"{first} is not separable from {second} overall",
            [("better", better), ("worse", worse)],
        )
    elif overall.favours > 0:
        head = f"{first} is better than {second} overall, {_by(overall)}"
        turns = [("also better", better), ("but worse" if better else "worse", worse)]
    else:
        head = f"{first} is worse than {second} overall, {_by(overall)}"
        turns = [("also worse", worse), ("but better" if worse else "better", better)]
    found_on = [f"{word} on {_listed(where)}" for word, where in turns if where]
    return (
        f"{head}; it is {' and '.join(found_on).replace(' and but', ', but')}."
        if found_on
        else (f"{head}; no single benchmark shows it by itself.")
    )


def basis_sentence(found: Comparison) -> str:
    """Which of the overall intervals are paired over tasks, and which only approximate; and why."""
    paired = sum(pair.is_paired for pair in found.pairs)
    if paired == len(found.pairs):
        parts = (part for pair in found.pairs for part in (pair.by_benchmark, pair.by_agent))
        is_every = all(each.basis != "approximate" for part in parts for each in part.values())
        which, but = ("Every interval", "") if is_every else ("Every overall interval", ", but those with ≈")
        return f"{which} is paired: the judges are compared on the same resamples of tasks{but}."
    without = sum(pair.runs is None for pair in found.pairs)
    reasons = ["without verdicts of both on the same trajectories"] if without else []
    if len(found.pairs) - without > paired:
        reasons.append("where a metric is the same in every resample")
    how = (
        f"{' or '.join(reasons)}, two separate intervals are combined: approximate, and wider than paired "
        "ones (hollow dots)."
    )
    if not paired:
        return f"No {'interval' if without == len(found.pairs) else 'overall interval'} here is paired: {how}"
    are = "is" if paired == 1 else "are"
    return f"Of {len(found.pairs)} pairs {paired} {are} compared on the same tasks (filled dots); {how}"


def apart_sentence(found: Comparison) -> str:
    """That the second annotator's metrics come from other trajectories, where it is compared."""
    if all(entrant.row.id != SECOND_ANNOTATOR for entrant in found.entrants):
        return ""
    return (
        "The second annotator saw only the trajectories that two experts annotated, not the whole test split."
    )


def vote_sentence(found: Comparison, names: Sequence[str]) -> str:
    """What unanimity buys and what it costs, against the most precise of the judges alone."""
    if not found.votes:
        return ""
    unanimous = found.votes[-1].cells["overall"]
    alone = [
        (found.entrants[place].row.labels[found.label]["overall"], names[place]) for place in found.voters
    ]
    known = [(cell, name) for cell, name in alone if cell["precision"] is not None]
    if unanimous["precision"] is None or not known:
        return "There is no trajectory on which all say yes."
    best, name = max(known, key=lambda pair: pair[0]["precision"])
    gained = 100 * (unanimous["precision"] - best["precision"])
    lost = 100 * (best["recall"] - unanimous["recall"]) if best["recall"] is not None else 0
    who = "both" if len(found.voters) == 2 else f"all {len(found.voters)}"
    change = "more" if gained >= 0 else "less"
    return (
        f"Where {who} say yes, {percent(unanimous['precision'])} % are right: {abs(gained):.1f} points "
        f"{change} than {name} alone, for {lost:.1f} points of recall."
    )


def fooled_sentence(found: Comparison) -> str:
    """How many trajectories every judge gets wrong: no ensemble of them can fix those."""
    if found.fooled is None:
        return ""
    alarms, misses = found.fooled.negatives[-1], found.fooled.positives[-1]
    who = "Both judges are" if len(found.voters) == 2 else f"All {len(found.voters)} judges are"
    return (
        f"{who} wrong on {alarms + misses:,} trajectories ({alarms:,} false alarms, {misses:,} misses): no "
        "ensemble of them fixes those."
    )


def _benchmarks(found: Comparison, pair: Pair, favours: int) -> list[str]:
    """The benchmarks on which the whole interval lies on one side, those on few trajectories marked so."""
    found_on = []
    for name in ordered(set(pair.by_benchmark), BENCHMARK_TITLES):
        if pair.by_benchmark[name].favours == favours:
            few = " (few trajectories)" if rests_on_few(found, pair, "by_benchmark", name) else ""
            found_on.append(f"{BENCHMARK_TITLES.get(name, name)}{few}")
    return found_on


def _by(difference: Difference) -> str:
    near, far = sorted(abs(100 * end) for end in difference.interval)
    return f"by {abs(100 * difference.value):.1f} points (95 %: {near:.1f} to {far:.1f})"


def _apart(difference: Difference) -> str:
    points = 100 * difference.value
    return f"{abs(points):.1f} points {'above' if points >= 0 else 'below'}"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
