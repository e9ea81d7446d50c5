import datetime
import decimal
import io
import sys
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.predictions import parquet as parquet_apart
from core.predictions import read_predictions
from core.predictions.cells import to_table
from core.predictions.parquet import read_parquet, read_parquet_apart
from core.predictions.raw import ReadingLimits

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
        "from core.predictions import parquet_apart; parquet_apart._bound_this_process(); "
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


IDS = ["a/b/c", "a/b/d", "a/b/e"]


def parquet_parquet(table: pa.Table | dict, **options) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(table), buffer, **options)
    return buffer.getvalue()


def read_all(content: bytes):
    """The table and its findings, read in this process: these files are only odd, not hostile."""
    raw, findings = read_parquet(content, ReadingLimits())
    if raw is None:
        return None, findings
    table, found = to_table(raw, ReadingLimits())
    return table, findings + found


def read(content: bytes):
    table, findings = read_all(content)
    return table, {finding.code: finding for finding in findings}


@pytest.mark.parametrize(
    "success",
    [
        pa.array([True, False, None]),
        pa.array([1, 0, None], pa.int8()),
        pa.array([1, 0, None], pa.uint64()),
        pa.array([1.0, 0.0, None], pa.float32()),
        pa.array([1.0, 0.0, None], pa.float16()),
        pa.array([decimal.Decimal("1.0"), decimal.Decimal("0.0"), None]),
        pa.array(["Yes", "No", None]),
        pa.array(["Successful", "Unsuccessful", "n/a"], pa.large_string()),
        pa.array(["true", "false", ""], pa.string_view()),
        pa.array([b"true", b"false", b""], pa.binary()),
        pa.array(["true", "false", None]).dictionary_encode(),
        pa.array([1, 0, None]).dictionary_encode(),
    ],
    ids=lambda array: str(array.type),
)
def test_verdicts_are_read_from_every_type_that_can_hold_them(success):
    table, found = read(parquet_parquet({"trajectory_id": IDS, "success": success}))
    assert found == {}
    assert table.success.tolist() == [1, 0, -1]
    assert table.row_numbers.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "ids",
    [
        pa.array(IDS, pa.large_string()),
        pa.array(IDS).dictionary_encode(),
        pa.array([i.encode() for i in IDS]),
    ],
)
def test_ids_are_read_from_every_kind_of_text(ids):
    table, found = read(parquet_parquet({"trajectory_id": ids, "success": [True] * 3}))
    assert (table.trajectory_ids, found) == (tuple(IDS), {})


@pytest.mark.parametrize(
    "success",
    [
        pa.array([datetime.datetime(2026, 1, 1)] * 3),
        pa.array([datetime.date(2026, 1, 1)] * 3),
        pa.array([[True]] * 3),
        pa.array([{"value": True}] * 3),
        pa.array([b"yes"] * 3, pa.binary(3)),
    ],
    ids=lambda array: str(array.type),
)
def test_a_type_that_can_hold_no_verdict_is_named(success):
    table, found = read(parquet_parquet({"trajectory_id": IDS, "success": success}))
    assert (found["wrong_type"].column, table.success) == ("success", None)


def test_a_null_of_pandas_is_no_verdict_and_a_true_nan_is_an_error():
    frame = pd.DataFrame({"trajectory_id": IDS, "success": [1.0, np.nan, 0.0]})
    buffer = io.BytesIO()
    frame.to_parquet(buffer)
    table, found = read(buffer.getvalue())
    assert (table.success.tolist(), found) == ([1, -1, 0], {})
    _, found = read(
        parquet_parquet({"trajectory_id": IDS, "success": pa.array([1.0, np.nan, 0.0], from_pandas=False)})
    )
    assert (found["nan"].rows, found["nan"].column) == ((2,), "success")


