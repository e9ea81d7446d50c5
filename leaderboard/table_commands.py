"""``python -m leaderboard tables`` and ``audit``."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from dataset_script.command_line import JsonOption, plain_console, read_settings, read_suite, stop


def tables(
    table: Annotated[
        list[int] | None,
        typer.Option(help="A table's number in the paper; may be repeated. All if left out."),
    ] = None,
    format: Annotated[Literal["markdown", "latex"], typer.Option(help="What to print.")] = "markdown",
    verdicts: Annotated[
        list[str] | None,
        typer.Option(
            help="A judge's verdicts on test: FILE named as the judge (aer-c.jsonl), or NAME=FILE. "
            "May be repeated."
        ),
    ] = None,
) -> None:
    """Print the paper's tables, computed here, beside the printed figures.

    Every difference is explained. Tables 9 to 12 (one agent each) need verdict files.
    """
    from leaderboard.label_source import LabelsUnavailable
    from leaderboard.labels import LabelsInvalid, load_labels
    from leaderboard.paper_tables.evidence import gather
    from leaderboard.paper_tables.make import TABLES, make_table
    from leaderboard.paper_tables.text import to_latex, to_markdown

    if unknown := [str(number) for number in table or () if number not in TABLES]:
        stop(f"no table of results is numbered {', '.join(unknown)}; there are {', '.join(map(str, TABLES))}")
    settings = read_settings()
    suite = read_suite("agent-reward-bench", settings)
    try:
        labels = load_labels(suite, "test", settings)
    except (LabelsUnavailable, LabelsInvalid) as reason:
        typer.echo(f"without labels, tables 3 and 6 have no computed figures: {reason}", err=True)
        labels = None
    try:
        records = gather(labels, _read_all(verdicts or [], suite, settings.max_upload_bytes))
    except ValueError as problem:
        stop(str(problem), code=1)
    write = to_latex if format == "latex" else to_markdown
    typer.echo("\n".join(write(make_table(number, records)) for number in table or TABLES), nl=False)


def _read_all(named: list[str], suite, max_bytes: int) -> dict:
    """Every verdict file by its judge's name; stops with the errors of all of them."""
    from leaderboard.verdict_files import VerdictFileError, read_verdict_file

    found, problems = {}, []
    for text in named:
        name, given, path = text.rpartition("=")
        path = Path(path if given else text)
        try:
            found[name if given else path.stem] = read_verdict_file(path, suite, "test", max_bytes)
        except VerdictFileError as problem:
            problems.append(str(problem))
    if problems:
        raise ValueError("\n".join(problems))
    return found


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
