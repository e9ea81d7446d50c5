"""Commands that work on the records on this machine, and helpers for other such commands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from arb.core.cli import (
    JsonOption,
    flags,
    new_file_option,
    new_folder_option,
    next_step,
    plain_console,
    print_json,
    read_settings,
    stop,
)
from arb.core.console import counted, percent, progress_bar, text_table
from arb.core.files import atomic_write
from arb.core.lazy import lazy_imports
from submissions.errors import RecordsUnavailable, SubmissionError

with lazy_imports():
    from arb.core import suite as suites
    from leaderboard.board import export as board_export
    from submissions import app as services
    from submissions import served_suites, startup
    from submissions.intake import accounts, receipts
    from submissions.labels import corrections, versions
    from submissions.moderation import overview
    from submissions.privacy import secret_change, server_secret
    from submissions.records import backup, event_log, integrity
    from submissions.scoring import rescore as rescoring

if TYPE_CHECKING:
    from arb.core.settings import Settings
    from submissions.moderation.actions import AccountChange

HUB_SECONDS: Final = 120.0
"""How long a command waits for its new records to reach the Hub."""
COMMAND_LINE: Final = "the command line"
MaintainerOption = Annotated[str, typer.Option(help="Record the action under this maintainer's name.")]
OutOption = Annotated[Path, new_folder_option("--out", help="Write to this new or empty folder.")]
CHANGES: Final[dict[str, AccountChange]] = {
    "confirm": "confirmed", "unconfirm": "unconfirmed", "ban": "banned", "unban": "unbanned",
}  # fmt: skip


def verify(as_json: JsonOption = False) -> None:
    """Check the event log, the stored files, the scores and the board.

    Every score is computed again and compared with the stored one. Nothing is changed. The exit code is 1 if
    it finds a problem.
    """
    service = open_records()
    with ends_on(RecordsUnavailable), progress_bar(stays=False, only_on_terminal=True) as progress:
        found = integrity.verify(service, lambda done, of: progress(done, of, "scores recomputed"))
    if as_json:
        print_json(vars(found))
    else:
        replaced = found.scores_of_replaced_secrets
        typer.echo(
            f"records: {found.records:,}, files: {found.files:,}, recomputed scores: {found.scores:,}"
            + (f" ({replaced:,} of them only in part, because the secret was replaced)" if replaced else "")
        )
        for problem in found.problems:
            typer.echo(f"problem: {problem}")
        if not found.problems:
            typer.echo(f"no problems found; the board's digest is {found.board_digest}")
    raise typer.Exit(1 if found.problems else 0)


def rescore(as_json: JsonOption = False, maintainer: MaintainerOption = COMMAND_LINE) -> None:
    """Score all submissions with the current labels, and show how the ranks change.

    Scores from earlier label versions are kept. If the command is interrupted, run it again to continue.
    """
    with records_to_write(maintainer) as (service, actor):
        found = rescoring.rescore(service, actor)
    if as_json:
        print_json(found.to_json())
    else:
        print_rescoring(found)
        next_step("check the records", "submissions", "verify")


def print_rescoring(found: rescoring.Rescoring) -> None:
    typer.echo(
        f"labels {found.before or 'none'} -> {found.after}: {counted(found.scored, 'submission')} scored"
    )
    table = text_table("Judge", "Account", "Rank before", "Rank after")
    for change in found.changes:
        before, after = ("–" if place is None else str(place) for place in (change.before, change.after))
        table.add_row(change.judge, change.account, before, after)
    if found.changes:
        plain_console().print(table)


def account(
    action: Annotated[
        Literal["confirm", "unconfirm", "ban", "unban"], typer.Argument(help="Decision to record.")
    ],
    name: Annotated[str, typer.Argument(help="Name of the account.")],
    reason: Annotated[str, typer.Option(help="Give a reason, which is stored with the decision.")],
    even_if_unknown: Annotated[
        bool, typer.Option("--even-if-unknown", help="Accept a name that is not in the records yet.")
    ] = False,
    maintainer: MaintainerOption = COMMAND_LINE,
    as_json: JsonOption = False,
) -> None:
    """Confirm an account, ban it, or undo either decision.

    Confirmed accounts may also use the part of the leak budget that is reserved for them.
    """
    decision = CHANGES[action]
    with records_to_write(maintainer) as (service, actor):
        service.moderation.decide_account(decision, name, actor, reason, even_if_unknown)
    report(as_json, {"account": name, "decision": decision}, f"the account {name} is {decision}")


WithOpenOption = Annotated[
    bool, typer.Option("--with-open", help="Publish first annotators' answers to open questions.")
]


def publish_labels(
    file: Annotated[
        Path | None,
        typer.Argument(
            exists=True,
            dir_okay=False,
            show_default=False,
            help="Label file, CSV or Parquet (default: the current labels with accepted corrections).",
        ),
    ] = None,
    why: Annotated[str, typer.Option(help="Explain publicly what changed and why. Required with FILE.")] = "",
    preview: Annotated[
        bool, typer.Option("--preview", help="Show the effect of the corrections without publishing them.")
    ] = False,
    with_open: WithOpenOption = False,
    maintainer: MaintainerOption = COMMAND_LINE,
    as_json: JsonOption = False,
) -> None:
    """Publish a new label set: a file, or the current labels with all accepted corrections.

    If several people answered, the target's `aggregate` rule in suite.toml determines the label. Questions
    that it cannot decide are listed and left out, unless you add --with-open.

    With FILE, set ARB_LABELS=records to use the new set, then run `rescore`. Without FILE, the new set is
    used immediately, and all submissions are scored again.

    Earlier sets are kept. To return to one of them, set ARB_LABELS=records:VERSION.
    """
    if file is not None and preview:
        stop("--preview shows the effect of corrections, not of a file; leave FILE out")
    if file is None and with_open:
        stop("--with-open decides labels of a file; name the file")
    if preview:
        _print_next(as_json)
        return
    with records_to_write(maintainer) as (service, actor):
        if file is not None:
            version, scored = rescoring.publish_file(service, file, actor, why, with_open), None
        else:
            version = corrections.publish_corrections(service, actor, why)
            scored = rescoring.rescore(service, actor)
    print_published(as_json, version, scored, "check the records", "submissions", "verify")


def print_published(
    as_json: bool, version: versions.LabelVersion, scored: rescoring.Rescoring | None, *following: Any
) -> None:
    """Print a new label version and, unless the Space serves other labels, the scores under it."""
    if as_json:
        print_json({**version.to_json(), "rescored": scored and scored.to_json()})
        return
    print_version(version)
    if scored is None:
        setting = settings_of_records().labels_from("records")
        next_step(f"set {setting}, then score all submissions", "submissions", "rescore")
    else:
        print_rescoring(scored)
        next_step(*following)


def _print_next(as_json: bool) -> None:
    """Print the corrections to publish and their effect on each judge. Hidden labels are not shown."""
    service = open_records()
    with ends_on(SubmissionError):
        found = corrections.next_labels(service)
    decisions = {"applied": found.applied, "conflicts": found.conflicts, "missing": found.missing}
    entries = {kind: [each.to_json(service.suite) for each in of_kind] for kind, of_kind in decisions.items()}
    if as_json:
        print_json(entries)
        return
    for kind, of_kind in entries.items():
        for each in of_kind:
            change = "its label is hidden"
            if "answer" in each:
                change = f"{each['trajectory_id']} {each['question']}: {each['before']} -> {each['answer']}"
            typer.echo(f"{kind}: dispute {each['dispute_id']}, {change}")
    if not found.applied:
        typer.echo(corrections.NOTHING_TO_PUBLISH)
        return
    with service.snapshot() as session:
        names = overview.judge_names(session, service.suite.name)
    for label, effects in rescoring.label_effects(service, found.served, found.test).items():
        columns = ("Rank", "Precision", "Recall", "F1", "Now wrong", "Now right")
        table = text_table(f"Judge, by {label}", "Account", figures=columns)
        for effect in effects:
            places = " -> ".join("–" if place is None else str(place) for place in effect.places)
            pairs = (
                f"{percent(old)} -> {percent(effect.after[name])}" for name, old in effect.before.items()
            )
            table.add_row(*names[effect.id], places, *pairs, str(effect.to_wrong), str(effect.to_right))
        plain_console().print(table)


def label_versions(as_json: JsonOption = False) -> None:
    """List the suite's published label sets, oldest first, without showing any label."""
    service = open_records()
    found = versions.published_versions(service.engine, service.suite.name)
    if as_json:
        print_json([version.to_json() for version in found])
        return
    if not found:
        typer.echo(versions.not_published(service.suite.name))
    for version in found:
        print_version(version)


