import pytest

from arb.core.predictions import read_predictions
from arb.core.predictions.raw import ReadingLimits


def read(text: str, limits: ReadingLimits | None = None):
    table, findings = read_predictions(text.encode(), limits)
    return table, {finding.code: finding for finding in findings}


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_delimiter_is_found_in_the_header(delimiter):
    text = "trajectory_id|success|score\na/b/c|Yes|0.5\na/b/d|No|\n".replace("|", delimiter)
    table, found = read(text)
    assert found == {}
    assert table.targets["success"].tolist() == [1, 0]
    assert table.score[0] == 0.5


def test_rows_are_numbered_as_a_spreadsheet_shows_them():
    # Row 1 is the header, row 2 holds a quoted line end (two physical lines), row 3 is blank, row 4 is bad.
    table, found = read('trajectory_id,success,reasoning\na/b/c,1,"two\nlines"\n\na/b/d,perhaps,\n')
    assert table.row_numbers.tolist() == [2, 4]
    assert found["unknown_word"].rows == (4,)
    assert found["blank_rows"].rows == (3,)


def test_empty_rows_that_spreadsheets_leave_at_the_end_are_nothing():
    table, found = read("trajectory_id,success\na/b/c,1\n,\n,\n\n")
    assert (table.rows, found) == (1, {})


def test_a_row_with_another_number_of_fields_is_named_and_left_out():
    table, found = read("trajectory_id,success\na/b/c,1\na/b/d\na/b/e,1,2\na/b/f,0\n")
    assert found["field_count"].rows == (3, 4)
    assert "row 3: 1; row 4: 3" in found["field_count"].message
    assert table.trajectory_ids == ("a/b/c", "a/b/f")


def test_a_quote_that_is_not_closed_is_named_and_no_row_is_read():
    table, found = read('trajectory_id,success\na/b/c,what\na/b/d,"1\na/b/e,1\n')
    assert (table, list(found)) == (None, ["broken_quotes"])
    assert found["broken_quotes"].rows == (3,)
    assert "row 3, which starts on line 3" in found["broken_quotes"].message


def test_a_cell_over_the_limit_is_named():
    limits = ReadingLimits(max_cell_chars=131_072)
    _, found = read(f"trajectory_id,success,reasoning\na/b/c,1,{'x' * 250_000}\n", limits)
    assert {"broken_quotes", "cell_too_long"} & set(found)


def test_long_reasoning_within_the_limit_is_read():
    # 150,000 characters: over the csv module's own bound of 131,072, under ours of 200,000.
    table, found = read(f"trajectory_id,success,reasoning\na/b/c,1,{'x' * 150_000}\n")
    assert (table.rows, found) == (1, {})


def test_a_header_that_names_a_column_twice_is_an_error():
    _, found = read("trajectory_id,success,success\na/b/c,1,0\n")
    assert (found["duplicate_column"].column, found["duplicate_column"].level) == ("success", "error")


def test_for_a_file_without_a_header_the_missing_columns_are_named():
    table, findings = read_predictions(b"a/b/c,1\na/b/d,0\n")
    assert table is None
    missing = [finding.column for finding in findings if finding.code == "missing_column"]
    assert missing == ["trajectory_id", "success"]


@pytest.mark.parametrize("text", ["trajectory_id,success\n", "trajectory_id,success\n\n,\n"])
def test_a_header_alone_is_no_file(text):
    table, found = read(text)
    assert table is None
    assert "no_rows" in found


def test_space_around_names_and_quotes_around_cells_are_understood():
    table, found = read('"trajectory_id" , success \n"a/b/c" ,1\n'.replace('" ,', '",'))
    assert (table.rows, table.targets["success"].tolist(), found) == (1, [1], {})


def test_more_rows_than_the_limit_are_refused():
    table, found = read("trajectory_id,success\n" + "a/b/c,1\n" * 3, ReadingLimits(max_rows=2))
    assert (table, list(found)) == (None, ["too_many_rows"])
    table, _ = read("trajectory_id,success\n" + "a/b/c,1\n" * 2, ReadingLimits(max_rows=2))
    assert table.rows == 2


@pytest.mark.parametrize(
    ("word", "code"), [("nan", "nan"), ("inf", "infinite"), ("1,5", "wrong_type"), ("-1", "out_of_range")]
)
def test_number_cells_are_judged_by_their_text(word, code):
    _, found = read(f'trajectory_id;success;cost_usd\na/b/c;1;0.1\na/b/d;1;"{word}"\n')
    assert (found[code].rows, found[code].column) == ((3,), "cost_usd")
