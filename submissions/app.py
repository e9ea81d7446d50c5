"""The services of one suite, wired: intake, records and moderation over the same resources."""

from functools import cached_property
from typing import Any

from submissions.intake.service import IntakeService
from submissions.moderation.actions import ModerationService
from submissions.privacy.server_secret import KnownSecret
from submissions.records.service import RecordsService
from submissions.resources import Resources


class SubmissionsApp(Resources):
    """The resources of one suite with the three services over them."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.records = RecordsService(self)
        self.intake = IntakeService(self, self.records, lambda: self.moderation)

    @cached_property
    def moderation(self) -> ModerationService:
        """What owners and maintainers may do."""
        return ModerationService(
            self.engine,
            self.suite,
            self.clock,
            on_release=self.intake.finish_scoring,
            is_open=lambda: self.durability.closed is None,
        )

    def adopt_secret(self, known: KnownSecret) -> None:
        """Use the derivation that the Hub's records name, also for boards and budgets."""
        super().adopt_secret(known)
        self.records.forget_secret()
