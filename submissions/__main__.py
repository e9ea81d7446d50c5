"""The command line `arb submissions`: check, fill in and submit files, and maintain the records."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from arb.core.cli import (
    JsonOption,
    SplitOption,
    SuiteOption,
    flags,
    new_command,
    new_file_option,
    next_step,
    plain_console,
    print_json,
    read_settings,
    read_suite,
    stop,
    write_file,
)
from arb.core.console import percent, text_table
from arb.core.lazy import lazy_imports
from arb.core.vocabulary import BENCHMARK_TITLES, JUDGE_INPUTS, JUDGE_KINDS
from submissions.cli import (
    accept_charge,
    account,
    export,
    export_labels,
    label_versions,
    new_secret,
    publish_labels,
    receipt,
    rescore,
    restore,
    verify,
)
from submissions.labels.commands import app as annotate_app

with lazy_imports():
    from rich import table as rich_table
    from rich import text as rich_text

    from arb.core import judge_info
    from arb.core.predictions import write
    from leaderboard import judge_names
    from submissions import client
    from submissions.intake import upload

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from arb.core.predictions.check import CheckResult
    from arb.core.predictions.findings import Finding

FileFormat = Literal["jsonl", "csv", "parquet"]
PredictionFile = Annotated[
    Path, typer.Argument(exists=True, dir_okay=False, help="Prediction file: JSONL, CSV or Parquet.")
]
app = new_command()
for command in (
    accept_charge, account, export, export_labels, label_versions, new_secret, publish_labels, receipt,
    rescore, restore, verify,
):  # fmt: skip
    app.command()(command)
app.add_typer(annotate_app, name="annotate")


@app.callback()
def submissions() -> None:
    """Fill in, check and submit prediction files; verify, rescore and export the records."""


@app.command("check")
def check_command(
    file: PredictionFile, split: SplitOption, suite: SuiteOption = None, as_json: JsonOption = False
) -> None:
    """Check a prediction file and list everything that is wrong with it.

    The exit code is 0 if the file is acceptable, 1 if it is not, and 2 if the check could not run.
    """
    settings = read_settings()
    chosen = read_suite(suite, settings)

    result = upload.read_upload(file, None, settings, suite=chosen, split=split).check
    if as_json:
        print_json(result.to_json())
    else:
        print_report(result, chosen.main_target.title.lower(), plain_console())
        _say_next(file, split, suite, is_acceptable=result.acceptable)
    raise typer.Exit(0 if result.acceptable else 1)


def _say_next(file: Path, split: str, suite: str | None, *, is_acceptable: bool) -> None:
    """Print the next step: correct the file, score it (dev), or submit it (test)."""
    if not is_acceptable:
        next_step("fix and check it again", "submissions", "check", file, *flags(split=split, suite=suite))
    elif split == "dev":
        next_step("score it", "score", file, *flags(split=split, suite=suite))
    else:
        words = {
            "account": "YOU",
            "judge": judge_names.judge_of_run(file) or "JUDGE",
            "kind": "KIND",
            "inputs": "INPUTS",
        }
        chosen = (file, *flags(suite=suite, **words))
        purpose = "submit it; replace the words in capitals and add --[no-]test-labels-used"
        next_step(purpose, "submissions", "submit", *chosen)


@app.command("template")
def template_command(
    split: SplitOption,
    suite: SuiteOption = None,
    file_format: Annotated[
        FileFormat | None,
        typer.Option("--format", help="Write this format (default: from the suffix of --out, else jsonl)."),
    ] = None,
    out: Annotated[
        Path | None, new_file_option("--out", help="Write to this new file (default: standard output).")
    ] = None,
) -> None:
    """Write a prediction file to fill in.

    The file has one row per trajectory of the split (and per step, if the suite asks about steps), and an
    empty column per target.
    """
    chosen = read_suite(suite, read_settings())

    formats: dict[str, FileFormat] = {".csv": "csv", ".parquet": "parquet"}
    file_format = file_format or formats.get(out.suffix.lower() if out else "", "jsonl")
    if out is None:
        if file_format == "parquet" and sys.stdout.isatty():
            stop("Parquet cannot be shown in a terminal; write it to a file with --out")
        sys.stdout.buffer.write(write.template(chosen, split, file_format))
        return
    if out.exists():
        stop(f"{str(out)!r} already exists and may contain verdicts; choose another file with --out")

    write_file(out, write.template(chosen, split, file_format))
    next_step("fill it in, then check it", "submissions", "check", out, *flags(split=split, suite=suite))


@app.command("submit")
def submit_command(  # noqa: PLR0913 - each option is an argument
    file: PredictionFile,
    space: Annotated[
        str | None, typer.Option(help="Submit to this address (default: from ARB_HOST and ARB_PORT).")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(help="Sign in with this Hugging Face token (default: HF_TOKEN).", show_default=False),
    ] = None,
    account: Annotated[str, typer.Option(help="Submit as this account. Required without a token.")] = "",
    judge: Annotated[str, typer.Option(help="Name the judge. Required.")] = "",
    kind: Annotated[str, typer.Option(help="Declare the kind of judge, such as 'LLM judge'. Required.")] = "",
    inputs: Annotated[str, typer.Option(help="Name what the judge sees, such as 'tree'. Required.")] = "",
    model: Annotated[str, typer.Option(help="Name the model that the judge uses.")] = "",
    authors: Annotated[str, typer.Option(help="Name the people who made the judge.")] = "",
    link: Annotated[str, typer.Option(help="Link to a page about the judge (https://).")] = "",
    test_labels_used: Annotated[
        bool | None,
        typer.Option(
            "--test-labels-used/--no-test-labels-used",
            help="Say whether test labels helped to build or tune the judge. Required.",
        ),
    ] = None,
    suite: SuiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Submit test verdicts to a Space.

    The file and the options are checked before anything is sent. If you submit the same file twice, it counts
    as one submission.
    """
    settings = read_settings()
    chosen = read_suite(suite, settings)

    if not (space or settings.port):
        stop("with ARB_PORT=0 the Space runs on a random port; pass the address that it printed as --space")
    is_named = bool(space)
    space = space or client.local_address(settings.host, settings.port)
    texts = {
        "account": account, "judge": judge, "kind": kind, "inputs": inputs, "model": model,
        "authors": authors, "link": link,
    }  # fmt: skip
    if not token and settings.hf_token is not None and client.may_carry_token(space):
        token = settings.hf_token.get_secret_value()
    checked = upload.read_upload(file, None, settings, suite=chosen, split="test").check
    problems = [finding.message for finding in checked.findings if finding.level == "error"]
    try:
        known = account or ("the account of the token" if token else "")
        judge_info.declare(**{**texts, "account": known}, test_labels_used=test_labels_used)
    except judge_info.DeclarationError as error:
        problems += [_of_option(field, message) for field, message in error.problems]
    if problems:
        stop("\n  ".join([f"{file}: nothing was sent; fix these problems first:", *problems]), code=1)
    try:
        declared = {**texts, "test_labels_used": str(test_labels_used).lower()}
        sent = client.send_submission(
            space, file, declared, token=token, say=lambda line: typer.echo(line, err=True)
        )
    except client.SubmissionNotSent as problem:
        hint = "" if is_named else "; start one with `arb space serve`, or name another with --space"
        stop(f"{problem}{hint}", code=1)
    if not sent.is_accepted:
        refused = client.problems_in(sent.answer)
        stop("\n  ".join(["the Space refused the submission:", *refused]), code=1)
    if as_json:
        print_json(sent.answer)
        return
    receipt = sent.answer
    verb = "submitted" if receipt["is_new"] else "was already submitted"
    typer.echo(f"{file.name} {verb}: {receipt['submission_id']}, SHA-256 {receipt['file_sha256']}")
    if receipt.get("message"):
        typer.echo(receipt["message"])
    typer.echo(f"Next, see its status and metrics: {space.rstrip('/')}/mine/{receipt['submission_id']}")


