"""The resources that the services of one suite share: database, files, labels, keys, and durability."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import cached_property

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from arb.core.predictions.parser_pool import ParserPool
from arb.core.settings import Settings
from arb.core.suite import Suite, load_suite
from leaderboard.labels.labels import LabelSet
from submissions.intake.receipts import Signer
from submissions.labels.versions import LabelStore
from submissions.privacy.disclosure import DisclosurePolicy
from submissions.privacy.server_secret import KnownSecret, SecretUnavailable, ServerSecret
from submissions.records.database import open_database, snapshot, transaction
from submissions.records.event_log import number_of_events
from submissions.records.files import FileStore, open_files
from submissions.records.secret_check import claim_secret, note_secret


def utc_now() -> datetime:
    return datetime.now(UTC)


class Durability:
    """The durability of records: which of them are stored permanently. In this base class all of them are."""

    ended: str | None = None
    """A public message that says why no record may be added until an operator acts, or None."""

    @property
    def closed(self) -> str | None:
        """A public message that says why no record may be added now, or None if records may be added."""
        return None

    @property
    def message(self) -> str | None:
        """A sentence for pages while some records are not durable yet; None if all are."""
        return None

    def wait(self, sequence: int, timeout_s: float) -> bool:
        """Wait until every record up to ``sequence`` is durable; return False on a timeout."""
        return True

    def through(self, session: Session) -> int | None:
        """Return the sequence of the last durable record, or None if all are durable."""
        return None

    def waiting(self) -> int:
        """Return the number of records that are not durable yet."""
        return 0


class Resources:
    """The database, files, labels and keys of one suite, each opened at first use. Thread-safe.

    A process has one instance per suite.
    """

    def __init__(self, settings: Settings, clock: Callable[[], datetime]) -> None:
        self.settings = settings
        self.clock = clock
        self.durability = Durability()
        self.closed = threading.Event()
        self._setup_lock = threading.RLock()
        self._closing: list[Callable[[], object]] = []

    def on_close(self, call: Callable[[], object]) -> None:
        """Register a function for `close`, which calls the functions in the order of registration."""
        self._closing.append(call)

    def close(self) -> None:
        """Stop the threads and processes of the service; see `submissions.startup`."""
        self.closed.set()
        while self._closing:
            self._closing.pop(0)()

    @cached_property
    def suite(self) -> Suite:
        return load_suite(self.settings.suite)

    @cached_property
    def engine(self) -> Engine:
        """The database of the records; opening it applies migrations."""
        with self._setup_lock:  # migrations run one at a time in a process
            return open_database(self.settings.records_url())

    @cached_property
    def durability_problem(self) -> str | None:
        """A public message that says why submissions are off without permanent storage, or None."""
        settings = self.settings
        if settings.disk_is_lasting or settings.database_url or settings.records_repo:
            return None
        return (
            "this Space cannot keep records, because its disk is cleared at every restart; its operator has "
            "to set ARB_RECORDS_REPO (a private dataset repository), DATABASE_URL, or "
            "ARB_STATE_LASTS=true for permanent storage"
        )

    @cached_property
    def parsers(self) -> ParserPool:
        with self._setup_lock:
            pool = ParserPool.small() if self.settings.has_little_memory else ParserPool()
            self.on_close(pool.close)
            return pool

    @cached_property
    def files(self) -> FileStore:
        return open_files(self.settings, self.engine)

    @cached_property
    def labels(self) -> LabelStore:
        return LabelStore(self.suite, self.settings, self.engine, self.files, lambda: self.secret)

    def snapshot(self) -> AbstractContextManager[Session]:
        return snapshot(self.engine)

    def forget_labels(self) -> None:
        """Read the labels again at their next use, because another set was published."""
        self.__dict__.pop("labels", None)

    @cached_property
    def secret(self) -> ServerSecret:
        """The secret from which keys are derived. Raises SecretUnavailable, SecretTooWeak, SecretChanged."""
        with self._setup_lock:
            return claim_secret(self.engine, self.settings, self.clock)

    def adopt_secret(self, known: KnownSecret) -> None:
        """Derive keys in the way that the records on the Hub need. Call this before restoring any of them.

        Nothing changes if there are local records or ``known`` is another secret. Everything that depends
        on the secret is computed again at its next use.
        """
        try:
            secret = self.secret
        except SecretUnavailable:
            return
        if known.derivation == secret.derivation or not secret.is_known_as(known):
            return
        with transaction(self.engine) as session:
            if number_of_events(session):
                return
            note_secret(session, secret.under(known.derivation))
        for name in ("secret", "labels", "signer", "half_key", "disclosure_policy"):
            self.__dict__.pop(name, None)

    @cached_property
    def signer(self) -> Signer:
        return Signer(self.secret)

    @cached_property
    def half_key(self) -> bytes | None:
        """The key that selects the hidden half by which judges are ranked; None if all trajectories count."""
        has_half = self.suite.rules.ranking_half and not self.suite.labels_are_public
        return self.secret.key("ranking-half") if has_half else None

    @cached_property
    def disclosure_policy(self) -> DisclosurePolicy:
        key = None if self.suite.labels_are_public else self.secret.key("noise")
        return DisclosurePolicy(self.suite, key)

    @property
    def label_version(self) -> str | None:
        """The version of the served test labels, or None if there are none."""
        return self.labels.test.version if self.labels.test else None

    def labels_for_public_figures(self) -> LabelSet | None:
        """Return the test labels if they are public, else None.

        Pass them only to functions of `leaderboard` that return counts and figures. Pages get the label of a
        single trajectory from `Explorer.labels`.
        """
        return self.labels.test if self.suite.labels_are_public else None
