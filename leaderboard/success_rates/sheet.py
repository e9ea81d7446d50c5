"""The CSV file in which drawn runs are labelled by hand: its rows, and how more runs are added to it."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote

from arb.core.files import csv_text
from arb.core.ids import reading_key
from arb.core.lazy import lazy_imports
from leaderboard.success_rates.runs import RunTexts

with lazy_imports():
    from dataset_script import sources
    from dataset_script.sources import problems

LONGEST_TEXT: Final = 4_000
"""The maximum length of a goal or an answer in a cell, in characters."""
_FORMULA: Final = ("=", "+", "-", "@")
"""The signs that make a spreadsheet read a cell as a formula if the cell begins with them."""


def read_sheet(name: str, text: str) -> list[dict[str, str]]:
    """Return the rows of a label file. Raises ValueError if the file has no column trajectory_id."""
    header = text.partition("\n")[0]
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=header.count))
    if "trajectory_id" not in (reader.fieldnames or ()):
        raise ValueError(f"{name} has no column trajectory_id; name a new file")
    return [{key: value or "" for key, value in row.items() if key is not None} for row in reader]


def write_sheet(
    drawn: Sequence[str],
    question: str,
    earlier: Sequence[Mapping[str, str]] = (),
    texts: Mapping[str, RunTexts] | None = None,
    space: str = "",
) -> str:
    """Return the CSV with the earlier rows, which keep their answers, and a row for each other drawn run.

    Args:
        drawn: The ids of all drawn runs.
        question: The column for the answers.
        earlier: The rows of the file that is extended.
        texts: Goals and answers, keyed by `reading_key`. If given, the file has them and a link for each run.
        space: The address of the Space that shows the runs.
    """
    known = {reading_key(row["trajectory_id"]) for row in earlier}
    rows = [dict(row) for row in earlier]
    rows += [{"trajectory_id": run} for run in sorted(drawn) if reading_key(run) not in known]
    columns = dict.fromkeys(["trajectory_id", question, *(key for row in rows for key in row)])
    if texts is not None:
        columns |= dict.fromkeys(("goal", "answer", "link"))
        for row in rows:
            found = texts.get(reading_key(row["trajectory_id"]), RunTexts())
            address = f"{space.rstrip('/')}/trajectories?id={quote(row['trajectory_id'])}"
            new = {"goal": _cell(found.goal), "answer": _cell(found.answer), "link": address}
            row.update({key: value for key, value in new.items() if not row.get(key)})
    return csv_text(list(columns), [[row.get(key, "") for key in columns] for row in rows])


def _cell(text: str) -> str:
    """Return the text in a form that a spreadsheet does not read as a formula."""
    return f"'{text[:LONGEST_TEXT]}" if text.startswith(_FORMULA) else text[:LONGEST_TEXT]


def texts_of(source: Path, drawn: Sequence[str]) -> dict[str, RunTexts]:
    """Return the goals and answers of drawn runs in their source, keyed by `reading_key`.

    Raises SourceError if the source cannot be read, or has none of the runs.
    """
    opened, wanted = sources.open_source(source), set(map(reading_key, drawn))
    found = {}
    for file in opened.list_runs().files:
        key = reading_key(file.trajectory_id)
        if key in wanted:
            try:
                run = opened.read_parts(file, axtrees="none", screenshots="none", goal_images=False)
            except problems.UnusableFileError:
                continue
            found[key] = RunTexts(run.goal, run.answer or "")
    if drawn and not found:
        raise problems.SourceError(f"{source} contains none of the drawn runs, such as {drawn[0]}")
    return found
