"""``/``: which judge can be trusted. Its choice is in the address: ``/?label=repetition&sort=-cost``.

The page opens with the first rows, and with a plot that names what it has room for. Scripts ask for the rest:
``/board/rows`` for the rows that follow, ``/board/plots`` for plots in which every point leads to its judge.
"""

import gc
import logging
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from arb.core.cache import ByteCache
from leaderboard.board.board import Board, BoardRow
from leaderboard.board.history import board_history
from space.pages.leaderboard.board_plots import cost_plot, precision_recall_plot
from space.pages.leaderboard.query import (
    LeaderboardQuery,
    Options,
    address_of_choice,
    choice_in,
    chosen_places,
    options_of,
    ranks_of,
)
from space.pages.leaderboard.summary import SHOWN_CHANGES, SHOWN_LINES, sentences, view_history
from space.pages.leaderboard.table import view_board
from space.services import Services
from space.verdicts import LABEL, JudgeVerdicts
from space.web.cells import MARKS
from space.web.frame import PageFrame
from space.web.query import QueryParam, choices_in, link_to
from submissions.intake.receipts import SubmissionView
from submissions.intake.upload import Upload
from submissions.service import SubmissionService

logger = logging.getLogger(__name__)
PATH: Final = "/"
DESCRIPTION: Final = (
    "Which automatic judges of web agents can be trusted: verdicts evaluated against expert labels."
)
ROWS_PATH: Final = "/board/rows"
PLOTS_PATH: Final = "/board/plots"
AFTER: Final = QueryParam("after", "number", 0, low=0, high=1e9)
"""The number of the last row that the reader has already."""
ERRORS_BEHIND: Final = MappingProxyType(
    {"precision": "fp", "fpr": "fp", "tnr": "fp", "recall": "fn", "npv": "fn"}
)
"""The errors that a metric counts; every other metric counts both kinds."""
ErrorsBehind = Callable[[BoardRow, str], str]
"""The address of the errors behind a row's metric; empty where they cannot be seen."""


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
    """The routes; a page, and a part of it, is made once for each board and choice."""
    router, service, verdicts = APIRouter(), services.submissions, services.verdicts
    known: ByteCache[Options] = ByteCache(4, lambda _: 1)
    ranking = threading.Lock()

    def choice_of(request: Request) -> tuple[Board, LeaderboardQuery, list[str]]:
        board = service.board()
        options = known.get(board.key, lambda: options_of(board))
        choice, refused = choice_in(request.url.query, options)
        if choice.figure != "precision":
            with ranking:  # ranks of hundreds of judges take seconds: made once, not by each reader at once
                ranks_of(board, choice)
        return board, choice, refused

    @router.head(PATH, include_in_schema=False)
    @router.get(PATH, include_in_schema=False)
    def leaderboard(request: Request) -> Response:
        board, choice, refused = choice_of(request)
        options = known.get(board.key, lambda: options_of(board))
        return pages.cached(request, *_page(services, board, options, choice, refused))

    @router.get(ROWS_PATH, include_in_schema=False)
    def rows(request: Request) -> Response:
        board, choice, _ = choice_of(request)
        after = int(choices_in(request.url.query, [AFTER])[0]["after"])
        return pages.cached(
            request,
            (board.key, verdicts.version, choice, after),
            "leaderboard/rows.html",
            "Rows",
            PATH,
            lambda: {
                **table_values(board, choice, _errors_behind(choice, verdicts), after),
                "is_fragment": True,
            },
        )

    @router.get(PLOTS_PATH, include_in_schema=False)
    def plots(request: Request) -> Response:
        board, choice, _ = choice_of(request)
        return pages.cached(
            request,
            (board.key, choice),
            "leaderboard/plots.html",
            "Plots",
            PATH,
            lambda: plot_values(board, choice, every_point=True),
        )

    return router


def _page(
    services: Services, board: Board, options: Options, choice: LeaderboardQuery, refused: Sequence[str]
) -> tuple[Hashable, str, str, str, Callable[[], Mapping[str, Any]]]:
    """What `PageFrame.cached` makes the whole page of."""
    service, verdicts = services.submissions, services.verdicts

    def values() -> Mapping[str, Any]:
        return {
            "description": service.suite.profile.description or DESCRIPTION,
            "facts": facts_of(service, board),
            "options": options,
            "refused": refused,
            **choice_values(board, choice, _errors_behind(choice, verdicts)),
        }

    key = (board.key, verdicts.version, choice, tuple(refused), service.read_only_reason)
    return key, "leaderboard/page.html", "Leaderboard", PATH, values


