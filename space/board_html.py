"""The parts of the leaderboard page as HTML: heading, controls, table, sentences, history."""

import json
from dataclasses import asdict

from markupsafe import Markup

from leaderboard.board import Board
from leaderboard.history import board_history
from space.address import link_to
from space.board_choice import Options, controls
from space.board_sentences import sentences
from space.board_view import Choice, view_board
from space.history_view import view_history
from space.row_marks import MARKS
from space.templating import render
from submissions.service import SubmissionService

TITLE = "Which judge can you trust?"
SHORT = 60
"""Rows that a long table shows until one asks for all."""


def page_html(service: SubmissionService, board: Board, options: Options, choice: Choice) -> str:
    """Everything of the page but the plot, in parts that ``static/opening.js`` takes to their places."""
    return render(
        "board_page.html",
        heading=Markup(heading_html(service, board)),
        controls=Markup(controls_html(options, choice)),
        regions=_regions(board, choice),
    )


def regions_html(board: Board, choice: Choice) -> str:
    """What changes with a choice: elements that replace those of the same ``data-region`` on the page."""
    return render("board_regions.html", regions=_regions(board, choice))


def _regions(board: Board, choice: Choice) -> dict[str, Markup]:
    """Table, sentences and history, each rendered: their own values are escaped already."""
    history = view_history(board_history(board, choice.label))
    return {
        "board": Markup(table_html(board, choice)),
        "reading": Markup(render("reading.html", sentences=sentences(board, choice.label))),
        "history": Markup(render("board_history.html", view=history, link_to=link_to)),
    }


def controls_html(options: Options, choice: Choice) -> str:
    """The form above the table, set to a choice; it works without scripts too."""
    address = json.dumps([asdict(control) for control in controls(options)])
    return render("board_controls.html", options=options, choice=choice, address=address)


def table_html(board: Board, choice: Choice) -> str:
    """The table of a board for a choice."""
    view = view_board(board, choice)
    return render("board.html", view=view, short=SHORT, link_to=link_to, marks=MARKS)


def board_html(service: SubmissionService, choice: Choice) -> str:
    """The table of the board as it is now."""
    return table_html(service.board(), choice)


def heading_html(service: SubmissionService, board: Board | None = None) -> str:
    """The question, and under it what the figures rest on."""
    board = board or service.board()
    test = service.suite.split("test")
    ranked = sum(1 for row in board.rows if (row.labels["success"] or {}).get("rank"))
    dates = [row.date[:10] for row in board.rows if row.provenance == "scored"]
    return render(
        "heading.html",
        title=TITLE,
        n_trajectories=len(test),
        n_agents=len({t.agent for t in test}),
        label_version=board.label_version,
        n_judges=ranked,
        updated=max(dates, default=None),
        read_only_reason=service.read_only_reason,
    )
