from collections import deque

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leaderboard.judge_precision.confusion import as_verdicts, confusion_counts, figures

VERDICTS = st.sampled_from([1, 0, -1])


def one_group(verdicts, labels, policy="strict"):
    verdicts, labels = np.array(verdicts, dtype=np.int8), np.array(labels, dtype=np.int8)
    return confusion_counts(verdicts, labels, np.zeros(len(labels), dtype=np.int64), 1, policy)[0].tolist()


# verdict and label of ten rows: 3 TP, 1 FP, 1 FN, 2 TN, a missing verdict on each label, an unsure label.
HAND_VERDICTS = [1, 1, 1, 1, 0, 0, 0, -1, -1, 1]
HAND_LABELS = [1, 1, 1, 0, 1, 0, 0, 1, 0, -1]


def test_strict_counts_a_missing_verdict_as_no():
    # the missing ones: a miss on the positive (FN 1 + 1), right on the negative (TN 2 + 1)
    assert one_group(HAND_VERDICTS, HAND_LABELS) == [3, 1, 2, 3, 2]


def test_published_leaves_a_missing_verdict_out_but_counts_it():
    assert one_group(HAND_VERDICTS, HAND_LABELS, "published") == [3, 1, 1, 2, 2]


def test_rows_with_an_unsure_label_are_left_out_whatever_the_verdict():
    assert one_group([1, 0, -1], [-1, -1, -1]) == [0, 0, 0, 0, 0]


def test_counts_are_kept_by_group_and_an_empty_group_is_all_zero():
    verdicts, labels = np.array([1, 0, 1], dtype=np.int8), np.array([1, 1, 0], dtype=np.int8)
    counts = confusion_counts(verdicts, labels, np.array([0, 2, 2]), 3)
    assert counts.tolist() == [[1, 0, 0, 0, 0], [0, 0, 0, 0, 0], [0, 1, 1, 0, 0]]


def test_an_unknown_policy_is_refused_by_name():
    with pytest.raises(ValueError, match=r"'lenient' is unknown; use one of strict, published"):
        one_group([1], [1], "lenient")


def test_every_figure_on_a_table_made_by_hand():
    found = figures(tp=40, fp=10, fn=20, tn=30, no_verdict=5)
    assert found == {
        "n": 100,
        "positives": 60,
        "tp": 40,
        "fp": 10,
        "fn": 20,
        "tn": 30,
        "no_verdict": 5,
        "coverage": 0.95,  # 95 of 100 rows have a verdict
        "precision": 0.8,  # 40 / 50
        "recall": pytest.approx(2 / 3),  # 40 / 60
        "f1": pytest.approx(8 / 11),  # 80 / (80 + 10 + 20)
        "accuracy": 0.7,  # 70 / 100
        "npv": 0.6,  # 30 / 50
        "tnr": 0.75,  # 30 / 40
        "fpr": 0.25,  # 10 / 40
        "balanced_accuracy": pytest.approx(17 / 24),  # (2/3 + 3/4) / 2
        "kappa": pytest.approx(0.4),  # p_e = (50 * 60 + 50 * 40) / 100**2 = 0.5; (0.7 - 0.5) / (1 - 0.5)
    }


def test_coverage_of_the_published_policy_counts_the_rows_left_out():
    # 9 rows counted, 1 left out for want of a verdict: 9 of 10 labelled rows have one
    found = figures(tp=3, fp=2, fn=1, tn=3, no_verdict=1, policy="published")
    assert (found["n"], found["coverage"]) == (9, 0.9)


WITHOUT_NEGATIVES = {"tnr", "fpr", "balanced_accuracy"}


@pytest.mark.parametrize(
    ("counts", "undefined"),
    [
        (
            (0, 0, 0, 0),
            {"coverage", "precision", "recall", "f1", "accuracy", *WITHOUT_NEGATIVES, "npv", "kappa"},
        ),
        ((0, 0, 5, 5), {"precision"}),  # never says yes
        ((5, 5, 0, 0), {"npv"}),  # never says no
        ((0, 5, 0, 5), {"recall", "balanced_accuracy"}),  # no positive label
        ((5, 0, 5, 0), WITHOUT_NEGATIVES),  # no negative label
        ((0, 0, 0, 9), {"precision", "recall", "f1", "balanced_accuracy", "kappa"}),  # p_e is 1
        ((9, 0, 0, 0), {"npv", *WITHOUT_NEGATIVES, "kappa"}),
    ],
)
def test_an_undefined_figure_is_none_and_never_zero(counts, undefined):
    assert {name for name, value in figures(*counts).items() if value is None} == undefined


rows = st.lists(st.tuples(VERDICTS, VERDICTS), min_size=1, max_size=60)


@given(rows, st.sampled_from(["strict", "published"]))
def test_counts_and_figures_keep_their_sums(pairs, policy):
    verdicts, labels = map(list, zip(*pairs, strict=True))
    tp, fp, fn, tn, none = one_group(verdicts, labels, policy)
    found = figures(tp, fp, fn, tn, none, policy)
    labelled = sum(label >= 0 for label in labels)
    without = sum(verdict < 0 <= label for verdict, label in pairs)
    assert none == without
    assert tp + fp + fn + tn == found["n"] == (labelled if policy == "strict" else labelled - without)
    assert tp + fp == sum(verdict == 1 and label >= 0 for verdict, label in pairs)
    assert found["coverage"] == (None if not labelled else pytest.approx(1 - without / labelled))
    fractions = [value for name, value in found.items() if isinstance(value, float) and name != "kappa"]
    assert all(0 <= value <= 1 for value in fractions)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=60))
