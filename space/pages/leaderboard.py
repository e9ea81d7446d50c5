"""The leaderboard page: which judge can be trusted, and how surely."""

from dataclasses import dataclass
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from leaderboard.board import Board
from leaderboard.history import board_history
from space.board_choice import Options, address_of_choice, choice_in, options_of
from space.board_sentences import sentences
from space.board_view import Choice, view_board
from space.history_view import view_history
from space.page import Services
from space.plain_page import DESCRIPTION, PageFrame
from space.plots import precision_recall_plot
from space.row_marks import MARKS
from space.shelf import ByteCache
from submissions.service import SubmissionService

PATH: Final = "/"
SHORT: Final = 60
"""Rows that a long table shows until one asks for all."""


@dataclass(frozen=True)
class BoardFacts:
    """What the metrics of a board rest on."""

    n_trajectories: int
    n_agents: int
    label_version: str | None
    n_judges: int
    updated: str | None
    read_only_reason: str | None


def build_leaderboard_router(services: Services, pages: PageFrame) -> APIRouter:
    """The route; a page is made once for each board and choice."""
    router, service = APIRouter(), services.submissions
    known: ByteCache[Options] = ByteCache(4, lambda _: 1)

    @router.head(PATH, include_in_schema=False)
    @router.get(PATH, include_in_schema=False)
    def leaderboard(request: Request) -> Response:
        board, reason = service.board(), service.read_only_reason
        options = known.get(board.digest, lambda: options_of(board))
        choice, refused = choice_in(request.url.query, options)
        return pages.cached(
            request,
            (board.digest, choice, tuple(refused), reason),
            "leaderboard.html",
            "Leaderboard",
            PATH,
            lambda: {
                "description": DESCRIPTION,
                "facts": facts_of(service, board),
                "options": options,
                "refused": refused,
                **choice_values(board, choice),
            },
        )

    return router


def choice_values(board: Board, choice: Choice) -> dict[str, Any]:
    """What of the page follows from a choice: table, plot, findings, history."""
    return {
        "choice": choice,
        "view": view_board(board, choice),
        "short": SHORT,
        "marks": MARKS,
        "plot": precision_recall_plot(board, choice.label, choice),
        "sentences": sentences(board, choice.label),
        "history": view_history(board_history(board, choice.label)),
        "address": lambda **changes: address_of_choice(choice, **changes),
    }


def facts_of(service: SubmissionService, board: Board) -> BoardFacts:
    """The facts of a board as it is now."""
    test = service.suite.split("test")
    dates = [row.date[:10] for row in board.rows if row.provenance == "scored"]
    return BoardFacts(
        n_trajectories=len(test),
        n_agents=len({trajectory.agent for trajectory in test}),
        label_version=board.label_version,
        n_judges=sum(1 for row in board.rows if (row.labels["success"] or {}).get("rank")),
        updated=max(dates, default=None),
        read_only_reason=service.read_only_reason,
    )
