"""Database, files, labels and keys of one suite, opened at first use."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import cached_property

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from arb.core.predictions import ParserPool
from arb.core.settings import Settings
from arb.core.suite import Suite, load_suite
from leaderboard.labels.labels import LabelSet
from submissions.durability import Durability
from submissions.intake.receipts import Signer
from submissions.labels.versions import LabelStore, label_origin
from submissions.privacy.disclosure import DisclosurePolicy
from submissions.privacy.server_secret import KnownSecret, SecretUnavailable, ServerSecret
from submissions.records.database import open_database, snapshot, transaction
from submissions.records.event_log import number_of_events
from submissions.records.files import FileStore, open_files
from submissions.records.secret_check import claim_secret, note_secret


class Resources:
    """What the services of one suite share; ``durability`` says where records are durable.

    Database, files, labels and keys are opened at first use. One instance per process; safe for threads.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        durability: Durability | None = None,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.durability = durability or Durability()
        self.closed = threading.Event()
        self._setup_lock = threading.RLock()
        self._closing: list[Callable[[], object]] = []

    def on_close(self, call: Callable[[], object]) -> None:
        """Make ``call`` when the service is closed; calls are made in the order in which they were added."""
        self._closing.append(call)

    def close(self) -> None:
        """End what runs next to the service; see `submissions.startup`."""
        self.closed.set()
        while self._closing:
            self._closing.pop(0)()

    @cached_property
    def suite(self) -> Suite:
        return load_suite(self.settings.suite)

    @cached_property
    def engine(self) -> Engine:
        """The database of the records, brought up to date at first use."""
        with self._setup_lock:  # migrations run one at a time in a process
            return open_database(self.settings.records_url())

    @cached_property
    def parsers(self) -> ParserPool:
        """The processes that read files; started when a file needs one."""
        with self._setup_lock:
            pool = ParserPool.small() if self.settings.has_little_memory else ParserPool()
            self.on_close(pool.close)
            return pool

    @cached_property
    def files(self) -> FileStore:
        return open_files(self.settings, self.engine)

    @cached_property
    def labels(self) -> LabelStore:
        return LabelStore(
            self.suite,
            self.settings,
            lambda: label_origin(self.suite, self.settings, self.engine, self.files),
            lambda: self.secret,
        )

    def snapshot(self) -> AbstractContextManager[Session]:
        """Return a session for reading the records as they are at one moment."""
        return snapshot(self.engine)

    def forget_labels(self) -> None:
        """Read the labels again at their next use, since others were published."""
        self.__dict__.pop("labels", None)

    @cached_property
    def secret(self) -> ServerSecret:
        """The secret that keys are made from. Raises SecretUnavailable, SecretTooWeak, SecretChanged."""
        with self._setup_lock:
            return claim_secret(self.engine, self.settings, self.clock)

    def adopt_secret(self, known: KnownSecret) -> None:
        """Use the derivation that the Hub's records name, before the first of them is restored.

        What depends on the secret is made again at its next use.
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
        """The key that draws the half which ranks; None if the suite ranks by all trajectories."""
        has_half = self.suite.rules.ranking_half and not self.suite.labels_are_public
        return self.secret.key("ranking-half") if has_half else None

    @cached_property
    def disclosure_policy(self) -> DisclosurePolicy:
        key = None if self.suite.labels_are_public else self.secret.key("noise")
        return DisclosurePolicy(self.suite, key)

    @property
    def label_version(self) -> str | None:
        """The version of the test labels; None if there are none."""
        return self.labels.test.version if self.labels.test else None

    def labels_for_public_figures(self) -> LabelSet | None:
        """Return the test labels if they are public, for figures over many trajectories.

        None if they are hidden, or cannot be read. Only functions of `leaderboard` that return counts and
        figures get them; no page shows a label.
        """
        return self.labels.test if self.suite.labels_are_public else None
