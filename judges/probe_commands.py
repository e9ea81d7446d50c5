"""``judges probe``: how often a judge's verdict flips when what it sees is changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judges.base import OptionsError
from judges.command_options import RunOptions, with_run_options
from judges.run_commands import run_or_exit

if TYPE_CHECKING:
    from judges.engine.judging import RunSource
    from judges.probes import Probe
    from judges.registry import AnyJudge

UNCHANGED = "unchanged"


@with_run_options()
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
    from core.files import atomic_write
    from dataset_script.command_line import plain_console
    from judges.engine.run_folder import read_judgments, read_run
    from judges.probe_report import probe_table, report_probe, to_json
    from judges.probes import PROBES

    if unknown := [name for name in only or () if name not in PROBES]:
        raise OptionsError(f"--probe {', '.join(unknown)}: use one of {', '.join(PROBES)}")
    chosen = [PROBES[name] for name in only or PROBES]
    run_or_exit(options, out / UNCHANGED, partial(_judge_under, None))
    for each in chosen:
        run_or_exit(options, out / each.name, partial(_judge_under, each))
    name = read_run(out / UNCHANGED)["configuration"]["judge"]
    reports = [
        report_probe(each, read_judgments(out / UNCHANGED), read_judgments(out / each.name))
        for each in chosen
    ]
    found = to_json(reports, name, options.split)
    atomic_write(out / "report.json", json.dumps(found, indent=2).encode() + b"\n")
    if as_json:
        print(json.dumps(found))
    else:
        plain_console().print(probe_table(reports, name))


def _judge_under(probe: Probe | None, judge: AnyJudge, views: RunSource, ids: Sequence[str]) -> AnyJudge:
    """The judge, shown runs with the probe's change; as it is without a probe."""
    from judges.probes import Goal, ProbedJudge

    if not hasattr(judge, "ask") or not judge.models:
        raise OptionsError(f"{judge.name} asks no model, so there is nothing to probe")
    if probe is None:
        return judge
    goals = []
    if probe.expected == "fails":
        seen = (views.view(each, judge.wants) for each in ids)
        goals = list({view.goal: Goal(view.goal, view.goal_images) for view in seen}.values())
    return ProbedJudge(judge, probe, tuple(goals))
