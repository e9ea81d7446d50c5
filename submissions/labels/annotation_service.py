"""What pages and commands need for annotation: its state, its actions, agreement, and publishing a label set.

A label set holds the annotations of this suite; trajectories that nobody has annotated here keep what the
label set before says of them.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Final

from arb.core.annotation import Annotation
from arb.core.vocabulary import SPLITS
from leaderboard.labels.agreement import AgreementReport, agreement_report
from leaderboard.labels.annotations import with_opaque_annotators, with_unsure, write_released
from leaderboard.labels.labels import LabelsInvalid, load_annotations
from leaderboard.labels.source import LabelsUnavailable
from submissions.errors import PermissionDenied, SubmissionError
from submissions.intake.accounts import Actor
from submissions.labels.annotation_actions import AnnotationActions
from submissions.labels.annotation_state import AnnotationState, AnnotationStateCache, finished_annotations
from submissions.labels.assignment import chosen
from submissions.labels.corrections import waiting_corrections
from submissions.labels.decisions import newest_decisions, with_decisions
from submissions.labels.versions import LabelVersion, published_versions, serves_records
from submissions.privacy.server_secret import SecretUnavailable
from submissions.scoring.rescore import publish
from submissions.service import SubmissionService

EARLIER: Final = "earlier-"
"""Before the id of an annotator of an earlier label set: they are other people than those invited here."""


def label_set(state: AnnotationState, before: Sequence[Annotation] = ()) -> tuple[Annotation, ...]:
    """Return the answers of a label set: first ones by trajectory, then the second ones.

    ``before`` are the annotations of the label set before, for trajectories without a finished annotation
    here. A question of the paper that nobody was asked, since it came later, is Unsure.
    """
    finished = finished_annotations(state)
    annotated = {annotation.trajectory_id for annotation in finished}
    kept = (each for each in before if each.trajectory_id not in annotated)
    earlier = with_opaque_annotators(kept, EARLIER)
    first: dict[str, Annotation] = {}
    others = []
    for annotation in [*finished, *earlier]:
        if first.setdefault(annotation.trajectory_id, annotation) is not annotation:
            others.append(annotation)
    ordered = [*(first[name] for name in sorted(first)), *others]
    return tuple(with_unsure(annotation, state.questions) for annotation in ordered)


def annotations_before(service: SubmissionService) -> tuple[Annotation, ...]:
    """The annotations of the newest published label set; of what is served where ARB_LABELS names a file.

    Empty where there are none yet. Raises SubmissionError where there should be some that cannot be read.
    """
    known = published_versions(service.engine, service.suite.name)
    is_of_records = serves_records(service.settings) or service.settings.labels == "none"
    if not known and is_of_records:
        return ()
    try:
        if not is_of_records:
            return service.labels.annotations()
        file = service.files.path(known[-1].file_sha256)
        return load_annotations(service.suite, service.settings, file=file)
    except (LabelsUnavailable, LabelsInvalid, SecretUnavailable):
        raise SubmissionError(
            "the previous label set cannot be read, and publishing now would lose its labels; restore its "
            "file first"
        ) from None


@dataclass(frozen=True)
class AnnotatorProgress:
    """An annotator for maintainers: account, how far they are, seconds that a trajectory takes (median)."""

    annotator: str
    account: str
    is_active: bool
    n_done: int
    n_assigned: int
    seconds: float | None


def progress_of_annotators(state: AnnotationState) -> list[AnnotatorProgress]:
    """Everybody who was ever invited, in the order of their ids."""
    found = []
    for annotator, account in state.accounts.items():
        tasks = state.queue(annotator)
        done = [task.saved for task in tasks if task.saved and task.is_done]
        took = [saved.seconds for saved in done if saved.seconds]  # 0 where answers came from a file
        found.append(
            AnnotatorProgress(
                annotator, account, annotator in state.active, len(done), len(tasks),
                median(took) if took else None,
            )
        )  # fmt: skip
    return found


class AnnotationService:
    """Annotation of the suite of a service. One instance a process; safe for threads."""

    def __init__(self, service: SubmissionService) -> None:
        self.service = service
        self._agreement: tuple[AnnotationState, AgreementReport] | None = None

    @cached_property
    def _state_cache(self) -> AnnotationStateCache:
        return AnnotationStateCache(self.service.engine, self.service.suite)

    @cached_property
    def actions(self) -> AnnotationActions:
        return AnnotationActions(
            self.service.engine, self.service.suite, self.service.clock, self._state_cache
        )

    def now(self) -> AnnotationState:
        return self._state_cache.now()

    def is_annotator(self, account: str) -> bool:
        return self.now().annotator_of(account) is not None

    def assign(
        self,
        split: str,
        most: int | None,
        share: float,
        seed: int,
        available: Collection[str],
        actor: Actor,
        gold_share: float = 0.0,
    ) -> int:
        """Assign trajectories of a split ("both": of each) to the invited; how many assignments were added.

        ``most`` bounds how many new ones, evenly over the benchmarks; None for all. ``available`` are those
        that can be looked at, ``share`` (0 to 1) is that of second annotations, ``gold_share`` that of gold
        items on top. Raises as `actions.assign`.
        """
        assigned = self.now().assigned
        ids = [
            trajectory.trajectory_id
            for name in SPLITS
            if split in (name, "both")
            for trajectory in self.service.suite.split(name)
            if trajectory.trajectory_id in available and trajectory.trajectory_id not in assigned
        ]
        wanted = ids if most is None else chosen(ids, max(0, most), seed)
        return self.actions.assign(wanted, share, seed, actor, gold_share)

    def agreement(self) -> AgreementReport:
        """How far annotators agree, by the answers they gave and not by what was decided later."""
        state, known = self.now(), self._agreement
        if known is None or known[0] is not state:  # it takes a second where there are many annotators
            known = self._agreement = (
                state, agreement_report(finished_annotations(state), state.questions)
            )  # fmt: skip
        return known[1]

    def publish(self, actor: Actor, why: str) -> LabelVersion:
        """Publish the label set as it stands as a new version, with the corrections of disputes that nobody
        decided anew in the discussion since. Raises PermissionDenied, SubmissionError.
        """
        if not actor.is_maintainer:
            raise PermissionDenied("only maintainers may publish labels")
        state = self.now()
        if not any(saved.is_done for saved in state.saved.values()):
            raise SubmissionError("nobody has finished an annotation yet, so there is nothing to publish")
        with self.service.snapshot() as session:
            corrections = waiting_corrections(session, self.service.suite)
        discussed = [each for name, _ in state.saved for each in state.decided(name).values()]
        decisions = newest_decisions([*discussed, *corrections])
        found = with_decisions(label_set(state, annotations_before(self.service)), decisions)
        content = write_released(found.annotations, questions=state.questions).encode()
        applied = [each for each in found.applied if each.origin == "dispute"]
        return publish(self.service, content, actor, why, self.service.labels.base, applied)
