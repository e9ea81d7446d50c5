"""``judges threshold``: a threshold chosen on the scores of a dev run, frozen for `run --threshold`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dataset_script.command_line import SuiteOption, stop

if TYPE_CHECKING:
    from judges.choosing import Objective
    from judges.thresholds import Threshold


def threshold(
    run: Annotated[Path, typer.Argument(help="The folder of a run over dev, with scores.")],
    out: Annotated[Path, typer.Option("--out", help="The file to freeze it in (JSON).")],
    maximise: Annotated[str, typer.Option("--maximise", help="precision, recall or f1.")] = "f1",
    at_least: Annotated[
        str | None,
        typer.Option("--at-least", help="What to keep, such as recall=0.7.", metavar="FIGURE=NUMBER"),
    ] = None,
    suite: SuiteOption = None,
) -> None:
    """Choose a threshold on the scores of a run over dev.

    Scores come from --samples or --logprobs. `run --threshold FILE` then lets the score decide, on any split,
    for the same judge, models and options.
    """
    from judges.choosing import parse_aim
    from judges.thresholds import write_threshold
    from leaderboard.label_source import LabelsUnavailable
    from leaderboard.labels import LabelsInvalid

    try:
        found = choose_from_run(run, parse_aim(maximise, at_least), suite)
        out.parent.mkdir(parents=True, exist_ok=True)
        write_threshold(out, found)
    except (LabelsUnavailable, LabelsInvalid) as problem:
        stop(f"no labels to choose with: {problem}", code=1)
    except OSError as problem:
        stop(f"{out}: cannot be written ({problem.strerror})")
    except ValueError as problem:
        stop(str(problem))
    for line in summary(found, out):
        typer.echo(line)


def choose_from_run(folder: Path, aim: Objective, suite_name: str | None) -> Threshold:
    """The threshold that a dev run's judgments give. Raises what `threshold` tells the user of."""
    import numpy as np

    from dataset_script.command_line import read_settings, read_suite
    from judges.base import OptionsError
    from judges.choosing import choose_threshold
    from judges.engine.run_folder import read_judgments, read_run
    from judges.thresholds import Threshold, score_settings
    from leaderboard.labels import load_labels
    from leaderboard.report import task_names

    configuration = read_run(folder)["configuration"]
    if configuration["split"] != "dev":
        raise OptionsError(f"{folder}: is a run over {configuration['split']}; thresholds are chosen on dev")
    if configuration.get("threshold") is not None:
        raise OptionsError(f"{folder}: its verdicts are by a threshold already; use a run without")
    settings = read_settings()
    suite = read_suite(suite_name or configuration["suite"], settings)
    if suite.name != configuration["suite"]:
        raise OptionsError(f"{folder}: is a run over {configuration['suite']}, not {suite.name}")
    scores = scores_of(read_judgments(folder))
    if all(score is None for score, _ in scores.values()):
        raise OptionsError(f"{folder}: no answer has a score; run dev with --samples or --logprobs")
    labels = load_labels(suite, "dev", settings)
    judged = np.array([each.trajectory_id in scores for each in labels.trajectories])
    tasks = [name for name, is_judged in zip(task_names(labels), judged, strict=True) if is_judged]
    given = [scores[each.trajectory_id] for each in labels.trajectories if each.trajectory_id in scores]
    choice = choose_threshold(
        np.array([np.nan if value is None else value for _, value in given], dtype=np.float64),
        labels.primary["success"][judged],
        tasks,
        aim,
    )
    return Threshold(
        suite=suite.name,
        split="dev",
        label_version=labels.version,
        judge=configuration["judge"],
        figure=str(aim),
        value=choice.value,
        chosen_on=choice.chosen_on,
        held_out=choice.held_out,
        configuration=score_settings(configuration),
    )


def scores_of(records) -> dict[str, tuple[float | None, float | None]]:
    """By id, the score that was given and the one that counts: 1 or 0 where a verdict came without one."""
    from judges.base import Answer
    from judges.voting import probability

    found: dict[str, tuple[float | None, float | None]] = {}
    for record in records:
        answer = Answer(record["state"], **record["answer"])
        given = answer.score if answer.success is not None else None
        found[record["trajectory_id"]] = (given, None if answer.success is None else probability(answer))
    return found


def summary(found: Threshold, out: Path) -> list[str]:
    """The lines printed at the end."""
    from leaderboard.calibration import FEWEST_SCORES

    lines = [
        f"{found.judge}: success from a score of {found.value:.4g} ({found.figure}; labels "
        f"{found.label_version} of {found.suite} dev)",
        f"on the runs it was chosen on: {_figures(found.chosen_on)}",
    ]
    if found.held_out is None:
        lines.append("held out: too few tasks to say")
    else:
        lines.append(f"held out, five parts of the tasks: {_figures(found.held_out)}")
    if found.chosen_on["n"] < FEWEST_SCORES:
        lines.append(f"it rests on {found.chosen_on['n']} runs only: treat it as a trial")
    return [*lines, f"wrote {out}"]


def _figures(cell: Any) -> str:
    from core.console import interval, percent

    return ", ".join(
        f"{title} {percent(cell[name])} ({interval(cell[f'{name}_ci']) or 'no interval'})"
        for name, title in (("precision", "precision"), ("recall", "recall"), ("f1", "F1"))
    )
