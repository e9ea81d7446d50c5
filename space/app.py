"""The Space: pages and REST on one server.

What people see and do of their own, and maintainers of everybody's: pages and REST, in one router.

What readers see and do about labels: disputes, errors of judges, label versions, in one router.

Labelling in one router: the annotators' pages and REST, the discussion, and what maintainers do there.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from fastapi import APIRouter, FastAPI
from gradio.utils import get_upload_folder
from starlette.concurrency import run_in_threadpool
from starlette.routing import Mount

from core.settings import Settings
from space.api.board import build_old_boards_router, build_router
from space.api.docs import ABOUT_REST, build_description_router
from space.api.submissions import build_submission_router
from space.auth.oauth import SignInPage, build_auth_router, build_login
from space.gradio_app.app import TEMPORARY_FILES_SECONDS, mount_gradio
from space.gradio_app.mcp_server import MCP_BODY_BYTES, MCP_PATH
from space.operations.logging import RequestLog
from space.operations.metrics import Metrics, build_metrics_router
from space.operations.rate_limit import CheckLimit
from space.operations.security import ClosedRoutes, SecurityHeaders
from space.pages.about import build_about_router
from space.pages.annotate.access import Access
from space.pages.annotate.api import (
    ANSWERS_PATH,
    MOST_ANSWER_BYTES,
    build_annotating_router,
    build_label_office_router,
)
from space.pages.annotate.discuss import build_discussing_router
from space.pages.annotate.page import build_annotating_pages
from space.pages.compare.page import build_compare_router
from space.pages.errors.page import build_errors_pages, build_errors_router
from space.pages.judge.page import build_judge_router
from space.pages.labels import build_disputes_pages, build_disputes_router, build_label_log
from space.pages.leaderboard.page import build_leaderboard_router
from space.pages.maintain.api import RescoringJob, build_maintain_router
from space.pages.maintain.page import build_maintain_pages
from space.pages.mine import build_own_pages, build_own_router
from space.pages.paper import build_paper_router
from space.pages.success_rates import build_rates_router
from space.pages.trajectories.dataset import Explorer
from space.pages.trajectories.page import build_explorer_router, build_trajectories_router
from space.services import Services
from space.web.assets import StaticAssets
from space.web.body_limits import PAGE_UPLOAD, BodyLimits
from space.web.frame import NAME, PageFrame
from space.web.http_errors import add_error_handlers
from submissions.moderation.reader_actions import ReaderActions
from submissions.service import SubmissionService
from submissions.startup import open_service


def build_labels_router(services: Services, pages: PageFrame) -> APIRouter:
    """``/disputes``, ``/errors``, ``/labels`` and their REST answers."""
    service, auth, router = services.submissions, services.auth, APIRouter()
    acts = ReaderActions(service.engine, service.suite, service.clock)
    columns = services.judge_columns
    router.include_router(build_disputes_router(service, auth, acts), tags=["Disputes"])
    router.include_router(build_disputes_pages(service, auth, acts, pages))
    router.include_router(build_errors_router(service, auth, acts, columns), tags=["Errors of judges"])
    router.include_router(build_errors_pages(service, columns, pages))
    router.include_router(build_label_log(service, auth, pages))
    return router


def build_people_router(services: Services, pages: PageFrame) -> APIRouter:
    """``/mine``, ``/maintain``, boards of other label versions, and what is about labels; with their REST."""
    service, auth, router = services.submissions, services.auth, APIRouter()
    job = RescoringJob(service)
    router.include_router(build_own_router(service, auth), tags=["Your submissions"])
    router.include_router(build_own_pages(service, auth, pages))
    router.include_router(build_maintain_router(service, auth, job), tags=["Maintainers"])
    router.include_router(build_maintain_pages(service, auth, job, pages))
    router.include_router(build_old_boards_router(service, auth), tags=["The board"])
    router.include_router(build_labels_router(services, pages))
    return router


def build_labelling_router(services: Services, pages: PageFrame) -> APIRouter:
    """``/annotate``, ``/discuss`` and the REST answers behind them."""
    desk, explorer = services.labelling, services.trajectories
    access, router = Access(desk, services.auth), APIRouter()
    router.include_router(build_annotating_router(desk, explorer, access), tags=["Annotators"])
    router.include_router(build_discussing_router(desk, access), tags=["Discussion of labels"])
    router.include_router(build_label_office_router(desk, explorer, access), tags=["Discussion of labels"])
    router.include_router(build_annotating_pages(desk, explorer, access, pages))
    return router


PAGE_ROUTERS = (
    build_leaderboard_router,
    build_compare_router,
    build_judge_router,
    build_rates_router,
    build_trajectories_router,
    build_paper_router,
    build_about_router,
)
"""What builds the pages for readers from the services and the frame; the menu is in ``plain_page.PAGES``."""


def create_app(settings: Settings) -> FastAPI:
    """The application for these settings: labels and records are opened, unfinished scoring is finished.

    Raises InvalidRepositoryName, DatabaseUnavailable.
    """
    metrics = Metrics()
    service = open_service(settings)
    metrics.watch_service(service)
    metrics.watch_queue(service.durability.waiting)
    app = FastAPI(
        lifespan=partial(closing_at_the_end, service),
        title=NAME,
        description=ABOUT_REST,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    on_space, checks = settings.space_id is not None, CheckLimit(settings, metrics)
    services = Services(service, Explorer(settings, service), checks)
    static = StaticAssets()
    pages = PageFrame(static, on_space)
    app.include_router(build_router(service), tags=["The board"])
    app.include_router(build_submission_router(service, services.auth), tags=["Prediction files"])
    app.include_router(build_explorer_router(services.trajectories), tags=["Trajectories"])
    app.include_router(build_metrics_router(metrics, settings.metrics_token, services.auth.is_maintainer))
    app.include_router(build_description_router(app, pages))
    app.include_router(static.router())
    for build in PAGE_ROUTERS:
        app.include_router(build(services, pages))
    app.include_router(build_people_router(services, pages))
    app.include_router(build_labelling_router(services, pages))
    sign_in_page = SignInPage(pages)
    app.include_router(
        build_auth_router(services.auth, sign_in_page, service.suite.rules, services.labelling.is_annotator),
        tags=["Account"],
    )
    if services.auth.mode == "hub":
        app.mount("/login", build_login(services.auth, sign_in_page))
    app.add_middleware(ClosedRoutes)
    add_error_handlers(app, service, pages.problem)
    app.add_middleware(
        BodyLimits,
        upload_bytes=settings.max_upload_bytes,
        folder=Path(get_upload_folder()),
        keep_seconds=TEMPORARY_FILES_SECONDS,
        gates={
            PAGE_UPLOAD: CheckLimit(settings, metrics).take,
            "/api/check": checks.take,
            "/api/submissions": services.auth.submitter_of,
        },
        larger={ANSWERS_PATH: MOST_ANSWER_BYTES, MCP_PATH: MCP_BODY_BYTES},
    )
    app.add_middleware(SecurityHeaders, on_space=on_space)
    # the last one added is around all others
    app.add_middleware(RequestLog, metrics=metrics, render_error=pages.problem)
    app = mount_gradio(app, services, settings, pages)
    gradio_app = next(route.app for route in reversed(app.routes) if isinstance(route, Mount))
    add_error_handlers(gradio_app, service, pages.problem)  # it answers every address that is not ours
    return app


@asynccontextmanager
async def closing_at_the_end(service: SubmissionService, _app: FastAPI) -> AsyncIterator[None]:
    """Bring to the Hub what waits for it when the server is shut down."""
    yield
    await run_in_threadpool(service.close)
