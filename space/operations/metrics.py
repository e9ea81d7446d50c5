"""Prometheus metrics: submissions, checks, failures, records that are not yet durable, response times.

Only maintainers and holders of the metrics token may read ``GET /metrics``.
"""

import hmac
from collections.abc import Callable
from typing import Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from pydantic import SecretStr
from starlette.concurrency import run_in_threadpool

from space.web.http_errors import NO_STORE
from submissions.app import SubmissionsApp
from submissions.errors import PermissionDenied, RateLimited, SubmissionError
from submissions.intake.receipts import SubmissionView
from submissions.intake.upload import Upload

SECONDS: Final = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)
"""The upper bounds of the histogram's buckets."""
MOST_ROUTES: Final = 200
"""The maximum number of routes that are counted separately. The application has fewer, but a bug might turn
every path into a route and fill the memory."""


class Metrics:
    """The metrics of one application, in a registry of their own. Thread-safe."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.submissions = Counter(
            "arb_submissions", "Test files sent, by outcome.", ["outcome"], registry=self.registry
        )
        self.checks = Counter(
            "arb_checks", "Prediction files checked, by result.", ["outcome"], registry=self.registry
        )
        self.failures = Counter(
            "arb_failures", "Failures of the Space itself, by place.", ["where"], registry=self.registry
        )
        self._waiting = Gauge(
            "arb_waiting_records", "Records that are not yet durable.", registry=self.registry
        )
        self._seconds = Histogram(
            "arb_request_seconds", "Time to answer, by route.", ["method", "route", "status"],
            buckets=SECONDS, registry=self.registry,
        )  # fmt: skip
        self._routes: set[str] = set()
        self._watched: list[SubmissionsApp] = []

    def watch(self, service: SubmissionsApp) -> None:
        """Count everything that ``service`` checks and submits from now on."""
        service.intake.listeners.append(self._count)
        self._watched.append(service)
        self._waiting.set_function(lambda: sum(each.durability.waiting() for each in self._watched))

    def _count(self, result: Upload | SubmissionView | Exception) -> None:
        outcome: str
        match result:
            case Upload(check=check):
                self.checks.labels("acceptable" if check.acceptable else "not acceptable").inc()
                return
            case SubmissionView(receipt=receipt):
                outcome = receipt.status if receipt.is_new else "sent again"
            case RateLimited():
                outcome = "limited"
            case PermissionDenied():
                outcome = "not allowed"
            case SubmissionError():
                outcome = "refused"
            case _:
                outcome = "failed"
                self.failures.labels("submission").inc()
        self.submissions.labels(outcome).inc()

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one response. Status 0 means that the client disconnected before the response began."""
        if route not in self._routes and len(self._routes) >= MOST_ROUTES:
            route = "other"
        self._routes.add(route)
        self._seconds.labels(method, route, f"{status // 100}xx").observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self.registry)


def build_metrics_router(
    metrics: Metrics, token: SecretStr | None, is_maintainer: Callable[[Request], bool]
) -> APIRouter:
    """Return the route ``/metrics``. A request without the token must pass ``is_maintainer``."""
    router = APIRouter()

    @router.get("/metrics", include_in_schema=False)
    async def read(request: Request) -> Response:
        if not holds_token(request, token) and not await run_in_threadpool(is_maintainer, request):
            if token is None:
                return JSONResponse({"detail": "Not Found"}, status_code=404)
            return JSONResponse(
                {"detail": "only maintainers may read metrics; send ARB_METRICS_TOKEN as a bearer token"},
                status_code=401,
                headers={"WWW-Authenticate": "Bearer"},
            )
        text = await run_in_threadpool(metrics.text)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8", headers=NO_STORE)

    return router


def holds_token(request: Request, token: SecretStr | None) -> bool:
    """Return whether the request contains the token. The comparison takes constant time."""
    scheme, _, sent = request.headers.get("authorization", "").partition(" ")
    if token is None or not token.get_secret_value() or scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(sent.strip().encode(), token.get_secret_value().encode())
