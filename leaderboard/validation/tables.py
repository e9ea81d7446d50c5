"""Find ids, labels and verdicts in tables with any columns and spellings of yes and no.

Labels and verdicts are in one table (a column each), or in several tables that share a column of ids. Columns
that no option names are found by their names and values; a message says which option to add if that is not
possible. `parsing` reads tables from files.
"""

import tomllib
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import isnan
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from arb.core.console import counted
from arb.core.ids import reading_key

MOST_PROBLEMS: Final = 20
"""The maximum number of problems in a column that a message lists."""

_WORDS: Final = tomllib.loads(Path(__file__).with_name("words.toml").read_text(encoding="utf-8"))
YES: Final = frozenset(_WORDS["yes"])
NO: Final = frozenset(_WORDS["no"])
MISSING: Final = frozenset(_WORDS["missing"])
ID_NAMES: Final = tuple(_WORDS["ids"])
LABEL_NAMES: Final = tuple(_WORDS["labels"])
VERDICT_NAMES: Final = tuple(_WORDS["verdicts"])


class TableError(ValueError):
    """Raised for tables that cannot be used; the message lists every problem and what to do."""


class ColumnUnclear(TableError):
    """Raised if no column is suitable, or more than one. ``option`` is the option that names the column."""

    def __init__(self, message: str, option: str) -> None:
        super().__init__(message)
        self.option = option


ROW: Final = "row"
"""The name of an index that has row numbers as in a spreadsheet, where the header is row 1."""


@dataclass(frozen=True)
class NamedTable:
    """A table with its name in messages. ``judge`` is its judge's name in reports, if that differs."""

    name: str
    frame: pd.DataFrame
    judge: str = ""

    def row(self, place: int) -> int:
        """Return a row's number, from the index `ROW` if the table has it; otherwise, rows count from 1."""
        return self.frame.index[place] if self.frame.index.name == ROW else place + 1


@dataclass(frozen=True)
class Columns:
    """The columns named by options. For a field left empty, the column is detected from names and values."""

    ids: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    verdicts: tuple[str, ...] = ()
    group: str | None = None
    by: tuple[str, ...] = ()
    weights: str | None = None


@dataclass(frozen=True)
class JudgeAnswers:
    """A judge's verdicts, int8 of shape (n,): 1 yes, 0 no, -1 missing. ``scores`` is None without scores."""

    name: str
    verdicts: np.ndarray
    scores: np.ndarray | None = None


@dataclass(frozen=True)
class ValidationTable:
    """The ``n`` labelled rows of the tables.

    Attributes:
        ids: The id of each row, or its number from 1 if the table has no ids.
        labels: Label columns, keyed by name, int8 of shape (n,): 1, 0, or -1 if missing. The first column is
            the truth, in which no label is missing.
        judges: The judges' columns.
        groups: The number of each row's group, of shape (n,); each row is its own group if none was named.
        is_grouped: Whether a column of groups was named.
        slices: The columns to report by, as strings, keyed by name.
        weights: How many rows each labelled row stands for, of shape (n,).
        unlabelled: The number of rows with verdicts, but without a label.
        notes: What was left out or assumed, in sentences.
    """

    ids: tuple[str, ...]
    labels: Mapping[str, np.ndarray]
    judges: tuple[JudgeAnswers, ...]
    groups: np.ndarray
    is_grouped: bool
    slices: Mapping[str, np.ndarray]
    weights: np.ndarray
    unlabelled: int
    notes: tuple[str, ...] = ()

    @property
    def truth(self) -> np.ndarray:
        return next(iter(self.labels.values()))


def as_answer(value: Any) -> float | None:
    """Return a cell as a number from 0 to 1, NaN if it is empty, or None if it is not an answer.

    Words such as yes, passed and failure are 1 or 0.
    """
    if value is None or value is pd.NA or (isinstance(value, float) and isnan(value)):
        return float("nan")
    if isinstance(value, bool | np.bool_):
        return float(value)
    word = str(value).strip().lower()
    if word in MISSING:
        return float("nan")
    if word in YES:
        return 1.0
    if word in NO:
        return 0.0
    try:
        number = float(word)
    except ValueError:
        return None
    return number if 0 <= number <= 1 else None


