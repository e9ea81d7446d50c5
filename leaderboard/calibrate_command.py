"""``python -m leaderboard score`` and ``calibrate``: what verdicts and scores of a file are worth."""

import json
from pathlib import Path
from typing import Annotated

import typer

from dataset_script.command_line import (
    JsonOption,
    SplitOption,
    SuiteOption,
    plain_console,
    read_settings,
    read_suite,
    stop,
)


def score(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="JSONL, CSV or Parquet.")],
    split: SplitOption,
    suite: SuiteOption = None,
    policy: Annotated[
        str, typer.Option(help="strict: no verdict counts as no; published: left out.")
    ] = "strict",
    as_json: JsonOption = False,
) -> None:
    """Score a prediction file.

    Figures overall, by benchmark and by agent, with 95 % intervals over tasks.
    """
    from leaderboard.label_source import LabelsUnavailable
    from leaderboard.labels import LabelsInvalid, load_labels
    from leaderboard.report import score_report
    from leaderboard.report_tables import print_report
    from leaderboard.verdict_files import VerdictFileError, read_verdict_file

    settings = read_settings()
    chosen = read_suite(suite, settings)
    try:
        verdicts = read_verdict_file(file, chosen, split, settings.max_upload_bytes)
    except VerdictFileError as problem:
        stop(str(problem), code=1)
    try:
        report = score_report(verdicts, load_labels(chosen, split, settings), policy)
    except (LabelsUnavailable, LabelsInvalid) as error:
        stop(f"no labels to score {split} with: {error}", code=1)
    if as_json:
        print(json.dumps(report, indent=2))
    else:
        print_report(report, file.name, plain_console())


def calibrate(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="JSONL, CSV or Parquet.")],
    split: SplitOption,
    suite: SuiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Evaluate a file's scores against the labels.

    Whether `score` means what it says, and what each threshold would give: choose one on dev.
    """
    from dataclasses import asdict

    from leaderboard.calibration import FEWEST_SCORES
    from leaderboard.calibration import calibrate as calibration_of
    from leaderboard.calibration_report import print_calibration
    from leaderboard.judge_precision.scores import cluster_codes
    from leaderboard.label_source import LabelsUnavailable
    from leaderboard.labels import LabelsInvalid, load_labels
    from leaderboard.report import task_names
    from leaderboard.verdict_files import VerdictFileError, read_verdict_file

    settings = read_settings()
    chosen = read_suite(suite, settings)
    try:
        verdicts = read_verdict_file(file, chosen, split, settings.max_upload_bytes)
        labels = load_labels(chosen, split, settings)
    except VerdictFileError as problem:
        stop(str(problem), code=1)
    except (LabelsUnavailable, LabelsInvalid) as error:
        stop(f"no labels to evaluate {split} against: {error}", code=1)
    found = None
    if verdicts.score is not None:
        tasks, _ = cluster_codes(task_names(labels), len(labels.trajectories))
        found = calibration_of(verdicts.score, labels.primary["success"], tasks)
    if found is None:
        stop(
            f"{file.name}: fewer than {FEWEST_SCORES} rows of {split} have a score; give `score`, the "
            "judge's probability of success, from 0 to 1",
            code=1,
        )
    if as_json:
        print(json.dumps(asdict(found), indent=2))
    else:
        print_calibration(found, file.name, plain_console())
