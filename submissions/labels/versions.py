"""The label sets of a suite, one after another: each is a file with a hash, a version, and a reason for it.

Published sets are events (``labels_published``) and their files are among the uploaded ones. ``ARB_LABELS``
set to ``records`` serves the newest, ``records:VERSION`` an older one: both can be scored at any time. Where
it names a file, a set that was made from that file (with corrections, say) is served in its place.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from sqlalchemy import Engine

from arb.core.annotation import Annotation
from arb.core.settings import Settings
from arb.core.suite import Suite
from leaderboard.labels.labels import (
    LabelSet,
    LabelsInvalid,
    load_annotations,
    load_labels,
    nothing_of,
    version_of,
)
from leaderboard.labels.source import LabelsUnavailable
from submissions.labels.decisions import Decision, recorded_correction
from submissions.privacy.server_secret import SecretUnavailable, ServerSecret
from submissions.records.database import snapshot
from submissions.records.event_log import Event, events_after
from submissions.records.files import FileStore

SOURCE: Final = "records"
"""What ARB_LABELS says, before a colon and a version, where the labels are those published here."""


_AS_RECORDED: Final = (
    "version", "file_sha256", "why", "labelled", "replaces", "base", "guidelines_sha256",
)  # fmt: skip
"""Fields of a version that its event holds as they are."""


@dataclass(frozen=True)
class LabelVersion:
    """A published label set. ``changes`` counts trajectories of test by question: no label, no id is in it.

    ``corrections`` are those that were applied to make it; they hold answers. ``replaces`` is the version
    that was served then. ``base`` names the content of the file that ARB_LABELS named then, where the set was
    made from that (`version_of`): such a set is served in place of the file. ``guidelines_sha256`` names the
    questions and guidelines of then (`Suite.guidelines_sha256`); ``questions_changed`` is whether they were
    others than those of the version before.
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

    def to_json(self) -> dict[str, Any]:
        """The same without any answer: of corrections only which disputes they decide."""
        kept = ("version", "file_sha256", "by", "why", "labelled", "guidelines_sha256", "questions_changed")
        return {
            **{name: getattr(self, name) for name in kept},
            "at": self.at.isoformat(),
            "changes": dict(self.changes),
            "disputes": [each.dispute_id for each in self.corrections],
        }


def published_versions(engine: Engine, suite: str) -> list[LabelVersion]:
    """The label sets of a suite in the order in which they were published."""
    with snapshot(engine) as session:
        return versions_in(events_after(session, kinds=["labels_published"]), suite)


def versions_in(events: Sequence[Event], suite: str) -> list[LabelVersion]:
    """The same from the event log."""
    own = [event for event in events if event.body["suite"] == suite]
    asked = [event.body["guidelines_sha256"] for event in own]
    return [
        LabelVersion(
            **{name: event.body[name] for name in _AS_RECORDED if name in event.body},
            at=event.at,
            by=event.actor,
            changes=MappingProxyType(event.body["changes"]),
            sequence=event.sequence,
            corrections=tuple(
                recorded_correction(each, event.at) for each in event.body.get("corrections", ())
            ),
            questions_changed=before not in (None, now),
        )
        for event, before, now in zip(own, [None, *asked], asked, strict=False)
    ]


def have_questions_changed(suite: Suite, versions: Sequence[LabelVersion]) -> bool:
    """Whether questions or guidelines of a suite have changed since its newest label version."""
    return bool(versions) and versions[-1].guidelines_sha256 != suite.guidelines_sha256


def serves_records(settings: Settings) -> bool:
    return settings.labels.partition(":")[0] == SOURCE


@dataclass(frozen=True)
class LabelOrigin:
    """Which labels are served: ``settings`` name their file.

    ``version`` is the published set, None where it is the file that ARB_LABELS names. ``base`` names what
    that file holds (`version_of`), None for ``records`` and where nothing was made from a file yet.
    ``outdated`` is the newest set that was made from the file when it held something else. ``through`` is the
    sequence of the newest set that was looked at.
    """

    settings: Settings
    version: LabelVersion | None = None
    base: str | None = None
    outdated: LabelVersion | None = None
    through: int = 0


class NotPublishedYet(LabelsUnavailable):
    """ARB_LABELS=records, and no label set is there so far: where every suite of one's own begins."""


def label_origin(suite: Suite, settings: Settings, engine: Engine, files: FileStore) -> LabelOrigin:
    """Which labels these settings serve. Raises LabelsUnavailable, LabelsInvalid.

    A set that was made from the file that ARB_LABELS names is served in its place, for as long as the file
    holds what it held then: whoever changes the file wants that one served.
    """
    _, _, wanted = settings.labels.partition(":")
    known = published_versions(engine, suite.name)
    through = known[-1].sequence if known else 0
    if serves_records(settings):
        found = [each for each in known if wanted in ("", each.version)]
        if not found:
            others = f"; there are {', '.join(each.version for each in known)}" if known else ""
            problem = LabelsUnavailable if known else NotPublishedYet
            raise problem(
                f"no label set {wanted or 'at all'} was published for {suite.name}{others}: publish one with "
                "`python -m submissions publish-labels FILE --why …`"
            )
        file = files.path(found[-1].file_sha256)
        return LabelOrigin(_naming(settings, file), found[-1], through=through)
    made = [each for each in known if each.base is not None]
    if settings.labels == "none" or not made:
        return LabelOrigin(settings, through=through)
    base = version_of(suite, load_annotations(suite, settings))
    version = next((each for each in reversed(made) if each.base == base), None)
    if version is None:
        return LabelOrigin(settings, None, base, made[-1], through)
    return LabelOrigin(_naming(settings, files.path(version.file_sha256)), version, base, through=through)


