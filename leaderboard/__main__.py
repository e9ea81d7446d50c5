"""``python -m leaderboard``: labels, score, calibrate, audit, tables, agreement, ceiling, annotations."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from dataset_script.command_line import (
    JsonOption,
    SplitOption,
    SuiteOption,
    new_command,
    plain_console,
    read_settings,
    read_suite,
    stop,
)
from leaderboard.agreement_commands import agreement, ceiling
from leaderboard.annotation_commands import annotation_template, annotations, dev_labels
from leaderboard.calibrate_command import calibrate
from leaderboard.table_commands import tables

app = new_command()
app.command()(calibrate)
app.command()(tables)
app.command()(agreement)
app.command()(ceiling)
app.command()(annotations)
app.command()(annotation_template)
app.command()(dev_labels)
PolicyOption = Annotated[
    Literal["strict", "published"], typer.Option(help="strict: no verdict counts as no; published: left out.")
]


@app.callback()
def leaderboard() -> None:
    """Score prediction files, look at the labels' counts, audit published figures."""


@app.command()
def labels(suite: SuiteOption = None, as_json: JsonOption = False) -> None:
    """Count the labels.

    By split and benchmark, never which; fetches the official labels where they are not here yet.
    """
    from dataset_script.vocabulary import SPLITS
    from leaderboard.label_summary import print_summaries, summarise
    from leaderboard.labels import load_labels

    settings = read_settings()
    chosen = read_suite(suite, settings)
    summaries, missing = [], []
    for split in SPLITS:
        try:
            summaries.append(summarise(load_labels(chosen, split, settings)))
        except _label_errors() as error:
            missing.append(f"{split}: {error}")
    if as_json:
        print(json.dumps({"splits": summaries, "missing": missing}, indent=2))
    else:
        print_summaries(summaries, plain_console())
    for message in missing:
        typer.echo(f"error: labels of {message}", err=True)
    raise typer.Exit(1 if missing else 0)


@app.command()
def score(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="JSONL, CSV or Parquet.")],
    split: SplitOption,
    suite: SuiteOption = None,
    policy: Annotated[
        str, typer.Option(help="strict: no verdict counts as no; published: left out.")
    ] = "strict",
    as_json: JsonOption = False,
) -> None:
    """Score a prediction file.

    Figures overall, by benchmark and by agent, with 95 % intervals over tasks.
    """
    from leaderboard.labels import load_labels
    from leaderboard.report import score_report
    from leaderboard.report_tables import print_report
    from leaderboard.verdict_files import VerdictFileError, read_verdict_file

    settings = read_settings()
    chosen = read_suite(suite, settings)
    try:
        verdicts = read_verdict_file(file, chosen, split, settings.max_upload_bytes)
    except VerdictFileError as problem:
        stop(str(problem), code=1)
    try:
        report = score_report(verdicts, load_labels(chosen, split, settings), policy)
    except _label_errors() as error:
        stop(f"no labels to score {split} with: {error}", code=1)
    if as_json:
        print(json.dumps(report, indent=2))
    else:
        print_report(report, file.name, plain_console())


@app.command()
def audit(as_json: JsonOption = False) -> None:
    """Audit the published figures.

    Works the counts behind each out again, and says where no whole numbers or several fit.
    """
    from leaderboard.audit_report import audit_table, audit_to_json
    from leaderboard.published_rows import load_published_rows

    rows = load_published_rows()
    if as_json:
        print(json.dumps(audit_to_json(rows), indent=2))
        return
    plain_console().print(audit_table(rows))


def _label_errors() -> tuple[type[Exception], ...]:
    from leaderboard.label_source import LabelsUnavailable
    from leaderboard.labels import LabelsInvalid

    return LabelsUnavailable, LabelsInvalid


if __name__ == "__main__":
    app(prog_name="python -m leaderboard")
