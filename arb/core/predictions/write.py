"""Write prediction files: a judge's rows as JSON Lines, and templates to fill in."""

import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from arb.core.files import atomic_writer, csv_text
from arb.core.predictions.raw import FileFormat
from arb.core.suite import Suite
from arb.core.vocabulary import PREDICTION_COLUMNS, REQUIRED_PREDICTION_COLUMNS


def write_predictions(path: Path, rows: Iterable[Mapping[str, object]]) -> int:
    """Write rows as JSON Lines with the columns in their usual order, and return the number of rows.

    The file replaces an existing one only when it is complete.

    Raises:
        ValueError: A row has an unknown key, lacks a required one, or has a value that JSON cannot represent,
            such as NaN. The message names the row, counted from 1, and the key.
    """
    number = 0
    with atomic_writer(path) as file:
        for number, row in enumerate(rows, 1):
            file.write(_line(number, row))
    return number


def _line(number: int, row: Mapping[str, object]) -> bytes:
    unknown = [key for key in row if key not in PREDICTION_COLUMNS]
    absent = [key for key in REQUIRED_PREDICTION_COLUMNS if key not in row]
    if unknown or absent:
        problems = [f"{key!r} is not a prediction column" for key in unknown]
        problems += [f"{key!r} is missing (its value may be null)" for key in absent]
        raise ValueError(
            f"row {number}: {'; '.join(problems)}; the columns are {', '.join(PREDICTION_COLUMNS)}"
        )
    ordered = {key: row[key] for key in PREDICTION_COLUMNS if key in row}
    try:
        text = json.dumps(ordered, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as problem:
        raise ValueError(f"row {number}: {_unwritable(ordered) or problem}") from problem
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # models sometimes emit half of a surrogate pair, which must be escaped
        return json.dumps(ordered, allow_nan=False).encode() + b"\n"


def _unwritable(row: Mapping[str, object]) -> str | None:
    for key, value in row.items():
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            return f"{key!r} is {value!r:.80}, which JSON cannot represent; write null for no value"
    return None


def template(suite: Suite, split: str, file_format: FileFormat = "jsonl") -> bytes:
    """Return a file to fill in, with the ids of a split in the suite's order and an empty ``success``.

    Raises SuiteError for an unknown split.
    """
    ids = [trajectory.trajectory_id for trajectory in suite.split(split)]
    match file_format:
        case "jsonl":
            return "".join(f"{json.dumps({'trajectory_id': i, 'success': None})}\n" for i in ids).encode()
        case "csv":
            return csv_text(("trajectory_id", "success"), ((each, "") for each in ids)).encode()
        case "parquet":
            import pyarrow as pa  # noqa: PLC0415 - slow to load, and only for Parquet
            import pyarrow.parquet as pq  # noqa: PLC0415 - as above

            empty = pa.nulls(len(ids), pa.bool_())
            buffer = io.BytesIO()
            pq.write_table(pa.table({"trajectory_id": pa.array(ids, pa.string()), "success": empty}), buffer)
            return buffer.getvalue()
