"""The application object of one suite, with its intake, records and moderation services."""

from collections.abc import Callable
from datetime import datetime

from arb.core.settings import Settings
from submissions.intake.service import IntakeService
from submissions.moderation.actions import ModerationService
from submissions.records.service import RecordsService
from submissions.resources import Resources, utc_now


class SubmissionsApp(Resources):
    """The shared resources of one suite, and the services that use them: records, moderation and intake."""

    moderation: ModerationService

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], datetime] = utc_now,
        main: "SubmissionsApp | None" = None,
    ) -> None:
        """Build the services. ``main`` is the application of the default suite if this is a further one."""
        super().__init__(settings, clock)
        self.records = RecordsService(self)
        self.moderation = ModerationService(self, main.moderation if main else None)
        self.intake = IntakeService(self, self.records, self.moderation)
