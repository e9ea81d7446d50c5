"""The matrix judge x suite: how judges match, what the cells say, and Kendall's tau, checked by hand."""

from dataclasses import replace

import numpy as np
import pytest

from arb.core.suites.targets import Target, default_targets
from leaderboard.board.board import make_board
from leaderboard.board.ranks import count_interval
from leaderboard.board.rows import BoardRow, VerdictScores
from leaderboard.judge_precision.confusion import figures
from leaderboard.suites import matrix
from leaderboard.suites.matrix import (
    FEWEST_COMMON,
    SuiteBoard,
    common_metrics,
    kendall_tau,
    make_matrix,
    model_key,
)

METRIC = "balanced_accuracy"
TARGET = Target("solved", "Solved", "", metrics=("balanced_accuracy", "recall"))


def row(judge, tp, tn, model="", inputs="tree", provenance="published", **changes):
    """A judge that finds ``tp`` of 10 positives and ``tn`` of 10 negatives."""
    cell = figures(tp, 10 - tn, 10 - tp, tn)
    score = {"overall": cell, "by_benchmark": {}, "by_agent": {}, "rank": None, "best": False}
    known = {"id": f"{provenance}/{judge}", "date": "2026-01-01", "source": "", "kind": "LLM judge"}
    known |= {"split": "test", "protocol": "p", "labels": {"solved": score}, **changes}
    return BoardRow(judge=judge, model=model, inputs=inputs, provenance=provenance, **known)


def suite(name, rows, targets=(TARGET,), is_public=True, by_task=None, labels=None):
    """A suite of these rows; ``by_task`` has [TP, FP] of every task by row id, ``labels`` their totals."""
    scores = {row_id: VerdictScores({}, {"solved": counts}) for row_id, counts in (by_task or {}).items()}
    known = {} if labels is None else {"solved": labels}
    board = make_board(name, [], (), "v", rows, known, scores, targets)
    return SuiteBoard(name, name.title(), board, is_public)


def matrix_of(*suites, metric=METRIC):
    return make_matrix(suites, metric)


def lines(matrix):
    return {
        (row.judge, row.inputs): {name: cell.judge for name, cell in row.cells.items()} for row in matrix.rows
    }


@pytest.mark.parametrize(
    ("names", "key"),
    [
        (("gpt-4o-2024-11-20", "GPT-4o", "openai/gpt-4o", "GPT 4o"), "gpt-4o"),
        (("Claude 3.7 Sonnet", "claude-3-7-sonnet-20250219", "anthropic/claude-3.7-sonnet"),
         "claude-3-7-sonnet"),
        (("meta-llama/Llama-3.3-70B-Instruct", "Llama-3.3-70B"), "llama-3-3-70b"),
        (("Gemini-3-Flash-Preview", "gemini-3-flash"), "gemini-3-flash"),
    ],
)  # fmt: skip
def test_spellings_of_a_model_have_one_key(names, key):
    assert {model_key(name) for name in names} == {key}


def test_other_models_have_other_keys():
    names = ("GPT-4o", "GPT-4o-mini", "GPT-5", "Qwen3-4B", "Qwen3-4B-Thinking", "Qwen3-4B-Thinking-2507")
    assert len({model_key(name) for name in names}) == len(names) and model_key("") == ""


def test_judges_match_by_model_and_inputs():
    a = suite("a", [row("A1", 8, 6, "gpt-4o-2024-11-20"), row("A2", 7, 7, "gpt-4o", "screenshot")])
    b = suite("b", [row("B1", 9, 9, "GPT-4o", "screenshot"), row("B2", 5, 5, "gpt-5")])
    matrix = matrix_of(a, b)
    assert lines(matrix) == {
        ("A2", "screenshot"): {"a": "A2", "b": "B1"},
        ("A1", "tree"): {"a": "A1"},
        ("B2", "tree"): {"b": "B2"},
    }
    shared = matrix.rows[0].cells
    # (7/10 + 7/10) / 2 and (9/10 + 9/10) / 2
    assert (shared["a"].value, shared["b"].value) == (0.7, 0.9)
    assert not shared["b"].is_model_match and shared["a"].source == "published"


def test_a_match_by_the_model_alone_is_marked():
    a = suite("a", [row("A", 8, 6, "gpt-4o", "tree")])
    b = suite("b", [row("B", 9, 9, "gpt-4o", "screenshot")])
    unknown = suite("c", [row("C", 5, 5, "gpt-4o", "")])
    (line,) = matrix_of(a, b, unknown).rows
    assert {name: cell.is_model_match for name, cell in line.cells.items()} == {
        "a": False, "b": True, "c": True,
    }  # fmt: skip
    # What neither says it sees may differ.
    (line,) = matrix_of(unknown, replace(unknown, name="d")).rows
    assert line.cells["d"].is_model_match


