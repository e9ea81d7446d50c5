"""A local server of disputes, errors and label versions, over a service and what the explorer shows."""

from fastapi.testclient import TestClient

from space.explorer.explorer import Explorer
from space.labels_routes import build_labels_router
from space.look import StaticAssets
from space.page import Services
from space.plain_page import PageFrame
from submissions.service import SubmissionService
from tests.space.people import HOST
from tests.support.rest_app import rest_app

MAINTAINER = "mia"


def labels_client(service: SubmissionService) -> TestClient:
    """A client of it; nobody is signed in (see `people.signed_in`)."""
    services = Services(service, Explorer(service.settings, service))
    app = rest_app(service)
    app.include_router(build_labels_router(services, PageFrame(StaticAssets())))
    return TestClient(app, base_url=f"http://{HOST}", follow_redirects=False)
