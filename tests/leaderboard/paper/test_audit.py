from fractions import Fraction
from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from leaderboard.paper.audit import OVERALL, Counts, Figures, Marginal, audit_cell, audit_label, read_tenths


def printed(*figures) -> Figures:
    return Figures(*map(read_tenths, figures))


def audit(precision, recall, f1, positives, n, missing=None):
    return audit_cell(printed(precision, recall, f1), positives, n, missing=missing)


def figures_of(counts: Counts) -> Figures:
    return printed(*printed_by_released_scorer(counts))


def summed(parts) -> Counts:
    return Counts(*map(sum, zip(*parts, strict=True)))


def row_of(parts: dict[str, Counts]) -> tuple[dict[str, Figures], dict[str, Marginal]]:
    cells = {OVERALL: summed(parts.values()), **parts}
    return (
        {cell: figures_of(counts) for cell, counts in cells.items()},
        {cell: Marginal(counts.n, counts.positives) for cell, counts in cells.items()},
    )


MARGINALS = {OVERALL: Marginal(74, 6), "webarena": Marginal(10, 4), "workarena": Marginal(64, 2)}
WEBARENA = printed("60.0", "75.0", "66.7")  # 3/5, 3/4: only 3/2/1/4
WORKARENA = printed("0.0", "0.0", "0.0")  # TP 0, FP 0 to 62


def test_a_total_that_leaves_several_chooses_none_and_gives_their_range():
    # 3/66 = 4.545 and 3/67 = 4.478 are printed 4.5, 3/65 and 3/68 are not: FP 61 or 62 on workarena
    found = audit_label(
        {OVERALL: printed("4.5", None, None), "webarena": WEBARENA, "workarena": WORKARENA}, MARGINALS
    )
    cell = found.cells["workarena"]
    assert (cell.status, cell.counts) == ("several", None)
    assert cell.bounds == (Counts(0, 61, 2, 0), Counts(0, 62, 2, 1))
    assert cell.note == (
        "63 sets of counts fit, the row's total leaves 2: TP 0, FP 61 to 62, FN 2, TN 0 to 1"
    )


def test_benchmarks_that_do_not_add_up_are_a_finding_and_narrow_nothing():
    # Overall R = 4/6 = 66.7, but 3 + 0 true positives
    found = audit_label(
        {OVERALL: printed("50.0", "66.7", "57.1"), "webarena": WEBARENA, "workarena": WORKARENA}, MARGINALS
    )
    assert found.findings == ("the benchmarks' counts do not add up to the overall figures",)
    assert len(found.cells["workarena"].possible) == 63


def test_a_cell_that_fits_nothing_is_a_finding():
    found = audit_label(
        {OVERALL: printed("21.4", "50.0", "30.0"), "webarena": printed("99.9", "75.0", None)}, MARGINALS
    )
    assert found.findings == ("webarena: no whole numbers fit 4 positives of 10",)
    assert found.cells["workarena"].status == "not printed"


def test_a_missing_positive_of_a_benchmark_is_a_missing_positive_overall():
    # Without one judgment R = 52/503 and 52/504 are both printed 10.3 overall; webarena (2/3, as above) lacks
    # a positive, so that it is 503.
    marginals = {OVERALL: Marginal(1010, 504), "webarena": Marginal(10, 4), "workarena": Marginal(1000, 500)}
    figures = {
        OVERALL: figures_of(Counts(52, 13, 451, 493)),
        "webarena": figures_of(Counts(2, 2, 1, 4)),
        "workarena": figures_of(Counts(50, 11, 450, 489)),
    }
    found = audit_label(figures, marginals)
    assert found.findings == ()
    assert found.cells["webarena"].counts == Counts(2, 2, 1, 4)
    assert found.cells[OVERALL].counts == Counts(52, 13, 451, 493)


small_counts = st.tuples(*[st.integers(0, 5)] * 4).map(lambda cell: Counts(*cell))


@settings(max_examples=60, deadline=None)
@given(st.lists(small_counts, min_size=2, max_size=3))
def test_narrowing_keeps_exactly_what_some_sum_allows(parts):
    names = ("assistantbench", "webarena", "workarena")[: len(parts)]
    figures, marginals = row_of(dict(zip(names, parts, strict=True)))
    found = audit_label(figures, marginals)
    cells = [found.cells[name] for name in names]

    # By trying every combination of what fits each cell alone
    whole = set(found.cells[OVERALL].candidates)
    sums = [combo for combo in product(*(cell.candidates for cell in cells)) if summed(combo) in whole]
    for i, (cell, truth) in enumerate(zip(cells, parts, strict=True)):
        assert truth in cell.possible
        assert set(cell.possible) == {combo[i] for combo in sums}
    assert set(found.cells[OVERALL].possible) == {summed(combo) for combo in sums}
    assert found.findings == ()


