"""Prediction files that mean harm, for hypothesis: texts, values, columns and file names of tables, right
files changed by byte, by structure and by field, Parquet of odd types, damaged bytes, sizes that lie, bombs.

`hostile_files` draws one.
"""

import bz2
import gzip
import io
import json
import lzma
import pickle
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

TEXTS = (
    "", " ", "null", "true", "\ttrue", "TRUE\u200b", "tru\u0435", "\u0430er-c", "ﬀ", "𝐭𝐫𝐮𝐞",
    "日本語" * 50, "\U0001f600" * 90, "\u0300" * 300, "\u05d0\u05d1", "x" * 250_000,
    '=HYPERLINK("http://evil.example")', "+1", "-1", "@SUM(A1)", "=cmd|' /C calc'!A0", ";=1+1",
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "' onmouseover='alert(1)",
    "[x](javascript:alert(1))", "</code></dd><iframe src=//evil.example>", "{{7*7}}${7*7}<%= 7*7 %>",
    "%s%n%x", "{0.__class__}", "'; DROP TABLE judges; --", "../../x",
    "webarena/GenericAgent-gpt-4o-2024-11-20/../../etc/passwd",
    "\x00", "\x1b[31mred\x1b[0m", "\u202egnp.exe", "\u2066x\u2069", "a\u200bb", "\ufeff", "\u2028",
    "1" * 399 + "x", "9" * 4_000, "1e999", "-0", "0x1", "1_000", "٣", "NaN", "Infinity", "1,5", "1;5",
    "two\nlines", "a\r\nb", '"', '""', "'", "\\",
)  # fmt: skip
"""As cells of CSV, as strings of JSON, as ids and as names."""

LITERALS = (
    "NaN", "-Infinity", "Infinity", "1e999", "-1e-999", "9" * 5_000, "1" * 400, "-" * 50, "1.0", "01", "+1",
    ".5", "1" + "0" * 400, "1" * 310 + ".5", "0" * 300_000, "null", "true", "True", "undefined", "", "//x",
    "[]", "{}", "[" * 2_000 + "]" * 2_000, '{"a":' * 3_000 + "1" + "}" * 3_000, "[" * 100_000,
    '{"success": true}', '[{"__proto__": 1}]', '{"a":1,"a":2}',
    '"\\ud800"', '"\\u0000"', '"\\u202e"', '"\\x00"', '"', '"a',
)  # fmt: skip
"""In the place of a value of JSON, as they stand."""

COLUMNS = (
    "trajectory_id", "success", "side_effect", "repetition", "looping", "optimality", "score", "state",
    "reasoning", "cost_usd", "input_tokens", "output_tokens", "latency_s",
    "Success", " success ", "__proto__", "",
)  # fmt: skip

NAMES = (
    "verdicts.jsonl", "verdicts.csv", "verdicts.parquet", "", ".", "..", "../../../etc/passwd",
    "..\\..\\boot.ini", "C:\\verdicts.csv", "/etc/passwd", "a/b/c.jsonl", "CON", "x.jsonl.exe", "~root",
    "-rf", "\u202elnosj.exe", "a\u200bb.jsonl", "<img src=x onerror=alert(1)>.jsonl", "=1+1.csv", "%2e%2e%2f",
    "x" * 300 + ".jsonl", "日本.jsonl",
)  # fmt: skip

PARQUET_COLUMNS = (*COLUMNS[:3], "optimality", "score", "state", "reasoning", "cost_usd")
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
        columns[draw(st.sampled_from(PARQUET_COLUMNS))] = pa.array([value] * len(rows), kind)
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


LARGEST = 20_000_000
"""Characters that are added to a file: above the limit of an upload, few enough for the memory of a test."""

BOMBS: tuple[Callable[[], bytes], ...] = tuple(
    lru_cache(maxsize=1)(made)
    for made in (_long_value_in_every_row, _zeros, _many_rows, _many_columns, _wide_values, _deep)
)

Row = Mapping[str, object]
Kind = Literal["jsonl", "csv", "foreign", "parquet"]


@dataclass(frozen=True)
class HostileFile:
    """A file as it is sent: the name it is given and its bytes."""

    name: str
    content: bytes