def _of_option(field: str, message: str) -> str:
    """Return a problem with a declaration. The option's name replaces the field's title."""
    words = message.partition(": ")[2]
    choices = {"kind": JUDGE_KINDS, "inputs": JUDGE_INPUTS}.get(field)
    if choices and words.startswith("choose one"):
        words = f"choose one of {', '.join(map(repr, choices))}"
    if field == "test_labels_used":
        return "--[no-]test-labels-used: say whether test labels helped to build or tune the judge"
    return f"--{field}: {words}"


_ROWS_LISTED = 6
_WIDE = 110
_STYLES = {"error": "bold red", "warning": "yellow"}


def print_report(result: CheckResult, main: str, console: Console) -> None:
    """Print the findings of a check, a table by benchmark, and whether the file is acceptable.

    ``main`` is the title of the main target. Text from the file is wrapped in rich's Text, so that brackets
    in it are not read as markup.
    """
    if result.findings:
        console.print(_findings_table(result.findings, is_wide=console.width >= _WIDE))
    console.print(_summary_table(result, main))
    console.print(
        rich_text.Text(_conclusion(result), style="bold green" if result.acceptable else "bold red")
    )


def _findings_table(findings: Sequence[Finding], is_wide: bool) -> Table:
    """Return the findings as a table. Unless it is wide, all columns except the message become one."""
    table = rich_table.Table(show_lines=True)
    for heading in ("level", "code", "column", "rows") if is_wide else ("finding",):
        table.add_column(heading, overflow="fold" if is_wide else "ellipsis")
    table.add_column("message", overflow="fold", ratio=1, min_width=30 if is_wide else None)
    for finding in findings:
        level = rich_text.Text(finding.level, style=_STYLES[finding.level])
        message = rich_text.Text(finding.message)
        if is_wide:
            words = (finding.code, finding.column or "", _rows(finding))
            table.add_row(level, *map(rich_text.Text, words), message)
            continue
        parts = (finding.code, finding.column, f"row {_rows(finding)}" if finding.rows else None)
        level.append("".join(f"\n{part}" for part in parts if part), style="default")
        table.add_row(level, message)
    return table


