"""The prediction file, which has one row per trajectory with a judge's verdicts.

Reading a file returns a typed table and findings, whatever its content. No label is read here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from arb.core.lazy import lazy_imports
from arb.core.predictions.findings import Finding, error
from arb.core.predictions.raw import (
    UTF8_MARK,
    ReadingLimits,
    damaged_parquet,
    has_parquet_footer,
    recognise,
    too_large,
)

with lazy_imports():  # they need numpy, which a judge's run does not load, since it only writes files
    from arb.core.predictions import parser_pool, table

if TYPE_CHECKING:
    from arb.core.predictions.parser_pool import ParserPool, ReadResult
    from arb.core.predictions.table import Predictions

__all__ = ["Finding", "ParserPool", "Predictions", "ReadResult", "ReadingLimits", "read_predictions"]

SMALL_BYTES: Final = 250_000
"""Text of at most this size is read in this process, in some hundredths of a second.

A file with verdicts on a split has 150 kB without reasoning.
"""


def __getattr__(name: str) -> Any:
    """Return a name whose module needs numpy. The module is imported only on first use."""
    if name in ("ParserPool", "ReadResult"):
        return getattr(parser_pool, name)
    if name == "Predictions":
        return table.Predictions
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def read_predictions(
    content: bytes,
    limits: ReadingLimits | None = None,
    parsers: ParserPool | None = None,
    isolated: bool = False,
    reader: str | None = None,
) -> ReadResult:
    """Read a prediction file, whose format is recognised from its content.

    Parquet is always read in another process. Use `check.check` to compare the ids with a suite.

    Args:
        content: The file's bytes.
        limits: Bounds on the file.
        parsers: A pool that also reads large text files, so that a server can answer requests meanwhile.
        isolated: Whether ``parsers`` also read small text files.
        reader: A function (``module:function``) that reads files other than prediction files.

    Returns:
        The table of the rows that could be read, or None, and the findings about the file.
    """
    limits, reader = limits or ReadingLimits(), reader or parser_pool.PREDICTIONS
    if len(content) > limits.max_bytes:
        return None, [too_large(len(content), limits.max_bytes)]
    if not content.removeprefix(UTF8_MARK).strip(b" \t\r\n"):
        return None, [error("empty_file", "the file is empty. Write one row per trajectory of the split.")]
    is_parquet = recognise(content) == "parquet"
    if is_parquet and not has_parquet_footer(content):  # junk must not cost a process
        return None, [damaged_parquet("it has no footer, so it is cut off or not Parquet")]
    if not is_parquet and (parsers is None or (len(content) <= SMALL_BYTES and not isolated)):
        return parser_pool.call_reader(reader, content, limits)
    if parsers is not None:
        return parsers.read(content, limits, reader)
    with parser_pool.ParserPool(1) as own:
        return own.read(content, limits, reader)
