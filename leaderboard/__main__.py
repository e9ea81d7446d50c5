"""The metric, the labels, statistics, published rows and the board. Imports ``core`` and ``dataset_script``.

``python -m leaderboard``: board, export, labels, score, calibrate, audit, tables, agreement, ceiling,
annotations, estimate.
"""

from arb.core.cli import new_command
from leaderboard.cli.agreement import agreement, ceiling
from leaderboard.cli.board import board, export
from leaderboard.cli.estimate import estimate
from leaderboard.cli.labels import annotation_template, annotations, dev_labels, labels
from leaderboard.cli.paper import audit, tables
from leaderboard.cli.score import calibrate, score

app = new_command()
for command in (
    board, export, calibrate, tables, agreement, ceiling, annotations, annotation_template, dev_labels,
    labels, score, audit, estimate,
):  # fmt: skip
    app.command()(command)


@app.callback()
def leaderboard() -> None:
    """Print the board, score prediction files, look at the labels' counts, audit published figures."""


if __name__ == "__main__":
    app(prog_name="python -m leaderboard")
