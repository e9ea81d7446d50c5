"""Functions for notebooks. Each returns the result of a command of ``arb`` as a DataFrame."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from io import StringIO
from pathlib import Path
from typing import Any, Final, get_args

import numpy as np
import pandas as pd

from arb.core.cli import flags
from arb.core.predictions import read_predictions
from arb.core.predictions.check import check
from arb.core.predictions.findings import Finding
from arb.core.predictions.parser_pool import ReadResult
from arb.core.predictions.raw import ReadingLimits
from arb.core.predictions.table import Predictions
from arb.core.settings import Settings
from arb.core.suite import OFFICIAL, Suite, load_suite
from arb.core.suites.targets import Target, main_target, outcome_target
from dataset_script.new_suite import build_source
from leaderboard.board.board import Board, make_board
from leaderboard.board.export import board_to_csv
from leaderboard.compare import columns_of, compare_verdicts
from leaderboard.judge_names import judge_names
from leaderboard.labels.labels import LabelSet, LabelsInvalid, load_labels
from leaderboard.labels.source import LabelsUnavailable
from leaderboard.metrics import known_metrics
from leaderboard.paper.published import load_published_rows
from leaderboard.report import score_report
from leaderboard.success_rates.estimate import RateEstimate
from leaderboard.success_rates.files import CountAs, estimate_files
from leaderboard.success_rates.runs import OUTCOME_LABELS, OUTCOME_VERDICTS
from leaderboard.success_rates.sources import CRASHED_UNKNOWN, recorded_source
from leaderboard.validation.labelled import align_tables
from leaderboard.validation.parsing import is_annotations, read_table
from leaderboard.validation.report import validate_table
from leaderboard.validation.tables import Columns, NamedTable, read_one, read_several

File = str | Path | pd.DataFrame

_CELL: Final = ("n", "tp", "fp", "fn", "tn", "no_verdict", "precision", "recall", "f1", "kappa")


def board(file: str | Path | None = None) -> pd.DataFrame:
    """Return the leaderboard with one row per label and judge, best judges first.

    ``file`` is a Space's ``board.json``. By default, the published results are returned.

    Raises:
        ValueError: The file is not a board.
        OSError: The file cannot be read.
    """
    if file is None:
        found = make_board(OFFICIAL, [], load_published_rows(), None)
    else:
        try:
            found = Board.from_bytes(Path(file).read_bytes())
        except ValueError as problem:
            raise ValueError(f"{file} {problem}") from None
    table = pd.read_csv(StringIO(board_to_csv(found)))
    table.attrs = {"suite": found.suite, "label_version": found.label_version, "digest": found.digest}
    return table


def judge(name: str, out: str | Path, **options: object) -> pd.DataFrame:
    """Run a judge with ``arb judges run``, or resume its run, and return its predictions.

    Progress is printed on stderr.

    Args:
        name: A judge's name from ``arb judges list``.
        out: The run's folder. If it contains a run with other settings, a new folder next to it is used.
        options: Options of the command, such as ``split="dev"``, ``model="gpt-4o"`` or ``max_usd=5``.

    Returns:
        The rows of the prediction file. ``attrs`` has the run's folder, judge and totals, among others.

    Raises:
        RuntimeError: The command failed. The message is the end of what it printed on stderr.
    """
    command = [sys.executable, "-m", "arb", "judges", "run", name, *flags(out=out, **options), "--json"]
    paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    environment["FORCE_COLOR"] = ""  # Jupyter sets it, and would show the escape codes of the progress bar
    # A separate process, because notebooks already run an event loop. It also makes Ctrl-C work as usual.
    with subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        lines: list[str] = []
        for line in process.stderr or ():
            sys.stderr.write(line)
            lines = [*lines[-20:], line]
        printed = process.stdout.read() if process.stdout else ""
    if process.returncode:
        message = "".join(lines).strip().removeprefix("error: ")
        raise RuntimeError(message or f"`arb judges run` failed with exit code {process.returncode}")
    found = json.loads(printed)
    table = pd.read_json(found["predictions"], lines=True)
    table.attrs = {name: found[name] for name in ("run", "judge", "judged", "chosen", "totals")}
    return table


def validate(
    labels: str | Path | pd.DataFrame,
    verdicts: str | Path | pd.DataFrame | Sequence[str | Path | pd.DataFrame] | None = None,
    *,
    label: str | Sequence[str] = (),
    verdict: str | Sequence[str] = (),
    id: str | Sequence[str] = (),
    group: str | None = None,
    weights: str | None = None,
) -> pd.DataFrame:
    """Return the metrics of judges against labels, with 95 % intervals, one row per judge.

    The result is that of ``arb validate``, and tables are read in the same way.

    Args:
        labels: The table of labels, or a table with labels and verdicts.
        verdicts: A table of verdicts, or several. If it is left out, ``labels`` must contain the verdicts.
        label: The column of labels, or several to compare annotators.
        verdict: The columns of verdicts or scores.
        id: The columns that join the tables.
        group: A column such as the task. Rows with equal values in it belong together.
        weights: The column that says how many rows each labelled row stands for.

    Returns:
        Counts, and for each metric its value and the ends of its interval, such as ``precision``,
        ``precision_low`` and ``precision_high``. ``attrs`` contains what ``arb validate --json`` prints.

    Raises:
        ValueError: The tables cannot be used. The message lists every problem.
    """
    columns = Columns(_several(id), _several(label), _several(verdict), group, (), weights)
    if verdicts is None:
        read = read_one(_named_table(labels, "the table"), columns)
    else:
        several = [verdicts] if isinstance(verdicts, str | Path | pd.DataFrame) else list(verdicts)
        tables = [_named_table(each, f"judge {number}") for number, each in enumerate(several, start=1)]
        read = read_several(_named_table(labels, "labels"), tables, columns)
    report = validate_table(read)
    rows = []
    for found in report.judges:
        row: dict[str, Any] = {"judge": found.judge}
        row |= {name: getattr(found, name) for name in ("tp", "fp", "fn", "tn", "no_verdict")}
        for name, metric in found.metrics.items():
            low, high = metric.interval or (np.nan, np.nan)
            row |= {name: metric.value, f"{name}_low": low, f"{name}_high": high}
        rows.append(row)
    table = pd.DataFrame(rows)
    table.attrs |= report.to_json()
    return table


def _several(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _named_table(table: str | Path | pd.DataFrame, name: str) -> NamedTable:
    if isinstance(table, pd.DataFrame):
        return NamedTable(name, table)
    if not isinstance(table, str | Path):
        raise TypeError(f"give a path or a DataFrame, not {type(table).__name__}")
    return read_table(Path(table))


def score(
    file: File,
    split: str = "dev",
    suite: str | None = None,
    policy: str = "strict",
    labels: File | None = None,
) -> pd.DataFrame:
    """Return the metrics of a prediction file with 95 % intervals, such as precision, recall and F1.

    The result is that of ``arb score``: for each label, one row for all trajectories together,
    one per benchmark and one per agent.

    Args:
        file: The prediction file.
        split: The split that the file is for, ``dev`` or ``test``.
        suite: A shipped suite's name or a suite's folder. The default is ``ARB_SUITE``.
        policy: ``strict`` counts a missing verdict as no, and ``published`` leaves its trajectory out.
        labels: Annotations of the suite, or any table of labels, without a suite. The default is the source
            in ``ARB_LABELS``.

    Raises:
        ValueError: There are no labels, or the file has errors. The message lists all errors.
        OSError: A file cannot be read.
    """
    known, judges = _labelled([file], split, suite, labels)
    (verdicts,) = judges.values()
    report = score_report(verdicts, known, policy)
    rows = []
    for label, found in report["labels"].items():
        if found is None:
            continue
        groups = {
            "overall": {"overall": found["overall"]},
            "benchmark": found["by_benchmark"],
            "agent": found["by_agent"],
        }
        for group, cells in groups.items():
            for name, cell in cells.items():
                rows.append({"label": label, "group": group, "name": name, **_cell(cell)})
    table = _table(rows).set_index(["label", "group", "name"])
    table.attrs = {name: report[name] for name in ("suite", "split", "label_version", "policy", "coverage")}
    return table


def compare(
    *files: File,
    split: str = "dev",
    suite: str | None = None,
    label: str | None = None,
    metric: str | None = None,
    labels: File | None = None,
) -> pd.DataFrame:
    """Return the difference in a metric between each pair of prediction files, on the same tasks.

    ``low`` and ``high`` are the bounds of the difference's 95 % interval, which is clustered by task.
    ``p_accuracy`` is the p-value of McNemar's exact test of equal accuracy (NaN if answers are numbers).
    ``first`` and ``second`` are the judges' names. They come from the run.json next to the file, or else
    from the name of its folder or of the file itself. A DataFrame's name is its index in ``files``.

    Args:
        files: At least two prediction files.
        split: The split that the files are for.
        suite: The suite, as in `score`.
        label: The target to compare the judges on. The default is the suite's main target.
        metric: A metric of the score report. The default is precision, or the target's main metric if it is
            not binary.
        labels: The source of the labels, as in `score`.

    Raises:
        ValueError: There are no labels, or a file has errors. The message lists all errors.
    """
    if len(files) < 2:
        raise ValueError("compare needs at least two prediction files")
    known, judges = _labelled(files, split, suite, labels)
    target = known.target(label or main_target(known.targets).name)
    label, choices = target.name, known_metrics(target)
    metric = metric or ("precision" if target.type == "binary" else target.main_metric)
    if metric not in choices:
        raise ValueError(f"metric {metric!r} does not exist; use one of {', '.join(choices)}")
    columns = columns_of(judges, label)
    rows = []
    for pair in compare_verdicts(columns, known, label, [metric]):
        found = pair.metrics[metric]
        low, high = found.interval or (None, None)
        rows.append(
            {
                "first": pair.first, "second": pair.second,
                f"{metric}_first": found.first, f"{metric}_second": found.second,
                "difference": found.value, "low": low, "high": high, "p_accuracy": pair.p_accuracy,
            }
        )  # fmt: skip
    table = _table(rows)
    table.attrs = {"label": label, "metric": metric, "split": split, "label_version": known.version}
    return table


def estimate(
    verdicts: Sequence[File] | File,
    labels: Sequence[File] | File,
    draw: str | Path | Sequence[str | Path] = (),
    agent: str | None = None,
    suite: str | None = None,
    crashed: CountAs = "failures",
    source: str | Path | None = None,
) -> pd.DataFrame:
    """Estimate how often agents succeed, from judges' verdicts on all runs and labels on some of them.

    Each agent has one row with three kinds of estimate: from each judge alone, from the labels only, and from
    both (``assisted``). The last two have two 95 % intervals: of the rate over these runs (``assisted_low``
    to ``assisted_high``) and of the agent's rate on tasks like these (``assisted_on_tasks_low`` and so on).
    ``saved`` is the share of labels that you save by using the verdicts too. ``attrs`` has the warnings and
    the runs that crashed before they could be judged (None if it is not known which runs crashed).

    Args:
        verdicts: One or more judges' prediction files, or what `judge` returned.
        labels: One or more files with labels of some runs, which are combined.
        draw: One or more ``.draw.json`` files that ``annotation-template --for-estimate`` wrote.
        agent: The only agent to estimate. By default, all agents are estimated.
        suite: The suite, as in `score`. The estimate is about its main target, or else its first binary one.
        crashed: Whether crashed runs count as failures, or are left out (``apart``).
        source: The judged runs, to find those that crashed. By default, the run.json of the judge lists them.

    Raises:
        ValueError: The files have errors (the message lists all), or the suite has no such target.
    """
    if crashed not in get_args(CountAs):
        raise ValueError(f"crashed={crashed!r}: use one of {', '.join(get_args(CountAs))}")
    targets = load_suite(suite or Settings().suite).targets
    outcome_target(targets)
    files: Sequence[File] = [verdicts] if isinstance(verdicts, File) else verdicts
    paths = [Path(file) for file in files if isinstance(file, str | Path)]
    judged = [each for each in files if isinstance(each, pd.DataFrame) and "run" in each.attrs]
    whole = [each for each in judged if len(each) == each.attrs.get("judged")]
    recorded, in_all = (
        recorded_source([*paths, *(Path(each.attrs["run"], "predictions.jsonl") for each in frames)])
        for frames in (whole, judged)
    )
    is_part = recorded.is_part or (source is None and recorded != in_all)
    if source is not None and not recorded.is_part:
        cache = Settings().cache_dir.expanduser() / "sources"
        recorded = replace(recorded, crashed=build_source(Path(source), cache).facts.crashed)
    draws = [draw] if isinstance(draw, str | Path) else draw or ()
    found = estimate_files(
        [
            (_name(file, judge), judge, _read(file, targets, OUTCOME_VERDICTS))
            for file, judge in zip(files, _judges(files), strict=True)
        ],
        [
            (_name(file, "labels"), _read(file, targets, OUTCOME_LABELS))
            for file in ([labels] if isinstance(labels, File) else labels)
        ],
        [(str(each), Path(each).read_bytes()) for each in draws],
        agent,
        crashed=recorded.crashed_runs(crashed),
    )
    if found.errors:
        raise _errors(found.errors)
    rows = [
        {
            "agent": each.agent, "n": each.n, "labelled": each.labelled,
            **{f"{alone.judge} alone": alone.rate for alone in each.judge_alone},
            **_rate("labels_only", each.labels_only), **_rate("assisted", each.assisted), "saved": each.saved,
        }
        for each in found.agents
    ]  # fmt: skip
    table = _table(rows).set_index("agent")
    warnings = [*found.warnings, *([CRASHED_UNKNOWN] if is_part else [])]
    table.attrs = {"warnings": warnings, "crashed": found.crashed and asdict(found.crashed)}
    return table


def _table(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return a table in which an unknown value is NaN, so that numeric columns have a numeric type."""
    return pd.DataFrame(
        [{name: np.nan if value is None else value for name, value in row.items()} for row in rows]
    )


