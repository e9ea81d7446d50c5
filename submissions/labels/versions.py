"""The published label sets of a suite, and which one is served (used to score submissions).

Publishing adds a ``labels_published`` event and stores the label file as if it had been uploaded.
``ARB_LABELS=records`` serves the newest set, and ``ARB_LABELS=records:VERSION`` serves an older one. If
ARB_LABELS names a file, and a corrected version of that file was published, the corrected version is served.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Final

import numpy as np
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from arb.core.annotation import Annotation
from arb.core.settings import Settings
from arb.core.suite import Suite
from arb.core.suites.targets import NO_ANSWER
from leaderboard.labels.labels import LabelSet, LabelsInvalid, load_annotations, load_labels, version_of
from leaderboard.labels.source import LabelsUnavailable
from submissions.labels.decisions import Decision, recorded_correction
from submissions.privacy.server_secret import SecretUnavailable, ServerSecret
from submissions.records.database import snapshot
from submissions.records.event_log import events_after
from submissions.records.files import FileStore

logger = logging.getLogger(__name__)
SOURCE: Final = "records"
"""The value of ARB_LABELS for published labels. A colon and a version may follow it."""
PUBLIC_SOURCES: Final = ("wheel", "none")
"""Label sources whose error messages everyone sees; those of other sources are only logged."""


@dataclass(frozen=True)
class LabelVersion:
    """A published label set.

    ``changes`` maps each question to its number of changed test labels. ``corrections`` are the decisions
    that were applied to make the set; they contain answers. ``replaces`` is the version that was served
    before. If the set was made from the file in ARB_LABELS, ``base`` is the version of that file (see
    `version_of`). ``guidelines_sha256`` is the hash of the questions and guidelines at the time of
    publication; ``questions_changed`` says whether they have changed since the previous version. ``left_out``
    names the labels that no rule could decide, without answers.
    """

    version: str
    file_sha256: str
    at: datetime
    by: str
    why: str
    labelled: int
    changes: Mapping[str, int]
    sequence: int = 0
    replaces: str | None = None
    base: str | None = None
    corrections: tuple[Decision, ...] = field(default=(), repr=False)
    guidelines_sha256: str = ""
    questions_changed: bool = False
    left_out: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the version as JSON, without answers: corrections are given as dispute ids."""
        internal = ("sequence", "replaces", "base", "corrections")
        found = {name: value for name, value in vars(self).items() if name not in internal}
        disputes = [each.dispute_id for each in self.corrections]
        return {**found, "at": self.at.isoformat(), "disputes": disputes}


def published_versions(engine: Engine, suite: str) -> list[LabelVersion]:
    """Return the published label sets of a suite, oldest first."""
    with snapshot(engine) as session:
        return versions_at(session, suite)


def versions_at(session: Session, suite: str) -> list[LabelVersion]:
    """Return the label sets of a suite that were published at the time of the session, oldest first."""
    versions: list[LabelVersion] = []
    for event in events_after(session, kinds=["labels_published"]):
        body = event.body
        if body["suite"] != suite:
            continue
        version = LabelVersion(
            **{name: body[name] for name in body if name not in ("suite", "corrections", "left_out")},
            at=event.at,
            by=event.actor,
            sequence=event.sequence,
            corrections=tuple(recorded_correction(each, event.at) for each in body.get("corrections", ())),
            left_out=tuple(body.get("left_out", ())),
            questions_changed=bool(versions) and versions[-1].guidelines_sha256 != body["guidelines_sha256"],
        )
        versions.append(version)
    return versions


def have_questions_changed(suite: Suite, versions: Sequence[LabelVersion]) -> bool:
    """Return whether the suite's questions or guidelines have changed since its newest label version."""
    return bool(versions) and versions[-1].guidelines_sha256 != suite.guidelines_sha256


def serves_records(settings: Settings) -> bool:
    return settings.labels.partition(":")[0] == SOURCE


@dataclass(frozen=True)
class LabelOrigin:
    """The origin of the served labels. In ``settings``, ARB_LABELS names their file.

    ``version`` is the published set, or None if the file in ARB_LABELS itself is served. ``base`` is the
    version of that file (see `version_of`), or None if ARB_LABELS is ``records`` or no set was made from a
    file yet. If the file has changed since a set was made from it, ``outdated`` is the newest such set.
    ``through`` is the event number of the newest published set.
    """

    settings: Settings
    version: LabelVersion | None = None
    base: str | None = None
    outdated: LabelVersion | None = None
    through: int = 0


class NotPublishedYet(LabelsUnavailable):
    """Raised if ARB_LABELS=records but no label set has been published yet, as in every new suite."""


def not_published(suite: str, wanted: str | None = None, known: Sequence[LabelVersion] = ()) -> str:
    """Return the message that a suite lacks the ``wanted`` version, or that it has no published label set."""
    if known:
        return (
            f"{suite} has no label version {wanted}; use one of {', '.join(each.version for each in known)}"
        )
    return (
        f"no label set has been published for {suite}; publish one with "
        "`arb submissions publish-labels FILE --why …`"
    )


def changes_between(before: LabelSet | None, after: LabelSet) -> dict[str, int]:
    """Return the number of changed labels per question, or of all labels if ``before`` is None."""
    found = {}
    for question, labels in after.primary.items():
        none = np.full_like(labels, np.nan if labels.dtype.kind == "f" else NO_ANSWER)
        earlier = none if before is None else before.primary[question]
        found[question] = int(labels.size - np.isclose(labels, earlier, rtol=0, atol=0, equal_nan=True).sum())
    return found


UNREADABLE: Final = (LabelsUnavailable, LabelsInvalid, SecretUnavailable)
"""The errors that are raised when labels cannot be read."""


