"""``arb leaderboard estimate``: how often agents succeed, from judges' verdicts and a few labels."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import typer

from arb.core.cli import (
    AgentFromOption,
    JsonOption,
    SuiteOption,
    flags,
    next_step,
    print_json,
    read_settings,
    read_suite,
    stop,
    words,
)
from arb.core.console import counted, printable
from arb.core.lazy import lazy_imports
from leaderboard.cli.options import described
from leaderboard.cli.text import print_template

with lazy_imports():
    from arb.core import predictions
    from arb.core.predictions import findings as file_findings
    from arb.core.predictions import raw
    from arb.core.suites import targets as suite_targets
    from dataset_script import commands as dataset_commands
    from dataset_script.build import report as build_report
    from leaderboard import judge_names
    from leaderboard.success_rates import estimate as estimates
    from leaderboard.success_rates import files as rate_files
    from leaderboard.success_rates import runs as agent_runs
    from leaderboard.success_rates import sources as source_runs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from arb.core.predictions.findings import Finding
    from arb.core.predictions.parser_pool import ReadResult
    from arb.core.suites.targets import Target
    from leaderboard.success_rates.estimate import AgentEstimate
    from leaderboard.success_rates.runs import AgentRuns

MOST_CRASHED = 20


@described
def estimate(  # noqa: PLR0913 - a command's options
    verdicts: list[Path],
    labels: list[Path] | None = None,
    draw: list[Path] | None = None,
    agent: str | None = None,
    compare: tuple[str, str] | None = None,
    plan: bool = False,
    half_width: float = 5.0,
    source: Path | None = None,
    agent_from: AgentFromOption = None,
    crashed: Literal["failures", "apart"] = "failures",
    suite: SuiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Estimate how often agents succeed from verdicts and a few labels.

    Uses the verdicts on the suite's outcome: its main target, or else its first binary target about runs.

    The rate according to a judge can be wrong by many percentage points. Labels of a random sample of the
    runs correct this error. Every estimate has a 95 % interval.

    Finds the runs that crashed before they could be judged in --source, or in the run.json that `arb judges
    run --source` writes next to the verdicts. --agent-from needs --source.
    """
    labels, draw = labels or [], draw or []
    if not labels and not plan:
        stop("an estimate needs labels of some runs; add --labels, or use --plan to see how many you need")
    if agent_from and source is None:
        stop("--agent-from needs the judged runs; add --source FOLDER", 2)
    if agent and compare:
        stop("--agent keeps one agent, and --compare needs two; leave one of the options out", 2)
    targets = outcome_targets(suite)
    recorded, names = source_runs.recorded_source(verdicts), None
    if source is None and recorded.files is not None:
        line = build_report.files_line(recorded.files)
        typer.echo(f"{line} (named by `arb data inspect-source`)", err=True)
    if recorded.is_part:
        typer.echo(source_runs.CRASHED_UNKNOWN, err=True)
    if source is not None:
        built = dataset_commands.read_source(source, agent_from)
        recorded = replace(recorded, crashed=None if recorded.is_part else built.facts.crashed)
        facts = words(agent_from)
        names = partial(source_runs.other_names, source, facts) if facts else None
    ended = recorded.crashed_runs(crashed)
    made = rate_files.estimate_files(
        _read_all(verdicts, targets),
        [(str(file), _read(file, agent_runs.OUTCOME_LABELS, targets)) for file in labels],
        [(str(file), file.read_bytes()) for file in draw],
        agent,
        compare,
        ended,
        names,
    )
    if made.errors:
        _stop_with(made.errors)
    found, warnings = made.agents, made.warnings
    _print_crashed(ended.runs if ended else (), crashed)
    if plan:
        rows = [_plan_row(each, half_width / 100) for each in found]
        if as_json:
            print_json({"half_width": half_width / 100, "agents": rows, "warnings": warnings})
        else:
            outcome = suite_targets.outcome_target(targets)
            print_template("plan.txt.j2", rows=rows, half_width=half_width, outcome=outcome)
            most = max((row["assisted"] or row["labels_only"] for row in rows), default=1)
            first = most if labels else min(most, 30)  # 30 labels are enough to see what the judges save
            own = [file for file in labels if file.with_suffix(".draw.json") in draw]
            chosen = flags(
                for_estimate=first, verdicts=verdicts, out=own[0] if own else "to-label.csv", suite=suite
            )
            _print_warnings(warnings)
            title = "draw more runs, into the file with your labels" if own else "draw runs to label"
            next_step(title, "leaderboard", "annotation-template", *chosen)
    elif as_json:
        print_json(made.to_json())
    else:
        values = {"agents": found, "judges": made.judges, "difference": made.difference}
        print_template("estimate.txt.j2", **values)
        chosen = flags(verdicts=verdicts, labels=labels, draw=draw, agent=agent, plan=True, suite=suite)
        _print_warnings(warnings)
        next_step("see how many labels a narrower interval needs", "leaderboard", "estimate", *chosen)


