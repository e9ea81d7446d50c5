"""The commands `arb submissions annotate …`, which work on the records on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from arb.core.annotation import Annotation, answered
from arb.core.cli import (
    JsonOption,
    file_option,
    flags,
    new_command,
    new_file_option,
    new_folder_option,
    next_step,
    plain_console,
    print_json,
    stop,
)
from arb.core.console import counted, text_table
from arb.core.lazy import lazy_imports
from arb.core.vocabulary import SPLITS
from submissions.cli import (
    COMMAND_LINE,
    MaintainerOption,
    WithOpenOption,
    ends_on,
    open_records,
    print_published,
    records_to_write,
    report,
)
from submissions.errors import RecordsUnavailable, SubmissionError

with lazy_imports():
    from arb.core import suite as core_suite
    from arb.core.suites import targets
    from dataset_script import sample
    from dataset_script.sources import problems, published
    from leaderboard.labels import annotations as released
    from leaderboard.labels import labels, source
    from submissions.labels import annotation_service, annotation_state, exchange
    from submissions.scoring import rescore

if TYPE_CHECKING:
    from submissions.app import SubmissionsApp
    from submissions.intake.accounts import Actor

app = new_command()
AccountsArgument = Annotated[list[str], typer.Argument(help="Names of the accounts, as used to sign in.")]
WhyOption = Annotated[str, typer.Option(help="Explain publicly what changed and why.")]
Split = Annotated[Literal["test", "dev", "both"], typer.Option(help="Use the trajectories of this split.")]
BUILD_IT = "build it with `arb data build`"
DECISION_COLUMNS = ("trajectory_id", "question", "answer", "reason")


@app.callback()
def annotate() -> None:
    """Manage annotation: invite annotators, assign trajectories, decide open questions, publish labels.

    Maintainers can do the same on the page /discuss. A Space that uses these records shows every change.
    """


@app.command()
def invite(
    accounts: AccountsArgument, maintainer: MaintainerOption = COMMAND_LINE, as_json: JsonOption = False
) -> None:
    """Invite accounts to annotate.

    Each account gets an opaque id. An account that is invited again keeps its id.
    """
    _for_each(accounts, annotation_service.AnnotationService.invite, maintainer, as_json)
    if not as_json:
        next_step("assign trajectories", "submissions", "annotate", "assign")


@app.command()
def uninvite(
    accounts: AccountsArgument, maintainer: MaintainerOption = COMMAND_LINE, as_json: JsonOption = False
) -> None:
    """Withdraw the invitations of accounts.

    Finished annotations are kept. The next `assign` gives unfinished trajectories to other annotators.
    """
    _for_each(accounts, annotation_service.AnnotationService.uninvite, maintainer, as_json)


@app.command()
def assign(
    split: Split = "test",
    most: Annotated[
        int | None, typer.Option(min=0, help="Assign at most this many new trajectories (default: all).")
    ] = None,
    percent_twice: Annotated[
        float,
        typer.Option(min=0, max=100, help="Give this percentage of the trajectories to two annotators."),
    ] = 10.0,
    times: Annotated[
        int | None,
        typer.Option(min=1, help="Give every trajectory to this many annotators, not only a share."),
    ] = None,
    percent_gold: Annotated[
        float, typer.Option(min=0, max=100, help="Add this percentage of gold items with known answers.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed the random assignment.")] = 1,
    maintainer: MaintainerOption = COMMAND_LINE,
    as_json: JsonOption = False,
) -> None:
    """Assign trajectories of the built dataset to annotators.

    Trajectories are spread evenly over benchmarks and annotators. Earlier assignments are kept.
    """
    with _annotation_as(maintainer) as (annotations, actor):
        available = _ids_in_dataset(annotations.service)
        shares = percent_twice / 100, percent_gold / 100
        added = annotations.assign(split, most, shares[0], seed, available, actor, shares[1], times)
    following = "see the progress (annotators answer at /annotate)", "submissions", "annotate", "status"
    report(as_json, {"assignments": added}, f"{counted(added, 'assignment')} added", *following)


@app.command()
def status(as_json: JsonOption = False) -> None:
    """Show the progress of annotators and the open questions.

    Keep the output private: it contains the annotators' answers to open questions, which are labels.
    """
    service = open_records()
    state = annotation_service.AnnotationService(service).now()
    annotators = annotation_service.progress_of_annotators(state)
    items = [item for item in annotation_state.discussion_items(state, None, is_maintainer=True) if item.open]
    finished = {trajectory_id for trajectory_id, who in state.saved if state.is_done(trajectory_id, who)}
    if as_json:
        counts = {"suite": service.suite.name, "assigned": len(state.assigned), "finished": len(finished)}
        print_json({**counts, "annotators": annotators, "open": _open_json(items)})
        return
    typer.echo(
        f"{service.suite.name}: {counted(len(state.assigned), 'trajectory')} assigned, "
        f"{len(finished):,} finished by at least one annotator, {len(items):,} with an open question"
    )
    console = plain_console()
    if annotators:
        table = text_table("annotator", "account", figures=("done", "assigned", "median seconds"))
        for each in annotators:
            account = each["account"] if each["is_active"] else f"{each['account']} (no longer invited)"
            seconds = "" if each["seconds"] is None else f"{each['seconds']:.0f}"
            numbers = f"{each['n_done']:,}", f"{each['n_assigned']:,}"
            table.add_row(each["annotator"], account, *numbers, seconds)
        console.print(table)
    if items:
        table = text_table("trajectory", "question", "answers")
        for opened in _open_json(items):
            answers = " / ".join(opened["answers"].values())
            table.add_row(opened["trajectory_id"], opened["question"], answers)
        console.print(table)
        first = items[0]
        chosen = (first.item.trajectory_id, first.open[0], "ANSWER", *flags(reason="WHY"))
        next_step("decide one, or many with --decisions FILE", "submissions", "annotate", "resolve", *chosen)
    elif finished:
        next_step("publish them as labels", "submissions", "annotate", "publish", *flags(why="WHY"))


def _open_json(items: Iterable[annotation_state.DiscussionItem]) -> list[dict[str, Any]]:
    """Return one dict per open question, with each annotator's answer or a dash if it is missing."""
    found = []
    for each in items:
        for question in each.open:
            pairs = zip(each.item.annotators, each.item.answers[question], strict=True)
            answers = {who or "not known": answer or "–" for who, answer in pairs}
            found.append({"trajectory_id": each.item.trajectory_id, "question": question, "answers": answers})
    return found


