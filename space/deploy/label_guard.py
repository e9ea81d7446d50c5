"""No test label leaves with the Space: every table among the files is read for one before any is sent."""

import csv
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dataset_script.suite import Suite
from dataset_script.trajectory_ids import reading_key
from dataset_script.vocabulary import LABELS

ANSWERS: Final = frozenset({*LABELS, "optimality", "looping"})
"""Columns that hold what an expert said; the released annotations write ``trajectory_`` before them."""

PLACES: Final = ("trajectory_id",), ("benchmark", "model_name", "task_id")
"""Columns that name a trajectory, as we write it and as the released annotations do."""

TABLES: Final = frozenset({".csv", ".json", ".jsonl", ".md", ".parquet", ".toml", ".txt", ".tsv", ".yaml"})

Row = Mapping[str, Any]


def label_problems(files: Mapping[str, Path], suites: Iterable[Suite], labels: Path | None) -> list[str]:
    """What must not be sent: one message per file, without any label.

    ``labels`` is the configured file of labels on this machine, where there is one.
    """
    hidden = {reading_key(t.trajectory_id) for suite in suites for t in suite.split("test")}
    own = _digest(labels) if labels is not None and labels.is_file() else None
    problems = []
    for name, path in files.items():
        if own is not None and _digest(path) == own:
            problems.append(f"{name}: is the file of labels; move it out of the code")
        elif path.suffix in TABLES and (count := sum(1 for row in _rows(path) if _is_label(row, hidden))):
            problems.append(
                f"{name}: {count} rows hold labels of test trajectories; move the file out of the code"
            )
    return problems


def _is_label(row: Row, hidden: set[str]) -> bool:
    named = {str(column).strip().lower(): value for column, value in row.items()}
    if not any(value not in (None, "") and _is_answer(column) for column, value in named.items()):
        return False
    return any(
        reading_key("/".join(str(named[column]) for column in columns)) in hidden
        for columns in PLACES
        if all(named.get(column) for column in columns)
    )


def _is_answer(column: str) -> bool:
    return column.removeprefix("trajectory_") in ANSWERS


def _rows(path: Path) -> Iterator[Row]:
    """The rows of a table in any of the forms; none where it is no table."""
    if path.suffix == ".parquet":
        yield from _parquet_rows(path)
        return
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    if path.suffix in (".json", ".jsonl"):
        yield from _json_rows(text)
        return
    try:
        delimiter = "\t" if path.suffix == ".tsv" else ","
        yield from (row for row in csv.DictReader(text.splitlines(), delimiter=delimiter) if row)
    except csv.Error:
        return


def _parquet_rows(path: Path) -> Iterator[Row]:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        places = {column for columns in PLACES for column in columns}
        names = file.schema_arrow.names
        columns = [name for name in names if name.lower() in places or _is_answer(name.lower())]
        for batch in file.iter_batches(columns=columns):
            yield from batch.to_pylist()


def _json_rows(text: str) -> Iterator[Row]:
    for part in (text, *text.splitlines()):
        try:
            found = json.loads(part)
        except ValueError:
            continue
        rows: Sequence[Any] = found if isinstance(found, list) else [found]
        for row in rows:
            if isinstance(row, dict):
                yield row
                yield from ({"trajectory_id": key, LABELS[0]: row[key]} for key in row if "/" in key)
        if part is text:
            return


def _digest(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()