def _print_crashed(ended: Sequence[str], choice: str) -> None:
    """Print on stderr how many runs crashed, how they count, and which runs they are."""
    if not ended:
        return
    if choice == "failures":
        how = "counted as failures (--crashed apart leaves crashed runs out)"
    else:
        how = "left out (--crashed failures counts crashed runs as failures)"
    names = [printable(run) for run in ended[:MOST_CRASHED]]
    if len(ended) > MOST_CRASHED:
        names.append(f"and {len(ended) - MOST_CRASHED:,} more")
    typer.echo("\n  ".join([f"{counted(len(ended), 'run')} crashed; {how}:", *names]), err=True)


def _print_warnings(warnings: Sequence[str]) -> None:
    for warning in warnings:
        typer.echo(f"warning: {printable(warning)}", err=True)


def outcome_targets(suite: str | None) -> tuple[Target, ...]:
    """Return the targets of a suite; stop if agents cannot be rated by any of them."""
    targets = read_suite(suite, read_settings()).targets
    try:
        suite_targets.outcome_target(targets)
    except ValueError as problem:
        stop(str(problem))
    return targets


def read_runs(files: Sequence[Path], targets: tuple[Target, ...]) -> AgentRuns:
    """Return the runs and verdicts of prediction files, one judge per file; stop if a file has problems."""
    runs, findings = agent_runs.read_runs(_read_all(files, targets))
    if runs is None:
        _stop_with(findings)
    return runs


def _read_all(files: Sequence[Path], targets: tuple[Target, ...]) -> Iterator[tuple[str, str, ReadResult]]:
    for file, name in zip(files, judge_names.judge_names(files), strict=True):
        yield str(file), name, _read(file, agent_runs.OUTCOME_VERDICTS, targets)


def _read(file: Path, reader: str, targets: tuple[Target, ...]) -> ReadResult:
    limits = raw.ReadingLimits(max_bytes=read_settings().max_upload_bytes, targets=targets)
    try:
        with file.open("rb") as opened:
            content = opened.read(limits.max_bytes + 1)
    except OSError as problem:
        return None, [file_findings.error("unreadable", f"cannot be read: {problem.strerror}")]
    return predictions.read_predictions(content, limits, reader=reader)


def _stop_with(findings: Sequence[Finding]) -> NoReturn:
    errors = [
        f"  {each.file}: {each.message}" if each.file else f"  {each.message}"
        for each in findings
        if each.level == "error"
    ]
    stop("\n".join(["the files cannot be used:", *errors]), code=1)


def _plan_row(found: AgentEstimate, half_width: float) -> dict[str, Any]:
    ran, labelled, assisted = found.n - found.failures, found.labelled, None
    if found.assisted.ci is not None:
        assisted = estimates.labels_needed(ran, half_width, labelled, found.assisted)
    labels_only = estimates.labels_needed(ran, half_width, labelled, found.labels_only)
    return {
        "agent": found.agent,
        "n": found.n,
        "labelled": labelled,
        "labels_only": labels_only,
        "assisted": assisted,
    }
