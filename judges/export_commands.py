"""``judges export``: a run in another form."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dataset_script.command_line import stop


def export(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    out: Annotated[Path, typer.Option("--out", help="The folder to write judgments/ into.")],
    released_layout: Annotated[
        bool, typer.Option("--released-layout", help="As the paper's judgments were released.")
    ] = False,
    judge_folder: Annotated[
        str | None, typer.Option("--judge-folder", help="Another name for the judge's folder.")
    ] = None,
) -> None:
    """Write a run's judgments in another form.

    One file a judgment with the reply that tells it; what the judge was shown is not in it.
    """
    from judges.engine.run_folder import RunFolderError
    from judges.export import ExportError, export_released_layout

    if not released_layout:
        stop("name the form: --released-layout")
    try:
        done = export_released_layout(run, out, judge_folder)
    except (ExportError, RunFolderError) as problem:
        stop(str(problem))
    except OSError as problem:
        stop(f"{out}: cannot be written ({problem.strerror})")
    typer.echo(f"wrote {done.files:,} judgments as {done.judge}, {done.errors:,} of them failures", err=True)
    if done.left_out:
        stop(
            f"{len(done.left_out):,} judgments are left out, since no single reply in them says the verdict: "
            f"{', '.join(done.left_out[:5])}{' …' if len(done.left_out) > 5 else ''}",
            code=1,
        )
