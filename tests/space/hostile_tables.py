"""Parquet files that mean harm, for hypothesis: odd types, damaged bytes, sizes that lie, bombs."""

import io
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

COLUMNS = ("trajectory_id", "success", "side_effect", "optimality", "score", "state", "reasoning", "cost_usd")
VALUES: tuple[tuple[object, pa.DataType], ...] = (
    ([1, 2], pa.list_(pa.int64())),
    ([[["x"]]], pa.list_(pa.list_(pa.list_(pa.string())))),
    ({"a": {"b": True}}, pa.struct([("a", pa.struct([("b", pa.bool_())]))])),
    ([("a", 1)], pa.map_(pa.string(), pa.int64())),
    ("true", pa.dictionary(pa.int8(), pa.string())),
    (b"\xff\xfe", pa.binary()),
    (b"12345", pa.binary(5)),
    ("yes", pa.large_string()),
    (None, pa.null()),
    (2**64 - 1, pa.uint64()),
    (-(2**63), pa.int64()),
    (float("nan"), pa.float64()),
    (float("inf"), pa.float32()),
    (Decimal("1"), pa.decimal128(38, 0)),
    (Decimal("1e40"), pa.decimal256(76, 10)),
    (datetime(2026, 1, 1), pa.timestamp("ns")),
    (date(2026, 1, 1), pa.date32()),
    (timedelta(1), pa.duration("ns")),
    ("\u202e<script>alert(1)</script>\x00", pa.string()),
    ("x" * 300_000, pa.string()),
)
"""A value and the type of the column that holds it in every row."""

_OPTIONAL = b"\x25\x02\x18\x0dtrajectory_id"
"""Of a footer: that the column may hold nulls, before its name."""


@st.composite
def parquet_files(draw: DrawFn, rows: Sequence[Mapping[str, object]]) -> bytes:
    """A Parquet file with the rows, or a bomb; whole, with a column of an odd type, or damaged."""
    bomb = draw(st.sampled_from((None,) * 6 + BOMBS))
    if bomb is not None:
        return bomb()
    columns = {name: pa.array([row.get(name) for row in rows]) for name in rows[0]}
    for _ in range(draw(st.integers(0, 2))):
        value, kind = draw(st.sampled_from(VALUES))
        columns[draw(st.sampled_from(COLUMNS))] = pa.array([value] * len(rows), kind)
    compression = draw(st.sampled_from(("none", "zstd", "snappy")))
    return draw(st.sampled_from(_DAMAGES))(written(pa.table(columns), compression=compression), draw)


def written(table: pa.Table, **options) -> bytes:
    """The bytes of a table as Parquet, without the schema that Arrow adds."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer, store_schema=False, **options)
    return buffer.getvalue()


def _changed(content: bytes, draw: DrawFn) -> bytes:
    """Some bytes of the footer, or anywhere, are others."""
    changed = bytearray(content)
    first = draw(st.sampled_from((4, max(4, len(changed) - 300))))
    for _ in range(draw(st.integers(1, 4))):
        changed[draw(st.integers(first, len(changed) - 1))] = draw(st.integers(0, 255))
    return bytes(changed)


def _cut(content: bytes, draw: DrawFn) -> bytes:
    return content[: draw(st.integers(4, len(content)))]


def _wrong_length(content: bytes, draw: DrawFn) -> bytes:
    """The footer's length, four bytes before the last four, is another."""
    length = draw(st.sampled_from((0, 1, 2**31 - 1, 2**32 - 1)))
    return content[:-8] + length.to_bytes(4, "little") + content[-4:]


_DAMAGES: tuple[Callable[[bytes, DrawFn], bytes], ...] = (
    lambda content, draw: content,
    lambda content, draw: content,
    lambda content, draw: content + b"x",
    lambda content, draw: content.replace(_OPTIONAL, _OPTIONAL.replace(b"\x02", b"\x03", 1)),
    _changed,
    _changed,
    _cut,
    _wrong_length,
)


def _long_value_in_every_row() -> bytes:
    """50,000 rows that point at one text of 1 MB: 50 GB if each got its own."""
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 50_000), ["x" * 1_000_000])
    return written(pa.table({"trajectory_id": texts, "success": [True] * 50_000}))


def _zeros() -> bytes:
    """70 MB of one text in 100 rows, a few kB as sent."""
    return written(
        pa.table({"trajectory_id": ["\0" * 700_000] * 100, "success": [True] * 100}),
        compression="zstd",
        use_dictionary=False,
    )


def _many_rows() -> bytes:
    return written(
        pa.table({"trajectory_id": pa.nulls(3_000_000, pa.string()), "success": pa.nulls(3_000_000)})
    )


def _many_columns() -> bytes:
    return written(pa.table({f"c{place}": [True] for place in range(6_000)}))


def _wide_values() -> bytes:
    """Values of a fixed width of 1 MB, none of them there: each row would still take it."""
    return written(pa.table({"trajectory_id": pa.nulls(3, pa.binary(1_000_000)), "success": [True] * 3}))


def _deep() -> bytes:
    kind = pa.bool_()
    for _ in range(60):
        kind = pa.list_(kind)
    return written(pa.table({"trajectory_id": ["a/b/c"], "success": pa.nulls(1, kind)}))


BOMBS: tuple[Callable[[], bytes], ...] = tuple(
    lru_cache(maxsize=1)(made)
    for made in (_long_value_in_every_row, _zeros, _many_rows, _many_columns, _wide_values, _deep)
)