def _answers(table: NamedTable, column: str, problems: list[str]) -> np.ndarray:
    """Return a column as numbers, NaN if empty. Problems are added to the list, with row and value."""
    values = [as_answer(value) for value in table.frame[column]]
    wrong = [place for place, value in enumerate(values) if value is None]
    if wrong:
        found = [
            f"row {table.row(place)} has {repr(table.frame[column].iloc[place])[:40]}"
            for place in wrong[:MOST_PROBLEMS]
        ]
        more = f" and {len(wrong) - MOST_PROBLEMS} more rows" if len(wrong) > MOST_PROBLEMS else ""
        problems.append(
            f"{table.name}, column {column}: {'; '.join(found)}{more}. Write yes or no, true or false, 1 or "
            "0, pass or fail, or a score from 0 to 1"
        )
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def has_answers(table: NamedTable, column: Hashable, is_label: bool) -> bool:
    """Return whether a column holds only answers, and at least one. A label's answers must be yes or no."""
    values = [as_answer(value) for value in table.frame[column]]
    known = {value for value in values if value is not None and not isnan(value)}
    return None not in values and bool(known) and (not is_label or known <= {0.0, 1.0})


def _find(
    table: NamedTable, named: Sequence[str], known: Sequence[str], option: str, taken: set[str]
) -> list[str]:
    """Return the columns that an option names, or else the column that is detected. Raises TableError."""
    names = [str(column) for column in table.frame.columns]
    if named:
        _require_columns(table, {option: named})
        return list(dict.fromkeys(named))
    is_label = option == "--label"
    by_name = {name.lower(): name for name in reversed(names)}
    usual = [by_name[name] for name in known if name in by_name and by_name[name] not in taken]
    for column in usual:
        if has_answers(table, column, is_label):
            return [column]
    if usual:  # the caller names the rows that have other values
        return usual[:1]
    left = [name for name in names if name not in taken and has_answers(table, name, is_label)]
    if len(left) == 1:
        return left
    why = f"several columns are possible ({_listed(left[:10])})" if left else "no column has yes/no answers"
    others = "" if left else f" (columns: {_listed(names)})"
    raise ColumnUnclear(f"{table.name}: {why}; name one with {option} COLUMN{others}", option)


def _judge_of(name: str, answers: np.ndarray, threshold: float) -> JudgeAnswers:
    """Make a judge from a column of answers. They are scores if any of them is between 0 and 1, exclusive."""
    has = ~np.isnan(answers)
    is_score = bool(np.any((answers[has] > 0) & (answers[has] < 1)))
    verdicts = np.where(has, answers >= threshold if is_score else answers >= 0.5, -1).astype(np.int8)
    return JudgeAnswers(name, verdicts, answers if is_score else None)


def read_one(table: NamedTable, columns: Columns, threshold: float = 0.5) -> ValidationTable:
    """Read labels and verdicts from the columns of one table. Raises TableError."""
    _require_columns(table, {**_options_of_labels(columns), "--verdict": columns.verdicts})
    if both := sorted(set(columns.labels) & set(columns.verdicts)):
        raise TableError(f"{table.name}: {_listed(both)} cannot be both --label and --verdict; change one")
    label_columns = _find(table, columns.labels, LABEL_NAMES, "--label", set(columns.verdicts))
    verdict_columns = _find(table, columns.verdicts, VERDICT_NAMES, "--verdict", set(label_columns))
    problems: list[str] = []
    judges = tuple(_judge_of(name, _answers(table, name, problems), threshold) for name in verdict_columns)
    numbers = [str(table.row(place)) for place in range(len(table.frame))]
    id_columns = columns.ids or tuple(filter(None, [_usual_id(table)]))
    ids = _ids(table, id_columns, problems) if id_columns else numbers
    return _combine(table, ids, label_columns, judges, columns, problems)


def read_several(
    labels: NamedTable, verdicts: Sequence[NamedTable], columns: Columns, threshold: float = 0.5
) -> ValidationTable:
    """Read labels from one table and the verdicts of judges from others, joined by id. Raises TableError."""
    problems: list[str] = []
    _require_columns(labels, _options_of_labels(columns))
    id_columns, *others_ids = _id_columns([labels, *verdicts], columns.ids)
    label_columns = _find(labels, columns.labels, LABEL_NAMES, "--label", set(id_columns))
    ids = _ids(labels, id_columns, problems)
    place = {_key(each): number for number, each in enumerate(ids)}
    judges, notes, unlabelled = [], [], set()
    for table, own_columns in zip(verdicts, others_ids, strict=True):
        wanted = [name for name in columns.verdicts if name in table.frame.columns]
        named = wanted or (columns.verdicts if len(verdicts) == 1 else ())
        found = _find(table, named, VERDICT_NAMES, "--verdict", set(own_columns))
        own = list(map(_key, _ids(table, own_columns, problems)))
        others = [each for each in own if each not in place]
        unlabelled.update(others)
        rows = np.array([place.get(each, -1) for each in own], dtype=np.int64)
        if ids and not (rows >= 0).any():
            problems.append(
                f"{table.name} has no row for any id of {labels.name}: it has {_listed(own[:3]) or 'none'}; "
                f"{labels.name} has {_listed(ids[:3])}. Correct the ids, or name their columns with --id"
            )
        for column in found:
            answers = _answers(table, column, problems)
            aligned = np.full(len(ids), np.nan)
            aligned[rows[rows >= 0]] = answers[rows >= 0]
            name = table.judge or table.name
            name = name if len(found) == 1 else f"{name}: {column}"
            judges.append(_judge_of(name, aligned, threshold))
        without = len(place.keys() - set(own))
        if without:
            notes.append(f"{table.name} has no row for {without} of {counted(len(ids), 'labelled id')}")
    return _combine(labels, ids, label_columns, tuple(judges), columns, problems, len(unlabelled), notes)