def load_set(suite: Suite, settings: Settings, path: Path, version_key: bytes | None) -> LabelSet:
    """The test labels of a file. Raises LabelsInvalid naming every bad row, LabelsUnavailable."""
    return load_labels(suite, "test", _naming(settings, path), fetch=False, version_key=version_key)


def load_base(suite: Suite, settings: Settings, version_key: bytes | None) -> LabelSet:
    """The test labels of the file that ARB_LABELS names, as they are there. Raises the same."""
    return load_labels(suite, "test", settings, fetch=False, version_key=version_key)


def changes_between(before: LabelSet | None, after: LabelSet) -> dict[str, int]:
    """Count by question how many trajectories have another label; all labelled ones if there were none."""
    found = {}
    for question, labels in after.primary.items():
        earlier = nothing_of(question) if before is None else before.primary[question]
        found[question] = int(np.count_nonzero(labels != earlier))
    return found


def publication_body(
    suite: Suite,
    found: LabelSet,
    before: LabelSet | None,
    file_sha256: str,
    why: str,
    replaces: str | None = None,
    base: str | None = None,
    corrections: Sequence[Decision] = (),
) -> dict[str, Any]:
    """The body of the event by which a set is published; see `LabelVersion`."""
    more = {"replaces": replaces, "base": base, "corrections": [each.to_event() for each in corrections]}
    return {
        "suite": suite.name,
        "version": found.version,
        "file_sha256": file_sha256,
        "why": why,
        "labelled": int((found.primary["success"] >= 0).sum()),
        "changes": changes_between(before, found),
        "guidelines_sha256": suite.guidelines_sha256,
        **{name: value for name, value in more.items() if value},
    }


def _naming(settings: Settings, path: Path) -> Settings:
    return settings.model_copy(update={"labels": f"csv:{path}"})


logger = logging.getLogger(__name__)
PUBLIC_SOURCES = ("wheel", "none")
"""Label sources whose troubles anyone may read of; those of a private one are for the log."""

NoLabels = LabelsUnavailable | LabelsInvalid | SecretUnavailable


class LabelStore:
    """Label sets, or the reason why there are none. Safe for threads.

    ``find_origin`` returns what `label_origin` does, ``find_secret`` the server's secret; both are called at
    the first reading.
    """

    def __init__(
        self,
        suite: Suite,
        settings: Settings,
        find_origin: Callable[[], LabelOrigin],
        find_secret: Callable[[], ServerSecret],
    ) -> None:
        self._suite, self._settings = suite, settings
        self._find_origin, self._find_secret = find_origin, find_secret
        self._reading = threading.RLock()
        self._read: dict[str, LabelSet | NoLabels] = {}

    @cached_property
    def origin(self) -> LabelOrigin:
        """Where the labels come from. Raises what `label_origin` does."""
        with self._reading:
            return self._find_origin()

    def is_older_than(self, events: Sequence[Event]) -> bool:
        """Whether a set was published, by this process or another one, since the labels were read."""
        known, newest = self.__dict__.get("origin"), versions_in(events, self._suite.name)
        if known is None:  # not read yet, or there was no set
            return "test" in self._read and serves_records(self._settings) and bool(newest)
        return bool(newest) and newest[-1].sequence > known.through

    @property
    def base(self) -> str | None:
        """What names the content of the file in ARB_LABELS; None where that is none. Raises as `origin`."""
        if self._settings.labels == "none" or serves_records(self._settings):
            return None
        # Without a key, since a changed ARB_SECRET changes no file: it stays in the records, as labels do.
        return self.origin.base or version_of(self._suite, load_annotations(self._suite, self._settings))

    def annotations(self) -> tuple[Annotation, ...]:
        """All annotations of the labels that are served, with the suite's dev labels where these lack them.

        Raises what `label_origin` does.
        """
        found = load_annotations(self._suite, self.origin.settings)
        known = {annotation.trajectory_id for annotation in found}
        if not self._suite.dev_labels_path.is_file():
            return found
        dev = load_annotations(self._suite, self.origin.settings, "dev")
        return (*found, *(annotation for annotation in dev if annotation.trajectory_id not in known))

    def _of(self, split: str) -> LabelSet | NoLabels:
        with self._reading:
            if split not in self._read:
                self._read[split] = self._load(split)
            return self._read[split]

    @property
    def test(self) -> LabelSet | None:
        """The test labels; None if they cannot be had."""
        found = self._of("test")
        return found if isinstance(found, LabelSet) else None

    @property
    def dev(self) -> LabelSet | None:
        """The dev labels; None if they cannot be had."""
        found = self._of("dev")
        return found if isinstance(found, LabelSet) else None

    def why_none(self, split: str) -> str | None:
        """Why there are no labels of a split, in words that anyone may read; None where there are."""
        found = self._of(split)
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
            return load_labels(self._suite, split, self.origin.settings, version_key=key)
        except (LabelsUnavailable, LabelsInvalid, SecretUnavailable) as reason:
            level = logging.INFO if isinstance(reason, NotPublishedYet) else logging.WARNING
            logger.log(level, "%s labels of %s cannot be used: %s", split, self._suite.name, reason)
            return reason

    def version_key(self, split: str) -> bytes | None:
        """What keys the version of hidden labels, since a plain hash would confirm a guess; else None."""
        if split != "test" or self._suite.labels_are_public:
            return None
        return self._find_secret().key("label-version")
