from itertools import combinations
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arb.core.suites.targets import default_targets
from leaderboard.board.ranks import (
    DESIGN_EFFECTS,
    RANKED_METRICS,
    RESAMPLES_OF_LARGE_BOARDS,
    TESTED_TOGETHER,
    Contender,
    Rank,
    RankingData,
    compared_share,
    compared_value,
    count_interval,
    count_separated,
    critical_value,
    metric_samples,
    rank_cells,
    rank_contenders,
    separated_pairs,
)
from leaderboard.judge_precision.confusion import figures
from leaderboard.judge_precision.intervals import approximate_interval


def unpaired(value, half_width=0.05):
    return Contender(value, [value - half_width, value + half_width])


def judge(counts):
    """A contender with verdicts, from [TP, FP] of each task."""
    counts = np.asarray(counts)
    tp, fp = counts.sum(axis=0)
    return contender(int(tp), int(fp), 1.6, metric_samples([counts])[0])


def contender(tp, fp, effect, samples=None):
    """A contender by precision, from its counts."""
    interval = [compared_share("precision", end) for end in approximate_interval(tp, tp + fp, effect)]
    return Contender(float(compared_value("precision", tp, fp, 0, 0)), interval, samples, tp / (tp + fp))


def is_separated(better, worse):
    """On a board of these two alone."""
    return bool(separated_pairs([better, worse])[0, 1])


@pytest.fixture(scope="module")
def close_judges():
    """Two judges over 200 tasks: the second has a false positive more than the first on 24 of them."""
    generator = np.random.default_rng(4)
    first = np.stack([generator.integers(0, 4, 200), generator.integers(0, 3, 200)], axis=1)
    second = first.copy()
    second[::8][:24, 1] += 1
    return first, second


# -- resamples


def test_judges_drawn_together_have_the_samples_they_have_alone(close_judges):
    first, second = close_judges
    for counts, samples in zip((first, second), metric_samples([first, second]), strict=True):
        assert np.array_equal(samples, metric_samples([counts])[0])
    assert metric_samples([]) == []


# -- two rows: a family of one pair


def test_a_judge_is_not_separated_from_itself(close_judges):
    contender = judge(close_judges[0])
    assert not is_separated(contender, contender)


def test_without_verdicts_the_errors_of_both_add_in_squares():
    # half widths .05 and .05: the margin is sqrt(2) * .05 = .0707
    assert is_separated(unpaired(0.80), unpaired(0.72))
    assert not is_separated(unpaired(0.80), unpaired(0.74))
    # only the ends that face each other count, .80 - .75 and .76 - .70: hypot(.05, .06) = .078 < .10
    assert is_separated(unpaired(0.80), Contender(0.70, [0.60, 0.76]))
    assert not is_separated(unpaired(0.80), Contender(0.70, [0.69, 0.79]))  # hypot(.05, .09) = .103


def test_a_contender_without_an_interval_is_separated_from_nobody(close_judges):
    alone = Contender(0.99, None)
    assert not is_separated(alone, unpaired(0.10))
    assert not is_separated(unpaired(0.99), Contender(0.10, None))
    # all its verdicts on one task: resamples that never vary, and no interval
    counts = np.zeros((200, 2), dtype=int)
    counts[0] = [4, 0]
    on_one_task = Contender(1.0, None, metric_samples([counts])[0])
    assert not is_separated(on_one_task, judge(close_judges[1]))


def test_three_lucky_answers_are_not_separated_from_a_good_judge(close_judges):
    # right on three tasks, silent on the rest: precision 1 on every resample, Wilson's interval [.44, 1]
    counts = np.zeros((200, 2), dtype=int)
    counts[:3, 0] = 1
    lucky = contender(3, 0, 1.0, metric_samples([counts])[0])
    good = judge(close_judges[0])
    assert 0.5 < good.metric < 0.7
    assert not is_separated(lucky, good)
    # right on a hundred tasks is another matter
    counts[:100, 0] = 1
    assert is_separated(contender(100, 0, 1.0, metric_samples([counts])[0]), good)


