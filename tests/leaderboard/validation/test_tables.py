"""Tables with any columns and spellings, and messages that name file, row and column."""

import json

import numpy as np
import pandas as pd
import pytest

from leaderboard.validation.parsing import parse_table, read_table
from leaderboard.validation.tables import (
    Columns,
    NamedTable,
    TableError,
    as_answer,
    read_one,
    read_several,
)


def table(text: str, name: str = "t.csv") -> NamedTable:
    return NamedTable(name, parse_table(text.encode()))


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_csv_is_read_with_any_separator(separator):
    text = "id,human,judge\na,yes,no\nb,fail,1\n".replace(",", separator)
    found = read_one(table("\ufeff" + text), Columns())
    assert found.truth.tolist() == [1, 0] and found.judges[0].verdicts.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("yes", 1),
        ("Pass", 1),
        ("SUCCESS", 1),
        (True, 1),
        (1, 1),
        ("no", 0),
        ("failure", 0),
        (0.0, 0),
        ("0.25", 0.25),
    ],
)
def test_answers_are_read_in_many_spellings(cell, expected):
    assert as_answer(cell) == expected


def test_an_empty_cell_is_missing_and_another_word_is_no_answer():
    assert np.isnan(as_answer("")) and np.isnan(as_answer(None)) and np.isnan(as_answer("unsure"))
    assert as_answer("maybe") is None and as_answer("7") is None


def test_jsonl_json_and_parquet_are_read(tmp_path):
    rows = [{"id": "a", "label": True, "score": 0.9}, {"id": "b", "label": False, "score": 0.2}]
    frame = pd.DataFrame(rows)
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "t.json").write_text(json.dumps(rows))
    frame.to_parquet(tmp_path / "t.parquet")
    for name in ("t.jsonl", "t.json", "t.parquet"):
        found = read_one(read_table(tmp_path / name), Columns())
        assert found.truth.tolist() == [1, 0] and found.judges[0].scores.tolist() == [0.9, 0.2], name


def test_tables_are_joined_by_the_column_that_identifies_rows_in_all():
    labels = table("run_id,task,label\nr1,t1,yes\nr2,t1,no\nr3,t2,\n", "labels.csv")
    judge = table("run_id,verdict\nr2,yes\nr1,yes\nr9,no\n", "judge.csv")
    found = read_several(labels, [judge], Columns(group="task"))
    assert (found.ids, found.truth.tolist()) == (("r1", "r2"), [1, 0])
    assert found.judges[0].verdicts.tolist() == [1, 1]
    assert found.unlabelled == 2  # r3 has an empty label, r9 is in no row of labels
    assert found.groups.tolist() == [0, 0]


def test_several_columns_may_identify_a_row():
    labels = table("agent,task,label\nA,1,yes\nA,2,no\nB,1,no\n")
    judge = table("agent,task,verdict\nB,1,1\nA,1,1\nA,2,0\n")
    with pytest.raises(TableError, match="add --id COLUMN"):
        read_several(labels, [judge], Columns())
    found = read_several(labels, [judge], Columns(ids=("agent", "task")))
    assert found.ids == ("A/1", "A/2", "B/1") and found.judges[0].verdicts.tolist() == [1, 0, 1]


def test_all_problems_are_named_at_once_with_file_row_and_column():
    text = "id,label,verdict,weight\na,yes,maybe,1\nb,0.5,no,0\na,no,2,x\n"
    with pytest.raises(TableError) as refused:
        read_one(
            table(text, "runs.csv"),
            Columns(ids=("id",), labels=("label",), verdicts=("verdict",), weights="weight"),
        )
    message = str(refused.value)
    assert "runs.csv, column verdict: row 1 has 'maybe'; row 3 has '2'" in message
    assert "runs.csv, column label: row 2 is a score; a label is yes or no" in message
    assert "runs.csv, column weight: rows 2, 3 need a weight above 0" in message
    assert "1 ids have several rows, such as a" in message


def test_columns_that_could_be_meant_are_named():
    with pytest.raises(TableError, match="any of alpha, beta could be meant; add --label COLUMN"):
        read_one(table("alpha,beta\nyes,no\nno,no\n"), Columns())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"a,b\n1\n", "rows 2 do not have the 2 cells"),
        (b"a,a\n1,0\n", "several columns called a"),
        (b"{\n", "line 1 is not JSON"),
        (b"[" * 100_000, "is not a JSON array"),
        (b'{"a": ' * 100_000, "line 1 is not JSON"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"PAR1 and nothing else", "cannot be read as Parquet"),
        (b'["a"]', "one JSON object per row"),
    ],
)
def test_what_is_no_table_is_refused_in_one_sentence(content, message):
    with pytest.raises(ValueError, match=message):
        parse_table(content)
