"""The leaderboard's answers, made once for each board and choice and then kept as long as there is room."""

from collections.abc import Callable

from fastapi import APIRouter, Request, Response

from space.board_choice import Options, choice_in, options_of
from space.board_html import page_html, regions_html
from space.plots import precision_recall_plot
from space.prepared import Prepared, size_of
from space.shelf import Shelf
from submissions.service import SubmissionService

KEPT_BYTES = 24_000_000


class BoardPages:
    """Page, changing parts and plot of the leaderboard for any address. Safe for threads."""

    def __init__(self, service: SubmissionService) -> None:
        self._service = service
        self._texts: Shelf[str] = Shelf(KEPT_BYTES, len)
        self._answers: Shelf[Prepared] = Shelf(KEPT_BYTES, size_of)
        self._options: Shelf[Options] = Shelf(4, lambda _: 1)

    def opening(self, query: str) -> tuple[str, str]:
        """The page's HTML for the query string of its address, and a tag of what it holds."""
        board, options, choice = self._chosen(query)
        reason = self._service.read_only_reason or ""
        html = self._kept(
            ("page", board.digest, choice, reason), lambda: page_html(self._service, board, options, choice)
        )
        return html, f"{board.digest} {choice} {reason}"

    def regions(self, query: str) -> Prepared:
        """What a new choice changes on the page, as HTML."""
        board, _, choice = self._chosen(query)

        def make() -> Prepared:
            return Prepared.of(regions_html(board, choice).encode(), "text/html; charset=utf-8")

        return self._answers.get((board.digest, choice), make)

    def plot(self, query: str) -> str:
        """The plot of the rows that the query string chooses, as Plotly's JSON."""
        board, _, choice = self._chosen(query)
        return self._kept(
            ("plot", board.digest, choice),
            lambda: precision_recall_plot(board, choice.label, choice).to_json(),
        )

    def _chosen(self, query: str):
        board = self._service.board()
        options = self._options.get(board.digest, lambda: options_of(board))
        return board, options, choice_in(query, options)

    def _kept(self, key: tuple, make: Callable[[], str]) -> str:
        return self._texts.get(key, make)


def build_board_router(boards: BoardPages) -> APIRouter:
    """The route from which the page takes what a new choice changes."""
    router = APIRouter()

    @router.get("/parts/board", include_in_schema=False)
    def parts(request: Request) -> Response:
        return boards.regions(request.url.query).answer(request)

    return router
