import io
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dataset_script.prediction_file import parquet_apart
from dataset_script.prediction_file.parquet import read_parquet
from dataset_script.prediction_file.parquet_apart import read_parquet_apart
from dataset_script.prediction_file.read import ReadingLimits, read_predictions

LIMITS = ReadingLimits()


def parquet(**columns) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer, store_schema=False)
    return buffer.getvalue()


def codes(answer) -> list[str]:
    table, findings = answer
    assert table is None
    return [finding.code for finding in findings]


def test_what_comes_back_is_what_was_read():
    content = parquet(
        trajectory_id=pa.array([b"a/b/c", b"\xff", None]),
        success=[True, None, False],
        score=[0.1, float("nan"), float("inf")],
        input_tokens=[1, 0, 2**62],
        extra=["x"] * 3,
    )
    here, there = read_parquet(content, LIMITS), read_parquet_apart(content, LIMITS)
    assert repr(here) == repr(there)  # nan is not equal to itself, its spelling is
    assert there[0].columns["trajectory_id"] == ["a/b/c", b"\xff", None]
    assert [value.__class__ for value in there[0].columns["input_tokens"]] == [int] * 3


def test_the_limits_go_along():
    content = parquet(trajectory_id=["a/b/c"] * 3, success=[True] * 3)
    assert codes(read_parquet_apart(content, ReadingLimits(max_rows=2))) == ["too_many_rows"]


def test_a_file_that_kills_the_library_is_a_finding():
    content = parquet(trajectory_id=["a/b/c"], success=[True])
    # The footer's "optional" (zigzag 2) of the first column becomes a repetition that does not exist.
    optional = b"\x25\x02\x18\x0dtrajectory_id"
    assert content.count(optional) == 1
    killer = content.replace(optional, b"\x25\x03\x18\x0dtrajectory_id")
    assert codes(read_predictions(killer)) == ["invalid_parquet"]


def test_a_long_value_that_every_row_points_at_comes_back_once():
    # 50,000 rows x 1 MB would be 50 GB.
    long = pa.DictionaryArray.from_arrays(pa.array([0] * 50_000), ["x" * 1_000_000])
    table, findings = read_predictions(parquet(trajectory_id=long, success=[True] * 50_000))
    assert table.rows == 50_000
    assert [(finding.code, finding.count) for finding in findings] == [("cell_too_long", 50_000)]
    assert table.trajectory_ids[0] is table.trajectory_ids[-1]


def test_a_reader_that_takes_too_long_is_stopped(monkeypatch):
    monkeypatch.setattr(parquet_apart, "_PROGRAM", "import time; time.sleep(60)")
    monkeypatch.setattr(parquet_apart, "_MAX_SECONDS", 0.5)
    started = time.monotonic()
    assert codes(read_parquet_apart(b"PAR1", LIMITS)) == ["invalid_parquet"]
    assert time.monotonic() - started < 10


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not bound address space")
def test_a_reader_that_takes_too_much_memory_is_stopped(monkeypatch):
    greedy = (
        "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
        "from dataset_script.prediction_file import parquet_apart; parquet_apart._bound_this_process(); "
        "bytearray(3 << 30)"
    )
    monkeypatch.setattr(parquet_apart, "_PROGRAM", greedy)
    assert codes(read_parquet_apart(b"PAR1", LIMITS)) == ["invalid_parquet"]


def test_what_the_other_process_says_of_a_file_is_not_logged(monkeypatch, caplog):
    monkeypatch.setattr(parquet_apart, "_PROGRAM", "import sys; sys.exit('Traceback: a cell of the file')")
    assert codes(read_parquet_apart(b"PAR1", LIMITS)) == ["invalid_parquet"]
    assert "the process that reads Parquet ended with 1" in caplog.text
    assert "a cell of the file" not in caplog.text


def test_the_other_process_gets_no_secrets(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:secret@host/db")
    telltale = (
        "import json, os; said = json.dumps(dict(os.environ)); "
        "print(json.dumps({'rows': None, 'columns': {}, 'findings': "
        "[{'level': 'error', 'code': 'x', 'message': said, 'rows': [], 'count': 1, 'column': None}]}))"
    )
    monkeypatch.setattr(parquet_apart, "_PROGRAM", telltale)
    _, (finding,) = read_parquet_apart(b"PAR1", LIMITS)
    assert "PATH" in finding.message
    assert "secret" not in finding.message
