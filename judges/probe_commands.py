"""``judges probe``: how often a judge's verdict flips when what it sees is changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from judges.command_options import OptionsError, RunOptions, takes_run_options

UNCHANGED = "unchanged"


@takes_run_options()
def probe(
    options: RunOptions,
    out: Annotated[Path, typer.Option("--out", help="A folder for the runs, one in it for each probe.")],
    only: Annotated[
        list[str] | None, typer.Option("--probe", help="Only this probe. Several times; all if left out.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Probe a judge: reasoning removed, another goal, a page that claims success, and more.

    Judges every run unchanged and once for each probe, through the same cache; says how often the verdict
    flips. Stopped, the same command goes on. The report is also in OUT/report.json.
    """
    from dataset_script.command_line import plain_console
    from dataset_script.prediction_file.write import replacing
    from judges.engine.run_folder import read_judgments
    from judges.probe_report import probe_table, report_probe, to_json
    from judges.probes import PROBES

    if unknown := [name for name in only or () if name not in PROBES]:
        raise OptionsError(f"--probe {', '.join(unknown)}: use one of {', '.join(PROBES)}")
    chosen = [PROBES[name] for name in only or PROBES]
    name = _run(options, out / UNCHANGED, None)
    for each in chosen:
        _run(options, out / each.name, each)
    reports = [
        report_probe(each, read_judgments(out / UNCHANGED), read_judgments(out / each.name))
        for each in chosen
    ]
    found = to_json(reports, name, options.split)
    with replacing(out / "report.json") as file:
        file.write(json.dumps(found, indent=2).encode() + b"\n")
    if as_json:
        print(json.dumps(found))
    else:
        plain_console().print(probe_table(reports, name))


def _run(options: RunOptions, folder: Path, chosen) -> str:
    """Judge with a probe, or without; the judge's name. Ends the command when the run did not finish."""
    from judges.engine.here import run_here
    from judges.probes import Goal, ProbedJudge
    from judges.run_commands import EXIT_CODES, summary
    from judges.running import run_judge

    names = []

    def probed(judge, views, ids):
        names.append(judge.name)
        if not hasattr(judge, "ask") or not judge.models:
            raise OptionsError(f"{judge.name} asks no model, so there is nothing to probe")
        if chosen is None:
            return judge
        goals = []
        if chosen.expected == "fails":
            seen = (views.view(each, judge.wants) for each in ids)
            goals = list({view.goal: Goal(view.goal, view.goal_images) for view in seen}.values())
        return ProbedJudge(judge, chosen, tuple(goals))

    folder.parent.mkdir(parents=True, exist_ok=True)
    typer.echo(f"{folder.name}:", err=True)
    outcome = run_judge(options, folder, run_here, wrap=probed)
    if outcome.ended.how != "finished":
        for line in summary(outcome, folder):
            typer.echo(line, err=True)
        raise typer.Exit(EXIT_CODES[outcome.ended.how])
    return names[0]
