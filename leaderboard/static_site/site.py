"""The files of a read-only site of a board: a pure function of the board. No script, no server."""

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from core.console import interval, percent
from dataset_script.vocabulary import AGENT_TITLES, BENCHMARK_TITLES, LABEL_TITLES, LABELS
from leaderboard.board import Board, BoardRow
from leaderboard.board_csv import board_to_csv

FOLDER = Path(__file__).parent
PROVENANCES: Final = {
    "scored": "scored here from a prediction file",
    "published": "published figures",
    "self-reported": "figures that its makers report",
    "reference": "a reference, not a judge",
}
FEW_POSITIVES: Final = 20
"""A cell with fewer positive labels is marked: its figures move by points with every run."""


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
    """A rank as it is read: the place, or the range of places that the data leave open."""
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
        benchmark_titles=BENCHMARK_TITLES, provenances=PROVENANCES, few=FEW_POSITIVES,
    )  # fmt: skip
    return environment


def _render(template: str, **values) -> str:
    return _environment().get_template(template).render(**values)
