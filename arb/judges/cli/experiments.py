"""The commands ``judges ablate``, ``judges probe`` and ``judges threshold``.

``ablate`` repeats the paper's Table 2 (the simplified judge with tree, screenshot, both or neither).
``probe`` counts how many verdicts change if the judge sees something else. ``threshold`` chooses a threshold
on the scores of a dev run, for `run --threshold`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from arb.core.cli import (
    JsonOption,
    RunSuiteOption,
    flags,
    next_step,
    plain_console,
    print_json,
    read_settings,
    stop,
)
from arb.core.console import interval, percent, text_table
from arb.core.files import atomic_write
from arb.core.formats import FORMATS
from arb.core.lazy import lazy_imports
from arb.core.suites.targets import Target, verdict_target
from arb.judges.cli.options import RunOptions, described, suite_of_run, typed, with_run_options
from arb.judges.cli.run import run_all
from arb.judges.cli.text import print_template
from arb.judges.types import AnyJudge, Judge, OptionsError, models_of

if TYPE_CHECKING:
    from rich.table import Table

with lazy_imports():
    import numpy as np

    from arb.core import suite as suites
    from arb.judges import registry
    from arb.judges.ensembles import certificate, probes, threshold_selection, voting
    from arb.judges.ensembles import threshold as thresholds
    from arb.judges.run import config as run_config
    from arb.judges.run import folder as run_folder
    from arb.judges.run import runner, scheduler, selection
    from leaderboard import calibration
    from leaderboard import report as scoring
    from leaderboard.labels import labels as label_files
    from leaderboard.labels import source as label_source


PAPERS_MODEL: Final = "gpt-4o-mini-2024-07-18"
VARIANTS: Final = (
    ("simplified-both", True, True),
    ("simplified-axtree", True, False),
    ("simplified-screenshot", False, True),
    ("simplified-neither", False, False),
)
"""The rows of Table 2: the judge's name, whether it sees the tree, and whether it sees the screenshot."""

FIGURES: Final = ("precision", "recall", "f1")

Variant = Mapping[str, Any]
"""A row of the ablation with the keys of report.json: ``judge``, ``tree``, ``screenshot`` and ``report``."""

Printed = Mapping[tuple[str, str, str], tuple[float, ...]]
"""Precision, recall and F1 of the paper's Table 2 as fractions, keyed by (tree, screenshot, label)."""


@with_run_options(without=("judge", "cascade", "refresh"))
def ablate(
    options: RunOptions,
    out: Path,
    retry: str | None = None,
    as_json: JsonOption = False,
) -> None:
    """Repeat the ablation in the paper's Table 2 with a model of your choice.

    Runs the simplified judge with the accessibility tree, the screenshot, both, and neither (on GPT-4o Mini
    unless you choose a --model), and scores each variant. With GPT-4o Mini, the table also shows the paper's
    figures. Run the same command again to resume.
    """
    model = options.model or PAPERS_MODEL
    labels, suite = labels_or_problem(options)
    try:
        main = verdict_target(suite.targets).name
    except ValueError as problem:
        raise OptionsError(str(problem)) from None
    runs = {}
    for family, _, _ in VARIANTS:
        runs[family] = (run_config.build_config(replace(options, judge=family, model=model)), None)
    has_errors = run_all(runs, out, options.max_usd, retry)
    variants: list[Variant] = []
    for family, tree, screenshot in VARIANTS:
        judged = list(run_folder.read_judgments(out / family))
        scores = certificate.score_answers(judged, labels, "published")
        variants.append({"judge": family, "tree": tree, "screenshot": screenshot, "report": scores})
    if not _write_report(out, {"model": model, "variants": variants}, as_json):
        is_papers = (model, suite.name) == (PAPERS_MODEL, suites.OFFICIAL)
        plain_console().print(ablation_table(variants, suite.targets, _printed() if is_papers else {}))
        best = max(variants, key=lambda each: _f1_of(each, main))
        chosen = {"judge": best["judge"], "model": model, "split": "test", "limit": None, "ids": None}
        chosen |= {"out": f"runs/{best['judge']}"}
        next_step("run the best variant by F1 on test", "judges", "run", *typed(options, **chosen))
    raise typer.Exit(int(has_errors))


def _f1_of(variant: Variant, target: str) -> float:
    """Return the F1 of a variant, or 0 if it is undefined or the variant gave no verdict."""
    found = variant["report"]["labels"][target]
    return (found and found["overall"]["f1"]) or 0.0


