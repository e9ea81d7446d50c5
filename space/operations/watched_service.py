"""The service with its checks and submissions counted, whoever calls it: pages, REST."""

from typing import Any

from dataset_script.settings import Settings
from space.operations.metrics import Metrics
from submissions.predictions import Upload
from submissions.receipts import Receipt
from submissions.refusals import NotAllowed, SubmissionRefused, TooMany
from submissions.service import SubmissionService

FAILED = "failed"


class WatchedService(SubmissionService):
    """A service that counts in ``metrics`` what it does."""

    def __init__(self, settings: Settings, metrics: Metrics, **options: Any) -> None:
        super().__init__(settings, **options)
        self._metrics = metrics

    def check(self, *arguments: Any, **options: Any) -> Upload:
        """See SubmissionService."""
        upload = super().check(*arguments, **options)
        self._metrics.checks.labels("acceptable" if upload.check.acceptable else "not acceptable").inc()
        return upload

    def submit(self, *arguments: Any, **options: Any) -> Receipt:
        """See SubmissionService."""
        try:
            receipt = super().submit(*arguments, **options)
        except Exception as error:
            outcome = _outcome_of(error)
            self._metrics.submissions.labels(outcome).inc()
            if outcome == FAILED:
                self._metrics.failures.labels("submission").inc()
            raise
        self._metrics.submissions.labels(receipt.status if receipt.is_new else "sent again").inc()
        return receipt


def _outcome_of(error: Exception) -> str:
    match error:
        case TooMany():
            return "limited"
        case NotAllowed():
            return "not allowed"
        case SubmissionRefused():
            return "refused"
        case _:
            return FAILED
