"""The REST answers beside the pages: the board as JSON and CSV, its judges, and a health check."""

import json
import threading
from dataclasses import dataclass

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from leaderboard.board_csv import board_to_csv
from space.judges_answer import judges_answer
from space.prepared import CachedResponse
from submissions.service import SubmissionService


@dataclass(frozen=True)
class Answers:
    """One board as REST gives it."""

    whole: CachedResponse
    table: CachedResponse
    judges: CachedResponse


class BoardAnswers:
    """The board's bytes, prepared again only when the board has changed."""

    def __init__(self, service: SubmissionService) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._kept: tuple[str, Answers] | None = None

    async def get(self) -> Answers:
        """The board as it is now; in a thread of its own where that takes time."""
        board = self._service.cached_board()
        kept = self._kept  # read once: a thread may put another one here
        if board is not None and kept is not None and kept[0] == board.digest:
            return kept[1]
        return await run_in_threadpool(self._make)

    def _make(self) -> Answers:
        board = self._service.board()
        with self._lock:
            if self._kept is None or self._kept[0] != board.digest:
                judges = json.dumps(judges_answer(board), ensure_ascii=False, allow_nan=False).encode()
                answers = Answers(
                    whole=CachedResponse.of(board.to_bytes(), "application/json"),
                    table=CachedResponse.of(board_to_csv(board).encode(), "text/csv; charset=utf-8"),
                    judges=CachedResponse.of(judges, "application/json"),
                )
                self._kept = (board.digest, answers)
            return self._kept[1]


def build_router(service: SubmissionService) -> APIRouter:
    """Routes over a service. HEAD is answered too: who watches a site often asks no more."""
    router = APIRouter()
    answers = BoardAnswers(service)

    @router.head("/api/board.json", include_in_schema=False)
    @router.get("/api/board.json", summary="The board: rows, metrics, intervals, digest")
    async def board_json(request: Request) -> Response:
        """Everything that the leaderboard shows, with its SHA-256. Has an ETag: send it as ``If-None-Match``
        to get 304 while nothing has changed."""
        return (await answers.get()).whole.answer(request)

    @router.head("/api/board.csv", include_in_schema=False)
    @router.get("/api/board.csv", summary="The board as CSV, one line per row and label")
    async def board_csv(request: Request) -> Response:
        disposition = {"Content-Disposition": 'attachment; filename="agent-reward-bench-board.csv"'}
        return (await answers.get()).table.answer(request, disposition)

    @router.head("/api/judges", include_in_schema=False)
    @router.get("/api/judges", summary="The judges: who submitted them, their best row, its metrics")
    async def judges(request: Request) -> Response:
        """In the order of the leaderboard. ``figures`` has for each label the judge's best row, its rank and
        its overall metrics as fractions; null where the judge gives no such verdicts. Has an ETag."""
        return (await answers.get()).judges.answer(request)

    @router.head("/healthz", include_in_schema=False)
    @router.get("/healthz", summary="Health check, and whether submissions are open")
    def health() -> JSONResponse:
        board = service.board()
        return JSONResponse(
            {
                "status": "ok",
                "suite": service.suite.name,
                "submissions": "off" if service.read_only_reason else "open",
                "waiting": service.durability.waiting(),
                "records": service.durability.message,
                "label_version": service.label_version,
                "board_digest": board.digest,
            }
        )

    return router
