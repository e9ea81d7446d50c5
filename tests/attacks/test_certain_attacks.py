"""Labels that follow for certain: many from exact figures, none from those that are shown."""

from dataclasses import replace

import numpy as np
import pytest

from tests.attacks.certain_attacks import (
    CERTAIN_ATTACKS,
    detecting_matrices,
    differencing,
    group_splitting,
    negative_blocks,
    public_cells,
    random_design,
    single_item,
)
from tests.attacks.findings import Notebook
from tests.attacks.gain_attacks import adaptive_halves
from tests.attacks.oracle import GeneratedOracle
from tests.attacks.plausibility import flips_that_do_not_fit, log_odds_against_flip
from tests.attacks.world import make_world

SEEDS = range(3)
AT_LEAST = {
    # One file for the base, 99 with one trajectory more each.
    single_item: 99,
    # 99 groups of 8 likely negatives, of which half and more have no success.
    differencing: 300,
    # 99 files halve groups of 16: about a label and a half for each.
    group_splitting: 100,
    # Of 24 blocks of 30 a few have none: by the prior, 0.97^30 = 0.4 of the likeliest blocks.
    negative_blocks: 30,
    # 6 x 2^5 + 5 x 2^4 labels from 63 + 31 files and one for the base.
    detecting_matrices: 272,
    # 90 unknowns, 99 equations.
    random_design: 90,
    # 25 cells of 7 likely negatives, and what the judges' own rows add.
    public_cells: 60,
}


@pytest.fixture(scope="module")
def worlds():
    return [make_world(seed) for seed in SEEDS]


@pytest.mark.parametrize("attack", CERTAIN_ATTACKS, ids=lambda attack: attack.__name__)
def test_exact_figures_give_labels_for_certain(worlds, attack):
    for world in worlds:
        found = attack(world, GeneratedOracle(world, is_exact=True))
        assert len(found.claims) >= AT_LEAST[attack]
        assert found.wrong(world) == 0


@pytest.mark.parametrize("attack", CERTAIN_ATTACKS, ids=lambda attack: attack.__name__)
def test_the_figures_that_are_shown_give_wrong_claims_or_none(worlds, attack):
    claims = wrong = 0
    for world in worlds:
        found = attack(world, GeneratedOracle(world))
        claims, wrong = claims + len(found.claims), wrong + found.wrong(world)
    assert claims == 0 or wrong > 0


@pytest.mark.parametrize("attack", [*CERTAIN_ATTACKS, adaptive_halves], ids=lambda attack: attack.__name__)
def test_every_label_could_be_the_other_one_and_the_leak_budget_bounds_the_odds(worlds, attack):
    for world in worlds:
        oracle = GeneratedOracle(world)
        attack(world, oracle)
        assert flips_that_do_not_fit(world, oracle.shown) == []
        against = log_odds_against_flip(world, oracle.shown)
        # The prior's odds times e^against: neither 0 nor beyond what the account of the budget allows.
        assert np.isfinite(against).all()
        assert np.abs(against).max() <= oracle.leak().epsilon
        odds = np.log(world.prior / (1 - world.prior)) + np.where(world.truth == 1, against, -against)
        posterior = 1 / (1 + np.exp(-odds))
        assert ((posterior > 0) & (posterior < 1)).all()


def test_a_flip_that_does_not_fit_is_found():
    # Noise of 0.01 counts reaches 0.08: the count of a file tells the label of each trajectory in it.
    world = make_world(0)
    oracle = GeneratedOracle(world, rules=replace(GeneratedOracle(world).rules, private_noise=0.01))
    rows = np.flatnonzero(world.votes[0])
    Notebook(world, oracle).ask(rows)
    assert flips_that_do_not_fit(world, oracle.shown) == rows.tolist()
