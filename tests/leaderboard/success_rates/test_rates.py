"""Success rates of agents: counting, ranking, contradicting, and the effect on rejection fine-tuning."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.core.suite import Trajectory
from leaderboard.labels.labels import LabelSet
from leaderboard.success_rates.rates import (
    estimate_by_draw,
    evaluate_agents,
    ranking,
    rate_of,
    rejection_finetuning,
    swapped_pairs,
)
from leaderboard.success_rates.runs import AgentRuns, draw_runs

RUNS = [("shop", "ann", "t1"), ("shop", "ann", "t2"), ("map", "ann", "t3"), ("shop", "bob", "t1")]
TRAJECTORIES = [
    Trajectory(f"{benchmark}/{agent}/{task}", benchmark, agent, task, "test")
    for benchmark, agent, task in RUNS
]


def rates_of(values, policy="strict"):
    return evaluate_agents("x", "labels", np.array(values, dtype=np.int8), TRAJECTORIES, policy)


def test_rates_are_by_benchmark_and_agent_and_overall_is_pooled_over_runs():
    found = rates_of([1, 0, 1, 1])
    # ann: 1 of 2 on shop, 1 of 1 on map, so 2 of 3 overall (not the mean of 1/2 and 1); bob: 1 of 1 on shop
    assert {cell: (rate.successes, rate.n) for cell, rate in found.rates.items()} == {
        ("shop", "ann"): (1, 2),
        ("map", "ann"): (1, 1),
        ("overall", "ann"): (2, 3),
        ("shop", "bob"): (1, 1),
        ("overall", "bob"): (1, 1),
    }
    assert found.rate("overall", "ann").value == pytest.approx(2 / 3)
    assert found.rate("map", "bob") is None


def test_no_verdict_is_no_success_under_strict_and_left_out_under_published():
    assert rates_of([1, -1, 0, 1]).rate("shop", "ann").n == 2  # 1 of 2
    assert rates_of([1, -1, 0, 1], "published").rate("shop", "ann").n == 1  # 1 of 1


def test_a_rate_has_wilsons_interval():
    # Wilson, 5 of 10, z = 1.96: centre 0.5, half width 1.96 sqrt(0.025 + 0.0096) / 1.384 = 0.2634
    low, high = rate_of(5, 10).interval
    assert (low, high) == pytest.approx((0.5 - 0.2634, 0.5 + 0.2634), abs=1e-4)
    assert rate_of(0, 0).value is None


def test_agents_are_ranked_best_first_and_only_real_contradictions_count_as_swaps():
    experts = rates_of([1, 1, 0, 0])  # shop: ann 1.0, bob 0.0
    judge = rates_of([0, 0, 0, 1])  # shop: ann 0.0, bob 1.0
    tie = rates_of([0, 0, 0, 0])
    assert ranking(experts, "shop") == ("ann", "bob")
    assert swapped_pairs(experts, judge, "shop") == [("ann", "bob")]
    assert swapped_pairs(experts, tie, "shop") == []
    assert swapped_pairs(experts, judge, "map") == []  # bob did not run there


def test_what_a_judge_means_for_training_follows_from_its_counts():
    # keeps 60 + 20 = 80 of 200: of 1,000 kept 250 are wrong; 15 successes lost, 187.5 a 1,000; 2,500 judged
    kept = rejection_finetuning(60, 20, 15, 105, [0.7, 0.8])
    assert (kept.wrong, kept.lost, kept.judged) == (250, 187.5, 2500)
    assert kept.wrong_interval == pytest.approx((200, 300))
    assert rejection_finetuning(0, 0, 5, 5) is None


@given(
    st.lists(st.integers(-1, 1), min_size=4, max_size=4), st.lists(st.integers(-1, 1), min_size=4, max_size=4)
)
def test_swaps_are_the_same_seen_from_either_side(first, second):
    one, other = rates_of(first), rates_of(second)
    there = set(map(frozenset, swapped_pairs(one, other, "overall")))
    back = set(map(frozenset, swapped_pairs(other, one, "overall")))
    assert there == back


def labels_over(success: np.ndarray) -> LabelSet:
    """Labels of as many runs of one agent, each on a task of its own; -1 is unsure."""
    runs = tuple(
        Trajectory(f"shop/ann/t{number}", "shop", "ann", f"t{number}", "test")
        for number in range(len(success))
    )
    nothing = np.full(len(success), -1, dtype=np.int8)
    return LabelSet(
        "small", "test", "csv", "v1", runs, {"success": success}, {"success": nothing}, nothing == 0
    )


def test_only_the_labels_of_the_draw_are_estimated_from():
    success = np.array([1, 0, 0, 0, -1] * 10, dtype=np.int8)
    verdicts = {"judge": (success == 1).astype(np.int8) | (np.arange(50) == 1)}
    (found,), rates, _ = estimate_by_draw(verdicts, labels_over(success), 20, seed=3)
    # 40 runs have a definite label, 10 of them succeeded; the judge calls one more successful
    assert (found.n, found.labelled) == (40, 20)
    assert rates == {"ann": 10 / 40} and found.judge_alone[0].rate == 11 / 40
    ids = tuple(f"shop/ann/t{number}" for number in np.flatnonzero(success >= 0))
    drawn = draw_runs(AgentRuns(ids, {}), 20, seed=3).drawn
    failed = [number for number in range(50) if success[number] == 0]
    success[next(number for number in failed if f"shop/ann/t{number}" not in drawn)] = 1
    (same,), changed, _ = estimate_by_draw(verdicts, labels_over(success), 20, seed=3)
    assert same == found and changed == {"ann": 11 / 40}
