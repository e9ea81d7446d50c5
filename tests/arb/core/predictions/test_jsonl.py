import json

import pytest

from arb.core.predictions import read_predictions
from arb.core.predictions.raw import ReadingLimits

GOOD = {"trajectory_id": "a/b/c", "success": True}


def read(*lines: str, limits: ReadingLimits | None = None):
    table, findings = read_predictions("\n".join(lines).encode(), limits)
    return table, {finding.code: finding for finding in findings}


def good(**more: object) -> str:
    return json.dumps(GOOD | more)


def test_row_numbers_are_line_numbers():
    table, found = read(good(), "", "  ", good(), "", "")
    assert table.row_numbers.tolist() == [1, 4]
    # blank lines between rows are named, those at the end are nothing
    assert (found["blank_rows"].rows, found["blank_rows"].level) == ((2, 3), "warning")


def test_a_bad_line_is_named_and_the_rest_is_read():
    table, found = read(good(), "{broken", good(), "[1]", '"text"', good(success=None))
    assert table.row_numbers.tolist() == [1, 3, 6]
    assert table.targets["success"].tolist() == [1, 1, -1]
    assert found["invalid_json"].rows == (2,)
    assert found["not_an_object"].rows == (4, 5)


def test_for_a_json_array_the_finding_says_how_to_write_json_lines():
    table, found = read("[", good() + ",", good(), "]")
    assert table is None
    assert list(found) == ["json_array"]
    assert "one object on each line" in found["json_array"].message


def test_a_key_written_twice_is_an_error():
    table, found = read('{"trajectory_id": "a/b/c", "success": true, "success": false}', good())
    assert found["duplicate_key"].rows == (1,)
    assert "'success'" in found["duplicate_key"].message
    assert table.rows == 2


@pytest.mark.parametrize(
    ("literal", "code"), [("NaN", "nan"), ("Infinity", "infinite"), ("-Infinity", "infinite")]
)
@pytest.mark.parametrize("column", ["success", "repetition", "optimality", "score", "cost_usd", "latency_s"])
def test_literals_that_are_no_json_are_named_in_every_verdict_and_number_column(literal, code, column):
    row = '{"trajectory_id": "a/b/c", "success": null, "%s": %s}' if column != "success" else None
    line = row % (column, literal) if row else f'{{"trajectory_id": "a/b/c", "success": {literal}}}'
    _, found = read(good(), line)
    assert (found[code].rows, found[code].column) == ((2,), column)


@pytest.mark.parametrize(
    "line",
    [
        '{"a":' * 200_000 + "1" + "}" * 200_000,
        '{"success": ' + "[" * 50_000,
        '{"success": ' + "1" * 5_000 + "}",
    ],
)
def test_nesting_and_digits_without_end_are_a_finding(line):
    table, found = read(good(), line)
    assert found["invalid_json"].rows == (2,)
    assert table.rows == 1


def test_success_may_be_null_but_must_be_written():
    table, found = read(good(), '{"trajectory_id": "a/b/d"}', good(success=None))
    assert (found["missing_key"].rows, found["missing_key"].column) == ((2,), "success")
    assert table.targets["success"].tolist() == [1, -1, -1]


def test_an_optional_column_may_be_there_in_some_rows():
    table, found = read(good(side_effect="Yes"), good())
    assert table.targets["side_effect"].tolist() == [1, -1]
    assert "repetition" not in table.targets
    assert found == {}


def test_looping_is_repetition_and_both_are_an_error():
    table, found = read(good(looping=True), good(looping="No"))
    assert table.targets["repetition"].tolist() == [1, 0]
    assert found == {}
    _, found = read(good(looping=True, repetition=True))
    assert (found["duplicate_column"].column, found["duplicate_column"].level) == ("repetition", "error")


def test_every_unknown_column_is_in_one_warning():
    table, found = read(good(judge="x"), good(Success=1), good(**{"\x1b[31m[red]": 1}))
    warning = found["unknown_columns"]
    assert (warning.level, warning.count) == ("warning", 3)
    assert "did you mean success?" in warning.message
    assert "\x1b" not in warning.message
    assert table.rows == 3


def test_a_required_column_that_is_nowhere_is_one_error():
    _, found = read('{"trajectory_id": "a/b/c", "sucess": true}')
    assert found["missing_column"].column == "success"
    assert "'sucess'" in found["missing_column"].message


def test_bounds_on_rows_and_columns_hold():
    table, found = read(good(), good(), good(), limits=ReadingLimits(max_rows=2))
    assert (table, list(found)) == (None, ["too_many_rows"])
    _, found = read(good(**{f"k{i}": 1 for i in range(99)}))
    assert found["too_many_columns"].count == 101  # 99 and the two required


def test_a_text_over_the_cell_limit_is_an_error():
    limits = ReadingLimits(max_cell_chars=10)
    _, found = read(good(reasoning="x" * 10), good(reasoning="x" * 11), limits=limits)
    assert (found["cell_too_long"].rows, found["cell_too_long"].column) == ((2,), "reasoning")


def test_line_separators_of_unicode_inside_text_do_not_end_a_row():
    table, found = read(json.dumps(GOOD | {"reasoning": "a\u2028b\u0085c"}, ensure_ascii=False), good())
    assert (table.rows, found) == (2, {})
