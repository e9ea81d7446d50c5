"""The prediction file, a row per trajectory with a judge's verdicts: bytes to a typed table and findings.

Any bytes at all give a table or findings, never an exception. No label is read anywhere in this package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from arb.core.predictions.findings import Finding, error
from arb.core.predictions.raw import (
    UTF8_MARK,
    ReadingLimits,
    damaged_parquet,
    has_parquet_footer,
    recognise,
    too_large,
)

if TYPE_CHECKING:
    from arb.core.predictions.parser_pool import ParserPool, ReadResult
    from arb.core.predictions.table import Predictions

__all__ = ["Finding", "ParserPool", "Predictions", "ReadResult", "ReadingLimits", "read_predictions"]

SMALL_BYTES: Final = 250_000
"""Text up to here is read in this process, in some hundredths of a second; verdicts of a split without
reasoning take 150 kB."""


def __getattr__(name: str) -> Any:
    """What needs numpy is imported as it is asked for: a run of a judge, which only writes, does without."""
    places = {"ReadResult": "parser_pool", "ParserPool": "parser_pool", "Predictions": "table"}
    if name not in places:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{places[name]}"), name)


def read_predictions(
    content: bytes,
    file_name: str = "",
    limits: ReadingLimits | None = None,
    parsers: ParserPool | None = None,
    isolated: bool = False,
    reader: str | None = None,
) -> ReadResult:
    """Read a prediction file by what it holds; `file_name` is not trusted and decides nothing.

    Returns the rows that could be read, or None, and everything that is wrong with the file itself.
    `check.check` compares its ids with a suite. Parquet is always read in another process. With `parsers` so
    is large text, and any text if `isolated`, so that a server can answer meanwhile. `reader` names another
    function of bytes and limits, as ``module:function``, for files of another form.
    """
    from arb.core.predictions.parser_pool import PREDICTIONS, ParserPool, call_reader

    limits, reader = limits or ReadingLimits(), reader or PREDICTIONS
    if len(content) > limits.max_bytes:
        return None, [too_large(len(content), limits.max_bytes)]
    if not content.removeprefix(UTF8_MARK).strip(b" \t\r\n"):
        return None, [error("empty_file", "the file is empty. Write one row per trajectory of the split.")]
    is_parquet = recognise(content) == "parquet"
    if is_parquet and not has_parquet_footer(content):  # junk must not cost a process
        return None, [damaged_parquet("it has no footer: it was cut off, or is something else")]
    if not is_parquet and (parsers is None or (len(content) <= SMALL_BYTES and not isolated)):
        return call_reader(reader, content, limits)
    if parsers is not None:
        return parsers.read(content, limits, reader)
    with ParserPool(1) as own:
        return own.read(content, limits, reader)
