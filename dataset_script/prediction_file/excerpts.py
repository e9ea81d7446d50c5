"""What stands in single rows of a prediction file: for showing a finding's rows beside it."""

import csv
import io
from collections.abc import Collection, Mapping
from typing import Final

from dataset_script.prediction_file.container import FileFormat, to_text
from dataset_script.prediction_file.csv_records import numbered_records
from dataset_script.prediction_file.limits import ReadingLimits
from dataset_script.prediction_file.read import read_predictions

LONGEST: Final = 160
"""Characters of a row that are shown."""

_BEFORE: Final = 24
"""Characters before the place that is looked for."""


def excerpts(
    content: bytes, file_format: FileFormat, rows: Collection[int], around: str = ""
) -> Mapping[int, str]:
    """The text of rows by their numbers (as findings count them), shortened, safe to print.

    A long row is cut so that ``around``, a column's name, is in what is left. Of Parquet only the ids are
    shown. A row that cannot be read, or is not there, is left out.
    """
    found = _texts(content, file_format, frozenset(rows))
    return {number: _shortened(text, around) for number, text in sorted(found.items())}


def _texts(content: bytes, file_format: FileFormat, rows: frozenset[int]) -> Mapping[int, str]:
    if not rows:
        return {}
    if file_format == "parquet":
        table, _ = read_predictions(content, limits=ReadingLimits(max_bytes=len(content)))
        if table is None:
            return {}
        pairs = zip(table.row_numbers.tolist(), table.trajectory_ids, strict=True)
        return {number: spelled for number, spelled in pairs if number in rows}
    text, _ = to_text(content)
    if text is None:
        return {}
    if file_format == "jsonl":
        return {number: line for number, line in enumerate(text.split("\n"), 1) if number in rows}
    found = {}
    for number, record in numbered_records(text):
        if number in rows:
            found[number] = _as_csv(record)
        if number >= max(rows):
            break
    return found


def _as_csv(record: list[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(record)
    return out.getvalue().removesuffix("\n")


def _shortened(text: str, around: str) -> str:
    text = text.strip()
    if len(text) > LONGEST:
        at = text.find(around) if around else -1
        start = max(0, at - _BEFORE) if at > LONGEST - 60 else 0
        end = start + LONGEST
        text = f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
    # Control and direction marks are spelled, so that the rest stands as it is.
    return "".join(
        mark if mark.isprintable() else mark.encode("unicode_escape", "replace").decode() for mark in text
    )
