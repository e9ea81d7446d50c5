"""A table of the paper as the page shows it: cells with their notes numbered. Pure."""

from dataclasses import dataclass

from leaderboard.paper_tables.table import PaperTable, TableCell
from leaderboard.report_tables import percent


@dataclass(frozen=True)
class ShownCell:
    """A cell: the figure, the printed one where it says something else, the note's number, words on hover."""

    text: str
    printed: str
    note: int | None
    kind: str
    hover: str


@dataclass(frozen=True)
class ShownRow:
    """A row; ``is_first_of`` tells whether its first heading is another one than in the row above."""

    headings: tuple[str, ...]
    cells: tuple[ShownCell, ...]
    is_first_of: bool


@dataclass(frozen=True)
class ShownTable:
    """A table with its notes in the order of their numbers."""

    table: PaperTable
    rows: tuple[ShownRow, ...]
    notes: tuple[str, ...]


def show_table(table: PaperTable) -> ShownTable:
    """Every cell in words, and the notes that cells point to."""
    notes: dict[str, int] = {}
    rows, above = [], ""
    for row in table.rows:
        cells = tuple(_show(cell, notes) for cell in row.cells)
        rows.append(ShownRow(row.headings, cells, len(row.headings) > 1 and row.headings[0] != above))
        above = row.headings[0]
    return ShownTable(table, tuple(rows), tuple(notes))


def _show(cell: TableCell, notes: dict[str, int]) -> ShownCell:
    if cell.printed is None and cell.computed is None:
        return ShownCell("–", "", None, "nothing", "")
    number = None
    if cell.note and not cell.agrees:
        number = notes.setdefault(cell.note, len(notes) + 1)
    if cell.computed is None:
        return ShownCell("", percent(cell.printed), number, "printed", cell.note)
    printed = percent(cell.printed)
    text = printed if cell.agrees else percent(cell.computed)
    if cell.agrees is False and text == printed:
        text = f"{100 * cell.computed:.2f}"
    kind = {True: "same", False: "other", None: "computed"}[cell.agrees]
    return ShownCell(text, printed if kind == "other" else "", number, kind, _hover(cell))


def _hover(cell: TableCell) -> str:
    parts = [f"printed {percent(cell.printed)}" if cell.printed is not None else "nothing printed"]
    parts.append(f"computed {100 * cell.computed:.2f} from {cell.basis}")
    parts += [f"{cell.n:,} runs"] if cell.n is not None else []
    return ", ".join(parts)