def labels_or_problem(options: RunOptions) -> tuple[label_files.LabelSet, suites.Suite]:
    """Return the labels of the chosen split and its suite. Raises OptionsError if the labels are hidden."""
    settings = read_settings()
    suite, _ = selection.select(options, settings)
    try:
        return label_files.load_labels(suite, options.split_name, settings), suite
    except (label_source.LabelsUnavailable, label_files.LabelsInvalid) as reason:
        raise OptionsError(f"{options.split} cannot be scored: {reason}; use --split dev") from None


def _printed() -> Printed:
    """Return the figures of the paper's Table 2."""
    from leaderboard.paper.published_files import PUBLISHED  # noqa: PLC0415 - its package loads at once

    return {
        (line["tree"], line["screenshot"], line["label"]): tuple(float(line[name]) / 100 for name in FIGURES)
        for line in suites.read_rows(PUBLISHED / "ablation.csv")
    }


def ablation_table(variants: Sequence[Variant], targets: Sequence[Target], printed: Printed) -> Table:
    """Return a table of precision, recall and F1 per binary target, in percent with 95 % intervals.

    ``printed`` adds columns with the paper's figures. Leave it empty if the paper did not use the model.
    """
    more = ["95 %", "paper"] if printed else ["95 %"]
    headings = [each for figure in ("precision", "recall", "F1") for each in (figure, *more)]
    table = text_table("tree", "screenshot", "label", figures=headings, title_justify="left")
    for variant in variants:
        for target in targets:
            found = variant["report"]["labels"].get(target.name)
            if found is not None and target.type == "binary":
                table.add_row(*_row(variant, target, found["overall"], printed))
        table.add_section()
    return table


def _row(variant: Variant, target: Target, cell: Mapping[str, Any], printed: Printed) -> list[str]:
    seen = ["yes" if variant[name] else "no" for name in ("tree", "screenshot")]
    row = [*seen, target.title]
    for place, figure in enumerate(FIGURES):
        row += [percent(cell[figure]), interval(cell[f"{figure}_ci"])]
        if printed:
            row.append(percent(printed[seen[0], seen[1], target.name][place]))
    return row


