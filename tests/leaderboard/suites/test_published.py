"""Suites of published metrics: the shipped osreward, the counts behind its metrics, and invalid files."""

import csv
import io

import pytest

from arb.core.suite import SuiteError, load_suite
from leaderboard.board.board import make_board
from leaderboard.board.export import board_to_csv
from leaderboard.paper.audit import Counts
from leaderboard.suites.published import (
    PrintedMetrics,
    chance_of_fit,
    counts_together,
    published_metric_rows,
    read_published_metrics,
    summarise_fits,
)

HEADER = "judge,weights,subset,n,positives,accuracy,recall,tnr,balanced_accuracy,usd_per_1000\n"


@pytest.fixture(scope="module")
def osreward():
    return load_suite("osreward")


@pytest.fixture(scope="module")
def board(osreward):
    rows = published_metric_rows(osreward)
    return make_board(osreward.name, [], (), None, rows, targets=osreward.targets)


def test_osreward_has_the_figures_in_shared(osreward, shared):
    found = read_published_metrics(osreward.published_path)
    rows = list(csv.DictReader((shared / "data/suites/osreward/figures.csv").open()))
    assert [row["judge"] for row in rows] == list(found) and len(rows) == 29
    names = {"accuracy": "accuracy", "recall": "success_recall", "tnr": "failure_recall",
             "balanced_accuracy": "balanced_accuracy"}  # fmt: skip
    for row in rows:
        all_runs, hard = found[row["judge"]]
        assert (all_runs.n, all_runs.positives, hard.n, hard.positives) == (440 + 579, 440, 86 + 198, 86)
        assert all_runs.usd_per_1000 == float(row["usd_per_1000"])
        for name, theirs in names.items():
            assert getattr(all_runs, name) == round(10 * float(row[theirs]))
            assert getattr(hard, name) == round(10 * float(row[f"hard_{theirs}"]))


def test_precision_is_known_for_the_eight_judges_whose_counts_fit_on_all_runs_and_on_hard(board):
    known = {row.judge: row.score("success")["overall"]["precision"] for row in board.rows}
    # GPT-5: 382 of 440 is 86.8, 509 of 579 is 87.9, 891 of 1,019 is 87.4; 70 of 579 are false positives.
    assert known["GPT-5"] == 382 / (382 + 579 - 509)
    assert sorted(judge for judge, precision in known.items() if precision is not None) == [
        "Claude-Haiku-4-5", "Claude-Sonnet-4-6", "GPT-5", "GPT-5.2", "GPT-5.4", "Gemini-3-Flash",
        "Gemini-3.1-Pro", "Qwen3.5-397B-A17B",
    ]  # fmt: skip
    evidence = {row.judge: row.evidence for row in board.rows}
    assert evidence["GPT-5"] == "unique counts" and evidence["GPT-4o"] == "no counts"


def test_twelve_fit_on_all_runs_alone_and_five_or_six_would_by_chance(osreward):
    fits = summarise_fits(osreward.published_path)
    assert (fits.judges, fits.on_all_runs, fits.together) == (29, 12, 8)
    # 441 of 1,001 printed values are a recall of 440 runs and 580 are a TNR of 579; in about three of four
    # such cases the accuracy fits as well.
    assert chance_of_fit(1019, 440) == pytest.approx(0.76 * (441 / 1001) * (580 / 1001), abs=0.005)
    assert chance_of_fit(284, 86) == pytest.approx(0.76 * (87 / 1001) * (199 / 1001), abs=0.002)
    assert fits.by_chance_on_all_runs == pytest.approx(29 * chance_of_fit(1019, 440))
    assert 5 < fits.by_chance_on_all_runs < 6 and fits.by_chance_together < 0.1


def printed(n=20, positives=8, accuracy=800, recall=750, tnr=833, balanced_accuracy=792, subset=""):
    return PrintedMetrics("j", "", subset, n, positives, accuracy, recall, tnr, balanced_accuracy, None)


