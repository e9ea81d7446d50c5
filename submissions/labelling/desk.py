"""What pages and commands need for annotation: its state, its actions, agreement and publishing."""

from functools import cached_property

from leaderboard.agreement_report import AgreementReport, agreement_report
from leaderboard.released_annotations import write_released
from submissions.accounts import Actor
from submissions.label_versions import LabelVersion
from submissions.labelling.acts import AnnotationActions
from submissions.labelling.discussion import finished_annotations
from submissions.labelling.label_set import annotations_before, label_set
from submissions.labelling.shelf import AnnotationStateCache
from submissions.labelling.state import AnnotationState
from submissions.publishing_labels import publish
from submissions.refusals import PermissionDenied, SubmissionError
from submissions.service import SubmissionService


class LabellingDesk:
    """Annotation of the suite of a service. One instance a process; safe for threads."""

    def __init__(self, service: SubmissionService) -> None:
        self.service = service

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

    def agreement(self) -> AgreementReport:
        """How far annotators agree, by the answers they gave and not by what was decided later."""
        return agreement_report(finished_annotations(self.now()))

    def publish(self, actor: Actor, why: str) -> LabelVersion:
        """Publish the label set as it stands as a new version. Raises PermissionDenied, SubmissionError."""
        if not actor.is_maintainer:
            raise PermissionDenied("only maintainers may publish labels")
        state = self.now()
        if not any(given.is_done for given in state.given.values()):
            raise SubmissionError("nobody has finished an annotation yet, so there is nothing to publish")
        annotations = label_set(state, annotations_before(self.service))
        return publish(self.service, write_released(annotations).encode(), actor, why)
