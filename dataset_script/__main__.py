"""``arb data``: get, build, verify and publish the dataset, list suites and runs."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from arb.core.cli import (
    AgentFromOption,
    JsonOption,
    flags,
    new_command,
    next_step,
    plain_console,
    print_json,
    read_settings,
    stop,
    stopped_like_ctrl_c,
    then,
    words,
    write_file,
)
from arb.core.console import printable, text_table
from arb.core.files import atomic_write, new_folder
from arb.core.hub import RELEASED_REPO, RELEASED_REVISION
from arb.core.lazy import lazy_imports
from arb.core.suite import load_dev_labels, load_suite, shipped_suites
from arb.core.vocabulary import SPLITS
from dataset_script import commands, hub, sample
from dataset_script.rewards import rewards

with lazy_imports():
    from dataset_script import card, sources
    from dataset_script.build import output, parts, rows
    from dataset_script.build import report as reports
    from dataset_script.sources import problems

if TYPE_CHECKING:
    from arb.core.predictions.findings import Finding
    from arb.core.trajectory import Recording
    from dataset_script.sources.base import SourceFile, TrajectorySource

SAMPLE_NOTE = (
    "> **This is the sample that ships with the code, not benchmark data.** Run "
    "`arb data get` to replace it with the benchmark."
)
Step = tuple[object, ...]
"""The arguments of `next_step`."""


def _after_fetch(out: Path, **_: object) -> Step:
    return "build the dataset", "data", "build", *flags(source=out, out="agent-reward-bench")


def _after_build(out: Path, suite: str | None, allow_missing: list[str] | None, **_: object) -> Step:
    return "check it", "data", "verify", out, *flags(suite=suite, allow_missing=allow_missing)


def _after_verify(what: str, suite: str | None, allow_missing: list[str] | None, **_: object) -> Step:
    if not Path(what).is_dir():
        return _after_publish(what, suite)
    repo = f"OWNER/{Path(what).resolve().name}"
    chosen = flags(repo=repo, suite=suite, allow_missing=allow_missing)
    return "publish it under your name", "data", "publish", what, *chosen


def _after_publish(repo: str, suite: str | None, private_labels: str | None = None, **_: object) -> Step:
    owner = repo.partition("/")[0]
    names = {"space": f"{owner}/leaderboard", "data": repo, "private": f"{owner}/leaderboard-records"}
    served = {"labels": f"hub:{private_labels}"} if private_labels else {}
    return "put a leaderboard next to it", "space", "deploy", *flags(**names, suite=suite, **served)


def _after_new_suite(source: Path, out: Path, **_: object) -> Step:
    data = out.with_name(f"{out.name}-data")
    return "build its data", "data", "build", *flags(source=source, suite=out, out=data)


app = new_command()
app.command()(then(commands.build, _after_build))
app.command()(rewards)
app.command()(commands.unblind)
app.command()(then(commands.verify, _after_verify))
app.command()(commands.sample_tasks)
app.command()(commands.split)
app.command()(then(commands.new_suite, _after_new_suite))
app.command()(then(hub.fetch, _after_fetch))
app.command()(then(hub.publish, _after_publish))
app.command()(hub.show)


@app.callback()
def _about() -> None:
    """Build, check and publish the dataset, and list suites and runs."""


@app.command()
@commands.described
def get(
    out: Path = Path("agent-reward-bench"),
    released: Path | None = None,
    benchmark: list[str] | None = None,
    agent: list[str] | None = None,
    repo: str = RELEASED_REPO,
    revision: str = RELEASED_REVISION,
    suite: str = "agent-reward-bench",
    only_sample: bool = False,
) -> None:
    """Download, build and verify the benchmark dataset.

    Downloads 38 GB, or less with --benchmark or --agent. Files that were downloaded before are not fetched
    again. If the command is interrupted, run it again to resume. OUT is written only after the dataset has
    passed all checks. It replaces an earlier dataset or the sample in OUT. The sample replaces nothing.

    Exit code 0: the dataset is in OUT; 1: a download or a check failed; 2: the command cannot run as given.
    """
    output.restore_replaced(out)
    if only_sample:
        _put_sample(out)
        return
    released = released or read_settings().cache_dir.expanduser() / "released"
    try:
        output.check_replaceable(out, released)
    except output.OutputError as problem:
        stop(str(problem))
    typer.echo(f"1 of 3: fetching {repo} into {released}", err=True)
    hub.fetch(released, repo, revision, benchmark, agent, None)
    typer.echo("2 of 3: building", err=True)
    left_out = [
        each.trajectory_id
        for each in load_suite(suite).trajectories
        if (benchmark and each.benchmark not in benchmark) or (agent and each.agent not in agent)
    ]
    staged = out.absolute().with_name(f".{out.absolute().name}.get")
    built_of = staged.with_name(f"{staged.name}.json")
    fetched = (released / "fetched.json").read_text(encoding="utf-8")
    made_of = json.dumps([fetched, benchmark, agent, suite, output.code_version()])
    if not (staged.is_dir() and built_of.is_file() and built_of.read_text(encoding="utf-8") == made_of):
        built_of.unlink(missing_ok=True)
        try:
            commands.build(released, staged, suite=suite, allow_missing=left_out)
        except typer.Exit as ended:
            # With this exit code, the dataset was built without the files that are broken in the release.
            if ended.exit_code != commands.DAMAGED_FILES:
                raise
        atomic_write(built_of, made_of)
    typer.echo("3 of 3: verifying", err=True)
    commands.verify(str(staged), allow_missing=left_out)
    output.put_in_place(staged, out)
    built_of.unlink()
    typer.echo(
        f"{out} contains the benchmark: load_dataset({str(out)!r}). You may delete {released}, but the next "
        "`get` then downloads everything again."
    )
    next_step(
        "see what running a judge would cost",
        "judges",
        "plan",
        "simplified-axtree",
        *flags(split="dev", source=out),
    )


def _put_sample(out: Path) -> None:
    """Copy the sample to ``out``, unless ``out`` exists already."""
    try:
        if out.exists():
            raise FileExistsError(out)
        with new_folder(out) as part:
            data = Path(sample.__file__).parent / "data"
            for file in (path for path in data.rglob("*") if path.is_file()):
                write_file(part / file.relative_to(data), file.read_bytes())
            readme = part / "README.md"
            text = card.card_for(readme.read_text(encoding="utf-8"), out.name)
            title, rest = text.split("\n# ", 1)
            heading, rest = rest.split("\n", 1)
            readme.write_text(f"{title}\n# {heading}\n\n{SAMPLE_NOTE}\n{rest}", encoding="utf-8")
    except OSError:
        if not out.exists():
            raise
        typer.echo(f"{out} exists already and was not changed", err=True)
        return
    typer.echo(f"{out} contains the sample: 72 recordings of scripted agents, not benchmark data", err=True)
    next_step("replace it with the benchmark", "data", "get", *flags(out=out))


@app.command()
def suites(as_json: JsonOption = False) -> None:
    """List the shipped suites and their sizes."""
    figures = (*SPLITS, *(f"tasks {split}" for split in SPLITS), "dev labels")
    table = text_table("benchmark", figures=figures, box=None)
    listed = []
    for name in shipped_suites():
        suite = load_suite(name)
        labelled = {label.trajectory_id for label in load_dev_labels(suite)}
        benchmarks = sorted({trajectory.benchmark for trajectory in suite.trajectories})
        for benchmark in [None, *benchmarks]:
            splits = [[t for t in suite.split(s) if benchmark in (None, t.benchmark)] for s in SPLITS]
            counts = [
                *(len(group) for group in splits),
                *(len({(t.benchmark, t.task) for t in group}) for group in splits),
                sum(t.trajectory_id in labelled for t in splits[0]),
            ]
            listed.append({"suite": name, "benchmark": benchmark, **dict(zip(figures, counts, strict=True))})
            table.add_row(name if benchmark is None else f"  {benchmark}", *map(str, counts))
    if as_json:
        print_json(listed)
    else:
        plain_console().print(table)


@app.command()
@commands.described
def inspect_source(
    path: Path,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each run as a line of JSON, and problems on stderr.")
    ] = False,
    allow_class: list[str] | None = None,
    agent_from: AgentFromOption = None,
) -> None:
    """Show what can be read from recorded runs.

    Prints a table of the runs, then the files that cannot be used and other remarks. With --json, prints the
    goal, steps, answer and final state of each run. Writes no files.

    Exit code 0: everything was read; 2: nothing can be read; 3: some files are broken (the output names
    them).
    """
    left_out: list[Finding] = []
    notes: list[Finding] = []
    read = 0
    table = text_table("run", "answer", "end", "goal", figures=("steps", "pictures", "trees"), box=None)
    table.columns[0].no_wrap = True
    try:
        with stopped_like_ctrl_c():
            facts = words(agent_from)
            source = sources.open_source(path, tuple(allow_class or ()), facts)
            listing = source.list_all()
            left_out, notes = reports.listing_findings(source, listing)
            for file in listing.files:
                run, of_run = _read_run(source, file)
                read += run["goal"] is not None
                left_out += [each for each in of_run if each.code in reports.LEFT_OUT]
                notes += [each for each in of_run if each.code not in reports.LEFT_OUT]
                if as_json:
                    typer.echo(json.dumps(run, ensure_ascii=False))
                elif run["goal"] is not None:
                    table.add_row(*_run_cells(run))
    except BrokenPipeError:  # the program that reads the output has closed it
        raise
    except (problems.SourceError, OSError) as error:
        stop(str(error), 2)
    except KeyboardInterrupt:
        stop("interrupted", 130)
    if not as_json:
        plain_console().print(table)
    counts = source.count_files(listing, {each.file or "" for each in left_out})
    if counts is not None:
        typer.echo(reports.files_line(counts), err=as_json)
    for line in reports.section("left out", reports.LEFT_OUT, left_out):
        typer.echo(line, err=as_json)
    for line in reports.section("notes", reports.NOTES, notes):
        typer.echo(line, err=as_json)
    if not read:
        stop(f"{path}: no run in this source can be read", 2)
    if damaged := sum(each.code in reports.DAMAGED for each in left_out):
        stop(f"{damaged} files are broken; they are named above", commands.DAMAGED_FILES)


def _read_run(source: "TrajectorySource", file: "SourceFile") -> tuple[dict[str, Any], list["Finding"]]:
    """Return a run as a JSON object, and the findings about it. If it cannot be read, its goal is None."""
    recording: Recording | None = None
    try:
        recording, notes = parts.read_run(source, file)
        found = [reports.finding(note.code, file.name, note.detail) for note in notes]
    except problems.UnusableFileError as error:
        found = [reports.finding(error.code, file.name, error.detail)]
    findings = [{"code": each.code, "name": each.file, "detail": each.message} for each in found]
    return rows.describe_run(source.kind_of(file), file.trajectory_id, recording) | {
        "findings": findings
    }, found


def _run_cells(run: dict[str, Any]) -> list[str]:
    """Return the cells of a run's row in the table, with strings cut to 30 characters."""
    texts = (" ".join((run[name] or "").split()) for name in ("answer", "state", "goal"))
    cut = [text if len(text) <= 30 else f"{text[:29]}…" for text in texts]
    counts = [sum(step[name] for step in run["steps"]) for name in ("has_screenshot", "has_axtree")]
    return [*map(printable, (run["trajectory_id"], *cut)), *map(str, (len(run["steps"]), *counts))]


if __name__ == "__main__":
    app(prog_name="arb data")
