"""A server of nothing but people's own pages and the maintainers', and somebody who calls it.

A local server of disputes, errors and label versions, over a service and what the explorer shows.

A service over the synthetic suite, its labels public, with judges that err in known ways.

A service over the synthetic suite, its labels private, and rows made public on its board.
"""

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fastapi.testclient import TestClient

from space.api.submissions import build_submission_router
from space.app import build_labels_router, build_people_router
from space.auth.auth import Auth
from space.pages.trajectories.dataset import Explorer
from space.services import Services
from space.web.assets import StaticAssets
from space.web.frame import PageFrame
from submissions.intake.accounts import Actor
from submissions.service import SubmissionService
from tests.space.auth.conftest import session_cookie
from tests.support.canary import CANARIES
from tests.support.rest_app import rest_app
from tests.support.submissions import send, settings_for, verdicts, with_rules, write_suite

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


MAINTAINER = "mia"


def labels_client(service: SubmissionService) -> TestClient:
    """A client of it; nobody is signed in (see `people.signed_in`)."""
    services = Services(service, Explorer(service.settings, service))
    app = rest_app(service)
    app.include_router(build_labels_router(services, PageFrame(StaticAssets())))
    return TestClient(app, base_url=f"http://{HOST}", follow_redirects=False)


def public_service(folder: Path) -> SubmissionService:
    """Nothing submitted yet; anyone may see figures over many labels."""
    write_suite(folder)
    return SubmissionService(settings_for(folder, folder / "state"))


def send_three(service: SubmissionService) -> dict[str, str]:
    """Alpha (9 of 9), Beta (8 of 12) and Gamma (10 of 30 called successful are): the ids by name."""
    return {
        judge: send(
            service, verdicts(service.suite, misses=misses, false_alarms=alarms), judge=judge
        ).submission_id
        for judge, misses, alarms in (("Alpha", 1, 0), ("Beta", 2, 4), ("Gamma", 0, 20))
    }


def with_scores(content: bytes) -> bytes:
    """The same file with a score: 0.9 for every yes, 0.2 for every no."""
    rows = [json.loads(line) for line in content.splitlines()]
    return "\n".join(json.dumps({**row, "score": 0.9 if row["success"] else 0.2}) for row in rows).encode()


FIRST = datetime(2026, 1, 1, tzinfo=UTC)


class Clock:
    """A clock that stands until it is told to go on."""

    def __init__(self) -> None:
        self.now = FIRST

    def __call__(self) -> datetime:
        return self.now


def private_service(folder: Path, **rules) -> SubmissionService:
    """Nothing submitted yet; noise as by default, rounds of a day, and as many files as a test sends."""
    write_suite(folder)
    service = SubmissionService(settings_for(folder, folder / "state"), clock=Clock())
    plain = {"files_a_day": 1000, "files_a_year": 1000, "public_rows_a_year": 1000}
    return with_rules(service, is_public=False, fewest_positives=1, round_days=1, **{**plain, **rules})


def make_public(service: SubmissionService, ids: Iterable[str], account: str = "Ada") -> None:
    """Put submissions on the board: released where held, made public by their owner, and the round ends."""
    maintainer = Actor("Mia", is_maintainer=True)
    for submission_id in ids:
        if service.submission(submission_id, maintainer).status.is_held:
            service.decide("released", submission_id, maintainer, "looked at")
        service.actions.publish(submission_id, Actor(account))
    service.clock.now += timedelta(days=1)