@app.command()
def resolve(
    trajectory_id: Annotated[str | None, typer.Argument(help="Trajectory to decide on.")] = None,
    question: Annotated[str | None, typer.Argument(help="Name of the question.")] = None,
    answer: Annotated[str | None, typer.Argument(help="Correct answer, or unsure.")] = None,
    reason: Annotated[str, typer.Option(help="Give a reason, which is stored with the decision.")] = "",
    decisions: Annotated[
        Path | None, file_option(help=f"Read decisions from this CSV ({', '.join(DECISION_COLUMNS)}).")
    ] = None,
    rule: Annotated[
        Literal["majority", "median"] | None, typer.Option(help="Decide every open question by this rule.")
    ] = None,
    maintainer: MaintainerOption = COMMAND_LINE,
    as_json: JsonOption = False,
) -> None:
    """Decide questions that annotators answered differently.

    Pass one question with its correct answer, a file with --decisions, or --rule. If any row of the file is
    invalid, no decision is recorded. The annotators' own answers do not change, and you can decide a question
    again.

    --rule majority takes the answer of more than half of the annotators. --rule median takes the middle
    answer to questions whose answers have an order, and the majority for all others. Questions that a rule
    cannot decide stay open.
    """
    rows: list[Sequence[str]] = []
    if trajectory_id is not None and question is not None and answer is not None:
        rows.append((trajectory_id, question, answer, reason))
    if (decisions is not None) + bool(rows) + (rule is not None) != 1:
        stop("pass a trajectory, a question, an answer and --reason, or a file with --decisions, or --rule")
    if decisions is not None:
        try:
            read = core_suite.read_rows(decisions, DECISION_COLUMNS)
        except core_suite.SuiteError as problem:
            stop(str(problem), code=1)
        rows = [[(row[name] or "").strip() for name in DECISION_COLUMNS] for row in read]
    with _annotation_as(maintainer) as (annotations, actor):
        if rule is not None:
            found, n_open = annotations.resolve_by_rule(rule, actor, reason)
        else:
            found, n_open = annotations.resolve_all(rows, actor), None
    counts, text = {"decided": found}, f"{counted(found, 'question')} decided"
    if n_open is not None:
        counts["open"] = n_open
        text += f"; {n_open:,} {'stays' if n_open == 1 else 'stay'} open, because the rule gives no answer"
    report(as_json, counts, text, "see the open questions", "submissions", "annotate", "status")


