"""Inspect Scout's files: validation sets (cases with their targets), and the results of scans.

A validation set becomes a table of labels, and the results of a scanner become a table of verdicts, both with
the column ``id``. A table of labels and verdicts can be written as a validation set and a scan.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from arb.core.files import new_folder
from leaderboard.validation.tables import JudgeAnswers, TableError, ValidationTable

_SCAN: Final = ("transcript_id", "value", "value_type")
_SCAN_TOO: Final = (
    "input_type", "input_ids", "scan_error", "transcript_task_set", "transcript_task_id", "transcript_agent",
    "transcript_model",
)  # fmt: skip
_PREFIXES: Final = {"labels": "label_", "target": "target_"}
_UNSAFE: Final = re.compile(r"[^\w.-]+")


def is_scan(names: Sequence[str]) -> bool:
    """Return whether a table with these columns has the results of a scanner."""
    return set(_SCAN) <= set(names)


def scan_columns(names: Sequence[str]) -> list[str]:
    """Return the columns of results that `read_scan` needs. Others hold whole transcripts."""
    return [name for name in names if name in (*_SCAN, *_SCAN_TOO)]


def read_scan(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the results of a scanner, one row per transcript, message or event, with its ``id``.

    The verdict is in the column ``value``. If it is an object, its values become columns such as
    ``target_done``. If it is a set of labelled results, each label becomes a column such as ``label_loop``,
    which says whether a result with this label is positive.
    """
    rows = []
    for result in frame.to_dict("records"):
        row = {name: cell for name, cell in result.items() if name not in ("value", "input_ids")}
        found = json.loads(result.get("input_ids") or "[]")
        is_whole = result.get("input_type", "transcript") == "transcript" or not found
        row["id"] = result["transcript_id"] if is_whole else ",".join(found)
        value, kind = result["value"], result["value_type"]
        if kind == "object":
            row |= {f"target_{name}": each for name, each in json.loads(value).items()}
        elif kind == "resultset":
            row |= {f"label_{each.get('label')}": False for each in json.loads(value)}
            row |= {f"label_{each.get('label')}": True for each in json.loads(value) if _is_positive(each)}
        else:
            row["value"] = value
        rows.append(row)
    table = pd.DataFrame(rows, dtype=object)
    failed = frame["scan_error"].notna() if "scan_error" in frame else np.zeros(len(frame), dtype=bool)
    for name in table.columns:
        if name.startswith("label_"):  # no result with this label is a verdict, unless the scan failed
            table[name] = table[name].where(table[name].notna() | failed, other=False)
    return table


def _is_positive(result: Mapping[str, Any]) -> bool:
    value = result.get("value")
    return bool(value) and str(value).lower() != "none"


def cases_of(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Turn the nested parts of validation sets into columns. Return other rows of JSON unchanged.

    ``{"split": "dev", "cases": […]}`` becomes a row per case, and ``{"labels": {"loop": true}}`` the column
    ``label_loop``. An ``id`` of several parts is joined by commas, as in CSV.
    """
    found = []
    for row in rows:
        cases = row.get("cases")
        if "split" in row and "id" not in row and isinstance(cases, list):
            found += [{**case, "split": row["split"]} for case in cases if isinstance(case, dict)]
        else:
            found.append(row)
    return [dict(_cells(row)) for row in found]


def _cells(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if name in _PREFIXES and isinstance(value, dict):
            yield from ((f"{_PREFIXES[name]}{key}", each) for key, each in value.items())
        elif name == "id" and isinstance(value, list):
            yield name, ",".join(map(str, value))
        else:
            yield name, value


def write_scout(table: ValidationTable, folder: Path) -> list[Path]:
    """Write the labels as a validation set, and the judges as the scanners of one scan.

    Returns:
        The paths of ``validation.jsonl`` and of the scan's folder.

    Raises:
        TableError: The folder has files already.
        OSError: A file cannot be written.
    """
    if folder.is_dir() and any(folder.iterdir()):
        raise TableError(f"{folder} is not empty; name a new folder with --out")
    # Scout reads an id with a comma as several ids, unless it is in a list.
    ids = [[each] if "," in each else each for each in table.ids]
    cases = [{"id": each, "target": bool(label)} for each, label in zip(ids, table.truth, strict=True)]
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    names = _scanner_names([judge.name for judge in table.judges])
    content = json.dumps([lines, [[judge.name, judge.verdicts.tolist()] for judge in table.judges]])
    scan_id = hashlib.sha256(content.encode()).hexdigest()[:22]
    spec = {
        "scan_id": scan_id,
        "scan_name": "judges",
        "scanners": {name: {"name": name} for name in names},
        "validation": {name: {"cases": cases} for name in names},
    }
    summary = {"scanners": {name: {"scans": len(ids)} for name in names}}
    validation, scan = Path("validation.jsonl"), Path(f"scan_id={scan_id}")
    with new_folder(folder) as part:
        (part / scan).mkdir()
        (part / validation).write_text(lines, encoding="utf-8")
        (part / scan / "_scan.json").write_text(json.dumps(spec, indent=1), encoding="utf-8")
        (part / scan / "_summary.json").write_text(json.dumps(summary))
        for name, judge in zip(names, table.judges, strict=True):
            pq.write_table(_results(table, judge, name, scan_id), part / scan / f"{name}.parquet")
    return [folder / validation, folder / scan]


def _scanner_names(judges: Sequence[str]) -> list[str]:
    """Return one name per judge that is valid as a file name."""
    names = [_UNSAFE.sub("_", judge).strip("._") or "judge" for judge in judges]
    uses = Counter(names)
    return [f"{name}_{place}" if uses[name] > 1 else name for place, name in enumerate(names, start=1)]


def _results(table: ValidationTable, judge: JudgeAnswers, name: str, scan_id: str) -> pa.Table:
    """Return a judge's scores, or else verdicts, as a table of Scout's results, whose values are strings."""
    rows = []
    for place, run in enumerate(table.ids):
        verdict, label = int(judge.verdicts[place]), bool(table.truth[place])
        value: bool | float | None = None if verdict < 0 else bool(verdict)
        if judge.scores is not None and verdict >= 0:
            value = float(judge.scores[place])
        kind = "null" if value is None else "boolean" if isinstance(value, bool) else "number"
        rows.append(
            {
                "transcript_id": run,
                "scan_id": scan_id,
                "scanner_key": name,
                "scanner_name": name,
                "input_type": "transcript",
                "input_ids": json.dumps([run]),
                "uuid": hashlib.sha256(f"{scan_id}/{name}/{run}".encode()).hexdigest()[:22],
                "label": None,
                "value": None if value is None else json.dumps(value),
                "value_type": kind,
                "scan_error": None,
                "validation_target": json.dumps(label),
                "validation_result": None if verdict < 0 else json.dumps(bool(verdict) == label),
            }
        )
    schema = pa.schema([(column, pa.string()) for column in rows[0]])
    return pa.Table.from_pylist(rows, schema=schema)
