"""A server of nothing but people's own pages and the maintainers', and somebody who calls it."""

from fastapi.testclient import TestClient

from space.auth.auth import Auth
from space.look import StaticAssets
from space.page import Services
from space.people import build_people_router
from space.plain_page import PageFrame
from space.rest_submissions import build_submission_router
from submissions.service import SubmissionService
from tests.canary import CANARIES
from tests.space.auth.conftest import session_cookie
from tests.support.rest_app import rest_app

HOST = "127.0.0.1:7860"
LABEL_WORDS = (*CANARIES, "counts_by_task")
"""What no answer may hold."""


def people_client(service: SubmissionService) -> TestClient:
    """A client of a local server over a service; nobody is signed in (see `signed_in`)."""
    services = Services(service, None)
    app = rest_app(service)
    app.include_router(build_people_router(services, PageFrame(StaticAssets())))
    app.include_router(build_submission_router(service, auth=services.auth))
    return TestClient(app, base_url=f"http://{HOST}", follow_redirects=False)


def signed_in(service: SubmissionService, name: str) -> dict[str, str]:
    """The headers of somebody's browser on a page of the server."""
    return {"sec-fetch-site": "same-origin", "cookie": session_cookie(Auth(service.settings), name)}
