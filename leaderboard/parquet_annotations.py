"""Our Parquet of annotations: a row an annotation, with what the released CSV has no column for."""

import io
from collections.abc import Sequence
from datetime import UTC
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from leaderboard.annotations import COLUMNS, QUESTIONS, Annotation, AnnotationsInvalid, problems_of

SCHEMA = pa.schema(
    [
        pa.field("trajectory_id", pa.string()),
        pa.field("annotator", pa.string()),
        *(pa.field(question, pa.string()) for question in QUESTIONS),
        pa.field("comment", pa.string()),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("seconds", pa.float64()),
        pa.field("experiment", pa.string()),
    ]
)
_REQUIRED = ("trajectory_id", *QUESTIONS)


def write_parquet(annotations: Sequence[Annotation]) -> bytes:
    """The records as Parquet, in their order; times in UTC, to the microsecond.

    Raises AnnotationsInvalid with every problem of every record.
    """
    _refuse_bad(annotations)
    rows = [{name: getattr(annotation, name) for name in COLUMNS} for annotation in annotations]
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), buffer, compression="zstd")
    return buffer.getvalue()


def parse_parquet(content: bytes) -> tuple[Annotation, ...]:
    """Every row as a record, in the order of the file; columns beside the id and the answers may be absent.

    For files of one's own. Raises AnnotationsInvalid with every bad row (they count from 1).
    """
    try:
        table = pq.read_table(io.BytesIO(content))
        missing = [name for name in _REQUIRED if name not in table.column_names]
        if missing:
            raise AnnotationsInvalid([f"the columns {', '.join(missing)} are missing"])
        kept = pa.schema([field for field in SCHEMA if field.name in table.column_names])
        rows = table.select(kept.names).cast(kept).to_pylist()
    except (pa.ArrowException, OSError) as problem:
        # The first line alone: the rest may quote a value.
        what = type(problem).__name__
        raise AnnotationsInvalid(
            [f"cannot be read as Parquet annotations ({what}); write it again"]
        ) from None
    found = tuple(_annotation(row) for row in rows)
    _refuse_bad(found)
    return found


def _annotation(row: dict[str, Any]) -> Annotation:
    at = row.get("at")
    texts = {name: row.get(name) or "" for name in ("trajectory_id", "comment", "experiment")}
    return Annotation(**{**row, **texts, "at": at and at.astimezone(UTC)})


def _refuse_bad(annotations: Sequence[Annotation]) -> None:
    problems = [
        f"row {number}, {problem}"
        for number, annotation in enumerate(annotations, start=1)
        for problem in problems_of(annotation)
    ]
    if problems:
        raise AnnotationsInvalid(problems)
