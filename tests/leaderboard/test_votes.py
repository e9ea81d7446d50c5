from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.votes import score_votes, vote

A = np.array([1, 1, 0, -1, -1], dtype=np.int8)
B = np.array([1, 0, 0, 1, -1], dtype=np.int8)
C = np.array([1, 1, 0, -1, -1], dtype=np.int8)


@pytest.mark.parametrize(
    "needed, expected",
    # yes votes: 3, 2, 0, 1, none at all (no judge has a verdict on the last run)
    [(1, [1, 1, 0, 1, -1]), (2, [1, 1, 0, 0, -1]), (3, [1, 0, 0, 0, -1])],
)
def test_a_vote_says_yes_when_enough_judges_do(needed, expected):
    assert vote([A, B, C], needed).tolist() == expected


@pytest.mark.parametrize("needed", [0, 4, -1])
def test_a_vote_that_nobody_could_win_is_refused(needed):
    with pytest.raises(ValueError, match=f"needed: {needed} of 3 judges; give 1 to 3"):
        vote([A, B, C], needed)


@given(st.integers(1, 5), st.integers(0, 1000))
def test_the_more_yes_it_takes_the_fewer_runs_pass(n_judges, seed):
    judges = list(np.random.default_rng(seed).integers(-1, 2, (n_judges, 50)).astype(np.int8))
    passed = [(vote(judges, needed) == 1) for needed in range(1, n_judges + 1)]
    assert all((fewer <= more).all() for more, fewer in pairwise(passed))
    assert np.array_equal(passed[0], np.any([judge == 1 for judge in judges], axis=0))
    assert np.array_equal(passed[-1], np.all([judge == 1 for judge in judges], axis=0))


def labelled(n=40, seed=3):
    generator = np.random.default_rng(seed)
    truth = generator.integers(0, 2, n).astype(np.int8)
    trajectories = tuple(
        SimpleNamespace(benchmark=("webarena", "workarena")[i % 2], agent="a", task=f"t{i // 4}")
        for i in range(n)
    )
    judges = [np.where(generator.random(n) < 0.8, truth, 1 - truth).astype(np.int8) for _ in range(3)]
    return judges, SimpleNamespace(trajectories=trajectories, primary={"success": truth})


def test_every_vote_is_scored_as_a_judge_of_its_own_would_be():
    from leaderboard.judge_precision.scores import judge_scores
    from leaderboard.report import task_names

    judges, labels = labelled()
    votes = score_votes(judges, labels, "success", n_resamples=300)
    assert [(v.needed, v.is_majority, v.is_unanimous) for v in votes] == [
        (1, False, False),
        (2, True, False),
        (3, False, True),
    ]
    for found in votes:
        expected = judge_scores(
            vote(judges, found.needed),
            labels.primary["success"],
            benchmarks=[t.benchmark for t in labels.trajectories],
            clusters=task_names(labels),
            n_resamples=300,
        )
        assert found.cells["by_benchmark"] == expected.pop("by_benchmark")
        assert found.cells["overall"] == expected


@pytest.mark.parametrize("n_judges, majority", [(2, 2), (3, 2), (4, 3), (5, 3)])
def test_a_majority_is_more_than_half(n_judges, majority):
    judges, labels = labelled()
    votes = score_votes((judges * 2)[:n_judges], labels, "success", n_resamples=10)
    assert [v.needed for v in votes if v.is_majority] == [majority]