def print_version(version: versions.LabelVersion) -> None:
    changes = ", ".join(f"{question} {count:,}" for question, count in version.changes.items() if count)
    typer.echo(
        f"{version.version}  {version.at:%Y-%m-%d %H:%M} UTC  by {version.by}: {version.why} "
        f"({version.labelled:,} labelled; changed labels: {changes or 'none'})"
        + ("; the questions or guidelines changed since the previous version" * version.questions_changed)
    )
    if version.left_out:
        typer.echo(
            f"left out, as annotators differ and the rule gives no label: {len(version.left_out):,} "
            "(decide them and publish again, or use --with-open)"
        )
        for name in version.left_out:
            typer.echo(f"  {name}")


def receipt(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="Receipt as a JSON file.")],
    key: Annotated[str, typer.Option(help="Check with the public key from the server's About page.")],
    as_json: JsonOption = False,
) -> None:
    """Check the signature of a receipt without asking the server."""
    try:
        fields = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(fields, dict):
            raise ValueError("not an object")
    except (OSError, ValueError, RecursionError) as problem:
        stop(f"{file.name!r} is not a JSON receipt ({type(problem).__name__}); download it again", 1)
    if found := receipts.problem_of(fields, key):
        stop(f"{file.name!r}: {found}", code=1)
    report(
        as_json,
        fields,
        f"the signature is valid for submission {fields['submission_id']}: judge {fields['judge']!r} of "
        f"account {fields['account']!r}, file {fields['file_sha256']}, submitted {fields['submitted_at']}, "
        f"record {fields['record']}",
    )


