"""What routes and pages of the Space use, built once."""

from dataclasses import dataclass
from functools import cached_property

from space.auth.auth import Auth
from space.operations.rate_limit import CheckLimit
from space.pages.errors.columns import JudgeColumns
from space.pages.trajectories.dataset import Explorer
from submissions.labels.annotation_service import AnnotationService
from submissions.service import SubmissionService


@dataclass(frozen=True)
class Services:
    """Every service; without ``checks`` the number of checks is not limited."""

    submissions: SubmissionService
    trajectories: Explorer
    checks: CheckLimit | None = None

    @cached_property
    def auth(self) -> Auth:
        return Auth(self.submissions.settings)

    @cached_property
    def annotations(self) -> AnnotationService:
        return AnnotationService(self.submissions)

    @cached_property
    def judge_columns(self) -> JudgeColumns:
        """The judges whose errors may be seen."""
        return JudgeColumns(self.submissions, self.trajectories)