def test_of_several_judges_with_one_model_those_of_one_name_match_and_else_the_first():
    a = suite("a", [row("Best", 9, 9, "m"), row("Mine", 6, 6, "m"), row("Other", 5, 5, "m")])
    b = suite("b", [row("Top", 8, 8, "m"), row("Mine", 7, 7, "m"), row("Last", 5, 5, "m")])
    assert lines(matrix_of(a, b)) == {
        ("Best", "tree"): {"a": "Best", "b": "Top"},
        ("Mine", "tree"): {"a": "Mine", "b": "Mine"},
        ("Other", "tree"): {"a": "Other"},
        ("Last", "tree"): {"b": "Last"},
    }


def test_judges_without_a_model_match_by_name():
    a, b = suite("a", [row("Rules", 8, 6, "", "reward")]), suite("b", [row("rules", 7, 7, "", "reward")])
    assert lines(matrix_of(a, b)) == {("Rules", "reward"): {"a": "Rules", "b": "rules"}}


def test_references_come_last_under_common_names():
    a = suite("a", [row("Always successful", 10, 0, provenance="reference", inputs=""), row("J", 6, 6, "m")])
    b = suite("b", [row("Always yes", 10, 0, provenance="reference", inputs="")])
    matrix = matrix_of(a, b)
    assert [each.judge for each in matrix.rows] == ["J"]
    (always,) = matrix.references
    assert always.judge == "Always yes" and {cell.value for cell in always.cells.values()} == {0.5}


def test_the_metrics_to_choose_are_those_of_all_suites():
    every = suite("a", [], default_targets())
    assert common_metrics([every])[:3] == ("balanced_accuracy", "precision", "recall")
    assert common_metrics([every, suite("b", [])]) == ("balanced_accuracy", "recall")


def test_the_first_binary_target_is_compared_and_suites_without_one_are_named():
    grade = Target("grade", "Grade", "", type="ordinal", metrics=("accuracy",))
    a = suite("a", [row("J", 8, 6, "m")], (grade, TARGET))
    b = suite("b", [], (grade,))
    matrix = matrix_of(a, b)
    assert matrix.suites == ("a",) and matrix.left_out == ("B",)
    assert matrix.rows[0].cells["a"].value == pytest.approx(0.7)


def test_intervals_come_from_tasks_or_counts_and_rows_that_cannot_be_compared_have_none():
    judges = [
        row("Verdicts", 8, 6, "m"),
        row("Counts", 8, 6, "n"),
        row("Tuned", 8, 6, "o", test_labels_used=True),
    ]
    # 20 tasks of one run each: of 10 positives 8 are found, of 10 negatives 4 are called positive.
    by_task = {"published/Verdicts": [[1, 0]] * 8 + [[0, 0]] * 2 + [[0, 1]] * 4 + [[0, 0]] * 6}
    labels = [[1, 0]] * 10 + [[0, 1]] * 10
    cells = {}
    for line in matrix_of(suite("a", judges, by_task=by_task, labels=labels)).rows:
        cells[line.judge] = line.cells["a"]
    assert cells["Counts"].interval == count_interval(METRIC, 8, 4, 2, 6)
    low, high = cells["Verdicts"].interval
    # The standard error of (recall + TNR) / 2 is sqrt(0.8 * 0.2 / 10 + 0.6 * 0.4 / 10) / 2 = 0.1.
    assert low == pytest.approx(0.7 - 0.196, abs=0.03) and high == pytest.approx(0.7 + 0.196, abs=0.03)
    assert cells["Tuned"].interval is None
    # Of a suite with private labels, counts by task are not used.
    private = matrix_of(suite("a", judges, by_task=by_task, labels=labels, is_public=False))
    (hidden,) = [line.cells["a"] for line in private.rows if line.judge == "Verdicts"]
    assert hidden.interval == count_interval(METRIC, 8, 4, 2, 6) != [low, high]


def test_kendalls_tau_b_counts_pairs():
    # Of 6 pairs, 5 are in the same order and 1 is not: (5 - 1) / 6.
    assert kendall_tau(np.array([1, 2, 3, 4]), np.array([1, 2, 4, 3])) == pytest.approx(4 / 6)
    # A tie in y: of 3 pairs, 2 agree; sqrt(3 * 2) pairs are without ties.
    assert kendall_tau(np.array([1, 2, 3]), np.array([1, 2, 2])) == pytest.approx(2 / 6**0.5)
    assert np.isnan(kendall_tau(np.array([1, 2, 3]), np.array([5, 5, 5])))
    many = np.random.default_rng(0).random((2, 250, 5))
    assert kendall_tau(*many)[249] == pytest.approx(kendall_tau(many[0, 249], many[1, 249]))