class LabelStore:
    """The served label sets, or the reason why there are none. Thread-safe.

    Labels are read when they are first needed.
    """

    def __init__(
        self, suite: Suite, settings: Settings, engine: Engine, files: FileStore,
        find_secret: Callable[[], ServerSecret],
    ) -> None:  # fmt: skip
        self._suite, self._settings, self._engine, self._files = suite, settings, engine, files
        self._find_secret = find_secret
        self._reading = threading.RLock()
        self._read: dict[str, LabelSet | Exception] = {}

    @cached_property
    def origin(self) -> LabelOrigin:
        """The origin of the labels. Raises LabelsUnavailable, LabelsInvalid.

        A set that was made from the file in ARB_LABELS replaces the file until the file's content changes.
        """
        with self._reading:
            return self._find_origin()

    def _find_origin(self) -> LabelOrigin:
        suite, settings = self._suite, self._settings
        known = published_versions(self._engine, suite.name)
        through = known[-1].sequence if known else 0
        if serves_records(settings):
            wanted = settings.labels.partition(":")[2]
            found = [each for each in known if wanted in ("", each.version)]
            if not found:
                problem = LabelsUnavailable if known else NotPublishedYet
                raise problem(not_published(suite.name, wanted, known))
            return LabelOrigin(self._naming(found[-1].file_sha256), found[-1], through=through)
        made = [each for each in known if each.base is not None]
        if settings.labels == "none" or not made:
            return LabelOrigin(settings, through=through)
        base = version_of(suite, load_annotations(suite, settings))
        version = next((each for each in reversed(made) if each.base == base), None)
        if version is None:
            return LabelOrigin(settings, None, base, made[-1], through)
        return LabelOrigin(self._naming(version.file_sha256), version, base, through=through)

    def _naming(self, file: str) -> Settings:
        return self._settings.model_copy(update={"labels": f"csv:{self._files.path(file)}"})

    def load(self, file: str | None) -> LabelSet:
        """Load test labels from a stored file, or from the source in ARB_LABELS if ``file`` is None.

        ``file`` is a SHA-256. Raises LabelsUnavailable, LabelsInvalid with every bad row, SecretUnavailable.
        """
        settings = self._settings if file is None else self._naming(file)
        return load_labels(self._suite, "test", settings, fetch=False, version_key=self.version_key("test"))

    def is_older_than(self, versions: Sequence[LabelVersion]) -> bool:
        """Return whether the newest of ``versions`` was published after this store read its labels."""
        known = self.__dict__.get("origin")
        if known is None:  # not read yet, or there was no set
            return "test" in self._read and serves_records(self._settings) and bool(versions)
        return bool(versions) and versions[-1].sequence > known.through

    @property
    def base(self) -> str | None:
        """The version of the file in ARB_LABELS, or None if it names no file. Raises as `origin` does."""
        if self._settings.labels == "none" or serves_records(self._settings):
            return None
        # This hash has no key, so that a changed ARB_SECRET does not look like a changed file. It is stored
        # only in the records, which contain the labels anyway.
        return self.origin.base or version_of(self._suite, load_annotations(self._suite, self._settings))

    def annotations(self) -> tuple[Annotation, ...]:
        """Return all served annotations. Trajectories without any have the suite's published dev labels.

        Raises as `origin` does.
        """
        found = load_annotations(self._suite, self.origin.settings)
        known = {annotation.trajectory_id for annotation in found}
        if not self._suite.dev_labels_path.is_file():
            return found
        dev = load_annotations(self._suite, self.origin.settings, "dev")
        return (*found, *(annotation for annotation in dev if annotation.trajectory_id not in known))

    def annotations_of(self, split: str) -> tuple[Annotation, ...]:
        """Return the annotations that the labels of a split come from, or none if they cannot be read."""
        if self._of(split) is None:
            return ()
        try:
            return load_annotations(self._suite, self.origin.settings, split)
        except (LabelsUnavailable, LabelsInvalid):  # the file has been replaced in the meantime
            return ()

    @property
    def test(self) -> LabelSet | None:
        return self._of("test")

    @property
    def dev(self) -> LabelSet | None:
        return self._of("dev")

    def _of(self, split: str) -> LabelSet | None:
        found = self._labels_or_reason(split)
        return found if isinstance(found, LabelSet) else None

    def why_none(self, split: str) -> str | None:
        """Return the reason why a split has no labels, as a public message, or None if it has labels."""
        found = self._labels_or_reason(split)
        if isinstance(found, LabelSet):
            return None
        # A message about a private source must reveal neither its place nor its rows.
        if isinstance(found, LabelsUnavailable) and self._settings.labels in PUBLIC_SOURCES:
            return str(found)
        return f"the labels of {self._suite.name} cannot be read; the Space's log has the details"

    def _labels_or_reason(self, split: str) -> LabelSet | Exception:
        with self._reading:
            if split not in self._read:
                self._read[split] = self._load(split)
            return self._read[split]

    def _load(self, split: str) -> LabelSet | Exception:
        try:
            key = self.version_key(split)
            return load_labels(self._suite, split, self.origin.settings, version_key=key)
        except UNREADABLE as reason:
            is_expected = isinstance(reason, NotPublishedYet) or not self._suite.items(split)
            level = logging.INFO if is_expected else logging.WARNING
            logger.log(level, "%s labels of %s cannot be used: %s", split, self._suite.name, reason)
            return reason

    def version_key(self, split: str) -> bytes | None:
        """Return the key for hashing label versions, or None if the labels of the split are not hidden.

        Without a key, the hash would confirm guesses.
        """
        if split != "test" or self._suite.labels_are_public:
            return None
        return self._find_secret().key("label-version")
