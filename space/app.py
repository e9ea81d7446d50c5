"""The Space: pages and REST on one server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import gradio as gr
from fastapi import FastAPI
from gradio.utils import get_upload_folder
from starlette.concurrency import run_in_threadpool

from dataset_script.settings import Settings
from space.annotating.router import build_labelling_router
from space.auth.oauth import build_login
from space.auth.routes import build_auth_router
from space.auth.sign_in_page import SignInPage
from space.board_pages import build_board_router
from space.explorer.explorer import Explorer
from space.explorer.rest import build_explorer_router
from space.form_headers import FORM_BYTES
from space.kept_assets import KeptAssets
from space.look import Look
from space.operations.check_limit import CheckLimit
from space.operations.closed_routes import ClosedRoutes
from space.operations.metrics import Metrics
from space.operations.metrics_route import build_metrics_router
from space.operations.requests import RequestLog
from space.operations.security_headers import SecurityHeaders
from space.operations.watched_service import WatchedService
from space.page import Page, Services
from space.pages.about import build_about_page, open_about
from space.pages.compare import build_compare_page, open_compare_page
from space.pages.judge import build_judge_page, open_judge_page
from space.pages.leaderboard import build_leaderboard_page, open_leaderboard
from space.pages.paper import build_paper_page, open_paper
from space.pages.rates import build_rates_page, open_rates
from space.pages.submit import build_submit_page, open_submit
from space.pages.trajectories import build_trajectories_page, open_trajectories
from space.people import build_people_router
from space.plain_page import PlainPages
from space.rest import build_router
from space.rest_description import ABOUT_REST, build_description_router
from space.rest_submissions import build_submission_router
from space.shell import NAME, PageShell
from space.theme import build_theme
from space.upload_bounds import UploadBounds
from submissions.opening import open_service
from submissions.service import SubmissionService

PAGES = (
    Page("Leaderboard", "/", build_leaderboard_page, opening=open_leaderboard),
    Page("Compare", "/compare", build_compare_page, opening=open_compare_page),
    Page("Judge", "/judge", build_judge_page, in_menu=False, opening=open_judge_page),
    Page("Success rates", "/rates", build_rates_page, opening=open_rates),
    Page("Trajectories", "/trajectories", build_trajectories_page, opening=open_trajectories),
    Page("Paper", "/paper", build_paper_page, opening=open_paper),
    Page("About", "/about", build_about_page, opening=open_about),
    Page("Submit", "/submit", build_submit_page, opening=open_submit),
)
"""The pages in the order of the menu. One line a page; ``in_menu=False`` leaves it out there."""

TEMPORARY_FILES_SECONDS = 3600


def create_app(settings: Settings) -> FastAPI:
    """The application for these settings: labels and records are opened, unfinished scoring is finished.

    Raises RepositoryMisnamed, DatabaseUnavailable.
    """
    metrics = Metrics()
    service = open_service(settings, partial(WatchedService, metrics=metrics))
    metrics.watch_queue(service.durability.waiting)
    app = FastAPI(
        lifespan=partial(closing_at_the_end, service),
        title=NAME,
        description=ABOUT_REST,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    on_space, look, checks = settings.space_id is not None, Look(), CheckLimit(settings, metrics)
    services = Services(service, Explorer(settings, service), checks)
    app.include_router(build_router(service), tags=["The board"])
    app.include_router(
        build_submission_router(service, checks.take_or_429, services.auth), tags=["Prediction files"]
    )
    app.include_router(build_explorer_router(services.trajectories), tags=["Trajectories"])
    app.include_router(build_metrics_router(metrics, settings.metrics_token, services.auth.is_maintainer))
    app.include_router(build_description_router(app, NAME, look, PAGES, on_space))
    app.include_router(build_board_router(services.boards))
    app.include_router(look.router())
    menu = [page for page in PAGES if page.in_menu]
    plain_pages = PlainPages(look, NAME, menu, on_space)
    app.include_router(build_people_router(services, plain_pages))
    app.include_router(build_labelling_router(services, plain_pages))
    sign_in_page = SignInPage(look, NAME, menu, on_space)
    app.include_router(
        build_auth_router(services.auth, sign_in_page, service.suite.rules, services.labelling.is_annotator),
        tags=["Who is asking"],
    )
    if services.auth.mode == "hub":
        app.mount("/login", build_login(services.auth, sign_in_page))
    pages = build_pages(services)
    pages.has_launched = True  # else Gradio 6.31 checks no path of a request: it does so from launch() on
    app.add_middleware(KeptAssets)
    app.add_middleware(ClosedRoutes)
    app.add_middleware(PageShell, pages=PAGES, services=services, look=look, on_space=on_space)
    app.add_middleware(
        UploadBounds,
        most_bytes=settings.max_upload_bytes + FORM_BYTES,
        folder=Path(get_upload_folder()),
        keep_seconds=TEMPORARY_FILES_SECONDS,
        count=CheckLimit(settings, metrics).take_or_429,
    )
    app.add_middleware(SecurityHeaders, on_space=on_space)
    app.add_middleware(RequestLog, metrics=metrics)  # the last one added is around all others
    return gr.mount_gradio_app(
        app,
        pages,
        path="/",
        theme=build_theme(),
        max_file_size=settings.max_upload_bytes,
        show_error=False,
        run_history=False,
        enable_monitoring=False,  # else /monitoring/summary tells anyone how the page handlers are used
        footer_links=[],
    )


@asynccontextmanager
async def closing_at_the_end(service: SubmissionService, _app: FastAPI) -> AsyncIterator[None]:
    """Bring to the Hub what waits for it when the server is shut down."""
    yield
    await run_in_threadpool(service.close)


def build_pages(services: Services) -> gr.Blocks:
    """Every page, each with an address of its own; our own menu stands above them, not Gradio's."""
    # Uploads lie in Gradio's temporary folder; both numbers are seconds: how often, and how old.
    cleaning = (TEMPORARY_FILES_SECONDS // 4, TEMPORARY_FILES_SECONDS)
    first, *others = PAGES
    with gr.Blocks(title=NAME, analytics_enabled=False, delete_cache=cleaning, fill_width=True) as pages:
        gr.Navbar(visible=False)
        first.build(services)
    for page in others:
        with pages.route(page.title, page.path):
            gr.Navbar(visible=False)
            page.build(services)
    return pages
