"""Opens the services of a suite, and connects them to the Hub if the settings say so."""

import hashlib
import logging
import threading
from contextlib import suppress
from functools import partial
from typing import Final

from arb.core.hub import CommitRateLimiter, hub_of, is_repo_name
from arb.core.settings import Settings, variable_of
from submissions.app import SubmissionsApp
from submissions.errors import RecordsUnavailable
from submissions.hub.board_copy import BoardCopy
from submissions.hub.mirror import HubSync
from submissions.hub.records_copy import RecordsCopy
from submissions.hub.repository import RecordsRepository
from submissions.privacy.secret_change import WITHDRAWN
from submissions.privacy.server_secret import SecretUnavailable
from submissions.records.queries import current_statuses
from submissions.scoring.rescore import finish
from submissions.served_suites import FOLDER

logger = logging.getLogger(__name__)
STARTUP_WAIT_SECONDS: Final = 30.0


def open_service(
    settings: Settings,
    limiter: CommitRateLimiter | None = None,
    wait_s: float = STARTUP_WAIT_SECONDS,
    main: SubmissionsApp | None = None,
) -> SubmissionsApp:
    """Restore the records, score submissions that have no score yet, and return the services.

    Records are restored from the Hub if ARB_RECORDS_REPO is set. If the Hub does not answer within ``wait_s``
    seconds, the services start with the local records, and a thread continues once the Hub answers. If
    ``wait_s`` is 0, a thread does all of this work. ``main`` is the application of the Space's default suite
    if this is a further suite. Call ``close`` at the end. Raises RecordsUnavailable.
    """
    for field in ("records_repo", "board_repo"):
        if (name := getattr(settings, field)) and not is_repo_name(name):
            raise RecordsUnavailable(f"{variable_of(field)}: write a repository as OWNER/NAME, not {name!r}")
    service = SubmissionsApp(settings, main=main)
    with suppress(SecretUnavailable):
        service.secret  # noqa: B018 - a secret that cannot be used is reported at the start
    with service.snapshot() as session:
        if current_statuses(session).are_figures_withdrawn and not service.suite.labels_are_public:
            logger.warning(WITHDRAWN)
    if settings.records_repo:
        mirror = _mirror(service, settings.records_repo, limiter or CommitRateLimiter())
        service.durability = mirror
        mirror.start(wait_s)
        service.on_close(mirror.close)
        mirror.when_open(lambda: finish(service))
    elif wait_s:
        finish(service)
    else:
        threading.Thread(target=_finish, args=(service,), name="unfinished scoring", daemon=True).start()
    if settings.board_repo:
        copy = BoardCopy(service, settings.board_repo)
        copy.start()
        service.on_close(copy.close)
    return service


def _finish(service: SubmissionsApp) -> None:
    try:
        finish(service)
    except Exception:
        logger.exception("scoring the unscored submissions failed; the next start tries again")


def _mirror(service: SubmissionsApp, repo: str, limiter: CommitRateLimiter) -> HubSync:
    settings, stop = service.settings, threading.Event()
    # The Hub's client returns files that are on disk for any token, so each token gets a separate folder.
    token = settings.hf_token.get_secret_value() if settings.hf_token else ""
    folder = f"fetched-{hashlib.sha256(token.encode()).hexdigest()[:12]}"
    folder_there = "" if settings.main is settings else f"{FOLDER}/{service.suite.name}/"
    say = partial(logger.info, "Hub: %s")
    local = settings.state_dir / "hub" / folder
    repository = RecordsRepository(hub_of(settings), repo, local, say, folder_there)
    return HubSync(service, RecordsCopy(service, repository, limiter, stop), stop)
