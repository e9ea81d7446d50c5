"""``python -m leaderboard``: labels, score, calibrate, audit, tables, agreement, ceiling, annotations."""

from dataset_script.command_line import new_command
from leaderboard.agreement_commands import agreement, ceiling
from leaderboard.annotation_commands import annotation_template, annotations, dev_labels, labels
from leaderboard.calibrate_command import calibrate, score
from leaderboard.table_commands import audit, tables

app = new_command()
for command in (
    calibrate, tables, agreement, ceiling, annotations, annotation_template, dev_labels, labels, score, audit,
):  # fmt: skip
    app.command()(command)


@app.callback()
def leaderboard() -> None:
    """Score prediction files, look at the labels' counts, audit published figures."""


if __name__ == "__main__":
    app(prog_name="python -m leaderboard")
