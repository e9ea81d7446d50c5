"""Parquet to a raw table: only the known columns, only after the footer's sizes were looked at.

Text columns are read as dictionaries, so that one long value that 50,000 rows point at stays one value.

Strangers' files go through `read_parquet_apart`, a process of its own that a hostile file can end and
nothing else: damaged Parquet makes the library's C++ code abort the whole process (pyarrow 26: one changed
byte in the footer is enough), and a few kB can unpack to gigabytes. The process is bounded in memory and
time, gets the bytes on its standard input, and answers in JSON. It costs a quarter of a second.
"""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from core.predictions.findings import Finding, counted, error, quoted
from core.predictions.raw import RawTable, ReadingLimits, settle_header, too_many_rows, without_rows

_NOT_KEPT: Final = "reasoning"
_MAX_LIST_IN_FOOTER: Final = 5_000
_MAX_DEPTH: Final = 16
_MAX_FIXED_WIDTH: Final = 32
"""Bytes of the widest decimal; wider fixed-length values would be multiplied by every row."""

_TEXT_TYPES: Final = (
    pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view,
    pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view,
)  # fmt: skip
_VALUE_TYPES: Final = (
    pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null,
)  # fmt: skip


def read_parquet(content: bytes, limits: ReadingLimits) -> tuple[RawTable | None, list[Finding]]:
    """Read Parquet bytes; row numbers count from 1. None when it is damaged, too large or without rows."""
    try:
        return _read(content, limits)
    except Exception as problem:
        # Damaged bytes make the library raise nearly anything (ArrowException, OSError, KeyError,
        # UnicodeDecodeError, MemoryError …); whichever it is, the answer to the user is the same.
        return None, [_damaged(quoted(str(problem))[1:-1])]


def _read(content: bytes, limits: ReadingLimits) -> tuple[RawTable | None, list[Finding]]:
    file = _open(content)
    if file.metadata.num_rows > limits.max_rows:
        return None, [too_many_rows(limits)]
    names = file.schema_arrow.names
    header = settle_header(names, limits)
    doubled = {finding.column for finding in header.findings if finding.code == "duplicate_column"}
    wanted: dict[str, str] = {}
    findings = list(header.findings)
    for column, position in header.known.items():
        arrow_type = file.schema_arrow.field(position).type
        if not _is_read(arrow_type):
            findings.append(_wrong_type(column, arrow_type))
        elif column not in doubled and (column != _NOT_KEPT or limits.keep_reasoning):
            wanted[column] = names[position]
    refusal = _refusal(file.metadata, wanted, limits)
    if refusal is not None:
        return None, [*findings, refusal]
    if file.metadata.num_rows == 0:
        return None, without_rows(findings)
    if not wanted:
        return None, findings
    text = [name for name in wanted.values() if _is_text(file.schema_arrow.field(name).type)]
    columns = _columns(_open(content, text), wanted, limits)
    if columns is None:
        return None, [*findings, too_many_rows(limits)]
    return RawTable(range(1, len(next(iter(columns.values()))) + 1), columns), findings


def _open(content: bytes, read_dictionary: Sequence[str] = ()) -> pq.ParquetFile:
    return pq.ParquetFile(
        pa.BufferReader(content),
        read_dictionary=list(read_dictionary),
        pre_buffer=False,
        thrift_string_size_limit=len(content),
        thrift_container_size_limit=_MAX_LIST_IN_FOOTER,
        schema_depth_limit=_MAX_DEPTH,
        arrow_extensions_enabled=False,
    )


def _refusal(metadata: pq.FileMetaData, wanted: Mapping[str, str], limits: ReadingLimits) -> Finding | None:
    """The error for columns that would not fit in memory, going by the footer."""
    read = set(wanted.values())
    schema = metadata.schema
    leaves = [i for i in range(len(schema.names)) if schema.column(i).path.split(".")[0] in read]
    if any(schema.column(i).length > _MAX_FIXED_WIDTH for i in leaves):
        return error("wrong_type", "a column of fixed-length values is too wide. Write text or numbers.")
    unpacked = sum(
        metadata.row_group(group).column(leaf).total_uncompressed_size
        for group in range(metadata.num_row_groups)
        for leaf in leaves
    )
    if unpacked <= limits.max_unpacked_bytes:
        return None
    return error(
        "too_large",
        f"the columns take {counted(unpacked, 'byte')} once unpacked; at most {limits.max_unpacked_bytes:,} "
        "are taken. Write one short row per trajectory.",
    )


def _columns(
    file: pq.ParquetFile, wanted: Mapping[str, str], limits: ReadingLimits
) -> dict[str, list[object]] | None:
    """The wanted columns as Python values; None when more rows come than the footer said."""
    columns: dict[str, list[object]] = {column: [] for column in wanted}
    rows = 0
    for batch in file.iter_batches(columns=list(wanted.values()), use_threads=False):
        rows += batch.num_rows
        if rows > limits.max_rows:
            return None
        for column, name in wanted.items():
            columns[column] += _values(batch.column(batch.schema.names.index(name)))
    return columns


def _values(array: pa.Array) -> list[object]:
    """Python values of a batch's column; text that is not UTF-8 comes as bytes, decimals as floats."""
    if pa.types.is_dictionary(array.type) and _is_text(array.type.value_type):
        words = [_decoded(word) for word in array.dictionary.cast(pa.binary()).to_pylist()]
        return [None if index is None else words[index] for index in array.indices.to_pylist()]
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_decimal(array.type):
        array = array.cast(pa.float64())
    return array.to_pylist()


