"""``arb data rewards``: write the rewards in recorded runs as a CSV file, which `build --rewards` reads.

Logs may hold the scores of several scorers, and some of these may be judges. So a build does not read scores
by itself: the user chooses one, and it becomes the rule-based row of a suite.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from arb.core.cli import flags, next_step, stop, write_file
from arb.core.console import printable
from arb.core.files import csv_text
from arb.core.lazy import lazy_imports
from dataset_script.commands import described, one_line_errors

with lazy_imports():
    from dataset_script import sources
    from dataset_script.build import rewards as files
    from dataset_script.sources import problems, released_files

if TYPE_CHECKING:
    from dataset_script.sources.base import SourceFile, TrajectorySource


@described
def rewards(
    source: Path,
    out: Path = Path("rewards.csv"),
    score: str | None = None,
    allow_class: list[str] | None = None,
) -> None:
    """Write the rewards that recorded runs contain.

    The file has the columns trajectory_id, success (whether the reward is above 0.5) and reward, and one row
    per run. It can be used as a file of verdicts, and `build --rewards` reads it.
    """
    with one_line_errors():
        opened = sources.open_source(source, tuple(allow_class or ()))
        found = {file.trajectory_id: _scores(opened, file) for file in opened.list_runs().files}
        names = sorted({name for scores in found.values() for name in scores})
        if not names:
            stop(f"{source}: no run has a reward or a score")
        if score is None and len(names) > 1:
            stop(f"{source}: the runs have several scores; choose one with --score: {', '.join(names)}")
        chosen = score or names[0]
        if chosen not in names:
            stop(f"--score {printable(chosen)}: no run has this score; use {' or '.join(names)}")
        rows = [(run, "", "") for run in found]
        known = 0
        for place, (run, scores) in enumerate(found.items()):
            if (reward := scores.get(chosen)) is not None:
                known += 1
                rows[place] = run, str(reward > released_files.SUCCESS_ABOVE).lower(), f"{reward:g}"
        write_file(out, csv_text(files.COLUMNS, rows))
    typer.echo(f"{out}: the {printable(chosen)} of {known:,} of {len(rows):,} runs")
    options = flags(source=source, rewards=out, suite="SUITE", out="DATASET")
    next_step("make it the rule-based row of your suite", "data", "build", *options)


def _scores(source: "TrajectorySource", file: "SourceFile") -> Mapping[str, float]:
    """Return the scores of a run, keyed by name; empty if the run cannot be read."""
    try:
        return source.scores(file)
    except problems.UnusableFileError:
        return {}
