"""The services that routes and pages of a suite share, each built once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from space.auth.auth import Auth
from space.operations.limits import CheckLimit
from space.operations.upload_queue import UploadQueue
from space.pages.labels.access import Access
from space.pages.maintain.rescoring import RescoringJob
from space.pages.trajectories.dataset import Explorer
from space.verdicts import JudgeVerdicts
from submissions.app import SubmissionsApp
from submissions.labels.annotation_service import AnnotationService
from submissions.moderation.reader_actions import ReaderActions


@dataclass(frozen=True)
class Services:
    """The services of one suite. If ``checks`` is None, the number of checks is not limited.

    ``suites`` has the services of all suites of the Space, keyed by name; the default suite, which has the
    accounts, is first.
    """

    submissions: SubmissionsApp
    trajectories: Explorer
    checks: CheckLimit | None = None
    uploads: UploadQueue = field(default_factory=UploadQueue)
    suites: Mapping[str, "Services"] = field(default_factory=dict, repr=False)

    @cached_property
    def auth(self) -> Auth:
        main = next(iter(self.suites), None)
        if main is not None and self.suites[main] is not self:
            return self.suites[main].auth
        service = self.submissions
        return Auth(service.settings, service.engine, service.moderation.identify)

    @cached_property
    def annotations(self) -> AnnotationService:
        return AnnotationService(self.submissions)

    @cached_property
    def access(self) -> Access:
        return Access(self.annotations, self.auth)

    @cached_property
    def rescoring(self) -> RescoringJob:
        return RescoringJob(self.submissions)

    @cached_property
    def actions(self) -> ReaderActions:
        """The service for actions that any account may take: disputing labels and tagging errors."""
        return ReaderActions(self.submissions)

    @cached_property
    def verdicts(self) -> JudgeVerdicts:
        return JudgeVerdicts(self.submissions, self.trajectories)
