"""``arb leaderboard score`` and ``calibrate``: evaluate the verdicts and scores of a file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from arb.core.cli import (
    JsonOption,
    SplitOption,
    SuiteOption,
    flags,
    next_step,
    plain_console,
    print_json,
    read_settings,
    read_suite,
    stop,
)
from arb.core.console import coefficient, interval, percent, text_table
from arb.core.lazy import lazy_imports
from arb.core.vocabulary import AGENT_TITLES, BENCHMARK_TITLES
from leaderboard.score import interval_of, metric_of

with lazy_imports():
    from leaderboard import calibration, metrics, verdict_files
    from leaderboard import report as reports
    from leaderboard.judge_precision import scores as metric
    from leaderboard.labels import labels as labels_module
    from leaderboard.labels import source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from arb.core.predictions.table import Predictions
    from arb.core.suites.targets import Target
    from leaderboard.calibration import Calibration
    from leaderboard.labels.labels import LabelSet
    from leaderboard.metrics import TargetMetric
    from leaderboard.score import Cell


FileArgument = Annotated[
    Path, typer.Argument(exists=True, dir_okay=False, help="A prediction file: JSONL, CSV or Parquet.")
]


def score(
    file: FileArgument,
    split: SplitOption,
    suite: SuiteOption = None,
    policy: Annotated[
        Literal["strict", "published"],
        typer.Option(help="Count missing verdicts as no (strict), or leave them out (published)."),
    ] = "strict",
    as_json: JsonOption = False,
) -> None:
    """Score a prediction file.

    Prints the figures overall, by benchmark and by agent, with 95 % intervals over tasks.
    """
    verdicts, labels = _read(file, split, suite)
    report = reports.score_report(verdicts, labels, policy)
    if as_json:
        print_json(report)
    else:
        print_report(report, labels.targets, file.name, plain_console())
        if split == "dev":
            chosen = flags(split="test", suite=suite, out="test.jsonl")
            next_step("get a template for your verdicts on test", "submissions", "template", *chosen)
        else:
            chosen = flags(split="test", suite=suite)
            next_step("check it as the Space does", "submissions", "check", file, *chosen)


def calibrate(
    file: FileArgument,
    split: SplitOption,
    suite: SuiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check how well a judge's scores are calibrated.

    The column `score` has the judge's probability of success. Prints how often runs with a similar score
    succeed, and the precision, recall and F1 of every threshold. Choose the threshold on dev.
    """
    verdicts, labels = _read(file, split, suite)
    found = None
    if verdicts.score is not None:
        tasks, _ = metric.cluster_codes(reports.task_names(labels), len(labels.trajectories))
        found = calibration.calibrate(verdicts.score, labels.primary["success"], tasks)
    if found is None:
        stop(
            f"{file.name}: fewer than {calibration.FEWEST_SCORES} rows of {split} have a score; add "
            "the column `score`, the judge's probability of success from 0 to 1",
            code=1,
        )
    if as_json:
        print_json(asdict(found))
    else:
        print_calibration(found, file.name, plain_console())


def _read(file: Path, split: str, suite: str | None) -> tuple[Predictions, LabelSet]:
    """Return the verdicts of a file and the labels of its split; stop if one of them cannot be read."""
    settings = read_settings()
    chosen = read_suite(suite, settings)
    try:
        verdicts = verdict_files.read_verdict_file(file, chosen, split, settings.max_upload_bytes)
        return verdicts, labels_module.load_labels(chosen, split, settings)
    except verdict_files.VerdictFileError as problem:
        stop(str(problem), code=1)
    except (source.LabelsUnavailable, labels_module.LabelsInvalid) as error:
        stop(f"the labels of {split} cannot be read: {error}", code=1)


def print_calibration(found: Calibration, file_name: str, console: Console) -> None:
    console.print(
        f"{file_name}: {found.n:,} trajectories with a score, {found.without_score:,} without; Brier "
        f"{found.brier:.3f} ({found.brier_of_base_rate:.3f} for a constant score), calibration error "
        f"{percent(found.error)}, AUC {coefficient(found.auc)}"
    )
    bins = text_table("score", figures=("trajectories", "mean score", "successful", "95 %"))
    for b in found.bins:
        if b.n:
            within = interval(list(b.interval)) if b.interval else ""
            bins.add_row(
                f"{b.low:g} to {b.high:g}", f"{b.n:,}", percent(b.mean_score), percent(b.share), within
            )
    sweep = text_table("threshold", figures=("precision", "recall", "F1", "TP/FP/FN/TN"))
    best = found.best()
    for t in found.thresholds:
        mark = " (highest F1)" if t is best else ""
        sweep.add_row(
            f"{t.at:.2f}{mark}", percent(t.precision), percent(t.recall), percent(t.f1),
            f"{t.tp}/{t.fp}/{t.fn}/{t.tn}",
        )  # fmt: skip
    for table in (bins, sweep):
        console.print(table)


COLUMNS = ("trajectories", "precision", "95 %", "recall", "95 %", "F1", "kappa", "TP/FP/FN/TN", "no verdict")


def print_report(report: dict[str, Any], targets: Sequence[Target], file_name: str, console: Console) -> None:
    asked = {target.name: target for target in targets}
    console.print(
        f"{file_name} on {report['suite']} {report['split']}, labels {report['label_version']}, "
        f"policy {report['policy']}, coverage {percent(report['coverage'])} %"
    )
    for label, found in report["labels"].items():
        if found is None:
            console.print(f"{asked[label].title}: the file has no verdicts on this label")
            continue
        chosen = metrics.metrics_of(asked[label]) if asked[label].type != "binary" else {}
        titles_of_metrics = [name for each in chosen.values() for name in (each.title, "95 %")]
        columns = ("items", *titles_of_metrics, "no verdict") if chosen else COLUMNS
        table = text_table(asked[label].title, figures=columns)
        table.add_row("overall", *_cells(found["overall"], chosen))
        for key, titles in (("by_benchmark", BENCHMARK_TITLES), ("by_agent", AGENT_TITLES)):
            table.add_section()
            for name, cell in found[key].items():
                table.add_row(titles.get(name, name), *_cells(cell, chosen))
        console.print(table)


def _cells(cell: Cell, chosen: Mapping[str, TargetMetric]) -> list[str]:
    """Return the figures of a cell as texts: those of the ``chosen`` metrics, or those of a binary target."""
    values = metric_cells(cell) if not chosen else []
    for name, formula in chosen.items():
        value, ends = metric_of(cell, name), interval_of(cell, name)
        values.append(percent(value) if formula.is_share else coefficient(value))
        values.append(interval(ends) if formula.is_share else " to ".join(map(coefficient, ends or [])))
    return [f"{cell['n']:,}", *values, f"{cell['no_verdict']:,}"]


def metric_cells(cell: Cell) -> list[str]:
    """Return precision, recall, F1, kappa and the counts of a cell of a score as texts."""
    precision = [percent(cell["precision"]), interval(cell["precision_ci"])]
    recall = [percent(cell["recall"]), interval(cell["recall_ci"])]
    counts = f"{cell['tp']}/{cell['fp']}/{cell['fn']}/{cell['tn']}"
    return [*precision, *recall, percent(cell["f1"]), coefficient(cell["kappa"]), counts]
