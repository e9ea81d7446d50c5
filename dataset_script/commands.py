"""The commands `build`, `unblind`, `verify`, `sample-tasks`, `split` and `new-suite`."""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arb.core.cli import (
    AgentFromOption,
    JsonOption,
    file_option,
    new_file_option,
    new_folder_option,
    print_json,
    read_settings,
    stop,
    stopped_like_ctrl_c,
    words,
    write_file,
)
from arb.core.console import printable, progress_bar
from arb.core.files import csv_text
from arb.core.hub import HubError, hub_of
from arb.core.lazy import lazy_imports
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

AllowOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-class",
        help="Allow this class (module.class) in AgentLab pickles; it never runs. Repeat to add another.",
        rich_help_panel="Problems",
    ),
]
RunsOption = Annotated[
    Path,
    typer.Option(
        exists=True, help="Read recorded runs from this folder or log file (see README for formats)."
    ),
]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=64,
        help="Use this many processes (default: one per processor, at most 4).",
        rich_help_panel="Execution",
    ),
]
AllowMissingOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-missing",
        help="Allow the trajectory with this id to be missing. Repeat to add another.",
        rich_help_panel="Problems",
    ),
]
AcceptOption = Annotated[
    list[str] | None,
    typer.Option(
        "--accept",
        metavar="CODE:TRAJECTORY_ID",
        help="Accept this warning of `verify` after reviewing it. Repeat to add another.",
    ),
]
RevisionOption = Annotated[str | None, typer.Option(help="Read this commit, branch or tag.")]
OutOption = Annotated[Path | None, new_file_option(help="Write to this CSV file (default: standard output).")]
SeedOption = Annotated[int, typer.Option(help="Use this random seed; the same seed selects the same tasks.")]

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


