"""The functions of ``arb`` for notebooks. Each returns the result of a command as a DataFrame."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from arb.core.cli import flags
from arb.core.predictions import read_predictions
from arb.core.predictions.check import check
from arb.core.predictions.findings import Finding
from arb.core.predictions.parser_pool import ReadResult
from arb.core.predictions.table import Predictions
from arb.core.settings import Settings
from arb.core.suite import OFFICIAL, Suite, load_suite
from arb.core.vocabulary import LABELS
from leaderboard.board.board import Board, make_board
from leaderboard.board.export import board_to_csv
from leaderboard.judge_precision.confusion import FORMULAS
from leaderboard.judge_precision.scores import cluster_codes
from leaderboard.labels.labels import LabelSet, LabelsInvalid, load_labels
from leaderboard.labels.source import LabelsUnavailable
from leaderboard.paired import mcnemar, paired_difference_of, resample_judges
from leaderboard.paper.published import load_published_rows
from leaderboard.report import SEED, score_report, task_names, verdicts_of
from leaderboard.success_rates.estimate import RateEstimate
from leaderboard.success_rates.files import estimate_files
from leaderboard.success_rates.runs import SUCCESS_LABELS

File = str | Path | pd.DataFrame

_CELL: Final = ("n", "tp", "fp", "fn", "tn", "no_verdict", "precision", "recall", "f1", "kappa")


def board(file: str | Path | None = None) -> pd.DataFrame:
    """Return the leaderboard with one row per label and judge, the best judges first.

    Args:
        file: The ``board.json`` of a Space. By default the published rows are returned.

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
    """Run a judge as ``arb judges run`` does, or resume its run, and return its predictions.

    Progress goes to stderr.

    Args:
        name: A judge's name from ``arb judges list``.
        out: The run's folder. If it has a run with other settings, a new folder next to it is used.
        options: Options of the command, such as ``split="dev"``, ``model="gpt-4o"`` or ``max_usd=5``.

    Returns:
        The rows of the prediction file. ``attrs`` has the folder used, the judge and the run's totals.

    Raises:
        RuntimeError: The command failed. The message is that of the command.
    """
    command = [sys.executable, "-m", "arb", "judges", "run", name, *flags(out=out, **options), "--json"]
    paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    # Run a separate process: notebooks already run an event loop, and Ctrl-C then works as on a terminal.
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
        raise RuntimeError(message or f"judges run ended with {process.returncode}")
    found = json.loads(printed)
    table = pd.read_json(found["predictions"], lines=True)
    table.attrs = {name: found[name] for name in ("run", "judge", "judged", "chosen", "totals")}
    return table


def score(
    file: File,
    split: str = "dev",
    suite: str | None = None,
    policy: str = "strict",
    labels: str | Path | None = None,
) -> pd.DataFrame:
    """Return precision, recall, F1 and kappa of a prediction file, with 95 % intervals over tasks.

    For each label there is a row for all trajectories together, for each benchmark and for each agent, as in
    ``arb leaderboard score``.

    Args:
        file: The prediction file.
        split: The split that the file is for, ``dev`` or ``test``.
        suite: A shipped suite's name or a suite folder, by default that of ``ARB_SUITE``.
        policy: ``strict`` counts a missing verdict as no, ``published`` leaves its trajectory out.
        labels: A file of annotations, by default the source that ``ARB_LABELS`` names.

    Raises:
        ValueError: Labels are missing, or the file has errors; the message lists them all.
        OSError: A file cannot be read.
    """
    chosen, known = _suite_and_labels(split, suite, labels)
    report = score_report(_aligned(file, chosen, split), known, policy)
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
    table = pd.DataFrame(rows).set_index(["label", "group", "name"])
    table.attrs = {name: report[name] for name in ("suite", "split", "label_version", "policy", "coverage")}
    return table


