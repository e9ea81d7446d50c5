"""Accepted corrections of labels: the next label version, made of those served now and what they lack.

A dispute that was decided as ``corrected`` names the right answer. It waits until a label version holds it.
Whether it waits is read off the labels that are served, not off a list: so a correction that a new label file
lacks waits again, one that the file has already does not, and doing anything twice changes nothing.
"""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from arb.core.annotation import Annotation
from arb.core.suite import Suite
from leaderboard.labels.annotations import AnnotationsInvalid, write_released
from leaderboard.labels.labels import (
    LabelSet,
    LabelsInvalid,
    load_annotations,
    make_label_set,
    version_of,
)
from leaderboard.labels.source import LabelsUnavailable
from submissions.app import SubmissionsApp
from submissions.errors import PermissionDenied, SubmissionError
from submissions.intake.accounts import Actor
from submissions.labels.decisions import (
    DecidedAnnotations,
    Decision,
    corrections_of,
    discussion_decision,
    disputes_in,
    newest_decisions,
    with_decisions,
)
from submissions.labels.versions import LabelVersion, serves_records, versions_at
from submissions.privacy.server_secret import SecretUnavailable
from submissions.records.database import snapshot
from submissions.records.event_log import DISPUTE_KINDS, events_after, number_of_events
from submissions.scoring.rescore import publish


def waiting_corrections(session: Session, suite: Suite) -> list[Decision]:
    """Return the corrections that count, oldest first: of one answer the newest one.

    One that the discussion decided again since is left out, and one of a question that the suite no longer
    asks, which is in no later label set.
    """
    events = events_after(session, kinds=DISPUTE_KINDS | {"resolved"})
    disputed = corrections_of(disputes_in(events, suite.name).values())
    discussed = [discussion_decision(event) for event in events if event.kind == "resolved"]
    return [
        each
        for each in newest_decisions([*disputed, *discussed])
        if each.origin == "dispute" and suite.question(each.target) is not None
    ]


@dataclass(frozen=True, repr=False)
class NextLabels(DecidedAnnotations):
    """What the next label version would be.

    ``digest`` names its content: who publishes says which one they saw. ``served`` and ``test`` are the test
    labels before and after. ``sequence`` is the last event that was looked at.
    """

    digest: str = ""
    served: LabelSet | None = None
    test: LabelSet | None = None
    base: str | None = None
    sequence: int = 0

    @property
    def why(self) -> str:
        """The reason that is recorded where nobody gives another one."""
        what = "Corrections of the disputes" if len(self.applied) > 1 else "Correction of dispute"
        return f"{what} {', '.join(each.dispute_id for each in self.applied)}"


def next_labels(service: SubmissionsApp) -> NextLabels:
    """The labels that are served with all accepted corrections; SubmissionError where there are none."""
    with snapshot(service.engine) as session:
        sequence = number_of_events(session)
        corrections = waiting_corrections(session, service.suite)
        versions = versions_at(session, service.suite.name)
    store = service.labels
    if store.test is None:
        raise SubmissionError(f"there are no labels to correct: {store.why_none('test')}")
    try:
        key, base = store.version_key("test"), store.base
        published = [each for version in versions for each in version.corrections]
        found = with_decisions(store.annotations(), corrections, published)
        test = make_label_set(service.suite, "test", found.annotations, version_key=key)
    except (LabelsUnavailable, LabelsInvalid, SecretUnavailable):
        raise SubmissionError(
            f"the labels of {service.suite.name} cannot be read; the log of the Space has the reason"
        ) from None
    digest = version_of(service.suite, found.annotations, key)
    return NextLabels(
        found.annotations, found.applied, found.conflicts, found.missing,
        digest, store.test, test, base, sequence,
    )  # fmt: skip


def publish_corrections(
    service: SubmissionsApp, actor: Actor, why: str = "", expected: str | None = None
) -> LabelVersion:
    """Publish the next label version, of the labels served now and the corrections that wait.

    It is served from then on; `rescore` scores everything under it. ``expected`` is the digest of the one
    that was looked at: where it has changed, nothing is published. Raises PermissionDenied, SubmissionError.
    """
    if not actor.is_maintainer:
        raise PermissionDenied("only maintainers may publish labels")
    if serves_records(service.settings) and ":" in service.settings.labels:
        raise SubmissionError(
            f"ARB_LABELS is {service.settings.labels}, which serves that version whatever is published: set "
            "it to records first"
        )
    found = next_labels(service)
    if expected and expected != found.digest:
        raise SubmissionError(
            "corrections or labels have changed since the page was loaded: look at the next version again"
        )
    if not found.applied:
        raise SubmissionError("no accepted correction waits: the labels that are served hold them all")
    try:
        content = write_released(found.annotations, questions=service.suite.questions).encode()
    except AnnotationsInvalid:
        raise SubmissionError(
            "the labels have questions without an answer, which the released format cannot hold; annotate "
            "these trajectories first"
        ) from None
    return publish(
        service, content, actor, why.strip() or found.why, found.base, found.applied, found.sequence
    )


def outdated_dev_labels(service: SubmissionsApp) -> list[Decision]:
    """Accepted corrections of dev labels that the suite's published dev labels lack.

    Judges are tuned on that file, which comes with the suite: no label version changes it.
    """
    suite = service.suite
    if not suite.dev_labels_path.is_file():
        return []
    with snapshot(service.engine) as session:
        corrections = [each for each in waiting_corrections(session, suite) if each.split == "dev"]
    if not corrections:
        return []
    first: dict[str, Annotation] = {}
    try:
        for annotation in load_annotations(suite, service.settings, "dev"):
            first.setdefault(annotation.trajectory_id, annotation)
    except LabelsInvalid:
        return []  # nothing of this suite can be read then; its other pages say so
    return [
        each
        for each in corrections
        if (row := first.get(each.trajectory_id)) is not None and row.answers.get(each.target) != each.value
    ]
