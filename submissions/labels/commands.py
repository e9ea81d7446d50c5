"""``python -m submissions annotate …``: annotation from a terminal, over the records on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from arb.core.cli import JsonOption, flags, new_command, next_step, plain_console, print_json, stop
from arb.core.console import text_table
from submissions.cli import open_records, print_rescoring, print_version, records_to_write

if TYPE_CHECKING:
    from arb.core.annotation import Annotation
    from submissions.app import SubmissionsApp
    from submissions.intake.accounts import Actor
    from submissions.labels.annotation_service import AnnotationService
    from submissions.labels.annotation_state import DiscussionItem
    from submissions.privacy.server_secret import ServerSecret

app = new_command()
AccountsArgument = Annotated[list[str], typer.Argument(help="Names with which the accounts sign in.")]
MaintainerOption = Annotated[str, typer.Option(help="Who does it; kept with the record.")]
WhyOption = Annotated[str, typer.Option(help="What changed and why; kept with the version, and shown.")]
Split = Annotated[Literal["test", "dev", "both"], typer.Option(help="Of which split.")]
COMMAND_LINE = "the command line"
DECISION_COLUMNS = ("trajectory_id", "question", "answer", "reason")


@app.callback()
def annotate() -> None:
    """Annotation: invite, assign, decide, publish.

    The same as on the page /discuss; a Space that is open on the same records sees it at once.
    """


@app.command()
def invite(
    accounts: AccountsArgument, maintainer: MaintainerOption = COMMAND_LINE, as_json: JsonOption = False
) -> None:
    """Let accounts annotate.

    Each gets an opaque id, the one it had before where it was invited once.
    """
    with _annotation_as(maintainer) as (annotations, actor):
        found, problems = _of_each(accounts, lambda name: annotations.invite(name, actor))
    _report(found, problems, as_json)
    if not as_json:
        next_step("assign trajectories to them", "submissions", "annotate", "assign")


@app.command()
def uninvite(
    accounts: AccountsArgument, maintainer: MaintainerOption = COMMAND_LINE, as_json: JsonOption = False
) -> None:
    """End invitations.

    What is finished stays, the next assignment gives the rest to others.
    """
    with _annotation_as(maintainer) as (annotations, actor):
        found, problems = _of_each(accounts, lambda name: annotations.uninvite(name, actor))
    _report(dict.fromkeys(found), problems, as_json)


@app.command()
def assign(
    split: Split = "test",
    most: Annotated[
        int | None, typer.Option(min=0, help="At most so many new ones, evenly over the benchmarks.")
    ] = None,
    percent_twice: Annotated[
        float, typer.Option(min=0, max=100, help="How many percent get a second annotation.")
    ] = 10.0,
    percent_gold: Annotated[
        float, typer.Option(min=0, max=100, help="How many percent of gold items come on top.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of the random assignment.")] = 1,
    maintainer: MaintainerOption = COMMAND_LINE,
    as_json: JsonOption = False,
) -> None:
    """Assign trajectories to those who are invited.

    Evenly over benchmarks and people, of what the built dataset has; earlier assignments stay.
    """
    with _annotation_as(maintainer) as (annotations, actor):
        available = _ids_in_dataset(annotations.service)
        shares = percent_twice / 100, percent_gold / 100
        added = annotations.assign(split, most, shares[0], seed, available, actor, shares[1])
    if as_json:
        print_json({"assignments": added})
    else:
        typer.echo(f"{added:,} assignments added")
        next_step("annotators answer at /annotate; see how far they are", "submissions", "annotate", "status")


@app.command()
def status(as_json: JsonOption = False) -> None:
    """Say who has done how much, and what is open.

    Open questions come with the answers, which are labels: keep what it prints as private.
    """
    from submissions.labels.annotation_service import AnnotationService, progress_of_annotators
    from submissions.labels.annotation_state import discussion_items

    service = open_records()
    state = AnnotationService(service).now()
    annotators = progress_of_annotators(state)
    items = [item for item in discussion_items(state, None, is_maintainer=True) if item.open]
    finished = {trajectory_id for trajectory_id, who in state.saved if state.is_done(trajectory_id, who)}
    if as_json:
        counts = {"suite": service.suite.name, "assigned": len(state.assigned), "finished": len(finished)}
        print_json({**counts, "annotators": [vars(each) for each in annotators], "open": _open_json(items)})
        return
    typer.echo(
        f"{service.suite.name}: {len(state.assigned):,} trajectories assigned, {len(finished):,} finished by "
        f"somebody, {len(items):,} with an open question"
    )
    console = plain_console()
    if annotators:
        table = text_table("annotator", "account", figures=("done", "assigned", "seconds, median"))
        for each in annotators:
            account = each.account if each.is_active else f"{each.account} (no longer)"
            seconds = "" if each.seconds is None else f"{each.seconds:.0f}"
            table.add_row(each.annotator, account, f"{each.n_done:,}", f"{each.n_assigned:,}", seconds)
        console.print(table)
    if items:
        table = text_table("trajectory", "question", "answers")
        for each in _open_json(items):
            table.add_row(each["trajectory_id"], each["question"], " / ".join(each["answers"].values()))
        console.print(table)
        first = items[0]
        chosen = (first.item.trajectory_id, first.open[0], "ANSWER", *flags(reason="WHY"))
        next_step("decide, one by one or with --decisions", "submissions", "annotate", "resolve", *chosen)
    elif finished:
        next_step("make a label version of it", "submissions", "annotate", "publish", *flags(why="WHY"))


def _open_json(items: Iterable[DiscussionItem]) -> list[dict[str, Any]]:
    """Every open question with the answers by annotator, a dash where one gave none."""
    return [
        {
            "trajectory_id": each.item.trajectory_id,
            "question": question,
            "answers": {
                who or "not known": answer or "–"
                for who, answer in zip(each.item.annotators, each.item.answers[question], strict=True)
            },
        }
        for each in items
        for question in each.open
    ]


@app.command()
def resolve(
    trajectory_id: Annotated[str | None, typer.Argument(help="One trajectory; else --decisions.")] = None,
    question: Annotated[str | None, typer.Argument(help="Such as success.")] = None,
    answer: Annotated[str | None, typer.Argument(help="The right answer, or unsure.")] = None,
    reason: Annotated[str, typer.Option(help="Why; kept with the decision.")] = "",
    decisions: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help=f"A CSV file: {', '.join(DECISION_COLUMNS)}."),
    ] = None,
    maintainer: MaintainerOption = COMMAND_LINE,
    as_json: JsonOption = False,
) -> None:
    """Decide what annotators answered differently.

    The newest decision counts, the answers stay. Of a file nothing is decided while a row has a problem.
    """
    if (decisions is None) != (None not in (trajectory_id, question, answer)):
        stop("name a trajectory, a question and an answer, with --reason, or a file with --decisions")
    rows = _decisions(decisions) if decisions else [(trajectory_id, question, answer, reason)]
    with _annotation_as(maintainer) as (annotations, actor):
        found = annotations.resolve_all(rows, actor)
    if as_json:
        print_json({"decided": found})
    else:
        typer.echo(f"{found:,} question{'' if found == 1 else 's'} decided")
        next_step("see what is still open", "submissions", "annotate", "status")


def _decisions(path: Path) -> list[Sequence[str]]:
    """The rows of a file of decisions; a file that is none ends the command."""
    from arb.core.suite import SuiteError, read_rows

    try:
        rows = read_rows(path, DECISION_COLUMNS)
    except (SuiteError, OSError) as problem:
        stop(str(problem), code=1)
    return [tuple((row[name] or "").strip() for name in DECISION_COLUMNS) for row in rows]


@app.command()
def publish(why: WhyOption, maintainer: MaintainerOption = COMMAND_LINE, as_json: JsonOption = False) -> None:
    """Publish the label set as a new version.

    Where it is served, everything is scored under it.
    """
    from submissions.scoring.rescore import rescore

    with _annotation_as(maintainer) as (annotations, actor):
        version = annotations.publish(actor, why)
        is_served = annotations.service.label_version == version.version
        rescored = rescore(annotations.service, actor) if is_served else None
    if as_json:
        found = {"version": version.version, "labelled": version.labelled, "changes": dict(version.changes)}
        print_json({**found, "rescored": rescored and rescored.to_json()})
        return
    print_version(version)
    if rescored is None:
        next_step("it is not served: set ARB_LABELS=records, and", "submissions", "rescore")
    else:
        print_rescoring(rescored)
        next_step(
            "get the labels into a file of yours", "submissions", "export-labels", "--out", "labels.csv"
        )


@app.command("export")
def export_items(
    file_format: Annotated[Literal["label-studio", "argilla"], typer.Option("--format", help="For which.")],
    out: Annotated[Path, typer.Option(file_okay=False, help="A new folder.")],
    split: Split = "both",
    images: Annotated[
        str | None,
        typer.Option(help="The address at which the folder images/ will be; Argilla needs it."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write the items to annotate for Label Studio or Argilla.

    The suite's questions go with them. Blind: opaque items, no agent, no label, no verdict, no reward.
    Label Studio: make a project with config.xml and import tasks.json; it shows images/ of a folder in its
    LOCAL_FILES_DOCUMENT_ROOT. Argilla: argilla.Dataset.from_disk(OUT).
    """
    from arb.core.vocabulary import SPLITS
    from submissions.labels.exchange import read_items, write_argilla, write_label_studio

    service = open_records()
    if file_format == "argilla" and images is None:
        stop("Argilla shows pictures by their address: say with --images where the folder images/ will be")
    suite = service.suite
    ids = {t.trajectory_id for name in SPLITS if split in (name, "both") for t in suite.split(name)}
    dataset = next((each for each in _datasets(service) if each.suite == suite.name), None)
    if dataset is None:
        stop(f"there is no dataset of {suite.name} in ARB_DATA_DIR: make it by `build`", code=1)
    there = dataset.table("trajectories", columns=["trajectory_id"])[0].to_pylist()
    items = read_items(dataset, ids & set(there), _secret(service).key("annotation-item"))
    try:
        if file_format == "argilla":
            found = write_argilla(out, suite.name, items, suite.questions, suite.guidelines, images or "")
        else:
            found = write_label_studio(out, items, suite.questions, suite.guidelines, images)
    except OSError as problem:
        stop(str(problem), code=1)
    missing = len(ids - set(there))
    if as_json:
        print_json({"items": found, "not_in_dataset": missing})
    else:
        typer.echo(f"{found:,} items in {out}" + (f"; {missing:,} are not in the dataset" if missing else ""))
        chosen = ("ANSWERS.json", *flags(format=file_format))
        next_step("bring what was answered back", "submissions", "annotate", "import", *chosen)


