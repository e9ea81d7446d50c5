"""Read the known columns of Parquet into a raw table, unless the footer says that they are too large.

Text columns are read as dictionaries, so that a long text that 50,000 rows repeat is in memory only once.

Uploaded files are read in a separate process (`parser_pool`), because a hostile file can crash it: damaged
Parquet makes the C++ library abort the process (with pyarrow 26, one changed byte in the footer is enough),
and a few kB can unpack to gigabytes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import signature
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from arb.core.console import counted
from arb.core.predictions.findings import Finding, finding, quoted
from arb.core.predictions.raw import (
    RawTable,
    ReadingLimits,
    settle_header,
    without_rows,
)

_NOT_KEPT: Final = "reasoning"
_MAX_LIST_IN_FOOTER: Final = 5_000
_NEWER_LIMITS: Final = {
    name: value
    for name, value in {"schema_depth_limit": 16, "arrow_extensions_enabled": False}.items()
    if name in signature(pq.ParquetFile.__init__).parameters
}
"""Limits that only newer versions of pyarrow support: the first from 26 on, the second from 21 on. The Space
requires 26, since it reads strangers' files."""
_MAX_FIXED_WIDTH: Final = 32
"""The width of the widest decimal, in bytes. Wider fixed-length columns are refused to save memory."""

_TEXT_TYPES: Final = (
    pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view,
    pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view,
)  # fmt: skip
_READ_TYPES: Final = (
    *_TEXT_TYPES,
    pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_null,
)  # fmt: skip


def read_parquet(content: bytes, limits: ReadingLimits) -> tuple[RawTable | None, list[Finding]]:
    """Return a table and findings. The table is None if the file is damaged, too large or has no rows."""
    try:
        return _read(content, limits)
    except Exception as problem:
        # Damaged bytes make the library raise nearly anything: ArrowException, OSError, KeyError,
        # UnicodeDecodeError, MemoryError …
        return None, [finding("invalid_parquet", why=quoted(str(problem))[1:-1])]


def _read(content: bytes, limits: ReadingLimits) -> tuple[RawTable | None, list[Finding]]:
    file = open_parquet(content)
    if file.metadata.num_rows > limits.max_rows:
        return None, [finding("too_many_rows", most=limits.max_rows)]
    names = file.schema_arrow.names
    known, findings = settle_header(names, limits)
    doubled = {each.column for each in findings if each.code == "duplicate_column"}
    wanted: dict[str, str] = {}
    for column, position in known.items():
        arrow_type = file.schema_arrow.field(position).type
        if not _is_any_of(arrow_type, _READ_TYPES):
            findings.append(finding("wrong_type", column=column, type=quoted(str(arrow_type))[1:-1]))
        elif column not in doubled and (column != _NOT_KEPT or limits.keep_reasoning):
            wanted[column] = names[position]
    refusal = _refusal(file.metadata, wanted, limits)
    if refusal is not None:
        return None, [*findings, refusal]
    if file.metadata.num_rows == 0:
        return None, without_rows(findings)
    if not wanted:
        return None, findings
    schema = file.schema_arrow
    text = [name for name in wanted.values() if _is_any_of(schema.field(name).type, _TEXT_TYPES)]
    columns = _columns(open_parquet(content, text), wanted, limits)
    if columns is None:
        return None, [*findings, finding("too_many_rows", most=limits.max_rows)]
    return RawTable(range(1, len(next(iter(columns.values()))) + 1), columns), findings


def open_parquet(content: bytes, read_dictionary: Sequence[str] = ()) -> pq.ParquetFile:
    """Open Parquet with limits on what its footer may contain. Damaged content can raise almost any error."""
    return pq.ParquetFile(
        pa.BufferReader(content),
        read_dictionary=list(read_dictionary),
        pre_buffer=False,
        thrift_string_size_limit=len(content),
        thrift_container_size_limit=_MAX_LIST_IN_FOOTER,
        **_NEWER_LIMITS,
    )


def _refusal(metadata: pq.FileMetaData, wanted: Mapping[str, str], limits: ReadingLimits) -> Finding | None:
    """Return an error if the wanted columns are too large according to the footer, else None."""
    schema = metadata.schema
    if any(schema.column(i).length > _MAX_FIXED_WIDTH for i in _leaves(metadata, wanted.values())):
        return finding("too_wide")
    unpacked = unpacked_bytes(metadata, wanted.values())
    if unpacked <= limits.max_unpacked_bytes:
        return None
    return finding("too_large_unpacked", size=counted(unpacked, "byte"), most=limits.max_unpacked_bytes)


def unpacked_bytes(metadata: pq.FileMetaData, names: Iterable[str]) -> int:
    """Return the size of columns when unpacked, according to the footer."""
    leaves = _leaves(metadata, names)
    groups = range(metadata.num_row_groups)
    return sum(
        metadata.row_group(group).column(leaf).total_uncompressed_size for group in groups for leaf in leaves
    )


def _leaves(metadata: pq.FileMetaData, names: Iterable[str]) -> list[int]:
    read, schema = set(names), metadata.schema
    return [i for i in range(len(schema.names)) if schema.column(i).path.split(".")[0] in read]


def _columns(
    file: pq.ParquetFile, wanted: Mapping[str, str], limits: ReadingLimits
) -> dict[str, list[object]] | None:
    """Return the wanted columns as Python values, or None if there are too many rows."""
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
    """Return a column as Python values: bytes for text that is not UTF-8, floats for decimals."""
    if pa.types.is_dictionary(array.type) and _is_any_of(array.type, _TEXT_TYPES):
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


def _is_any_of(arrow_type: pa.DataType, tests: Sequence[Callable[[pa.DataType], bool]]) -> bool:
    """Return whether a type, or the type of a dictionary's values, passes one of the tests."""
    if pa.types.is_dictionary(arrow_type):
        arrow_type = arrow_type.value_type
    return any(is_type(arrow_type) for is_type in tests)
