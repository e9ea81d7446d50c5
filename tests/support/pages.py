"""A server of the pages that anyone may read, over a service."""

from fastapi import FastAPI
from fastapi.testclient import TestClient

from space.pages.about import build_about_router
from space.pages.compare.page import build_compare_router
from space.pages.judge.page import build_judge_router
from space.pages.paper import build_paper_router
from space.pages.success_rates import build_rates_router
from space.pages.trajectories.dataset import Explorer
from space.services import Services
from space.web.assets import StaticAssets
from space.web.frame import PageFrame
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
