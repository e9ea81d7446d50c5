"""The commands ``judges show``, ``judges reparse`` and ``judges export``, which read finished runs."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from arb.core import files
from arb.core.cli import (
    JsonOption,
    print_json,
    read_settings,
    read_suite,
    stop,
    suite_option,
)
from arb.core.console import counted, printable
from arb.core.lazy import lazy_imports
from arb.judges.cli.options import described, user_errors
from arb.judges.cli.text import fill_in
from arb.judges.types import ImageOptions, OptionsError, Wants

with lazy_imports():
    from arb.core import replies
    from arb.core import suite as suites
    from arb.core.predictions import write as prediction_files
    from arb.core.suites import targets as suite_targets
    from arb.judges import views
    from arb.judges.run import config as run_config
    from arb.judges.run import export as exporting
    from arb.judges.run import folder as run_folder
    from arb.judges.run import records, selection
    from arb.judges.run import reparse as reparsing

Row = dict[str, Any]


@described
def show(
    run: Path,
    trajectory_id: str,
    pictures: Path | None = None,
    source: Path | None = None,
    as_json: JsonOption = False,
) -> None:
    """Show one judgment with all messages that were sent and all replies.

    Pictures are shown as their SHA-256. Use --pictures to write the files, which are read from the recorded
    runs. Control characters are left out, except with --json.
    """
    stored = run_folder.read_run(run)
    wanted = trajectory_id.casefold()
    judged = run_folder.read_judgments(run)
    record = next((each for each in judged if each["trajectory_id"].casefold() == wanted), None)
    if record is None:
        stop(f"{trajectory_id}: {run} has no judgment of it; use an id from its judgments.jsonl")
    with run_folder.open_prompts(run) as prompts:
        calls = [{**call, "messages": exporting.messages_of(call, prompts)} for call in record["calls"]]
    if as_json:
        print_json({**record, "calls": calls})
    else:
        text = fill_in("show.txt.j2", record=record, calls=calls)
        typer.echo("".join(each if each in "\n\t" else printable(each) for each in text), nl=False)
    if pictures is not None:
        named = {name for call in calls for name in call["images"]}
        written = _write_pictures(pictures, named, stored, record["trajectory_id"], source)
        typer.echo(f"wrote {written:,} of {len(named):,} pictures into {pictures}", err=True)


def _write_pictures(
    folder: Path, wanted: set[str], run: Mapping[str, Any], trajectory_id: str, source: Path | None
) -> int:
    """Write the pictures of a trajectory that are ``wanted`` (by SHA-256), and return how many were found.

    ``run`` is the content of run.json. ``source`` is the folder of the recorded runs; None means the dataset
    of the suite.
    """
    configuration = run["configuration"]
    problems: tuple[type[Exception], ...] = (views.NoViewError, *user_errors())
    images = ImageOptions(**configuration["images"])
    try:
        if source is not None and "source" in run:
            recorded = views.Views(source, None, images)
        else:
            suite = suites.load_suite(configuration["suite"])
            recorded = views.Views(selection.source_folder(source, suite), suite, images)
        view = recorded.view(trajectory_id, Wants(screenshots="all", goal_images=True))
    except problems as problem:
        stop(f"--pictures: {problem}")
    folder.mkdir(parents=True, exist_ok=True)
    pictures = (*view.goal_images, *(step.screenshot for step in view.steps if step.screenshot is not None))
    found = {each.sha256: each for each in pictures if each.sha256 in wanted}
    for name, picture in found.items():
        files.atomic_write(folder / f"{name}.{picture.media_type.partition('/')[2]}", picture.content)
    return len(found)


@described
def reparse(
    place: Path,
    out: Path,
    form: Literal["tags", "status", "rating", "judge", "verdict", "criteria"] | None = None,
    cache: Path | None = None,
    judge: str | None = None,
    split: Literal["dev", "test"] | None = None,
    suite: Annotated[str | None, suite_option("the run's suite, else ARB_SUITE")] = None,
    as_json: JsonOption = False,
) -> None:
    """Parse stored replies again, without calling a model.

    Writes a new prediction file and leaves the files of the run unchanged. Use it after an update of the
    parsers, for example.
    """
    try:
        if (place / "run.json").is_file():
            _refuse({"--judge": judge, "--split": split}, "a run folder")
            rows, targets, notes = _of_run(place, form, cache, suite)
        else:
            _refuse({"--form": form, "--cache": cache}, "released judgments")
            rows, notes = _of_released(place, judge, split, suite)
            targets = ()
        out.parent.mkdir(parents=True, exist_ok=True)
        prediction_files.write_predictions(out, rows, targets)
    except ValueError as problem:
        stop(str(problem))
    states = Counter(row["state"] for row in rows if "state" in row)  # further rows of a run have none
    n = states.total()
    if as_json:
        print_json({"predictions": str(out), "judgments": n, "states": dict(states), "notes": notes})
        return
    typer.echo(f"{counted(n, 'judgment')}: {', '.join(f'{k:,} {name}' for name, k in states.most_common())}")
    for line in notes:
        typer.echo(line)
    typer.echo(f"wrote {out}")


def _of_run(
    folder: Path, form: replies.Form | None, cache: Path | None, suite_name: str | None
) -> tuple[list[Row], tuple[suite_targets.Target, ...], list[str]]:
    """Parse the replies of a run again, and return the prediction rows, their targets and notes to print."""
    configuration = run_folder.read_run(folder)["configuration"]
    named = {**configuration, "suite": suite_name or configuration["suite"]}
    judge = reparsing.reparsing_judge(named, form)
    judgments: list[Row] = []
    changed = unanswered = 0
    with _cached_replies(configuration, cache) as whole:
        for record in run_folder.read_judgments(folder):
            read = reparsing.reparse_record(record, judge, whole)
            unanswered += read is None
            read = read or {**record, "state": "error", "answer": {}}
            if form is not None and "steps" in record["answer"]:  # only an own judge's code can read them
                answer = {**read["answer"], "steps": record["answer"]["steps"]}
                read = {**read, "state": record["state"], "answer": answer}
            changed += _verdict(read) != _verdict(record)
            judgments.append(read)
    has_steps = any("steps" in read["answer"] for read in judgments)
    suite = None
    try:
        suite = suites.load_suite(suite_name or configuration["suite"])
    except suites.SuiteError as problem:
        if has_steps or suite_name is not None:
            stop(str(problem))
    rows = list(records.prediction_rows(judgments, suite, has_steps=has_steps))
    notes = [f"{changed:,} of them have a different verdict or state than before"]
    if suite is None:
        notes.append(
            f"there is no suite {configuration['suite']!r}, so verdicts are in the column success; if it "
            "asks something else, name its folder with --suite"
        )
    if unanswered:
        notes.append(
            f"{unanswered:,} now need a call to the strong judge that was never made, so they have the state "
            "error; run the judge again with another --out to make these calls (the rest is in the cache)"
        )
    return rows, suite.targets if suite is not None else (), notes


def _verdict(record: Row) -> tuple[object, ...]:
    return record["state"], record["answer"].get("success"), record["answer"].get("steps")


@contextlib.contextmanager
def _cached_replies(
    configuration: Mapping[str, Any], cache: Path | None
) -> Iterator[reparsing.WholeReply | None]:
    """Yield a function that looks up cached replies by key; None if the run has no log-probabilities."""
    if not any(model.get("logprobs") for model in configuration["models"].values()):
        yield None
        return
    folder = run_config.cache_folder(cache)
    if not folder.is_dir():
        raise OptionsError(f"{folder}: there is no cache; use --cache to name the cache of the run")
    with contextlib.closing(run_config.open_cache(folder)) as replies:
        yield replies.get


def _of_released(
    folder: Path, judge: str | None, split: str | None, suite_name: str | None
) -> tuple[list[Row], list[str]]:
    """Return one prediction row per trajectory of the split, and notes to print.

    A trajectory without a judgment has the state ``error``.
    """
    if split is None:
        raise OptionsError(
            f"{folder}: has no run.json; if it has released judgments, add --split dev or --split test"
        )
    suite = read_suite(suite_name, read_settings())
    found: dict[str, Row] = {}
    unknown: list[str] = []
    for spelled, row in reparsing.read_released(folder, judge):
        trajectory = suite.find(spelled)
        if trajectory is None:
            unknown.append(spelled)
        else:
            found[trajectory.trajectory_id] = row
    ids = [each.trajectory_id for each in suite.split(split)]
    if not any(each in found for each in ids):
        raise OptionsError(
            f"{folder}: contains no judgment of {suite.name}, split {split}; check --suite and --split"
        )
    absent = sum(each not in found for each in ids)
    rows = [{"trajectory_id": each, "success": None, "state": "error", **found.get(each, {})} for each in ids]
    notes = []
    if absent:
        notes.append(f"without a judgment: {counted(absent, 'trajectory')}, written with the state error")
    if others := len(found) - len(ids) + absent:
        notes.append(f"left out: {counted(others, 'judgment')} of the other split")
    if unknown:
        notes.append(
            f"left out: {counted(len(unknown), 'judgment')} of no trajectory of {suite.name}: "
            f"{', '.join(unknown[:5])}"
        )
    return rows, notes


def _refuse(flags: Mapping[str, object], what: str) -> None:
    if wrong := [flag for flag, value in flags.items() if value is not None]:
        raise OptionsError(
            f"{', '.join(wrong)}: cannot be used with {what}; leave {'it' if len(wrong) == 1 else 'them'} out"
        )


@described
def export(
    run: Path,
    out: Path,
    released_layout: bool = False,
    judge_folder: str | None = None,
    as_json: JsonOption = False,
) -> None:
    """Export a run in the layout of the paper's released judgments.

    Each judgment becomes one file with the reply and the messages that were sent. Pictures are replaced by
    their SHA-256.
    """
    if not released_layout:
        stop("no layout was chosen; add --released-layout")
    done = exporting.export_released_layout(run, out, judge_folder)
    if as_json:
        print_json({"folder": str(out), **asdict(done)})
    typer.echo(
        f"wrote {counted(done.files, 'judgment')} as {done.judge}, {done.errors:,} of them errors", err=True
    )
    if done.left_out:
        stop(
            f"left out: {counted(len(done.left_out), 'judgment')}, because no single reply contains the "
            f"verdict: {', '.join(done.left_out[:5])}{' …' if len(done.left_out) > 5 else ''}",
            code=1,
        )
