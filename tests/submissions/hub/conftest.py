"""A Hub on this machine, and services that keep their records on it."""

import shutil
from collections.abc import Callable

import pytest

from arb.core.hub import CommitRateLimiter
from arb.core.settings import Settings
from submissions.app import SubmissionsApp
from submissions.startup import open_service
from tests.support.hub_server.server import running_hub
from tests.support.submissions import settings_for

RECORDS, BOARD = "maintainer/records", "maintainer/board"
COMMIT = rf"/api/datasets/{RECORDS}/commit/main"


@pytest.fixture
def hub(monkeypatch):
    """Start a Hub for the services' client, whose pauses between attempts are short."""
    monkeypatch.setattr("submissions.hub.repository.MINUTE", 0.2)
    with running_hub(monkeypatch) as server:
        yield server


@pytest.fixture
def hub_settings(suite_folder, tmp_path) -> Settings:
    """Return settings of a Space whose disk is cleared at every restart."""
    return settings_for(
        suite_folder, tmp_path / "state", records_repo=RECORDS, hf_token="hf_maintainer",
        state_lasts=False, secret="4f6f7adf61dd3b34cf532eae18d05771",
    )  # fmt: skip


@pytest.fixture
def opened(hub, hub_settings):
    """Yield a function that opens services, by default with ``hub_settings``. They are closed at the end."""
    services: list[SubmissionsApp] = []

    def open_one(limiter: CommitRateLimiter | None = None, **changes) -> SubmissionsApp:
        limiter = limiter or CommitRateLimiter(most_an_hour=10_000, burst=5_000)
        services.append(open_service(hub_settings.model_copy(update=changes), limiter=limiter))
        return services[-1]

    yield open_one
    hub.faults.clear()
    for service in services:
        service.close()


@pytest.fixture
def crash(monkeypatch) -> Callable[[SubmissionsApp], None]:
    """Stop a service as a kill would: it sends nothing more to the Hub, and its locks are released."""

    def end(service: SubmissionsApp) -> None:
        mirror = service.durability
        mirror._stop.set()
        mirror._wake.set()
        mirror._thread.join(timeout=120)

    return end


def lose_the_disk(service: SubmissionsApp, crash: Callable[[SubmissionsApp], None]) -> None:
    """Stop a service as a kill would, and remove its state folder."""
    crash(service)
    service.engine.dispose()
    shutil.rmtree(service.settings.state_dir)
