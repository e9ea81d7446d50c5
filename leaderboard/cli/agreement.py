"""``arb leaderboard agreement`` and ``ceiling``: agreement of annotators, and the limit for judges."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from arb.core.cli import (
    JsonOption,
    SuiteOption,
    file_argument,
    file_option,
    plain_console,
    print_json,
    read_settings,
    read_suite,
    stop,
)
from arb.core.console import NOT_DEFINED, coefficient, interval, percent, text_table
from arb.core.lazy import lazy_imports
from arb.core.suites.targets import Target
from arb.core.vocabulary import BENCHMARK_TITLES
from leaderboard.cli.labels import ANNOTATIONS_HELP, EitherSplitOption, read_annotations, read_label_sets
from leaderboard.cli.score import TableLine, metric_columns, read_verdicts, score_table

with lazy_imports():
    from arb.core import suite as suites
    from leaderboard import judge_names
    from leaderboard import report as reports
    from leaderboard.labels import agreement as agreements
    from leaderboard.labels import coefficients, quality
    from leaderboard.paper import published

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console
    from rich.table import Table

    from arb.core.settings import Settings
    from arb.core.suite import Suite
    from leaderboard.labels.agreement import Agreement, AgreementReport, OpenItem, QuestionAgreement
    from leaderboard.labels.labels import LabelSet
    from leaderboard.labels.quality import DisagreementRates, NoiseBand
    from leaderboard.score import Score

FileOption = Annotated[
    Path | None,
    file_option("--annotations", help=f"{ANNOTATIONS_HELP} (default: those that judges are scored on)."),
]


def agreement(
    split: EitherSplitOption = None,
    annotations: FileOption = None,
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
    print_agreement(report, measured, title, items, plain_console())
    for target in chosen.targets:
        if target not in measured:
            typer.echo(f"{target.title}: its answers are numbers, and agreement on numbers is not measured.")
    if split != "dev" and not chosen.shows_labels("test"):
        typer.echo("The test labels of this suite are hidden, so test trajectories are not listed.")


def ceiling(
    verdicts: Annotated[
        list[Path] | None, file_argument(help="Also evaluate the judges of these prediction files.")
    ] = None,
    split: Annotated[Literal["dev", "test"], typer.Option(help="Score the files on this split.")] = "test",
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
    console = plain_console()
    print_ceiling(scores, rates, chosen.scored_targets, console)
    if bands:
        print_bands(bands, main.title.lower(), console)


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
    """Return each published judge's score on the main target, by row id; only the official suite has any."""
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


AGREEMENT_COLUMNS = ("doubles", "agree", "kappa", "95 %", "alpha", "95 %", "AC1", "95 %", "left out")


def print_agreement(
    report: AgreementReport,
    targets: Sequence[Target],
    title: str,
    items: Sequence[OpenItem] | None,
    console: Console,
) -> None:
    """Print the report's tables, and the list of ``items`` unless it is None (labels are hidden)."""
    console.print(
        f"{title}: {report.annotations:,} annotations of {report.trajectories:,} trajectories by "
        f"{report.annotators} annotators; {report.doubled:,} trajectories annotated at least twice"
    )
    if not report.doubles:
        console.print("No trajectory has two annotators. Have some annotated twice to measure agreement.")
        return
    overall = text_table("question", figures=AGREEMENT_COLUMNS)
    for target in targets:
        overall.add_row(target.title, *_figures(report.questions[target.name].overall))
    console.print(overall)
    for target in targets:
        console.print(_of_target(target, report.questions[target.name]))
    for target in targets:
        if len(target.values) > 2:  # for two answers the coefficients are enough
            console.print(_confusion(target, report.questions[target.name]))
    ordered = [target.name for target in targets if target.ordered]
    level = f" ({', '.join(ordered)}: ordinal)" if ordered else ""
    console.print("Doubles are trajectories with two annotators. Those with an unsure answer are left out.")
    console.print(f"The coefficients are Cohen's kappa, Krippendorff's alpha{level} and Gwet's AC1.")
    console.print("Use AC1 if nearly all answers are the same, since kappa is then close to 0.")
    console.print("The 95 % intervals are over tasks.")
    console.print(_wanted(report, targets))
    console.print("A dash means that this is not defined, for example because all answers are equal.")
    if any(each.others_doubles for found in report.questions.values() for each in found.by_annotator):
        console.print(_annotators(report, targets))
        console.print(
            "An annotator needs training if the interval of the difference is below 0. The intervals are "
            "simultaneous: in 95 % of such tables, all of them cover the true differences."
        )
    else:
        console.print(
            "To see who needs training, add a third annotator, so that each can be compared with the rest."
        )
    if items:
        console.print(_items(items))


