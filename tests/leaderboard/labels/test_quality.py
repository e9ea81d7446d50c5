import csv
import math

import numpy as np
import pytest

from arb.core.settings import Settings
from arb.core.suite import load_suite
from leaderboard.board.board import make_board
from leaderboard.board.export import board_to_csv
from leaderboard.labels.labels import load_labels
from leaderboard.labels.quality import (
    DisagreementCount,
    DisagreementRates,
    ceiling_row,
    disagreement_rates,
    noise_band,
    precision_under_noise,
    second_annotator_scores,
)
from leaderboard.paper.published import load_published_rows

MANY = 10_000_000
"""Doubles beyond doubt: the rate is as good as known."""


def band_of(tp, fp, rates, **how):
    """Cells that flip at known rates, the same for a yes and a no."""
    known = [DisagreementCount(round(rate * MANY), MANY) for rate in rates]
    return precision_under_noise(np.array(tp), np.array(fp), known, known, **how)


def test_the_mean_and_the_width_are_those_of_the_arithmetic():
    found = band_of([140], [60], [0.1])
    # 140 * 0.9 + 60 * 0.1 = 132 of 200; each verdict flips by itself: sd sqrt(200 * 0.1 * 0.9) / 200 = 0.0212
    assert found.precision == 0.7
    assert found.mean == pytest.approx(0.66, abs=0.001)
    half = 1.96 * math.sqrt(200 * 0.1 * 0.9) / 200
    assert found.low == pytest.approx(0.66 - half, abs=0.006)
    assert found.high == pytest.approx(0.66 + half, abs=0.006)


