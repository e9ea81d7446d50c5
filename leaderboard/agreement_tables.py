"""Agreement between annotators, and the ceiling that follows from it, as tables for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.console import coefficient, interval, percent, text_table
from dataset_script.vocabulary import BENCHMARK_TITLES, LABEL_TITLES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console
    from rich.table import Table

    from leaderboard.agreement import Agreement
    from leaderboard.agreement_report import AgreementReport, OpenItem, QuestionAgreement
    from leaderboard.label_noise import DisagreementRates, NoiseBand

FIGURES = ("doubles", "agree", "kappa", "alpha", "left out")


def print_agreement(
    report: AgreementReport, title: str, items: Sequence[OpenItem] | None, console: Console
) -> None:
    """Print every table; ``items`` are those that may be seen, None where the labels are hidden."""
    from leaderboard.annotations import QUESTION_TITLES

    console.print(
        f"{title}: {report.annotations:,} annotations of {report.trajectories:,} trajectories by "
        f"{report.annotators} annotators; {report.doubled:,} trajectories annotated at least twice"
    )
    if not report.doubles:
        console.print("no trajectory has two annotators; assign some a second time to learn the agreement")
        return
    overall = text_table("question", figures=FIGURES)
    for question, result in report.questions.items():
        overall.add_row(QUESTION_TITLES[question], *_figures(result.overall))
    console.print(overall)
    for question, result in report.questions.items():
        console.print(_of_question(QUESTION_TITLES[question], result))
    console.print(_confusion(report.questions["optimality"]))
    console.print("kappa is Cohen's, alpha Krippendorff's (optimality: ordinal); left out: one was unsure")
    if items:
        console.print(_items(items))


def _figures(found: Agreement) -> list[str]:
    return [
        f"{found.pairs:,}",
        percent(found.percent),
        coefficient(found.kappa),
        coefficient(found.alpha),
        f"{found.left_out:,}",
    ]


def _of_question(title: str, result: QuestionAgreement) -> Table:
    table = text_table(title, figures=FIGURES)
    for name, found in result.by_benchmark.items():
        table.add_row(BENCHMARK_TITLES.get(name, name), *_figures(found))
    table.add_section()
    for pair in result.by_pair:
        table.add_row(f"{pair.first} and {pair.second}", *_figures(pair.agreement))
    table.add_section()
    for period in result.over_time:
        name = period.name if "W" in period.name else f"doubles {period.name}"
        table.add_row(name, *_figures(period.agreement))
    return table


def _confusion(result: QuestionAgreement) -> Table:
    from leaderboard.annotations import ANSWERS, OPTIMALITY_TITLES

    grades = [f"{grade}. {OPTIMALITY_TITLES[grade]}" for grade in ANSWERS["optimality"]]
    table = text_table("optimality: first annotator \\ second", figures=grades)
    for grade, row in zip(grades, result.confusion, strict=True):
        table.add_row(grade, *(f"{count:,}" for count in row))
    return table


def _items(items: Sequence[OpenItem]) -> Table:
    table = text_table("trajectories on which annotators differ", "question: answers in order")
    for item in items:
        result = [
            f"{question}: {' / '.join(map(str, item.answers[question]))}" for question in item.disagreeing
        ]
        table.add_row(item.trajectory_id, "; ".join(result))
    return table


def print_ceiling(
    scores: Mapping[str, dict[str, Any] | None], rates: Mapping[str, DisagreementRates], console: Console
) -> None:
    """Print the second annotators' figures for each label, with how often the two answers differ."""
    figures = ("doubles", "differ", "precision", "95 %", "recall", "95 %", "F1", "kappa", "TP/FP/FN/TN")
    for label, found in scores.items():
        if found is None:
            console.print(f"{LABEL_TITLES[label]}: no trajectory has two answers")
            continue
        table = text_table(LABEL_TITLES[label], figures=figures)
        table.add_row("overall", *_ceiling_cells(found["overall"], rates[label].overall.rate))
        table.add_section()
        for name, cell in found["by_benchmark"].items():
            rate = rates[label].by_benchmark[name].rate
            table.add_row(BENCHMARK_TITLES.get(name, name), *_ceiling_cells(cell, rate))
        console.print(table)


def _ceiling_cells(cell: dict[str, Any], rate: float | None) -> list[str]:
    return [
        f"{cell['n']:,}",
        percent(rate),
        percent(cell["precision"]),
        interval(cell["precision_ci"]),
        percent(cell["recall"]),
        interval(cell["recall_ci"]),
        percent(cell["f1"]),
        coefficient(cell["kappa"]),
        f"{cell['tp']}/{cell['fp']}/{cell['fn']}/{cell['tn']}",
    ]


def print_bands(bands: Mapping[str, NoiseBand | None], console: Console) -> None:
    """Print what label noise alone can do to each judge's precision on success."""
    table = text_table(
        "precision on success, had another person given the labels", figures=("as labelled", "mean", "95 %")
    )
    for judge, band in bands.items():
        if band is None:
            table.add_row(judge, "–", "–", "")
        else:
            table.add_row(judge, percent(band.precision), percent(band.mean), interval([band.low, band.high]))
    console.print(table)