def _decoded(word: bytes | None) -> str | bytes | None:
    if word is None:
        return None
    try:
        return word.decode("utf-8")
    except UnicodeDecodeError:
        return word


def _is_text(arrow_type: pa.DataType) -> bool:
    if pa.types.is_dictionary(arrow_type):
        arrow_type = arrow_type.value_type
    return any(is_type(arrow_type) for is_type in _TEXT_TYPES)


def _is_read(arrow_type: pa.DataType) -> bool:
    if pa.types.is_dictionary(arrow_type):
        arrow_type = arrow_type.value_type
    return any(is_type(arrow_type) for is_type in (*_TEXT_TYPES, *_VALUE_TYPES))


def _wrong_type(column: str, arrow_type: pa.DataType) -> Finding:
    message = (
        f"{column}: the column has the type {quoted(str(arrow_type))[1:-1]}. Write booleans, numbers or text."
    )
    return error("wrong_type", message, column=column)


def _damaged(why: str) -> Finding:
    return error("invalid_parquet", f"the Parquet file cannot be read ({why}). Write it again.")


_MAX_MEMORY_BYTES: Final = 1 << 30
"""Of address space; a file at the limits takes 330 MB of it, and less than 600 MB with its reasoning."""
_MAX_SECONDS: Final = 30

_PROGRAM: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from core.predictions.parquet import main; main(sys.argv[2])"
)
_PASSED_ON: Final = ("PATH", "LD_LIBRARY_PATH", "PYTHONHOME", "SYSTEMROOT", "TMPDIR")
"""Of the environment; tokens and addresses of databases are none of that process's business."""
_SMALL: Final = {"ARROW_DEFAULT_MEMORY_POOL": "system", "ARROW_IO_THREADS": "1", "OMP_NUM_THREADS": "1"} | {
    "OPENBLAS_NUM_THREADS": "1"
}

logger = logging.getLogger(__name__)


def read_parquet_apart(content: bytes, limits: ReadingLimits) -> tuple[RawTable | None, list[Finding]]:
    """What `read_parquet` gives, from a process that may die of the file."""
    command = [sys.executable, "-c", _PROGRAM, json.dumps(sys.path), json.dumps(asdict(limits))]
    environment = _SMALL | {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    try:
        done = subprocess.run(
            command, input=content, capture_output=True, timeout=_MAX_SECONDS, env=environment, check=False
        )
    except subprocess.TimeoutExpired:
        return None, [_damaged(f"reading it took over {_MAX_SECONDS} seconds")]
    except OSError as problem:
        logger.error("no process to read Parquet in: %s", problem)
        return None, [_damaged("the server has no room to read it now; try again later")]
    if done.returncode != 0:
        # What it wrote to its standard error may quote the file, which is nothing for a log.
        logger.warning("the process that reads Parquet ended with %d", done.returncode)
        return None, [_damaged("the reader broke down over it")]
    return _unpack(json.loads(done.stdout))


def main(limits: str) -> None:
    """The other process: bytes on standard input, JSON on standard output."""
    _bound_this_process()

    bounds = ReadingLimits(**json.loads(limits))
    table, findings = read_parquet(sys.stdin.buffer.read(), bounds)
    answer = json.dumps(_pack(table, findings))
    if len(answer) > 2 * bounds.max_unpacked_bytes:
        answer = json.dumps(_pack(None, [*findings, _damaged("it holds too much text")]))
    sys.stdout.write(answer)


def _bound_this_process() -> None:
    try:
        import resource
    except ImportError:  # Windows has no such bounds
        return
    for what, bound in (
        (resource.RLIMIT_AS, _MAX_MEMORY_BYTES),
        (resource.RLIMIT_CPU, _MAX_SECONDS),
        (resource.RLIMIT_CORE, 0),
    ):
        try:
            resource.setrlimit(what, (bound, bound))
        except (ValueError, OSError):  # a lower bound is in force already, or the system knows no such one
            continue


def _pack(table: RawTable | None, findings: Sequence[Finding]) -> dict[str, object]:
    """Each distinct value once, so that a long text that every row points at is written once."""
    columns = {}
    for name, values in (table.columns if table is not None else {}).items():
        places: dict[tuple[type, object], int] = {}
        index = [places.setdefault((value.__class__, value), len(places)) for value in values]
        distinct = [{"hex": v.hex()} if isinstance(v, bytes) else v for _, v in places]
        columns[name] = {"distinct": distinct, "index": index}
    rows = len(table.row_numbers) if table is not None else None
    return {"rows": rows, "columns": columns, "findings": [asdict(finding) for finding in findings]}


def _unpack(answer: dict) -> tuple[RawTable | None, list[Finding]]:
    findings = [
        Finding(**(found | {name: tuple(found.get(name, ())) for name in ("rows", "names")}))
        for found in answer["findings"]
    ]
    if answer["rows"] is None:
        return None, findings
    columns = {}
    for name, column in answer["columns"].items():
        distinct = [bytes.fromhex(v["hex"]) if isinstance(v, dict) else v for v in column["distinct"]]
        columns[name] = [distinct[place] for place in column["index"]]
    return RawTable(range(1, answer["rows"] + 1), columns), findings