def test_counts_follow_from_printed_metrics():
    # 6 of 8 is 75.0, 10 of 12 is 83.3, 16 of 20 is 80.0, (75 + 83.33) / 2 is 79.17
    counts = Counts(tp=6, fp=2, fn=2, tn=10)
    assert printed().possible_counts() == [counts]
    assert printed(accuracy=805).possible_counts() == []
    assert printed(recall=751).possible_counts() == []
    # The mean of 75.0 and 83.3 is 79.15, which may be printed as 79.1 too.
    assert printed(balanced_accuracy=791).possible_counts() == [counts]
    assert not printed(balanced_accuracy=791).is_mean_of_exact(6, 10)
    assert printed(balanced_accuracy=790).possible_counts() == []


def test_counts_of_a_subset_must_be_part_of_those_of_all_runs():
    # The judge misses 2 of 8 successes. 3 of 4 is 75.0, 1 of 4 is 25.0, so the second subset has 3 misses.
    fits = printed(8, 4, 750, 750, 750, 750, "Hard")
    assert counts_together([printed(), fits]) == [Counts(6, 2, 2, 10), Counts(3, 1, 1, 3)]
    too_many = printed(8, 4, 500, 250, 750, 500, "Hard")
    assert too_many.possible_counts() == [Counts(1, 1, 3, 3)]
    assert counts_together([printed(), too_many]) is None


def test_rows_without_counts_have_the_printed_metrics_and_approximate_intervals(board):
    row = next(row for row in board.rows if row.judge == "GPT-4o")
    score = row.score("success")
    cell = score["overall"]
    assert (cell["accuracy"], cell["recall"], cell["tnr"]) == (0.81, 0.968, 0.69)
    assert cell["tp"] is None and cell["precision"] is None and cell["precision_ci"] is None
    low, high = cell["balanced_accuracy_ci"]
    assert low < cell["balanced_accuracy"] == 0.829 < high
    assert score["by_benchmark"]["Hard"]["recall"] == 0.907
    assert row.cost["usd_per_1000"] == 20.31 and row.weights == "closed" and row.maker == "OpenAI"


def test_the_csv_has_the_interval_of_the_metric_that_ranks_the_judges(board):
    lines = csv.DictReader(io.StringIO(board_to_csv(board)))
    line = next(line for line in lines if line["judge"] == "GPT-4o")
    low, high = (float(line[f"balanced_accuracy_ci_{end}"]) for end in ("low", "high"))
    assert low < float(line["balanced_accuracy"]) == 0.829 < high


def test_the_intervals_separate_the_best_judge_from_the_worst(board):
    ranks = board.ranks("success")
    assert ranks[board.rows[0].id].n_separated > 0 and len(ranks) == 29
    assert "published/qwen3-vl-30b" in ranks[board.rows[0].id].separated_from


def test_a_note_says_when_counts_fit_only_the_mean_of_rounded_recalls(board):
    noted = {row.judge for row in board.rows if "mean of rounded recalls" in row.note}
    # GPT-5.4: (384 / 440 + 504 / 579) / 2 is 87.16, printed as 87.1, the mean of 87.3 and 87.0 rounded down
    assert noted == {"GPT-5.4", "Claude-Haiku-4-5"}


def test_every_problem_of_a_file_is_named(tmp_path):
    path = tmp_path / "published.csv"
    path.write_text(
        HEADER + "a,closed,Hard,10,5,50,50,50,50,\n"  # no line for all runs
        "b,unknown,,10,11,50.55,50,50,50,1\n"
        "c,,,10,11,50,50,50,50,1\n"
    )
    with pytest.raises(SuiteError) as found:
        read_published_metrics(path)
    for place in ("row 2, subset", "row 3, weights 'unknown'", "row 3, accuracy '50.55'", "row 4, positives"):
        assert place in str(found.value)
    path.write_text(HEADER)
    with pytest.raises(SuiteError, match="add at least one judge"):
        read_published_metrics(path)


def test_a_folder_with_published_metrics_is_a_closed_suite(tmp_path):
    (tmp_path / "published.csv").write_text(HEADER + "a,,,10,5,50.0,40.0,60.0,50.0,\n")
    suite = load_suite(tmp_path)
    assert suite.trajectories == () and suite.labels_are_public
    assert suite.why_closed == "this suite has only published metrics; its runs and labels are not public"
    assert [row.judge for row in published_metric_rows(suite)] == ["a"]
    (tmp_path / "trajectories.csv").write_text("trajectory_id,split\na/b/c,test\n")
    assert load_suite(tmp_path).why_closed is None and published_metric_rows(load_suite(tmp_path)) == ()