@st.composite
def hostile_files(draw: DrawFn, kind: Kind, seeds: Sequence[Sequence[Row]]) -> HostileFile:
    """A hostile file of a kind, made from one of the seeds: each the rows of a right file."""
    if kind == "parquet":
        content = draw(parquet_files(_some_rows(draw, seeds)))
    elif kind == "foreign":
        content = draw(st.sampled_from(_FOREIGN))()
    else:
        rows = _some_rows(draw, seeds)
        content = _jsonl(draw, rows) if kind == "jsonl" else _csv(draw, rows)
        content = draw(st.sampled_from(_ENCODED))(content)
        content = changed_bytes(draw, content)
    return HostileFile(draw(st.sampled_from(NAMES)), content)


def changed_bytes(draw: DrawFn, content: bytes) -> bytes:
    """The bytes with up to six places cut, overwritten, repeated or filled; half of all stay as they are."""
    changed = bytearray(content)
    for _ in range(draw(st.sampled_from((0, 0, 0, 1, 2, 6)))):
        start = draw(st.integers(0, len(changed)))
        end = start + draw(st.sampled_from((0, 1, 2, 40, 10_000)))
        filled = draw(
            st.binary(max_size=4) | st.sampled_from((b"\0", b'"', b"\n", b"\xff", b"{", b"\r", b","))
        )
        changed[start:end] = filled + draw(st.sampled_from((b"", bytes(changed[start:end]) * 2)))
    return bytes(changed)


def _some_rows(draw: DrawFn, seeds: Sequence[Sequence[Row]]) -> Sequence[Row]:
    """A right file's rows: some of them mostly, so that a file is quickly checked; all now and then."""
    rows = draw(st.sampled_from(seeds))
    if draw(st.sampled_from((True,) + (False,) * 11)):
        return rows
    start = draw(st.integers(0, len(rows) - 1))
    return rows[start : start + draw(st.sampled_from((1, 3, 20)))]


