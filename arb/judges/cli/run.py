"""``judges run``: run a judge over a split, into a folder that the same command continues."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from arb.core.cli import JsonOption, flags, next_step, print_json
from arb.core.lazy import lazy_imports
from arb.core.vocabulary import STATES
from arb.judges.cli.options import BatchOption, RetryOption, RunOptions, with_run_options
from arb.judges.cli.text import render
from arb.judges.types import OptionsError

if TYPE_CHECKING:
    from arb.judges.run.config import RunConfig
    from arb.judges.run.folder import OtherConfigurationError
    from arb.judges.run.runner import Outcome, Wrap

    Run = Callable[..., Outcome]

with lazy_imports():
    from arb.judges.ray import run as ray_run
    from arb.judges.run import batch as batches
    from arb.judges.run import config as run_config
    from arb.judges.run import folder as run_folder
    from arb.judges.run import runner

EXIT_CODES = {
    "finished": 0,
    "waiting": 130,
    "failing": 1,
    "budget": 3,
    "limited": 4,
    "account": 5,
    "interrupted": 130,
}
"""The exit codes by how the run ended. A run that finished with errors or without any verdict exits with 1.

A run is ``waiting`` only after Ctrl-C, while its batches are still at the endpoint.
"""


@with_run_options()
def run(
    options: RunOptions,
    *,
    engine: Annotated[
        Literal["local", "ray"], typer.Option(help="Run on this machine or on a Ray cluster.")
    ] = "local",
    ray_address: Annotated[
        str | None, typer.Option(help="Use this cluster (default: RAY_ADDRESS, else a new local one).")
    ] = None,
    ray_workers: Annotated[
        int | None, typer.Option(help="Start N worker processes (default: one per core, at most 8).", min=1)
    ] = None,
    batch: BatchOption = False,
    out: Annotated[Path, typer.Option(help="Create or continue the run in this folder.")],
    retry: RetryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a judge over a split, or over all runs of --source.

    Without --split, the runs of --source belong to no suite. Writes run.json, judgments.jsonl, prompts.jsonl
    and predictions.jsonl into the folder. Run the same command again to continue a run that was stopped or
    killed: no call is paid twice. If the prompts, the view, the recorded runs or the judge's file have
    changed, a new run starts in OUT-2, and the command tells you so.
    """
    judge, retried = _engine(engine, ray_address, ray_workers, batch), _retried(retry)
    named, tried = out, {out}
    config = run_config.build_config(options)
    while True:
        try:
            outcome = judge(config, out, retry=retried)
            break
        except run_folder.OtherConfigurationError as other:
            out = _folder_beside(named, other, tried)
            tried.add(out)
    for line in render("run.txt.j2", outcome=outcome, out=out):
        typer.echo(line, err=True)
    if as_json:
        files = {"run": str(out), "predictions": str(out / "predictions.jsonl")}
        print_json({**files, **asdict(outcome), "ended": outcome.ended.how})
    elif outcome.ended.how == "finished" and outcome.has_verdicts:
        _say_next(options, out / "predictions.jsonl")
    raise typer.Exit(EXIT_CODES[outcome.ended.how] or int(outcome.has_errors))


def _say_next(options: RunOptions, predictions: Path) -> None:
    """Print the next command: score dev, check test, or draw the user's own runs to label."""
    if options.typed_source is not None:
        draw = flags(for_estimate=30, verdicts=predictions, out="to-label.csv")
        next_step("draw runs to label", "leaderboard", "annotation-template", *draw)
    elif options.split == "dev":
        chosen = flags(split="dev", suite=options.suite)
        next_step("score it", "leaderboard", "score", predictions, *chosen)
    else:
        chosen = flags(split="test", suite=options.suite)
        next_step("check it", "submissions", "check", predictions, *chosen)