@app.command("import")
def import_answers(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="What was exported there.")],
    file_format: Annotated[
        Literal["label-studio", "argilla", "csv"],
        typer.Option("--format", help="csv: annotations as released, or our Parquet."),
    ],
    person: Annotated[
        list[str] | None, typer.Option(help="Who somebody there is here, NAME=ACCOUNT; again for more.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(dir_okay=False, help="A new CSV or Parquet file, in place of the records."),
    ] = None,
    maintainer: MaintainerOption = COMMAND_LINE,
    as_json: JsonOption = False,
) -> None:
    """Take answers from elsewhere as the annotators' own.

    They are recorded for accounts that are invited, or go to --out, where annotators have opaque ids. What
    was skipped or not finished is left out and named. All or none: every problem is named.
    """
    from leaderboard.labels.annotations import AnnotationsInvalid, with_opaque_annotators
    from leaderboard.labels.labels import LabelsInvalid, write_annotations
    from leaderboard.labels.source import LabelsUnavailable
    from submissions.errors import SubmissionError
    from submissions.labels.annotation_service import AnnotationService

    names = dict(each.partition("=")[::2] for each in person or [])
    if not all(names.values()):
        stop("--person: write NAME=ACCOUNT, such as ada@example.org=ada")
    if out is not None and out.exists():
        stop(f"{out} is there already and is not written over; name a new file")
    opened = (
        _annotation_as(maintainer) if out is None else nullcontext((AnnotationService(open_records()), None))
    )
    with opened as (annotations, actor):
        service = annotations.service
        try:
            found, left_out = _read_answers(service, file, file_format)
            found = [replace(each, annotator=names.get(each.person or "", each.person)) for each in found]
            if out is None:
                added = annotations.import_answers(found, actor)
            else:
                write_annotations(with_opaque_annotators(found), out, service.suite.questions)
                added = len(found)
        except (AnnotationsInvalid, LabelsInvalid, LabelsUnavailable, SubmissionError) as problem:
            lines = problem.problems if isinstance(problem, AnnotationsInvalid) else [str(problem)]
            stop("\n".join([f"{file.name}: nothing was taken:", *lines]), code=1)
        except OSError as problem:
            stop(f"{problem.filename}: {problem.strerror or type(problem).__name__}")
    if as_json:
        print_json({"annotations": len(found), "new": added, "left_out": left_out})
        return
    for line in left_out:
        typer.echo(f"left out: {line}", err=True)
    where = f"in {out}" if out else f"recorded, {len(found) - added:,} were there already"
    typer.echo(f"{added:,} annotations {where}")
    if out is None:
        next_step("see what is open", "submissions", "annotate", "status")
    else:
        next_step("publish them as labels", "submissions", "publish-labels", out, *flags(why="WHY"))


