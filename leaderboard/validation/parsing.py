"""Read tables from files: CSV with any separator, JSONL, a JSON array of objects, YAML or Parquet.

Annotations, and the validation sets and results of Inspect Scout, are turned into such tables.
"""

import csv
import json
import re
from collections import Counter
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from arb.core.annotation import Annotation
from arb.core.console import counted
from arb.core.ids import reading_key
from arb.core.predictions.parquet import open_parquet, unpacked_bytes
from arb.core.predictions.raw import ReadingLimits
from arb.core.suites.targets import default_targets, main_target
from leaderboard.labels.annotations import (
    AnnotationsInvalid,
    is_released_header,
    parse_parquet,
    parse_released,
)
from leaderboard.labels.labels import WORKBOOK
from leaderboard.validation.scout import cases_of, is_scan, read_scan, scan_columns
from leaderboard.validation.tables import MOST_PROBLEMS, ROW, NamedTable, TableError

_MAIN_QUESTION: Final = (main_target(default_targets()),)
"""The only question that is read from released annotations."""
_QUOTED: Final = re.compile(r'"[^"]*"')


def read_table(path: Path) -> NamedTable:
    """Read a table from a file. Raises TableError if it cannot be read."""
    try:
        content = path.read_bytes()
        if path.suffix in (".yaml", ".yml"):
            return NamedTable(path.name, _parse_yaml(content))
        return NamedTable(path.name, parse_table(content))
    except OSError as error:
        raise TableError(f"{path} cannot be read ({error.strerror}); check the path") from error
    except ValueError as error:
        raise TableError(f"{path}: {error}") from error


def is_annotations(path: Path) -> bool:
    """Return whether a file has annotations: the released CSV, or Parquet that names annotators."""
    try:
        if path.suffix == ".parquet":
            return "annotator" in pq.read_schema(path).names
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            return is_released_header(file.readline(10_000))
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: there is no such file; check the path of the labels") from None
    except (OSError, pa.ArrowException):
        return False


def parse_table(content: bytes, limits: ReadingLimits | None = None) -> pd.DataFrame:
    """Return the table in a file's content: Parquet, JSON, JSONL, or CSV with any separator.

    Annotations (the released CSV or our Parquet) become a table of labels, with the first annotation of each
    run. The results of a scan by Scout are read as by `read_scan`. Cells of CSV are strings. Raises
    ValueError if the content is not such a table, or if it is larger than the limits.
    """
    if content[:4] == b"PAR1":
        return _parse_parquet(content, limits)
    if content.startswith(WORKBOOK):
        raise ValueError('an Excel workbook; in Excel, use "Save As" with the type "CSV UTF-8"')
    if content.startswith(b"\x1f\x8b"):
        raise ValueError("compressed with gzip; unpack it with gunzip")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError("not UTF-8 text; save it as UTF-8, or as Parquet") from error
    if not text.strip():
        raise ValueError("an empty file; give a table with a header and rows")
    if text.lstrip()[0] in "[{":
        return _parse_json(text, limits)
    if is_released_header(text.partition("\n")[0]):
        try:
            return _of_annotations(parse_released(text, _MAIN_QUESTION))
        except AnnotationsInvalid as error:
            raise ValueError(str(error)) from error
    return _parse_csv(text, limits)


def _parse_parquet(content: bytes, limits: ReadingLimits | None) -> pd.DataFrame:
    try:
        file = open_parquet(content)
        names = file.schema_arrow.names
        if "annotator" in names and "trajectory_id" in names:
            return _of_annotations(parse_parquet(content, _MAIN_QUESTION))
        wanted = scan_columns(names) if is_scan(names) else names
        unpacked = unpacked_bytes(file.metadata, wanted)
    except AnnotationsInvalid as error:
        raise ValueError(str(error)) from error
    except Exception as error:  # pyarrow raises many kinds of errors for damaged files
        raise ValueError(f"cannot be read as Parquet ({type(error).__name__})") from error
    _check_size(file.metadata.num_rows, len(wanted), limits)
    _refuse_repeated(wanted)
    if limits is not None and unpacked > limits.max_unpacked_bytes:
        raise ValueError(
            f"{unpacked:,} bytes when unpacked; at most {limits.max_unpacked_bytes:,} are accepted. "
            "Leave out long columns"
        )
    try:
        frame = file.read(wanted, use_threads=False).to_pandas()
    except Exception as error:
        raise ValueError(f"cannot be read as Parquet ({type(error).__name__})") from error
    return read_scan(frame) if is_scan(names) else frame


