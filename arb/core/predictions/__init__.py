"""The prediction file, which has one row per trajectory with a judge's verdicts.

Any content can be read: the result is a typed table and findings about problems. Labels are never read here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from arb.core.lazy import lazy_imports
from arb.core.predictions.findings import finding
from arb.core.predictions.raw import (
    UTF8_MARK,
    ReadingLimits,
    has_parquet_footer,
    recognise,
    too_large,
)

with lazy_imports():  # it needs numpy, which a run of a judge does not load, because it only writes files
    from arb.core.predictions import parser_pool

if TYPE_CHECKING:
    from arb.core.predictions.parser_pool import ParserPool, ReadResult

SMALL_BYTES: Final = 250_000
"""Text of at most this size is read in this process, which takes less than a tenth of a second.

A file with verdicts on all trajectories of a split has about 150 kB if it contains no reasoning.
"""


def read_predictions(
    content: bytes,
    limits: ReadingLimits | None = None,
    parsers: ParserPool | None = None,
    isolated: bool = False,
    reader: str | None = None,
) -> ReadResult:
    """Read a prediction file. Its format is recognised from its content.

    Parquet is always read in a separate process. If ``parsers`` are given, they also read large text files,
    which keeps a server responsive. With ``isolated``, they read small text files too. A ``reader``
    (``module:function``) replaces the usual reader. Use `check.check` to compare the ids with a suite.

    Returns:
        The table of the rows that could be read, or None, and the findings about the file.
    """
    limits, reader = limits or ReadingLimits(), reader or parser_pool.PREDICTIONS
    if len(content) > limits.max_bytes:
        return None, [too_large(len(content), limits.max_bytes)]
    if not content.removeprefix(UTF8_MARK).strip(b" \t\r\n"):
        return None, [finding("empty_file")]
    is_parquet = recognise(content) == "parquet"
    if is_parquet and not has_parquet_footer(content):  # do not start a process for junk
        return None, [finding("invalid_parquet", why="it has no footer, so it is cut off or not Parquet")]
    if not is_parquet and (parsers is None or (len(content) <= SMALL_BYTES and not isolated)):
        return parser_pool.call_reader(reader, content, limits)
    if parsers is not None:
        return parsers.read(content, limits, reader)
    with parser_pool.ParserPool(1) as own:
        return own.read(content, limits, reader)
