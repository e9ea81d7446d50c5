"""``dev_labels.csv`` of a suite, written: what `suite.load_dev_labels` reads."""

import csv
import io
from collections.abc import Iterable
from dataclasses import fields

from dataset_script.suite import DevLabels


def render_dev_labels(said: Iterable[DevLabels]) -> str:
    """The file's text, ordered by trajectory and annotation; nothing stands where somebody was unsure."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    columns = [field.name for field in fields(DevLabels)]
    writer.writerow(columns)
    for row in sorted(said, key=lambda row: (row.trajectory_id, row.annotation)):
        writer.writerow(_word(getattr(row, name)) for name in columns)
    return text.getvalue()


def _word(value: str | int | bool | None) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