def test_figures_are_those_of_scikit_learn(pairs):
    from sklearn import metrics

    verdicts, labels = map(list, zip(*pairs, strict=True))
    found = figures(*one_group(verdicts, labels))
    theirs = {
        "precision": metrics.precision_score(labels, verdicts, zero_division=np.nan),
        "recall": metrics.recall_score(labels, verdicts, zero_division=np.nan),
        "f1": metrics.f1_score(labels, verdicts, zero_division=np.nan),
        "accuracy": metrics.accuracy_score(labels, verdicts),
        "npv": metrics.precision_score(labels, verdicts, pos_label=0, zero_division=np.nan),
        "tnr": metrics.recall_score(labels, verdicts, pos_label=0, zero_division=np.nan),
    }
    for name, value in theirs.items():
        assert found[name] == (None if np.isnan(value) else pytest.approx(value)), name
    assert found["fpr"] == (None if found["tnr"] is None else pytest.approx(1 - found["tnr"]))
    if found["balanced_accuracy"] is not None:  # scikit-learn leaves a class without rows out of the mean
        expected = metrics.balanced_accuracy_score(labels, verdicts)
        assert found["balanced_accuracy"] == pytest.approx(expected)
    if found["kappa"] is not None:
        expected = metrics.cohen_kappa_score(labels, verdicts)
        assert found["kappa"] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ([1, 2, 0], "row 1 is 2"),
        ([1, 0.5], "row 1 is 0.5"),
        ([1, -2, None, 7], "row 1 is -2.0, row 3 is 7.0"),
        ([1, float("inf")], "row 1 is inf"),
        ([1, "0"], "row 1 is '0'"),
        (["1", None], "row 0 is '1'"),
        (np.array(["yes", "no"]), "row 0 is "),
        ([1, {"success": True}], "row 1 is {'success': True}"),
        (list(range(9)), "row 2 is 2, row 3 is 3, row 4 is 4, row 5 is 5, row 6 is 6 and 2 more"),
    ],
)
def test_a_wrong_value_is_refused_with_its_row_and_the_argument(values, named):
    with pytest.raises(ValueError) as refusal:
        as_verdicts(values, "references")
    assert str(refusal.value).startswith("references: every value must be 1, 0 or -1 (no verdict); ")
    assert named in str(refusal.value)


COLUMNS = {
    "tuple": tuple,
    "whole numbers": lambda values: [-1 if value is None else int(value) for value in values],
    "floats": lambda values: np.array([np.nan if v is None else v for v in values], dtype=np.float32),
    "objects": lambda values: np.array(values, dtype=object),
    "pandas boolean": lambda values: pd.Series(values, dtype="boolean"),
    "pandas Int64": lambda values: pd.Series([None if v is None else int(v) for v in values], dtype="Int64"),
    "pandas by Arrow": lambda values: pd.Series(values, dtype="bool[pyarrow]"),
    "pandas, another index": lambda values: pd.Series(
        values, dtype="boolean", index=range(9, 9 + len(values))
    ),
    "list with NA": lambda values: [pd.NA if value is None else value for value in values],
    "Arrow": lambda values: pa.array(values, type=pa.bool_()),
    "Arrow in chunks": lambda values: pa.chunked_array([values[:1], values[1:]], type=pa.bool_()),
    "generator": lambda values: (value for value in values),
    "deque": deque,
    "values of a dict": lambda values: dict(enumerate(values)).values(),
    "datasets": lambda values: datasets.Dataset.from_dict(
        {"v": values}, features=datasets.Features({"v": datasets.Value("bool")})
    )["v"],
}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from([True, False, None]), max_size=20))
def test_every_kind_of_column_is_read_as_the_list_of_its_rows(values):
    expected = [-1 if value is None else int(value) for value in values]
    for name, column in COLUMNS.items():
        read = as_verdicts(column(values), "predictions")
        assert (read.dtype, read.tolist()) == (np.int8, expected), name


@pytest.mark.parametrize(
    ("values", "kind"),
    [({"a": 1}, "dict"), ({1, 0}, "set"), ("101", "str"), (b"101", "bytes"), (1, "int"), (None, "NoneType"),
     (np.array(1), "ndarray"), (pd.NA, "NAType")],
)  # fmt: skip
def test_what_has_no_rows_in_order_is_refused_by_its_type_with_what_to_give(values, kind):
    with pytest.raises(ValueError, match=f"predictions: expected a column .* got {kind}; give a list"):
        as_verdicts(values, "predictions")


@pytest.mark.parametrize(
    "table",
    [pd.DataFrame({"a": [1, 0]}), pa.table({"a": [1, 0], "b": [1, 0]}),
     datasets.Dataset.from_dict({"a": [1, 0]})],
    ids=["pandas", "Arrow", "datasets"],
)  # fmt: skip
def test_a_whole_table_is_refused_with_what_to_give(table):
    with pytest.raises(
        ValueError, match=r"references: expected .*; give (only one column|a list, an array or a column)"
    ):
        as_verdicts(table, "references")


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.just(pd.NA),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=6,
)


@given(anything)
def test_whatever_is_given_is_read_or_refused_by_name(values):
    try:
        read = as_verdicts(values, "predictions")
    except ValueError as refusal:
        assert str(refusal).startswith("predictions: ")
    else:
        assert set(read.tolist()) <= {1, 0, -1}
        assert len(read) == len(values)


@pytest.mark.parametrize("values", [[[1, 0], [0, 1]], [1, [0, 1]], np.zeros((2, 2))])
def test_a_table_instead_of_a_column_is_refused(values):
    with pytest.raises(ValueError, match="predictions: expected one value per row"):
        as_verdicts(values, "predictions")
