"""The leaderboard page over a service, without the rest of the Space; its table alone for a board."""

from fastapi import FastAPI
from fastapi.testclient import TestClient

from leaderboard.board.board import Board
from space.pages.leaderboard.page import build_leaderboard_router, choice_values, table_values
from space.pages.leaderboard.query import LeaderboardQuery
from space.pages.trajectories.dataset import Explorer
from space.services import Services
from space.web.frame import PageFrame, render
from space.web.responses import StaticAssets
from submissions.app import SubmissionsApp


def leaderboard_client(service: SubmissionsApp) -> TestClient:
    """A client of the page at ``/``."""
    app = FastAPI()
    app.include_router(
        build_leaderboard_router(
            Services(service, Explorer(service.settings, service)), PageFrame(StaticAssets())
        )
    )
    return TestClient(app)


def page_html(service: SubmissionsApp, query: str = "") -> str:
    """The page at an address."""
    return leaderboard_client(service).get(f"/?{query}").text


def table_html(board: Board, choice: LeaderboardQuery) -> str:
    """The table of a board for a choice."""
    return render(
        "leaderboard/table.html",
        **choice_values(board, choice, lambda row, metric: ""),
        serves=lambda path: True,
    )


def rows_html(board: Board, choice: LeaderboardQuery, after: int) -> str:
    """The rows that follow those up to number ``after``, as scrolling asks for them."""
    return render(
        "leaderboard/rows.html",
        **table_values(board, choice, lambda row, metric: "", after),
        serves=lambda path: True,
    )


def board_html(service: SubmissionsApp, choice: LeaderboardQuery) -> str:
    """The table of the board as it is now."""
    return table_html(service.records.board(), choice)
