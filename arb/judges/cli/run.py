"""The command ``judges run``, and the part of it that other commands use for several runs (`run_all`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Literal

import typer

from arb.core.cli import JsonOption, flags, next_step, print_json
from arb.core.lazy import lazy_imports
from arb.core.vocabulary import STATES
from arb.judges.cli.options import RunOptions, with_run_options
from arb.judges.cli.text import print_template
from arb.judges.types import OptionsError

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
"""The exit code for each way in which a run can end.

A run that finished with errors or without any verdict exits with 1. A run is ``waiting`` if the user pressed
Ctrl-C while the endpoint was still processing its batches.
"""


@with_run_options()
def run(
    options: RunOptions,
    *,
    engine: Literal["local", "ray"] = "local",
    ray_address: str | None = None,
    ray_workers: int | None = None,
    batch: bool = False,
    out: Path,
    retry: str | None = None,
    as_json: JsonOption = False,
) -> None:
    """Judge the runs of a split, or your own runs in --source.

    Writes run.json, judgments.jsonl, prompts.jsonl and predictions.jsonl into the folder --out. If the run
    was stopped or killed, run the same command again to continue; replies that have arrived are not paid for
    again. If the prompts, the recorded runs, the judge's file or what the judge sees of a run have changed,
    the command starts a new run in the folder OUT-2 and tells you so.
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
    print_template("run.txt.j2", err=True, outcome=outcome, out=out)
    if as_json:
        files = {"run": str(out), "predictions": str(out / "predictions.jsonl")}
        print_json({**files, **asdict(outcome), "ended": outcome.ended.how})
    elif outcome.ended.how == "finished" and outcome.has_verdicts:
        _say_next(options, out / "predictions.jsonl")
    raise typer.Exit(EXIT_CODES[outcome.ended.how] or int(outcome.has_errors))


def _say_next(options: RunOptions, predictions: Path) -> None:
    """Suggest a next step: score a dev run, check a test run, or choose some of the user's runs to label."""
    chosen = flags(split=options.split, suite=options.suite)
    if options.typed_source is not None:
        draw = flags(for_estimate=30, verdicts=predictions, out="to-label.csv")
        next_step("choose runs to label", "leaderboard", "annotation-template", *draw)
    elif options.split == "dev":
        next_step("score it", "score", predictions, *chosen)
    else:
        next_step("check it", "submissions", "check", predictions, *chosen)


def _folder_beside(out: Path, other: run_folder.OtherConfigurationError, tried: Collection[Path]) -> Path:
    """Return the first of ``OUT-2``, ``OUT-3``, … that is new or contains the wanted run, and tell the user.

    Folders in ``tried`` are skipped. If the configurations differ in options, and not only in prompts, runs
    or the judge's file, the user may have named the wrong folder by mistake, so the error ``other`` is
    raised.
    """
    meanings = run_folder.MEANINGS
    changed = {**meanings, "prompts": meanings["prompts_hash"]}  # `--prompts` also changes the prompts
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
        f"{out}: contains a run that differs in {' and '.join(words)}; leaving that run unchanged and "
        f"{'starting a new one' if is_new else 'continuing the one'} in {beside}",
        err=True,
    )
    return beside


def run_all(
    runs: Mapping[str, tuple[run_config.RunConfig, runner.Wrap | None]],
    out: Path,
    max_usd: float | None,
    retry: str | None,
    *,
    batch: bool = False,
    needs_verdicts: Collection[str] = (),
) -> bool:
    """Start or continue several runs one after another, each in the subfolder of ``out`` with its name.

    ``max_usd`` limits the cost of all runs together. ``batch`` sends their calls to the Batch API. The
    command exits if a run does not finish, or if a run named in ``needs_verdicts`` ends without any verdict,
    so that the user does not pay for further runs. Returns whether any run has errors or no verdict.
    """
    judge, retried, has_errors = _engine("local", None, None, batch), _retried(retry), False
    out.mkdir(parents=True, exist_ok=True)
    for number, (name, (config, wrap)) in enumerate(runs.items(), start=1):
        typer.echo(f"{name} ({number} of {len(runs)}):", err=True)
        others_usd = sum(_cost_so_far(out / other) for other in runs if other != name)
        left_usd = None if max_usd is None else max(0.0, max_usd - others_usd)
        config = replace(config, options=replace(config.options, max_usd=left_usd))
        outcome = judge(config, out / name, retry=retried, wrap=wrap)
        if outcome.ended.how != "finished":
            print_template("run.txt.j2", err=True, outcome=outcome, out=out / name)
            if outcome.ended.how == "budget":
                typer.echo(
                    f"--max-usd {max_usd:g} limits all {len(runs)} runs together; the other runs have cost "
                    f"${others_usd:.4f}",
                    err=True,
                )
            raise typer.Exit(EXIT_CODES[outcome.ended.how])
        print_template("unanswered.txt.j2", err=True, outcome=outcome, out=out / name)
        if not outcome.has_verdicts and name in needs_verdicts:
            raise typer.Exit(1)
        has_errors |= outcome.has_errors
    return has_errors


def _cost_so_far(folder: Path) -> float:
    """Return the dollars that the run in a folder has cost, or 0 if the run or its cost is unknown."""
    if not (folder / run_folder.RUN).is_file():
        return 0.0
    return run_folder.read_run(folder).get("spent_usd") or 0.0


def _retried(text: str | None) -> tuple[str, ...]:
    named = tuple(part.strip() for part in (text or "").split(",") if part.strip())
    known = tuple(state for state in STATES if state != "ok")
    if unknown := [name for name in named if name not in known]:
        raise OptionsError(f"--retry {','.join(unknown)}: unknown state; use one of {', '.join(known)}")
    return named


def _engine(
    name: str, ray_address: str | None, ray_workers: int | None, batch: bool
) -> Callable[..., runner.Outcome]:
    if batch and name == "ray":
        raise OptionsError("--batch and --engine ray cannot be used together; leave one of them out")
    if batch:
        return partial(runner.run_judge, engine=batches.run_batch)
    if name == "ray":
        return partial(ray_run.run_on_ray, address=ray_address, workers=ray_workers)
    if ray_address or ray_workers:
        raise OptionsError("--ray-address and --ray-workers need --engine ray; add it or leave them out")
    return partial(runner.run_judge, engine=runner.run_local)
