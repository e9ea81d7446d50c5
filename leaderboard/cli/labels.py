"""``python -m leaderboard labels``, ``annotations``, ``annotation-template`` and ``dev-labels``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from arb.core.cli import (
    JsonOption,
    SuiteOption,
    flags,
    next_step,
    plain_console,
    print_json,
    read_settings,
    read_suite,
    stop,
)
from arb.core.console import coefficient, text_table
from arb.core.vocabulary import BENCHMARK_TITLES, LABEL_TITLES, LABELS

if TYPE_CHECKING:
    from rich.console import Console

    from arb.core.annotation import Annotation
    from arb.core.settings import Settings
    from arb.core.suite import Suite
    from leaderboard.labels.labels import LabelSet

FORMATS = "CSV as released, or Parquet."


def labels(suite: SuiteOption = None, as_json: JsonOption = False) -> None:
    """Count the labels.

    By split and benchmark, never which; fetches the official labels where they are not here yet.
    """
    from leaderboard.labels.quality import summarise

    settings = read_settings()
    found, missing = read_label_sets(read_suite(suite, settings), settings)
    summaries = [summarise(label_set) for label_set in found.values()]
    if as_json:
        print_json({"splits": summaries, "missing": missing})
    else:
        print_summaries(summaries, plain_console())
    for message in missing:
        typer.echo(f"error: labels of {message}", err=True)
    raise typer.Exit(1 if missing else 0)


def read_label_sets(suite: Suite, settings: Settings) -> tuple[dict[str, LabelSet], list[str]]:
    """Return the labels of each split that has some, and why the others have none."""
    from arb.core.vocabulary import SPLITS
    from leaderboard.labels.labels import LabelsInvalid, load_labels
    from leaderboard.labels.source import LabelsUnavailable

    found, missing = {}, []
    for split in SPLITS:
        try:
            found[split] = load_labels(suite, split, settings)
        except (LabelsUnavailable, LabelsInvalid) as reason:
            missing.append(f"{split}: {reason}")
    return found, missing


def read_annotations(
    suite: Suite, settings: Settings, split: str | None, file: Path | None
) -> tuple[Annotation, ...]:
    """Annotations from a file or the configured source; ends the command where they cannot be had."""
    from leaderboard.labels.labels import LabelsInvalid, load_annotations
    from leaderboard.labels.source import LabelsUnavailable

    try:
        return load_annotations(suite, settings, split, file, is_strict=True)
    except (LabelsUnavailable, LabelsInvalid) as reason:
        stop(f"no annotations to compare: {reason}", code=1)


def annotations(
    files: Annotated[list[Path], typer.Argument(exists=True, dir_okay=False, help=f"{FORMATS}")],
    out: Annotated[Path, typer.Option(help="The file to write: .csv for the released format, or .parquet.")],
    opaque: Annotated[
        bool, typer.Option("--opaque", help="Write annotator-1, annotator-2 … for the names.")
    ] = False,
    suite: SuiteOption = None,
) -> None:
    """Check annotations, join and convert them.

    Between the released CSV and Parquet, which also holds comments, times and durations. Of several files the
    first that has a trajectory gives its primary annotation, the one that judges are scored on.
    """
    from leaderboard.labels.annotations import AnnotationsInvalid, repeated_rows, with_opaque_annotators
    from leaderboard.labels.labels import write_annotations

    if out.suffix not in (".csv", ".parquet"):
        stop(f"{out.name}: name the file to write .csv or .parquet")
    settings = read_settings()
    chosen = read_suite(suite, settings)
    read = [(file.name, read_annotations(chosen, settings, None, file)) for file in files]
    if problems := repeated_rows(read):
        stop("\n".join(["one person has two rows; keep one of them:", *(f"  {p}" for p in problems)]), code=1)
    found = [annotation for _, each in read for annotation in each]
    try:
        write_annotations(with_opaque_annotators(found) if opaque else found, out, chosen.questions)
    except AnnotationsInvalid as problems:
        stop(f"{out.name}: {problems}", code=1)
    except OSError as problem:
        stop(f"{out} cannot be written: {problem.strerror}")
    typer.echo(f"{out.name}: {len(found):,} annotations")
    chosen = flags(annotations=out, suite=suite)
    next_step("see how far the annotators agree", "leaderboard", "agreement", *chosen)


def annotation_template(
    out: Annotated[Path, typer.Option(dir_okay=False, help="The CSV file to write; a new one.")],
    annotator: Annotated[
        str | None, typer.Option(help="Who fills it in; stands in every row. Not for --for-estimate.")
    ] = None,
    split: Annotated[
        Literal["dev", "test"] | None, typer.Option(help="One split alone; both if left out.")
    ] = None,
    share: Annotated[
        float, typer.Option(help="So much of it, drawn by --seed: for second annotations.")
    ] = 1.0,
    seed: Annotated[int, typer.Option(help="The same seed draws the same trajectories.")] = 0,
    for_estimate: Annotated[
        int | None,
        typer.Option(
            min=1, help="Instead: so many runs of each agent in --verdicts, to fill in for `estimate`."
        ),
    ] = None,
    verdicts: Annotated[
        list[Path] | None,
        typer.Option(exists=True, dir_okay=False, help="For --for-estimate: judges' verdicts on all runs."),
    ] = None,
    stratified: Annotated[
        bool, typer.Option("--stratified", help="For --for-estimate: draw from each pattern of verdicts.")
    ] = False,
    suite: SuiteOption = None,
) -> None:
    """Write annotations to fill in by hand.

    In the released format, a row a trajectory, the runs on one task together. A row that is not to be
    answered is taken out. With --for-estimate: trajectory_id and success, and a record of the draw beside it.
    """
    from leaderboard.labels.annotations import drawn_share, template

    if for_estimate is not None:
        _template_for_estimate(verdicts or [], for_estimate, seed, stratified, out)
        return
    if verdicts or stratified:
        stop("--verdicts and --stratified are for --for-estimate; say how many runs to draw with it")
    chosen = read_suite(suite, read_settings())
    if annotator is None or not annotator.strip() or not annotator.isprintable():
        stop("--annotator: write a name on one line")
    if out.exists():
        stop(f"{out} is there already, and may be filled in; name a new file")
    try:
        drawn = drawn_share(chosen.trajectories if split is None else chosen.split(split), share, seed)
        out.write_text(template(drawn, annotator, chosen.questions), encoding="utf-8", newline="")
    except ValueError as problem:
        stop(f"--share: {problem}")
    except OSError as problem:
        stop(f"{out} cannot be written: {problem.strerror}")
    typer.echo(f"{out.name}: {len(drawn):,} trajectories for {annotator}")
    chosen = (out, *flags(out=out.with_suffix(".parquet"), suite=suite))
    next_step("fill it in, then check it", "leaderboard", "annotations", *chosen)


def _template_for_estimate(
    verdicts: list[Path], n_labels: int, seed: int, stratified: bool, out: Path
) -> None:
    from arb.core.files import atomic_write, csv_text
    from leaderboard.cli.estimate import read_runs
    from leaderboard.success_rates.runs import draw_record, draw_runs

    record = out.with_suffix(".draw.json")
    if not verdicts:
        stop("--for-estimate: name the judges' verdicts on all runs with --verdicts")
    for file in (out, record):
        if file.exists():
            stop(f"{file} is there already, and may be in use; name a new file")
    runs = read_runs(verdicts)
    strata = draw_runs(runs, n_labels, seed, stratified)
    drawn = sorted(run for stratum in strata for run in stratum.drawn)
    table = csv_text(("trajectory_id", "success"), [(run, "") for run in drawn])
    try:
        atomic_write(record, draw_record(strata, seed))
        atomic_write(out, table)
    except OSError as problem:
        stop(f"{out} cannot be written: {problem.strerror}")
    agents = len({stratum.agent for stratum in strata})
    typer.echo(f"{out.name}: {len(drawn):,} runs of {agents} agents; write yes, no or unsure for each")
    chosen = flags(verdicts=verdicts, labels=out, draw=record)
    next_step("when it is filled in, estimate", "leaderboard", "estimate", *chosen)


def dev_labels(
    file: Annotated[
        Path, typer.Option("--annotations", exists=True, dir_okay=False, help=f"Of the suite: {FORMATS}")
    ],
    replace: Annotated[
        bool, typer.Option("--replace", help="Write over the dev_labels.csv that is there.")
    ] = False,
    suite: SuiteOption = None,
) -> None:
    """Write a suite's published dev labels from annotations.

    Into dev_labels.csv of its folder, with opaque annotators; nothing of a test trajectory gets into it.
    """
    from arb.core.files import atomic_write
    from arb.core.suite import render_dev_labels
    from leaderboard.labels.annotations import AnnotationsInvalid, dev_labels_of

    settings = read_settings()
    chosen = read_suite(suite, settings)
    path = chosen.dev_labels_path
    if path.exists() and not replace:
        stop(f"{path} is there already; write over it with --replace")
    try:
        found = dev_labels_of(chosen, read_annotations(chosen, settings, None, file))
        if not found:
            stop(f"{file.name}: has no annotation of a dev trajectory of {chosen.name}", code=1)
        atomic_write(path, render_dev_labels(found, chosen.questions))
    except AnnotationsInvalid as problems:
        stop(f"{file.name}: {problems}", code=1)
    except OSError as problem:
        stop(f"{path} cannot be written: {problem.strerror}")
    labelled, of = len({row.trajectory_id for row in found}), len(chosen.split("dev"))
    typer.echo(f"{path}: {len(found):,} annotations of {labelled:,} of {of:,} dev trajectories, none of test")
    next_step("see what a board of them looks like", "space", "serve")


def print_summaries(summaries: list[dict[str, Any]], console: Console) -> None:
    """Print the summaries as tables for a terminal."""
    for summary in summaries:
        version = f"labels {summary['label_version']} ({summary['source']})"
        title = f"{summary['suite']} · {summary['split']} · {version}"
        figures = ("trajectories", *LABEL_TITLES.values())
        table = text_table("benchmark", figures=figures, title=title, title_justify="left")
        for name, counts in summary["by_benchmark"].items():
            table.add_row(BENCHMARK_TITLES.get(name, name), *_cells(counts))
        table.add_section()
        table.add_row(f"overall, {summary['tasks']} tasks", *_cells(summary["overall"]))
        table.add_row(
            "second annotator agrees", "", *(_percent(summary["agreement"][name]) for name in LABELS)
        )
        console.print(table)


def _cells(counts: dict[str, Any]) -> list[str]:
    cells = [f"{counts[label]['positives']:,} of {counts[label]['n']:,}" for label in LABELS]
    return [f"{counts['trajectories']:,}", *cells]


def _percent(agreement: dict[str, Any]) -> str:
    if agreement["percent"] is None:
        return "no doubles"
    ends = agreement["kappa_ci"]
    within = f" ({coefficient(ends[0])} to {coefficient(ends[1])})" if ends else ""
    return (
        f"{agreement['percent']:.1%} of {agreement['pairs']}, "
        f"kappa {coefficient(agreement['kappa'])}{within}, "
        f"AC1 {coefficient(agreement['ac1'])}"
    )