def printed_by_released_scorer(counts: Counts) -> tuple[str, str, str]:
    """In floats, as it is done upstream; the audit must take in whatever comes out."""
    tp, fp, fn, _ = counts
    precision = tp / (tp + fp) if tp + fp else 0
    recall = tp / (tp + fn) if tp + fn else 0
    p, r = round(precision, 4), round(recall, 4)
    f1 = 2 * p * r / (p + r) if p + r else 0
    return tuple(f"{round(100 * figure, 1):.1f}" for figure in (precision, recall, f1))


counts_of_a_cell = st.tuples(*[st.integers(0, 40)] * 4).map(lambda cell: Counts(*cell))
counts_of_any_size = st.tuples(*[st.integers(0, 700)] * 4).map(lambda cell: Counts(*cell))


def test_refuses_a_recall_that_no_whole_number_of_295_gives():
    # 240/295 = 81.36 is printed 81.4, 241/295 = 81.69 is printed 81.7: nothing is printed 81.6
    result = audit("68.8", "81.6", None, positives=295, n=1106)
    assert (result.status, result.candidates) == ("none", ())


def test_looks_for_the_fewest_missing_judgments():
    # Of 355 positives no share is printed 72.2 (256/355 = 72.11, 257/355 = 72.39), of 354 255/354 = 72.03 and
    # 256/354 = 72.32 are not either; 255/353 = 72.24 is, with P = 255/358 = 71.23
    result = audit("71.2", "72.2", "71.7", positives=355, n=1301)
    assert (result.status, result.missing, result.counts) == ("none", 2, Counts(255, 103, 98, 843))
    assert "fits 353 positives of 1299: 2 judgments missing" in result.note


def test_figures_that_fit_nothing_at_all_say_so_without_counts():
    # Of 8 down to 5 positives only 2/6 (two missing) is printed 33.3, and no 2/d is printed 99.9
    result = audit("99.9", "33.3", None, positives=8, n=20)
    assert (result.status, result.missing, result.counts, result.bounds) == ("none", 0, None, None)
    assert result.note == "no whole numbers fit 8 positives of 20"


def test_zero_over_zero_is_printed_as_zero():
    # No true positive among 2: said yes to any number of the 62 others, or to none at all
    result = audit("0.0", "0.0", "0.0", positives=2, n=64)
    assert result.status == "several"
    assert [(c.tp, c.fp) for c in result.candidates] == [(0, fp) for fp in range(63)]
    assert result.bounds == (Counts(0, 0, 2, 0), Counts(0, 62, 2, 62))
    assert result.note == "63 sets of counts fit: TP 0, FP 0 to 62, FN 2, TN 0 to 62"


def test_a_recall_without_positives_is_printed_as_zero():
    assert audit("0.0", "0.0", "0.0", positives=0, n=1).candidates == (Counts(0, 0, 0, 1), Counts(0, 1, 0, 0))
    assert audit("0.0", "10.0", None, positives=0, n=1).status == "none"


def test_an_f1_above_zero_contradicts_a_precision_and_recall_of_zero():
    assert audit("0.0", "0.0", "50.0", positives=2, n=64).status == "none"


def test_says_that_a_precision_of_zero_over_zero_is_undefined():
    result = audit("0.0", "0.0", "0.0", positives=3, n=3)
    assert result.counts == Counts(0, 0, 3, 0)
    assert "undefined" in result.note


@pytest.mark.parametrize("precision", ["6.2", "6.3"])
def test_an_exact_tie_may_have_been_rounded_either_way(precision):
    # 1/16 = 6.25 %
    assert Counts(1, 15, 0, 0) in audit(precision, "100.0", None, positives=1, n=16).candidates


@pytest.mark.parametrize("f1", ["71.7", "71.8"])
def test_f1_comes_from_precision_and_recall_of_four_digits(f1):
    # 254/413 = .615012 -> .6150 and 254/295 = .861017 -> .8610; 2 * .6150 * .8610 / 1.4760 = .7175, a tie.
    # From the counts it would be 508/708 = .717514, so that 71.7 (what the paper prints) would be refused.
    result = audit("61.5", "86.1", f1, positives=295, n=1106)
    assert result.counts == Counts(254, 159, 41, 652)