@app.command()
def publish(
    why: WhyOption,
    with_open: WithOpenOption = False,
    maintainer: MaintainerOption = COMMAND_LINE,
    as_json: JsonOption = False,
) -> None:
    """Publish the finished annotations as a new label version.

    If several people answered, the target's `aggregate` rule in suite.toml determines the label. Questions
    that it cannot decide are listed and left out. If the rule is "first", open questions are listed and
    nothing is published. With --with-open, first annotators' answers are published instead. If the Space uses
    the new version, all submissions are scored again.
    """
    with _annotation_as(maintainer) as (annotations, actor):
        version = annotations.publish(actor, why, with_open)
        is_served = annotations.service.label_version == version.version
        rescored = rescore.rescore(annotations.service, actor) if is_served else None
    export = ("submissions", "export-labels", *flags(out="labels.csv"))
    print_published(as_json, version, rescored, "export the labels to a file", *export)


@app.command("export")
def export_items(
    file_format: Annotated[
        Literal["label-studio", "argilla"], typer.Option("--format", help="Write for this tool.")
    ],
    out: Annotated[Path, new_folder_option(help="Write to this new folder.")],
    split: Split = "both",
    images: Annotated[
        str | None,
        typer.Option(help="Load pictures from the address that serves images/. Required for Argilla."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write trajectories and questions to annotate in Label Studio or Argilla.

    The files are blind: they contain no agent, label, verdict or reward.

    For Label Studio, move the folder into LOCAL_FILES_DOCUMENT_ROOT so that the pictures are visible. Then
    create a project with config.xml and import tasks.json. For Argilla, load the folder with
    argilla.Dataset.from_disk(OUT).
    """
    service = open_records()
    if file_format == "argilla" and images is None:
        stop("Argilla loads pictures from the web; pass the address that serves images/ with --images")
    suite = service.suite
    if any(target.level != "run" for target in suite.targets):
        stop(
            "the suite asks about steps or parts, which these forms cannot show; annotate on /annotate, or "
            "fill in a file of `arb leaderboard annotation-template` and import it as csv"
        )
    ids = {t.trajectory_id for name in SPLITS if split in (name, "both") for t in suite.split(name)}
    dataset = next((each for each in _datasets(service) if each.suite == suite.name), None)
    if dataset is None:
        stop(f"ARB_DATA_DIR has no dataset of {suite.name}; {BUILD_IT}", code=1)
    there = dataset.table("trajectories", columns=["trajectory_id"])[0].to_pylist()
    with ends_on(RecordsUnavailable):
        key = service.secret.key("annotation-item")
    items = exchange.read_items(dataset, ids & set(there), key)
    texts = suite.targets, suite.guidelines
    if file_format == "argilla":
        found = exchange.write_argilla(out, suite.name, items, *texts, images or "")
    else:
        found = exchange.write_label_studio(out, items, *texts, images)
    missing = len(ids - set(there))
    left_out = f"; left out {missing:,} that are not in the dataset" if missing else ""
    text = f"{counted(found, 'item')} written to {out}{left_out}"
    counts = {"items": found, "not_in_dataset": missing}
    chosen = ("ANSWERS.json", *flags(format=file_format))
    report(as_json, counts, text, "import the answers", "submissions", "annotate", "import", *chosen)


@app.command("import")
def import_answers(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="File that the tool exported.")],
    file_format: Annotated[
        Literal["label-studio", "argilla", "csv"],
        typer.Option("--format", help="Name the tool, or csv for a CSV or Parquet label file."),
    ],
    person: Annotated[
        list[str] | None, typer.Option(help="Map a name in the file: NAME=ACCOUNT. Repeat to add more.")
    ] = None,
    out: Annotated[
        Path | None, new_file_option(help="Write to this new CSV or Parquet file, not to the records.")
    ] = None,
    maintainer: MaintainerOption = COMMAND_LINE,
    as_json: JsonOption = False,
) -> None:
    """Import answers that annotators gave in another tool.

    Answers are recorded for the accounts of invited annotators, or written to --out with opaque annotator
    ids. Skipped and unfinished items are listed but not imported. If anything in the file is wrong, nothing
    is imported, and all problems are listed.
    """
    names = dict(each.partition("=")[::2] for each in person or [])
    if not all(names.values()):
        stop("--person: write NAME=ACCOUNT, such as ada@example.org=ada")
    if out is not None and out.exists():
        stop(f"{out} already exists; choose another name")
    following: tuple[object, ...]
    if out is None:
        with _annotation_as(maintainer) as (annotations, actor), _ends_if_refused(file):
            found, left_out = _read_answers(annotations.service, file, file_format, names)
            added = annotations.import_answers(found, actor)
        n_found = len({(each.trajectory_id, each.person) for each in found})
        where = f"recorded; {n_found - added:,} were already recorded"
        following = ("see the open questions", "submissions", "annotate", "status")
    else:
        service = open_records()
        with _ends_if_refused(file):
            found, left_out = _read_answers(service, file, file_format, names)
            labels.write_annotations(released.with_opaque_annotators(found), out, service.suite.targets)
        n_found = added = len(found)
        where = f"written to {out}"
        following = ("publish them as labels", "submissions", "publish-labels", out, *flags(why="WHY"))
    for line in left_out if not as_json else ():
        typer.echo(f"left out: {line}", err=True)
    counts = {"annotations": n_found, "new": added, "left_out": left_out}
    report(as_json, counts, f"{counted(added, 'annotation')} {where}", *following)


@contextmanager
def _ends_if_refused(file: Path) -> Iterator[None]:
    """End the command and list all problems if the block raises an error about ``file``."""
    errors = (released.AnnotationsInvalid, labels.LabelsInvalid, source.LabelsUnavailable, SubmissionError)
    try:
        yield
    except errors as problem:
        lines = problem.problems if isinstance(problem, released.AnnotationsInvalid) else [str(problem)]
        stop("\n".join([f"nothing was imported from {file.name}; fix these problems first:", *lines]), code=1)


@contextmanager
def _annotation_as(maintainer: str) -> Iterator[tuple[annotation_service.AnnotationService, Actor]]:
    """Open the records, and yield the annotation service with ``maintainer`` as the actor."""
    with records_to_write(maintainer) as (service, actor):
        yield annotation_service.AnnotationService(service), actor


def _for_each(names: Iterable[str], act: Callable[..., object], maintainer: str, as_json: bool) -> None:
    """Call ``act`` for each account and print the results, then end the command if any was refused."""
    accounts: list[dict[str, Any]] = []
    problems = []
    with _annotation_as(maintainer) as (service, actor):
        for name in dict.fromkeys(names):
            try:
                result = act(service, name, actor)
                accounts.append({"account": name, "annotator": result if isinstance(result, str) else None})
            except SubmissionError as problem:
                problems.append(f"{name}: {problem}")
    if as_json:
        print_json({"accounts": accounts, "problems": problems})
    else:
        for each in accounts:
            typer.echo(f"{each['account']}: {each['annotator'] or 'no longer invited'}")
    if problems:
        stop("\n".join(problems), code=1)


def _ids_in_dataset(service: SubmissionsApp) -> set[str]:
    """Return the trajectory ids in the built dataset and the sample. Exit if none is in the suite."""
    ids = {
        trajectory_id
        for dataset in _datasets(service)
        for trajectory_id in dataset.table("trajectories", columns=["trajectory_id"])[0].to_pylist()
    }
    if not any(trajectory.trajectory_id in ids for trajectory in service.suite.trajectories):
        stop(
            f"the dataset in ARB_DATA_DIR ({service.settings.data_dir}) has no trajectory of "
            f"{service.suite.name} to show to annotators; {BUILD_IT}",
            code=1,
        )
    return ids


def _datasets(service: SubmissionsApp) -> list[Any]:
    folders = (service.settings.data_dir, Path(sample.__file__).parent / "data")
    try:
        built = [folder for folder in folders if (folder / published.MANIFEST).is_file()]
        return [published.PublishedDataset(folder) for folder in built]
    except problems.SourceError as problem:
        stop(str(problem), code=1)


def _read_answers(
    service: SubmissionsApp, file: Path, file_format: str, names: Mapping[str, str]
) -> tuple[list[Annotation], list[str]]:
    """Return the annotations in an exported file, and one line per item that was left out.

    ``names`` maps names in the file to accounts. Raises AnnotationsInvalid, LabelsInvalid, OSError.
    """
    suite = service.suite
    left_out: list[str] = []
    if file_format == "csv":
        asked = {question.name for question in suite.targets}
        unasked = dict.fromkeys(set(targets.RELEASED_ANSWERS) - asked)
        annotations = answered(labels.load_annotations(suite, service.settings, file=file))
        found = [each.with_answers(unasked) for each in annotations]
    else:
        with ends_on(RecordsUnavailable):
            key = service.secret.key("annotation-item")
        ids = {
            exchange.item_token(key, each.trajectory_id): each.trajectory_id for each in suite.trajectories
        }
        reader = exchange.AnswersReader(suite.targets, ids)
        content = exchange.read_export(file)
        found = reader.argilla(content) if file_format == "argilla" else reader.label_studio(content)
        left_out = reader.left_out
    return [replace(each, annotator=names.get(each.person or "", each.person)) for each in found], left_out
