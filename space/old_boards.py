"""The boards of other label versions: a score stays under the labels it was made with."""

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import JSONResponse

from space.auth.auth import Auth
from space.prepared import CachedResponse, size_of
from space.shelf import ByteCache
from submissions.database import snapshot
from submissions.lookup import log_version, versions_scored
from submissions.scorer import POLICY
from submissions.service import SubmissionService

KEPT_BYTES = 16_000_000
NO_BOARD = "there is no board for this label version"


def build_old_boards_router(service: SubmissionService, auth: Auth) -> APIRouter:
    """The routes: which versions there are, and the board of each.

    Where labels are private they are for maintainers: a row made public under the labels of now would show
    further figures under every version before.
    """
    router = APIRouter()
    shelf: ByteCache[CachedResponse] = ByteCache(KEPT_BYTES, size_of)

    def require_access(request: Request) -> None:
        if not (service.suite.labels_are_public or auth.is_maintainer(request)):
            raise HTTPException(404, NO_BOARD)

    def versions() -> tuple[list[str], int]:
        with snapshot(service.engine) as session:
            return versions_scored(session, service.suite.name, POLICY), log_version(session)

    @router.get("/api/boards", summary="The label versions that have a board, oldest first")
    def boards(request: Request) -> JSONResponse:
        require_access(request)
        found = {"label_versions": versions()[0], "current": service.label_version}
        return JSONResponse(found, headers={"Cache-Control": "no-store"})

    @router.get("/api/boards/{label_version}", summary="The board of a label version, as JSON")
    def board(request: Request, label_version: str) -> Response:
        """Like ``/api/board.json``, with the scores made with those labels. Withdrawals, renames and the like
        of later still count."""
        require_access(request)
        known, state = versions()
        if label_version not in known:
            raise HTTPException(404, NO_BOARD)
        day = service.clock().date()  # with a new round, rows of a private suite appear
        prepared = shelf.get(
            (label_version, state, day),
            lambda: CachedResponse.of(service.board_under(label_version).to_bytes(), "application/json"),
        )
        return prepared.answer(request)

    return router
