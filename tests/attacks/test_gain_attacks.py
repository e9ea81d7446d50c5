"""What five colluding accounts add to their precision in a year: much from exact figures, little as shown."""

import numpy as np
import pytest

from tests.attacks.certain_attacks import CERTAIN_ATTACKS, negative_blocks
from tests.attacks.findings import Notebook, disguise, likely_negatives, undecided
from tests.attacks.gain_attacks import (
    GAIN_ATTACKS,
    adaptive_halves,
    boosting,
    hill_climbing,
    majority_vote,
    random_halves,
)
from tests.attacks.observations import belief_after
from tests.attacks.oracle import GeneratedOracle
from tests.attacks.versions import gain_over_versions, gains_by_half
from tests.attacks.world import gain_of, make_world

MOST = 3.0
"""Points of precision that a year of five accounts may gain, on average over seeds."""

SEEDS = range(8)
EXACT_AT_LEAST = {
    # Points of precision; measured on 10 seeds: 9.3, 18.0, 3.8, 4.7, 2.8.
    random_halves: 7.0,
    adaptive_halves: 14.0,
    majority_vote: 2.5,
    boosting: 3.5,
    hill_climbing: 1.5,
}


@pytest.fixture(scope="module")
def worlds():
    return [make_world(seed) for seed in SEEDS]


def _gains(worlds, attack, is_exact: bool) -> list[float]:
    gains = []
    for seed, world in enumerate(worlds):
        oracle = GeneratedOracle(world, is_exact=is_exact, key=b"key of seed %d" % seed)
        gains.append(gain_of(world, attack(world, oracle, seed=seed)))
    return gains


@pytest.mark.slow
@pytest.mark.parametrize("attack", GAIN_ATTACKS, ids=lambda attack: attack.__name__)
def test_exact_figures_make_a_much_better_file(worlds, attack):
    assert np.mean(_gains(worlds, attack, is_exact=True)) >= EXACT_AT_LEAST[attack]


@pytest.mark.slow
@pytest.mark.parametrize("attack", GAIN_ATTACKS, ids=lambda attack: attack.__name__)
def test_the_figures_that_are_shown_gain_at_most_three_points(worlds, attack):
    assert np.mean(_gains(worlds, attack, is_exact=False)) <= MOST


@pytest.mark.slow
@pytest.mark.parametrize("attack", [random_halves, adaptive_halves], ids=lambda attack: attack.__name__)
def test_so_on_forty_seeds(attack):
    worlds = [make_world(seed) for seed in range(100, 140)]
    assert np.mean(_gains(worlds, attack, is_exact=False)) <= MOST


@pytest.mark.parametrize("attack", CERTAIN_ATTACKS, ids=lambda attack: attack.__name__)
def test_files_made_for_certainty_gain_at_most_three_points_either(worlds, attack):
    """Their counts are read as what they are, with noise: as much as can be had of them."""
    gains = []
    for seed, world in enumerate(worlds[:4]):
        found = attack(world, GeneratedOracle(world, key=b"key of seed %d" % seed))
        gains.append(gain_of(world, belief_after(world, found.observations).mean))
    assert np.mean(gains) <= MOST


def test_a_year_of_near_copies_tells_one_label_and_not_for_certain(worlds):
    """Small changes draw new noise: 50 files around a trajectory and 50 without it, subtracted.

    The difference of the means has a standard deviation of 6 x sqrt(2 / 50) = 1.2, for a label of 0 or 1: the
    nearer one is right in 66 % of cases. One label, for all files of five accounts.
    """
    right, differences = 0, []
    for world in worlds:
        oracle = GeneratedOracle(world, key=b"near copies")
        notebook = Notebook(world, oracle)
        target = undecided(world, 1)
        base, fillers = disguise(world, target), likely_negatives(world, 50)
        without = [notebook.ask(np.append(base, filler)) for filler in fillers]
        around = [notebook.ask(np.concatenate([base, target, [filler]])) for filler in fillers]
        difference = np.mean(around) - np.mean(without)
        differences.append(difference - world.truth[target[0]])
        right += (difference > 0.5) == world.truth[target[0]]
    assert 0.4 < np.std(differences) < 2.0
    assert right < len(worlds)


def test_blocks_of_likely_negatives_are_no_longer_settled_by_a_precision_of_zero(worlds):
    """A shown precision of 0 leaves a block with one success nearly as likely as one with none.

    1 + noise rounds to 0 where the noise is below -0.5, which of a standard deviation of 6 it is in 47 % of
    cases; with none it rounds to 0 below 0.5, in 53 %.
    """
    found = [negative_blocks(world, GeneratedOracle(world)) for world in worlds]
    wrong = sum(one.wrong(world) for one, world in zip(found, worlds, strict=True))
    assert wrong > 0.01 * sum(len(one.claims) for one in found)


@pytest.mark.slow
@pytest.mark.parametrize("refreshes", [0.0, 0.5])
def test_five_accounts_gain_at_most_three_points_in_a_year_of_twelve_versions(refreshes):
    gains = [gain_over_versions(seed, 12, refreshes=refreshes) for seed in range(16)]
    assert np.mean(gains) <= MOST


@pytest.mark.slow
def test_they_gained_more_when_every_rescoring_was_shown():
    gains = [gain_over_versions(seed, 12, has_budget=False) for seed in range(16)]
    assert np.mean(gains) > MOST + 1


@pytest.mark.slow
def test_the_figures_shown_gain_nothing_on_the_half_that_ranks_and_its_order_next_to_nothing():
    # The belief of that half moves by rounding errors alone.
    assert abs(np.mean([gains_by_half(seed)[1] for seed in range(16)])) < 0.05
    by_order = [gains_by_half(seed, ranking="order")[1] for seed in range(16)]
    assert np.mean(by_order) <= 2 * np.std(by_order, ddof=1) / np.sqrt(len(by_order))


@pytest.mark.slow
def test_the_order_of_the_rows_of_twenty_accounts_gains_at_most_three_points_on_the_half_that_ranks():
    # Measured on 16 seeds: 1.8. Four times as many accounts as the bound is for.
    assert np.mean([gains_by_half(seed, accounts=20, ranking="order")[1] for seed in range(8)]) <= MOST
