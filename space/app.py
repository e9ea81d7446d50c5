"""The Space: pages and REST on one server."""

import gradio as gr
from fastapi import FastAPI

from dataset_script.settings import Settings
from space.board_pages import build_board_router
from space.explorer.explorer import Explorer
from space.explorer.rest import build_explorer_router
from space.kept_assets import KeptAssets
from space.look import Look
from space.page import Page, Services
from space.pages.about import build_about_page, open_about
from space.pages.compare import build_compare_page, open_compare_page
from space.pages.judge import build_judge_page, open_judge_page
from space.pages.leaderboard import build_leaderboard_page, open_leaderboard
from space.pages.paper import build_paper_page, open_paper
from space.pages.rates import build_rates_page, open_rates
from space.pages.submit import build_submit_page, open_submit
from space.pages.trajectories import build_trajectories_page, open_trajectories
from space.rest import build_router
from space.rest_submissions import build_submission_router
from space.shell import NAME, PageShell
from space.theme import build_theme
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
    """The application for these settings: labels and records are opened, unfinished scoring is finished."""
    service = SubmissionService(settings)
    service.finish_scoring()
    app = FastAPI(title=NAME, docs_url=None, redoc_url=None, openapi_url="/api/openapi.json")
    services, look = Services(service, Explorer(settings, service)), Look()
    app.include_router(build_router(service))
    app.include_router(build_submission_router(service))
    app.include_router(build_explorer_router(services.trajectories))
    app.include_router(build_board_router(services.boards))
    app.include_router(look.router())
    pages = build_pages(services)
    pages.has_launched = True  # else Gradio 6.31 checks no path of a request: it does so from launch() on
    app.add_middleware(KeptAssets)
    app.add_middleware(PageShell, pages=PAGES, services=services, look=look)
    return gr.mount_gradio_app(
        app,
        pages,
        path="/",
        theme=build_theme(),
        max_file_size=settings.max_upload_bytes,
        show_error=False,
        run_history=False,
        footer_links=[],
    )


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
