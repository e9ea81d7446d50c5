"""``python -m submissions annotate …``: annotation from a terminal, over the records on this machine."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from core.cli import JsonOption, new_command, plain_console, stop
from core.console import text_table
from submissions.cli import open_records, print_rescoring, print_version, records_to_write

if TYPE_CHECKING:
    from submissions.intake.accounts import Actor
    from submissions.labels.annotation_service import AnnotationService
    from submissions.labels.annotation_state import DiscussionItem
    from submissions.service import SubmissionService

app = new_command()
AccountsArgument = Annotated[list[str], typer.Argument(help="Names with which the accounts sign in.")]
MaintainerOption = Annotated[str, typer.Option(help="Who does it; kept with the record.")]
WhyOption = Annotated[str, typer.Option(help="What changed and why; kept with the version, and shown.")]
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
    with records_to_write() as service:
        annotations, actor = _annotations(service), _maintainer(maintainer)
        found, problems = _of_each(accounts, lambda name: annotations.actions.invite(name, actor))
    _report([{"account": name, "annotator": who} for name, who in found], problems, as_json)


@app.command()
def uninvite(
    accounts: AccountsArgument, maintainer: MaintainerOption = COMMAND_LINE, as_json: JsonOption = False
) -> None:
    """End invitations.

    What is finished stays, the next assignment gives the rest to others.
    """
    with records_to_write() as service:
        annotations, actor = _annotations(service), _maintainer(maintainer)
        found, problems = _of_each(accounts, lambda name: annotations.actions.uninvite(name, actor))
    _report([{"account": name, "annotator": None} for name, _ in found], problems, as_json)


@app.command()
def assign(
    split: Annotated[Literal["test", "dev", "both"], typer.Option(help="Of which split.")] = "test",
    most: Annotated[
        int | None, typer.Option(min=0, help="At most so many new ones, evenly over the benchmarks.")
    ] = None,
    percent_twice: Annotated[
        float, typer.Option(min=0, max=100, help="How many percent get a second annotation.")
    ] = 10.0,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="Seed of the random assignment.")] = 1,
    maintainer: MaintainerOption = COMMAND_LINE,
    as_json: JsonOption = False,
) -> None:
    """Assign trajectories to those who are invited.

    Evenly over benchmarks and people, of what the built dataset has; earlier assignments stay.
    """
    from submissions.errors import SubmissionError

    with records_to_write() as service:
        available = _ids_in_dataset(service)
        try:
            added = _annotations(service).assign(
                split, most, percent_twice / 100, seed, available, _maintainer(maintainer)
            )
        except SubmissionError as problem:
            stop(str(problem), code=1)
    if as_json:
        print(json.dumps({"assignments": added}))
    else:
        typer.echo(f"{added:,} assignments added")


@app.command()
def status(as_json: JsonOption = False) -> None:
    """Say who has done how much, and what is open.

    Open questions come with the answers, which are labels: keep what it prints as private.
    """
    from submissions.labels.annotation_service import progress_of_annotators
    from submissions.labels.annotation_state import discussion_items

    service = open_records()
    state = _annotations(service).now()
    people = progress_of_annotators(state)
    items = [item for item in discussion_items(state, None, is_maintainer=True) if item.open]
    finished = {trajectory_id for trajectory_id, who in state.saved if state.is_done(trajectory_id, who)}
    if as_json:
        counts = {"suite": service.suite.name, "assigned": len(state.assigned), "finished": len(finished)}
        print(
            json.dumps({**counts, "annotators": [vars(each) for each in people], "open": _open_json(items)})
        )
        return
    typer.echo(
        f"{service.suite.name}: {len(state.assigned):,} trajectories assigned, {len(finished):,} finished by "
        f"somebody, {len(items):,} with an open question"
    )
    console = plain_console()
    if people:
        table = text_table("annotator", "account", figures=("done", "assigned", "seconds, median"))
        for each in people:
            account = each.account if each.is_active else f"{each.account} (no longer)"
            seconds = "" if each.seconds is None else f"{each.seconds:.0f}"
            table.add_row(each.annotator, account, f"{each.n_done:,}", f"{each.n_assigned:,}", seconds)
        console.print(table)
    if items:
        table = text_table("trajectory", "question", "answers")
        for each in _open_json(items):
            table.add_row(each["trajectory_id"], each["question"], " / ".join(each["answers"].values()))
        console.print(table)


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
    from submissions.errors import SubmissionError

    if (decisions is None) != (None not in (trajectory_id, question, answer)):
        stop("name a trajectory, a question and an answer, with --reason, or a file with --decisions")
    rows = _decisions(decisions) if decisions else [(trajectory_id, question, answer, reason)]
    with records_to_write() as service:
        try:
            found = _annotations(service).actions.resolve_all(rows, _maintainer(maintainer))
        except SubmissionError as problem:
            stop(str(problem), code=1)
    if as_json:
        print(json.dumps({"decided": found}))
    else:
        typer.echo(f"{found:,} question{'' if found == 1 else 's'} decided")


def _decisions(path: Path) -> list[Sequence[str]]:
    """The rows of a file of decisions; a file that is none ends the command."""
    from core.suite import SuiteError, read_rows

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
    from submissions.errors import SubmissionError
    from submissions.scoring.rescore import rescore

    try:
        with records_to_write() as service:
            actor = _maintainer(maintainer)
            version = _annotations(service).publish(actor, why)
            is_served = service.label_version == version.version
            rescored = rescore(service, actor) if is_served else None
    except SubmissionError as problem:
        stop(str(problem), code=1)
    if as_json:
        found = {"version": version.version, "labelled": version.labelled, "changes": dict(version.changes)}
        print(json.dumps({**found, "rescored": rescored and rescored.to_json()}))
        return
    print_version(version)
    if rescored is None:
        typer.echo("it is not served: set ARB_LABELS=records, then `rescore`")
    else:
        print_rescoring(rescored)


def _annotations(service: SubmissionService) -> AnnotationService:
    from submissions.labels.annotation_service import AnnotationService

    return AnnotationService(service)


def _maintainer(name: str) -> Actor:
    from submissions.intake.accounts import Actor

    return Actor(name, is_maintainer=True)


def _of_each(names: Iterable[str], act: Any) -> tuple[list[tuple[str, Any]], list[str]]:
    """What an action gave for each name, and the problems of those for whom it was refused."""
    from submissions.errors import SubmissionError

    found, problems = [], []
    for name in dict.fromkeys(names):
        try:
            found.append((name, act(name)))
        except SubmissionError as problem:
            problems.append(f"{name}: {problem}")
    return found, problems


def _report(found: Sequence[Mapping[str, Any]], problems: Sequence[str], as_json: bool) -> None:
    if as_json:
        print(json.dumps({"accounts": found, "problems": problems}))
    for each in () if as_json else found:
        typer.echo(f"{each['account']}: {each['annotator'] or 'no longer invited'}")
    if problems:
        stop("\n".join(problems), code=1)


def _ids_in_dataset(service: SubmissionService) -> set[str]:
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


def _datasets(service: SubmissionService) -> list[Any]:
    from dataset_script import sample
    from dataset_script.sources.base import SourceError
    from dataset_script.sources.published import MANIFEST, PublishedDataset

    own, shipped = service.settings.data_dir, Path(sample.__file__).parent / "data"
    try:
        return [PublishedDataset(folder) for folder in (own, shipped) if (folder / MANIFEST).is_file()]
    except SourceError as problem:
        stop(str(problem), code=1)