@contextmanager
def _annotation_as(maintainer: str) -> Iterator[tuple[AnnotationService, Actor]]:
    """Open annotation for a command in a maintainer's name; a refusal ends the command with its message."""
    from submissions.intake.accounts import Actor
    from submissions.labels.annotation_service import AnnotationService

    with records_to_write() as service:
        yield AnnotationService(service), Actor(maintainer, is_maintainer=True)


def _of_each(names: Iterable[str], act: Callable[[str], Any]) -> tuple[dict[str, Any], list[str]]:
    """Return what an action gave for each name, and the problems of those for whom it was refused."""
    from submissions.errors import SubmissionError

    found, problems = {}, []
    for name in dict.fromkeys(names):
        try:
            found[name] = act(name)
        except SubmissionError as problem:
            problems.append(f"{name}: {problem}")
    return found, problems


def _report(annotators: Mapping[str, str | None], problems: Sequence[str], as_json: bool) -> None:
    """Print the annotator of each account, None for one that is no longer invited."""
    if as_json:
        accounts = [{"account": account, "annotator": who} for account, who in annotators.items()]
        print_json({"accounts": accounts, "problems": problems})
    else:
        for account, who in annotators.items():
            typer.echo(f"{account}: {who or 'no longer invited'}")
    if problems:
        stop("\n".join(problems), code=1)


