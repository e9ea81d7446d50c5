"""Plots in the table's colours. They name their points directly and carry their intervals."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from leaderboard.board import Board, BoardRow
from leaderboard.report_tables import interval, percent
from space.board_view import SECOND_ANNOTATOR, Choice, cell_of, is_chosen
from space.point_names import Point, place_names

ACCENT, REFERENCE, MUTED, LINES = "#1f8a83", "#d0744d", "#8a95a1", "rgba(138,149,161,0.25)"
WHISKERS = {ACCENT: "rgba(31,138,131,0.5)", REFERENCE: "rgba(208,116,77,0.6)"}
ISO_F1 = (0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9)
CROWD = 40
"""More judges than this are drawn smaller and paler: what tells is their cloud."""

Cell = Mapping[str, Any]


def precision_recall_plot(board: Board, label: str, choice: Choice | None = None) -> go.Figure:
    """Precision against recall of the judges that the choice shows, 95 % whiskers, lines of equal F1 behind.

    Each point's id is the row's id, so that a click can lead to the judge.
    """
    choice = choice or Choice(label=label)
    drawn = [(row, cell) for row in board.ranking(label) if (cell := _drawn(row, choice)) is not None]
    window = _window([cell for _, cell in drawn])
    figure = go.Figure()
    for value in ISO_F1:
        _add_iso_f1(figure, value, window)
    names = _names(drawn, window)
    for is_member, colour, symbol in (
        (lambda row: row.provenance in ("scored", "published"), ACCENT, "circle"),
        (lambda row: row.provenance == "self-reported", ACCENT, "circle-open"),
        (lambda row: row.provenance == "reference", REFERENCE, "diamond"),
    ):
        group = [(row, cell) for row, cell in drawn if is_member(row)]
        _add_points(figure, group, names, colour, symbol, is_crowded=len(drawn) > CROWD)
    return _laid_out(figure, window)


def _laid_out(figure: go.Figure, window: tuple[float, float]) -> go.Figure:
    figure.update_layout(
        margin={"l": 48, "r": 16, "t": 8, "b": 44},
        height=460,
        showlegend=False,
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": MUTED, "size": 12},
        hoverlabel={"align": "left"},
        hovermode="closest",
    )
    axis = {"gridcolor": LINES, "zeroline": False, "tickformat": ".0%", "fixedrange": True}
    figure.update_xaxes(title="recall", range=[window[0], 1.02], **axis)
    figure.update_yaxes(title="precision", range=[window[1], 1.0], **axis)
    return figure


def _drawn(row: BoardRow, choice: Choice) -> Cell | None:
    """The cell of a judge that stands for itself, or of the human point; None for the constant references."""
    cell = cell_of(row, choice)
    if not is_chosen(row, choice) or not cell or None in (cell["precision"], cell["recall"]):
        return None
    if row.provenance == "reference":
        return cell if row.id == SECOND_ANNOTATOR else None
    return cell


def _window(cells: Sequence[Cell]) -> tuple[float, float]:
    """The smallest recall and precision that the plot has room for."""
    left = min([cell["recall"] for cell in cells], default=0.0)
    low = min([_precision_interval(cell)[0] for cell in cells], default=0.0)
    return max(0.0, left - 0.08), max(0.0, low - 0.04)


def _precision_interval(cell: Cell) -> list[float]:
    """The interval of the precision, of no width where none is known."""
    return cell["precision_ci"] or [cell["precision"], cell["precision"]]


def _add_iso_f1(figure: go.Figure, value: float, window: tuple[float, float]) -> None:
    """The line precision = F1 * recall / (2 * recall - F1)."""
    steps = [value / 2 + 0.002 + step * (1 - value / 2) / 120 for step in range(121)]
    points = [(r, value * r / (2 * r - value)) for r in steps if r <= 1]
    points = [(r, p) for r, p in points if p <= 1 and r >= window[0] and p >= window[1]]
    if len(points) < 2:
        return
    recall, precision = zip(*points, strict=True)
    figure.add_scatter(
        x=recall, y=precision, mode="lines", line={"color": LINES, "width": 1}, hoverinfo="skip"
    )
    figure.add_annotation(
        x=recall[-1],
        y=precision[-1],
        text=f"F1 {value:g}",
        showarrow=False,
        xanchor="right",
        yanchor="bottom",
        font={"size": 10, "color": MUTED},
    )


def _names(drawn: Sequence[tuple[BoardRow, Cell]], window) -> dict[str, tuple[str, str]]:
    """By row id, the name beside its point and its side; what was scored here is named first."""
    counts = Counter(row.judge for row, _ in drawn)
    points = [
        Point(
            cell["recall"],
            cell["precision"],
            *_precision_interval(cell),
            name=f"{row.judge} ({row.inputs})" if counts[row.judge] > 1 and row.inputs else row.judge,
            order={"reference": 0, "scored": 1}.get(row.provenance, 2),
        )
        for row, cell in drawn
    ]
    return {row.id: found for (row, _), found in zip(drawn, place_names(points, window), strict=True)}


def _add_points(figure: go.Figure, drawn, names, colour: str, symbol: str, is_crowded: bool) -> None:
    if not drawn:
        return
    cells = [cell for _, cell in drawn]
    figure.add_scatter(
        x=[cell["recall"] for cell in cells],
        y=[cell["precision"] for cell in cells],
        ids=[row.id for row, _ in drawn],
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [_precision_interval(cell)[1] - cell["precision"] for cell in cells],
            "arrayminus": [cell["precision"] - _precision_interval(cell)[0] for cell in cells],
            "color": WHISKERS[colour],
            "thickness": 0.5 if is_crowded else 1,
            "width": 0,
        },
        mode="markers+text",
        marker={"color": colour, "size": 6 if is_crowded else 9, "symbol": symbol},
        text=[_escape(names[row.id][0]) for row, _ in drawn],
        textposition=[names[row.id][1] for row, _ in drawn],
        textfont={"size": 11},
        cliponaxis=False,
        customdata=[_hover(row, cell) for row, cell in drawn],
        hovertemplate="%{customdata}<extra></extra>",
    )


def _hover(row: BoardRow, cell: Cell) -> str:
    name = f"{row.judge} · {row.inputs}" if row.inputs else row.judge
    whisker = f" ({interval(cell['precision_ci'])})" if cell["precision_ci"] else ""
    return (
        f"<b>{_escape(name)}</b><br>precision {percent(cell['precision'])}{whisker}"
        f"<br>recall {percent(cell['recall'])}<br>F1 {percent(cell['f1'])}"
    )


def _escape(text: str) -> str:
    """Plotly reads a little HTML in names and hover texts; they are shown as they were written."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