def test_contenders_never_defined_on_the_same_resample_are_not_separated():
    samples = np.array([0.9, 0.8, np.nan, np.nan]), np.array([np.nan, np.nan, 0.1, 0.2])
    better, worse = (Contender(v, [v, v], s) for v, s in zip((0.9, 0.1), samples, strict=True))
    assert not is_separated(better, worse)


# -- the whole board


def test_a_rank_is_a_place_and_the_places_that_the_intervals_leave_open():
    found = rank_contenders([unpaired(p) for p in (0.90, 0.88, 0.75, 0.50)], "abcd")
    # .13 apart by .05 * sqrt(2) is 1.96 * .13 / .0707 = 3.6 standard errors; four rows need about 2.6
    assert found == [
        Rank(1, 1, 2, 2, ("c", "d")),
        Rank(2, 1, 2, 2, ("c", "d")),
        Rank(3, 3, 3, 3, ("a", "b", "d")),
        Rank(4, 4, 4, 3, ("a", "b", "c")),
    ]


def test_rows_can_be_separated_although_their_ranges_overlap():
    found = rank_contenders([unpaired(p) for p in (0.80, 0.75, 0.70)])
    # 80 and 75 are 1.4 standard errors apart, and 75 and 70; 80 and 70 are 2.8, where three rows need 2.34
    assert found == [Rank(1, 1, 2, 1), Rank(2, 1, 3, 0), Rank(3, 2, 3, 1)]


def test_rows_that_are_not_separated_share_one_range():
    found = rank_contenders([unpaired(0.8 - i / 1000) for i in range(5)])
    assert {(rank.low, rank.high) for rank in found} == {(1, 5)}
    assert rank_contenders([]) == []
    assert rank_contenders([unpaired(0.5)]) == [Rank(1, 1, 1)]


def test_a_pair_that_is_separated_alone_need_not_be_on_a_board_of_many():
    # .075 apart: 2.08 standard errors, over 1.96 for one pair; of 30 rows about 3.8 are needed
    pair = [unpaired(0.800), unpaired(0.725)]
    assert is_separated(*pair)
    others = [unpaired(0.76) for _ in range(28)]
    assert not separated_pairs([*pair, *others]).any()


@pytest.mark.parametrize(("n", "expected"), [(2, 2.77), (3, 3.31), (10, 4.47)])
def test_the_critical_value_of_equal_independent_rows_is_that_of_the_studentized_range(n, expected):
    # Tukey's q(.95; n, infinite degrees of freedom) / sqrt(2): 1.96, 2.34, 3.16 standard errors
    needed = expected / 2**0.5 * 0.05 * 2**0.5 / NormalDist().inv_cdf(0.975)
    rows = [unpaired(0.5) for _ in range(n - 1)]
    assert separated_pairs([unpaired(0.5 + 1.03 * needed), *rows])[0, 1:].all()
    assert not separated_pairs([unpaired(0.5 + 0.97 * needed), *rows]).any()


def test_what_is_separated_first_lets_more_be_separated():
    # Single-step, four rows need 2.57 standard errors (q .95 of 4 is 3.63); without the fourth, far below,
    # its three pairs are gone and three rows are left, which need 2.34. The first two are 2.45 apart.
    apart = 2.45 / 1.96 * 0.05 * 2**0.5
    close = [unpaired(0.9), unpaired(0.9 - apart), unpaired(0.9 - apart / 2)]
    assert separated_pairs([*close, unpaired(0.1)])[0, 1]
    assert not separated_pairs([*close, unpaired(0.9 - apart / 2)])[0, 1]


def reference_step_down(contenders):
    """The same test over rows with verdicts, as the paper writes it: pair by pair, anew in each step."""
    values = np.array([contender.value for contender in contenders])
    left, found = list(combinations(range(len(values)), 2)), set()
    statistic, errors = {}, {}
    for one, other in left:
        apart = (contenders[one].samples - contenders[other].samples) - (values[one] - values[other])
        error = np.sqrt(np.mean(apart**2))
        statistic[one, other] = abs(values[one] - values[other]) / error
        errors[one, other] = np.abs(apart) / error
    steps = []
    while left:
        maxima = np.sort(np.max([errors[pair] for pair in left], axis=0))
        critical = maxima[int(np.ceil(0.95 * (len(maxima) + 1))) - 1]
        beyond = {pair for pair in left if statistic[pair] > critical}
        if not beyond:
            break
        found |= beyond
        steps.append(len(beyond))
        left = [pair for pair in left if pair not in found]
    return {(one, other) if values[one] > values[other] else (other, one) for one, other in found}, steps


