"""``arb leaderboard board`` and ``export``: print the board, or write it in another format."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from arb.core.cli import JsonOption, plain_console, stop, write_file
from arb.core.console import printable, text_table
from arb.core.lazy import lazy_imports
from arb.core.vocabulary import EVIDENCE, metric_name
from leaderboard.cli.options import described
from leaderboard.cli.score import metric_texts

with lazy_imports():
    from rich import box

    from arb.core import suite as suites
    from leaderboard import metrics
    from leaderboard import score as scores
    from leaderboard.board import board as boards
    from leaderboard.board import every_eval_ever
    from leaderboard.board import export as exports
    from leaderboard.board import rows as board_rows
    from leaderboard.paper import published

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import Console

    from arb.core.suites.targets import Target
    from leaderboard.board.board import Board
    from leaderboard.board.ranks import Rank
    from leaderboard.board.rows import BoardRow

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
    for name, content in files.items():
        write_file(out / name, content)
    typer.echo(f"Wrote {len(files)} judges to {out}.")


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
    formulas = metrics.known_metrics(target)
    rows = board.ranking(label, metric)
    if not rows:
        stop(f"the board has no rows on {target.title.lower()}; use another --label", code=1)
    usual = ("precision", "recall", "f1") if target.type == "binary" else target.metrics
    others = tuple(name for name in usual if name != metric)
    version = f", labels {board.label_version}" if board.label_version else ""
    title = f"{target.title} on {board.suite}{version}"
    table = text_table(title=printable(title), box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("", no_wrap=True)
    table.add_column("judge", overflow="fold")  # the column that shrinks in a narrow terminal
    is_wide = console.width >= WIDE
    headings = (formulas[metric].title, "95 %", *(formulas[name].title for name in others))
    for heading in (*headings, "n") if is_wide else headings:
        table.add_column(heading, justify="right", no_wrap=True)
    if is_wide:
        table.add_column("evidence", no_wrap=True)
    ranks = board.ranks(label, metric)
    for row in rows:
        cell, rank = row.score(label)["overall"], ranks.get(row.id)
        texts = ["not ranked" if rank is None else rank.range_text(), printable(_name(row))]
        texts += metric_texts(formulas[metric], scores.metric_of(cell, metric), row.interval(cell, metric))
        texts += [metric_texts(formulas[name], scores.metric_of(cell, name), None)[0] for name in others]
        if is_wide:
            texts += ["" if cell["n"] is None else f"{cell['n']:,}", row.evidence]
        table.add_row(*texts)
    console.print(table)
    console.print(
        f"Judges are ranked by {metric_name(metric)}. A range covers every rank that the data allow. Two "
        "judges whose ranges overlap can still be separated: see separated_from in --json and --csv."
    )
    needs = [f"{printable(row.judge)} {row.needs}." for row in rows if row.needs]
    for line in (*_evidence(rows, is_wide), *needs, *_unranked(rows, target, metric, ranks)):
        console.print(line)


def _evidence(rows: Sequence[BoardRow], has_column: bool) -> Iterator[str]:
    """Yield a line per kind of evidence, with the judges' names unless the table has a column for it."""
    for name, meaning in EVIDENCE.items():
        judges = dict.fromkeys(row.judge for row in rows if row.evidence == name)
        if judges:
            names = "" if has_column else f" ({printable(', '.join(judges))})"
            yield f"{name}: {meaning}{names}."


def _unranked(
    rows: Sequence[BoardRow], target: Target, metric: str, ranks: Mapping[str, Rank | None]
) -> Iterator[str]:
    """Yield a line for each reason why rows have no rank, with the judges concerned."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if ranks.get(row.id) is None:
            is_best = row.id in ranks
            reason = board_rows.why_not_ranked(row, target.name, metric, is_best, target.main_metric)
            reasons.setdefault(reason, []).append(row.judge)
    for reason, judges in reasons.items():
        yield f"Not ranked ({reason}): {printable(', '.join(judges))}."


def _name(row: BoardRow) -> str:
    name = f"{row.judge} ({row.inputs})" if row.inputs else row.judge
    return f"{name}, {row.account}" if row.account else name
