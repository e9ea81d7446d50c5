"""The Space's FastAPI application: pages, REST API, Gradio, MCP, middleware and regular clean-up."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from fastapi import APIRouter, FastAPI, Request
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Receive, Scope, Send

from arb.core import __version__
from arb.core.files import project_file
from arb.core.hub import CommitRateLimiter
from arb.core.memory import resident_bytes, return_memory
from arb.core.settings import Settings
from arb.core.suite import OFFICIAL
from space.api.board import build_board_router, build_board_versions_router
from space.api.docs import ABOUT_REST, OPENAPI_PATH, Documentation, add_api_page
from space.api.schemas import describe_responses, operation_id
from space.api.submissions import build_submission_router
from space.auth.oauth import build_auth_router, build_login
from space.gradio_app.app import mount_gradio
from space.gradio_app.limits import OpenStreams, StreamLimits, UnreadResults
from space.gradio_app.mcp_server import MCP_BODY_BYTES, MCP_PATH
from space.gradio_app.submit_page import build_submit_router
from space.gradio_app.uploads import UploadStore, build_upload_router
from space.operations.health import build_health_router
from space.operations.limits import CheckLimit, client_address, count_file, sender_of
from space.operations.logging import RequestLog
from space.operations.metrics import Metrics, build_metrics_router
from space.operations.security import HUB, ClosedRoutes, SecurityHeaders
from space.operations.upload_queue import AT_ONCE, AT_ONCE_SMALL, Admission, UploadQueue
from space.pages.about.page import build_about_router
from space.pages.about.paper import build_paper_router
from space.pages.account import build_account_pages, build_account_router
from space.pages.agent.own_agent import build_own_agent_router
from space.pages.agent.success_rates import build_rates_router
from space.pages.compare.page import build_compare_router
from space.pages.judge.errors import build_errors_pages, build_errors_router
from space.pages.judge.page import build_judge_router
from space.pages.judge.validate import build_validate_router
from space.pages.labels.annotation import (
    ANSWERS_PATH,
    MOST_ANSWER_BYTES,
    build_annotation_pages,
    build_annotation_router,
)
from space.pages.labels.discussion import build_discussion_pages, build_discussion_router
from space.pages.labels.disputes import build_disputes_pages, build_disputes_router
from space.pages.labels.versions import build_label_versions
from space.pages.leaderboard.page import build_leaderboard_router
from space.pages.maintain.api import build_maintain_router
from space.pages.maintain.page import build_maintain_pages
from space.pages.suites.page import build_suites_routers
from space.pages.trajectories.dataset import Explorer
from space.pages.trajectories.page import build_explorer_router, build_trajectories_router
from space.services import Services
from space.suites import SuiteRoutes, SuiteServices
from space.web.body_limits import ALL_OTHERS, FORM_ROUTES, JSON_BYTES, PAGE_UPLOAD, BodyLimits
from space.web.frame import PageFrame
from space.web.http_errors import RenderError, add_error_handlers
from space.web.responses import StaticAssets
from space.web.suite_path import SuitePath, root_of, suite_root
from submissions.served_suites import served_suites
from submissions.startup import STARTUP_WAIT_SECONDS, open_service

REQUESTS_A_FILE: Final = 10
"""How many other requests with a body a sender may send for each file that it may have checked."""
TIDY_EVERY_SECONDS: Final = 15.0
GROWN_BYTES: Final = 16 << 20


def add_routes(app: FastAPI | APIRouter, services: Services, pages: PageFrame) -> None:
    """Add the pages and the REST API of a suite; ``/api`` lists the routes in this order."""
    service, auth, explorer = services.submissions, services.auth, services.trajectories
    is_annotator, blind_items = services.annotations.is_annotator, services.access.blind_items
    suites_page, suites_api = build_suites_routers(services, pages)
    rest = (
        ("The board", build_board_router(service)),
        ("The board", suites_api),
        ("The board", build_health_router(service)),
        ("Prediction files", build_submission_router(services)),
        ("Trajectories", build_explorer_router(explorer, blind_items)),
        ("Your submissions", build_account_router(services)),
        ("Maintainers", build_maintain_router(services)),
        ("The board", build_board_versions_router(service, auth)),
        ("Disputes", build_disputes_router(services)),
        ("Errors of judges", build_errors_router(services)),
        ("Annotators", build_annotation_router(services)),
        ("Discussion of labels", build_discussion_router(services)),
        ("Account", build_auth_router(auth, pages, service.suite.rules, is_annotator)),
    )
    for router in (
        pages.static.router(),  # routes are tried in order, so the most frequent ones come first
        build_leaderboard_router(services, pages),
        suites_page,
        build_compare_router(services, pages),
        build_judge_router(services, pages),
        build_own_agent_router(services, pages),
        build_rates_router(services, pages),
        build_validate_router(services, pages),
        build_trajectories_router(explorer, pages, blind_items),
        build_paper_router(services, pages),
        build_about_router(services, pages),
        build_account_pages(services, pages),
        build_maintain_pages(services, pages),
        build_disputes_pages(services, pages),
        build_errors_pages(services, pages),
        build_label_versions(services, pages),
        build_annotation_pages(services, pages),
        build_discussion_pages(services, pages),
    ):
        app.include_router(router)
    for tag, router in rest:
        app.include_router(router, tags=[tag])


def create_app(settings: Settings, wait_s: float = STARTUP_WAIT_SECONDS) -> FastAPI:
    """Open the labels and the records, finish unfinished scoring, and return the application.

    Suites other than the default one are opened when first used (``app.state.services_by_suite``).

    Call ``app.state.end_streams()`` before stopping the server, which otherwise waits for open event streams.
    ``wait_s`` is how long to wait for the Hub; see `open_service`. Raises SuiteError, RecordsUnavailable.
    """
    served = served_suites(settings)
    default, *further = served
    settings = served[default].settings
    metrics, limiter = Metrics(), CommitRateLimiter()
    uploads, streams = UploadStore(settings), OpenStreams()
    sweeps: list[Callable[[], object]] = [uploads.sweep]
    counts = RequestCounts(settings, metrics, uploads)
    queue = UploadQueue(AT_ONCE_SMALL if settings.has_little_memory else AT_ONCE)

    def open_suite(name: str) -> Services:
        suite, own = served[name]
        main = None if name == default else suites.default.submissions
        service = open_service(own, limiter, 0 if main else wait_s, main)
        service.suite = suite
        metrics.watch(service)
        services = Services(service, Explorer(own, service), counts.files, queue, suites)
        service.records.known_verdicts = services.verdicts  # so that the board ranks as Compare compares
        return services

    suites = SuiteServices(tuple(served), open_suite)
    services = suites.default
    service = services.submissions
    app = FastAPI(
        lifespan=partial(lifespan, suites, uploads, sweeps),
        title=service.suite.profile.title,
        description=ABOUT_REST,
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=OPENAPI_PATH,
        generate_unique_id_function=operation_id,
    )
    app.state.end_streams, app.state.services_by_suite = streams.end, suites
    on_space = settings.space_id is not None
    has_docs = (site := project_file("site")).is_dir() and default == OFFICIAL
    static, titles = StaticAssets(), {name: each.suite.profile.title for name, each in served.items()}
    frames = {
        name: PageFrame(static, on_space, each.suite.profile, has_docs, titles if further else {}, name)
        for name, each in served.items()
    }
    pages = frames[default]
    by_root = {root_of(name): frames[name] for name in further} | {"": pages}

    def problem(heading: str, message: str, status: int) -> Response:
        return by_root[suite_root()].problem(heading, message, status)

    def serves(path: str) -> bool:
        return by_root[suite_root()].profile.serves(path)

    def build_suite(name: str, opened: Services) -> APIRouter:
        router = APIRouter(redirect_slashes=False)
        add_routes(router, opened, frames[name])
        router.include_router(build_submit_router(opened, frames[name]))
        return router

    app.router.routes.append(SuiteRoutes(suites, build_suite))
    add_routes(app, services, pages)
    add_api_page(app, on_space)
    describe_responses(app)
    if has_docs:
        app.mount("/docs", Documentation(site, on_space))
        app.add_api_route("/docs", lambda: RedirectResponse("/docs/"), include_in_schema=False)
    app.include_router(build_upload_router(uploads, counts.sender))
    app.include_router(build_metrics_router(metrics, settings.metrics_token, services.auth.is_maintainer))
    if services.auth.mode == "hub":
        app.mount("/login", build_login(services.auth, pages))
    _add_middleware(app, settings, services, serves, problem, counts, streams)
    app.add_middleware(HeadLikeGet)
    app.add_middleware(SuitePath, default=default, further=frozenset(further))
    app.add_middleware(RequestLog, metrics=metrics, render_error=pages.problem)  # the outermost middleware
    gradio_app = mount_gradio(app, services, settings, pages)
    add_error_handlers(gradio_app, service, pages.problem)  # Gradio answers every address that is not ours
    sweeps.append(UnreadResults(gradio_app.get_blocks()._queue, counts.sender).sweep)
    return app


class HeadLikeGet:
    """Middleware that answers a HEAD request like a GET request. The server leaves out the body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        as_get = {**scope, "method": "GET"}
        try:
            await self._app(as_get, receive, send)
        finally:
            scope.update(as_get, method="HEAD")  # `RequestLog` reads which route has answered


