"""A judge's page in words and numbers: figures by benchmark and agent, counts, submissions. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from dataset_script.vocabulary import AGENT_TITLES, BENCHMARK_TITLES, LABEL_TITLES
from leaderboard.board import Board, BoardRow
from leaderboard.published_rows import SECOND_ANNOTATOR
from leaderboard.report_tables import interval
from space.axis import Axis, Span
from space.board_figures import Cell, figure_cell
from space.row_names import short_name

RATES: Final = MappingProxyType(
    {"precision": "Precision", "recall": "Recall", "f1": "F1", "kappa": "Kappa", "accuracy": "Accuracy"}
)
WITH_WHISKERS: Final = ("precision", "recall")
COUNTS: Final = MappingProxyType({"tp": "TP", "fp": "FP", "fn": "FN", "tn": "TN", "no_verdict": "None"})
GROUPS: Final = (
    ("by_benchmark", "By benchmark", BENCHMARK_TITLES),
    ("by_agent", "By agent", AGENT_TITLES),
)


@dataclass(frozen=True)
class Line:
    """One row of the table: a cell of the report; ``words`` tells the intervals."""

    title: str
    n: int
    positives: int
    rates: Mapping[str, Cell]
    spans: Mapping[str, Span | None]
    words: Mapping[str, str]
    counts: Mapping[str, str]
    note: str


@dataclass(frozen=True)
class Section:
    """Lines under a heading; the first section is the overall line, without one."""

    title: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Confusion:
    """The overall counts: what the judge said against what experts said; a missing verdict is a no."""

    tp: int
    fp: int
    fn: int
    tn: int
    no_verdict: int
    said_yes_share: float | None
    true_share: float | None


@dataclass(frozen=True)
class Try:
    """A submission of the judge: how it did, and whether the board ranks it."""

    row_id: str
    date: str
    precision: Cell
    recall: Cell
    is_ranked: bool
    is_this: bool


@dataclass(frozen=True)
class JudgeView:
    """Everything that follows from the board; ``answers`` are the labels that the judge gives verdicts on."""

    row: BoardRow
    name: str
    label: str
    answers: tuple[str, ...]
    sections: tuple[Section, ...]
    axes: Mapping[str, Axis]
    human: Mapping[str, float | None]
    confusion: Confusion | None
    rank: Mapping[str, int] | None
    n_ranked: int
    intervals: str | None
    note: str
    tries: tuple[Try, ...]


def view_judge(board: Board, row: BoardRow, label: str) -> JudgeView | None:
    """The page of a row for a label; None where the judge gives no verdicts on it."""
    found = row.labels.get(label)
    if not found:
        return None
    human = _human(board, label)
    axes = {figure: _axis(found, human, figure) for figure in WITH_WHISKERS}
    sections = [Section("", (_line("All trajectories", found["overall"], label, axes),))]
    for key, title, titles in GROUPS:
        names = [*(name for name in titles if name in found[key]), *sorted(set(found[key]) - set(titles))]
        lines = tuple(_line(titles.get(name, name), found[key][name], label, axes) for name in names)
        if lines:
            sections.append(Section(title, lines))
    return JudgeView(
        row=row,
        name=short_name(row),
        label=label,
        answers=tuple(name for name in LABEL_TITLES if row.labels.get(name)),
        sections=tuple(sections),
        axes=axes,
        human={
            figure: None if human is None or human[figure] is None else axes[figure].place(human[figure])
            for figure in WITH_WHISKERS
        },
        confusion=_confusion(found["overall"]),
        rank=found["rank"],
        n_ranked=sum(1 for other in board.rows if (other.labels.get(label) or {}).get("rank")),
        intervals=found["intervals"],
        note=found["note"],
        tries=_tries(board, row, label),
    )


def _human(board: Board, label: str) -> Mapping[str, Any] | None:
    row = next((row for row in board.rows if row.id == SECOND_ANNOTATOR), None)
    found = row.labels.get(label) if row else None
    return found["overall"] if found else None


def _axis(found: Mapping[str, Any], human: Mapping[str, Any] | None, figure: str) -> Axis:
    """One that holds every value; intervals on few runs may run off it, where they would stretch it."""
    cells = [found["overall"], *found["by_benchmark"].values(), *found["by_agent"].values()]
    values = [cell[figure] for cell in cells]
    values += found["overall"].get(f"{figure}_ci") or ()
    values += [human[figure]] if human else []
    return Axis.around(values)


def _line(title: str, cell: Mapping[str, Any], label: str, axes: Mapping[str, Axis]) -> Line:
    return Line(
        title=title,
        n=cell["n"],
        positives=cell["positives"],
        rates={figure: figure_cell(cell, figure, label) for figure in RATES},
        spans={figure: axes[figure].span(cell[figure], cell.get(f"{figure}_ci")) for figure in WITH_WHISKERS},
        words={
            figure: f"95 %: {interval(ends)}" if (ends := cell.get(f"{figure}_ci")) else ""
            for figure in (*WITH_WHISKERS, "f1")
        },
        counts={name: "–" if cell.get(name) is None else f"{cell[name]:,}" for name in COUNTS},
        note=cell.get("note") or "",
    )


def _confusion(cell: Mapping[str, Any]) -> Confusion | None:
    if cell["tp"] is None:
        return None
    n = cell["n"]
    return Confusion(
        *(cell[name] for name in COUNTS),
        said_yes_share=(cell["tp"] + cell["fp"]) / n if n else None,
        true_share=cell["positives"] / n if n else None,
    )


def _tries(board: Board, row: BoardRow, label: str) -> tuple[Try, ...]:
    """Every submission of the same judge by the same account, the newest first."""
    if row.provenance != "scored":
        return ()
    same: Sequence[BoardRow] = [
        other
        for other in board.rows
        if other.provenance == "scored" and (other.account, other.judge) == (row.account, row.judge)
    ]
    found = []
    for other in sorted(same, key=lambda other: (other.date, other.id), reverse=True):
        answers = other.labels.get(label)
        cell = answers["overall"] if answers else None
        found.append(
            Try(
                other.id, other.date,
                figure_cell(cell, "precision", label), figure_cell(cell, "recall", label),
                bool(answers and answers["best"]), other.id == row.id,
            )
        )  # fmt: skip
    return tuple(found)
