"""The compare page's numbers and sentences, from comparisons made by hand."""

import pytest

from arb.core.suites.targets import default_targets
from leaderboard.compare import Comparison, Entrant, Pair, PairedVerdicts, Vote
from leaderboard.paired import Difference, McNemar, SharedErrors, VerdictAgreement
from space.pages.compare.page import (
    basis_sentence,
    pair_sentence,
    vote_sentence,
)
from space.pages.compare.view import interval_in_points, p_value, points, view_comparison
from tests.support.boards import cell, label, row

MAIN = default_targets()[0]


def entrant(name, tp=60, fp=20, webarena=(40, 10), workarena=(20, 10), **changes):
    """A row with 100 positives in 1,000 runs; ``webarena`` and ``workarena`` are TP and FP there."""
    success = label(
        cell(tp, fp, 100 - tp, 900 - fp, ci=[tp / (tp + fp) - 0.1, tp / (tp + fp) + 0.1]),
        webarena=cell(*webarena, 10, 400),
        workarena=cell(*workarena, 10, 400),
    )
    return Entrant(row(name, success, id=name, **changes), None)


def difference(value, interval=None, basis="paired"):
    return Difference(0.5 + value, 0.5, value, interval, basis if interval else None)


def runs(percent=0.8):
    return PairedVerdicts(
        McNemar(1000, 800, 90, 60, 50, 0.0170),
        VerdictAgreement(1000, percent, 0.4444),
        SharedErrors(110, 140, 30, 20, 15.4, 0.25),
    )


def pair(overall, webarena=None, workarena=None, first=0, second=1, found_runs=None):
    none = difference(0.0, (-0.1, 0.1))
    return Pair(
        first, second, overall, {"webarena": webarena or none, "workarena": workarena or none}, {}, found_runs
    )


def comparison(*pairs, names="AB", figure="precision", voters=(), votes=(), fooled=None, **changed):
    entrants = tuple(changed.get(name, entrant(name)) for name in names)
    return Comparison("success", figure, entrants, pairs, voters, votes, fooled)


BETTER, WORSE, EVEN = (
    difference(0.12, (0.05, 0.2)),
    difference(-0.12, (-0.2, -0.05)),
    difference(0.02, (-0.05, 0.08)),
)

BY = "by 12.0 points (95 %: 5.0 to 20.0)"
WHY = "The difference in precision is +2.0 points, and its 95 % interval (−5.0 to +8.0) includes zero."


# The sentence for a pair


@pytest.mark.parametrize(
    "overall, webarena, workarena, told",
    [
        (EVEN, None, None, f"The test set cannot tell A and B apart, overall or on any benchmark. {WHY}"),
        (EVEN, None, BETTER,
         f"The test set cannot tell A and B apart overall; A is better on WorkArena. {WHY}"),
        (EVEN, BETTER, WORSE, "The test set cannot tell A and B apart overall; A is better on WebArena and "
         f"worse on WorkArena. {WHY}"),
        (BETTER, None, None, f"A is better than B overall, {BY}; no single benchmark shows this on its own."),
        (BETTER, BETTER, BETTER,
         f"A is better than B overall, {BY}; it is also better on WebArena and WorkArena."),
        (BETTER, BETTER, WORSE,
         f"A is better than B overall, {BY}; it is also better on WebArena, but worse on WorkArena."),
        (BETTER, None, WORSE, f"A is better than B overall, {BY}; it is worse on WorkArena."),
        (WORSE, WORSE, None, f"A is worse than B overall, {BY}; it is also worse on WebArena."),
        (WORSE, None, BETTER, f"A is worse than B overall, {BY}; it is better on WorkArena."),
    ],
)  # fmt: skip
def test_the_sentence_says_who_is_better_and_where(overall, webarena, workarena, told):
    found = comparison(pair(overall, webarena, workarena))
    assert pair_sentence(found, found.pairs[0], ("A", "B")) == told


def test_a_benchmark_on_few_trajectories_is_named_as_such():
    few = entrant("A", webarena=(5, 2))  # 7 runs called successful
    found = comparison(pair(EVEN, BETTER), A=few)
    assert "better on WebArena (few trajectories)." in pair_sentence(found, found.pairs[0], ("A", "B"))


def test_without_an_interval_the_sentence_says_so():
    found = comparison(pair(difference(-0.039)), figure="kappa")
    assert pair_sentence(found, found.pairs[0], ("A", "B")).startswith(
        "A is 3.9 points below B in kappa. The difference may be chance"
    )
    undefined = comparison(pair(Difference(None, 0.5, None, None, None)))
    assert "cannot be compared by precision" in pair_sentence(undefined, undefined.pairs[0], ("A", "B"))


