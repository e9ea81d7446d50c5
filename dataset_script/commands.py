"""The commands `build`, `unblind`, `verify`, `sample-tasks`, `split` and `new-suite`."""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from arb.core.cli import (
    AgentFromOption,
    JsonOption,
    print_json,
    read_settings,
    stop,
    stopped_like_ctrl_c,
    words,
    write_file,
)
from arb.core.console import counted, printable, progress_bar
from arb.core.files import csv_text
from arb.core.hub import HubError, hub_of
from arb.core.lazy import lazy_imports
from arb.core.options import described_by
from arb.core.suite import OFFICIAL, SuiteError, load_suite

with lazy_imports():
    from arb.core.suites import privacy
    from dataset_script import new_suite as suites
    from dataset_script import repository, sources, task_selection
    from dataset_script.build import blind as blinding
    from dataset_script.build import build as builder
    from dataset_script.build import report as reports
    from dataset_script.build import rewards as reward_files
    from dataset_script.build import workers as pool
    from dataset_script.verify import check, manifest

if TYPE_CHECKING:
    from dataset_script.build.report import BuildReport
    from dataset_script.new_suite import SourceDataset

described = described_by(Path(__file__).with_name("options.toml"))

DAMAGED_FILES = 3
"""The exit code of a command that succeeded but left out broken files."""


@contextmanager
def one_line_errors(interrupted: str = "interrupted") -> Iterator[None]:
    """End the command with a one-line message on an expected error (exit code 2) or Ctrl-C (130).

    Expected errors are HubError and ValueError with their subclasses.
    """
    try:
        with stopped_like_ctrl_c():
            yield
    except (HubError, ValueError) as problem:
        stop(str(problem))
    except KeyboardInterrupt:
        stop(interrupted, 130)


@described
def build(  # noqa: PLR0913 - a command's options
    source: Path,
    out: Path,
    suite: str | None = None,
    strict: bool = False,
    blind: bool = False,
    blind_key: Path | None = None,
    workers: int | None = None,
    rewards: Path | None = None,
    report: Path | None = None,
    allow_class: list[str] | None = None,
    allow_missing: list[str] | None = None,
    append: bool = False,
    agent_from: AgentFromOption = None,
    as_json: JsonOption = False,
) -> None:
    """Build a dataset from recorded runs.

    Writes Parquet files with the splits dev and test, which `load_dataset` can read, and a dataset card.
    Expert labels are included on dev and null on test. If a build is interrupted, run the same command again
    to resume it.

    Exit code 0: the dataset was built; 1: nothing was built, or --strict and something was left out; 2: the
    command cannot run as given; 3: built, but without some broken files (the output names them).
    """
    if append and (blind or blind_key):
        stop(
            "--append cannot be used with --blind: it would show which runs were added later; leave out one",
            2,
        )
    hiding = None
    interrupted = f"interrupted; {out} contains no partial dataset. Run the same command again to resume"
    with one_line_errors(interrupted):
        chosen = load_suite(suite) if suite is not None else None
        if blind or blind_key:
            key = blind_key or out.absolute().with_name(f"{out.absolute().name}.blind-key")
            hiding = blinding.Blinding(blinding.read_key(key, create=True))
        options = builder.BuildOptions(
            strict,
            workers or pool.default_workers(),
            hiding,
            tuple(allow_class or ()),
            allow_missing=tuple(allow_missing or ()),
            append=append,
            rewards=reward_files.read_rewards(rewards) if rewards is not None else {},
            agent_from=words(agent_from),
        )
        with progress_bar(shows_time=True) as progress:
            done = builder.build(source, out, chosen, options, progress)
        if report is not None:
            write_file(report, json.dumps(done.as_json(), indent=2) + "\n")
    if as_json:
        print_json(done.as_json())
    _print_report(done, out, as_json=as_json)
    if hiding is not None:
        typer.echo(
            f"{key} contains the key that restores the ids; keep it, but do not publish it", err=as_json
        )
    if done.damaged():
        stop(f"{done.damaged()} broken files were left out; they are named above", DAMAGED_FILES)


def _print_report(done: "BuildReport", out: Path, *, as_json: bool = False) -> None:
    """Print the report of a build. End the command with code 1 if nothing was published."""
    if not as_json:
        for line in reports.lines(done):
            typer.echo(line)
    if not done.published:
        reason = "something was left out (--strict)" if done.built() else "no trajectory could be built"
        stop(f"{out} was not changed: {reason}", 1)
    typer.echo(f"wrote {out}", err=as_json)


MOST_LEFT_OUT = 20


