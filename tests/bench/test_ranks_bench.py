"""The simulation of ranks, small and seeded: the same figures in every run."""

import numpy as np
import pytest

from arb.core.settings import Settings
from bench import ranks


@pytest.fixture(scope="module")
def split():
    """Labels drawn over the real tasks: the real ones are not needed here."""
    found, are_real = ranks.load_split(Settings(labels="none"))
    assert not are_real
    assert (len(found.labels), found.n_tasks) == (1106, 300)
    return found


def test_drawn_judges_have_their_rates_and_are_alike_as_real_ones_are(split):
    generator = np.random.default_rng(1)
    verdicts = np.concatenate(
        [ranks.draw_verdicts(split, [(0.7, 0.12), (0.7, 0.12)], generator) for _ in range(20)], axis=1
    )
    labels = np.tile(split.labels, 20)
    for judge in verdicts:
        assert judge[labels == 1].mean() == pytest.approx(0.7, abs=0.02)
        assert judge[labels == 0].mean() == pytest.approx(0.12, abs=0.02)
    assert 0.15 < np.corrcoef(verdicts[:, labels == 1])[0, 1] < 0.4


@pytest.mark.slow
def test_equal_judges_are_rarely_separated_and_unequal_ones_are(split):
    # 5 % of 40 boards are 2; 7 or more would come up once in 300 runs
    assert ranks.null_share(split, 13, 40) <= 6 / 40
    # 15.2 points of precision, four to five standard errors
    assert ranks.power(split, 3, 20) >= 0.9
    assert ranks.power(split, 30, 10) >= 0.5


def test_a_board_too_large_for_the_step_down_separates_unequal_judges_rarely_equal_ones(split, monkeypatch):
    monkeypatch.setattr(ranks, "TESTED_TOGETHER", 12)
    monkeypatch.setattr("leaderboard.board.ranks.TESTED_TOGETHER", 12)
    monkeypatch.setattr("leaderboard.board.ranks.RESAMPLED_IN_FULL", 12)
    assert ranks.null_share(split, 16, 40) <= 6 / 40
    rates = [ranks.rates_of(ranks.PUBLISHED[name]) for name in ["aer-c"] * 8 + ["nnetnav"] * 8]
    verdicts = ranks.draw_verdicts(split, rates, np.random.default_rng(0))
    assert ranks.separates_any(ranks.task_counts(split, verdicts))


def test_intervals_cover_and_pairs_of_equal_judges_tie_about_as_often_as_they_say(split):
    # of 200, 95 % are 190 with a standard deviation of 3.1
    assert all(0.90 <= share <= 1.0 for share in ranks.coverage(split, 200).values())
    assert ranks.paired_type_1_error(split, 100) <= 0.12


@pytest.mark.slow
def test_the_command_prints_each_share(monkeypatch, capsys, split):
    monkeypatch.setattr(ranks, "load_split", lambda _: (split, False))
    monkeypatch.setattr(ranks, "coverage", lambda *_: {"precision": 0.95})
    monkeypatch.setattr(ranks, "paired_type_1_error", lambda *_: 0.05)
    assert ranks.main(["--quick", "--judges", "3"]) == 0
    printed = capsys.readouterr().out
    for part in (
        "1,106 test trajectories of 300 tasks",
        "3 equal judges",
        "AER-C above NNetNav",
        "95 % interval",
    ):
        assert part in printed
