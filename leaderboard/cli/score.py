"""``arb score``, ``compare`` and ``calibrate``: evaluate the verdicts and scores of files."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from arb.core.cli import (
    JsonOption,
    MaybeSplitOption,
    SplitOption,
    SuiteOption,
    flags,
    next_step,
    print_json,
    read_settings,
    read_suite,
    stop,
)
from arb.core.console import coefficient, interval, percent, printable
from arb.core.formats import FORMATS
from arb.core.lazy import lazy_imports
from arb.core.vocabulary import metric_name
from leaderboard.cli.options import described
from leaderboard.cli.text import print_template
from leaderboard.score import interval_of, metric_of

with lazy_imports():
    from arb.core.predictions import table as prediction_table
    from arb.core.suites import targets as suite_targets
    from leaderboard import calibration, judge_names, metrics, verdict_files
    from leaderboard import compare as comparison
    from leaderboard import report as reports
    from leaderboard.judge_precision import scores as metric
    from leaderboard.labels import labels as labels_module
    from leaderboard.labels import source
    from leaderboard.validation import labelled, parsing, tables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from arb.core.predictions.table import Predictions
    from arb.core.settings import Settings
    from arb.core.suite import Suite
    from arb.core.suites.targets import Target
    from leaderboard.labels.labels import LabelSet
    from leaderboard.metrics import TargetMetric
    from leaderboard.score import Cell
    from leaderboard.validation.tables import Columns


@described
def score(  # noqa: PLR0913 - a command's options
    file: Path,
    split: MaybeSplitOption = None,
    suite: SuiteOption = None,
    labels: Path | None = None,
    label: str | None = None,
    verdict: str | None = None,
    id_: list[str] | None = None,
    group: str | None = None,
    policy: Literal["strict", "published"] = "strict",
    as_json: JsonOption = False,
) -> None:
    """Score a prediction file against a suite's labels, or against a table of labels.

    Prints the figures overall, by benchmark and by agent, with 95 % intervals over tasks.
    """
    columns = tables.Columns(_all(id_), _all(label), _all(verdict), group)
    known, verdicts = _read_against([file], labels, columns, split, suite)
    (read,) = verdicts.values()
    report = reports.score_report(read, known, policy)
    if as_json:
        print_json(report)
    else:
        targets = {target.name: target for target in known.targets}
        values = {"report": report, "targets": targets, "file": file.name, "columns": metric_columns}
        print_template("score.txt.j2", **values)
        if labels is not None:
            asked = {"label": label, "verdict": verdict, "id": id_, "group": group}
            wrong = flags(labels=labels, verdicts=file, **asked, disagreements="errors.csv")
            next_step("list the rows that the judge gets wrong", "validate", *wrong)
        elif known.split == "dev":
            chosen = flags(split="test", suite=suite, out="test.jsonl")
            next_step("get a template for your verdicts on test", "submissions", "template", *chosen)
        else:
            chosen = flags(split="test", suite=suite)
            next_step("check it as the Space does", "submissions", "check", file, *chosen)


@described
def compare(  # noqa: PLR0913 - a command's options
    files: list[Path],
    split: MaybeSplitOption = None,
    suite: SuiteOption = None,
    labels: Path | None = None,
    label: str | None = None,
    verdict: str | None = None,
    id_: list[str] | None = None,
    group: str | None = None,
    as_json: JsonOption = False,
) -> None:
    """Compare judges on the same tasks, against a suite's labels or a table of labels.

    Prints the difference between each pair of judges with its 95 % interval, and the p-value of McNemar's
    exact test of equal accuracy.
    """
    if len(files) < 2:
        stop("give at least two prediction files to compare")
    asked = read_suite(suite, read_settings()).targets if labels is None else suite_targets.default_targets()
    question = (label if labels is None else None) or suite_targets.main_target(asked).name
    names = [target.name for target in suite_targets.scored(asked)]
    if question not in names:
        stop(f"--label {question}: there is no such label; use one of {', '.join(names)}")
    columns = tables.Columns(_all(id_), _all(label) if labels else (), _all(verdict), group)
    known, verdicts = _read_against(files, labels, columns, split, suite)
    try:
        pairs = comparison.compare_verdicts(comparison.columns_of(verdicts, question), known, question)
    except ValueError as problem:
        stop(str(problem), code=1)
    n = int(prediction_table.is_answered(known.primary[question]).sum())
    if as_json:
        about = {
            "format": FORMATS["comparison"],
            "suite": known.suite,
            "split": known.split,
            "label_version": known.version,
            "label": question,
        }
        print_json({**about, "n": n, "judges": list(verdicts), "pairs": [each.to_json() for each in pairs]})
    else:
        target = known.target(question)
        formulas = metrics.known_metrics(target)
        compared = {
            name: formulas[name]
            for name in pairs[0].metrics
            if target.type != "binary" or formulas[name].is_share
        }
        unit = ", in points" if all(formula.is_share for formula in compared.values()) else ""
        values = {"pairs": pairs, "known": known, "target": target, "n": n, "unit": unit}
        print_template("compare.txt.j2", **values, compared=compared, texts=metric_texts)


def _all(names: str | Sequence[str] | None) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names or ())


def _read_against(
    files: Sequence[Path], labels: Path | None, columns: Columns, split: str | None, suite: str | None
) -> tuple[LabelSet, dict[str, Predictions]]:
    """Return the labels, and each judge's verdicts in the same order; stop if a file cannot be used."""
    names = judge_names.judge_names(files)
    if labels is None:
        if columns != tables.Columns():
            stop("columns can be chosen only with --labels")
        chosen = split or "dev"
        return _read(dict(zip(names, files, strict=True)), chosen, suite)
    if split is not None or suite is not None:
        stop("--labels is used without a suite; leave out --split and --suite, or --labels")
    try:
        read = [
            replace(parsing.read_table(path), judge=name) for path, name in zip(files, names, strict=True)
        ]
        known, verdicts, notes = labelled.align_tables(parsing.read_table(labels), read, columns)
    except tables.TableError as problem:
        stop(str(problem), code=1)
    for note in notes:
        typer.echo(f"note: {printable(note)}", err=True)
    return known, verdicts


