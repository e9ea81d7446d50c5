"""Database, files, labels and keys of a suite, each opened at its first use."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property

from sqlalchemy import Engine

from dataset_script.settings import Settings
from dataset_script.suite import Suite, load_suite
from submissions.acts import SubmissionActions
from submissions.database import open_database
from submissions.disclosed import DisclosurePolicy
from submissions.durability import Durability, ImmediateDurability, durability_problem
from submissions.label_shelf import LabelStore
from submissions.label_versions import resolved_settings, serves_records
from submissions.receipts import Signer
from submissions.revealed import LeakBudget
from submissions.scorer import Scorer
from submissions.secret import ServerSecret
from submissions.store import FileStore


class SuiteResources:
    """The resources of a suite's service. Safe for threads.

    ``durability`` is where records last; by default where the settings say that the database does.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        durability: Durability | None = None,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.durability = durability or ImmediateDurability()
        self._setup_lock = threading.RLock()
        self._closing: list[Callable[[], object]] = []

    def on_close(self, call: Callable[[], object]) -> None:
        """Have ``call`` called at the end, in the order in which calls were named."""
        self._closing.append(call)

    def close(self) -> None:
        """End what runs beside the service; see `submissions.opening`."""
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
    def files(self) -> FileStore:
        return FileStore(self.settings.state_dir / "files")

    @cached_property
    def labels(self) -> LabelStore:
        if not serves_records(self.settings):
            return LabelStore(self.suite, self.settings)
        return LabelStore(
            self.suite,
            self.settings,
            lambda: resolved_settings(self.settings, self.suite.name, self.engine, self.files),
        )

    def forget_labels(self) -> None:
        """Read the labels anew at their next use: others were published."""
        self.__dict__.pop("labels", None)

    @cached_property
    def secret(self) -> ServerSecret:
        """What keys are made of; raises SecretUnavailable."""
        return ServerSecret.of(self.settings)

    @cached_property
    def signer(self) -> Signer:
        return Signer(self.secret)

    @cached_property
    def scorer(self) -> Scorer:
        half = self.suite.rules.ranking_half and not self.suite.labels_are_public
        key = self.secret.key("ranking-half") if half else None
        return Scorer(self.engine, self.files, self.suite, self.settings, self.clock, key)

    @cached_property
    def disclosure_policy(self) -> DisclosurePolicy:
        key = None if self.suite.labels_are_public else self.secret.key("noise")
        return DisclosurePolicy(self.suite, key)

    @cached_property
    def leak(self) -> LeakBudget:
        """What was shown of private labels."""
        return LeakBudget(self.engine, self.suite, self.disclosure_policy, self.clock)

    @cached_property
    def actions(self) -> SubmissionActions:
        return SubmissionActions(self.engine, self.suite, self.clock)

    @property
    def read_only_reason(self) -> str | None:
        """Why nothing can be submitted, in words that anyone may read; None when it can."""
        return durability_problem(self.settings) or self.durability.closed or self.labels.why_none("test")

    @property
    def label_version(self) -> str | None:
        """The version of the test labels; None where there are none."""
        return self.labels.test.version if self.labels.test else None
