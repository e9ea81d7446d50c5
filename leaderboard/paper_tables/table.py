"""A table of the paper: cells that hold the printed figure, the computed one, and why they differ. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from core.console import percent

TOLERANCE: Final = 1e-9
"""Fractions of whole numbers; a value half way between two tenths may be rounded either way."""


@dataclass(frozen=True, slots=True)
class TableCell:
    """One figure. ``printed`` and ``computed`` are fractions, None where there is none.

    ``basis`` says what it was computed from; ``note`` why it differs from the printed one, or why it cannot
    be computed. ``n`` is how many runs it rests on, None where that is not known.
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

    def summary(self) -> str:
        """How many cells agree, in a sentence."""
        known = [cell for _, cell in self.cells() if cell.agrees is not None]
        absent = sum(1 for _, cell in self.cells() if cell.printed is not None and cell.computed is None)
        agreeing = sum(1 for cell in known if cell.agrees)
        parts = [f"{agreeing:,} of {len(known):,} computed figures are the printed ones"] if known else []
        parts += [f"{absent:,} cannot be computed from what is here"] if absent else []
        return "; ".join(parts) or "no figure is printed to compare with"
