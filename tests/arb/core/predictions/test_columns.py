"""The columns of prediction files: one per target, with words, levels and advice of the suite."""

import numpy as np

from arb.core.predictions import read_predictions
from arb.core.predictions.columns import column_of, prediction_columns
from arb.core.predictions.parser_pool import ParserPool
from arb.core.predictions.raw import ReadingLimits
from arb.core.suites.targets import parse_targets

TARGETS = parse_targets(
    [
        {"name": "final", "values": ["1", "0", "-1"], "positive": ["1"]},
        {"name": "verdict", "level": "step", "values": ["1", "0", "-1"], "errors": ["-1"]},
        {"name": "points", "type": "score"},
    ]
)
LIMITS = ReadingLimits(targets=TARGETS)


def test_agent_reward_bench_has_a_column_for_each_target_and_two_required_ones():
    columns = prediction_columns()
    assert list(columns) == [
        "trajectory_id", "success", "side_effect", "repetition", "optimality", "score", "state", "reasoning",
        "cost_usd", "input_tokens", "output_tokens", "latency_s",
    ]  # fmt: skip
    assert [name for name, column in columns.items() if column.is_required] == ["trajectory_id", "success"]
    assert column_of("looping", columns) == "repetition"


def test_a_suite_with_steps_has_a_column_for_their_numbers():
    assert list(prediction_columns(TARGETS))[:5] == ["trajectory_id", "step", "final", "verdict", "points"]


def test_each_target_is_read_in_its_own_words():
    rows = (
        '{"trajectory_id": "a/b/1", "final": -1, "points": -2.5}\n'
        '{"trajectory_id": "a/b/1", "step": 3, "verdict": "-1"}\n'
        '{"trajectory_id": "a/b/1", "step": "5", "verdict": 1.0}\n'
    )
    table, findings = read_predictions(rows.encode(), LIMITS)
    assert findings == [] and table.step == (None, "3", "5")
    assert table.codes("final").tolist() == [0, -1, -1]  # -1 is not a positive value
    assert table.codes("verdict").tolist() == [-1, 2, 0]  # the places of -1 and 1 among the values
    assert table.targets["points"].tolist()[0] == -2.5


def test_a_word_of_another_target_is_named_with_what_to_write():
    _, findings = read_predictions(b"trajectory_id,step,final,verdict\na/b/1,,2,\na/b/1,3,,maybe\n", LIMITS)
    assert [(finding.column, finding.code) for finding in findings] == [
        ("final", "out_of_range"),
        ("verdict", "unknown_word"),
    ]
    assert "Write 1, 0, -1 or null" in findings[1].message


def test_another_process_reads_the_same_columns_and_scores():
    content = b"trajectory_id,step,final,verdict,points\na/b/1,,1,,-2.5\na/b/1,3,,0,\n"
    here, findings = read_predictions(content, LIMITS)
    with ParserPool(1) as pool:
        there, findings_there = read_predictions(content, LIMITS, pool, isolated=True)
    assert findings == findings_there == []
    for name, codes in here.targets.items():
        np.testing.assert_array_equal(there.targets[name], codes)
        assert there.targets[name].dtype == codes.dtype