def ladder(n, flip=False):
    """``n`` judges, each better than the one before; with ``flip``, the first two change places."""
    tns = list(range(n))
    if flip:
        tns[:2] = tns[1::-1]
    return [row(f"J{i}", 5, tn, f"m{i}") for i, tn in enumerate(tns)]


def test_with_fewer_than_eight_common_judges_there_is_no_tau():
    (pair,) = matrix_of(suite("a", ladder(7)), suite("b", ladder(9))).agreements
    assert (pair.judges, pair.by_model, pair.tau, pair.interval) == (FEWEST_COMMON - 1, 0, None, None)


def test_tau_from_counts_has_an_interval_that_says_so_and_ceilings():
    (pair,) = matrix_of(suite("a", ladder(8)), suite("b", ladder(8, flip=True))).agreements
    # Of 28 pairs, 1 is in the other order: (27 - 1) / 28.
    assert (pair.judges, pair.tau) == (8, pytest.approx(26 / 28))
    assert pair.from_counts == ("a", "b")
    low, high = pair.interval
    assert -1 < low < high <= 1 and low < pair.tau
    assert all(0 < ceiling < 1 for ceiling in pair.ceilings)


def verdict_suite(name, n_judges, seed):
    """A suite of 60 tasks with a positive and a negative run each, whose judges have verdicts."""
    generator = np.random.default_rng(seed)
    rows, by_task = [], {}
    for i in range(n_judges):
        found = generator.random(60) < 0.5 + 0.05 * i
        by_task[f"published/J{i}"] = [[int(hit), 0] for hit in found]
        cell = figures(int(found.sum()), 0, 60 - int(found.sum()), 60)
        score = {"overall": cell, "by_benchmark": {}, "by_agent": {}, "rank": None, "best": False}
        rows.append(row(f"J{i}", 5, 5, f"m{i}", labels={"solved": score}))
    return suite(name, rows, by_task=by_task, labels=[[1, 1]] * 60)


def test_tau_of_verdicts_has_an_interval_over_tasks():
    (pair,) = matrix_of(verdict_suite("a", 9, 1), verdict_suite("b", 9, 2)).agreements
    assert pair.judges == 9 and pair.from_counts == ()
    low, high = pair.interval
    assert 0 < low < pair.tau and low < high <= 1
    # Halves have half of the tasks, so chance matters more than between the two suites.
    assert all(0.3 < ceiling < 1 for ceiling in pair.ceilings)


def test_halves_of_a_suite_of_clearly_different_judges_agree_fully():
    # Judge i finds the positive runs of i tenths of all tasks: halves have nearly the same order.
    rows, by_task = [], {}
    for i in range(8):
        hits = [i / 8 > (task % 8) / 8 for task in range(800)]
        tp = sum(hits)
        by_task[f"published/J{i}"] = [[int(hit), 0] for hit in hits]
        score = {"overall": figures(tp, 0, 800 - tp, 800), "by_benchmark": {}, "by_agent": {}, "rank": None,
                 "best": False}  # fmt: skip
        rows.append(row(f"J{i}", 5, 5, f"m{i}", labels={"solved": score}))
    one = suite("a", rows, by_task=by_task, labels=[[1, 1]] * 800)
    (pair,) = matrix_of(one, replace(one, name="b")).agreements
    assert pair.tau == 1 and pair.ceilings == (1.0, 1.0) and pair.interval == [1.0, 1.0]


def test_without_counts_tau_has_no_interval():
    rows = ladder(8)
    score = rows[0].score("solved")
    hidden = {**score, "overall": {**score["overall"], "noise": {"tp_sd": 3.0, "positives_sd": 3.0}}}
    rows[0] = replace(rows[0], labels={"solved": hidden})
    (pair,) = matrix_of(suite("a", rows), suite("b", ladder(8))).agreements
    assert pair.tau == 1 and pair.interval is None and pair.ceilings[0] is None


def test_the_same_boards_give_the_same_matrix():
    boards = [verdict_suite("a", 9, 1), suite("b", ladder(9))]
    first = matrix_of(*boards)
    for function in vars(matrix).values():
        if hasattr(function, "cache_clear"):
            function.cache_clear()
    assert matrix_of(*boards) == first
