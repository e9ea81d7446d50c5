import io
import json

from hypothesis import given
from hypothesis import strategies as st

from dataset_script.prediction_file.container import recognise
from dataset_script.prediction_file.excerpts import LONGEST, excerpt, row_texts
from dataset_script.prediction_file.findings import Finding
from dataset_script.prediction_file.read import read_predictions


def test_a_row_of_jsonl_is_its_line_blank_lines_counted():
    content = b'\xef\xbb\xbf{"trajectory_id": "a"}\r\n\r\n{"trajectory_id": "b"}\r\n'
    assert row_texts(content, "jsonl", [1, 3]) == {1: '{"trajectory_id": "a"}', 3: '{"trajectory_id": "b"}'}
    assert row_texts(content, "jsonl", [9]) == row_texts(content, "jsonl", []) == {}


def test_a_row_of_csv_is_its_record_even_when_it_takes_several_lines():
    content = b'trajectory_id;success\na;"two\nlines"\nb;maybe\n'
    assert row_texts(content, "csv", [2, 3]) == {2: 'a,"two\nlines"', 3: "b,maybe"}


def test_rows_after_quotes_that_break_are_left_out():
    assert row_texts(b'trajectory_id,success\na,true\n"b,x\nc,true\n', "csv", [2, 4]) == {2: "a,true"}


def test_of_parquet_the_ids_are_shown():
    import pandas as pd

    out = io.BytesIO()
    pd.DataFrame({"trajectory_id": ["a", "b"], "success": [True, False]}).to_parquet(out)
    assert row_texts(out.getvalue(), "parquet", [2]) == {2: "b"}


def test_a_long_row_is_cut_around_the_column_that_is_meant():
    row = json.dumps({"trajectory_id": "a", "reasoning": "x" * 5000, "success": "maybe", "model": "y" * 900})
    plain = excerpt(row)
    assert plain.startswith('{"trajectory_id": "a"') and plain.endswith("x…") and len(plain) == LONGEST + 1
    cut = excerpt(row, around="success")
    assert '"success": "maybe"' in cut and cut[0] == cut[-1] == "…" and len(cut) == LONGEST + 2


def test_marks_that_would_turn_the_text_around_are_spelled():
    # U+202E turns what follows from right to left; U+001B begins a terminal's commands.
    assert excerpt("a\u202eb\x1b[2J") == "a\\u202eb\\x1b[2J"


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_whatever_a_finding_names_can_be_asked_for(content):
    file_format = recognise(content)
    if isinstance(file_format, Finding) or file_format == "parquet":
        return
    _, findings = read_predictions(content)
    rows = {row for finding in findings for row in finding.rows}
    for text in row_texts(content, file_format, rows).values():
        assert excerpt(text, around="success").isprintable()