def export(
    out: OutOption,
    static: Annotated[bool, typer.Option("--static", help="Write a read-only site instead.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Back up the records, files and board for `restore`, or write a static site.

    A backup contains hidden figures, so keep it as private as the labels.
    """
    service = open_records()
    with ends_on(board_export.FolderTaken, RecordsUnavailable):
        if static:
            number = board_export.write_static_site(service.records.board(), out)
            text = f"{number} files written to {out}; open {out / 'index.html'}, or serve the folder"
            report(as_json, {"folder": str(out), "files": number}, text)
            return
        found = backup.export_to_folder(service, out)
    _say_backup(found, f"written to {out}", as_json)
    if not as_json:
        next_step("restore them into an empty ARB_STATE_DIR", "submissions", "restore", out)


def restore(
    folder: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="Folder that `export` wrote.")],
    new_secret: Annotated[
        bool, typer.Option("--new-secret", help="Use a new secret if the old one is lost.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Restore a folder that `export` wrote, into an empty ARB_STATE_DIR or DATABASE_URL.

    First provide the server's secret: set ARB_SECRET, or copy the file `secret` into ARB_STATE_DIR. With
    --new-secret, figures of private suites get new noise, so they stay hidden until you run `accept-charge`.
    """
    with ends_on(RecordsUnavailable):
        found = backup.restore_from_folder(settings_of_records(), folder, new_secret)
    _say_backup(found, "restored", as_json)
    if not (found.names_secret or new_secret):
        typer.echo(
            "the backup does not say which secret it was made with; run `verify` to check yours", err=True
        )
    if not as_json:
        next_step("check the records", "submissions", "verify")


def accept_charge(maintainer: MaintainerOption = COMMAND_LINE, as_json: JsonOption = False) -> None:
    """Show private figures again after the secret was replaced.

    Every file is scored with the new secret. Figures that were shown before are charged to the leak budgets
    of their accounts a second time.
    """
    with records_to_write(maintainer) as (service, actor):
        again, rho = secret_change.accept_charge(service, actor)
    text = f"figures of {counted(len(again), 'file')} are shown again (charge: rho = {rho:.4f})"
    found = {"submissions": again, "rho": rho}
    report(as_json, found, text, "check the records", "submissions", "verify")


def new_secret() -> None:
    """Print a new random secret for ARB_SECRET. Keep a copy of it."""
    typer.echo(server_secret.new_secret())


def _say_backup(found: backup.Backup, where: str, as_json: bool) -> None:
    numbers = {"records": found.records, "files": found.files, "missing": found.missing}
    report(as_json, numbers, f"{counted(found.records, 'record')} and {counted(found.files, 'file')} {where}")
    for sha256 in found.missing:
        typer.echo(f"missing: the stored file {sha256}; its submissions cannot be scored", err=True)


def report(as_json: bool, found: object, text: str, *following: Any) -> None:
    """Print the result of a command as JSON, or as text followed by the next step, if any."""
    if as_json:
        print_json(found)
        return
    typer.echo(text)
    if following:
        next_step(*following)


@contextmanager
def ends_on(*errors: type[Exception], code: int = 1) -> Iterator[None]:
    """End the command with the error's message and exit code ``code`` if the block raises an error."""
    try:
        yield
    except errors as problem:
        stop(str(problem), code)


def settings_of_records() -> Settings:
    """Return the settings for the records of the suite in ARB_SUITE; end the command if there are none."""
    with ends_on(suites.SuiteError, RecordsUnavailable, code=2):
        return served_suites.settings_of_chosen(read_settings())


def open_records() -> services.SubmissionsApp:
    """Open the records on this machine, or end the command if that is not possible."""
    service = services.SubmissionsApp(settings_of_records())
    with ends_on(RecordsUnavailable, code=2):
        service.engine  # noqa: B018 - opened here, so that its error is reported here
        if not service.suite.labels_are_public:
            with suppress(server_secret.SecretUnavailable):
                service.secret  # noqa: B018 - opened here for the same reason
    return service


@contextmanager
def records_to_write(maintainer: str) -> Iterator[tuple[services.SubmissionsApp, accounts.Actor]]:
    """Open the records for a command that adds to them on behalf of ``maintainer``.

    A SubmissionError ends the command with its message. If the records are stored on the Hub, the command
    waits at its end until the new ones are there.
    """
    settings = settings_of_records()
    is_on_hub = bool(settings.records_repo)
    with ends_on(RecordsUnavailable, code=2):
        service = startup.open_service(settings) if is_on_hub else open_records()
    try:
        if is_on_hub and (reason := service.durability.closed):
            stop(f"nothing was done: {reason}", code=1)
        with ends_on(SubmissionError):
            yield service, accounts.Actor(maintainer, is_maintainer=True)
            with service.snapshot() as session:
                last = event_log.number_of_events(session)
        if not service.durability.wait(last, HUB_SECONDS):
            stop("the change is recorded here, but not on the Hub yet; run the command again", code=1)
    finally:
        if is_on_hub:
            service.close()


def export_labels(
    out: Annotated[Path, new_file_option(help="Write to this new CSV file.")],
    version: Annotated[str | None, typer.Option(help="Export this version (default: the newest).")] = None,
) -> None:
    """Write a published label set to a CSV file.

    The file contains test labels. Only your user account can read it; keep it out of public folders.
    """
    if out.exists():
        stop(f"{out} already exists; choose another name")
    service = open_records()
    known = versions.published_versions(service.engine, service.suite.name)
    found = next((each for each in reversed(known) if version in (None, each.version)), None)
    if found is None:
        stop(versions.not_published(service.suite.name, version, known), code=1)
    try:
        atomic_write(out, service.files.read(found.file_sha256), 0o600)
    except ValueError as problem:
        stop(str(problem), code=1)
    typer.echo(f"{out.name}: label version {found.version} of {service.suite.name}")
    next_step("publish the dev labels in the suite", "leaderboard", "dev-labels", *flags(annotations=out))
