"""``judges list``: the table of judges, and their other names."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

from core.console import text_table
from dataset_script.command_line import JsonOption, plain_console

if TYPE_CHECKING:
    from judges.registry import RegisteredJudge


def list_judges(as_json: JsonOption = False) -> None:
    """List the judges: name, what each sees, calls for a trajectory, default model, source.

    Where calls are n, n is the number of the trajectory's steps, or of its screenshots.
    """
    from judges.registry import entries

    rows = [_row(entry) for entry in entries()]
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False))
        return
    _print_table(rows)
    typer.echo("Other names:")
    for row in rows:
        if row["aliases"]:
            typer.echo(f"  {row['name']}: {', '.join(row['aliases'])}")


def _row(entry: RegisteredJudge) -> dict[str, Any]:
    judge = entry.judge
    return {
        "name": judge.name,
        "aliases": list(entry.aliases),
        "inputs": getattr(judge, "inputs", ""),
        "calls": getattr(judge, "calls", "0"),
        "models": dict(getattr(judge, "models", {})),
        "source": getattr(judge, "source", ""),
    }


def _print_table(rows: list[dict[str, Any]]) -> None:
    from rich import box

    table = text_table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("judge", "sees", "calls", "default model", "source"):
        table.add_column(heading, overflow="fold", no_wrap=heading != "sees")
    for row in rows:
        models = ", ".join(dict.fromkeys(row["models"].values())) or "none"
        table.add_row(row["name"], row["inputs"], row["calls"], models, row["source"])
    plain_console().print(table)
