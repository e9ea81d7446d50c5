"""Accepted corrections of labels, and the next label version that contains them.

A dispute that was decided as ``corrected`` names the correct answer. The correction is pending as long as the
served labels have another answer. This is computed from the labels and stored nowhere, so that a correction
becomes pending again if a new label file lacks it, and publishing twice changes nothing.
"""

from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy.orm import Session

from arb.core.suite import Suite
from leaderboard.labels.aggregation import aggregate
from leaderboard.labels.annotations import AnnotationsInvalid, write_released
from leaderboard.labels.labels import LabelSet, LabelsInvalid, load_annotations, make_label_set, version_of
from submissions.app import SubmissionsApp
from submissions.errors import SubmissionError
from submissions.intake.accounts import Actor, require_maintainer
from submissions.labels.decisions import (
    DecidedAnnotations,
    Decision,
    discussion_decision,
    disputes_in,
    newest_decisions,
    with_decisions,
)
from submissions.labels.versions import UNREADABLE, LabelVersion, serves_records, versions_at
from submissions.records.event_log import DISPUTE_KINDS, events_after, number_of_events
from submissions.scoring.rescore import publish

NOTHING_TO_PUBLISH: Final = (
    "there is nothing to publish: the current labels contain every accepted correction"
)


def waiting_corrections(session: Session, suite: Suite) -> list[Decision]:
    """Return the newest accepted correction of each answer, oldest first.

    The served labels may already contain it. A correction is left out if the annotators' discussion decided
    the question later, or if the suite no longer asks the question.
    """
    events = events_after(session, kinds=DISPUTE_KINDS | {"resolved"})
    decisions = [discussion_decision(event) for event in events if event.kind == "resolved"]
    for dispute in disputes_in(events, suite.name).values():
        decided = dispute.decided
        if decided and decided.outcome == "corrected" and decided.value is not None:
            decisions.append(decided)
    return [
        each
        for each in newest_decisions(decisions)
        if each.origin == "dispute" and suite.target(each.target) is not None
    ]


@dataclass(frozen=True, repr=False, kw_only=True)
class NextLabels(DecidedAnnotations):
    """The label version that would be published now.

    ``digest`` identifies its content, so that maintainers publish exactly what they reviewed. ``served`` and
    ``test`` are the test labels before and after; ``base`` and ``left_out`` are as in `LabelVersion`.
    ``sequence`` is the number of the last event that was read.
    """

    digest: str
    served: LabelSet
    test: LabelSet
    base: str | None
    sequence: int
    left_out: tuple[str, ...]

    @property
    def why(self) -> str:
        what = "Corrections of the disputes" if len(self.applied) > 1 else "Correction of dispute"
        return f"{what} {', '.join(each.dispute_id for each in self.applied)}"


def next_labels(service: SubmissionsApp) -> NextLabels:
    """Return the served labels with all accepted corrections.

    Raises SubmissionError if the labels cannot be read.
    """
    with service.snapshot() as session:
        sequence = number_of_events(session)
        corrections = waiting_corrections(session, service.suite)
        versions = versions_at(session, service.suite.name)
    store = service.labels
    if store.test is None:
        raise SubmissionError(f"there are no labels to correct: {store.why_none('test')}")
    try:
        key, base = store.version_key("test"), store.base
        published = [each for version in versions for each in version.corrections]
        labels = aggregate(store.annotations(), service.suite.targets)
        found = with_decisions(labels.annotations, corrections, published)
        test = make_label_set(service.suite, "test", found.annotations, version_key=key)
    except UNREADABLE:
        raise SubmissionError(
            f"the labels of {service.suite.name} cannot be read; the Space's log has the details"
        ) from None
    left_out = labels.names_left_out({(each.trajectory_id, each.target) for each in corrections})
    digest = version_of(service.suite, found.annotations, key)
    return NextLabels(
        **vars(found), digest=digest, served=store.test, test=test, base=base, sequence=sequence,
        left_out=left_out,
    )  # fmt: skip


def publish_corrections(
    service: SubmissionsApp, actor: Actor, why: str = "", expected: str | None = None
) -> LabelVersion:
    """Publish the served labels with all pending corrections, and return the new label version.

    The new version is served from then on; call `rescore` to update the scores. Raises PermissionDenied, or
    SubmissionError if nothing can be published or if the new version's digest is not ``expected``.
    """
    require_maintainer(actor, "publish labels")
    if serves_records(service.settings) and ":" in service.settings.labels:
        raise SubmissionError(
            f"{service.settings.labels_from(service.settings.labels)} always serves that version, so a new "
            f"one would not be used; set {service.settings.labels_from('records')} first"
        )
    found = next_labels(service)
    if expected and expected != found.digest:
        raise SubmissionError("corrections or labels changed in the meantime; review the next version again")
    if not found.applied:
        raise SubmissionError(NOTHING_TO_PUBLISH)
    try:
        content = write_released(found.annotations, questions=service.suite.targets).encode()
    except AnnotationsInvalid:
        raise SubmissionError(
            "some trajectories have unanswered questions, which a label file must not have; answer them first"
        ) from None
    return publish(
        service, content, actor, why.strip() or found.why, found.base, found.applied, found.sequence,
        found.left_out,
    )  # fmt: skip


def outdated_dev_labels(service: SubmissionsApp) -> list[Decision]:
    """Return the accepted corrections that are not in the suite's dev label file.

    Judges are tuned on that file. It is part of the suite, so publishing a label version does not change it.
    """
    suite = service.suite
    with service.snapshot() as session:
        corrections = [each for each in waiting_corrections(session, suite) if each.split == "dev"]
    if not (corrections and suite.dev_labels_path.is_file()):
        return []
    try:
        found = with_decisions(load_annotations(suite, service.settings, "dev"), corrections)
    except LabelsInvalid:
        return []  # other pages report that the labels cannot be read
    return [replace(each, before=None) for each in found.applied]
