"""A table of the paper as data or Markdown: printed and computed figures, and why they differ."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from arb.core.console import markdown_row, markdown_text, percent

FROM_VERDICTS: Final = "verdicts"
FROM_COUNTS: Final = "counts derived from the printed metrics"
DERIVED: Final = (
    "Counts derived from the printed metrics reproduce them wherever whole numbers fit. Agreement shows "
    "that the metrics are consistent; only verdicts can show that they are right."
)
TOLERANCE: Final = 1e-9
"""A tolerance in comparisons, since a value half way between two tenths may be rounded either way."""


@dataclass(frozen=True, slots=True)
class PaperCell:
    """One figure of a table, as ``printed`` in the paper and as ``computed`` here: fractions or None.

    ``basis`` names the source of the computed figure. ``note`` says why it differs from the printed one, or
    why it cannot be computed. ``n`` is the number of trajectories it rests on, or None if unknown.
    """

    printed: float | None
    computed: float | None
    basis: str = ""
    note: str = ""
    n: int | None = None

    @property
    def agrees(self) -> bool | None:
        """Whether the computed figure equals the printed one to one decimal; None if one is absent."""
        if self.printed is None or self.computed is None:
            return None
        return abs(self.computed - self.printed) <= 0.0005 + TOLERANCE

    @property
    def kind(self) -> str:
        """``same`` or ``other`` if both figures exist, else ``printed``, ``computed`` or ``nothing``."""
        if self.computed is None:
            return "nothing" if self.printed is None else "printed"
        return {True: "same", False: "other", None: "computed"}[self.agrees]

    @property
    def text(self) -> str:
        """The figure as a percentage, with two decimals if one would hide a difference from the paper."""
        if self.agrees or self.computed is None:
            return percent(self.printed)
        if percent(self.computed) == percent(self.printed):
            return f"{100 * self.computed:.2f}"
        return percent(self.computed)

    @property
    def needs_note(self) -> bool:
        return bool(self.note) and not self.agrees and self.kind != "nothing"


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a table: its headings and its cells."""

    headings: tuple[str, ...]
    cells: tuple[PaperCell, ...]

    @property
    def basis(self) -> str:
        """The sources of the row's computed figures; empty if it has none."""
        found = (cell.basis for cell in self.cells if cell.computed is not None)
        return "; ".join(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class PaperTable:
    """A table of the paper. ``groups`` are headings over several columns: (text, number of columns)."""

    number: int
    title: str
    headings: tuple[str, ...]
    groups: tuple[tuple[str, int], ...]
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    remarks: tuple[str, ...] = ()

    @property
    def notes(self) -> dict[str, int]:
        """The notes on cells, numbered from 1 in the order of the table."""
        notes: dict[str, int] = {}
        for _, cell in self.cells():
            if cell.needs_note:
                notes.setdefault(cell.note, len(notes) + 1)
        return notes

    @property
    def spans(self) -> list[str]:
        """The group heading above each column."""
        return [text for text, width in self.groups for _ in range(width)] or [""] * len(self.columns)

    def cells(self) -> Iterator[tuple[str, PaperCell]]:
        """Yield (name, cell) for every cell. The name consists of the cell's headings."""
        for row in self.rows:
            for span, column, cell in zip(self.spans, self.columns, row.cells, strict=True):
                yield ", ".join(filter(None, (*row.headings, span, column))), cell

    @property
    def is_derived(self) -> bool:
        """Whether a figure was computed from counts that were derived from the printed ones."""
        return any(cell.basis == FROM_COUNTS and cell.agrees is not None for _, cell in self.cells())

    def summary(self) -> str:
        """Return a sentence on how many cells agree, for each source of computed figures."""
        known: dict[str, list[bool]] = {}
        for _, cell in self.cells():
            if cell.agrees is not None:
                known.setdefault(cell.basis, []).append(cell.agrees)
        absent = sum(1 for _, cell in self.cells() if cell.printed is not None and cell.computed is None)
        parts = [
            f"{sum(agreeing):,} of {len(agreeing):,} figures computed from {basis} equal the printed ones"
            for basis, agreeing in sorted(known.items())
        ]
        parts += [f"{absent:,} cannot be computed without more files"] if absent else []
        return "; ".join(parts) or "there are no printed figures to compare with"


READING: Final = (
    "The figures are computed. A printed figure is in brackets if it differs or cannot be computed."
)


def to_markdown(table: PaperTable) -> str:
    """Return the table in GitHub's Markdown, with numbered notes under it."""
    notes = table.notes
    heads = [
        *table.headings,
        *(f"{span} {column}".strip() for span, column in zip(table.spans, table.columns, strict=True)),
        "Computed from",
    ]
    marks = ["---"] * len(table.headings) + ["---:"] * len(table.columns) + ["---"]
    lines = [f"**Table {table.number}.** {table.title}", "", markdown_row(heads), markdown_row(marks)]
    for row in table.rows:
        cells = (_cell(cell, notes) for cell in row.cells)
        lines.append(markdown_row([*map(markdown_text, row.headings), *cells, row.basis]))
    summary = table.summary()
    reading = f"{READING} {summary[0].upper()}{summary[1:]}."
    lines += ["", f"{reading} {DERIVED}" if table.is_derived else reading]
    lines += ["", *(f"{number}. {markdown_text(note)}" for note, number in notes.items())] if notes else []
    lines += ["", *(f"- {markdown_text(remark)}" for remark in table.remarks)] if table.remarks else []
    return "\n".join(lines).rstrip() + "\n"


def _cell(cell: PaperCell, notes: dict[str, int]) -> str:
    """Return the computed figure, the printed one in brackets if they differ, and the note's number."""
    text = cell.text
    if cell.kind == "printed":
        text = f"({text})"
    elif cell.kind == "other":
        text = f"{text} ({percent(cell.printed)})"
    return text + (f"<sup>{notes[cell.note]}</sup>" if cell.needs_note else "")
