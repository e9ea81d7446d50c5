from collections import deque

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leaderboard.judge_precision.confusion import figures
from leaderboard.judge_precision.scores import judge_scores

FIGURES = set(figures(0, 0, 0, 0))
INTERVALS = {"precision_ci", "recall_ci", "f1_ci"}

# Eight runs of two agents on four tasks of two benchmarks.
VERDICTS = [1, 1, 0, -1, 1, 0, 1, 0]
LABELS = [1, 0, 0, 1, 1, 1, -1, 0]
BENCHMARKS = ["wa", "wa", "wa", "wa", "ab", "ab", "ab", "ab"]
AGENTS = ["x", "y", "x", "y", "x", "y", "x", "y"]
TASKS = ["wa/1", "wa/1", "wa/2", "wa/2", "ab/1", "ab/1", "ab/2", "ab/2"]


def test_overall_is_pooled_over_rows_and_not_a_mean_over_benchmarks():
    scores = judge_scores(VERDICTS, LABELS, benchmarks=BENCHMARKS)
    # wa: TP 1, FP 1 (precision 1/2); ab: TP 1, FP 0 (precision 1), its unsure row left out
    # pooled 2 / 3, where the mean over benchmarks would be 3 / 4
    assert scores["precision"] == pytest.approx(2 / 3)
    assert {name: cell["precision"] for name, cell in scores["by_benchmark"].items()} == {
        "ab": 1.0,
        "wa": 0.5,
    }


def test_cells_by_benchmark_and_agent_have_the_figures_of_their_rows():
    scores = judge_scores(VERDICTS, LABELS, benchmarks=BENCHMARKS, agents=AGENTS)
    assert scores["by_benchmark"]["wa"] == judge_scores(VERDICTS[:4], LABELS[:4])
    assert scores["by_agent"]["y"] == judge_scores(VERDICTS[1::2], LABELS[1::2])
    assert list(scores["by_agent"]) == ["x", "y"]


def test_clusters_add_intervals_to_every_cell():
    scores = judge_scores(VERDICTS, LABELS, BENCHMARKS, AGENTS, TASKS, n_resamples=50)
    cells = [*scores["by_benchmark"].values(), *scores["by_agent"].values()]
    assert set(scores) == FIGURES | INTERVALS | {"by_benchmark", "by_agent"}
    assert all(set(cell) == FIGURES | INTERVALS for cell in cells)


def test_with_clusters_the_default_is_ten_thousand_resamples():
    generator = np.random.default_rng(0)
    columns = generator.integers(0, 2, 200), generator.integers(0, 2, 200)
    tasks = np.arange(200) // 4
    by_default = judge_scores(*columns, clusters=tasks)
    assert by_default == judge_scores(*columns, clusters=tasks, n_resamples=10_000)
    assert by_default != judge_scores(*columns, clusters=tasks, n_resamples=9_000)
    assert not INTERVALS & set(judge_scores(VERDICTS, LABELS, clusters=TASKS, n_resamples=0))


def test_the_interval_of_a_part_is_over_its_own_rows():
    generator = np.random.default_rng(3)
    verdicts, labels = generator.integers(0, 2, 120), generator.integers(0, 2, 120)
    groups, tasks = np.arange(120) % 3, np.arange(120) // 4
    whole = judge_scores(
        verdicts, labels, benchmarks=groups, agents=groups[::-1], clusters=tasks, n_resamples=50
    )
    for part, names in (("by_benchmark", groups), ("by_agent", groups[::-1])):
        for name in range(3):
            alone = np.where(names == name, labels, -1)  # the others' labels unsure, the tasks all there
            assert whole[part][str(name)] == judge_scores(verdicts, alone, clusters=tasks, n_resamples=50)


def test_the_policy_changes_the_counts_and_the_intervals_alike():
    strict = judge_scores(VERDICTS, LABELS, clusters=TASKS, n_resamples=300)
    published = judge_scores(VERDICTS, LABELS, clusters=TASKS, n_resamples=300, policy="published")
    assert (strict["fn"], published["fn"]) == (2, 1)  # the missing verdict on a positive
    assert strict["precision_ci"] == published["precision_ci"]
    assert strict["recall_ci"] != published["recall_ci"]


@settings(max_examples=30)
@given(st.permutations(range(8)))
def test_the_order_of_the_rows_does_not_matter(order):
    shuffled = [[column[row] for row in order] for column in (VERDICTS, LABELS, BENCHMARKS, AGENTS, TASKS)]
    expected = judge_scores(VERDICTS, LABELS, BENCHMARKS, AGENTS, TASKS, n_resamples=40)
    assert judge_scores(*shuffled, n_resamples=40) == expected


def test_every_column_of_another_length_is_named():
    with pytest.raises(ValueError) as refusal:
        judge_scores(VERDICTS, LABELS[:7], benchmarks=BENCHMARKS, agents=AGENTS[:3], clusters=[])
    message = (
        "predictions has 8 rows, but references has 7, agents has 3, clusters has 0; give one value per row"
    )
    assert str(refusal.value) == message


@pytest.mark.parametrize("value", [-1, "10", 0.5])
@pytest.mark.parametrize("option", ["n_resamples", "seed"])
def test_a_number_of_resamples_or_a_seed_that_is_no_count_is_refused_by_name(option, value):
    with pytest.raises(ValueError, match=rf"{option}: {value!r} is not a "):
        judge_scores(VERDICTS, LABELS, **{option: value})


@pytest.mark.parametrize("argument", ["benchmarks", "agents", "clusters"])
def test_names_are_read_from_every_kind_of_column(argument):
    names = ["b", "a", "b"]
    expected = judge_scores([1, 1, 0], [1, 0, 1], **{argument: names}, n_resamples=20)
    for column in (pd.Series(names, dtype="string"), pa.array(names), (name for name in names), deque(names)):
        assert judge_scores([1, 1, 0], [1, 0, 1], **{argument: column}, n_resamples=20) == expected


NAMED_ONCE = [
    ["a", None, None],
    [1.0, np.nan, np.nan],
    pd.Series(["a", pd.NA, pd.NA], dtype="string"),
    pa.array(["a", None, None]),
]


@pytest.mark.parametrize("argument", ["benchmarks", "agents", "clusters"])
@pytest.mark.parametrize("names", NAMED_ONCE)
def test_a_missing_name_is_refused_in_every_kind_of_column(argument, names):
    with pytest.raises(
        ValueError, match=rf"{argument}: every row needs a name; row 1 has none \(2 rows in total\)"
    ):
        judge_scores([1, 1, 1], [1, 0, 1], **{argument: names})


@pytest.mark.parametrize("names", [{"a": 1}, "abc", 3, np.array([["a", "b"]])])
def test_names_that_are_no_column_are_refused_by_their_argument(names):
    with pytest.raises(ValueError, match="agents: expected "):
        judge_scores([1, 1, 1], [1, 0, 1], agents=names)


def test_no_rows_give_undefined_figures_and_no_groups():
    scores = judge_scores([], [], benchmarks=[], agents=[], clusters=[])
    assert (scores["n"], scores["precision"], scores["precision_ci"]) == (0, None, None)
    assert (scores["by_benchmark"], scores["by_agent"]) == ({}, {})
