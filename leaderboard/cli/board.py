"""``arb leaderboard board`` and ``export``: print the board, or write it in another format."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from arb.core.cli import JsonOption, plain_console, stop, write_file
from arb.core.console import counted, printable
from arb.core.files import new_folder
from arb.core.lazy import lazy_imports
from arb.core.vocabulary import EVIDENCE, metric_name
from leaderboard.cli.options import described
from leaderboard.cli.score import metric_texts
from leaderboard.cli.text import print_template

with lazy_imports():
    from rich import box

    from arb.core import suite as suites
    from leaderboard import metrics
    from leaderboard.board import board as boards
    from leaderboard.board import every_eval_ever
    from leaderboard.board import export as exports
    from leaderboard.board import rows as board_rows
    from leaderboard.paper import published

if TYPE_CHECKING:
    from rich.console import Console

    from leaderboard.board.board import Board

WIDE = 110
"""Terminals with at least this many columns also show the number of trajectories and the evidence."""


@described
def board(
    file: Path | None = None,
    label: str | None = None,
    metric: str | None = None,
    as_csv: bool = False,
    as_json: JsonOption = False,
) -> None:
    """Print the leaderboard, best judge first.

    Below the table, the command explains what each row's metrics rest on, and why some rows have no rank.
    """
    found = _read_board(file)
    if as_json and as_csv:
        stop("--json and --csv cannot be used together; choose one")
    if as_json:
        typer.echo(found.to_bytes())
    elif as_csv:
        typer.echo(exports.board_to_csv(found), nl=False)
    else:
        try:
            label = label or found.main.name
            metric = metric or found.target(label).main_metric
            found.ranks(label, metric)
        except ValueError as problem:
            stop(f"--{problem}")
        print_board(found, label, metric, plain_console())


@described
def export(
    out: Path,
    file: Path | None = None,
    format: Literal["every-eval-ever"] = "every-eval-ever",
    retrieved: int | None = None,
) -> None:
    """Export the leaderboard in the format of another project.

    The format every-eval-ever is schema 0.3.0 of https://github.com/evaleval/every_eval_ever.
    """
    found = _read_board(file)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        stop(f"{out} exists and is not an empty folder; name a new one with --out")
    files = every_eval_ever.every_eval_ever(found, int(time.time()) if retrieved is None else retrieved)
    with new_folder(out) as part:
        for name, content in files.items():
            write_file(part / name, content)
    typer.echo(f"Wrote {counted(len(files), 'judge')} to {out}.")


def _read_board(file: Path | None) -> Board:
    """Read a board from a file, or make one from the published rows; stop if the file is not a board."""
    if file is None:
        return boards.make_board(suites.OFFICIAL, [], published.load_published_rows(), None)
    try:
        return boards.Board.from_bytes(file.read_bytes())
    except ValueError as problem:
        stop(f"{file} {problem}", code=1)


def print_board(board: Board, label: str, metric: str, console: Console) -> None:
    target = board.target(label)
    rows = board.ranking(label, metric)
    if not rows:
        stop(f"the board has no rows on {target.title.lower()}; use another --label", code=1)
    usual = ("precision", "recall", "f1") if target.type == "binary" else target.metrics
    version = f", labels {board.label_version}" if board.label_version else ""
    ranks = board.ranks(label, metric)
    unranked: dict[str, list[str]] = {}
    for row in rows:
        if ranks.get(row.id) is None:
            is_best = row.id in ranks
            reason = board_rows.why_not_ranked(row, label, metric, is_best, target.main_metric)
            unranked.setdefault(reason, []).append(row.judge)
    print_template(
        "board.txt.j2",
        console,
        title=printable(f"{target.title} on {board.suite}{version}"),
        box=box.SIMPLE_HEAD,
        version=board.label_version,
        rows=rows,
        label=label,
        metric=metric,
        metric_name=metric_name(metric),
        others=[name for name in usual if name != metric],
        formulas=metrics.known_metrics(target),
        texts=metric_texts,
        ranks=ranks,
        unranked=unranked,
        evidence=EVIDENCE,
        is_wide=console.width >= WIDE,
    )