def _of_annotations(annotations: Sequence[Annotation]) -> pd.DataFrame:
    first: dict[str, Annotation] = {}
    for each in annotations:
        first.setdefault(reading_key(each.trajectory_id), each)
    rows = [(each.trajectory_id, each.answers.get(_MAIN_QUESTION[0].name)) for each in first.values()]
    return pd.DataFrame(rows, columns=["trajectory_id", _MAIN_QUESTION[0].name], dtype=object)


def _check_size(rows: int, columns: int, limits: ReadingLimits | None) -> None:
    if limits is None:
        return
    for count, most, what in ((rows, limits.max_rows, "rows"), (columns, limits.max_columns, "columns")):
        if count > most:
            raise ValueError(f"{count:,} {what}; at most {most:,} are accepted")


def _refuse_repeated(names: Sequence[str]) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(f"several columns are called {', '.join(repeated)}; rename them")


def _parse_json(text: str, limits: ReadingLimits | None) -> pd.DataFrame:
    rows: list[Any] = []
    if text.lstrip().startswith("["):
        try:
            rows = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"not a JSON array ({error})") from error
    else:
        for number, line in enumerate(text.splitlines(), start=1):
            if not line.strip():
                continue
            try:
                rows.append(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise ValueError(f"line {number} is not JSON ({error}); write one object per line") from error
    return _of_rows(rows, limits)


def _parse_yaml(content: bytes) -> pd.DataFrame:
    """Parse the user's own YAML. Do not use this for uploads, whose aliases could fill the memory."""
    try:
        rows = yaml.safe_load(content)
    except yaml.YAMLError as error:
        raise ValueError(f"cannot be read as YAML ({' '.join(str(error).split())})") from error
    return _of_rows(rows if isinstance(rows, list) else [rows], None)


def _of_rows(rows: Sequence[Any], limits: ReadingLimits | None) -> pd.DataFrame:
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError("write one JSON object per row")
    rows = cases_of(rows)
    _check_size(len(rows), len({name for row in rows for name in row}), limits)
    return pd.DataFrame(rows, dtype=object)


def _parse_csv(text: str, limits: ReadingLimits | None) -> pd.DataFrame:
    header = _QUOTED.sub("", text.splitlines()[0])
    separator = max(",;\t|", key=header.count)
    # The csv module has one limit for the whole process, so it is only ever raised (as in `text_files`).
    most_chars = len(text) if limits is None else limits.max_cell_chars
    csv.field_size_limit(max(csv.field_size_limit(), most_chars))
    reader = csv.reader(StringIO(text), delimiter=separator, strict=True)
    try:
        rows = [(number, row) for number, row in enumerate(reader, start=1) if row]
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num} cannot be read as CSV ({error})") from error
    (_, names), *rest = rows
    _check_size(len(rest), len(names), limits)
    wrong = [number for number, row in rest if len(row) != len(names)]
    if wrong:
        listed = ", ".join(map(str, wrong[:MOST_PROBLEMS]))
        raise ValueError(
            f"these rows do not have the {counted(len(names), 'cell')} of the header: {listed}; correct them"
        )
    names = [name.strip() for name in names]
    _refuse_repeated(names)
    numbers = pd.Index([number for number, _ in rest], dtype=int, name=ROW)
    return pd.DataFrame([row for _, row in rest], numbers, names, dtype=object)