def _listed(names: Iterable[str]) -> str:
    """Return the first 30 names, each cut to 60 characters."""
    return ", ".join(name if len(name) <= 60 else f"{name[:59]}…" for name in islice(names, 30))


def _options_of_labels(columns: Columns) -> dict[str, Sequence[str]]:
    """Return the columns that the table of labels must have, keyed by the option that names them."""
    return {
        "--id": columns.ids,
        "--label": columns.labels,
        "--group": [columns.group] if columns.group is not None else [],
        "--by": columns.by,
        "--weights": [columns.weights] if columns.weights is not None else [],
    }


def _require_columns(table: NamedTable, named: Mapping[str, Sequence[str]]) -> None:
    """Raise TableError if the table lacks columns of ``named``, which is keyed by option."""
    absent = {
        option: [name for name in names if name not in table.frame.columns] for option, names in named.items()
    }
    known = _listed(map(str, table.frame.columns))
    problems = [
        f"{table.name} has no column {_listed(names)}; correct {option} (its columns: {known})"
        for option, names in absent.items()
        if names
    ]
    if problems:
        raise TableError("\n".join(problems))


def _key(row: str) -> str:
    """Return a key that is equal for all spellings of an id of the form benchmark/agent/task."""
    return reading_key(row) if row.count("/") == 2 else row


def _id_columns(tables: Sequence[NamedTable], named: Sequence[str]) -> list[list[str]]:
    """Return, for each table, the columns that identify a row. Raises TableError."""
    if named:
        for table in tables:
            _require_columns(table, {"--id": named})
        return [list(named)] * len(tables)
    common = [
        str(name) for name in tables[0].frame.columns if all(name in table.frame.columns for table in tables)
    ]
    ranked = sorted(common, key=lambda name: (name.lower() not in ID_NAMES, common.index(name)))
    for name in ranked:
        if all(_has_one_each(table, name) for table in tables):
            return [[name]] * len(tables)
    own = [_usual_id(table) for table in tables]
    found = [[name] for name in own if name is not None]
    if len(found) == len(tables):
        return found
    if usual := [name for name in ranked if name.lower() in ID_NAMES]:  # `_ids` tells which ids are repeated
        return [usual[:1]] * len(tables)
    names = ", ".join(table.name for table in tables)
    raise ColumnUnclear(
        f"{names} share no column with one value per row (in common: {_listed(common) or 'none'}); "
        "name one with --id COLUMN, and repeat it if several columns together identify a row",
        "--id",
    )


def _has_one_each(table: NamedTable, name: str) -> bool:
    return bool(table.frame[name].astype(str).is_unique) and not _empty_rows(table, [name]).any()


def _usual_id(table: NamedTable) -> str | None:
    """Return the first column that has a usual name for ids and a different value in each row, or None."""
    by_name = {str(name).lower(): str(name) for name in reversed(list(table.frame.columns))}
    usual = [by_name[name] for name in ID_NAMES if name in by_name]
    return next((name for name in usual if _has_one_each(table, name)), None)


