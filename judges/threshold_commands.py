"""``judges threshold``: choose on dev from which score on a judge says yes, and freeze it for test."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from dataset_script.command_line import stop


def threshold(
    run_folder: Annotated[Path, typer.Argument(help="A run on dev whose judge gives scores.")],
    out: Annotated[Path, typer.Option("--out", help="The threshold's file (JSON).", dir_okay=False)],
    figure: Annotated[Literal["f1", "precision"], typer.Option(help="What to maximise on dev.")] = "f1",
    min_recall: Annotated[
        float, typer.Option("--min-recall", help="A fraction that the recall must reach.", min=0.0, max=1.0)
    ] = 0.0,
) -> None:
    """Choose a threshold on `score` with the labels of dev.

    `judges run … --split test --threshold FILE` then says yes from it on; the file becomes part of the run's
    configuration. Scores come from --samples (votes) or --logprobs.
    """
    from dataset_script.prediction_file.write import replacing
    from judges.command_options import OptionsError
    from judges.engine.run_folder import RunFolderError
    from judges.thresholds import choose_threshold, to_json

    try:
        configuration, runs, version = _scored_runs(run_folder)
        found = choose_threshold(
            runs, figure, min_recall, configuration["judge"], configuration["suite"], version
        )
        with replacing(out) as file:
            file.write(to_json(found))
    except (OptionsError, RunFolderError) as problem:
        stop(str(problem))
    except OSError as problem:
        stop(f"{out} cannot be written: {problem.strerror}")
    typer.echo(
        f"yes from {found.value:.4f} on: precision {100 * found.precision:.1f}, recall "
        f"{100 * found.recall:.1f}, F1 {100 * found.f1:.1f} on {len(runs):,} runs of dev; wrote {out}"
    )


def _scored_runs(folder: Path):
    """The run's configuration, its runs with score and label, and the labels' version."""
    from dataset_script.suite import load_suite
    from judges.command_options import OptionsError
    from judges.engine.run_folder import read_judgments, read_run
    from judges.selection import settings_of_environment
    from judges.thresholds import Scored
    from leaderboard.label_source import LabelsUnavailable
    from leaderboard.labels import LabelsInvalid, load_labels

    configuration = read_run(folder)["configuration"]
    if configuration["split"] != "dev":
        raise OptionsError(f"{folder}: is a run on {configuration['split']}; thresholds are chosen on dev")
    if configuration.get("threshold"):
        raise OptionsError(f"{folder}: has a threshold already; run the judge on dev without one")
    settings = settings_of_environment()
    suite = load_suite(_suite_named(configuration["suite"], settings.suite))
    try:
        labels = load_labels(suite, "dev", settings)
    except (LabelsUnavailable, LabelsInvalid) as reason:
        raise OptionsError(f"no labels to choose with: {reason}") from None
    truth = {
        each.trajectory_id: bool(value)
        for each, value in zip(labels.trajectories, labels.primary["success"], strict=True)
        if value >= 0
    }
    runs = [
        Scored(record["answer"].get("score"), truth[record["trajectory_id"]])
        for record in read_judgments(folder)
        if record["trajectory_id"] in truth
    ]
    return configuration, runs, labels.version


def _suite_named(name: str, configured: str) -> str:
    """The shipped suite of this name, else the configured one: one's own is known by its folder."""
    from dataset_script.suite import shipped_suites

    return name if name in shipped_suites() else configured