@with_run_options(without=("refresh",))
def probe(
    options: RunOptions,
    out: Path,
    only: list[str] | None = None,
    retry: str | None = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how often a judge changes its verdict if it sees something else.

    Each probe changes what the judge sees: for example, it removes the agent's reasoning, replaces the goal,
    or adds a page that claims success. Judges every trajectory unchanged, once with each probe, and once more
    unchanged. The last run shows how many verdicts change without any probe. Prints a report, and writes it
    to OUT/report.json. Run the same command again to resume.
    """
    unchanged, again = certificate.UNCHANGED, certificate.repeat_name(2)
    chosen = probes.probes_named(only)
    config = run_config.build_config(options)
    if not config.models:
        raise OptionsError(f"{config.judge.name} calls no model, so its verdicts cannot change; use another")
    runs = {name: (config, wrap) for name, wrap in variants_of(config.judge, chosen, repeats=2).items()}
    has_errors = run_all(runs, out, options.max_usd, retry, needs_verdicts={unchanged})
    name = run_folder.read_run(out / unchanged)["judge"]["name"]
    judged = {each: list(run_folder.read_judgments(out / each)) for each in runs}
    reports = [
        probes.report_probe(each, judged[unchanged], judged[each.name], [judged[again]]) for each in chosen
    ]
    if not _write_report(out, {"judge": name, "split": options.split, "probes": reports}, as_json):
        plain_console().print(probes.probe_table(reports, name))
        next_step("certify the judge, reusing these replies", "judges", "certify", *typed(options))
    raise typer.Exit(int(has_errors))


def _write_report(out: Path, report: Mapping[str, Any], as_json: bool) -> bool:
    """Write the report to OUT/report.json; with ``as_json``, also print it. Return ``as_json``."""
    report = {"format": FORMATS["report.json"], **report}
    atomic_write(out / "report.json", json.dumps(report, indent=2).encode() + b"\n")
    if as_json:
        print_json(report)
    return as_json


def variants_of(
    judge: AnyJudge, chosen: Sequence[probes.Probe], repeats: int
) -> dict[str, runner.Wrap | None]:
    """Return the runs of an experiment by name, each with the function that changes the judge, if any.

    The unchanged judge comes first, then one run per chosen probe, then the repeats of the unchanged judge. A
    judge that calls no model has only the first run, because its verdicts never change.
    """
    wraps: dict[str, runner.Wrap | None] = {certificate.UNCHANGED: None}
    if models_of(judge):
        wraps |= {each.name: partial(_judge_under, each) for each in chosen}
        for number in range(2, repeats + 1):
            wraps[certificate.repeat_name(number)] = partial(_repeated, number)
    return wraps


def _repeated(number: int, judge: Judge, views: scheduler.RunSource, ids: Sequence[str]) -> Judge:
    return certificate.RepeatedJudge(judge, number)


def _judge_under(probe: probes.Probe, judge: Judge, views: scheduler.RunSource, ids: Sequence[str]) -> Judge:
    """Return a judge that sees every run as the probe changes it.

    A probe that replaces the goal takes the goal of one of the trajectories ``ids``.
    """
    goals = {}
    if probe.expected == "fails":
        for each in ids:
            view = views.view(each, judge.wants)
            goals[view.goal] = replace(view, steps=(), answer=None)
    return probes.ProbedJudge(judge, probe, tuple(goals.values()))


@described
def threshold(
    run: Path,
    out: Path,
    aim: str = "f1",
    suite: RunSuiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Choose a threshold: the lowest score that counts as a success.

    Needs a run on dev with scores, made with --samples or --logprobs. Apply the threshold to any split with
    `run --threshold FILE` and the same judge, models and options. The file is written only if
    cross-validation shows that the threshold beats the judge's own verdicts.
    """
    try:
        found = choose_from_run(run, threshold_selection.read_aim(aim), suite)
        out.parent.mkdir(parents=True, exist_ok=True)
        thresholds.write_threshold(out, found)
    except (label_source.LabelsUnavailable, label_files.LabelsInvalid) as problem:
        stop(f"choosing a threshold needs labels: {problem}", code=1)
    except threshold_selection.NoThresholdError as problem:
        stop(str(problem), code=1)
    except ValueError as problem:
        stop(str(problem))
    if as_json:
        print_json(asdict(found))
        return
    print_template("threshold.txt.j2", found=found, out=out, fewest=calibration.FEWEST_SCORES)
    purpose = "use it on test, with the other options of the run"
    next_step(purpose, "judges", "run", *_test_run(found, run, out, suite))


def _test_run(found: thresholds.Threshold, run: Path, threshold: Path, suite: str | None) -> list[str]:
    """Return arguments for `judges run` that apply a threshold to the split test.

    The user has to add the options that connect to the models.
    """
    known = found.configuration
    name, voted = found.judge, {}
    if (known["samples"] or 1) > 1:
        voted = {"samples": known["samples"], "vote": known["vote"]}
        name = name.removesuffix(voting.samples_suffix(known["samples"], known["vote"]))
    judge = [name if any(name in entry.names for entry in registry.entries()) else "JUDGE"]
    models = [f"{role}={model['model']}" for role, model in known["models"].items()]
    chosen = {
        "suite": suite or found.suite,
        "split": "test",
        "cascade": known["cascade"],
        "model_of": models,
        **voted,
    }
    files = {"threshold": threshold, "out": run.with_name(f"{run.name}-test")}
    return [*([] if known["cascade"] else judge), *flags(**chosen, **files)]


def choose_from_run(
    folder: Path, aim: threshold_selection.Objective, suite_name: str | None
) -> thresholds.Threshold:
    """Choose a threshold on the dev run in a folder.

    Raises OptionsError if the run cannot be used, NoThresholdError if no threshold can be recommended, and
    the errors of reading labels and files.
    """
    configuration = run_folder.read_run(folder)["configuration"]
    if configuration["split"] != "dev":
        raise OptionsError(f"{folder}: is a run on {configuration['split']}; name a run on dev")
    if configuration.get("threshold") is not None:
        raise OptionsError(f"{folder}: was run with --threshold; name a run without it")
    settings, suite = read_settings(), suite_of_run(configuration["suite"], suite_name)
    records = list(run_folder.read_judgments(folder))
    scores = certificate.scores_of(records)
    if all(score is None for score, _ in scores.values()):
        raise OptionsError(f"{folder}: no answer has a score; run the judge with --samples or --logprobs")
    labels = certificate.labels_of(label_files.load_labels(suite, "dev", settings), scores)
    counted = [scores[each.trajectory_id][1] for each in labels.trajectories]
    verdicts = {each["trajectory_id"]: each["answer"].get("success") for each in records}
    codes = {True: 1, False: 0, None: -1}
    plain = [codes[verdicts[each.trajectory_id]] for each in labels.trajectories]
    choice = threshold_selection.recommend_threshold(
        np.array(counted, dtype=np.float64),
        np.array(plain, dtype=np.int8),
        labels.primary[verdict_target(labels.targets).name],
        scoring.task_names(labels),
        aim,
    )
    return thresholds.Threshold(
        suite=suite.name,
        split="dev",
        label_version=labels.version,
        judge=configuration["judge"],
        figure=str(aim),
        configuration=thresholds.score_settings(configuration),
        **asdict(choice),
    )
