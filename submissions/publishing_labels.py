"""Publishing a label set: checked whole, kept by its hash, recorded with its reason; scores follow."""

from pathlib import Path

from leaderboard.label_source import LabelsUnavailable
from leaderboard.labels import LabelsInvalid
from submissions.accounts import Actor
from submissions.chain import lock_event_log
from submissions.database import transaction
from submissions.label_versions import (
    LabelVersion,
    load_set,
    publication_body,
    published_versions,
    serves_records,
)
from submissions.projection import add_event
from submissions.refusals import PermissionDenied, SubmissionError
from submissions.service import SubmissionService

REASON_LENGTH = 2_000


def publish(service: SubmissionService, content: bytes, actor: Actor, why: str) -> LabelVersion:
    """Make a file in the released format the newest label set of the suite.

    What was scored stays as it is; `rescore` scores everything under the new set. Publishing the set that is
    the newest already changes nothing. Raises PermissionDenied, and SubmissionError naming every bad row (never
    a label).
    """
    if not actor.is_maintainer:
        raise PermissionDenied("only maintainers may publish labels")
    reason = " ".join(why.split())
    if not reason or len(reason) > REASON_LENGTH:
        raise SubmissionError(f"say what changed and why in up to {REASON_LENGTH} characters")
    sha256 = service.files.keep(content)
    key = service.labels.version_key("test")
    try:
        found = load_set(service.suite, service.settings, service.files.path(sha256), key)
    except (LabelsInvalid, LabelsUnavailable) as problem:
        raise SubmissionError(f"the label file cannot be used: {problem}") from None
    known = published_versions(service.engine, service.suite.name)
    if known and known[-1].version == found.version:
        return known[-1]
    before = _previous(service, known, key)
    with transaction(service.engine) as session:
        lock_event_log(session)
        body = publication_body(service.suite.name, found, before, sha256, reason)
        add_event(session, "labels_published", actor.name, service.clock(), body)
    if serves_records(service.settings):
        service.forget_labels()
    return published_versions(service.engine, service.suite.name)[-1]


def publish_file(service: SubmissionService, path: Path, actor: Actor, why: str) -> LabelVersion:
    """The same of a file on this machine; our Parquet is turned into the released format first."""
    if path.suffix != ".parquet":
        return publish(service, path.read_bytes(), actor, why)
    from leaderboard.labels import load_annotations
    from leaderboard.released_annotations import write_released

    try:
        annotations = load_annotations(service.suite, service.settings, file=path)
        content = write_released(annotations).encode()
    except (LabelsInvalid, LabelsUnavailable, ValueError) as problem:
        raise SubmissionError(f"the label file cannot be used: {problem}") from None
    return publish(service, content, actor, why)


def _previous(service: SubmissionService, known: list[LabelVersion], key: bytes | None):
    """The label set before: the newest published one, else what the Space is set to."""
    if not known:
        return None if serves_records(service.settings) else service.labels.test
    return load_set(service.suite, service.settings, service.files.path(known[-1].file_sha256), key)
