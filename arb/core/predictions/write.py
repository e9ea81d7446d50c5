"""Write prediction files: a judge's rows as JSON Lines, and templates to fill in."""

import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from arb.core.files import atomic_writer, csv_text
from arb.core.formats import FORMATS
from arb.core.predictions.columns import PredictionColumn, prediction_columns
from arb.core.predictions.raw import FileFormat
from arb.core.suite import Suite
from arb.core.suites.targets import Target


def write_predictions(
    path: Path, rows: Iterable[Mapping[str, object]], targets: tuple[Target, ...] = ()
) -> int:
    """Write rows as JSON Lines with the columns in their usual order, and return the number of rows.

    ``targets`` are those of the suite, by default AgentRewardBench's. The file replaces an existing one only
    when it is complete.

    Raises:
        ValueError: A row has an unknown key, lacks a required one, or has a value that JSON cannot represent,
            such as NaN. The message names the row, counted from 1, and the key.
    """
    number, columns = 0, prediction_columns(targets)
    with atomic_writer(path) as file:
        for number, row in enumerate(rows, 1):
            file.write(_line(number, row, columns))
    return number


def _line(number: int, row: Mapping[str, object], columns: Mapping[str, PredictionColumn]) -> bytes:
    unknown = [key for key in row if key not in columns]
    absent = [key for key, column in columns.items() if column.is_required and key not in row]
    if unknown or absent:
        problems = [f"{key!r} is not a prediction column" for key in unknown]
        problems += [f"{key!r} is missing (its value may be null)" for key in absent]
        raise ValueError(f"row {number}: {'; '.join(problems)}; the columns are {', '.join(columns)}")
    ordered = {key: row[key] for key in columns if key in row}
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
    """Return a file to fill in: the ids of a split in the suite's order, and an empty column for each target.

    The targets are those that judges are scored on, with the main one first. Raises SuiteError for an unknown
    split.
    """
    items, main = suite.items(split), suite.main_target
    parts = [name for name in ("step", "part") if any(item.level == name for item in items)]
    asked = [main, *(target for target in suite.scored_targets if target != main)]
    ids = ["trajectory_id", *parts]
    columns = [*ids, *(target.name for target in asked)]
    rows = [
        {name: getattr(item, name) for name in ids} | dict.fromkeys(target.name for target in asked)
        for item in items
    ]
    match file_format:
        case "jsonl":
            return "".join(f"{json.dumps(row)}\n" for row in rows).encode()
        case "csv":
            return csv_text(columns, (list(row.values()) for row in rows)).encode()
        case "parquet":
            import pyarrow as pa  # noqa: PLC0415 - slow to load, and only for Parquet
            import pyarrow.parquet as pq  # noqa: PLC0415 - as above

            kinds = [pa.string() for _ in ids]
            kinds += [pa.bool_() if target.type == "binary" else pa.string() for target in asked]
            fields = zip(columns, kinds, strict=True)
            about = {"format": str(FORMATS["prediction file"])}
            table = pa.Table.from_pylist(rows, pa.schema(fields, metadata=about))
            buffer = io.BytesIO()
            pq.write_table(table, buffer)
            return buffer.getvalue()