def read_source(source: Path, agent_from: Iterable[str] | None = None) -> "SourceDataset":
    """Build the suite and the dataset of a source's runs in the cache folder, and return both.

    Prints the numbers of runs and files, and the files without a usable run. Ends the command if there is no
    usable run or if the user interrupts it; the next call resumes an interrupted build.
    """
    cache = read_settings().cache_dir.expanduser() / "sources"
    try:
        with stopped_like_ctrl_c(), progress_bar(only_on_terminal=True, stays=False) as progress:
            facts = words(agent_from)
            built = suites.build_source(source, cache, pool.default_workers(), progress, facts)
    except (ValueError, OSError) as problem:
        stop(f"--source {problem if str(source) in str(problem) else f'{source}: {problem}'}")
    except KeyboardInterrupt:
        stop("interrupted while reading the source; run the same command again to resume", 130)
    runs, left_out = built.suite.trajectories, [printable(line) for line in built.facts.left_out]
    agents = {run.agent for run in runs}
    typer.echo(f"{source}: {counted(len(runs), 'run')} of {counted(len(agents), 'agent')}", err=True)
    if built.facts.files is not None:
        typer.echo(reports.files_line(built.facts.files), err=True)
    for line in built.facts.warnings:
        typer.echo(f"warning: {printable(line)}", err=True)
    if built.facts.crashed:
        typer.echo(
            f"{counted(len(built.facts.crashed), 'run')} crashed. `arb leaderboard estimate` counts them as "
            "failures; --crashed apart leaves them out",
            err=True,
        )
    if left_out:
        lines = [
            f"left out: {counted(len(left_out), 'file')} without a usable run:",
            *left_out[:MOST_LEFT_OUT],
        ]
        if len(left_out) > MOST_LEFT_OUT:
            lines.append(f"and {len(left_out) - MOST_LEFT_OUT:,} more")
        typer.echo("\n  ".join(lines), err=True)
    return built


@described
def unblind(
    predictions: Path,
    key: Path,
    out: Path,
    suite: str | None = None,
) -> None:
    """Replace the blind ids in a prediction file with the suite's ids."""
    with one_line_errors():
        try:
            text = predictions.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            stop(f"{predictions} is not UTF-8 text; save it as JSON Lines or CSV in UTF-8")
        hiding = blinding.Blinding(blinding.read_key(key))
        try:
            restored = blinding.restore_ids(text, load_suite(suite or OFFICIAL), hiding)
        except blinding.BlindError as problem:
            stop(f"{predictions}: {problem}")
        write_file(out, restored)
    typer.echo(f"wrote {out}")


@described
def verify(  # noqa: PLR0913 - a command's options
    what: str,
    suite: str | None = None,
    canary: list[str] | None = None,
    accept: list[str] | None = None,
    allow_missing: list[str] | None = None,
    revision: str | None = None,
    keep: Path | None = None,
    workers: int | None = None,
    as_json: JsonOption = False,
) -> None:
    """Check a dataset before or after it is published.

    Compares the files' hashes with the manifest, and the schema, counts and splits with the suite. Ids must
    be unique, and every image must be decodable.

    The dataset must not contain rewards (except in the table `rewards`), prompts, test labels, annotators'
    names, paths of a machine, or canaries. A column, field or metadata entry with such content is an error.
    Text of a page or a model that only looks similar is a warning, which names the trajectory and the steps.
    `publish` refuses the dataset until you accept every warning with --accept.

    Exit code 0: no errors; 1: errors were found; 2: the command cannot run as given.
    """
    with (
        one_line_errors(),
        _folder_of(what, revision, keep) as folder,
        progress_bar(only_on_terminal=True) as progress,
    ):
        report = check.verify(
            folder,
            suite=load_suite(suite) if suite is not None else None,
            canaries=canary or (),
            accept=accept or (),
            allow_missing=allow_missing or (),
            progress=progress,
            workers=workers or pool.default_workers(),
        )
    if as_json:
        print_json(report.as_json())
    else:
        for line in manifest.lines(report):
            typer.echo(printable(line))
    if not report.ok:
        raise typer.Exit(1)