def _jsonl(draw: DrawFn, rows: Sequence[Row]) -> bytes:
    lines = [json.dumps(row) for row in rows]
    values = st.sampled_from(LITERALS) | (st.sampled_from(TEXTS) | st.text(max_size=20)).map(json.dumps)
    for _ in range(draw(st.sampled_from((0, 0, 1, 3)))):
        place, column = draw(st.integers(0, len(lines) - 1)), json.dumps(draw(st.sampled_from(COLUMNS)))
        added = f", {column}: {draw(values)}" + "}"
        lines[place] = draw(
            st.sampled_from(
                (
                    lines[place].removesuffix("}") + added,
                    "{" + added.removeprefix(", "),
                    lines[place] + lines[place],
                    f"[{lines[place]}]",
                    lines[place][: len(lines[place]) // 2],
                    "",
                )
            )
        )
    joint = draw(st.sampled_from(("\n", "\n", "\n", "\r\n", "\r", "\n\n", ",\n", " ", "\u2028")))
    before, after = draw(
        st.sampled_from((("", ""), ("", ""), ("", "\n"), ("[", "]"), ("\n\n", "\n\n\n"), ("// x\n", "")))
    )
    return (before + joint.join(lines) + after).encode()


def _csv(draw: DrawFn, rows: Sequence[Row]) -> bytes:
    names = list(rows[0])
    table = [names, *([_cell(row.get(name)) for name in names] for row in rows)]
    for _ in range(draw(st.sampled_from((0, 0, 1, 3)))):
        line = table[draw(st.integers(0, len(table) - 1))]
        text = draw(st.sampled_from(TEXTS) | st.text(max_size=20))
        text = draw(st.sampled_from((text, f'"{text.replace(chr(34), chr(34) * 2)}"')))
        line[draw(st.integers(0, len(line) - 1))] = text
    if draw(st.sampled_from((False, False, True))):
        added, value = draw(st.sampled_from(COLUMNS)), draw(st.sampled_from(TEXTS))
        times = draw(st.sampled_from((1, 1, 2, 300)))
        times = min(times, 1 + LARGEST // (len(table) * (len(value) + 1)))
        table = [line + [added if place == 0 else value] * times for place, line in enumerate(table)]
    delimiter, end = (
        draw(st.sampled_from(",,,;\t|")),
        draw(st.sampled_from(("\n", "\n", "\r\n", "\r", "\n\n"))),
    )
    return end.join(delimiter.join(line) for line in table).encode("utf-8", "surrogatepass")


def _cell(value: object) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _as_utf(name: str) -> Callable[[bytes], bytes]:
    return lambda content: content.decode("utf-8", "replace").encode(name, "replace")


_ENCODED: tuple[Callable[[bytes], bytes], ...] = (
    *[lambda content: content] * 12,
    lambda content: b"\xef\xbb\xbf" + content,
    lambda content: content + "é".encode("latin-1"),
    lambda content: content.replace(b"a", "é".encode("cp1252"), 3),
    lambda content: content[: len(content) // 2] + _as_utf("utf-16")(content[len(content) // 2 :]),
    *map(_as_utf, ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "utf-7", "utf-8-sig")),
    lambda content: content.replace(b"\n", b"\0\n", 2),
    lambda content: content + b"\0" * 100_000,
)  # fmt: skip


@lru_cache(maxsize=1)
def _hostile_files_zeros() -> bytes:
    return bytes(30_000_000)


def _zipped(name: str = "verdicts.jsonl") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, _hostile_files_zeros())
    return buffer.getvalue()


_FOREIGN: tuple[Callable[[], bytes], ...] = tuple(
    lru_cache(maxsize=1)(made)
    for made in (
        lambda: gzip.compress(_hostile_files_zeros()),
        lambda: bz2.compress(_hostile_files_zeros()),
        lambda: lzma.compress(_hostile_files_zeros(), preset=0),
        lambda: lzma.compress(b"{}\n", format=lzma.FORMAT_ALONE),
        _zipped,
        lambda: _zipped("../../etc/cron.d/x"),
        *(lambda protocol=protocol: pickle.dumps({"success": print}, protocol) for protocol in range(6)),
        lambda: b"cos\nsystem\n(S'touch /tmp/pwned'\ntR.",
        lambda: b"",
        lambda: b"\n",
        lambda: b"\r\n \t\n",
        lambda: b"\xef\xbb\xbf",
        lambda: b"trajectory_id,success\n",
        lambda: b"\n" * 4_000_000,
        lambda: b"{}\n" * 60_000,
        lambda: b"," * 400_000,
        lambda: b"a,\n" * 49_000,
        lambda: b"trajectory_id,success\n" + b'"' * 300_000,
        lambda: b'{"trajectory_id": "' + b"x" * 4_000_000 + b'", "success": true}',
        lambda: b'{"trajectory_id": "' + b"x" * 10_000_000 + b'", "success": true}',  # a line of 10 MB
        lambda: b'{"x": [' + b"[]," * 500_000 + b"[]]}",
        lambda: b'{"trajectory_id": ' * 200_000,
        lambda: b"".join(b'{"score": "%d%04dx"}\n' % (10**380, place) for place in range(1_000)),
        lambda: b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
        lambda: b"%PDF-1.7 <script>alert(1)</script>",
        lambda: b"\x7fELF\x02\x01\x01",
        lambda: b"<!doctype html><script>alert(1)</script>",
        lambda: b"PARE\0\0\0\0PARE",
        lambda: b"\x89HDF\r\n\x1a\n",
    )
)


def name_as_sent(name: str) -> bytes:
    """A file name as browsers write it into a form."""
    quoted = name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
    return quoted.encode("utf-8", "replace")


def one_file_form(file: HostileFile, part: str) -> tuple[bytes, dict[str, str]]:
    """The body and headers of a form with the file as its only part."""
    boundary = b"a-line-that-no-file-holds-7f3a"
    head = b'Content-Disposition: form-data; name="%s"; filename="%s"' % (
        part.encode(),
        name_as_sent(file.name),
    )
    body = b"--%s\r\n%s\r\n\r\n%s\r\n--%s--\r\n" % (boundary, head, file.content, boundary)
    return body, {"content-type": f"multipart/form-data; boundary={boundary.decode()}"}
