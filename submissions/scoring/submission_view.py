"""A submission as its owner or a maintainer sees it: status, metrics, receipt."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from submissions.hub.durability import Durability
from submissions.intake.receipts import Receipt, Signer, receipt_of
from submissions.privacy.disclosure import Audience
from submissions.records.queries import RecordedSubmission
from submissions.records.statuses import SubmissionStatus
from submissions.scoring.board import DisclosurePolicy


@dataclass(frozen=True)
class SubmissionView:
    """What may be seen. ``report`` is the score report for the audience, None before there is a score."""

    receipt: Receipt
    judge: str
    status: SubmissionStatus
    report: Mapping[str, Any] | None
    appears_at: datetime | None
    """When a row made public appears on the board, in a suite with private labels."""

    def to_json(self) -> dict[str, Any]:
        standing = asdict(self.status)
        if self.status.published_at is not None:
            standing["published_at"] = self.status.published_at.isoformat()
        return {
            **self.receipt.to_json(),
            "judge_name": self.judge,
            "standing": standing,
            "report": self.report,
            "appears_at": self.appears_at and self.appears_at.isoformat(),
        }


def view_submission(
    found: RecordedSubmission,
    audience: Audience,
    disclosure_policy: DisclosurePolicy,
    durability: Durability,
    signer: Signer,
    timeout_s: float = 0.0,
) -> SubmissionView:
    """What an audience may see of a submission, once its records last or ``timeout_s`` has passed."""
    lasts = durability.wait(found.last, timeout_s)
    status = "waiting" if not lasts else "held" if found.status.is_held else "accepted"
    return SubmissionView(
        receipt=receipt_of(found.submitted, found.is_new, status, signer),
        judge=found.judge,
        status=found.status,
        report=None if found.score is None else disclosure_policy.report(found.score, audience),
        appears_at=disclosure_policy.appears_at(found.status.published_at),
    )
