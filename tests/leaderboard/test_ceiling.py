import csv

import pytest

from dataset_script.settings import Settings
from dataset_script.suite import load_suite
from leaderboard.board import make_board
from leaderboard.board_csv import board_to_csv
from leaderboard.ceiling import ceiling_row, second_annotator_scores
from leaderboard.labels import load_labels
from leaderboard.published_rows import load_published_rows

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
    for label, given in shipped.labels.items():
        for name, cell in given.by_benchmark.items():
            if cell is not None:
                ours = found.labels[label]["by_benchmark"][name]
                assert tuple(ours[count] for count in ("tp", "fp", "fn", "tn")) == tuple(cell.counts)
    overall = found.labels["success"]["overall"]
    # 33 TP, 6 FP, 6 FN: 33 / 39 = 84.6 % both ways
    assert (round(100 * overall["precision"], 1), round(100 * overall["recall"], 1)) == (84.6, 84.6)
    low, high = overall["precision_ci"]
    assert 0.70 < low < 0.76 and 0.92 < high < 0.97  # 39 verdicts: about 11 points to each side