def _folder_beside(out: Path, other: OtherConfigurationError, tried: Collection[Path]) -> Path:
    """Return the first of ``OUT-2``, ``OUT-3``, … that is new or holds the wanted run, and tell the user.

    Folders in ``tried`` are skipped. Raises ``other`` if options differ, since then the wrong folder may have
    been named.
    """
    meanings = run_folder.MEANINGS
    changed = {**meanings, "prompts": meanings["prompts_hash"]}  # this option chooses the wording
    if not changed.keys() >= {*other.paths}:
        raise other
    named = out if out.name.strip(".") else out.resolve()
    for number in count(2):
        beside = named.with_name(f"{named.name}-{number}")
        is_new, is_wanted = not beside.exists(), False
        if (beside / run_folder.RUN).is_file():
            there = run_folder.read_run(beside)["configuration"]
            is_wanted = not run_folder.diff_configurations(there, other.wanted)
        if beside not in tried and (is_new or is_wanted):
            break
    words = dict.fromkeys(changed[path].partition(";")[0] for path in other.paths)
    typer.echo(
        f"{out}: contains a run that differs in {' and '.join(words)}; leaving it unchanged and "
        f"{'starting a new run' if is_new else 'continuing'} in {beside}",
        err=True,
    )
    return beside


def run_all(
    runs: Mapping[str, tuple[RunConfig, Wrap | None]],
    out: Path,
    max_usd: float | None,
    retry: str | None,
    *,
    batch: bool = False,
    needs_verdicts: Collection[str] = (),
) -> bool:
    """Make or continue several runs one after another, each in the folder of its name in ``out``.

    ``max_usd`` holds for all runs together; ``batch`` sends their calls to the Batch API. If a run does not
    finish, the command ends with its summary. It also ends if a run named in ``needs_verdicts`` has no
    verdict, before the next runs are paid. Prints how to retry errors, and returns whether any run has some.
    """
    judge, retried, has_errors = _engine("local", None, None, batch), _retried(retry), False
    out.mkdir(parents=True, exist_ok=True)
    for number, (name, (config, wrap)) in enumerate(runs.items(), start=1):
        typer.echo(f"{name} ({number} of {len(runs)}):", err=True)
        others_usd = sum(_cost_so_far(out / other) for other in runs if other != name)
        left_usd = None if max_usd is None else max(0.0, max_usd - others_usd)
        outcome = judge(replace(config, max_usd=left_usd), out / name, retry=retried, wrap=wrap)
        if outcome.ended.how != "finished":
            for line in render("run.txt.j2", outcome=outcome, out=out / name):
                typer.echo(line, err=True)
            if outcome.ended.how == "budget":
                typer.echo(
                    f"--max-usd {max_usd:g} limits all {len(runs)} runs; the others cost ${others_usd:.4f}",
                    err=True,
                )
            raise typer.Exit(EXIT_CODES[outcome.ended.how])
        for line in render("unanswered.txt.j2", outcome=outcome, out=out / name):
            typer.echo(line, err=True)
        if not outcome.has_verdicts and name in needs_verdicts:
            raise typer.Exit(1)
        has_errors |= outcome.has_errors
    return has_errors


def _cost_so_far(folder: Path) -> float:
    """Return the dollars that a run has cost so far; 0 without a run or with an unknown price."""
    if not (folder / run_folder.RUN).is_file():
        return 0.0
    return run_folder.read_run(folder).get("spent_usd") or 0.0


def _retried(text: str | None) -> tuple[str, ...]:
    named = tuple(part.strip() for part in (text or "").split(",") if part.strip())
    known = tuple(state for state in STATES if state != "ok")
    if unknown := [name for name in named if name not in known]:
        raise OptionsError(f"--retry {','.join(unknown)}: no such state; use {', '.join(known)}")
    return named


def _engine(name: str, ray_address: str | None, ray_workers: int | None, batch: bool) -> Run:
    if batch and name == "ray":
        raise OptionsError("--batch and --engine ray cannot be used together; leave one of them out")
    if batch:
        return partial(runner.run_judge, engine=batches.run_batch)
    if name == "ray":
        return partial(ray_run.run_on_ray, address=ray_address, workers=ray_workers)
    if ray_address or ray_workers:
        raise OptionsError("--ray-address and --ray-workers need --engine ray; add it or leave them out")
    return partial(runner.run_judge, engine=runner.run_local)
