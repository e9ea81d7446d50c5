"""The command ``judges certify``, which measures a judge and writes a report to attach to a paper."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import typer

from arb.core.cli import JsonOption, next_step, plain_console
from arb.core.console import counted
from arb.core.files import atomic_write
from arb.core.lazy import lazy_imports
from arb.judges.cli.experiments import choose_from_run, labels_or_problem, variants_of
from arb.judges.cli.options import RunOptions, typed, with_run_options
from arb.judges.cli.plan import print_plan
from arb.judges.cli.run import run_all
from arb.judges.types import Judge, OptionsError

with lazy_imports():
    from arb.judges import registry
    from arb.judges.ensembles import certificate, certificate_text, probes, threshold_selection
    from arb.judges.ensembles import threshold as thresholds
    from arb.judges.run import config as run_config
    from arb.judges.run import folder as run_folder
    from arb.judges.run import plan as planning
    from arb.judges.run import runner, scheduler

BATCHES = "batches"
"""The folder of an extra first run, with which ``--batch`` submits the calls of all runs together."""


@dataclass(frozen=True, kw_only=True)
class CertifyOptions(RunOptions):
    """The options of ``judges certify`` as typed by the user."""

    out: Path | None = None
    repeats: int = 3
    only: list[str] | None = None
    without_probes: bool = False
    aim: str = "f1"
    retry: str | None = None
    batch: bool = False
    dry_run: bool = False


@with_run_options(without=("refresh",), defaults={"split": "dev"})
def certify(options: CertifyOptions, as_json: JsonOption = False) -> None:
    """Measure a judge, and write a report to attach to a paper.

    Judges every trajectory several times: unchanged (--repeats times), and once with each probe, which
    changes what the judge sees. The report contains precision, recall, false positive rate, calibration,
    verdicts that changed, and costs.

    All runs together stay within --max-usd. With --batch their calls are submitted together. Run the same
    command again to resume.

    Writes certificate.json, .md and .html, the prediction files, and threshold.json if a threshold beats the
    judge's own verdicts. Writes no report if the judge gives no verdict at all. Test labels are never read,
    so a report on test contains only figures that need no labels.
    """
    batch = options.batch
    try:
        objective = threshold_selection.read_aim(options.aim)
    except ValueError as problem:
        raise OptionsError(str(problem)) from None
    labels = labels_or_problem(options)[0] if options.split == "dev" else None
    config = run_config.build_config(options)
    judge, models = config.judge, config.models
    chosen = [] if options.without_probes else probes.probes_named(options.only)
    wraps = variants_of(judge, chosen, options.repeats)
    if options.dry_run:
        _print_plan(config, wraps, is_batch=batch, as_json=as_json)
        return
    name = re.sub(r"[^a-z0-9]+", "-", registry.full_name(judge, models).casefold()).strip("-")
    out = options.out or Path(f"certificate-{name}")
    together = {BATCHES: partial(_all_variants, wraps)} if batch and len(wraps) > 1 else {}
    runs = {name: (config, wrap) for name, wrap in (together | wraps).items()}
    needs_verdicts = {certificate.UNCHANGED, BATCHES}
    has_errors = run_all(
        runs, out, options.max_usd, options.retry, batch=batch, needs_verdicts=needs_verdicts
    )
    facts = {name: str(getattr(judge, name, "")) for name in ("inputs", "calls", "source")}
    has_none_yet = labels is not None and options.threshold is None
    threshold = _threshold(out, objective, options.suite) if has_none_yet else ""
    measured = {name: _measured(out / name) for name in wraps}
    ahead = [_measured(out / name) for name in together]
    report = certificate.make_certificate(measured, labels, threshold, facts, ahead)
    text, markdown = json.dumps(report, indent=2), certificate_text.to_markdown(report)
    contents = {"json": text, "md": markdown, "html": certificate_text.to_html(report)}
    for ending, content in contents.items():
        atomic_write(out / f"certificate.{ending}", content)
    if as_json:
        typer.echo(text)
    else:
        plain_console().print(markdown, soft_wrap=True)
    typer.echo(f"wrote certificate.html, certificate.md and certificate.json into {out}", err=True)
    if not as_json and options.split == "dev":
        frozen = {} if isinstance(threshold, str) else {"threshold": out / "threshold.json"}
        arguments = typed(options, split="test", limit=None, ids=None, out=f"runs/{name}-test", **frozen)
        next_step("run it on test", "judges", "run", *arguments)
    raise typer.Exit(int(has_errors))


def _print_plan(
    config: run_config.RunConfig, wraps: Mapping[str, runner.Wrap | None], *, is_batch: bool, as_json: bool
) -> None:
    """Print the plan of all runs together. A call that several runs make is counted once."""
    if not as_json:
        typer.echo(f"{counted(len(wraps), 'run')}: {', '.join(wraps)}")
    made = planning.plan_run(config, is_batch=is_batch, wrap=partial(_all_variants, wraps))
    print_plan(made, config.options.max_usd, is_batch=is_batch, as_json=as_json)


def _all_variants(
    wraps: Mapping[str, runner.Wrap | None], judge: Judge, views: scheduler.RunSource, ids: Sequence[str]
) -> Judge:
    variants = tuple(wrap(judge, views, ids) for wrap in wraps.values() if wrap is not None)
    return certificate.AllVariants(judge, variants)


def _measured(folder: Path) -> certificate.MeasuredRun:
    digest = hashlib.sha256((folder / run_folder.PREDICTIONS).read_bytes()).hexdigest()
    records = list(run_folder.read_judgments(folder))
    return certificate.MeasuredRun(run_folder.read_run(folder), records, digest)


def _threshold(
    out: Path, aim: threshold_selection.Objective, suite: str | None
) -> thresholds.Threshold | str:
    """Choose a threshold and write it to threshold.json, or return the reason why none can be chosen."""
    path, run = out / "threshold.json", out / certificate.UNCHANGED
    try:
        found = choose_from_run(run, aim, suite)
    except ValueError as problem:
        path.unlink(missing_ok=True)
        return str(problem).removeprefix(f"{run}: ")
    thresholds.write_threshold(path, found)
    return found
