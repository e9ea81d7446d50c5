"""``python -m tools.sample_recorder``: record the shipped sample again, or look at its sites."""

import os
from pathlib import Path
from typing import Annotated

import typer

from arb.core.cli import new_command, read_settings, stop

app = new_command()


@app.callback()
def _about() -> None:
    """Record the sample: scripted agents on five small sites, not benchmark data."""


@app.command()
def record(
    out: Annotated[Path, typer.Option(help="Write the recordings here, in the released layout.")] = Path(
        "sample-recordings"
    ),
    only: Annotated[
        str,
        typer.Option(help="Record only these trajectory ids; * matches anything, as in '*/sample-map.1'."),
    ] = "*",
) -> None:
    """Record the sample in Chromium.

    Runs that are already in --out are kept, so a stopped recording resumes; a run takes about 10 seconds.
    `build --source OUT --suite sample` then makes the dataset. This needs the extra `record` (`make
    record-sample` installs it). Exit code 0: recorded; 2: the command cannot run as given.
    """
    from tools.sample_recorder.agents import ScriptError
    from tools.sample_recorder.browser import BrowserFailed, BrowserMissing
    from tools.sample_recorder.record import SlowMachine, runs
    from tools.sample_recorder.record import record as record_runs
    from tools.sample_recorder.sites.base import ServingError

    if not runs(only):
        stop(f"--only {only}: no trajectory id matches; one is {runs()[0].trajectory_id}")
    try:
        new, old = record_runs(out, only, read_settings().cache_dir.expanduser(), _progress)
    except KeyboardInterrupt:
        typer.echo(
            f"interrupted; {out} has only complete runs. Run the same command again to resume", err=True
        )
        os._exit(130)  # Playwright's own clean-up at exit can wait for ever for a browser that is gone
    except (BrowserFailed, BrowserMissing, OSError, ScriptError, ServingError, SlowMachine) as error:
        stop(str(error))
    typer.echo(f"{out}: {new} runs recorded, {old} were there already")


@app.command()
def sites() -> None:
    """Serve the five sites until Ctrl-C, so that you can look at them."""
    import time

    from tools.sample_recorder.sites import PLACES
    from tools.sample_recorder.sites.base import ServingError, serve_sites

    try:
        with serve_sites(PLACES):
            for benchmark, place in PLACES.items():
                typer.echo(f"{benchmark:15} {place.url}/")
            while True:
                time.sleep(3600)
    except ServingError as error:
        stop(str(error))
    except KeyboardInterrupt:
        typer.echo("ended")


def _progress(done: int, total: int, trajectory_id: str) -> None:
    """Print a line per run on stderr, since a recording takes minutes and may be watched in a log."""
    if trajectory_id:
        typer.echo(f"{done + 1} of {total}: {trajectory_id}", err=True)


if __name__ == "__main__":
    app(prog_name="python -m tools.sample_recorder")
