"""Parquet as it is read: types, damage, sizes, compressions; and files that only look like Parquet."""

import datetime
import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from arb.core.predictions.parquet import read_parquet
from arb.core.predictions.raw import ReadingLimits
from arb.core.predictions.table import to_table
from tests.support.hostile import written

IDS = ["a/b/c", "a/b/d", "a/b/e"]


def parquet(table: pa.Table | dict, **options) -> bytes:
    return written(pa.table(table), **options)


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
        pa.array([np.float16(1), np.float16(0), None], pa.float16()),
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
    table, found = read(parquet({"trajectory_id": IDS, "success": success}))
    assert found == {}
    assert table.targets["success"].tolist() == [1, 0, -1]
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
    table, found = read(parquet({"trajectory_id": ids, "success": [True] * 3}))
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
    table, found = read(parquet({"trajectory_id": IDS, "success": success}))
    assert (found["wrong_type"].column, table.targets.get("success")) == ("success", None)


def test_a_null_of_pandas_is_no_verdict_and_a_true_nan_is_an_error():
    frame = pd.DataFrame({"trajectory_id": IDS, "success": [1.0, np.nan, 0.0]})
    table, found = read(frame.to_parquet())
    assert (table.targets["success"].tolist(), found) == ([1, -1, 0], {})
    true_nan = pa.array([1.0, np.nan, 0.0], from_pandas=False)
    _, found = read(parquet({"trajectory_id": IDS, "success": true_nan}))
    assert (found["nan"].rows, found["nan"].column) == ((2,), "success")


def test_numbers_out_of_range_are_named_by_row():
    columns = {"trajectory_id": IDS, "success": [True] * 3, "score": [0.5, 1.5, -1.0]}
    columns["input_tokens"] = [1, -2, None]
    _, findings = read_all(parquet(columns))
    assert [(f.code, f.column, f.rows) for f in findings] == [
        ("out_of_range", "score", (2, 3)),
        ("out_of_range", "input_tokens", (2,)),
    ]


def test_text_that_is_not_utf8_is_named_by_row():
    forged = pa.Array.from_buffers(pa.string(), 3, pa.array([b"a/b/c", b"\xff\xfe", b"a/b/d"]).buffers())
    table, found = read(parquet({"trajectory_id": forged, "success": [True] * 3}))
    assert (found["wrong_encoding"].rows, found["wrong_encoding"].column) == ((2,), "trajectory_id")
    assert table.trajectory_ids == ("a/b/c", "", "a/b/d")


def test_a_column_named_twice_is_an_error():
    twice = pa.table([IDS, [True] * 3, [False] * 3], names=["trajectory_id", "success", "success"])
    _, found = read(parquet(twice))
    assert found["duplicate_column"].column == "success"


@pytest.mark.parametrize("cut", [5, 100, -1, -5, -40])
def test_a_damaged_file_is_an_error(cut):
    content = parquet({"trajectory_id": IDS, "success": [True] * 3})
    table, found = read(content[:cut])
    assert (table, list(found)) == (None, ["invalid_parquet"])


def test_rows_are_counted_before_they_are_read():
    # 20,000,000 rows of one value take some kB.
    ones = pa.DictionaryArray.from_arrays(pa.array(np.zeros(20_000_000, np.int8)), ["a/b/c"])
    content = parquet({"trajectory_id": ones})
    assert len(content) < 100_000
    table, found = read(content)
    assert table is None
    assert "too_many_rows" in found


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_bytes_are_counted_before_they_are_unpacked(version):
    # 3 texts of 30 MB of one letter: some kB packed, 90 MB unpacked, over the bound of 50 MB.
    texts = [letter * 30_000_000 for letter in "abc"]
    content = parquet(
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
    table, found = read(parquet({"trajectory_id": long, "success": [True] * 50_000}, compression="zstd"))
    assert table.rows == 50_000
    assert found["cell_too_long"].count == 50_000


def test_columns_that_are_not_known_are_not_read():
    # 60 MB unpacked in a column of no interest: no matter.
    columns = {"trajectory_id": IDS, "success": [True] * 3, "page": ["x" * 20_000_000] * 3}
    table, found = read(parquet(columns, compression="zstd"))
    assert table.rows == 3
    assert list(found) == ["unknown_columns"]


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "brotli", "lz4", "zstd"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_every_compression_and_page_version_is_read_over_several_row_groups(compression, version):
    ids = [f"a/b/{i}" for i in range(1_000)]
    success = [i % 2 == 0 for i in range(1_000)]
    content = parquet(
        {"trajectory_id": ids, "success": success, "score": np.linspace(0, 1, 1_000)},
        compression=compression,
        data_page_version=version,
        row_group_size=300,
        data_page_size=500,
    )
    table, found = read(content)
    assert (table.trajectory_ids, found) == (tuple(ids), {})
    assert table.targets["success"].sum() == 500


@pytest.mark.parametrize("size", [4, 11, 12, 208, 5_000])
def test_bytes_that_only_begin_like_parquet_are_an_error(size):
    framed = b"PAR1" + b"x" * size + size.to_bytes(4, "little") + b"PAR1"
    for content in (b"PAR1" + b"x" * (size - 4), framed):
        assert list(read(content)[1]) == ["invalid_parquet"]