def read_answers(table: NamedTable, known: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """Return the ids of one table of labels or verdicts, and its answers: int8 (n,) with 1, 0 or -1.

    Args:
        table: The table.
        known: The usual names of the column, `LABEL_NAMES` or `VERDICT_NAMES`. A score of 0.5 is a yes.

    Raises:
        TableError: The columns cannot be found, or have other values.
    """
    ((id_column,),) = _id_columns([table], ())
    (column,) = _find(table, (), known, "--label", {id_column})
    problems: list[str] = []
    ids, answers = _ids(table, [id_column], problems), _answers(table, column, problems)
    if problems:
        raise TableError("\n".join(problems))
    return ids, _judge_of(column, answers, 0.5).verdicts


def _ids(table: NamedTable, columns: Sequence[str], problems: list[str]) -> list[str]:
    _refuse_empty(table, columns, _empty_rows(table, columns), problems)
    ids = ["/".join(row) for row in _texts(table, columns)]
    repeated = [each for each, count in Counter(ids).items() if count > 1 and each]
    if repeated:
        problems.append(
            f"{table.name}, column {', '.join(columns)}: {counted(len(repeated), 'id')} with several rows, "
            f"such as {_listed(repeated[:5])}; keep one row of each, or add --id for the columns that tell "
            "them apart"
        )
    return ids


def _texts(table: NamedTable, columns: Sequence[str]) -> list[list[str]]:
    """Return the texts of each row's cells, "" if a value is missing. The text "None" is a value."""
    # As objects, because numpy would turn the integers 1 into 1.0 next to a column of floats.
    cells = table.frame[list(columns)].to_numpy(dtype=object)
    return [[str(value).strip() for value in row] for row in np.where(pd.isna(cells), "", cells)]


def _empty_rows(table: NamedTable, columns: Sequence[str]) -> np.ndarray:
    """Return the rows in which all of the columns are empty, as bool of shape (n,)."""
    return np.array([not any(row) for row in _texts(table, columns)], dtype=bool)


def _refuse_empty(table: NamedTable, columns: Sequence[str], empty: np.ndarray, problems: list[str]) -> None:
    if empty.any():
        rows = ", ".join(str(table.row(place)) for place in np.flatnonzero(empty)[:MOST_PROBLEMS])
        count = counted(int(empty.sum()), "empty cell")
        message = f"{count} (row {rows}). Write a value into each, or remove its row"
        problems.append(f"{table.name}, column {', '.join(columns)}: {message}")


def _combine(
    table: NamedTable,
    ids: Sequence[str],
    label_columns: Sequence[str],
    judges: tuple[JudgeAnswers, ...],
    columns: Columns,
    problems: list[str],
    unlabelled: int = 0,
    notes: Sequence[str] = (),
) -> ValidationTable:
    """Return the labelled rows of a table of labels, with the judges' columns for its rows."""
    labels = {}
    for name in label_columns:
        answers = _answers(table, name, problems)
        between = np.flatnonzero((answers > 0) & (answers < 1))
        if between.size:
            problems.append(
                f"{table.name}, column {name}: row {table.row(between[0])} is a score; a label is yes or no"
            )
        labels[name] = np.where(np.isnan(answers), -1, answers >= 0.5).astype(np.int8)
    problems += [
        f"{count} judges are called {name}; name each once, or rename a file"
        for name, count in Counter(judge.name for judge in judges).items()
        if count > 1
    ]
    has = next(iter(labels.values())) >= 0
    if columns.group is not None:
        _refuse_empty(table, [columns.group], _empty_rows(table, [columns.group]) & has, problems)
    weights = np.ones(len(ids)) if columns.weights is None else _weights(table, columns.weights, problems)
    if problems:
        raise TableError("\n".join(problems))
    if not has.any():
        raise TableError(f"{table.name}: column {label_columns[0]} has no label; give at least one")
    if columns.group is None:
        groups = np.arange(int(has.sum()))
    else:
        groups = np.unique(table.frame[columns.group].astype(str).to_numpy()[has], return_inverse=True)[1]
    in_table = int((~has).sum())
    return ValidationTable(
        ids=tuple(each for each, known in zip(ids, has, strict=True) if known),
        labels={name: column[has] for name, column in labels.items()},
        judges=tuple(
            JudgeAnswers(each.name, each.verdicts[has], None if each.scores is None else each.scores[has])
            for each in judges
        ),
        groups=groups,
        is_grouped=columns.group is not None,
        slices={name: table.frame[name].astype(str).to_numpy()[has] for name in columns.by},
        weights=weights[has],
        unlabelled=unlabelled + in_table,
        notes=tuple(notes),
    )


def _weights(table: NamedTable, column: str, problems: list[str]) -> np.ndarray:
    numbers = pd.to_numeric(table.frame[column], errors="coerce").to_numpy(dtype=np.float64)
    wrong = np.flatnonzero(~(np.isfinite(numbers) & (numbers > 0)))
    if wrong.size:
        listed = ", ".join(str(table.row(place)) for place in wrong[:MOST_PROBLEMS])
        problems.append(f"{table.name}, column {column}: rows {listed} need a weight above 0")
    return numbers