def compare(
    *files: File,
    split: str = "dev",
    suite: str | None = None,
    label: str = "success",
    metric: str = "precision",
    labels: str | Path | None = None,
) -> pd.DataFrame:
    """Return how much each pair of prediction files differs in a metric over the same tasks.

    ``low`` and ``high`` bound the difference's 95 % interval. ``p_accuracy`` is the p-value of McNemar's
    exact test of equal accuracy. A DataFrame is named by its place among ``files``, from 0.

    Args:
        files: Two prediction files or more.
        split: The split that the files are for.
        suite: As in `score`.
        label: The label on which the judges are compared.
        metric: A metric of the report, such as ``precision``.
        labels: As in `score`.

    Raises:
        ValueError: Labels are missing, or the files have errors; the message lists them all.
    """
    if len(files) < 2:
        raise ValueError("compare needs at least two prediction files")
    for option, value, choices in (("label", label, LABELS), ("metric", metric, tuple(FORMULAS))):
        if value not in choices:
            raise ValueError(f"{option}: there is no {value!r}; use one of {', '.join(choices)}")
    chosen, known = _suite_and_labels(split, suite, labels)
    names = [_name(file, number) for number, file in enumerate(files)]
    columns: list[np.ndarray] = []
    missing: list[str] = []
    for name, file in zip(names, files, strict=True):
        column = verdicts_of(_aligned(file, chosen, split), label)
        if column is None:
            missing.append(name)
        else:
            columns.append(column)
    if missing:
        raise ValueError(f"{', '.join(missing)}: no verdicts on {label}; add them or compare another label")
    truth = known.primary[label]
    tasks, _ = cluster_codes(task_names(known), len(truth))
    resampled = resample_judges(columns, truth, tasks, [np.ones(len(truth), dtype=bool)], seed=SEED)
    rows = []
    for first, second in combinations(range(len(files)), 2):
        found = paired_difference_of(resampled, first, second, 0, metric)
        low, high = found.interval or (None, None)
        rows.append(
            {
                "first": names[first], "second": names[second],
                f"{metric}_first": found.first, f"{metric}_second": found.second,
                "difference": found.value, "low": low, "high": high,
                "p_accuracy": mcnemar(columns[first], columns[second], truth).p,
            }
        )  # fmt: skip
    table = pd.DataFrame(rows)
    table.attrs = {"label": label, "metric": metric, "split": split, "label_version": known.version}
    return table


def estimate(
    verdicts: Sequence[File] | File, labels: File, draw: str | Path | None = None, agent: str | None = None
) -> pd.DataFrame:
    """Estimate agents' success rates from judges' verdicts on all runs and labels on some of them.

    There is one row per agent: the rate by each judge alone, the rates from labels only and from both
    (assisted) with 95 % intervals, and the share of labels that they save. Warnings are in
    ``attrs["warnings"]``.

    Args:
        verdicts: One or more judges' prediction files.
        labels: A file with labels of some runs.
        draw: The record of the draw that ``annotation-template --for-estimate`` wrote.
        agent: Estimate only this agent. By default all agents are estimated.

    Raises:
        ValueError: The files have errors; the message lists them all.
    """
    files: Sequence[File] = [verdicts] if isinstance(verdicts, File) else verdicts
    found = estimate_files(
        [(_name(file, number), _read(file)) for number, file in enumerate(files)],
        (_name(labels, "labels"), _read(labels, SUCCESS_LABELS)),
        (Path(draw).name, Path(draw).read_bytes()) if draw else None,
        agent,
    )
    if found.errors:
        raise _errors(found.errors)
    rows = [
        {
            "agent": each.agent, "n": each.assisted.n, "labelled": each.assisted.labelled,
            **{f"{name} alone": rate for name, rate in each.judge_alone.items()},
            **_rate("labels_only", each.labels_only), **_rate("assisted", each.assisted), "saved": each.saved,
        }
        for each in found.agents
    ]  # fmt: skip
    table = pd.DataFrame(rows).set_index("agent")
    table.attrs = {"warnings": list(found.warnings)}
    return table


def _rate(name: str, found: RateEstimate) -> dict[str, float | None]:
    low, high = found.interval or (None, None)
    return {name: found.value, f"{name}_low": low, f"{name}_high": high}


def _cell(cell: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in _CELL:
        found[name] = cell.get(name)
        if f"{name}_ci" in cell:
            found[f"{name}_low"], found[f"{name}_high"] = cell[f"{name}_ci"] or (None, None)
    return found


def _suite_and_labels(split: str, suite: str | None, labels: str | Path | None) -> tuple[Suite, LabelSet]:
    if labels is not None and not Path(labels).is_file():
        raise FileNotFoundError(f"{labels}: there is no such file of labels; check the path")
    settings = Settings() if labels is None else Settings(labels=f"csv:{labels}")
    chosen = load_suite(suite or settings.suite)
    try:
        return chosen, load_labels(chosen, split, settings)
    except (LabelsUnavailable, LabelsInvalid) as problem:
        raise ValueError(f"there are no labels to score {split} with: {problem}") from None


def _aligned(file: File, suite: Suite, split: str) -> Predictions:
    table, findings = _read(file)
    result = check(table, findings, suite, split)
    if result.aligned is None:
        raise _errors(result.findings, _name(file, "the predictions"))
    return result.aligned


def _read(file: File, reader: str | None = None) -> ReadResult:
    if isinstance(file, str | Path):
        return read_predictions(Path(file).read_bytes(), reader=reader)
    content = file.reset_index(drop=True).to_json(orient="records", lines=True)
    return read_predictions(content.encode(), reader=reader)


def _name(file: File, otherwise: int | str) -> str:
    return Path(file).name if isinstance(file, str | Path) else str(otherwise)


def _errors(findings: Iterable[Finding], name: str = "") -> ValueError:
    """Return a ValueError whose message lists the errors among the findings, one per line."""
    lines = [f"{each.file or name}: {each.message}" for each in findings if each.level == "error"]
    return ValueError("\n".join(lines))
