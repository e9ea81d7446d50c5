"""The command `python -m submissions`: check, fill in and submit files; look after the records."""

import json
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from core.cli import (
    JsonOption,
    SplitOption,
    SuiteOption,
    new_command,
    plain_console,
    read_settings,
    read_suite,
    stop,
)
from submissions.cli import (
    export,
    export_labels,
    label_versions,
    publish_labels,
    receipt,
    rescore,
    restore,
    verify,
)
from submissions.labels.commands import app as annotate_app

app = new_command()
for command in (export, export_labels, label_versions, publish_labels, receipt, rescore, restore, verify):
    app.command()(command)
app.add_typer(annotate_app, name="annotate")


@app.callback()
def submissions() -> None:
    """Prediction files: start from a template, check one, submit it. Records: verify, rescore, export."""


@app.command("check")
def check_command(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="JSONL, CSV or Parquet.")],
    split: SplitOption,
    suite: SuiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Report every finding at once.

    Exit code 0 only for an acceptable file, 1 for one that is not, 2 when the command cannot run as given.
    """
    settings = read_settings()
    chosen = read_suite(suite, settings)
    from submissions.intake.upload import read_upload

    try:
        result = read_upload(file, None, settings, suite=chosen, split=split).check
    except OSError as problem:
        stop(f"{file.name!r} cannot be read: {problem.strerror or type(problem).__name__}")
    if as_json:
        print(json.dumps(result.to_json()))
    else:
        from submissions.cli import print_report

        print_report(result, plain_console())
    raise typer.Exit(0 if result.acceptable else 1)


@app.command("template")
def template_command(
    split: SplitOption,
    suite: SuiteOption = None,
    file_format: Annotated[
        Literal["jsonl", "csv", "parquet"] | None,
        typer.Option("--format", help="By default what --out ends in, else jsonl."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", dir_okay=False, help="Write this new file, not standard output.")
    ] = None,
) -> None:
    """Write a file to fill in.

    It has every trajectory of the split, success empty.
    """
    chosen = read_suite(suite, read_settings())
    from core.predictions.write import template

    file_format = file_format or _format_of(out)
    if out is None:
        if file_format == "parquet" and sys.stdout.isatty():
            stop("Parquet is no text: name a file with --out")
        sys.stdout.buffer.write(template(chosen, split, file_format))
        return
    if out.exists():
        stop(f"{str(out)!r} exists and may be filled in already: name a new file with --out")
    from core.files import atomic_write

    try:
        atomic_write(out, template(chosen, split, file_format))
    except OSError as problem:
        stop(f"{str(out)!r} cannot be written: {problem.strerror or type(problem).__name__}")


@app.command("submit")
def submit_command(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="JSONL, CSV or Parquet.")],
    space: Annotated[
        str | None, typer.Option(help="The Space's address; that of ARB_HOST and ARB_PORT if left out.")
    ] = None,
    account: Annotated[str, typer.Option(help="Your name; with a token it is known.")] = "",
    judge: Annotated[str, typer.Option(help="The judge's name.")] = "",
    kind: Annotated[str, typer.Option(help="Such as 'LLM judge'.")] = "",
    inputs: Annotated[str, typer.Option(help="What it sees, such as 'tree'.")] = "",
    model: Annotated[str, typer.Option(help="The model behind it.")] = "",
    authors: Annotated[str, typer.Option(help="Who made it.")] = "",
    link: Annotated[str, typer.Option(help="An https:// address about it.")] = "",
    test_labels_used: Annotated[
        bool | None,
        typer.Option(
            "--test-labels-used/--no-test-labels-used", help="Were they used to build or tune the judge?"
        ),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(help="Your Hugging Face token, for a Space; HF_TOKEN if left out.", show_default=False),
    ] = None,
    suite: SuiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Submit test verdicts to a Space.

    The file and the declaration are checked here first; sending the same again makes no second entry.
    """
    settings = read_settings()
    chosen = read_suite(suite, settings)
    from submissions.client import (
        SubmissionNotSent,
        local_address,
        may_carry_token,
        problems_in,
        send_submission,
    )
    from submissions.intake.declaration import DeclarationError, declare
    from submissions.intake.upload import read_upload

    if not (space or settings.port):
        stop("ARB_PORT is 0, any free port: name the address that `space serve` printed with --space")
    space = space or local_address(settings.host, settings.port)
    texts = {
        "account": account, "judge": judge, "kind": kind, "inputs": inputs, "model": model,
        "authors": authors, "link": link,
    }  # fmt: skip
    if not token and settings.hf_token is not None and may_carry_token(space):
        token = settings.hf_token.get_secret_value()
    checked = read_upload(file, None, settings, suite=chosen, split="test").check
    problems = [finding.message for finding in checked.findings if finding.level == "error"]
    try:
        known = account or ("the account of the token" if token else "")
        declare(**{**texts, "account": known}, test_labels_used=test_labels_used)
    except DeclarationError as error:
        problems += [message for _, message in error.problems]
    if problems:
        stop("\n".join(["nothing was sent:", *(f"  {problem}" for problem in problems)]), code=1)
    try:
        declared = {**texts, "test_labels_used": str(test_labels_used).lower()}
        sent = send_submission(
            space, file, declared, token=token, say=lambda line: typer.echo(line, err=True)
        )
    except SubmissionNotSent as problem:
        stop(str(problem), code=1)
    if not sent.is_accepted:
        refused = (f"  {problem}" for problem in problems_in(sent.answer))
        stop("\n".join(["the Space took nothing:", *refused]), code=1)
    if as_json:
        print(json.dumps(sent.answer))
        return
    receipt = sent.answer
    verb = "submitted" if receipt["is_new"] else "was submitted before"
    typer.echo(f"{file.name} {verb}: {receipt['submission_id']}, SHA-256 {receipt['file_sha256']}")
    if receipt.get("told"):
        typer.echo(receipt["told"])
    typer.echo(f"{space.rstrip('/')}/mine/{receipt['submission_id']}")


def _format_of(out: Path | None) -> Literal["jsonl", "csv", "parquet"]:
    match out.suffix.lower() if out is not None else "":
        case ".csv":
            return "csv"
        case ".parquet":
            return "parquet"
        case _:
            return "jsonl"


if __name__ == "__main__":
    app(prog_name="python -m submissions")
