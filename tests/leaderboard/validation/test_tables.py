"""Tables with any columns and spellings, and messages that name file, row and column."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from arb.__main__ import app
from leaderboard.labels.annotations import write_parquet, write_released
from leaderboard.validation.parsing import parse_table, read_table
from leaderboard.validation.tables import (
    Columns,
    NamedTable,
    TableError,
    as_answer,
    read_one,
    read_several,
)
from tests.conftest import REPOSITORY
from tests.support.annotations import IDS, annotation


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
    with pytest.raises(TableError, match="name one with --id COLUMN"):
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
    assert "runs.csv, column verdict: row 2 has 'maybe'; row 4 has '2'" in message
    assert "runs.csv, column label: row 3 is a score; a label is yes or no" in message
    assert "runs.csv, column weight: rows 3, 4 need a weight above 0" in message
    assert "column id: 1 id with several rows, such as a" in message


def test_rows_of_json_lines_are_numbered_from_1_and_of_csv_as_in_a_spreadsheet():
    rows = '{"label": "yes", "verdict": "maybe"}\n{"label": "no", "verdict": "no"}\n'
    named = Columns(labels=("label",), verdicts=("verdict",))
    assert "verdict: row 1 has 'maybe'" in problem(read_one, table(rows), named)
    # The header is row 1, and a blank line counts.
    assert "verdict: row 3 has 'maybe'" in problem(read_one, table("label,verdict\n\nyes,maybe\n"), named)


def test_columns_that_could_be_meant_are_named():
    with pytest.raises(
        TableError, match=r"several columns are possible \(alpha, beta\); name one with --label COLUMN"
    ):
        read_one(table("alpha,beta\nyes,no\nno,no\n"), Columns())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "an empty file"),
        (b"a,b\n1\n", "these rows do not have the 2 cells of the header: 2"),
        (b"a,a\n1,0\n", "several columns are called a"),
        (b"{\n", "line 1 is not JSON .*; write one object per line"),
        (b"\x1f\x8b\x08", "compressed with gzip; unpack it"),
        (b"[" * 100_000, "not a JSON array"),
        (b'{"a": ' * 100_000, "line 1 is not JSON"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"PAR1 and nothing else", "cannot be read as Parquet"),
        (b'["a"]', "one JSON object per row"),
    ],
)
def test_what_is_no_table_is_refused_in_one_sentence(content, message):
    with pytest.raises(ValueError, match=message):
        parse_table(content)


def test_each_table_may_have_its_own_usual_name_for_ids_and_spell_them_differently():
    labels = table("id,label\nvisualwebarena/A/visualwebarena.resized.7,yes\nweb/A/1,no\n", "labels.csv")
    judge = table("run_id,verdict\nvisualwebarena/A/visualwebarena.7,yes\nweb/A/1,yes\n", "judge.csv")
    found = read_several(labels, [judge], Columns())
    assert found.ids[0] == "visualwebarena/A/visualwebarena.resized.7"
    assert found.judges[0].verdicts.tolist() == [1, 1] and found.unlabelled == 0


EXPORTS = {
    "Phoenix": (
        "span_id,annotation_name,annotator_kind,result.label,result.score,identifier\n",
        "{id},correctness,{kind},{word},{answer}.0,\n",
        ("--id", "span_id", "--label", "result.score", "--verdict", "result.score"),
    ),
    "Langfuse": (
        "id,trace_id,observation_id,name,value,source,data_type,string_value\n",
        "score-{kind}-{id},{id},,correctness,{answer},{kind},BOOLEAN,{word}\n",
        ("--id", "trace_id", "--label", "value", "--verdict", "value"),
    ),
}


@pytest.mark.parametrize("tool", EXPORTS)
def test_exports_of_other_tools_work_with_the_options_in_the_docs(tool, tmp_path):
    header, row, options = EXPORTS[tool]
    assert " ".join(options) in (REPOSITORY / "docs" / "validate.md").read_text()
    for kind, answers in (("HUMAN", [1, 0, 1, 0]), ("LLM", [1, 1, 1, 0])):
        cells = [{"id": f"x{n}", "kind": kind, "answer": a, "word": bool(a)} for n, a in enumerate(answers)]
        (tmp_path / f"{kind}.csv").write_text(header + "".join(row.format(**each) for each in cells))
    call = ["--labels", tmp_path / "HUMAN.csv", "--verdicts", tmp_path / "LLM.csv", *options, "--json"]
    done = CliRunner().invoke(app, ["validate", *map(str, call)])
    (judge,) = json.loads(done.stdout)["judges"]
    assert [judge[name] for name in ("tp", "fp", "fn", "tn")] == [2, 1, 0, 1]


def test_a_table_of_langsmith_has_labels_and_verdicts_in_one():
    export = "input.question,outputs.answer,reference.success,feedback.correctness,error,id\n"
    found = read_one(
        table(export + "q,a,True,1.0,,u1\nq,b,False,1.0,,u2\n"),
        Columns(labels=("reference.success",), verdicts=("feedback.correctness",)),
    )
    assert found.truth.tolist() == [1, 0] and found.judges[0].verdicts.tolist() == [1, 1]


def test_annotations_are_a_table_of_labels_in_which_the_first_of_a_run_counts():
    rows = [annotation(0, "A", "yes"), annotation(0, "B", "no"), annotation(1, "A", "unsure")]
    for content in (write_released(rows).encode(), write_parquet(rows)):
        frame = parse_table(content)
        assert frame["trajectory_id"].tolist() == list(IDS[:2])
        assert as_answer(frame["success"][0]) == 1 and np.isnan(as_answer(frame["success"][1]))


def test_a_header_with_separators_in_quotes_is_read_by_the_others():
    assert parse_table(b'"a;b;c;d",label\n1,yes\n').columns.tolist() == ["a;b;c;d", "label"]


def problem(read, *arguments):
    with pytest.raises(ValueError) as caught:
        read(*arguments)
    return str(caught.value)


def test_a_column_with_a_usual_name_and_other_words_is_reported_instead_of_another_column():
    found = table("run;label;verdict;score\na;ja;yes;0.1\nb;nein;no;0.9\n")
    said = problem(read_one, found, Columns())
    assert said.startswith("t.csv, column label: row 2 has 'ja'; row 3 has 'nein'. Write yes or no")


def test_repeated_ids_are_named_with_their_file_although_the_judge_has_another_name():
    labels, verdicts = table("id,label\na,1\nb,0\n"), table("id,verdict\na,1\nb,0\nb,1\n", "v.csv")
    said = problem(read_several, labels, [replace(verdicts, judge="GPT")], Columns())
    assert said.startswith("v.csv, column id: 1 id with several rows, such as b; keep one row of each")


def test_all_columns_that_do_not_exist_are_named_at_once():
    columns = Columns(("i",), ("l",), ("v",), "g", ("b",), "w")
    said = problem(read_one, table("id,human,judge\na,1,0\n"), columns)
    options = [line.partition("; correct ")[2].partition(" ")[0] for line in said.splitlines()]
    assert options == ["--id", "--label", "--group", "--by", "--weights", "--verdict"]


def test_a_column_cannot_be_label_and_verdict_and_a_verdict_named_twice_counts_once():
    found = table("id,human,judge\na,1,0\n")
    said = problem(read_one, found, Columns((), ("human",), ("human", "judge")))
    assert said == "t.csv: human cannot be both --label and --verdict; change one"
    read = read_one(found, Columns((), ("human",), ("judge", "judge")))
    assert [judge.name for judge in read.judges] == ["judge"]


def test_cells_may_be_long_but_rows_have_to_fit_the_header_and_quotes_have_to_close():
    long = table(f"id,label,verdict,why\na,1,0,{'x' * 300_000}\n")
    assert read_one(long, Columns()).truth.tolist() == [1]
    assert problem(table, "a,b\n1\n2,3\n\n4,5,6\n") == (
        "these rows do not have the 2 cells of the header: 2, 5; correct them"
    )
    assert problem(table, 'a,b\n1,2\n"3,4\n').startswith("line 3 cannot be read as CSV (")


def test_tables_without_a_common_id_are_refused_with_ids_of_both():
    labels, verdicts = (
        table("id,label\n1,yes\n2,no\n", "l.csv"),
        table("id,verdict\n1.0,yes\n2.0,no\n", "v.csv"),
    )
    found = problem(read_several, labels, [verdicts], Columns())
    assert "v.csv has no row for any id of l.csv: it has 1.0, 2.0; l.csv has 1, 2" in found


def test_rows_with_an_empty_id_are_refused_instead_of_joined():
    texts = pd.DataFrame({"id": ["a", None], "label": ["yes", "no"]})
    verdicts = table("id,verdict\na,yes\n ,no\n,no\n", "v.csv")
    found = problem(read_several, NamedTable("l", texts), [verdicts], Columns())
    assert "l, column id: 1 empty cell (row 2)" in found
    assert "v.csv, column id: 2 empty cells (row 3, 4)" in found and "several rows" not in found


@pytest.mark.parametrize("word", ["None", "nan", "<NA>"])
def test_a_word_for_nothing_is_a_value_of_ids_and_groups(word):
    text = f"id,label,verdict,task\n{word},yes,yes,{word}\nb,no,no,t\n"
    found = read_one(table(text), Columns(ids=("id",), group="task"))
    assert found.ids == (word, "b") and sorted(found.groups.tolist()) == [0, 1]
    twice = table(f"id,label,verdict\n{word},yes,yes\n{word},no,no\n")
    assert f"1 id with several rows, such as {word}" in problem(read_one, twice, Columns(ids=("id",)))


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT, " "])
def test_a_missing_value_is_an_empty_cell(missing):
    rows = [("yes", "yes", "t"), ("no", "no", missing)]
    frame = pd.DataFrame(rows, columns=["label", "verdict", "task"], dtype=object)
    found = problem(read_one, NamedTable("t", frame), Columns(group="task"))
    assert "t, column task: 1 empty cell (row 2)" in found


def test_rows_without_a_group_are_refused_unless_they_have_no_label():
    text = "label,verdict,task\nyes,yes,t1\n,no,\nno,no,t2\n"
    assert read_one(table(text), Columns(group="task")).groups.tolist() == [0, 1]
    found = problem(read_one, table(text + "no,no,\nyes,no, \n"), Columns(group="task"))
    assert "t.csv, column task: 2 empty cells (row 5, 6)" in found


def test_rows_of_one_table_have_the_ids_of_its_usual_column_or_else_the_row_numbers_of_messages():
    texts = "run,label,verdict\nx,yes,yes\ny,no,no\n"
    assert read_one(table(texts), Columns()).ids == ("x", "y")
    assert read_one(table(texts.replace("y,no", "x,no")), Columns()).ids == ("2", "3")  # the header is row 1


def test_integers_of_an_id_stay_integers_next_to_a_column_of_floats():
    frame = pd.DataFrame({"id": [1, 2], "trial": [0.5, 1.5], "label": [1, 0], "verdict": [1.0, -1.0]})
    found = read_one(NamedTable("t", frame), Columns(ids=("id", "trial")))
    assert found.ids == ("1/0.5", "2/1.5")
    assert found.judges[0].verdicts.tolist() == [1, -1]  # -1 is no verdict, also as a float


def test_an_excel_workbook_is_refused_with_how_to_save_it():
    assert "an Excel workbook; in Excel, use" in problem(parse_table, b"PK\x03\x04" + b"x" * 40)
