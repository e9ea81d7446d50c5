"""Which runs are drawn together, so that every group has labels enough to say how it varies; the labels of
success that annotations hold.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.core.predictions import read_predictions
from arb.core.predictions.parser_pool import ParserPool
from arb.core.predictions.raw import ReadingLimits
from leaderboard.labels.annotations import write_parquet, write_released
from leaderboard.success_rates.runs import (
    LABELS_A_STRATUM,
    OUTCOME_LABELS,
    AgentRuns,
    draw_runs,
    read_outcome_labels,
    read_outcome_verdicts,
    strata_of_patterns,
    stratum_sizes,
)
from tests.support.annotations import IDS, annotation

PATTERNS = st.lists(st.integers(0, 7), min_size=1, max_size=200).map(
    lambda numbers: np.array([[number >> bit & 1 for bit in range(3)] for number in numbers])
)


@given(PATTERNS, st.integers(1, 200))
def test_a_stratum_has_labels_enough_or_is_the_only_one(patterns, total):
    strata = strata_of_patterns(patterns, total)
    sizes = np.bincount(strata)
    assert (sizes > 0).all()
    of_pattern = {tuple(row): set() for row in patterns.tolist()}
    for row, stratum in zip(patterns.tolist(), strata.tolist(), strict=True):
        of_pattern[tuple(row)].add(stratum)
    assert all(len(numbers) == 1 for numbers in of_pattern.values())
    if len(sizes) > 1:
        assert sum(stratum_sizes(sizes.tolist(), total)) == min(total, len(patterns))
        assert total >= LABELS_A_STRATUM * len(sizes)


def test_patterns_without_labels_enough_are_one_stratum():
    # 20 labels of 100 runs, a fifth: of 60, 30, 6 and 4 runs 12, 6, 1.2 and 0.8 labels; the last two get 2
    # together, fewer than 5, so that the smallest of the others joins them: 60 alone, and 40.
    patterns = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], [60, 30, 6, 4], axis=0)
    assert np.bincount(strata_of_patterns(patterns, 19)).tolist() == [60, 40]
    assert np.bincount(strata_of_patterns(patterns, 20)).tolist() == [60, 30, 6, 4]  # 5 for each of the four
    assert np.bincount(strata_of_patterns(patterns, 8)).tolist() == [100]


def test_the_stratum_of_all_other_runs_is_recorded_last_without_verdicts():
    first = {f"own/one/{number}": number >= 90 for number in range(100)}
    second = {f"own/one/{number}": number >= 60 for number in range(100)}
    draw = draw_runs(AgentRuns.of({"first": first, "second": second}), 14, stratified=True)
    # of 60, 30 and 10 runs 8.4, 4.2 and 1.4 labels
    assert [(each.verdicts, each.n, len(each.drawn)) for each in draw.strata] == [
        ({"first": False, "second": False}, 60, 8),
        (None, 40, 6),
    ]


TWICE = [
    annotation(0, "A", "yes"),
    annotation(1, "A", "unsure"),
    annotation(0, "B", "no"),
    annotation(2, "A", "no"),
]


@pytest.mark.parametrize("form", ["released", "parquet"])
def test_of_several_annotations_of_a_run_the_first_is_its_label_of_success(form):
    content = write_parquet(TWICE) if form == "parquet" else write_released(TWICE).encode()
    with ParserPool(1) as parsers:
        table, findings = read_predictions(content, parsers=parsers, isolated=True, reader=OUTCOME_LABELS)
    assert findings == []
    assert (table.trajectory_ids, table.targets["success"].tolist()) == (IDS[:3], [1, -1, 0])
    first = 1 if form == "parquet" else 2  # rows of Parquet count from 1, a CSV's header is row 1
    assert table.row_numbers.tolist() == [first, first + 1, first + 3]


def test_wrong_words_of_annotations_are_named_by_column_and_row():
    text = write_released(TWICE).replace("Unsuccessful", "perhaps")
    table, (finding,) = read_outcome_labels(text.encode(), ReadingLimits())
    assert table is None
    assert (finding.level, finding.column, finding.rows) == ("error", "trajectory_success", (4, 5))
    assert (
        "2 rows have an invalid value (not one of Successful, Unsuccessful, Unsure) (row 4; row 5)"
        in finding.message
    )


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"PAR1" + b"x" * 20 + b"PAR1", "invalid_parquet"),
        (b"trajectory_success\nyes\n", "invalid_annotations"),
        (b"trajectory_success,\xff\n", "wrong_encoding"),
        (b"trajectory_id,success\na/b/1,maybe\n", "unknown_word"),
        (b"trajectory_id,success\na/b/1,nan\n", "nan"),
        (b"trajectory_id,human,success\na/b/1,yes,no\n", "several_labels"),
        (b"\x89PNG", "not_text"),
    ],
)
def test_labels_that_cannot_be_read_are_a_finding(content, code):
    _, findings = read_predictions(content, reader=OUTCOME_LABELS)
    assert [finding.code for finding in findings if finding.level == "error"] == [code]


def test_more_rows_of_annotations_than_the_limit_are_refused():
    _, (finding,) = read_outcome_labels(write_released(TWICE).encode(), ReadingLimits(max_rows=3))
    assert finding.code == "too_many_rows"


def test_a_file_of_a_suite_with_its_own_questions_and_without_others_has_labels_of_success():
    text = "benchmark,model_name,task_id,trajectory_success,tone\nshop,a,1,Successful,rude\n"
    table, findings = read_outcome_labels(text.encode(), ReadingLimits())
    assert findings == [] and (table.trajectory_ids, table.targets["success"].tolist()) == (
        ("shop/a/1",),
        [1],
    )


def test_a_second_column_of_verdicts_is_refused():
    table, (finding,) = read_outcome_verdicts(
        b"trajectory_id,success,Verdict\na/b/1,yes,no\n", ReadingLimits()
    )
    assert (table, finding.level, finding.code) == (None, "error", "several_verdicts")
    assert finding.message == "has several columns of verdicts: success, Verdict. Keep one of them."


@pytest.mark.parametrize(
    ("read", "columns", "kind"),
    [
        (read_outcome_labels, "human,label", "labels"),
        (read_outcome_labels, "Success,human", "labels"),
        (read_outcome_verdicts, "prediction,verdict", "verdicts"),
    ],
)
def test_two_usual_columns_are_refused_if_none_is_the_outcome_too(read, columns, kind):
    table, (finding,) = read(f"trajectory_id,{columns}\na/b/1,yes,no\n".encode(), ReadingLimits())
    assert (table, finding.code) == (None, f"several_{kind}")
    listed = columns.replace(",", ", ")
    assert finding.message == f"has several columns of {kind}: {listed}. Keep one of them."


def test_a_score_next_to_verdicts_under_a_usual_name_is_no_second_column_of_verdicts():
    text = b"trajectory_id,score,verdict,answer\na/b/1,1,no,Oslo\n"
    table, findings = read_outcome_verdicts(text, ReadingLimits())
    assert (findings, table.targets["success"].tolist()) == ([], [0])


def test_scores_and_texts_next_to_verdicts_are_no_second_column_of_verdicts():
    text = b"trajectory_id,success,score,answer,reward\na/b/1,yes,1,Oslo,0.5\na/b/2,no,0,no,1\n"
    table, findings = read_outcome_verdicts(text, ReadingLimits())
    assert [each.code for each in findings] == ["unknown_columns"]  # a warning
    assert table.targets["success"].tolist() == [1, 0]


def test_columns_without_labels_or_of_another_target_are_no_second_column_of_labels():
    text = b"trajectory_id,success,expected,target\na/b/1,yes,Oslo,\na/b/2,no,no,\n"
    table, findings = read_outcome_labels(text, ReadingLimits())
    assert [each.code for each in findings] == ["unknown_columns"]  # a warning
    assert table.targets["success"].tolist() == [1, 0]
