"""The label set as labelling stands: the annotations of this suite, ready to be published.

Trajectories that nobody has annotated here keep what the label set before says of them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from leaderboard.annotations import Annotation
from leaderboard.label_source import LabelsUnavailable
from leaderboard.labels import LabelsInvalid, load_annotations
from submissions.label_versions import published_versions, serves_records
from submissions.labelling.discussion import finished_annotations
from submissions.labelling.state import AnnotationState
from submissions.refusals import SubmissionError
from submissions.service import SubmissionService

EARLIER: Final = "earlier-"
"""Before the id of an annotator of an earlier label set: they are other people than those invited here."""


def label_set(state: AnnotationState, before: Sequence[Annotation] = ()) -> tuple[Annotation, ...]:
    """All primary annotations with decisions applied, then the second ones as they were given.

    The first row of a trajectory is the one that judges are scored on. ``before`` are the annotations of the
    label set before, for trajectories without a finished annotation here.
    """
    given = finished_annotations(state)
    annotated = {annotation.trajectory_id for annotation in given}
    kept = _with_opaque_ids(each for each in before if each.trajectory_id not in annotated)
    primary, others = _primary_first([*given, *kept])
    decided = []
    for annotation in primary:
        answers = state.decided(annotation.trajectory_id) if annotation.trajectory_id in annotated else {}
        decided.append(replace(annotation, **{question: d.answer for question, d in answers.items()}))
    return (*decided, *others)


def annotations_before(service: SubmissionService) -> tuple[Annotation, ...]:
    """The annotations of the newest published label set, else of the labels that the settings name.

    Empty where there are none yet. Raises SubmissionError where there should be some that cannot be read.
    """
    known = published_versions(service.engine, service.suite.name)
    if not known and (serves_records(service.settings) or service.settings.labels == "none"):
        return ()
    file = service.files.path(known[-1].file_sha256) if known else None
    try:
        return load_annotations(service.suite, service.settings, file=file)
    except (LabelsUnavailable, LabelsInvalid):
        raise SubmissionError(
            "the previous label set cannot be read, and publishing now would lose its labels; restore its "
            "file first"
        ) from None


def _with_opaque_ids(annotations: Iterable[Annotation]) -> list[Annotation]:
    """The same with ids of annotators that are nobody's here, numbered as they appear; no name is kept."""
    ids: dict[str, str] = {}
    found = []
    for annotation in annotations:
        name = (annotation.annotator or "").strip()
        opaque = ids.setdefault(name, f"{EARLIER}{len(ids) + 1}") if name else None
        found.append(replace(annotation, annotator=opaque))
    return found


def _primary_first(annotations: Iterable[Annotation]) -> tuple[list[Annotation], list[Annotation]]:
    """The first annotation of each trajectory by id, and the others, in their order."""
    first: dict[str, Annotation] = {}
    others = []
    for annotation in annotations:
        if first.setdefault(annotation.trajectory_id, annotation) is not annotation:
            others.append(annotation)
    return [first[name] for name in sorted(first)], others