@described
def sample_tasks(
    metadata: Path,
    per_group: int | None = None,
    total: int | None = None,
    seed: int = 0,
    metadata_split: str = "test",
    level: str | None = None,
    out: Path | None = None,
) -> None:
    """Draw a random sample of a benchmark's tasks for a new suite.

    Tasks with the same first site (in WorkArena, the same category) and evaluation method form a group. Up to
    --per-group tasks are drawn from each group. A task with several evaluation methods is in several groups,
    but it is drawn only once. With --total, every site contributes the same number of tasks, or all of its
    tasks if it has fewer.
    """
    with one_line_errors():
        known = task_selection.read_metadata(metadata)
        tasks = task_selection.sample_tasks(known, per_group, seed, metadata_split, total=total, level=level)
    rows = ((t.task_id, " ".join(t.sites), " ".join(t.evaluations), t.category) for t in tasks)
    _write_csv(out, ("task_id", "sites", "evaluation_types", "category"), rows)
    counts = task_selection.count_by_area(tasks)
    sizes = ", ".join(f"{area} {count}" for area, count in counts.items())
    typer.echo(f"{len(tasks)} tasks: {sizes}", err=True)


@described
def split(
    ids: Path,
    dev_tasks: int,
    seed: int = 0,
    out: Path | None = None,
) -> None:
    """Divide tasks at random into dev and test.

    All runs of a task are in the same split, however their ids are spelled. If the file has trajectory ids,
    the output can be used as a suite's trajectories.csv.
    """
    with one_line_errors():
        column, named = task_selection.read_ids(ids)
        splits = task_selection.split_by_task(named, dev_tasks, seed)
    _write_csv(out, (column, "split"), zip(named, splits, strict=True))
    typer.echo(f"dev {splits.count('dev')}, test {splits.count('test')}", err=True)


@described
def new_suite(  # noqa: PLR0913 - a command's options
    source: Path,
    out: Path,
    dev_share: float,
    title: str | None = None,
    seed: int = 0,
    dev_of: list[str] | None = None,
    metadata: list[Path] | None = None,
    steps: bool = False,
    workers: int | None = None,
    allow_class: list[str] | None = None,
    agent_from: AgentFromOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a suite from recorded runs.

    Writes three files: trajectories.csv lists every usable run with its split, suite.toml has the settings
    (labels are hidden) and examples of targets, and tasks.csv has the goals. Existing files are never
    overwritten.

    Labels are private, so figures carry noise. The output says how much of it submitters will see, and what
    to do if it is too much.

    Exit code 0: the suite was created; 2: it was not created; 3: created, but without some broken files (the
    output names them).
    """
    with one_line_errors("interrupted; nothing was written"):
        suites.check_new(out)
        title = suites.check_title(title, out)
        published = [load_suite(name) for name in dev_of or ()]
        always_dev = frozenset((t.benchmark, t.task) for suite in published for t in suite.split("dev"))
        known = [task for path in metadata or () for task in task_selection.read_metadata(path)]
        with progress_bar(stays=False) as progress:
            runs = sources.open_source(source, tuple(allow_class or ()), words(agent_from))
            usable, made = suites.find_runs(runs, workers or pool.default_workers(), progress)
        try:
            if not usable:
                raise SuiteError(f"{source}: no run in this source can be used")
            texts = suites.suite_texts(usable, dev_share, seed, always_dev, title, known, steps)
            suites.write_new(out, texts)
        except (ValueError, OSError):
            for finding in made.left_out:
                reason = reports.LEFT_OUT[finding.code]
                typer.echo(f"left out: {reports.finding_line(finding)} ({reason})")
            raise
        suites.complete_report(made, out)
    rules, test_runs = suites.suggested_rules(made.built("test")), made.built("test")
    if as_json:
        print_json({**made.as_json(), "privacy": asdict(privacy.noisy_precision(rules, test_runs))})
    else:
        for line in reports.lines(made):
            typer.echo(line)
        typer.echo(f"wrote {out}: {', '.join(texts)}")
        for line in privacy.privacy_lines(rules, test_runs):
            typer.echo(line)
    if made.damaged():
        stop(f"{made.damaged()} broken files were left out; they are named above", DAMAGED_FILES)


@contextmanager
def _folder_of(what: str, revision: str | None, keep: Path | None) -> Iterator[Path]:
    """Yield the folder ``what``, or a folder with the downloaded files of the Hub repository ``what``."""
    if Path(what).is_dir():
        if revision is not None or keep is not None:
            raise ValueError(f"{what} is a folder; leave out --revision and --keep, which need a repository")
        yield Path(what)
        return
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", what):
        raise ValueError(f"{what} is neither a folder nor a repository's name (OWNER/NAME)")
    with repository.fetched(hub_of(read_settings()), what, revision, keep) as folder:
        yield folder


def _write_csv(out: Path | None, header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    text = csv_text(header, rows)
    if out is None:
        sys.stdout.write(text)
        return
    write_file(out, text)
