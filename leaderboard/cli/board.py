"""``python -m leaderboard board`` and ``export``: the board in a terminal, and in the formats of others."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from arb.core.cli import JsonOption, plain_console, stop
from arb.core.console import interval, percent, printable, text_table
from arb.core.vocabulary import EVIDENCE, LABEL_TITLES, LABELS, METRIC_TITLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import Console

    from leaderboard.board.board import Board, BoardRow
    from leaderboard.board.ranks import Rank

FileArgument = Annotated[
    Path | None,
    typer.Argument(help="A board.json of a Space (GET /api/board.json); the published rows if left out."),
]
SMALL = ("precision", "recall", "f1")
WIDE = 110
"""Columns of a terminal from which the number of trajectories and the evidence have columns of their own."""


def board(
    file: FileArgument = None,
    label: Annotated[Literal[LABELS], typer.Option(help="The label to show.")] = "success",
    metric: Annotated[
        Literal[tuple(METRIC_TITLES)], typer.Option(help="The metric to order and to rank by.")
    ] = "precision",
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the board as CSV, all labels.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the leaderboard.

    Best first, with 95 % intervals, what the metrics rest on, and why a row has no rank.
    """
    found = _read_board(file)
    if as_json and as_csv:
        stop("--json and --csv exclude each other; give one of them")
    if as_json:
        typer.echo(found.to_bytes())
    elif as_csv:
        from leaderboard.board.export import board_to_csv

        typer.echo(board_to_csv(found), nl=False)
    else:
        print_board(found, label, metric, plain_console())


def export(
    out: Annotated[Path, typer.Option(help="A folder to write to: a new or an empty one.")],
    file: FileArgument = None,
    format: Annotated[
        Literal["every-eval-ever"], typer.Option(help="every-eval-ever: a JSON file for each judge.")
    ] = "every-eval-ever",
    retrieved: Annotated[
        int | None, typer.Option(help="When the board was retrieved, in Unix seconds; now if left out.")
    ] = None,
) -> None:
    """Write the leaderboard in the format of another collection of results.

    every-eval-ever: https://github.com/evaleval/every_eval_ever, schema 0.3.0.
    """
    from arb.core.files import atomic_write
    from leaderboard.board.export import every_eval_ever

    found = _read_board(file)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        stop(f"{out.name} is there and not an empty folder; give a new one with --out")
    files = every_eval_ever(found, int(time.time()) if retrieved is None else retrieved)
    for name, content in files.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, content)
    typer.echo(f"{len(files)} judges written to {out}")


def _read_board(file: Path | None) -> Board:
    """A board from its file, or that of the published rows; ends the command where it is none."""
    from arb.core.suite import OFFICIAL
    from leaderboard.board.board import Board, make_board
    from leaderboard.paper.published import load_published_rows

    if file is None:
        return make_board(OFFICIAL, [], load_published_rows(), None)
    try:
        return Board.from_bytes(file.read_bytes())
    except OSError as error:
        stop(f"{file.name} cannot be read ({error.strerror}); give the path of a board.json")
    except ValueError as problem:
        stop(f"{file.name} {problem}", code=1)


def print_board(board: Board, label: str, metric: str, console: Console) -> None:
    """Print the rows of a label, best first by a metric; percentages with one decimal."""
    from rich import box

    rows = board.ranking(label, metric)
    if not rows:
        stop(f"the board has no rows on {LABEL_TITLES[label].lower()}", code=1)
    others = tuple(name for name in SMALL if name != metric)
    version = f", labels {board.label_version}" if board.label_version else ""
    title = f"{LABEL_TITLES[label]} on {board.suite}{version}"
    options = {"box": box.SIMPLE_HEAD, "pad_edge": False, "collapse_padding": True}
    table = text_table(title=printable(title), **options)
    table.add_column("", no_wrap=True)
    table.add_column("judge", overflow="fold")  # the one that gives way in a narrow terminal
    is_wide = console.width >= WIDE
    headings = (METRIC_TITLES[metric], "95 %", *(METRIC_TITLES[name] for name in others))
    for heading in (*headings, "n") if is_wide else headings:
        table.add_column(heading, justify="right", no_wrap=True)
    if is_wide:
        table.add_column("evidence", no_wrap=True)
    ranks = board.ranks(label, metric)
    for row in rows:
        cell = row.labels[label]["overall"]
        texts = [
            _places(ranks.get(row.id)), printable(_name(row)), percent(cell.get(metric)),
            interval(cell.get(f"{metric}_ci")), *(percent(cell[name]) for name in others),
        ]  # fmt: skip
        wide = ["" if cell["n"] is None else f"{cell['n']:,}", row.evidence] if is_wide else []
        table.add_row(*texts, *wide)
    console.print(table)
    name = METRIC_TITLES[metric]
    name = name if name.isupper() else name.lower()
    console.print(f"Ranks are by {name}; a range is what the data leave open.")
    for line in (*_evidence(rows, is_wide), *_unranked(rows, label, ranks)):
        console.print(line)


def _evidence(rows: Sequence[BoardRow], has_column: bool) -> Iterator[str]:
    """What the metrics rest on, with the judges where no column says it."""
    for name, meaning in EVIDENCE.items():
        judges = dict.fromkeys(row.judge for row in rows if row.evidence == name)
        if judges:
            names = "" if has_column else f" ({printable(', '.join(judges))})"
            yield f"{name}: {meaning}{names}."


def _unranked(rows: Sequence[BoardRow], label: str, ranks: Mapping[str, Rank | None]) -> Iterator[str]:
    """Why rows have no rank, with the judges."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if ranks.get(row.id) is None and row.provenance != "reference":
            reasons.setdefault(unranked_reason(row, row.labels[label]), []).append(row.judge)
    for reason, judges in reasons.items():
        yield f"Not ranked, {reason}: {printable(', '.join(judges))}."


def unranked_reason(row: BoardRow, found: Mapping[str, Any]) -> str:
    """Why a row that is no reference has no rank."""
    if row.provenance == "scored":
        return "metric undefined" if found["best"] else "another submission of the judge is ranked"
    if row.is_comparable and row.split != "test":
        return "split not named, test by its metrics"
    return row.why_not_comparable or "reported by its authors"


def _name(row: BoardRow) -> str:
    name = f"{row.judge} ({row.inputs})" if row.inputs else row.judge
    return f"{name}, {row.account}" if row.account else name


def _places(rank: Rank | None) -> str:
    if rank is None:
        return ""
    return f"{rank.low}" if rank.low == rank.high else f"{rank.low} to {rank.high}"