def _figures(each: Agreement) -> list[str]:
    cells = [f"{each.pairs:,}", percent(each.percent)]
    for value, ends in ((each.kappa, each.kappa_ci), (each.alpha, each.alpha_ci), (each.ac1, each.ac1_ci)):
        within = "" if ends is None else f"{coefficient(ends[0])} to {coefficient(ends[1])}"
        cells += [coefficient(value), within]
    return [*cells, f"{each.left_out:,}"]


def _of_target(target: Target, result: QuestionAgreement) -> Table:
    table = text_table(target.title, figures=AGREEMENT_COLUMNS)
    for name, found in result.by_benchmark.items():
        table.add_row(BENCHMARK_TITLES.get(name, name), *_figures(found))
    table.add_section()
    for pair in result.by_pair:
        table.add_row(f"{pair.first} and {pair.second}", *_figures(pair.agreement))
    table.add_section()
    for each in result.over_time:
        table.add_row(each.name if "W" in each.name else f"doubles {each.name}", *_figures(each.agreement))
    return table


def _wanted(report: AgreementReport, targets: Sequence[Target]) -> Table:
    heading = f"doubles still needed for an interval of ± {coefficients.HALF_WIDTH:g}"
    table = text_table(heading, figures=("kappa", "alpha", "AC1"))
    for target in targets:
        wanted = report.questions[target.name].wanted.values()
        table.add_row(target.title, *(NOT_DEFINED if n is None else f"{n:,}" for n in wanted))
    return table


def _annotators(report: AgreementReport, targets: Sequence[Target]) -> Table:
    figures = ("doubles", "agree", "doubles of others", "agree", "difference, 95 %")
    table = text_table("annotator compared with the others", "question", figures=figures)
    table.add_column("")
    for target in targets:
        for each in report.questions[target.name].by_annotator:
            cells = [each.annotator, target.title, f"{each.doubles:,}", percent(each.percent)]
            cells += [f"{each.others_doubles:,}", percent(each.others_percent), interval(each.difference_ci)]
            table.add_row(*cells, "needs training" if each.needs_training else "")
    return table


def _confusion(target: Target, result: QuestionAgreement) -> Table:
    titles = [target.answer_words(value) for value in target.values]
    table = text_table(f"{target.name}: first annotator \\ second", figures=titles)
    for title, row in zip(titles, result.confusion, strict=True):
        table.add_row(title, *(f"{count:,}" for count in row))
    return table


def _items(items: Sequence[OpenItem]) -> Table:
    table = text_table("trajectories on which annotators differ", "question: answers in order")
    for item in items:
        parts = [f"{name}: {' / '.join(map(str, item.answers[name]))}" for name in item.disagreeing]
        place = "".join(
            f", {name} {value}" for name, value in (("step", item.step), ("part", item.part)) if value
        )
        table.add_row(f"{item.trajectory_id}{place}", "; ".join(parts))
    return table


def print_ceiling(
    scores: Mapping[str, Score | None],
    rates: Mapping[str, DisagreementRates],
    targets: Sequence[Target],
    console: Console,
) -> None:
    """Print the second annotators' metrics for each target, and how often they disagree with the first."""
    for target in targets:
        label, found = target.name, scores[target.name]
        if found is None:
            console.print(f"{target.title}: no trajectory has answers of two annotators")
            continue
        differ = rates.get(label)  # of numbers, none
        cells = {("overall", "overall"): found["overall"]}
        cells |= {("by_benchmark", name): cell for name, cell in found["by_benchmark"].items()}
        lines: list[TableLine] = []
        for (group, name), cell in cells.items():
            rate = None
            if differ:
                rate = (differ.overall if group == "overall" else differ.by_benchmark[name]).rate
            columns = [("doubles", f"{cell['n']:,}"), ("differ", percent(rate))]
            lines.append((group, name, [*columns, *metric_columns(cell, target)]))
        console.print(score_table(target, lines))
        if differ:
            turned = [(differ.of(None, code), name) for name, code in _answer_codes(target)]
            parts = [f"{each.differing} of {each.doubles} {name} answers" for each, name in turned]
            console.print(f"The second annotator disagreed with the first on {' and '.join(parts)}.")


def print_bands(bands: Mapping[str, NoiseBand | None], label: str, console: Console) -> None:
    table = text_table(
        f"precision on {label} if another person had given the labels",
        figures=("as labelled", "mean", "95 %"),
    )
    for judge, band in bands.items():
        texts = [NOT_DEFINED, NOT_DEFINED, ""]
        if band is not None:
            texts = [percent(band.precision), percent(band.mean), interval([band.low, band.high])]
        table.add_row(judge, *texts)
    console.print(table)
