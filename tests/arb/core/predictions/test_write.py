import json
import stat

import pytest

from arb.core.predictions import read_predictions
from arb.core.predictions.write import write_predictions

ROW = {"trajectory_id": "a/b/c", "success": True}


def test_rows_are_written_in_the_vocabularys_column_order(tmp_path):
    path = tmp_path / "out.jsonl"
    assert (
        write_predictions(path, iter([{"score": 0.5, "success": None, "trajectory_id": "a/b/c"}, ROW])) == 2
    )
    first, second = path.read_text().splitlines()
    assert first == '{"trajectory_id": "a/b/c", "success": null, "score": 0.5}'
    assert json.loads(second) == ROW


def test_what_is_written_reads_back(tmp_path):
    path = tmp_path / "out.jsonl"
    said = "naïve\u2028line 😀 and half a pair \ud800"
    write_predictions(path, [ROW | {"reasoning": said, "repetition": False}, ROW | {"reasoning": "naïve"}])
    table, findings = read_predictions(path.read_bytes())
    assert (findings, table.rows, table.targets["repetition"].tolist()) == ([], 2, [0, -1])
    assert [json.loads(line)["reasoning"] for line in path.read_text().split("\n")[:2]] == [said, "naïve"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"trajectory_id": "a/b/c"}, "row 2: 'success' is missing"),
        (ROW | {"sucess": 1}, "row 2: 'sucess' is not a prediction column"),
        (ROW | {"score": float("nan")}, "row 2: 'score' is nan"),
        (ROW | {"reasoning": object}, "row 2: 'reasoning' is"),
    ],
)
def test_a_row_that_cannot_be_read_back_is_refused_and_nothing_is_left(tmp_path, row, said):
    path = tmp_path / "out.jsonl"
    path.write_text("what was there")
    with pytest.raises(ValueError, match=said):
        write_predictions(path, [ROW, row])
    assert path.read_text() == "what was there"
    assert [p.name for p in tmp_path.iterdir()] == ["out.jsonl"]


def test_a_writer_that_is_interrupted_leaves_the_old_file(tmp_path):
    path = tmp_path / "out.jsonl"
    path.write_text("what was there")

    def rows():
        yield ROW
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_predictions(path, rows())
    assert path.read_text() == "what was there"
    assert [p.name for p in tmp_path.iterdir()] == ["out.jsonl"]


def test_the_file_has_the_rights_of_any_new_file(tmp_path):
    path, usual = tmp_path / "out.jsonl", tmp_path / "usual"
    write_predictions(path, [ROW])
    usual.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(usual.stat().st_mode)
