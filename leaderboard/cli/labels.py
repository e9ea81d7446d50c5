"""Commands that count, convert and write labels and annotations (``arb leaderboard labels`` …)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from arb.core.cli import (
    JsonOption,
    SuiteOption,
    flags,
    next_step,
    print_json,
    read_settings,
    read_suite,
    stop,
    write_file,
)
from arb.core.console import counted
from arb.core.ids import reading_key
from arb.core.lazy import lazy_imports
from arb.core.vocabulary import SPLITS
from leaderboard.cli.estimate import outcome_targets, read_runs
from leaderboard.cli.options import described
from leaderboard.cli.text import print_template

with lazy_imports():
    from arb.core import files as core_files
    from arb.core import suite as suites
    from arb.core.suites import targets as suite_targets
    from leaderboard.labels import aggregation, quality, source
    from leaderboard.labels import annotations as annotation_files
    from leaderboard.labels import labels as labels_module
    from leaderboard.success_rates import runs as agent_runs
    from leaderboard.success_rates import sheet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arb.core.annotation import Annotation
    from arb.core.settings import Settings
    from arb.core.suite import Suite
    from leaderboard.labels.labels import LabelSet


def labels(suite: SuiteOption = None, as_json: JsonOption = False) -> None:
    """Count the labels.

    Prints counts by split and benchmark, but never a single label. Downloads the official labels if they are
    not on this machine yet.
    """
    settings = read_settings()
    chosen = read_suite(suite, settings)
    found, missing = read_label_sets(chosen, settings)
    summaries = [quality.summarise(label_set) for label_set in found.values()]
    if as_json:
        print_json({"splits": summaries, "missing": missing})
    else:
        print_template("labels.txt.j2", summaries=summaries, targets=chosen.scored_targets)
    for message in missing:
        typer.echo(f"error: no labels of {message}", err=True)
    raise typer.Exit(1 if missing else 0)


def read_label_sets(suite: Suite, settings: Settings) -> tuple[dict[str, LabelSet], list[str]]:
    """Return the labels, keyed by split, and a message for each split whose labels cannot be read."""
    found, missing = {}, []
    for split in SPLITS:
        try:
            found[split] = labels_module.load_labels(suite, split, settings)
        except (source.LabelsUnavailable, labels_module.LabelsInvalid) as reason:
            missing.append(f"{split}: {reason}")
    return found, missing


def read_annotations(
    suite: Suite, settings: Settings, split: str | None, file: Path | None
) -> tuple[Annotation, ...]:
    """Return annotations from a file or the configured source; stop if they cannot be read."""
    try:
        return labels_module.load_annotations(suite, settings, split, file, is_strict=True)
    except (source.LabelsUnavailable, labels_module.LabelsInvalid) as reason:
        stop(f"the annotations cannot be read: {reason}", code=1)


@described
def convert_annotations(
    files: list[Path], out: Path, opaque: bool = False, by_rule: bool = False, suite: SuiteOption = None
) -> None:
    """Check, join and convert annotations.

    Converts between the released CSV format and Parquet. Only Parquet has comments, times and durations.
    Judges are scored on the primary annotation of a trajectory: the one in the first file that has any, or
    with --aggregate the label by the rule of the suite's target (aggregate in suite.toml). Labels that a rule
    cannot decide are listed and left out.
    """
    if out.suffix not in (".csv", ".parquet"):
        stop(f"--out {out.name}: the name must end in .csv or .parquet")
    settings = read_settings()
    chosen = read_suite(suite, settings)
    read = [(file.name, read_annotations(chosen, settings, None, file)) for file in files]
    if repeated := annotation_files.repeated_rows(read):
        lines = ["a person has two rows for one trajectory; remove one:", *(f"  {row}" for row in repeated)]
        stop("\n".join(lines), code=1)
    found = [annotation for _, each in read for annotation in each]
    if opaque:
        found = annotation_files.with_opaque_annotators(found)
    if by_rule:
        found = _aggregated(found, chosen)
    try:
        labels_module.write_annotations(found, out, chosen.targets)
    except annotation_files.AnnotationsInvalid as problems:
        stop(f"{out.name}: {problems}", code=1)
    typer.echo(f"{out.name}: {len(found):,} annotations")
    options = flags(annotations=out, suite=suite)
    next_step("see how far the annotators agree", "leaderboard", "agreement", *options)


def _aggregated(found: Sequence[Annotation], suite: Suite) -> list[Annotation]:
    """Return the annotations and the decisions of the suite's rules. Print labels that no rule decides."""
    result = aggregation.aggregate(found, suite.targets)
    for name in result.names_left_out():
        typer.echo(f"left out, as annotators differ and the rule gives no label: {name}", err=True)
    return list(result.annotations)


