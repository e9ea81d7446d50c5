"""The Space: pages and REST on one server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from fastapi import FastAPI
from gradio.utils import get_upload_folder
from starlette.concurrency import run_in_threadpool
from starlette.routing import Mount

from dataset_script.settings import Settings
from space.annotating.rest import ANSWERS_PATH, MOST_ANSWER_BYTES
from space.annotating.router import build_labelling_router
from space.auth.oauth import build_login
from space.auth.routes import build_auth_router
from space.auth.sign_in_page import SignInPage
from space.explorer.explorer import Explorer
from space.explorer.rest import build_explorer_router
from space.gradio_app.app import TEMPORARY_FILES_SECONDS, mount_gradio
from space.gradio_app.mcp_server import MCP_BODY_BYTES, MCP_PATH
from space.look import StaticAssets
from space.operations.check_limit import CheckLimit
from space.operations.closed_routes import ClosedRoutes
from space.operations.metrics import Metrics
from space.operations.metrics_route import build_metrics_router
from space.operations.requests import RequestLog
from space.operations.security_headers import SecurityHeaders
from space.page import Services
from space.pages.about import build_about_router
from space.pages.compare import build_compare_router
from space.pages.judge import build_judge_router
from space.pages.leaderboard import build_leaderboard_router
from space.pages.paper import build_paper_router
from space.pages.rates import build_rates_router
from space.pages.trajectories import build_trajectories_router
from space.people import build_people_router
from space.plain_page import NAME, PageFrame
from space.rest import build_router
from space.rest_description import ABOUT_REST, build_description_router
from space.rest_submissions import build_submission_router
from space.web.body_limits import PAGE_UPLOAD, BodyLimits
from space.web.http_errors import add_error_handlers
from submissions.opening import open_service
from submissions.service import SubmissionService

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