@described
def calibrate(file: Path, split: SplitOption, suite: SuiteOption = None, as_json: JsonOption = False) -> None:
    """Check how well a judge's scores are calibrated.

    The column `score` has the judge's probability of a positive answer to the main target. Prints how often
    runs with a similar score are positive, and the precision, recall and F1 of every threshold. Choose the
    threshold on dev.
    """
    labels, by_judge = _read({file.name: file}, split, suite)
    (verdicts,) = by_judge.values()
    main, found = suite_targets.main_target(labels.targets), None
    if main.type != "binary":
        stop(f"a score is the probability of a binary answer, but the main target {main.name} is {main.type}")
    if verdicts.score is not None:
        tasks, _ = metric.cluster_codes(reports.task_names(labels), len(labels.trajectories))
        found = calibration.calibrate(verdicts.score, labels.primary[main.name], tasks)
    if found is None:
        stop(
            f"{file.name}: fewer than {calibration.FEWEST_SCORES} rows of {split} have a score; add "
            f"the column `score`, the judge's probability of {main.title.lower()} from 0 to 1",
            code=1,
        )
    if as_json:
        print_json(asdict(found))
    else:
        print_template("calibrate.txt.j2", found=found, file=file.name)


def _read(
    files: Mapping[str, Path], split: str, suite: str | None
) -> tuple[LabelSet, dict[str, Predictions]]:
    """Return the labels of a split and the verdicts of files; stop if one of them cannot be read."""
    settings = read_settings()
    chosen = read_suite(suite, settings)
    verdicts = read_verdicts(files, chosen, split, settings)
    try:
        return labels_module.load_labels(chosen, split, settings), verdicts
    except (source.LabelsUnavailable, labels_module.LabelsInvalid) as error:
        stop(f"the labels of {split} cannot be read: {error}", code=1)


def read_verdicts(
    files: Mapping[str, Path], suite: Suite, split: str, settings: Settings
) -> dict[str, Predictions]:
    """Return each file's verdicts, keyed as ``files``; stop with all errors if one cannot be used."""
    try:
        return verdict_files.read_verdict_files(files, suite, split, settings.max_upload_bytes)
    except verdict_files.VerdictFileError as problems:
        stop(str(problems), code=1)


def metric_columns(cell: Cell, target: Target) -> list[tuple[str, str]]:
    """Return the heading and the text of each metric of a cell, and of its counts if the target is binary."""
    columns = dict.fromkeys(target.metrics, True)  # whether the interval has a column too
    if target.type == "binary":
        usual = {"precision": True, "recall": True, "f1": False, "kappa": False}
        steps = {name: True for name in target.metrics if name in suite_targets.STEP_METRICS}
        columns = {**usual, target.main_metric: usual.get(target.main_metric, False), **steps}
    formulas, found = metrics.known_metrics(target), []
    for name, has_interval in columns.items():
        title = metric_name(name) if name in metrics.OF_BINARY else formulas[name].title
        value, ends = metric_texts(formulas[name], metric_of(cell, name), interval_of(cell, name))
        found += [(title, value), ("95 %", ends)] if has_interval else [(title, value)]
    if target.type == "binary":
        found.append(("TP/FP/FN/TN", f"{cell['tp']}/{cell['fp']}/{cell['fn']}/{cell['tn']}"))
    return found


def metric_texts(formula: TargetMetric, value: float | None, ends: Sequence[float] | None) -> list[str]:
    """Return a metric or a difference in it, and its interval, as strings; shares are in percent."""
    if formula.is_share:
        return [percent(value), interval(ends)]
    return [coefficient(value), " to ".join(map(coefficient, ends or []))]
