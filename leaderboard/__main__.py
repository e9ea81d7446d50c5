"""``arb leaderboard``: commands for the board, labels, published figures and estimates."""

from arb.core.cli import new_command
from leaderboard.cli.agreement import agreement, ceiling
from leaderboard.cli.board import board, export
from leaderboard.cli.estimate import estimate
from leaderboard.cli.labels import annotation_template, convert_annotations, dev_labels, labels
from leaderboard.cli.paper import audit, tables
from leaderboard.cli.score import calibrate

app = new_command()
for command in (board, export, calibrate, tables, agreement, ceiling):
    app.command()(command)
app.command("annotations")(convert_annotations)
for further_command in (annotation_template, dev_labels, labels, audit, estimate):
    app.command()(further_command)


@app.callback()
def leaderboard() -> None:
    """Print and export the board, check labels, audit published figures, estimate agents' rates."""


if __name__ == "__main__":
    app(prog_name="arb leaderboard")
