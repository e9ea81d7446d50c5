"""``GET /metrics``: for whoever holds the token, or is a maintainer; for anyone else it is not there."""

import hmac
from collections.abc import Callable

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from pydantic import SecretStr
from starlette.concurrency import run_in_threadpool

from space.operations.metrics import Metrics

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def build_metrics_router(
    metrics: Metrics, token: SecretStr | None, is_maintainer: Callable[[Request], bool]
) -> APIRouter:
    """The route. ``is_maintainer`` tells who asks where the token is not given; it may ask the Hub."""
    router = APIRouter()

    def asks_maintainer(request: Request) -> bool:
        try:
            return is_maintainer(request)
        except HTTPException:  # a token that nobody knows
            return False

    @router.get("/metrics", include_in_schema=False)
    async def read(request: Request) -> Response:
        if not holds_token(request, token) and not await run_in_threadpool(asks_maintainer, request):
            if token is None:
                return JSONResponse({"detail": "Not Found"}, status_code=404)
            return JSONResponse(
                {"error": "metrics are for maintainers; send Authorization: Bearer with ARB_METRICS_TOKEN"},
                status_code=401,
                headers={"WWW-Authenticate": "Bearer"},
            )
        text = await run_in_threadpool(metrics.text)
        return Response(text, media_type=MEDIA_TYPE, headers={"Cache-Control": "no-store"})

    return router


def holds_token(request: Request, token: SecretStr | None) -> bool:
    """Whether the request carries the token; compared in a time that tells nothing of it."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if token is None or not token.get_secret_value() or scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(given.strip().encode(), token.get_secret_value().encode())
