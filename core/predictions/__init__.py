"""The prediction file, a row per trajectory with a judge's verdicts: bytes to a typed table and findings.

Any bytes at all give a table or findings, never an exception. No label is read anywhere in this package.
"""

from core.predictions.cells import to_table
from core.predictions.csv_file import read_csv
from core.predictions.findings import Finding, error
from core.predictions.jsonl import read_jsonl
from core.predictions.parquet import read_parquet_apart
from core.predictions.raw import UTF8_MARK, RawTable, ReadingLimits, recognise, to_text, too_large
from core.predictions.table import Predictions

__all__ = ["Finding", "Predictions", "ReadingLimits", "read_predictions"]


def read_predictions(
    content: bytes, file_name: str = "", limits: ReadingLimits | None = None
) -> tuple[Predictions | None, list[Finding]]:
    """Read a prediction file by what it holds; `file_name` is not trusted and decides nothing.

    Returns the rows that could be read (None when there are none to speak of) and everything found wrong with
    the file itself. Whether its ids are the right ones is `check.check`.
    """
    limits = limits or ReadingLimits()
    if len(content) > limits.max_bytes:
        return None, [too_large(len(content), limits.max_bytes)]
    if not content.removeprefix(UTF8_MARK).strip(b" \t\r\n"):
        return None, [error("empty_file", "the file is empty. Write one row per trajectory of the split.")]
    raw, findings = _read_raw(content, limits)
    if raw is None:
        return None, findings
    table, found = to_table(raw, limits)
    return table, findings + found


def _read_raw(content: bytes, limits: ReadingLimits) -> tuple[RawTable | None, list[Finding]]:
    file_format = recognise(content)
    if isinstance(file_format, Finding):
        return None, [file_format]
    if file_format == "parquet":
        return read_parquet_apart(content, limits)
    text, findings = to_text(content)
    if text is None:
        return None, findings
    raw, found = read_jsonl(text, limits) if file_format == "jsonl" else read_csv(text, limits)
    return raw, findings + found