@described
def annotation_template(  # noqa: PLR0913 - typer takes each option as an argument
    out: Path,
    annotator: str | None = None,
    split: Literal["dev", "test"] | None = None,
    share: float = 1.0,
    seed: int | None = None,
    for_estimate: int | None = None,
    verdicts: list[Path] | None = None,
    stratified: bool = False,
    runs_source: Path | None = None,
    space: str = "http://127.0.0.1:7860",
    suite: SuiteOption = None,
) -> None:
    """Write a CSV file of annotations to fill in by hand.

    The file has the released format: one row per trajectory, with all runs on a task together. Delete rows
    that you do not want to annotate.

    With --for-estimate, the columns are trajectory_id and the suite's outcome; --source adds goal, answer and
    a link. A record of the draw is written next to the file. If both files exist, more runs are added to
    them, and your answers are kept.
    """
    if for_estimate is not None:
        if annotator is not None or split is not None or share != 1:
            stop("--annotator, --split and --share cannot be used with --for-estimate; leave them out")
        kind = seed, stratified
        _template_for_estimate(verdicts or [], for_estimate, kind, out, runs_source, space, suite)
        return
    if verdicts or stratified or runs_source:
        stop("--verdicts, --stratified and --source need --for-estimate; add it with a number of runs")
    chosen = read_suite(suite, read_settings())
    if annotator is None or not annotator.strip() or not annotator.isprintable():
        stop("--annotator: give the annotator's name, on one line")
    if out.exists():
        stop(f"{out} already exists and may contain answers; name a new file")
    try:
        trajectories = chosen.trajectories if split is None else chosen.split(split)
        drawn = annotation_files.drawn_share(trajectories, share, seed or 0, annotator)
        ids = {run.trajectory_id for run in drawn}
        items = [item for name in SPLITS for item in chosen.items(name) if item.trajectory_id in ids]
        text = annotation_files.template(items, annotator, chosen.targets)
        write_file(out, text)
    except ValueError as problem:
        stop(f"--share: {problem}")
    typer.echo(f"{out.name}: {counted(len(drawn), 'trajectory')} for {annotator}")
    options = flags(out=out.with_suffix(".parquet"), suite=suite)
    next_step("fill it in, then check it", "leaderboard", "annotations", out, *options)


def _template_for_estimate(
    verdicts: list[Path],
    n_labels: int,
    kind: tuple[int | None, bool],
    out: Path,
    source: Path | None,
    space: str,
    suite: str | None,
) -> None:
    """Draw runs to label. ``kind`` has the seed, or None, and whether the draw is stratified."""
    seed, stratified = kind
    if not space.startswith(("http://", "https://")):
        stop(f"--space {space} is not the address of a Space; write https://…")
    if not verdicts:
        stop("--for-estimate needs judges' verdicts on all runs; give them with --verdicts")
    record = out.with_suffix(".draw.json")
    if out.exists() != record.exists():
        there, absent = (out, record) if out.exists() else (record, out)
        stop(f"{there} already exists, but {absent} does not; restore it, or name a new file")
    targets = outcome_targets(suite)
    asked = suite_targets.outcome_target(targets)
    runs = read_runs(verdicts, targets)
    try:
        earlier = sheet.read_sheet(out.name, out.read_text(encoding="utf-8-sig")) if out.exists() else []
        if out.exists():
            draw, problems = agent_runs.extended_draw(runs, record.name, record.read_bytes(), n_labels, *kind)
            if problems:
                stop(f"{problems[0].file} {problems[0].message}", code=1)
        else:
            draw = agent_runs.draw_runs(runs, n_labels, seed or 0, stratified)
        texts = sheet.texts_of(source, draw.drawn) if source is not None else None
        table = sheet.write_sheet(draw.drawn, asked.name, earlier, texts, space)
    except ValueError as problem:
        stop(f"{problem}")
    write_file(record, draw.to_json())
    write_file(out, table)
    agents = len({stratum.agent for stratum in draw.strata})
    new = {*map(reading_key, draw.drawn)} - {reading_key(row["trajectory_id"]) for row in earlier}
    added = f", {len(new):,} of them new" if earlier else ""
    answers = ", ".join(answer.value for answer in asked.answers)
    typer.echo(
        f"{out.name}: {counted(len(draw.drawn), 'run')} of {counted(agents, 'agent')}{added}. "
        f"Write {answers} or unsure for each."
    )
    chosen = flags(verdicts=verdicts, labels=out, draw=record, suite=suite)
    next_step(
        f"fill it in, then estimate the {asked.title.lower()} rates", "leaderboard", "estimate", *chosen
    )


@described
def dev_labels(file: Path, replace: bool = False, suite: SuiteOption = None) -> None:
    """Write a suite's published dev labels from annotations.

    Writes dev_labels.csv into the suite's folder. It has no test trajectories, and numbers instead of
    annotators' names.
    """
    settings = read_settings()
    chosen = read_suite(suite, settings)
    path = chosen.dev_labels_path
    if path.exists() and not replace:
        stop(f"{path} already exists; use --replace to overwrite it")
    try:
        dev = {trajectory.trajectory_id for trajectory in chosen.split("dev")}
        annotations = read_annotations(chosen, settings, None, file)
        of_dev = [annotation for annotation in annotations if annotation.trajectory_id in dev]
        found = annotation_files.dev_labels_of(chosen, _aggregated(of_dev, chosen))
        if not found:
            stop(f"{file.name} has no annotation of a dev trajectory of {chosen.name}", code=1)
        core_files.atomic_write(path, suites.render_dev_labels(found, chosen.targets))
    except annotation_files.AnnotationsInvalid as problems:
        stop(f"{file.name}: {problems}", code=1)
    labelled, of = len({row.trajectory_id for row in found}), len(chosen.split("dev"))
    typer.echo(f"{path}: {len(found):,} annotations of {labelled:,} of {of:,} dev trajectories, none of test")
    next_step("see the leaderboard with these labels", "space", "serve")
