import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.board.ranks import (
    Contender,
    Rank,
    is_separated,
    precision_samples,
    rank_contenders,
    separated_on_resamples,
)
from leaderboard.judge_precision.intervals import approximate_interval, percentile_intervals, resampled_counts


def unpaired(precision, half_width=0.05):
    return Contender(precision, [precision - half_width, precision + half_width], None)


def judge(counts):
    """A contender with verdicts, from [TP, FP] of each task."""
    counts = np.asarray(counts)
    tp, fp = counts.sum(axis=0)
    return Contender(
        tp / (tp + fp), approximate_interval(int(tp), int(tp + fp), 1.6), precision_samples([counts])[0]
    )


@pytest.fixture(scope="module")
def close_judges():
    """Two judges over 200 tasks: the second has a false positive more than the first on 24 of them."""
    generator = np.random.default_rng(4)
    first = np.stack([generator.integers(0, 4, 200), generator.integers(0, 3, 200)], axis=1)
    second = first.copy()
    second[::8][:24, 1] += 1
    return first, second


def test_samples_are_precisions_over_ten_thousand_resamples_of_tasks(close_judges):
    samples = precision_samples([close_judges[0]])[0]
    tp, fp = close_judges[0].sum(axis=0)
    assert samples.shape == (10_000,)
    assert samples.mean() == pytest.approx(tp / (tp + fp), abs=0.005)
    assert np.isnan(precision_samples([[[0, 0], [0, 0]]])[0]).all()


def test_judges_drawn_together_have_the_samples_they_have_alone(close_judges):
    first, second = close_judges
    fewer_tasks = first[:50]
    together = precision_samples([first, fewer_tasks, second])
    for counts, samples in zip((first, fewer_tasks, second), together, strict=True):
        assert np.array_equal(samples, precision_samples([counts])[0])
    assert precision_samples([]) == []


def test_two_judges_with_verdicts_are_compared_paired(close_judges):
    better, worse = map(judge, close_judges)
    # their intervals overlap widely, but on the same tasks the second is never better
    assert better.precision_ci[0] < worse.precision < better.precision < worse.precision_ci[1]
    assert is_separated(better, worse)
    assert not is_separated(worse, better)
    assert not is_separated(better, Contender(worse.precision, worse.precision_ci, None))


def test_paired_separation_agrees_with_the_interval_of_the_difference(close_judges):
    first = close_judges[0]
    generator = np.random.default_rng(8)
    outcomes = set()
    for more in (0, 5, 10, 20, 30, 40):
        second = first.copy()
        second[generator.permutation(200)[:more], 1] += 1
        second[generator.permutation(200)[:5], 0] += 1
        tp, fp, other_tp, other_fp = resampled_counts(np.concatenate([first, second], axis=1), 10_000, 0).T
        apart = tp / (tp + fp) - other_tp / (other_tp + other_fp)
        low = percentile_intervals(apart[:, None])[0][0]
        if abs(low) > 1e-3:  # not on the edge itself
            assert is_separated(judge(first), judge(second)) == (low > 0)
            outcomes.add(low > 0)
    assert outcomes == {True, False}


def test_a_judge_is_not_separated_from_itself(close_judges):
    contender = judge(close_judges[0])
    assert not is_separated(contender, contender)


def test_without_verdicts_the_errors_of_both_add_in_squares():
    # half widths .05 and .05: the margin is sqrt(2) * .05 = .0707
    assert is_separated(unpaired(0.80), unpaired(0.72))
    assert not is_separated(unpaired(0.80), unpaired(0.74))
    # only the ends that face each other count, .80 - .75 and .76 - .70: hypot(.05, .06) = .078 < .10
    assert is_separated(unpaired(0.80), Contender(0.70, [0.30, 0.76], None))
    assert not is_separated(unpaired(0.80), Contender(0.70, [0.69, 0.79], None))  # hypot(.05, .09) = .103


def test_a_contender_without_an_interval_is_separated_from_nobody(close_judges):
    alone = Contender(0.99, None, None)
    assert not is_separated(alone, unpaired(0.10))
    assert not is_separated(unpaired(0.99), Contender(0.10, None, None))
    # all its verdicts on one task: samples, but no interval
    counts = np.zeros((200, 2), dtype=int)
    counts[0] = [4, 0]
    on_one_task = Contender(1.0, None, precision_samples([counts])[0])
    assert not is_separated(on_one_task, judge(close_judges[1]))