def _rows(finding: Finding) -> str:
    listed = ", ".join(map(str, finding.rows[:_ROWS_LISTED]))
    more = finding.count - _ROWS_LISTED
    return f"{listed} and {more:,} more" if finding.rows and more > 0 else listed


def _summary_table(result: CheckResult, main: str) -> Table:
    table = text_table("benchmark", figures=("expected", "rows", "coverage", main))
    for name, part in result.by_benchmark.items():
        shares = percent(part.coverage, "%"), percent(part.success_share, "%")
        title = rich_text.Text(BENCHMARK_TITLES.get(name, name))
        table.add_row(title, f"{part.expected:,}", f"{part.rows:,}", *shares)
    table.add_section()
    expected = sum(part.expected for part in result.by_benchmark.values())
    rows = sum(part.rows for part in result.by_benchmark.values())
    shares = percent(result.coverage, "%"), percent(result.success_share, "%")
    table.add_row("all", f"{expected:,}", f"{rows:,}", *shares)
    if result.rows > rows:  # about steps and other parts, or with unknown ids
        table.add_row("other rows", "", f"{result.rows - rows:,}")
    return table


def _conclusion(result: CheckResult) -> str:
    levels = Counter(finding.level for finding in result.findings)
    counts = [f"{n} {level}{'' if n == 1 else 's'}" for level, n in sorted(levels.items())]
    verdict = "acceptable" if result.acceptable else "not acceptable"
    suffix = f" ({', '.join(counts)})" if counts else ""
    return f"{result.file_name or 'the file'} is {verdict} for {result.suite}, {result.split}{suffix}"


if __name__ == "__main__":
    app(prog_name="arb submissions")