def similar_judges(n, n_tasks, seed):
    """Judges over the same tasks that share most verdicts, from equal to clearly apart."""
    generator = np.random.default_rng(seed)
    base = np.stack([generator.integers(0, 4, n_tasks), generator.integers(0, 3, n_tasks)], axis=1)
    found = []
    for place in range(n):
        counts = base.copy()
        counts[generator.permutation(n_tasks)[: n_tasks // 3], 1] += generator.integers(
            0, 2 + place // 2, n_tasks // 3
        )
        found.append(judge(counts))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_the_quick_step_down_is_the_one_of_the_paper(seed):
    contenders = similar_judges(12, 120, seed)
    separated = separated_pairs(contenders)
    expected, steps = reference_step_down(contenders)
    assert set(zip(*map(list, np.nonzero(separated)), strict=True)) == expected
    assert len(steps) >= 1
    # what one step alone separates is among it
    assert len(expected) >= steps[0]


rows = st.lists(st.tuples(st.floats(0.05, 0.95), st.floats(0.001, 0.3)), max_size=10)


@settings(max_examples=40, deadline=None)
@given(rows)
def test_a_place_lies_within_its_range_and_ranges_follow_the_pairs(drawn):
    ordered = [unpaired(*row) for row in sorted(drawn, reverse=True)]
    separated, found = separated_pairs(ordered), rank_contenders(ordered)
    for place, rank in enumerate(found, start=1):
        assert 1 <= rank.low <= rank.place == place <= rank.high <= len(found)
        assert rank.low - 1 == separated[:, place - 1].sum()
        assert len(found) - rank.high == separated[place - 1].sum()
    assert not (separated & separated.T).any()
    values = np.array([contender.value for contender in ordered])
    assert (values[:, None] > values)[separated].all()


@settings(max_examples=40, deadline=None)
@given(rows, st.randoms(use_true_random=False))
def test_the_order_in_which_rows_come_makes_no_difference(drawn, random):
    contenders = [unpaired(*row) for row in drawn]
    contenders += similar_judges(3, 40, seed=1)
    order = list(range(len(contenders)))
    random.shuffle(order)
    expected = separated_pairs(contenders)[np.ix_(order, order)]
    assert np.array_equal(separated_pairs([contenders[place] for place in order]), expected)


@settings(max_examples=40, deadline=None)
@given(rows)
def test_a_board_separates_no_pair_that_is_not_separated_alone(drawn):
    contenders = [unpaired(*row) for row in drawn]
    for better, worse in zip(*np.nonzero(separated_pairs(contenders)), strict=True):
        assert is_separated(contenders[better], contenders[worse])


def test_rows_of_every_kind_are_in_one_family(close_judges):
    better, worse = map(judge, close_judges)
    few = np.zeros((200, 2), dtype=int)
    few[:3] = [[1, 0], [1, 1], [0, 1]]  # undefined on the resamples without these tasks
    contenders = [
        better,
        judge(few),
        worse,
        Contender(0.9, None),
        Contender(3, [2, 4]),
        unpaired(-1, 0.02),
    ]
    separated = separated_pairs(contenders)
    assert separated[0, 2]  # still: 24 tasks with a false alarm more are far beyond chance
    assert separated[[0, 2, 4], 5].all()
    assert separated[4, [0, 2]].all()
    assert not separated[1].any()
    assert not separated[3].any()
    assert not separated[:, 3].any()


# -- more rows than the step-down tests together


@pytest.mark.parametrize("n", [2, 3, 16, 128])
def test_the_critical_value_is_that_of_the_studentized_range(n):
    stats = pytest.importorskip("scipy.stats")
    # The grid has steps of 0.01 in the range: 0.007 after the division by sqrt 2, rounded up.
    exact = stats.studentized_range.ppf(0.95, n, np.inf) / np.sqrt(2)
    assert 0 <= critical_value(n) - exact < 0.0075


def test_a_large_board_separates_a_pair_by_its_difference_over_its_standard_error():
    """Two judges over common tasks among many others: at the critical value of the next power of two."""
    generator = np.random.default_rng(2)
    rates = generator.uniform([0.2, 0.05], [0.95, 0.6], (150, 2))
    counts = [generator.binomial([3, 2], rate, (60, 2)) for rate in rates]
    totals = [judge.sum(axis=0) for judge in counts]
    cells = {f"{n}": {"precision": tp / (tp + fp)} for n, (tp, fp) in enumerate(totals)}
    cells = dict(sorted(cells.items(), key=lambda each: -each[1]["precision"]))
    data = RankingData({name: {"success": counts[int(name)]} for name in cells})
    found = rank_cells(cells, default_targets()[0], "precision", data)
    samples = metric_samples([counts[int(name)] for name in cells], n_resamples=RESAMPLES_OF_LARGE_BOARDS)
    totals = [counts[int(name)].sum(axis=0) for name in cells]
    values = np.array([np.log((tp + 0.5) / (fp + 0.5)) for tp, fp in totals])
    errors = np.array(samples) - values[:, None]
    assert len(values) > TESTED_TOGETHER
    for place, name in enumerate(cells):
        spread = np.sqrt(np.mean((errors[place] - errors) ** 2, axis=1))
        n_above = np.sum(values - values[place] > critical_value(256) * spread)
        n_below = np.sum(values[place] - values > critical_value(256) * spread)
        assert found[name] == Rank(place + 1, n_above + 1, len(values) - n_below, n_above + n_below, None)
    assert any(rank.low > 1 for rank in found.values())


def test_rows_without_verdicts_are_compared_by_the_ends_of_their_intervals_on_a_large_board():
    # Four rows: c = 2.57. Half widths of 0.05 each: the margin at 95 % is 0.05 sqrt 2 = 0.0707, so that two
    # are separated beyond 2.57 / 1.96 * 0.0707 = 0.0927.
    assert critical_value(4) == pytest.approx(2.57, abs=0.01)
    above, below = count_separated([unpaired(value) for value in (0.9, 0.82, 0.8, 0.5)])
    assert (above.tolist(), below.tolist()) == ([0, 0, 1, 3], [2, 1, 1, 0])


# -- intervals from counts


def test_the_interval_of_a_share_is_wilsons_with_the_design_effect_of_its_metric():
    tp, fp, fn, tn = 40, 10, 20, 30
    assert count_interval("accuracy", tp, fp, fn, tn) == approximate_interval(
        70, 100, DESIGN_EFFECTS["accuracy"]
    )
    assert count_interval("npv", tp, fp, fn, tn) == approximate_interval(30, 50, DESIGN_EFFECTS["npv"])
    low, high = count_interval("tnr", tp, fp, fn, tn)
    assert count_interval("fpr", tp, fp, fn, tn) == pytest.approx([1 - high, 1 - low])
    low, high = approximate_interval(40, 70, DESIGN_EFFECTS["f1"])
    assert count_interval("f1", tp, fp, fn, tn) == [2 * low / (1 + low), 2 * high / (1 + high)]


def test_undefined_metrics_have_no_interval_from_counts():
    assert count_interval("precision", 0, 0, 5, 5) is None
    assert count_interval("balanced_accuracy", 0, 5, 0, 5) is None
    assert count_interval("kappa", 0, 0, 0, 0) is None
    assert count_interval("kappa", 0, 0, 0, 9) is None
    assert count_interval("kappa", 5, 0, 0, 5) is None  # never wrong: its error would be 0


@pytest.mark.parametrize("metric", RANKED_METRICS)
def test_the_interval_from_counts_is_near_that_of_drawing_so_many_rows(metric):
    counts = np.array([212, 101, 83, 710])
    n = counts.sum() / DESIGN_EFFECTS[metric]
    drawn = np.random.default_rng(3).multinomial(round(n), counts / counts.sum(), size=4_000)
    values = np.array([figures(*map(int, row))[metric] for row in drawn])
    assert count_interval(metric, *map(int, counts)) == pytest.approx(
        np.quantile(values, [0.025, 0.975]), abs=0.01
    )