def test_three_lucky_answers_are_not_separated_from_a_good_judge(close_judges):
    # right on three tasks, silent on the rest: precision 1 on every resample, Wilson's interval [.44, 1]
    counts = np.zeros((200, 2), dtype=int)
    counts[:3, 0] = 1
    lucky = Contender(1.0, approximate_interval(3, 3, 1.0), precision_samples([counts])[0])
    good = judge(close_judges[0])
    assert 0.5 < good.precision < 0.7
    assert not is_separated(lucky, good)
    # right on a hundred tasks is another matter
    counts[:100, 0] = 1
    assert is_separated(
        Contender(1.0, approximate_interval(100, 100, 1.0), precision_samples([counts])[0]), good
    )


def test_contenders_never_defined_on_the_same_resample_are_not_separated():
    samples = np.array([0.9, np.nan]), np.array([np.nan, 0.1])
    better, worse = (Contender(p, [p, p], s) for p, s in zip((0.9, 0.1), samples, strict=True))
    assert not is_separated(better, worse)


def test_a_rank_is_a_place_and_the_places_that_the_intervals_leave_open():
    ranks = rank_contenders([unpaired(p) for p in (0.90, 0.88, 0.80, 0.60)])
    # margin .0707: 90 and 88 tie; 90 is above 80, 88 is above 80 (.08); 60 is below all
    assert ranks == [Rank(1, 1, 2), Rank(2, 1, 2), Rank(3, 3, 3), Rank(4, 4, 4)]


def test_ties_need_not_be_groups_a_row_can_tie_with_both_its_neighbours():
    ranks = rank_contenders([unpaired(p) for p in (0.80, 0.75, 0.70)])
    # 80 and 75 tie, 75 and 70 tie, 80 and 70 do not (.10 > .0707)
    assert ranks == [Rank(1, 1, 2), Rank(2, 1, 3), Rank(3, 2, 3)]


def test_rows_that_are_not_separated_share_one_range():
    assert {(r.low, r.high) for r in rank_contenders([unpaired(0.8 - i / 1000) for i in range(5)])} == {
        (1, 5)
    }
    assert rank_contenders([]) == []


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 0.3)), max_size=12))
def test_a_place_lies_within_its_range(rows):
    ordered = sorted(rows, reverse=True)
    ranks = rank_contenders([unpaired(precision, half_width) for precision, half_width in ordered])
    for place, rank in enumerate(ranks, start=1):
        assert 1 <= rank.low <= rank.place == place <= rank.high <= len(ranks)


def test_ranks_of_many_are_those_of_comparing_every_pair():
    generator = np.random.default_rng(3)
    tasks = np.stack([generator.integers(0, 4, 120), generator.integers(0, 3, 120)], axis=1)
    found = []
    for _ in range(8):
        counts = tasks.copy()
        counts[generator.permutation(120)[:40], 1] += generator.integers(0, 2, 40)
        found.append(judge(counts))
    few = np.zeros((120, 2), dtype=int)
    few[:3] = [[1, 0], [1, 1], [0, 1]]  # undefined on the resamples without these tasks
    contenders = [
        *found,
        judge(few),
        unpaired(0.6),
        Contender(0.9, None, None),
        Contender(1.0, [0.8, 1], None),
    ]
    contenders.sort(key=lambda contender: -contender.precision)
    pairs = [
        [is_separated(a, b) and i < j for j, b in enumerate(contenders)] for i, a in enumerate(contenders)
    ]
    assert sum(map(sum, pairs)) > 5
    for place, rank in enumerate(rank_contenders(contenders)):
        n_above, n_below = sum(row[place] for row in pairs), sum(pairs[place])
        assert (rank.low, rank.high) == (n_above + 1, len(contenders) - n_below)


def test_a_pair_counts_the_resamples_on_which_both_are_defined():
    # Of 40 resamples 39 are defined for the pair; the better one is behind on 1: 1 / 39 = 2.56 % > 2.5 %.
    better, worse = np.full(40, 0.9), np.full(40, 0.5)
    better[0], better[1] = np.nan, 0.4
    assert not separated_on_resamples(np.stack([better, worse]))[0, 1]
    better[0] = 0.9  # 1 / 40 = 2.5 %
    assert separated_on_resamples(np.stack([better, worse]))[0, 1]
    assert not separated_on_resamples(np.stack([better, worse]))[
        1, 0
    ]  # of a pair, the first one is asked about
