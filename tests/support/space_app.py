"""The Space's routes on a local server; services over the synthetic suite with public or private labels."""

import json
import shutil
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fastapi import FastAPI
from fastapi.testclient import TestClient

from space.app import add_routes
from space.auth.auth import Auth
from space.pages.labels.annotation import ANSWERS_PATH, MOST_ANSWER_BYTES
from space.pages.trajectories.dataset import Explorer
from space.services import Services
from space.verdicts import JudgeVerdicts
from space.web.body_limits import BodyLimits, Gate
from space.web.frame import PageFrame
from space.web.http_errors import add_error_handlers
from space.web.responses import StaticAssets
from submissions.app import SubmissionsApp
from submissions.intake.accounts import Actor
from tests.space.auth.conftest import session_cookie
from tests.support.submissions import send, settings_for, verdicts, with_rules, write_suite

HOST = "127.0.0.1:7860"
MAINTAINER = "mia"


def rest_app(service: SubmissionsApp, counts: Mapping[str, Gate] | None = None) -> FastAPI:
    """An application without routes: errors become status codes and bodies are bounded as in the Space.

    ``counts`` counts files where a test is about it.
    """
    app = FastAPI()
    add_error_handlers(app, service)
    app.add_middleware(
        BodyLimits,
        upload_bytes=service.settings.max_upload_bytes,
        gates={"/api/submissions": Auth(service.settings).submitter_of},
        larger={ANSWERS_PATH: MOST_ANSWER_BYTES},
        counts=counts,
    )
    return app


def local_client(service: SubmissionsApp, found: JudgeVerdicts | None = None) -> TestClient:
    """A client of all pages and REST without Gradio; nobody is signed in (see `signed_in`).

    ``found`` stands for the verdicts that are known.
    """
    services = Services(service, Explorer(service.settings, service))
    if found is not None:
        services.__dict__["verdicts"] = found
    app = rest_app(service)
    add_routes(app, services, PageFrame(StaticAssets(), profile=service.suite.profile))
    return TestClient(app, base_url=f"http://{HOST}", follow_redirects=False)


def signed_in(service: SubmissionsApp, name: str) -> dict[str, str]:
    """The headers of somebody's browser on a page of the server."""
    return {"sec-fetch-site": "same-origin", "cookie": session_cookie(Services(service, None).auth, name)}


def public_service(folder: Path) -> SubmissionsApp:
    """Nothing submitted yet; anyone may see figures over many labels."""
    write_suite(folder)
    return SubmissionsApp(settings_for(folder, folder / "state"))


def send_three(service: SubmissionsApp) -> dict[str, str]:
    """Alpha (9 of 9), Beta (8 of 12) and Gamma (10 of 30 called successful are): the ids by name."""
    return {
        judge: send(
            service, verdicts(service.suite, misses=misses, false_alarms=alarms), judge=judge
        ).submission_id
        for judge, misses, alarms in (("Alpha", 1, 0), ("Beta", 2, 4), ("Gamma", 0, 20))
    }


def public_with_three(folder: Path) -> tuple[SubmissionsApp, dict[str, str]]:
    """`public_service` with the records of `send_three` and their ids: scored once in a run, then copied."""
    first = folder.parent / "three-submitted"
    if not (first / "ids.json").is_file():
        service = public_service(first)
        ids = send_three(service)
        service.engine.dispose()
        (first / "ids.json").write_text(json.dumps(ids))
    shutil.copytree(first / "state", folder / "state")
    return public_service(folder), json.loads((first / "ids.json").read_text())


def with_scores(content: bytes) -> bytes:
    """The same file with a score: 0.9 for every yes, 0.2 for every no."""
    rows = [json.loads(line) for line in content.splitlines()]
    return "\n".join(json.dumps({**row, "score": 0.9 if row["success"] else 0.2}) for row in rows).encode()


FIRST = datetime(2026, 1, 1, tzinfo=UTC)


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = FIRST

    def __call__(self) -> datetime:
        return self.now


def private_service(folder: Path, **rules) -> SubmissionsApp:
    """Nothing submitted yet; noise as by default, rounds of a day, and as many files as a test sends."""
    write_suite(folder)
    service = SubmissionsApp(settings_for(folder, folder / "state"), clock=Clock())
    plain = {"files_a_day": 1000, "files_a_year": 1000, "public_rows_a_year": 1000}
    return with_rules(service, is_public=False, fewest_positives=1, round_days=1, **{**plain, **rules})


def make_public(service: SubmissionsApp, ids: Iterable[str], account: str = "Ada") -> None:
    """Put submissions on the board: released where held, made public by their owner, and the round ends."""
    maintainer = Actor("Mia", is_maintainer=True)
    for submission_id in ids:
        if service.records.submission(submission_id, maintainer).status.is_held:
            service.moderation.decide("released", submission_id, maintainer, "looked at")
        service.moderation.publish(submission_id, Actor(account))
    service.clock.now += timedelta(days=1)
