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


def row_texts(content: bytes, file_format: FileFormat, rows: Collection[int]) -> Mapping[int, str]:
    """What stands in rows, by their numbers as findings count them; of Parquet the ids only.

    A row that cannot be read, or is not there, is left out. The texts are as they came: see `excerpt`.
    """
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
        return {
            number: line.rstrip("\r") for number, line in enumerate(text.split("\n"), 1) if number in rows
        }
    found, last = {}, max(rows)
    for number, record in numbered_records(text):
        if number in rows:
            found[number] = _as_csv(record)
        if number >= last:
            break
    return found


def _as_csv(record: list[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(record)
    return out.getvalue().removesuffix("\n")


def excerpt(text: str, around: str = "") -> str:
    """A row's text, shortened and safe to print; ``around``, a column's name, is in what is left of it."""
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