class RequestCounts:
    """Limits per account or address on requests with a body. They are applied before the body is read."""

    def __init__(self, settings: Settings, metrics: Metrics, uploads: UploadStore) -> None:
        self.files = CheckLimit(settings, metrics)
        self.sender = partial(client_address, on_space=settings.space_id is not None)
        self._page_uploads = CheckLimit(settings, metrics)
        self._others = CheckLimit(settings, metrics, times=REQUESTS_A_FILE)
        self._uploads = uploads

    @property
    def by_path(self) -> dict[str, Callable[[Request], None]]:
        """The functions that count a request and raise an error if it exceeds the limit, keyed by path."""
        return {
            **dict.fromkeys(FORM_ROUTES, self.files.take),
            PAGE_UPLOAD: self._count_upload,
            MCP_PATH: self._count_call,
            ALL_OTHERS: self._others.take,
        }

    def _count_call(self, request: Request) -> None:
        length = request.headers.get("content-length", "")
        if length.isdecimal() and len(length) < 9 and int(length) <= JSON_BYTES:
            self._others.take(request)
        else:
            count_file(self.files, request)

    def _count_upload(self, request: Request) -> None:
        self._page_uploads.take(request)
        self._uploads.require_room(self.sender(request))


def _add_middleware(
    app: FastAPI,
    settings: Settings,
    services: Services,
    serves: Callable[[str], bool],
    problem: RenderError,
    counts: RequestCounts,
    streams: OpenStreams,
) -> None:
    """Add all middleware inside of `SuitePath`, from the innermost to the outermost."""
    on_space = settings.space_id is not None

    def count_submitter(request: Request) -> None:
        if (actor := services.auth.submitter_of(request)) is not None:
            counts.files.take(request, actor)
        request.state.submitter = actor

    def account_or_address(request: Request) -> str:
        return sender_of(request, on_space, getattr(request.state, "submitter", None))

    app.add_middleware(Admission, uploads=services.uploads, sender=account_or_address, admits=is_expensive)
    app.add_middleware(StreamLimits, streams=streams, sender=counts.sender)
    # Otherwise Gradio would add its CORS middleware, which lets the pages of any site read our responses.
    app.add_middleware(
        CORSMiddleware, allow_origins=(HUB,) if on_space else (), allow_methods=("GET", "POST")
    )
    app.add_middleware(ClosedRoutes, serves=serves, render_error=problem)
    add_error_handlers(app, services.submissions, problem)
    app.add_middleware(
        BodyLimits,
        upload_bytes=settings.max_upload_bytes,
        counts=counts.by_path,
        gates={"/api/submissions": count_submitter, ANSWERS_PATH: services.auth.require_actor},
        sender=counts.sender,
        larger={ANSWERS_PATH: MOST_ANSWER_BYTES, MCP_PATH: MCP_BODY_BYTES},
        render_error=problem,
    )
    app.add_middleware(SecurityHeaders, on_space=on_space)


def is_expensive(path: str) -> bool:
    """Return whether a POST to the path has to wait in the upload queue."""
    return path in (*FORM_ROUTES, MCP_PATH) or path.startswith("/gradio_api/")


@asynccontextmanager
async def lifespan(
    suites: SuiteServices, uploads: UploadStore, sweeps: Sequence[Callable[[], object]], _app: FastAPI
) -> AsyncIterator[None]:
    """Call the sweeps regularly; at shutdown, delete all uploads and send waiting records to the Hub."""
    tidying = asyncio.create_task(tidy(sweeps))
    yield
    tidying.cancel()
    uploads.clear()
    for services in suites.opened:
        await run_in_threadpool(services.submissions.close)


async def tidy(sweeps: Sequence[Callable[[], object]]) -> None:
    """Call the sweeps regularly until cancelled, and return memory to the system if the server has grown."""
    least = math.inf
    while True:
        await asyncio.sleep(TIDY_EVERY_SECONDS)
        for sweep in sweeps:
            sweep()
        least = min(least, resident_bytes())
        if resident_bytes() > least + GROWN_BYTES:
            await run_in_threadpool(return_memory)
            least = resident_bytes()
