"""``python -m leaderboard``: commands for the board, labels, scores, published figures and estimates."""

from arb.core.cli import new_command
from leaderboard.cli.agreement import agreement, ceiling
from leaderboard.cli.board import board, export
from leaderboard.cli.estimate import estimate
from leaderboard.cli.labels import annotation_template, convert_annotations, dev_labels, labels
from leaderboard.cli.paper import audit, tables
from leaderboard.cli.score import calibrate, score

app = new_command()
app.command()(board)
app.command()(export)
app.command()(calibrate)
app.command()(tables)
app.command()(agreement)
app.command()(ceiling)
app.command("annotations")(convert_annotations)
app.command()(annotation_template)
app.command()(dev_labels)
app.command()(labels)
app.command()(score)
app.command()(audit)
app.command()(estimate)


@app.callback()
def leaderboard() -> None:
    """Print the board, score prediction files, count labels, audit published figures."""


if __name__ == "__main__":
    app(prog_name="python -m leaderboard")
