"""Disputes of labels and the decisions on them. A pure fold over events.

`told` gives what a reader may see. Where labels are private, a dispute of a test
trajectory shows neither its text nor the reason, nor whether the label was changed: whoever knows what was
asked for would know the label.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal, get_args

from submissions.chain import Event

Decision = Literal["corrected", "kept", "declined"]
Outcome = Literal["open", "decided", "corrected", "kept", "declined"]
DECISIONS: Final = get_args(Decision)


@dataclass(frozen=True, slots=True, repr=False)
class DisputeDecision:
    """What a maintainer decided of a dispute: ``corrected`` and ``kept`` speak of the label, ``declined`` of
    the dispute (nothing in it to look into)."""

    decision: Decision
    reason: str
    by: str
    at: datetime


@dataclass(frozen=True, slots=True, repr=False)
class Dispute:
    """A dispute as it stands; of several decisions the last one counts."""

    dispute_id: str
    trajectory_id: str
    question: str
    split: str
    text: str
    by: str
    at: datetime
    decisions: tuple[DisputeDecision, ...] = ()

    def __repr__(self) -> str:
        return f"Dispute({self.dispute_id!r})"  # without what was decided: it may stand in a log

    @property
    def decided(self) -> DisputeDecision | None:
        """The decision that counts; None while it is open."""
        return self.decisions[-1] if self.decisions else None


@dataclass(frozen=True, slots=True)
class DisputeView:
    """A dispute as a reader may see it. ``text`` and ``reason`` are None where they are kept from them."""

    dispute_id: str
    trajectory_id: str
    question: str
    split: str
    by: str
    at: datetime
    outcome: Outcome
    text: str | None
    reason: str | None
    decided_by: str | None
    decided_at: datetime | None

    def to_json(self) -> dict[str, Any]:
        decided_at = self.decided_at and self.decided_at.isoformat()
        return {**asdict(self), "at": self.at.isoformat(), "decided_at": decided_at}


def disputes_in(records: Iterable[Event], suite: str) -> dict[str, Dispute]:
    """The disputes of a suite by their ids, in the order in which they were filed."""
    found: dict[str, Dispute] = {}
    for record in records:
        body = record.body
        if record.kind == "disputed" and body["suite"] == suite:
            asked = {name: body[name] for name in ("trajectory_id", "question", "split", "text")}
            found[body["dispute_id"]] = Dispute(body["dispute_id"], **asked, by=record.actor, at=record.at)
        elif record.kind == "dispute_decided" and body["dispute_id"] in found:
            dispute = found[body["dispute_id"]]
            decided = DisputeDecision(body["decision"], body["reason"], record.actor, record.at)
            found[dispute.dispute_id] = replace(dispute, decisions=(*dispute.decisions, decided))
    return found


def view_dispute(dispute: Dispute, labels_are_public: bool, is_maintainer: bool) -> DisputeView:
    """What a reader may see; maintainers see all. A text that was declined is for maintainers alone."""
    decided = dispute.decided
    hides_labels = dispute.split == "test" and not labels_are_public
    is_declined = decided is not None and decided.decision == "declined"
    outcome: Outcome = "open" if decided is None else decided.decision
    if hides_labels and outcome in ("corrected", "kept") and not is_maintainer:
        outcome = "decided"
    return DisputeView(
        dispute_id=dispute.dispute_id,
        trajectory_id=dispute.trajectory_id,
        question=dispute.question,
        split=dispute.split,
        by=dispute.by,
        at=dispute.at,
        outcome=outcome,
        text=dispute.text if is_maintainer or not (hides_labels or is_declined) else None,
        reason=decided.reason if decided and (is_maintainer or not hides_labels) else None,
        decided_by=decided and decided.by,
        decided_at=decided and decided.at,
    )