def test_numbers_out_of_range_are_named_by_row():
    columns = {
        "trajectory_id": IDS,
        "success": [True] * 3,
        "score": [0.5, 1.5, -1.0],
        "input_tokens": [1, -2, None],
    }
    _, findings = read_all(parquet_parquet(columns))
    assert [(f.code, f.column, f.rows) for f in findings] == [
        ("out_of_range", "score", (2, 3)),
        ("out_of_range", "input_tokens", (2,)),
    ]


def test_text_that_is_not_utf8_is_named_by_row():
    forged = pa.Array.from_buffers(pa.string(), 3, pa.array([b"a/b/c", b"\xff\xfe", b"a/b/d"]).buffers())
    table, found = read(parquet_parquet({"trajectory_id": forged, "success": [True] * 3}))
    assert (found["wrong_encoding"].rows, found["wrong_encoding"].column) == ((2,), "trajectory_id")
    assert table.trajectory_ids == ("a/b/c", "", "a/b/d")


def test_a_column_named_twice_is_an_error():
    twice = pa.table([IDS, [True] * 3, [False] * 3], names=["trajectory_id", "success", "success"])
    _, found = read(parquet_parquet(twice))
    assert found["duplicate_column"].column == "success"


@pytest.mark.parametrize("cut", [5, 100, -1, -5, -40])
def test_a_damaged_file_is_an_error(cut):
    content = parquet_parquet({"trajectory_id": IDS, "success": [True] * 3})
    table, found = read(content[:cut])
    assert (table, list(found)) == (None, ["invalid_parquet"])


def test_rows_are_counted_before_they_are_read():
    # 20,000,000 rows of one value take some kB.
    ones = pa.DictionaryArray.from_arrays(pa.array(np.zeros(20_000_000, np.int8)), ["a/b/c"])
    content = parquet_parquet({"trajectory_id": ones})
    assert len(content) < 100_000
    table, found = read(content)
    assert table is None
    assert "too_many_rows" in found


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_bytes_are_counted_before_they_are_unpacked(version):
    # 3 texts of 30 MB of one letter: some kB packed, 90 MB unpacked, over the bound of 50 MB.
    texts = [letter * 30_000_000 for letter in "abc"]
    content = parquet_parquet(
        {"trajectory_id": texts, "success": [True] * 3},
        compression="zstd",
        use_dictionary=False,
        write_statistics=False,
        data_page_version=version,
    )
    assert len(content) < 100_000
    table, found = read(content)
    assert table is None
    assert "too_large" in found


def test_one_long_value_that_every_row_points_at_stays_one_value():
    # 50,000 rows x 1 MB would be 50 GB.
    long = pa.DictionaryArray.from_arrays(pa.array(np.zeros(50_000, np.int32)), ["x" * 1_000_000])
    table, found = read(
        parquet_parquet({"trajectory_id": long, "success": [True] * 50_000}, compression="zstd")
    )
    assert table.rows == 50_000
    assert found["cell_too_long"].count == 50_000


def test_columns_that_are_not_known_are_not_read():
    # 60 MB unpacked in a column of no interest: no matter.
    table, found = read(
        parquet_parquet(
            {"trajectory_id": IDS, "success": [True] * 3, "page": ["x" * 20_000_000] * 3}, compression="zstd"
        )
    )
    assert table.rows == 3
    assert list(found) == ["unknown_columns"]


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "brotli", "lz4", "zstd"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_every_compression_and_page_version_is_read_over_several_row_groups(compression, version):
    ids = [f"a/b/{i}" for i in range(1_000)]
    content = parquet_parquet(
        {
            "trajectory_id": ids,
            "success": [i % 2 == 0 for i in range(1_000)],
            "score": np.linspace(0, 1, 1_000),
        },
        compression=compression,
        data_page_version=version,
        row_group_size=300,
        data_page_size=500,
    )
    table, found = read(content)
    assert (table.trajectory_ids, found) == (tuple(ids), {})
    assert table.success.sum() == 500