def test_judges_with_the_same_verdicts_are_told_so():
    found = comparison(pair(difference(0.0), found_runs=runs(percent=1.0)), voters=(0, 1))
    assert (
        pair_sentence(found, found.pairs[0], ("A", "B"))
        == "A and B gave the same verdict on every trajectory."
    )


# What rests on what


def test_the_basis_tells_paired_intervals_from_approximate_ones():
    paired = pair(BETTER, found_runs=runs())
    counts = pair(difference(0.1, (0.05, 0.2), "approximate"), second=2)
    assert basis_sentence(comparison(paired)).startswith("Every interval is paired")
    assert basis_sentence(comparison(counts, names="ABC")).startswith(
        "No interval here is paired. If the verdicts"
    )
    same = pair(difference(0.1, (0.05, 0.2), "approximate"), found_runs=runs())
    assert basis_sentence(comparison(same)).startswith("No overall interval here is paired. If a metric is")
    assert basis_sentence(comparison(paired, counts, names="ABC")).startswith("Of 2 pairs, 1 is compared")


def test_votes_tell_what_unanimity_buys_and_costs():
    # Both alone: precision 75 %, recall 60 %. Together 45 of 50, recall 45 %: 15 points for 15.
    together = Vote(2, 2, {"overall": cell(45, 5, 55, 895), "by_benchmark": {}})
    either = Vote(1, 2, {"overall": cell(70, 40, 30, 860), "by_benchmark": {}})
    found = comparison(pair(EVEN, found_runs=runs()), voters=(0, 1), votes=(either, together))
    assert vote_sentence(found, ("A", "B")) == (
        "If both must say yes, the precision is 90.0 %, 15.0 points more than with A only. This costs "
        "15.0 points of recall."
    )
    lines = view_comparison(found, MAIN)["ensembles"].lines
    assert [(name, is_ensemble, round(cell["precision"], 3)) for name, is_ensemble, cell in lines] == [
        ("At least 1 of 2", True, 0.636),
        ("Both say yes", True, 0.9),
        ("A (tree)", False, 0.75),
        ("B (tree)", False, 0.75),
    ]


# The tables


def test_the_forest_has_a_line_for_each_cell_and_other_judge():
    found = comparison(pair(BETTER, WORSE), pair(EVEN, second=2), pair(EVEN, first=1, second=2), names="ABC")
    groups = view_comparison(found, MAIN)["groups"]
    assert [(group.title, group.kind) for group in groups] == [
        ("All trajectories", "overall"),
        ("WebArena", "by_benchmark"),
        ("WorkArena", "by_benchmark"),
    ]
    assert [[pair.second for pair, _, _ in group.lines] for group in groups] == [[1, 2]] * 3
    assert [groups[at].lines[0][1] for at in (0, 1)] == [BETTER, WORSE]


def test_the_axis_of_differences_holds_zero_and_every_interval_but_those_on_few_trajectories():
    wide = difference(0.05, (-0.7, 0.8))
    solid = view_comparison(comparison(pair(BETTER, wide)), MAIN)["difference_axis"]
    assert solid.low <= -0.7 and solid.high >= 0.8
    few = entrant("A", webarena=(5, 2))
    view = view_comparison(comparison(pair(BETTER, wide), A=few), MAIN)
    narrow = view["difference_axis"]
    assert narrow.low > -0.3 and narrow.high < 0.5
    ((_, found, is_few),) = view["groups"][1].lines
    span = narrow.span(found.value, found.interval)
    assert is_few and span.runs_left and span.runs_right


def test_intervals_of_differences_are_signed_points():
    assert interval_in_points((0.05, 0.2)) == "+5.0 to +20.0"
    assert interval_in_points(None) == ""


@pytest.mark.parametrize(
    "value, text", [(0.152, "+15.2"), (-0.0041, "−0.4"), (0.0, "0.0"), (-0.0001, "0.0"), (None, "–")]
)
def test_differences_are_signed_points(value, text):
    assert points(value) == text


@pytest.mark.parametrize(
    "p, text", [(0.0000001, "< 0.0001"), (0.0032, "0.0032"), (0.135, "0.14"), (0.999, "1"), (1.0, "1")]
)
def test_p_values_are_told_with_two_digits(p, text):
    assert p_value(p) == text
