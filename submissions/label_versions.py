"""Label sets of a suite, one after another: each is a file with a hash, a version, and a reason for it.

Published sets are records (``labels_published``) and their files lie among the uploaded ones. ``ARB_LABELS``
set to ``records`` serves the newest, ``records:VERSION`` an older one: both can be scored at any time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from sqlalchemy import Engine

from dataset_script.settings import Settings
from dataset_script.suite import Suite
from leaderboard.annotations import QUESTIONS
from leaderboard.label_source import LabelsUnavailable
from leaderboard.labels import LabelSet, load_labels
from submissions.chain import Event, events_after
from submissions.database import snapshot
from submissions.store import FileStore

SOURCE: Final = "records"
"""What ARB_LABELS says, before a colon and a version, where the labels are those published here."""


@dataclass(frozen=True)
class LabelVersion:
    """A published label set. ``changes`` counts trajectories by question: no label, and no id, is in it."""

    version: str
    file_sha256: str
    at: datetime
    by: str
    why: str
    labelled: int
    changes: Mapping[str, int]


def published_versions(engine: Engine, suite: str) -> list[LabelVersion]:
    """The label sets of a suite in the order in which they were published."""
    with snapshot(engine) as session:
        return versions_in(events_after(session, kinds=["labels_published"]), suite)


def versions_in(records: Sequence[Event], suite: str) -> list[LabelVersion]:
    """The same from the records."""
    return [
        LabelVersion(
            version=record.body["version"],
            file_sha256=record.body["file_sha256"],
            at=record.at,
            by=record.actor,
            why=record.body["why"],
            labelled=record.body["labelled"],
            changes=MappingProxyType(record.body["changes"]),
        )
        for record in records
        if record.body["suite"] == suite
    ]


def serves_records(settings: Settings) -> bool:
    """Whether the labels are those published among the records."""
    return settings.labels.partition(":")[0] == SOURCE


def resolved_settings(settings: Settings, suite: str, engine: Engine, files: FileStore) -> Settings:
    """Settings that name the file of the label set that is served. Raises LabelsUnavailable."""
    _, _, wanted = settings.labels.partition(":")
    known = published_versions(engine, suite)
    found = [each for each in known if wanted in ("", each.version)]
    if not found:
        said = f"; there are {', '.join(each.version for each in known)}" if known else ""
        raise LabelsUnavailable(
            f"no label set {wanted or 'at all'} was published for {suite}{said}: publish one with "
            "`python -m submissions publish-labels FILE --why …`"
        )
    return _naming(settings, files.path(found[-1].file_sha256))


def load_set(suite: Suite, settings: Settings, path: Path, version_key: bytes | None) -> LabelSet:
    """The test labels of a file. Raises LabelsInvalid naming every bad row, LabelsUnavailable."""
    return load_labels(suite, "test", _naming(settings, path), fetch=False, version_key=version_key)


def changes_between(before: LabelSet | None, after: LabelSet) -> dict[str, int]:
    """How many trajectories have another label than before, by question; all that have one where none was."""
    return {
        question: int(np.count_nonzero(after.primary[question] != _column(before, after, question)))
        for question in QUESTIONS
    }


def _column(before: LabelSet | None, after: LabelSet, question: str) -> np.ndarray:
    if before is not None:
        return before.primary[question]
    nothing = 0 if question == "optimality" else -1
    return np.full_like(after.primary[question], nothing)


def publication_body(
    suite: str, found: LabelSet, before: LabelSet | None, file_sha256: str, why: str
) -> dict[str, Any]:
    """The body of the record by which a set is published."""
    return {
        "suite": suite,
        "version": found.version,
        "file_sha256": file_sha256,
        "why": why,
        "labelled": int((found.primary["success"] >= 0).sum()),
        "changes": changes_between(before, found),
    }


def _naming(settings: Settings, path: Path) -> Settings:
    return settings.model_copy(update={"labels": f"csv:{path}"})
