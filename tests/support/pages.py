"""A server of the pages that anyone may read, over a service."""

from fastapi import FastAPI
from fastapi.testclient import TestClient

from space.explorer.explorer import Explorer
from space.look import StaticAssets
from space.page import Services
from space.pages.about import build_about_router
from space.pages.compare import build_compare_router
from space.pages.judge import build_judge_router
from space.pages.paper import build_paper_router
from space.pages.rates import build_rates_router
from space.plain_page import PageFrame
from submissions.service import SubmissionService

ROUTERS = (
    build_judge_router,
    build_compare_router,
    build_rates_router,
    build_paper_router,
    build_about_router,
)


def pages_client(service: SubmissionService, columns=None) -> TestClient:
    """A client of it; ``columns`` stands for the verdicts whose errors may be seen."""
    services = Services(service, Explorer(service.settings, service))
    if columns is not None:
        services.__dict__["judge_columns"] = columns
    app, pages = FastAPI(), PageFrame(StaticAssets())
    for build in ROUTERS:
        app.include_router(build(services, pages))
    return TestClient(app, base_url="http://127.0.0.1:7860")
