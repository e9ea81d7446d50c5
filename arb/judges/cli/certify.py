"""``judges certify``: everything that can be said of a judge on dev, as one report to attach to a paper."""

from __future__ import annotations

import hashlib
import json
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arb.core.cli import JsonOption, next_step, plain_console
from arb.judges.cli.experiments import (
    AimOption,
    AtLeastOption,
    MaximiseOption,
    choose_from_run,
    labels_or_problem,
    variants_of,
)
from arb.judges.cli.options import BatchOption, RetryOption, RunOptions, typed, with_run_options
from arb.judges.cli.run import run_all
from arb.judges.types import OptionsError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from arb.judges.ensembles.certificate import MeasuredRun
    from arb.judges.ensembles.threshold import Objective, Threshold
    from arb.judges.run.config import RunConfig
    from arb.judges.run.runner import Wrap
    from arb.judges.run.scheduler import RunSource
    from arb.judges.types import AnyJudge


BATCHES = "batches"
"""The folder of the run that asks everything at once, whose replies the others take from the cache."""


@with_run_options(without=("refresh",), defaults={"split": "dev"})
def certify(
    options: RunOptions,
    out: Annotated[
        Path | None, typer.Option(help="For runs and report; certificate-JUDGE if left out.")
    ] = None,
    repeats: Annotated[int, typer.Option(help="How often the judge is asked everything.", min=1)] = 3,
    only: Annotated[
        list[str] | None, typer.Option("--probe", help="Only this probe. Several times; all if left out.")
    ] = None,
    without_probes: Annotated[bool, typer.Option("--without-probes", help="No probe at all.")] = False,
    aim: AimOption = None,
    maximise: MaximiseOption = None,
    at_least: AtLeastOption = None,
    retry: RetryOption = None,
    batch: BatchOption = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Plan all runs, and pay nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Certify a judge: precision, recall, FPR, calibration, flips, stability, costs, digests.

    Judges every run as it is, once for each probe and again for --repeats, under one --max-usd and through
    the cache. The same command continues a certificate that was stopped. With --batch the calls of all runs
    are submitted together, in as many rounds as the judge has stages; only `judges run` takes --engine.
    Writes certificate.json, .md and .html, the prediction files, and threshold.json if a threshold beats the
    judge's own verdicts. A judge without any verdict gets no certificate. Test labels are never read: on test
    the report contains what needs none.
    """
    from arb.core.files import atomic_write
    from arb.judges.ensembles.certificate import UNCHANGED, make_certificate
    from arb.judges.ensembles.certificate_text import to_html, to_markdown
    from arb.judges.ensembles.probes import probes_named
    from arb.judges.ensembles.threshold import read_aim
    from arb.judges.registry import full_name
    from arb.judges.run.config import build_config

    try:
        objective = read_aim(aim, maximise, at_least)
    except ValueError as problem:
        raise OptionsError(str(problem)) from None
    labels = labels_or_problem(options)[0] if options.split == "dev" else None
    config = build_config(options)
    judge, models = config.judge, config.models
    wraps = variants_of(judge, [] if without_probes else probes_named(only), repeats)
    if dry_run:
        _print_plan(config, wraps, is_batch=batch, as_json=as_json)
        return
    name = re.sub(r"[^a-z0-9]+", "-", full_name(judge, models).casefold()).strip("-")
    out = out or Path(f"certificate-{name}")
    together = {BATCHES: partial(_all_variants, wraps)} if batch and len(wraps) > 1 else {}
    runs = {name: (config, wrap) for name, wrap in (together | wraps).items()}
    needs_verdicts = {UNCHANGED, BATCHES}
    has_errors = run_all(runs, out, options.max_usd, retry, batch=batch, needs_verdicts=needs_verdicts)
    facts = {name: str(getattr(judge, name, "")) for name in ("inputs", "calls", "source")}
    has_none_yet = labels is not None and options.threshold is None
    threshold = _threshold(out, objective, options.suite) if has_none_yet else ""
    measured = {name: _measured(out / name) for name in wraps}
    ahead = [_measured(out / name) for name in together]
    certificate = make_certificate(measured, labels, threshold, facts, ahead)
    text = json.dumps(certificate, indent=2)
    contents = {"json": text, "md": to_markdown(certificate), "html": to_html(certificate)}
    for ending, content in contents.items():
        atomic_write(out / f"certificate.{ending}", content)
    if as_json:
        typer.echo(text)
    else:
        plain_console().print(to_markdown(certificate), soft_wrap=True)
    typer.echo(f"wrote {out / 'certificate.html'}, certificate.md and certificate.json beside it", err=True)
    if not as_json and options.split == "dev":
        frozen = {} if isinstance(threshold, str) else {"threshold": out / "threshold.json"}
        chosen = typed(options, split="test", limit=None, ids=None, out=f"runs/{name}-test", **frozen)
        next_step("run it on test", "arb", "judges", "run", *chosen)
    raise typer.Exit(int(has_errors))


def _print_plan(
    config: RunConfig, wraps: Mapping[str, Wrap | None], *, is_batch: bool, as_json: bool
) -> None:
    """Print the plan of all runs together; a call that several of them make is counted once."""
    from arb.judges.cli.plan import print_plan
    from arb.judges.run.plan import plan_run

    if not as_json:
        typer.echo(f"{len(wraps)} runs: {', '.join(wraps)}")
    made = plan_run(config, is_batch=is_batch, wrap=partial(_all_variants, wraps))
    print_plan(made, config.max_usd, is_batch=is_batch, as_json=as_json)


def _all_variants(
    wraps: Mapping[str, Wrap | None], judge: AnyJudge, views: RunSource, ids: Sequence[str]
) -> AnyJudge:
    from arb.judges.ensembles.certificate import AllVariants

    return AllVariants(judge, tuple(wrap(judge, views, ids) for wrap in wraps.values() if wrap is not None))


def _measured(folder: Path) -> MeasuredRun:
    from arb.judges.ensembles.certificate import MeasuredRun
    from arb.judges.run.folder import PREDICTIONS, read_judgments, read_run

    digest = hashlib.sha256((folder / PREDICTIONS).read_bytes()).hexdigest()
    return MeasuredRun(read_run(folder), list(read_judgments(folder)), digest)


def _threshold(out: Path, aim: Objective, suite: str | None) -> Threshold | str:
    """Return the threshold, which is also written next to the report, or why there is none."""
    from arb.judges.ensembles.certificate import UNCHANGED
    from arb.judges.ensembles.threshold import write_threshold

    path = out / "threshold.json"
    try:
        found = choose_from_run(out / UNCHANGED, aim, suite)
    except ValueError as problem:
        path.unlink(missing_ok=True)
        return str(problem).removeprefix(f"{out / UNCHANGED}: ")
    write_threshold(path, found)
    return found
