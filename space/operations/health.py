"""The routes ``/healthz`` and ``/readyz``, for programs that monitor or restart the server."""

from typing import Any, Final

from anyio import CapacityLimiter, move_on_after, to_thread
from fastapi import APIRouter
from fastapi.responses import JSONResponse
from sqlalchemy import text

from space.web.http_errors import NO_STORE
from submissions.app import SubmissionsApp
from submissions.errors import DatabaseAway
from submissions.records.database import snapshot

READY_SECONDS: Final = 5.0
NOT_IN_TIME: Final = "the database does not answer in time"


def readiness(service: SubmissionsApp) -> dict[str, Any]:
    """Return the state of the service. ``status`` is "ok", or "unavailable" with a ``reason``."""
    try:
        with snapshot(service.engine) as session:
            session.execute(text("SELECT 1"))
        board = service.records.cached_board() or service.records.latest_board or service.records.board()
        reason = service.intake.read_only_reason
        facts = {
            "suite": service.suite.name,
            "submissions": "off" if reason else "open",
            "submissions_off_because": reason,
            "waiting": service.durability.waiting(),
            "records": service.durability.message,
            "label_version": service.label_version,
            "board_digest": board.digest,
        }
    except DatabaseAway as away:
        return {"status": "unavailable", "reason": str(away)}
    if closed := service.durability.closed:
        return {"status": "unavailable", "reason": closed, **facts}
    return {"status": "ok", **facts}


def build_health_router(service: SubmissionsApp) -> APIRouter:
    """Return the routes ``/healthz`` and ``/readyz``."""
    router = APIRouter()
    # With its own thread, `ready` does not wait for uploads, pages or a board that is being computed.
    thread = CapacityLimiter(1)

    @router.get("/healthz", summary="Liveness: the process answers")
    async def live() -> JSONResponse:
        """This route does not use the database. Restart the process if it does not answer."""
        return JSONResponse({"status": "ok"}, headers=NO_STORE)

    @router.get(
        "/readyz",
        summary="Readiness: whether the database answers, and whether submissions are open",
    )
    async def ready() -> JSONResponse:
        """``board_digest`` is the digest of the last finished board. A newer board may still be under way."""
        found: dict[str, Any] = {"status": "unavailable", "reason": NOT_IN_TIME}
        with move_on_after(READY_SECONDS):
            found = await to_thread.run_sync(readiness, service, limiter=thread, abandon_on_cancel=True)
        if found["status"] == "ok":
            return JSONResponse(found, headers=NO_STORE)
        return JSONResponse(found, 503, {**NO_STORE, "Retry-After": str(DatabaseAway.RETRY_AFTER_SECONDS)})

    return router
