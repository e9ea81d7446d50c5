"""A submission as its owner or a maintainer sees it: where it stands, its figures, its receipt."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from submissions.chain import records_of_submission
from submissions.disclosed import Audience, Discloser
from submissions.durability import Durability
from submissions.lookup import current_standings
from submissions.receipts import Receipt, Signer, receipt_of
from submissions.records import Score, Submission
from submissions.standing import Standing


@dataclass(frozen=True)
class ToldSubmission:
    """What may be seen. ``report`` is the score report for the audience, None before there is a score."""

    receipt: Receipt
    judge: str
    standing: Standing
    report: Mapping[str, Any] | None
    appears_at: datetime | None
    """When a row made public appears on the board, in a suite with private labels."""

    def to_json(self) -> dict[str, Any]:
        """The same as JSON."""
        standing = asdict(self.standing)
        if self.standing.published_at is not None:
            standing["published_at"] = self.standing.published_at.isoformat()
        return {
            **self.receipt.to_json(),
            "judge_name": self.judge,
            "standing": standing,
            "report": self.report,
            "appears_at": self.appears_at and self.appears_at.isoformat(),
        }


def tell(
    session: Session,
    submission: Submission,
    audience: Audience,
    discloser: Discloser,
    label_version: str | None,
    durability: Durability,
    signer: Signer,
) -> ToldSubmission:
    """What an audience may see of a submission at the session's moment.

    The report is that of the label version, or of the newest score where there is none of it.
    """
    submitted, *acts = records_of_submission(session, submission.id)
    found = current_standings(session)
    standing = found.of(submission.id)
    lasts = durability.wait(([submitted, *acts][-1]).sequence, 0.0)
    status = "waiting" if not lasts else "held" if standing.is_held else "accepted"
    score = _score(session, submission.id, label_version)
    return ToldSubmission(
        receipt=receipt_of(submitted, False, status, signer),
        judge=found.name_of(submitted.body["account"], submitted.body["judge"]),
        standing=standing,
        report=None if score is None else discloser.report(score, audience),
        appears_at=discloser.appears_at(standing.published_at),
    )


def _score(session: Session, submission_id: str, label_version: str | None) -> Score | None:
    wanted = select(Score).where(Score.submission_id == submission_id).order_by(Score.id.desc())
    scores = session.scalars(wanted).all()
    of_version = (score for score in scores if score.label_version == label_version)
    return next(of_version, scores[0] if scores else None)
