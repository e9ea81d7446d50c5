"""Excerpts from the rows of a prediction file, to show next to findings about them."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Final

from arb.core.files import csv_text
from arb.core.predictions import read_predictions
from arb.core.predictions.raw import FileFormat, ReadingLimits, to_text
from arb.core.predictions.text_files import BrokenQuotesError, numbered_records

LONGEST: Final = 160
"""The maximum number of characters of a row that are shown."""

_BEFORE: Final = 24
"""How many characters of the row are shown before the column's name."""


def row_texts(content: bytes, file_format: FileFormat, rows: Collection[int]) -> Mapping[int, str]:
    """Return the text of each row, keyed by row number. For Parquet, the text is only the id.

    Rows that cannot be read are left out. Use `excerpt` to print a text safely.
    """
    if not rows:
        return {}
    if file_format == "parquet":
        table, _ = read_predictions(content, limits=ReadingLimits(max_bytes=len(content)))
        if table is None:
            return {}
        pairs = zip(table.numbers_of(range(table.rows)), table.trajectory_ids, strict=True)
        return {number: spelled for number, spelled in pairs if number in rows}
    text, _ = to_text(content)
    if text is None:
        return {}
    if file_format == "jsonl":
        return {
            number: line.rstrip("\r") for number, line in enumerate(text.split("\n"), 1) if number in rows
        }
    found: dict[int, str] = {}
    with suppress(BrokenQuotesError):
        for number, record in numbered_records(text):
            if number in rows:
                found[number] = csv_text(record, ()).removesuffix("\n")
            if number >= max(rows):
                break
    return found


def excerpt(text: str, around: str = "") -> str:
    """Return a row's text, shortened to the part around a column's name and made safe to print."""
    text = text.strip()
    if len(text) > LONGEST:
        at = text.find(around) if around else -1
        start = max(0, at - _BEFORE) if at > LONGEST - 60 else 0
        end = start + LONGEST
        text = f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
    # Escape control and direction marks, which would change how the other characters are printed.
    return "".join(
        mark if mark.isprintable() else mark.encode("unicode_escape", "replace").decode() for mark in text
    )
