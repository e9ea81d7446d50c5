"""A table of the paper as data, Markdown or LaTeX: printed and computed figures, why they differ. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from arb.core.console import markdown_row, markdown_text, percent

FROM_VERDICTS: Final = "verdicts"
FROM_COUNTS: Final = "counts derived from the printed metrics"
DERIVED: Final = (
    "Counts derived from printed metrics give these back wherever whole numbers fit: that they agree shows "
    "that the metrics are consistent; only verdicts can show that they are right."
)
TOLERANCE: Final = 1e-9
"""Fractions of whole numbers; a value half way between two tenths may be rounded either way."""


@dataclass(frozen=True, slots=True)
class TableCell:
    """One figure. ``printed`` and ``computed`` are fractions, None where there is none.

    ``basis`` says what it was computed from; ``note`` why it differs from the printed one, or why it cannot
    be computed. ``n`` is how many trajectories it rests on, None where that is not known.
    """

    printed: float | None
    computed: float | None
    basis: str = ""
    note: str = ""
    n: int | None = None

    @property
    def agrees(self) -> bool | None:
        """Whether the computed figure, to one decimal, is the printed one; None where one is absent."""
        if self.printed is None or self.computed is None:
            return None
        return abs(self.computed - self.printed) <= 0.0005 + TOLERANCE

    @property
    def text(self) -> str:
        """The figure to show: the computed one, else the printed one, as a percentage."""
        return percent(self.printed if self.computed is None else self.computed)


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row: its headings and its cells."""

    headings: tuple[str, ...]
    cells: tuple[TableCell, ...]

    @property
    def basis(self) -> str:
        """What its computed figures were computed from; empty where there is none."""
        found = (cell.basis for cell in self.cells if cell.computed is not None)
        return "; ".join(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class PaperTable:
    """A table. ``groups`` are headings over several columns: (text, how many columns)."""

    number: int
    title: str
    headings: tuple[str, ...]
    groups: tuple[tuple[str, int], ...]
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    remarks: tuple[str, ...] = ()

    def cells(self) -> Iterator[tuple[str, TableCell]]:
        """Every cell with the words that name it."""
        spans = [text for text, width in self.groups for _ in range(width)] or [""] * len(self.columns)
        for row in self.rows:
            for span, column, cell in zip(spans, self.columns, row.cells, strict=True):
                yield ", ".join(filter(None, (*row.headings, span, column))), cell

    def differences(self) -> tuple[tuple[str, TableCell], ...]:
        """The cells whose computed figure is not the printed one."""
        return tuple((name, cell) for name, cell in self.cells() if cell.agrees is False)

    @property
    def is_derived(self) -> bool:
        """Whether a figure was computed from counts that were derived from the printed ones."""
        return any(cell.basis == FROM_COUNTS and cell.agrees is not None for _, cell in self.cells())

    def summary(self) -> str:
        """How many cells agree, in a sentence, by what they were computed from."""
        known: dict[str, list[bool]] = {}
        for _, cell in self.cells():
            if cell.agrees is not None:
                known.setdefault(cell.basis, []).append(cell.agrees)
        absent = sum(1 for _, cell in self.cells() if cell.printed is not None and cell.computed is None)
        parts = [
            f"{sum(agreeing):,} of {len(agreeing):,} figures computed from {basis} are the printed ones"
            for basis, agreeing in sorted(known.items())
        ]
        parts += [f"{absent:,} cannot be computed from what is here"] if absent else []
        return "; ".join(parts) or "no figure is printed to compare with"


READING: Final = (
    "Computed figures; in brackets the printed one where it differs, or where nothing could be computed."
)
COMPUTED_FROM: Final = "Computed from"
LATEX_ESCAPES: Final = str.maketrans(
    {
        "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
        "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--",
    }
)  # fmt: skip


def to_markdown(table: PaperTable) -> str:
    """The table in GitHub's Markdown, with numbered notes under it."""
    notes = _number_notes(table)
    spans = _spans(table)
    heads = [
        *table.headings,
        *(f"{span} {column}".strip() for span, column in zip(spans, table.columns, strict=True)),
        COMPUTED_FROM,
    ]
    marks = ["---"] * len(table.headings) + ["---:"] * len(table.columns) + ["---"]
    lines = [f"**Table {table.number}.** {table.title}", "", markdown_row(heads), markdown_row(marks)]
    for row in table.rows:
        cells = (_cell(cell, notes, lambda number: f"<sup>{number}</sup>") for cell in row.cells)
        lines.append(markdown_row([*map(markdown_text, row.headings), *cells, row.basis]))
    lines += ["", _reading(table)]
    lines += ["", *(f"{number}. {markdown_text(note)}" for note, number in notes.items())] if notes else []
    lines += ["", *(f"- {markdown_text(remark)}" for remark in table.remarks)] if table.remarks else []
    return "\n".join(lines).rstrip() + "\n"


def to_latex(table: PaperTable) -> str:
    """The table for LaTeX with booktabs, notes under it; nothing in it needs another package."""
    notes = _number_notes(table)
    columns = "l" * len(table.headings) + "r" * len(table.columns) + "l"
    lines = [r"\begin{table}", r"\centering", rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
    if any(text for text, _ in table.groups):
        spans = [rf"\multicolumn{{{width}}}{{c}}{{{_latex(text)}}}" for text, width in table.groups]
        lines.append(" & ".join([""] * len(table.headings) + spans + [""]).strip() + r" \\")
    heads = (*table.headings, *table.columns, COMPUTED_FROM)
    lines += [" & ".join(map(_latex, heads)) + r" \\", r"\midrule"]
    for row in table.rows:
        cells = (_latex(_cell(cell, notes, "^{}".format)) for cell in row.cells)
        lines.append(" & ".join([*map(_latex, row.headings), *map(_raised, cells), row.basis]) + r" \\")
    notes = [
        _reading(table),
        *(f"({number}) {note}." for note, number in notes.items()),
    ]
    caption = _latex(f"{table.title}. {' '.join((*notes, *table.remarks))}")
    ends = [r"\bottomrule", r"\end{tabular}", rf"\caption{{{caption}}}", r"\end{table}"]
    return "\n".join([*lines, *ends]) + "\n"


def _reading(table: PaperTable) -> str:
    return f"{READING} {_sentence(table.summary())}" + (f" {DERIVED}" if table.is_derived else "")


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _spans(table: PaperTable) -> list[str]:
    return [text for text, width in table.groups for _ in range(width)]


def _number_notes(table: PaperTable) -> dict[str, int]:
    """The notes of the cells that show one, numbered in the order they are met."""
    notes: dict[str, int] = {}
    for _, cell in table.cells():
        if _needs_note(cell):
            notes.setdefault(cell.note, len(notes) + 1)
    return notes


def _needs_note(cell: TableCell) -> bool:
    return bool(cell.note) and not cell.agrees and (cell.printed, cell.computed) != (None, None)


def _cell(cell: TableCell, notes: dict[str, int], mark: Callable[[int], str]) -> str:
    """The computed figure, the printed one in brackets where it says something else, the note's number."""
    if cell.computed is None:
        shown = "–" if cell.printed is None else f"({percent(cell.printed)})"
    elif cell.agrees is False:
        shown = f"{_close(cell)} ({percent(cell.printed)})"
    else:
        shown = percent(cell.printed if cell.agrees else cell.computed)
    return shown + (mark(notes[cell.note]) if _needs_note(cell) else "")


def _close(cell: TableCell) -> str:
    """One decimal, or two where one would show the printed figure again."""
    return (
        percent(cell.computed)
        if percent(cell.computed) != percent(cell.printed)
        else f"{100 * cell.computed:.2f}"
    )


def _latex(text: str) -> str:
    return text.translate(LATEX_ESCAPES)


def _raised(cell: str) -> str:
    """The number of a note, raised; it is the last thing in the cell."""
    figure, caret, number = cell.partition(r"\textasciicircum{}")
    return f"{figure}$^{{{number}}}$" if caret else cell