def build(  # noqa: PLR0913 - a command's options
    source: RunsOption,
    out: Annotated[
        Path, new_folder_option(help="Write the dataset to this folder, replacing an earlier one.")
    ],
    suite: Annotated[
        str | None,
        typer.Option(
            help="A shipped suite's name or a suite's folder (default: the one with these runs).",
            rich_help_panel="Data",
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            help="Write nothing and exit with 1 if any run or file is left out.", rich_help_panel="Problems"
        ),
    ] = False,
    blind: Annotated[
        bool,
        typer.Option(
            "--blind",
            help="Hide which agent made each run, in ids, columns and host names.",
            rich_help_panel="Output",
        ),
    ] = False,
    blind_key: Annotated[
        Path | None,
        new_file_option(
            help="Use --blind with the key in this file, created if missing (default: OUT.blind-key).",
            rich_help_panel="Output",
        ),
    ] = None,
    workers: WorkersOption = None,
    rewards: Annotated[
        Path | None,
        file_option(
            help="Read the runs' rewards from this CSV file, as `rewards` writes it.", rich_help_panel="Data"
        ),
    ] = None,
    report: Annotated[
        Path | None,
        new_file_option(
            help="Write the full report, with the names of all files, to this JSON file.",
            rich_help_panel="Output",
        ),
    ] = None,
    allow_class: AllowOption = None,
    allow_missing: AllowMissingOption = None,
    append: Annotated[
        bool,
        typer.Option(
            "--append",
            help="Add new runs in new data files, keeping the data files in OUT.",
            rich_help_panel="Output",
        ),
    ] = False,
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
    typer.echo(f"{source}: {len(runs):,} runs of {len(agents):,} agents", err=True)
    if built.facts.files is not None:
        typer.echo(reports.files_line(built.facts.files), err=True)
    for line in built.facts.warnings:
        typer.echo(f"warning: {printable(line)}", err=True)
    if built.facts.crashed:
        typer.echo(
            f"{len(built.facts.crashed):,} runs crashed. `arb leaderboard estimate` counts them as failures; "
            "--crashed apart leaves them out",
            err=True,
        )
    if left_out:
        lines = [f"{len(left_out):,} files without a usable run are left out:", *left_out[:MOST_LEFT_OUT]]
        if len(left_out) > MOST_LEFT_OUT:
            lines.append(f"and {len(left_out) - MOST_LEFT_OUT:,} more")
        typer.echo("\n  ".join(lines), err=True)
    return built


def unblind(
    predictions: Annotated[
        Path,
        typer.Argument(
            exists=True, dir_okay=False, help="A JSON Lines or CSV prediction file with blind ids."
        ),
    ],
    key: Annotated[Path, file_option(help="Read the key that `build --blind` wrote.")],
    out: Annotated[Path, new_file_option(help="Write the prediction file with the restored ids here.")],
    suite: Annotated[
        str | None,
        typer.Option(help="A shipped suite's name or a suite's folder (default: agent-reward-bench)."),
    ] = None,
) -> None:
    """Replace the blind ids in a prediction file with the suite's ids."""
    with one_line_errors():
        try:
            text = predictions.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            stop(f"{predictions}: is not UTF-8 text; save it as JSON Lines or CSV in UTF-8")
        hiding = blinding.Blinding(blinding.read_key(key))
        try:
            restored = blinding.restore_ids(text, load_suite(suite or OFFICIAL), hiding)
        except blinding.BlindError as problem:
            stop(f"{predictions}: {problem}")
        write_file(out, restored)
    typer.echo(f"wrote {out}")


def verify(  # noqa: PLR0913 - a command's options
    what: Annotated[
        str, typer.Argument(metavar="FOLDER|OWNER/NAME", help="A dataset's folder or its Hub repository.")
    ],
    suite: Annotated[
        str | None,
        typer.Option(help="A shipped suite's name or a suite's folder (default: the one in manifest.json)."),
    ] = None,
    canary: Annotated[
        list[str] | None,
        typer.Option(help="Search for this text, which you planted in private data. Repeat to add another."),
    ] = None,
    accept: AcceptOption = None,
    allow_missing: AllowMissingOption = None,
    revision: RevisionOption = None,
    keep: Annotated[
        Path | None, new_folder_option(help="Download the repository into this folder, and keep the folder.")
    ] = None,
    workers: WorkersOption = None,
    full: Annotated[bool, typer.Option("--full", hidden=True, help="Ignored.")] = False,
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


def sample_tasks(
    metadata: Annotated[
        Path, file_option(help="Read the benchmark's metadata from this CSV file of BrowserGym.")
    ],
    per_group: Annotated[
        int | None,
        typer.Option(
            min=1, help="Draw up to this many tasks per group (paper: WebArena 8, VisualWebArena 9)."
        ),
    ] = None,
    total: Annotated[
        int | None,
        typer.Option(min=1, help="Draw this many tasks, evenly over sites or categories (paper: 100)."),
    ] = None,
    seed: SeedOption = 0,
    metadata_split: Annotated[
        str, typer.Option(help="Draw from this split of the metadata (AssistantBench: valid).")
    ] = "test",
    level: Annotated[
        str | None, typer.Option(help="Draw only tasks of this WorkArena level: l1 or l2.")
    ] = None,
    out: OutOption = None,
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


def split(
    ids: Annotated[Path, file_option(help="Read ids from this CSV file (column trajectory_id or task_id).")],
    dev_tasks: Annotated[int, typer.Option(min=1, help="Put this many tasks into dev (paper: 51 of 351).")],
    seed: SeedOption = 0,
    out: OutOption = None,
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


def new_suite(  # noqa: PLR0913 - a command's options
    source: RunsOption,
    out: Annotated[Path, new_folder_option(help="Create this folder; its name becomes the suite's name.")],
    dev_share: Annotated[
        float, typer.Option(help="Put this share of each benchmark's tasks into dev (paper: 0.15).")
    ],
    title: Annotated[
        str | None, typer.Option(help="Show this title on the suite's pages (default: the folder's name).")
    ] = None,
    seed: SeedOption = 0,
    dev_of: Annotated[
        list[str] | None,
        typer.Option(help="Put every dev task of this other suite into dev. Repeat to add another."),
    ] = None,
    metadata: Annotated[
        list[Path] | None,
        file_option(help="Add task details from this CSV file of BrowserGym. Repeat to add another."),
    ] = None,
    steps: Annotated[
        bool, typer.Option("--steps", help="List every step in items.csv, for targets about steps.")
    ] = False,
    workers: WorkersOption = None,
    allow_class: AllowOption = None,
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
            found = suites.find_runs(runs, workers or pool.default_workers(), progress)
        try:
            if not found.runs:
                raise SuiteError(f"{source}: no run in this source can be used")
            texts = suites.suite_texts(found, dev_share, seed, always_dev, title, known, steps)
            suites.write_new(out, texts)
        except (ValueError, OSError):
            for finding in found.left_out:
                reason = reports.LEFT_OUT[finding.code]
                typer.echo(f"left out: {reports.finding_line(finding)} ({reason})")
            raise
        made = suites.suite_report(out, found)
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
            raise ValueError(f"{what}: is a folder; leave out --revision and --keep, which need a repository")
        yield Path(what)
        return
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", what):
        raise ValueError(f"{what}: is neither a folder nor a repository's name (OWNER/NAME)")
    with repository.fetched(hub_of(read_settings()), what, revision, keep) as folder:
        yield folder


def _write_csv(out: Path | None, header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    text = csv_text(header, rows)
    if out is None:
        sys.stdout.write(text)
        return
    write_file(out, text)
