"""``arb leaderboard agreement`` and ``ceiling``: agreement of annotators, and the limit for judges."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from arb.core.cli import (
    JsonOption,
    SuiteOption,
    print_json,
    read_settings,
    read_suite,
    stop,
)
from arb.core.lazy import lazy_imports
from arb.core.suites.targets import Target
from leaderboard.cli.labels import read_annotations, read_label_sets
from leaderboard.cli.options import described
from leaderboard.cli.score import metric_columns, read_verdicts
from leaderboard.cli.text import print_template

with lazy_imports():
    from arb.core import suite as suites
    from leaderboard import judge_names
    from leaderboard import report as reports
    from leaderboard.labels import agreement as agreements
    from leaderboard.labels import coefficients, quality
    from leaderboard.paper import published

if TYPE_CHECKING:
    from arb.core.settings import Settings
    from arb.core.suite import Suite
    from leaderboard.labels.agreement import OpenItem
    from leaderboard.labels.labels import LabelSet
    from leaderboard.labels.quality import DisagreementRates
    from leaderboard.score import Score


@described
def agreement(
    split: Literal["dev", "test"] | None = None,
    annotations: Path | None = None,
    suite: SuiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure how well annotators agree.

    Prints percent agreement, Cohen's kappa, Krippendorff's alpha and Gwet's AC1 with 95 % intervals, by
    question, benchmark, pair of annotators and time. Also shows which annotators need training, and how many
    more trajectories need a second annotator. Lists the trajectories on which annotators disagree, unless
    their labels are hidden.
    """
    settings = read_settings()
    chosen = read_suite(suite, settings)
    found = read_annotations(chosen, settings, split, annotations)
    report = agreements.agreement_report(found, chosen.targets)
    items: list[OpenItem] | None = None
    if split != "test" or chosen.shows_labels("test"):
        ids = {each.trajectory_id for each in chosen.trajectories if chosen.shows_labels(each.split)}
        visible = [annotation for annotation in found if annotation.trajectory_id in ids]
        items = [item for item in agreements.open_items(visible, chosen.targets) if item.disagreeing]
    if as_json:
        print_json({"suite": chosen.name, "split": split, **agreements.agreement_json(report, items)})
        return
    measured = [target for target in chosen.targets if target.name in report.questions]
    title = f"{chosen.name} · {split or 'dev and test'}"
    nouns = "trajectories, steps and parts" if chosen.parts else "trajectories"
    values = {"report": report, "targets": measured, "title": title, "items": items, "nouns": nouns}
    print_template("agreement.txt.j2", **values, half_width=coefficients.HALF_WIDTH)
    for target in chosen.targets:
        if target not in measured:
            typer.echo(f"{target.title}: its answers are numbers, and agreement on numbers is not measured.")
    if split != "dev" and not chosen.shows_labels("test"):
        typer.echo("The test labels of this suite are hidden, so test trajectories are not listed.")


@described
def ceiling(
    verdicts: list[Path] | None = None,
    split: Literal["dev", "test"] = "test",
    suite: SuiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score second annotators as if they were a judge.

    Uses every trajectory that two people annotated. Also prints how much label noise of that size could
    change the precision of judges: the published ones (official suite only), and those of your files.
    """
    settings = read_settings()
    chosen = read_suite(suite, settings)
    label_sets, missing = read_label_sets(chosen, settings)
    if not label_sets:
        stop("; ".join(f"no labels of {reason}" for reason in missing), code=1)
    main = chosen.main_target
    if verdicts and main.type != "binary":
        stop(f"files are scored by precision, but the main target {main.name} is not binary; leave them out")
    scored = _scored(verdicts or [], chosen, split, label_sets, settings)
    for reason in missing:
        typer.echo(f"warning: no labels of {reason}", err=True)
    scores = quality.second_annotator_scores(list(label_sets.values()))
    if not any(scores.values()):
        stop(f"no trajectory of {chosen.name} has two annotators; have some annotated a second time", code=1)
    asked = {target.name: target for target in chosen.scored_targets if target.type != "score"}
    rates = {label: quality.disagreement_rates(list(label_sets.values()), label) for label in asked}
    judges = {**_published_judges(chosen), **scored}
    bands = {name: quality.noise_band(found, rates[main.name]) for name, found in judges.items()}
    if as_json:
        content = {
            "suite": chosen.name,
            "label_versions": {name: labels.version for name, labels in label_sets.items()},
            "labels": {
                label: score and {"by_benchmark": score["by_benchmark"], "overall": score["overall"]}
                for label, score in scores.items()
            },
            "disagreement": {label: _rates_json(rate, asked[label]) for label, rate in rates.items()},
            "bands": {name: band and asdict(band) for name, band in bands.items()},
        }
        print_json(content)
        return
    print_template(
        "ceiling.txt.j2",
        scores=scores,
        rates=rates,
        targets=chosen.scored_targets,
        main=main,
        bands=bands,
        columns=metric_columns,
        codes=_answer_codes,
    )


def _rates_json(rates: DisagreementRates, target: Target) -> dict[str, Any]:
    return {
        "overall": asdict(rates.overall),
        "by_benchmark": {name: asdict(own) for name, own in rates.by_benchmark.items()},
        "by_answer": {name: asdict(rates.of(None, code)) for name, code in _answer_codes(target)},
    }


def _answer_codes(target: Target) -> list[tuple[str, int]]:
    if target.type == "binary":
        return [("yes", 1), ("no", 0)]
    return [(value, code) for code, value in enumerate(target.values)]


def _published_judges(suite: Suite) -> dict[str, Score | None]:
    """Return published scores on the main target, keyed by row id. Only the official suite has any."""
    rows = published.load_published_rows() if suite.name == suites.OFFICIAL else ()
    return {
        row.row_id: published.published_label(row.labels[suite.main_target.name])
        for row in rows
        if row.provenance != "reference"
    }


def _scored(
    files: list[Path], suite: Suite, split: str, label_sets: dict[str, LabelSet], settings: Settings
) -> dict[str, Score | None]:
    """Return each file's score on the main target; stop with all errors if files cannot be scored."""
    if files and split not in label_sets:
        stop(f"the files cannot be scored on {split}, because its labels cannot be read", code=1)
    names = [file.name for file in files]
    if len({*names}) < len(names):
        names = judge_names.judge_names(files)
    found = read_verdicts(dict(zip(names, files, strict=True)), suite, split, settings)
    label = suite.main_target.name
    return {
        name: reports.score_report(verdicts, label_sets[split], n_resamples=0)["labels"][label]
        for name, verdicts in found.items()
    }