def _ids_in_dataset(service: SubmissionsApp) -> set[str]:
    """What the built dataset and the sample hold; ends the command where they hold nothing of the suite."""
    ids = {
        trajectory_id
        for dataset in _datasets(service)
        for trajectory_id in dataset.table("trajectories", columns=["trajectory_id"])[0].to_pylist()
    }
    if not any(trajectory.trajectory_id in ids for trajectory in service.suite.trajectories):
        stop(
            f"the dataset in ARB_DATA_DIR ({service.settings.data_dir}) has no trajectory of "
            f"{service.suite.name}, so annotators would have nothing to look at: make it by `build`",
            code=1,
        )
    return ids


def _datasets(service: SubmissionsApp) -> list[Any]:
    from dataset_script import sample
    from dataset_script.sources.base import SourceError
    from dataset_script.sources.published import MANIFEST, PublishedDataset

    own, shipped = service.settings.data_dir, Path(sample.__file__).parent / "data"
    try:
        return [PublishedDataset(folder) for folder in (own, shipped) if (folder / MANIFEST).is_file()]
    except SourceError as problem:
        stop(str(problem), code=1)


def _secret(service: SubmissionsApp) -> ServerSecret:
    from submissions.privacy.server_secret import SecretRefused, SecretUnavailable

    try:
        return service.secret
    except (SecretRefused, SecretUnavailable) as problem:
        stop(str(problem), code=1)


def _read_answers(
    service: SubmissionsApp, file: Path, file_format: str
) -> tuple[list[Annotation], list[str]]:
    """What a file has, and what of it is left out. Raises AnnotationsInvalid, LabelsInvalid, OSError."""
    from arb.core.annotation import answered
    from arb.core.suites.questions import RELEASED_ANSWERS
    from leaderboard.labels.labels import load_annotations
    from submissions.labels.exchange import AnswersReader, item_token, read_export

    suite = service.suite
    if file_format == "csv":
        found = load_annotations(suite, service.settings, file=file)
        asked = {question.name for question in suite.questions}
        unasked = dict.fromkeys(set(RELEASED_ANSWERS) - asked)
        return [each.with_answers(unasked) for each in answered(found)], []
    # Items that were exported by 7d56a80 have the names of the older key.
    keys = [_secret(service).old_key("annotation-item"), _secret(service).key("annotation-item")]
    ids = {item_token(key, t.trajectory_id): t.trajectory_id for key in keys for t in suite.trajectories}
    reader = AnswersReader(suite.questions, ids)
    read = reader.argilla if file_format == "argilla" else reader.label_studio
    return read(read_export(file)), reader.left_out
