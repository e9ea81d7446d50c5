"""The leaderboard, ``/``. The URL contains the reader's choice: ``/?label=TARGET&sort=-cost``.

The page opens with the first rows; a script requests the following rows from ``/board/rows``.
"""

import re
from collections.abc import Callable
from typing import Any, Final

from fastapi import APIRouter, Request, Response
from markupsafe import Markup

from arb.core.cache import ByteCache
from leaderboard.board.board import Board, BoardRow
from leaderboard.board.history import board_history
from leaderboard.paper.models import WEIGHTS
from space.pages.leaderboard.hard import view_hard
from space.pages.leaderboard.history import MOST_LINES, view_history
from space.pages.leaderboard.plots import cost_plot, precision_recall_plot
from space.pages.leaderboard.query import (
    PROVENANCES,
    LeaderboardQuery,
    Options,
    address_of_choice,
    choice_in,
    chosen_rows,
    options_of,
    other_order,
    usual_order,
)
from space.pages.leaderboard.summary import sentences
from space.pages.leaderboard.table import view_board
from space.pages.rows import INPUTS, meaning_of, metric_titles_of
from space.services import Services
from space.verdicts import JudgeVerdicts
from space.web.cells import MARKS, cost_cell
from space.web.frame import PageFrame
from space.web.query import QueryParam, choices_in, link_to
from submissions.app import SubmissionsApp

PATH: Final = "/"
DESCRIPTION: Final = (
    "Which automatic judges of {noun} can you trust? Their verdicts, evaluated against expert labels."
)
ROWS_PATH: Final = "/board/rows"
AFTER: Final = QueryParam("after", "number", 0, low=0, high=1e9)
"""The number of the last row that the reader already has."""
ERRORS_BEHIND: Final = {"precision": "fp", "fpr": "fp", "tnr": "fp", "recall": "fn", "npv": "fn"}
"""The kind of error that each of these metrics counts; all other metrics count both kinds."""
ErrorsBehind = Callable[[BoardRow, str], str]
"""A function that returns the address of the page of errors behind a row's metric, or "" if it is hidden."""


def build_leaderboard_router(services: Services, pages: PageFrame) -> APIRouter:
    """Return the routes of the page and of further rows. Both are rendered once per board and choice."""
    router, service, verdicts = APIRouter(), services.submissions, services.verdicts
    known: ByteCache[Options] = ByteCache(4, lambda _: 1)

    def choice_of(request: Request) -> tuple[Board, Options, LeaderboardQuery, list[str]]:
        board = service.records.board()
        key = (board.key, verdicts.version)
        options = known.get(key, lambda: options_of(board, verdicts.has_hard_subset()))
        return board, options, *choice_in(request.url.query, options, len(board.rows), board.targets)

    def _values(board: Board, choice: LeaderboardQuery) -> dict[str, Any]:
        labels = service.labels_for_public_figures()
        if choice.subset == "hard" and labels is not None:
            return {"hard": view_hard(board, choice, verdicts, labels), **address_values(choice)}
        return {"hard": None, **choice_values(board, choice, _errors_behind(choice, verdicts))}

    @router.get(PATH, include_in_schema=False)
    def leaderboard(request: Request) -> Response:
        board, options, choice, unknown = choice_of(request)
        profile = service.suite.profile
        key = (board.key, verdicts.version, choice, service.intake.read_only_reason)

        def values() -> dict[str, Any]:
            return {
                "description": profile.description or DESCRIPTION.format(noun=profile.noun),
                "facts": facts_of(service, board),
                "options": options,
                **_values(board, choice),
            }

        return pages.cached(
            request, key, "leaderboard/page.html", "Leaderboard", PATH, values, unknown=unknown
        )

    @router.get(ROWS_PATH, include_in_schema=False)
    def rows(request: Request) -> Response:
        board, _, choice, _ = choice_of(request)
        after = int(choices_in(request.url.query, [AFTER])[0]["after"])
        key = (board.key, verdicts.version, choice, after)

        def values() -> dict[str, Any]:
            return table_values(board, choice, _errors_behind(choice, verdicts), after) | {
                "is_fragment": True
            }

        return pages.cached(request, key, "leaderboard/rows.html", "Rows", PATH, values)

    return router


def choice_values(board: Board, choice: LeaderboardQuery, errors_behind: ErrorsBehind) -> dict[str, Any]:
    """Return the template's values that depend on the reader's choice: table, plots, findings, history."""
    rows = chosen_rows(board, choice)
    table = table_values(board, choice, errors_behind)
    has_recall = "recall" in choice.target.metrics
    return {
        **table,
        "plot": precision_recall_plot(rows, choice, table["view"].front) if has_recall else None,
        "costs": cost_plot(rows, choice),
        "sentences": sentences(board, choice.target.name, choice.metric),
        "ranks": view_history(board_history(board, choice.target.name, MOST_LINES)),
    }


def address_values(choice: LeaderboardQuery) -> dict[str, Any]:
    return {
        "choice": choice,
        "figures": metric_titles_of(choice.target),
        "inputs": INPUTS,
        "address": lambda **changes: address_of_choice(choice, **changes),
    }


def table_values(
    board: Board, choice: LeaderboardQuery, errors_behind: ErrorsBehind, after: int = 0
) -> dict[str, Any]:
    return {
        **address_values(choice),
        "errors_behind": errors_behind,
        "errors_can_be_opened": any(errors_behind(row, choice.metric) for row in board.rows),
        "has_papers": any(row.provenance in ("published", "self-reported") for row in board.rows),
        "view": view_board(board, choice, after),
        "cost_cell": cost_cell,
        "weights": WEIGHTS,
        "breakable": breakable,
        "usual_order": lambda name: usual_order(name, choice),
        "other_order": other_order,
        "provenances": PROVENANCES,
        "marks": MARKS,
        "after": after,
    }


def breakable(title: str) -> Markup:
    """Return a title with possible line breaks before inner capitals: ``Visual<wbr>Web<wbr>Arena``."""
    return Markup("<wbr>").join(re.split(r"(?<=[a-z])(?=[A-Z])", title))


def facts_of(service: SubmissionsApp, board: Board) -> dict[str, Any]:
    test = service.suite.split("test")
    dates = [row.date for row in board.rows if row.provenance == "scored"]
    return {
        "n_trajectories": len(test),
        "n_agents": len({trajectory.agent for trajectory in test}),
        "label_version": board.label_version,
        "target": service.suite.main_target,
        "meaning": meaning_of(service.suite.main_target),
        "n_judges": sum(rank is not None for rank in board.ranks(board.main.name).values()),
        "updated": max(dates)[:10] if dates else None,
        "read_only_reason": service.intake.read_only_reason,
    }


def _errors_behind(choice: LeaderboardQuery, verdicts: JudgeVerdicts) -> ErrorsBehind:
    def address(row: BoardRow, metric: str) -> str:
        if choice.label or choice.target.level != "run" or "test" not in verdicts.splits_with_errors(row):
            return ""
        errors = {"kind": ERRORS_BEHIND.get(metric), "agent": choice.agent}
        return link_to("/errors", judge=row.id, split="test", **{k: v for k, v in errors.items() if v})

    return address