class FirstPage:
    """Makes the page as it opens, at the start and after each new submission, so that its first reader need
    not wait for it.

    In a thread that ends when there is nothing to make; what comes meanwhile is one more page in all.
    """

    def __init__(self, services: Services, pages: PageFrame) -> None:
        self._services, self._pages = services, pages
        self._lock = threading.Lock()
        self._is_wanted = self._is_frozen = False
        self._thread: threading.Thread | None = None
        services.submissions.listeners.append(self._after)

    def wait(self) -> None:
        """Wait until the page of every submission so far is made."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()

    def _after(self, result: Upload | SubmissionView | Exception) -> None:
        if isinstance(result, SubmissionView) and result.receipt.is_new:
            self.make()

    def make(self) -> None:
        """Have the page made of the board as it is now; does not wait for it."""
        with self._lock:
            self._is_wanted = True
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="leaderboard page", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._is_wanted:
                    self._thread = None
                    return
                self._is_wanted = False
            try:
                board = self._services.submissions.board()
                options = options_of(board)
                choice, refused = choice_in("", options)
                self._pages.prepare(*_page(self._services, board, options, choice, refused))
                self._freeze()
            except Exception:  # its first reader tries again, and sees what is wrong
                logger.exception("the leaderboard's page cannot be made")

    def _freeze(self) -> None:
        """Have the garbage collector leave out the rows of the first board, as it does what was imported
        (`python -m space serve`): to look for garbage among 10,000 holds up an answer for a second, now and
        then. What is no longer referred to goes all the same."""
        if not self._is_frozen and gc.get_freeze_count():
            gc.collect()
            gc.freeze()
        self._is_frozen = True


def choice_values(board: Board, choice: LeaderboardQuery, errors_behind: ErrorsBehind) -> dict[str, Any]:
    """What of the page follows from a choice: table, plots, findings, history."""
    return {
        **table_values(board, choice, errors_behind),
        **plot_values(board, choice),
        "sentences": sentences(board, choice.label, choice.figure),
        "history": view_history(board_history(board, choice.label, SHOWN_LINES, SHOWN_CHANGES)),
    }


def table_values(
    board: Board, choice: LeaderboardQuery, errors_behind: ErrorsBehind, after: int = 0
) -> dict[str, Any]:
    """What the table is made of."""
    return {
        "errors_behind": errors_behind,
        "errors_can_be_opened": any(errors_behind(row, choice.figure) for row in board.plain_rows),
        "choice": choice,
        "has_papers": not {"published", "self-reported"}.isdisjoint(board.columns.get(getattr, "provenance")),
        "view": view_board(board, choice, after),
        "marks": MARKS,
        "address": lambda **changes: address_of_choice(choice, **changes),
        "after": after,
    }


def plot_values(board: Board, choice: LeaderboardQuery, every_point: bool = False) -> dict[str, Any]:
    """What the plots are made of."""
    chosen = chosen_places(board, choice)
    return {
        "plot": precision_recall_plot(board, chosen, choice, every_point),
        "costs": cost_plot(board, chosen, choice, every_point),
        "every_point": address_of_choice(choice, PLOTS_PATH),
    }


def facts_of(service: SubmissionService, board: Board) -> BoardFacts:
    """The facts of a board as it is now."""
    test = service.suite.split("test")
    is_scored = board.columns.get(getattr, "provenance") == "scored"
    dates = board.columns.get(getattr, "date")[is_scored]
    return BoardFacts(
        n_trajectories=len(test),
        n_agents=len({trajectory.agent for trajectory in test}),
        label_version=board.label_version,
        n_judges=len(board.ranks("success").ids),
        updated=max(dates)[:10] if len(dates) else None,
        read_only_reason=service.read_only_reason,
    )


def _errors_behind(choice: LeaderboardQuery, verdicts: JudgeVerdicts) -> ErrorsBehind:
    def address(row: BoardRow, metric: str) -> str:
        if choice.label != LABEL or "test" not in verdicts.splits_with_errors(row):
            return ""
        errors = {"kind": ERRORS_BEHIND.get(metric), "agent": choice.agent}
        return link_to("/errors", judge=row.id, split="test", **{k: v for k, v in errors.items() if v})

    return address
