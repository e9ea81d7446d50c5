"""Decisions about labels: from the annotators' discussion, or from disputes.

A label version consists of annotators' answers and of decisions, which `with_decisions` adds. The newest
decision on a question counts. A decision never changes an answer: it is a separate row before the answers. No
``repr`` shows answers, since a ``repr`` may end up in a log.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal, get_args

from arb.core.annotation import Annotation, decided_row
from arb.core.suite import Suite
from submissions.records.database import Event

Outcome = Literal["corrected", "kept", "declined"]
OUTCOMES: Final = get_args(Outcome)
Rule = Literal["majority", "median"]


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Decision:
    """A decision on one question (``target``) of a trajectory.

    ``value`` is the correct answer, or None if a dispute was decided without changing the label. ``sequence``
    is the number of the event. ``before`` is the answer that the decision replaced in a label set, or None if
    it has not been applied yet.
    """

    trajectory_id: str
    target: str
    value: str | None
    origin: Literal["discussion", "dispute"]
    reason: str
    by: str
    at: datetime
    sequence: int
    split: str = "test"
    dispute_id: str = ""
    outcome: Outcome = "corrected"
    before: str | None = None

    def to_event(self) -> dict[str, Any]:
        """Return a correction as a ``labels_published`` event stores it."""
        return {name: getattr(self, field) for name, field in _FIELDS_IN_EVENTS.items()}

    def to_json(self, suite: Suite) -> dict[str, Any]:
        """Return the correction for users, or only the dispute id if the label is hidden."""
        if not suite.shows_labels(self.split):
            return {"dispute_id": self.dispute_id}
        return {name: value for name, value in self.to_event().items() if name != "decision"}


_FIELDS_IN_EVENTS: Final = {
    "dispute_id": "dispute_id", "decision": "sequence", "trajectory_id": "trajectory_id",
    "question": "target", "split": "split", "answer": "value", "reason": "reason", "by": "by",
    "before": "before",
}  # fmt: skip
"""The fields of a correction, keyed by their names in ``labels_published`` events."""


def recorded_correction(body: Mapping[str, Any], at: datetime) -> Decision:
    """Return a correction from a ``labels_published`` event added at time ``at``; see `Decision.to_event`."""
    fields = {field: body[name] for name, field in _FIELDS_IN_EVENTS.items()}
    return Decision(**fields, origin="dispute", at=at)


def discussion_decision(event: Event) -> Decision:
    body = event.body
    return Decision(
        trajectory_id=body["trajectory_id"], target=body["question"], value=body["answer"],
        origin="discussion", reason=body["reason"], by=event.actor, at=event.at, sequence=event.sequence,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class Dispute:
    """A dispute with its decisions, of which the last one counts.

    ``answer`` is the right answer according to the person who filed it. ``judge`` is the judge whose error
    led to the dispute. Both may be empty.
    """

    dispute_id: str
    trajectory_id: str
    question: str
    split: str
    text: str
    by: str
    at: datetime
    decisions: tuple[Decision, ...] = ()
    answer: str = ""
    judge: str = ""

    @property
    def decided(self) -> Decision | None:
        """The decision that counts; None while the dispute is open."""
        return self.decisions[-1] if self.decisions else None


def disputes_in(events: Iterable[Event], suite: str) -> dict[str, Dispute]:
    """Return the disputes of a suite with their decisions, keyed by dispute id, oldest first."""
    found: dict[str, Dispute] = {}
    for event in events:
        body = event.body
        if event.kind == "disputed" and body["suite"] == suite:
            asked = {name: value for name, value in body.items() if name != "suite"}
            found[body["dispute_id"]] = Dispute(**asked, by=event.actor, at=event.at)
        elif event.kind == "dispute_decided" and body["dispute_id"] in found:
            dispute = found[body["dispute_id"]]
            decision = Decision(
                trajectory_id=dispute.trajectory_id, target=dispute.question, value=body.get("answer"),
                origin="dispute", reason=body["reason"], by=event.actor, at=event.at,
                sequence=event.sequence, split=dispute.split, dispute_id=dispute.dispute_id,
                outcome=body["decision"],
            )  # fmt: skip
            found[dispute.dispute_id] = replace(dispute, decisions=(*dispute.decisions, decision))
    return found


def view_dispute(dispute: Dispute, suite: Suite, is_maintainer: bool) -> dict[str, Any]:
    """Return a dispute as a dict, in which fields that the reader may not see are None.

    If the label is hidden, nobody sees the ``answer``, and only maintainers see ``text``, ``proposed`` (the
    answer that the dispute asks for), ``judge`` and ``reason``. Only maintainers see the text and proposal of
    a declined dispute. When maintainers decide a dispute again, they send back ``n_decisions``, so that they
    cannot overrule a decision that they have not seen.
    """
    decided = dispute.decided
    hides_labels = not suite.shows_labels(dispute.split)
    outcome: str = decided.outcome if decided else "open"
    shows_text = is_maintainer or not (hides_labels or outcome == "declined")
    if hides_labels and outcome in ("corrected", "kept") and not is_maintainer:
        outcome = "decided"
    kept = ("dispute_id", "trajectory_id", "question", "split", "by", "at")
    return {
        **{name: getattr(dispute, name) for name in kept},
        "outcome": outcome,
        "text": dispute.text if shows_text else None,
        "proposed": (dispute.answer or None) if shows_text else None,
        "judge": (dispute.judge or None) if shows_text else None,
        "reason": decided.reason if decided and (is_maintainer or not hides_labels) else None,
        "decided_by": decided and decided.by,
        "decided_at": decided and decided.at,
        "answer": decided.value if decided and not hides_labels else None,
        "n_decisions": len(dispute.decisions) if is_maintainer else 0,
    }


def newest_decisions(decisions: Iterable[Decision]) -> list[Decision]:
    """Return the newest decision on each question of each trajectory, oldest first."""
    newest: dict[tuple[str, str], Decision] = {}
    for decision in sorted(decisions, key=lambda each: each.sequence):
        newest[decision.trajectory_id, decision.target] = decision
    return sorted(newest.values(), key=lambda each: each.sequence)


@dataclass(frozen=True, repr=False)
class DecidedAnnotations:
    """Annotations with decisions applied: each decision is a row before the answers on its trajectory.

    ``applied`` has the decisions that changed a label, with the old label as ``before``. ``conflicts`` has
    decisions that were published earlier but would now replace a different label; they are not applied until
    somebody decides again. ``missing`` has decisions on trajectories that nobody has annotated.
    """

    annotations: tuple[Annotation, ...]
    applied: tuple[Decision, ...] = ()
    conflicts: tuple[Decision, ...] = ()
    missing: tuple[Decision, ...] = ()


def with_decisions(
    annotations: Sequence[Annotation], decisions: Iterable[Decision], published: Iterable[Decision] = ()
) -> DecidedAnnotations:
    """Apply decisions to annotations. ``published`` has the decisions in earlier label versions."""
    primary: dict[str, Annotation] = {}
    for annotation in annotations:
        if annotation.level == "run":
            primary.setdefault(annotation.trajectory_id, annotation)
    value_before = {(each.dispute_id, each.sequence): each.before for each in published}
    decided: dict[str, Annotation] = {}
    applied, conflicts, missing = [], [], []
    for decision in decisions:
        name = decision.trajectory_id
        row = decided.get(name, primary.get(name))
        if row is None:
            missing.append(decision)
            continue
        value = row.answers.get(decision.target)
        if value == decision.value:
            continue
        found = replace(decision, before=value)
        if value_before.get((decision.dispute_id, decision.sequence), value) != value:
            conflicts.append(found)
            continue
        decided[name] = decided_row(row, {decision.target: decision.value})
        applied.append(found)
    rows = []
    for annotation in annotations:
        if annotation is primary.get(annotation.trajectory_id) and annotation.trajectory_id in decided:
            rows.append(decided[annotation.trajectory_id])
            if annotation.is_decision:
                continue
        rows.append(annotation)
    return DecidedAnnotations(tuple(rows), tuple(applied), tuple(conflicts), tuple(missing))