@pytest.mark.parametrize("f1", ["4.6", "4.7"])
def test_a_tie_in_the_fourth_digit_may_have_been_rounded_either_way(f1):
    # P = 1/32 = .03125 and R = 1/11 = .0909: F1 = .046455 from .0312, .046566 from .0313
    result = audit("3.1", "9.1", f1, positives=11, n=42)
    assert Counts(1, 31, 10, 0) in result.candidates


def test_f1_distinguishes_counts_that_precision_and_recall_leave_open():
    # Half of those called positive are: 1 of 2, 2 of 4 or 3 of 6
    assert audit("50.0", None, None, positives=3, n=10).candidates == (
        Counts(1, 1, 2, 6),
        Counts(2, 2, 1, 5),
        Counts(3, 3, 0, 4),
    )
    # with R = 2/3: 2 * .5 * .6667 / 1.1667 = 57.14
    assert audit("50.0", None, "57.1", positives=3, n=10).candidates == (Counts(2, 2, 1, 5),)


def test_nothing_printed_is_not_audited():
    result = audit(None, "", None, positives=8, n=108)
    assert (result.status, result.candidates, result.note) == ("not printed", (), "")


@pytest.mark.parametrize("figure", [68.8, "68.8", "68.80"])
def test_figures_are_read_without_float_noise(figure):
    assert audit(figure, None, None, positives=5, n=9).figures.precision == 688


@pytest.mark.parametrize("figure", ["NaN", "Infinity", "-1", "1e400", "68.85", "100.1", "n/a"])
def test_refuses_numbers_that_are_no_percentages_with_one_decimal(figure):
    with pytest.raises(ValueError, match=f"'{figure}' is not a percentage"):
        read_tenths(figure)


@pytest.mark.parametrize("positives", [-1, 10])
def test_refuses_positives_that_are_not_among_n(positives):
    with pytest.raises(ValueError, match="between 0 and n"):
        audit("50.0", None, None, positives=positives, n=9)


def test_refuses_more_missing_judgments_than_there_are_trajectories():
    with pytest.raises(ValueError, match="missing must be between 0 and n = 9"):
        audit("50.0", None, None, positives=3, n=9, missing=10)


@given(counts_of_any_size)
def test_the_true_counts_are_always_among_the_candidates(counts):
    figures = printed_by_released_scorer(counts)
    assert counts in audit(*figures, positives=counts.positives, n=counts.n).candidates


@given(counts_of_a_cell, st.tuples(st.booleans(), st.booleans(), st.booleans()))
def test_the_true_counts_are_among_the_candidates_whichever_figures_are_given(counts, given_figures):
    assume(any(given_figures))
    figures = [
        figure if is_given else None
        for figure, is_given in zip(printed_by_released_scorer(counts), given_figures, strict=True)
    ]
    assert counts in audit(*figures, positives=counts.positives, n=counts.n).candidates


@given(counts_of_a_cell, st.integers(0, 2), st.integers(0, 2))
def test_the_true_counts_are_found_when_judgments_are_known_to_be_missing(counts, positives, negatives):
    figures = printed_by_released_scorer(counts)
    missing = positives + negatives
    result = audit(*figures, positives=counts.positives + positives, n=counts.n + missing, missing=missing)
    assert counts in result.possible


@given(counts_of_a_cell)
def test_every_candidate_lies_within_half_a_tenth_of_the_printed_figures(counts):
    precision, recall, f1 = (Fraction(figure) for figure in printed_by_released_scorer(counts))
    for tp, fp, fn, tn in audit(
        *map(str, map(float, (precision, recall, f1))), counts.positives, counts.n
    ).candidates:
        assert (tp + fn, fp + tn) == (counts.positives, counts.n - counts.positives)
        for share, whole, figure in ((tp, tp + fp, precision), (tp, tp + fn, recall)):
            exact = Fraction(100 * share, whole) if whole else 0
            assert abs(exact - figure) <= Fraction(1, 20)
        # Rounding P and R to four digits moves F1 by at most 0.01: its slopes add up to 2 at most
        if tp:
            assert abs(Fraction(200 * tp, 2 * tp + fp + fn) - f1) <= Fraction(6, 100)
