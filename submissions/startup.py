"""Opening a service: its records restored from the Hub and committed to it, where the settings say so."""

import hashlib
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from arb.core.hub import CommitRateLimiter, HubRepository, hub_of, is_repo_name
from arb.core.settings import Settings, variable_of
from submissions.app import SubmissionsApp
from submissions.hub.board_copy import BoardCopy
from submissions.hub.lease import open_lease
from submissions.hub.mirror import HubSync
from submissions.hub.records_copy import RecordsCopy, Stopping
from submissions.hub.repository import RecordsRepository
from submissions.privacy.secret_change import WITHDRAWN
from submissions.privacy.server_secret import SecretUnavailable, ServerSecret
from submissions.records.database import snapshot
from submissions.records.event_log import number_of_events
from submissions.records.queries import current_statuses
from submissions.records.secret_check import check_accepted
from submissions.scoring.rescore import finish

logger = logging.getLogger(__name__)


class InvalidRepositoryName(ValueError):
    """ARB_RECORDS_REPO or ARB_BOARD_REPO is no name of a repository; the message says which."""


STARTUP_WAIT_SECONDS: Final = 30.0


def open_service(
    settings: Settings, limiter: CommitRateLimiter | None = None, wait_s: float = STARTUP_WAIT_SECONDS
) -> SubmissionsApp:
    """The service for these settings: records restored, unfinished scoring finished; `close` it at the end.

    Where the Hub keeps the records (ARB_RECORDS_REPO) and has not answered after ``wait_s`` seconds, reading
    goes on with what is here, and what is left to do is done when it answers. With 0 nothing is waited for,
    unfinished scoring neither. Raises InvalidRepositoryName, DatabaseUnavailable, SecretRefused.
    """
    for field in ("records_repo", "board_repo"):
        if (name := getattr(settings, field)) and not is_repo_name(name):
            raise InvalidRepositoryName(
                f"{variable_of(field)}: a repository is named OWNER/NAME, and {name!r} is not"
            )
    service = SubmissionsApp(settings)
    with suppress(SecretUnavailable):
        service.secret  # noqa: B018 - a secret that cannot be used is reported at the start
    with service.snapshot() as session:
        if current_statuses(session).are_figures_withdrawn and not service.suite.labels_are_public:
            logger.warning(WITHDRAWN)
    mirror = None
    if settings.records_repo:
        mirror = _mirror(service, settings, limiter or CommitRateLimiter())
        service.durability = mirror
        mirror.start(wait_s)
        service.on_close(mirror.close)
        mirror.when_open(partial(_after_restoring, service))
    elif wait_s:
        finish(service)
    else:
        threading.Thread(target=_finish, args=(service,), name="unfinished scoring", daemon=True).start()
    if settings.board_repo:
        copy = _board_copy(service, settings, mirror)
        copy.start()
        service.on_close(copy.close)
    return service


def _secret_of(service: SubmissionsApp) -> ServerSecret | None:
    with suppress(SecretUnavailable):
        return service.secret


def _after_restoring(service: SubmissionsApp) -> None:
    service.forget_labels()  # the set that is served may have come with the records
    finish(service)


def _finish(service: SubmissionsApp) -> None:
    try:
        finish(service)
    except Exception:
        logger.exception("scoring what had no score yet has failed; the next start goes on")


def _mirror(service: SubmissionsApp, settings: Settings, limiter: CommitRateLimiter) -> HubSync:
    stop = threading.Event()
    folder = _private_folder(settings)
    repository = RecordsRepository(hub_of(settings), settings.records_repo, folder, _say)
    is_shared = service.engine.dialect.name == "postgresql"
    records_copy = RecordsCopy(
        service.engine,
        service.files,
        repository,
        limiter,
        service.clock,
        stop,
        is_shared,
        secret=lambda: _secret_of(service),
        adopt=service.adopt_secret,
        check_accepted=lambda secret: check_accepted(secret, settings),
    )
    with snapshot(service.engine) as session:
        is_empty = number_of_events(session) == 0
    return HubSync(
        service.engine,
        records_copy,
        open_lease(service.engine, settings.state_dir, "records"),
        stop,
        disk_is_durable=settings.disk_is_lasting,
        is_authority=not is_empty and (settings.disk_is_lasting or bool(settings.database_url)),
        is_shared=is_shared,
    )


def _private_folder(settings: Settings) -> Path:
    """For what this token fetches: the Hub's client hands what lies in a folder to any other token too."""
    token = settings.hf_token.get_secret_value() if settings.hf_token else ""
    return settings.state_dir / "hub" / f"fetched-{hashlib.sha256(token.encode()).hexdigest()[:12]}"


def _board_copy(service: SubmissionsApp, settings: Settings, mirror: HubSync | None) -> BoardCopy:
    stop = threading.Event()
    repository = HubRepository(hub_of(settings), settings.board_repo, say=_say, sleep=_pause_until(stop))
    return BoardCopy(
        service.records.board,
        repository,
        settings.state_dir / "hub" / "board",
        stop,
        open_lease(service.engine, settings.state_dir, "board"),
        may=lambda: mirror is None or mirror.closed is None,
        limiter=CommitRateLimiter(),
        title=service.suite.profile.title,
    )


def _pause_until(stop: threading.Event) -> Callable[[float], None]:
    """A pause that the end of the server cuts short."""

    def pause(seconds: float) -> None:
        if stop.wait(seconds):
            raise Stopping

    return pause


def _say(line: str) -> None:
    logger.info("the Hub: %s", line)
