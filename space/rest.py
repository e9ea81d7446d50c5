"""The REST answers beside the pages: the board as JSON and CSV, and a health check."""

import threading

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from leaderboard.board_csv import board_to_csv
from space.prepared import Prepared
from submissions.service import SubmissionService


class BoardAnswers:
    """The board's bytes, prepared anew only when the board is another one."""

    def __init__(self, service: SubmissionService) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._kept: tuple[str, tuple[Prepared, Prepared]] | None = None

    async def get(self) -> tuple[Prepared, Prepared]:
        """JSON and CSV of the board as it is now; in a thread of its own where that takes time."""
        board = self._service.board_at_hand()
        kept = self._kept  # read once: a thread may put another one here
        if board is not None and kept is not None and kept[0] == board.digest:
            return kept[1]
        return await run_in_threadpool(self._make)

    def _make(self) -> tuple[Prepared, Prepared]:
        board = self._service.board()
        with self._lock:
            if self._kept is None or self._kept[0] != board.digest:
                json_answer = Prepared.of(board.to_bytes(), "application/json")
                csv_answer = Prepared.of(board_to_csv(board).encode(), "text/csv; charset=utf-8")
                self._kept = (board.digest, (json_answer, csv_answer))
            return self._kept[1]


def build_router(service: SubmissionService) -> APIRouter:
    """Routes over a service. HEAD is answered too: who watches a site often asks no more."""
    router = APIRouter()
    answers = BoardAnswers(service)

    @router.head("/api/board.json", include_in_schema=False)
    @router.get("/api/board.json", summary="The board: rows, figures, intervals, digest")
    async def board_json(request: Request) -> Response:
        return (await answers.get())[0].answer(request)

    @router.head("/api/board.csv", include_in_schema=False)
    @router.get("/api/board.csv", summary="The board as CSV, a line a row and label")
    async def board_csv(request: Request) -> Response:
        disposition = {"Content-Disposition": 'attachment; filename="agent-reward-bench-board.csv"'}
        return (await answers.get())[1].answer(request, disposition)

    @router.head("/healthz", include_in_schema=False)
    @router.get("/healthz", summary="Whether the Space serves, and whether it takes submissions")
    def health() -> JSONResponse:
        board = service.board()
        return JSONResponse(
            {
                "status": "ok",
                "suite": service.suite.name,
                "submissions": "off" if service.read_only_reason else "open",
                "label_version": service.label_version,
                "board_digest": board.digest,
            }
        )

    return router
