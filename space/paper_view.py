"""How a cell of a paper's table is shown: the metric, the printed one where it differs, its note. Pure."""

from leaderboard.paper_tables.table import PaperTable, TableCell
from leaderboard.report_tables import percent

KINDS = {True: "same", False: "other", None: "computed"}


def kind_of(cell: TableCell) -> str:
    """``same`` and ``other`` than printed, ``computed`` or ``printed`` alone, ``nothing``."""
    if cell.computed is None:
        return "nothing" if cell.printed is None else "printed"
    return KINDS[cell.agrees]


def text_of(cell: TableCell) -> str:
    """The metric with one decimal; with two where rounding would hide a difference to the printed one."""
    if kind_of(cell) == "other" and percent(cell.computed) == percent(cell.printed):
        return f"{100 * cell.computed:.2f}"
    return percent(cell.printed if cell.agrees or cell.computed is None else cell.computed)


def numbered_notes(table: PaperTable) -> dict[str, int]:
    """The notes of cells that do not agree, each once, with their numbers in the order of the table."""
    notes: dict[str, int] = {}
    for _, cell in table.cells():
        if cell.note and not cell.agrees and kind_of(cell) != "nothing":
            notes.setdefault(cell.note, len(notes) + 1)
    return notes


def describe_cell(cell: TableCell) -> str:
    """What it was computed from, for hovering."""
    if cell.computed is None:
        return cell.note
    parts = [f"printed {percent(cell.printed)}" if cell.printed is not None else "nothing printed"]
    parts.append(f"computed {100 * cell.computed:.2f} from {cell.basis}")
    parts += [f"{cell.n:,} trajectories"] if cell.n is not None else []
    return ", ".join(parts)