def _rate(name: str, found: RateEstimate) -> dict[str, float | None]:
    low, high = found.ci or (None, None)
    rate = {name: found.rate, f"{name}_low": low, f"{name}_high": high}
    low, high = found.ci_on_tasks or (None, None)
    return rate | {f"{name}_on_tasks_low": low, f"{name}_on_tasks_high": high}


def _cell(cell: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in (*_CELL, *(key.removesuffix("_ci") for key in cell if key.endswith("_ci"))):
        found[name] = cell.get(name)
        if f"{name}_ci" in cell:
            found[f"{name}_low"], found[f"{name}_high"] = cell[f"{name}_ci"] or (None, None)
    return found


def _labelled(
    files: Sequence[File], split: str, suite: str | None, labels: File | None
) -> tuple[LabelSet, dict[str, Predictions]]:
    """Return the labels, and the verdicts of each judge in the order of the labels."""
    names = _judges(files)
    if labels is not None and (isinstance(labels, pd.DataFrame) or not is_annotations(Path(labels))):
        tables = [
            replace(_named_table(file, name), judge=name) for file, name in zip(files, names, strict=True)
        ]
        known, judges, _ = align_tables(_named_table(labels, "labels"), tables, Columns())
        return known, judges
    settings = Settings() if labels is None else Settings(labels=f"csv:{labels}")
    chosen = load_suite(suite or settings.suite)
    try:
        known = load_labels(chosen, split, settings)
    except (LabelsUnavailable, LabelsInvalid) as problem:
        raise ValueError(f"the labels of {split} cannot be loaded: {problem}") from None
    return known, {name: _aligned(file, chosen, split) for file, name in zip(files, names, strict=True)}


def _aligned(file: File, suite: Suite, split: str) -> Predictions:
    table, findings = _read(file, suite.targets)
    result = check(table, findings, suite, split)
    if result.aligned is None:
        raise _errors(result.findings, _name(file, "the predictions"))
    return result.aligned


def _read(file: File, targets: tuple[Target, ...], reader: str | None = None) -> ReadResult:
    if isinstance(file, str | Path):
        content = Path(file).read_bytes()
    elif not isinstance(file, pd.DataFrame):
        raise TypeError(f"give a path or a DataFrame of predictions, not {type(file).__name__}")
    else:
        content = file.reset_index(drop=True).to_json(orient="records", lines=True).encode()
    return read_predictions(content, ReadingLimits(targets=targets), reader=reader)


def _judges(files: Sequence[File]) -> list[str]:
    """Return the judge's name for each file. The name of a DataFrame is its index in ``files``."""
    names = iter(judge_names([Path(file) for file in files if isinstance(file, str | Path)]))
    return [next(names) if isinstance(file, str | Path) else str(i) for i, file in enumerate(files)]


def _name(file: File, otherwise: str) -> str:
    return str(file) if isinstance(file, str | Path) else otherwise


def _errors(findings: Iterable[Finding], name: str = "") -> ValueError:
    """Return a ValueError that lists the errors among the findings, one per line."""
    lines = [f"{each.file or name}: {each.message}" for each in findings if each.level == "error"]
    return ValueError("\n".join(lines))