def test_a_yes_and_a_no_flip_at_their_own_rates():
    yes, no = DisagreementCount(MANY // 5, MANY), DisagreementCount(MANY // 20, MANY)
    found = precision_under_noise(np.array([100]), np.array([100]), [yes], [no])
    # 100 * 0.8 + 100 * 0.05 = 85 of 200
    assert found.mean == pytest.approx(0.425, abs=0.002)


def test_few_doubles_leave_the_rate_open():
    found = precision_under_noise(
        np.array([165]), np.array([32]), [DisagreementCount(6, 39)], [DisagreementCount(6, 66)]
    )
    # 165 * (1 - 6.5 / 40) + 32 * 6.5 / 67 = 141.3 of 197: the means of Beta(6.5, 33.5) and Beta(6.5, 60.5)
    assert found.mean == pytest.approx(141.3 / 197, abs=0.003)
    # sd of the rate .0576 * 165 / 197 = .048, of the flips sqrt(165 * .1625 * .8375) / 197 = .024
    half = 1.96 * math.hypot(0.048, 0.024)
    assert found.high - found.low == pytest.approx(2 * half, abs=0.015)


def test_a_judge_that_never_says_yes_has_no_band():
    assert band_of([0, 0], [0, 0], [0.1, 0.1]) is None


def test_labels_without_doubles_have_no_band_unless_none_of_them_counts():
    some, none = DisagreementCount(1, 10), DisagreementCount(0, 0)
    assert precision_under_noise(np.array([5]), np.array([5]), [some], [none]) is None
    assert precision_under_noise(np.array([5]), np.array([0]), [some], [none]) is not None


RATES = DisagreementRates(
    {
        (None, 1): DisagreementCount(MANY // 10, MANY),
        (None, 0): DisagreementCount(MANY // 20, MANY),
        ("webarena", 1): DisagreementCount(MANY // 5, MANY),
        ("workarena", 1): DisagreementCount(0, 29),
    },
)


def test_a_benchmark_has_its_own_rate_only_with_30_doubles_of_that_answer():
    # one of five; 29 doubles are too few, and elsewhere there are none: one of ten
    found = [RATES.of(name, 1).rate for name in ("webarena", "workarena", "assistantbench", None)]
    assert found == [0.2, 0.1, 0.1, 0.1]
    assert RATES.of("webarena", 0).rate == 0.05


def test_a_row_is_simulated_by_benchmark_where_its_cells_hold_all_counts():
    cells = {"webarena": {"tp": 50, "fp": 0}, "workarena": {"tp": 50, "fp": 0}}
    row = {"overall": {"tp": 100, "fp": 0}, "by_benchmark": cells}
    # 50 * 0.8 + 50 * 0.9 = 85 of 100
    assert noise_band(row, RATES).mean == pytest.approx(0.85, abs=0.003)
    # One benchmark's counts are not known: all 100 at the rate of all
    cells["workarena"] = {"tp": None, "fp": None}
    assert noise_band(row, RATES).mean == pytest.approx(0.9, abs=0.003)


def test_without_counts_or_doubles_there_is_no_band():
    row = {"overall": {"tp": 1, "fp": 1}, "by_benchmark": {}}
    assert noise_band(row, DisagreementRates({})) is None
    assert noise_band({"overall": {"tp": None, "fp": None}, "by_benchmark": {}}, RATES) is None
    assert noise_band(None, RATES) is None


@pytest.mark.labels
def test_the_official_annotators_differ_on_12_of_105(official_settings):
    sets = [load_labels(load_suite(), split, official_settings) for split in ("dev", "test")]
    rates = disagreement_rates(sets, "success")
    # 6 FP and 6 FN of the second annotator; one double of 106 has an Unsure; 3 doubles are WorkArena++'s
    assert rates.overall == DisagreementCount(12, 105)
    assert dict(rates.by_benchmark) == {
        "webarena": DisagreementCount(12, 102),
        "workarena++": DisagreementCount(0, 3),
    }
    # of the first's 39 yes the second keeps 33 (TP), of its 66 no 60 (TN)
    assert rates.of("workarena++", 1) == DisagreementCount(6, 39)
    assert rates.of("workarena++", 0) == DisagreementCount(6, 66)
    assert rates.of("webarena", 0).doubles <= 66


IDS = [f"webarena/agent-{agent}/webarena.{task}" for task in range(4) for agent in "ab"]


@pytest.fixture
def label_sets(tmp_path, write_annotations):
    """A function from (first, second or None) of success, a pair a trajectory, to the label sets of a suite.

    Eight trajectories, two runs on each of four tasks; the last task is dev's.
    """

    def load(pairs):
        folder = tmp_path / "own"
        folder.mkdir()
        rows = [(name, "dev" if name.endswith(".3") else "test") for name in IDS]
        with (folder / "trajectories.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("trajectory_id", "split"), *rows])
        words = {"yes": "Successful", "no": "Unsuccessful", "unsure": "Unsure"}
        named = list(zip(IDS, pairs, strict=True))
        given = [(name, words[first], "No", "Unsure", "No") for name, (first, _) in named]
        given += [(name, words[second], "No", "Unsure", "No") for name, (_, second) in named if second]
        settings = Settings(labels=f"csv:{write_annotations(given)}")
        return [load_labels(load_suite(folder), split, settings) for split in ("dev", "test")]

    return load


PAIRS = [
    ("yes", "yes"), ("yes", "yes"), ("no", "yes"), ("yes", "no"),
    ("no", "no"), ("no", None), ("yes", "yes"), ("unsure", "yes"),
]  # fmt: skip


def test_second_annotators_are_scored_as_a_judge_of_the_first_over_all_splits(label_sets):
    found = second_annotator_scores(label_sets(PAIRS))
    cell = found["success"]["overall"]
    # TP: 0, 1 and 6 (dev); FP: 2; FN: 3; TN: 4. 5 has one annotation, 7 an Unsure.
    assert [cell[name] for name in ("tp", "fp", "fn", "tn", "n")] == [3, 1, 1, 1, 6]
    assert (cell["precision"], cell["recall"]) == (0.75, 0.75)
    low, high = cell["precision_ci"]
    assert 0 <= low < 0.75 < high <= 1
    assert found["success"]["by_benchmark"]["webarena"]["tp"] == 3
    assert found["side_effect"]["overall"]["precision"] is None  # nobody said yes


def test_an_unsure_of_the_second_is_left_out_and_is_no_miss(label_sets):
    found = second_annotator_scores(label_sets([("yes", "yes"), ("yes", "unsure"), *[("no", None)] * 6]))
    cell = found["success"]["overall"]
    assert (cell["tp"], cell["fn"], cell["n"], cell["no_verdict"]) == (1, 0, 1, 1)


def test_without_doubles_there_is_no_ceiling(label_sets):
    sets = label_sets([("yes", None)] * 8)
    assert second_annotator_scores(sets) == {"success": None, "side_effect": None, "repetition": None}
    assert ceiling_row(sets, "2026-01-01") is None


def test_the_ceiling_is_a_reference_row_with_intervals_over_tasks_and_no_rank(label_sets):
    row = ceiling_row(label_sets(PAIRS), "2026-01-01")
    assert "7 trajectories (2 dev, 5 test)" in row.note
    board = make_board("own", [], [], "0123456789ab", [row])
    (shown,) = board.ranking("success")
    found = shown.labels["success"]
    assert (shown.provenance, shown.date, found["rank"], found["intervals"]) == (
        "reference", "2026-01-01", None, "tasks",
    )  # fmt: skip
    assert (found["overall"]["precision"], found["by_agent"]) == (0.75, {})
    assert make_board("own", [], [], "0123456789ab", [row]).to_bytes() == board.to_bytes()
    assert "Second annotator" in board_to_csv(board)


@pytest.mark.labels
def test_the_official_ceiling_takes_the_place_of_the_published_row_with_the_same_counts(official_settings):
    sets = [load_labels(load_suite(), split, official_settings) for split in ("dev", "test")]
    published = load_published_rows()
    row = ceiling_row(sets, "2025-04-11")
    board = make_board("agent-reward-bench", [], published, "0123456789ab", [row])
    assert len(board.rows) == len(published)
    (found,) = [r for r in board.rows if r.id == "reference/second-annotator"]
    shipped = next(r for r in published if r.row_id == found.id)
    for label, shipped_label in shipped.labels.items():
        for name, cell in shipped_label.by_benchmark.items():
            if cell is not None:
                ours = found.labels[label]["by_benchmark"][name]
                assert tuple(ours[count] for count in ("tp", "fp", "fn", "tn")) == tuple(cell.counts)
    overall = found.labels["success"]["overall"]
    # 33 TP, 6 FP, 6 FN: 33 / 39 = 84.6 % both ways
    assert (round(100 * overall["precision"], 1), round(100 * overall["recall"], 1)) == (84.6, 84.6)
    low, high = overall["precision_ci"]
    assert 0.70 < low < 0.76 and 0.92 < high < 0.97  # 39 verdicts: about 11 points to each side
