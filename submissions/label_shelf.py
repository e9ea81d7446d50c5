"""The labels of a suite, read once: those of test for the scorer, those of dev for rehearsals."""

import logging
import threading
from collections.abc import Callable
from functools import cached_property

from dataset_script.settings import Settings
from dataset_script.suite import Suite
from leaderboard.label_source import LabelsUnavailable
from leaderboard.labels import LabelSet, LabelsInvalid, load_labels
from submissions.secret import SecretUnavailable, ServerSecret

logger = logging.getLogger(__name__)
PUBLIC_SOURCES = ("wheel", "none")
"""Label sources whose troubles anyone may read of; those of a private one are for the log."""

NoLabels = LabelsUnavailable | LabelsInvalid | SecretUnavailable


class LabelStore:
    """Label sets, or the reason why there are none. Safe for threads.

    ``resolved_settings`` gives the settings that name the file, asked at the first reading.
    """

    def __init__(
        self, suite: Suite, settings: Settings, resolved_settings: Callable[[], Settings] | None = None
    ) -> None:
        self._suite, self._settings = suite, settings
        self._resolved_settings = resolved_settings or (lambda: settings)
        self._reading = threading.RLock()

    @cached_property
    def _test(self) -> LabelSet | NoLabels:
        with self._reading:
            return self._load("test")

    @cached_property
    def _dev(self) -> LabelSet | NoLabels:
        with self._reading:
            return self._load("dev")

    @property
    def test(self) -> LabelSet | None:
        """The test labels; None where they cannot be had."""
        return self._test if isinstance(self._test, LabelSet) else None

    @property
    def dev(self) -> LabelSet | None:
        """The dev labels; None where they cannot be had."""
        return self._dev if isinstance(self._dev, LabelSet) else None

    def why_none(self, split: str) -> str | None:
        """Why there are no labels of a split, in words that anyone may read; None where there are."""
        found = self._test if split == "test" else self._dev
        if isinstance(found, LabelSet):
            return None
        # Nothing of a private source: neither its place nor what its rows hold.
        if isinstance(found, LabelsUnavailable) and self._settings.labels in PUBLIC_SOURCES:
            return str(found)
        return (
            f"the labels of {self._suite.name} cannot be read; whoever runs this Space finds the reason "
            "in its log"
        )

    def _load(self, split: str) -> LabelSet | NoLabels:
        try:
            key = self.version_key(split)
            return load_labels(self._suite, split, self._resolved_settings(), version_key=key)
        except (LabelsUnavailable, LabelsInvalid, SecretUnavailable) as reason:
            logger.warning("%s labels of %s cannot be used: %s", split, self._suite.name, reason)
            return reason

    def version_key(self, split: str) -> bytes | None:
        """What keys the version of hidden labels, since a plain hash would confirm a guess; else None."""
        if split != "test" or self._suite.labels_are_public:
            return None
        return ServerSecret.of(self._settings).key("label-version")
