"""The board as CSV and as a read-only site: a folder of plain files that needs no script and no server.

The CSV is safe to open in a spreadsheet: text that a spreadsheet would run as a formula is made inert. The
site is written whole or not at all.
"""

import csv
import hashlib
import io
import re
import shutil
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from core.console import interval, percent
from core.vocabulary import AGENT_TITLES, BENCHMARK_TITLES, LABEL_TITLES, LABELS
from leaderboard.board.board import Board, BoardRow

FORMULA_SIGNS: Final = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
_AT_START: Final = re.compile(rf"\s*[{re.escape(''.join(FORMULA_SIGNS))}]|[\t\r\n]")
_IN_NEW_CELL: Final = re.compile(rf"(;[\s\"]*)(?=[{re.escape(''.join(FORMULA_SIGNS))}])")


def inert(value: Any) -> Any:
    """The value; a text that a spreadsheet would take for a formula gets an apostrophe before the sign.

    The signs count also after blanks and in the wide form that East Asian keyboards write; a control
    character at the start hides one from the eye. Where the comma is the decimal mark, spreadsheets split a
    line at semicolons, whatever quotes stand around: a sign after one begins a cell there.
    """
    if not isinstance(value, str):
        return value
    value = _IN_NEW_CELL.sub(r"\1'", value)
    return f"'{value}" if _AT_START.match(value) else value


DESCRIPTION = (
    "id", "judge", "account", "kind", "inputs", "model", "authors", "link", "date", "provenance", "source",
    "attempts", "test_labels_used", "file_sha256", "protocol", "split", "evidence",
)  # fmt: skip
RANK = ("place", "low", "high")
FIGURES = (
    "n", "positives", "tp", "fp", "fn", "tn", "no_verdict", "coverage", "precision", "recall", "f1",
    "accuracy", "npv", "tnr", "kappa", "fpr", "balanced_accuracy",
)  # fmt: skip
INTERVALS = ("precision_ci", "recall_ci", "f1_ci")


def board_to_csv(board: Board) -> str:
    """Every row and label: description, rank, overall figures, intervals, precision by benchmark.

    Fractions; empty where unknown. A text that a spreadsheet would run as a formula gets an apostrophe
    in front.
    """
    benchmarks = sorted({name for row in board.rows for found in row.labels.values() if found
                         for name in found["by_benchmark"]})  # fmt: skip
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\r\n")  # RFC 4180; so a lone carriage return is quoted too
    ends = [f"{name}_{end}" for name in INTERVALS for end in ("low", "high")]
    writer.writerow(["label", *(f"rank_{name}" for name in RANK), *DESCRIPTION, *FIGURES, *ends,
                     *(f"precision_{name}" for name in benchmarks), "note"])  # fmt: skip
    for label in LABELS:
        for row in board.ranking(label):
            found = row.labels[label]
            overall, rank = found["overall"], found["rank"] or {}
            by_benchmark = [found["by_benchmark"].get(name, {}).get("precision") for name in benchmarks]
            intervals = [end for name in INTERVALS for end in overall[name] or (None, None)]
            described = [inert(getattr(row, name)) for name in DESCRIPTION]
            note = "; ".join(filter(None, (row.note, found["note"])))
            writer.writerow([label, *(rank.get(name) for name in RANK), *described,
                             *(overall[name] for name in FIGURES), *intervals, *by_benchmark,
                             inert(note)])  # fmt: skip
    return output.getvalue()


FOLDER = Path(__file__).parent / "static_site"
PROVENANCE_TITLES: Final = {
    "scored": "scored here from a prediction file",
    "published": "published metrics",
    "self-reported": "metrics that its authors report",
    "reference": "a reference, not a judge",
}
FEW_POSITIVES: Final = 20
"""A cell with fewer positive labels is marked: its metrics move by points with every trajectory."""


def site_files(board: Board) -> dict[str, bytes]:
    """Every file of the site by its path: ``index.html``, a page for each judge, style, data."""
    pages = {row.id: f"judges/{page_name(row.id)}.html" for row in board.rows}
    files = {
        "index.html": _render("index.html", board=board, root="", pages=pages, tables=_tables(board)),
        **{
            pages[row.id]: _render("judge.html", board=board, root="../", row=row, labels=_labels_of(row))
            for row in board.rows
        },
    }
    return {
        **{path: html.encode() for path, html in files.items()},
        "site.css": (FOLDER / "site.css").read_bytes(),
        "board.json": board.to_bytes(),
        "board.csv": board_to_csv(board).encode(),
    }


def page_name(row_id: str) -> str:
    """A file name for a row: of its id where that is one, else of its hash."""
    is_plain = row_id.replace("-", "").isalnum() and row_id.isascii()
    return row_id if is_plain else hashlib.sha256(row_id.encode()).hexdigest()[:16]


def _tables(board: Board) -> list[dict[str, Any]]:
    """What the index shows of each label: benchmarks that occur, and rows in their order."""
    found = []
    for label in LABELS:
        rows = board.ranking(label)
        there = {name for row in rows for name in row.labels[label]["by_benchmark"]}
        if rows:
            benchmarks = [name for name in BENCHMARK_TITLES if name in there]
            benchmarks += sorted(there - set(benchmarks))
            found.append(
                {"label": label, "title": LABEL_TITLES[label], "rows": rows, "benchmarks": benchmarks}
            )
    return found


def _labels_of(row: BoardRow) -> list[dict[str, Any]]:
    """What a judge's page shows of each label: cells with their titles, overall first."""
    return [
        {"title": LABEL_TITLES[label], "rank": found["rank"], "cells": _cells(found), "note": found["note"]}
        for label in LABELS
        if (found := row.labels.get(label))
    ]


def _cells(found: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    by_benchmark = [(BENCHMARK_TITLES.get(n, n), cell) for n, cell in found["by_benchmark"].items()]
    by_agent = [(AGENT_TITLES.get(n, n), cell) for n, cell in found["by_agent"].items()]
    return [("Overall", found["overall"]), *by_benchmark, *by_agent]


def places(rank: Mapping[str, int] | None) -> str:
    """A rank as text: one number, or the range that the data leave open."""
    if rank is None:
        return ""
    low, high = rank["low"], rank["high"]
    return f"{low}" if low == high else f"{low} to {high}"


def web_address(link: str) -> str:
    """A link as far as it is one that may be followed; else nothing."""
    return link if link.lower().startswith(("https://", "http://")) else ""


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        percent=percent, interval=interval, places=places, web_address=web_address,
        benchmark_titles=BENCHMARK_TITLES, provenances=PROVENANCE_TITLES, few=FEW_POSITIVES,
    )  # fmt: skip
    return environment


def _render(template: str, **values) -> str:
    return _environment().get_template(template).render(**values)


class FolderTaken(Exception):
    """The folder holds something that is no site of ours; the message says what to do."""


def write_static_site(board: Board, folder: Path) -> int:
    """Write the site of a board to ``folder`` and return how many files it has.

    An older site there is replaced at once; anything else in the way is left alone: raises FolderTaken.
    """
    if folder.exists() and not _is_replaceable(folder):
        raise FolderTaken(f"{str(folder)!r} contains other files; use a new or an empty folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    files = site_files(board)
    part = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
    try:
        for name, content in files.items():
            path = part / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        part.chmod(0o755)
        if folder.exists():
            old = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-old-"))
            folder.replace(old / "site")
            part.replace(folder)
            shutil.rmtree(old)
        else:
            part.replace(folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return len(files)


def _is_replaceable(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    names = {path.name for path in folder.iterdir()}
    return not names or {"index.html", "site.css", "board.json"} <= names
