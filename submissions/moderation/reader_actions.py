"""Actions of all signed-in readers: disputing labels, and tagging judges' errors.

Both are limited per account and day, and banned accounts may do neither.
"""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from arb.core.ids import Trajectory
from arb.core.suites.targets import UNSURE
from leaderboard.errors import ErrorTag, make_tag
from submissions.errors import PermissionDenied, RateLimited, SubmissionError
from submissions.intake.accounts import DAY, Actor, is_same_name, require_maintainer
from submissions.labels.decisions import OUTCOMES, Dispute, Outcome, disputes_in
from submissions.labels.versions import versions_at
from submissions.moderation.actions import Actions, checked_text
from submissions.records.database import Event, snapshot
from submissions.records.event_log import DISPUTE_KINDS, Kind, add_event, events_after, recording
from submissions.records.queries import current_statuses

DISPUTES_A_DAY: Final = 20
TAGS_A_DAY: Final = 500
TEXT_LENGTH: Final = 2_000
REASON_LENGTH: Final = 1_000


class ReaderActions(Actions):
    """Disputes and error tags of a suite.

    Every action raises KeyError for an unknown trajectory or dispute, PermissionDenied if the actor is not
    allowed to act, RateLimited at the daily limit, and SubmissionError if the state does not allow it.
    """

    def disputes(self) -> list[Dispute]:
        """Return all disputes, oldest first."""
        with snapshot(self.app.engine) as session:
            return list(self._disputes(session).values())

    def dispute(
        self, trajectory_id: str, question: str, text: str, actor: Actor, answer: str = "", judge: str = ""
    ) -> Event:
        """Dispute the label of a trajectory for one question, and return the event.

        ``answer`` is the right answer according to the actor, and ``judge`` the judge whose error led to the
        dispute; both may be empty.
        """
        trajectory, suite = self._trajectory(trajectory_id), self.app.suite
        asked = suite.target(question)
        if asked is None or asked.level != "run":
            names = ", ".join(each.name for each in suite.targets if each.level == "run")
            raise SubmissionError(f"question: use one of {names}")
        if answer and not asked.accepts(answer):
            raise SubmissionError(f"answer: use one of {', '.join((*asked.values, UNSURE))}")
        text = checked_text(text, "say what is wrong and where the trajectory shows it", TEXT_LENGTH)
        with recording(self.app.engine) as session:
            self._may_add(session, actor, "disputed", DISPUTES_A_DAY, "disputes")
            for other in self._disputes(session).values():
                is_open = other.decided is None and is_same_name(other.by, actor.name)
                of_answer = (other.trajectory_id, other.question)
                if is_open and of_answer == (trajectory.trajectory_id, question):
                    raise SubmissionError(f"your dispute {other.dispute_id} about this answer is still open")
            body = {
                "dispute_id": str(1 + len(events_after(session, kinds=["disputed"]))),
                "suite": suite.name,
                "split": trajectory.split,
                "trajectory_id": trajectory.trajectory_id,
                "question": question,
                "text": text,
                **{name: value for name, value in (("answer", answer), ("judge", judge)) if value},
            }
            return self._add(session, "disputed", actor, body)

    def decide(
        self, dispute_id: str, decision: Outcome, reason: str, actor: Actor, answer: str | None = None,
        seen: int | None = None,
    ) -> Event:  # fmt: skip
        """Record a maintainer's decision on a dispute; the latest decision counts.

        A correction names the correct ``answer``, which takes effect with the next label version. ``seen`` is
        the number of decisions that the maintainer has seen; if there are more by now, nothing is decided.
        """
        require_maintainer(actor, "decide on disputes")
        if decision not in OUTCOMES:
            raise SubmissionError(f"decision: use one of {', '.join(OUTCOMES)}")
        reason = checked_text(reason, "give a reason; it is stored with the decision", REASON_LENGTH)
        with recording(self.app.engine) as session:
            found = self._disputes(session)[dispute_id]
            before = found.decided
            if before is not None and seen is not None and seen != len(found.decisions):
                raise SubmissionError(
                    f"{before.by} has just decided this dispute ({before.outcome}); reload the page"
                )
            body: dict[str, Any] = {"dispute_id": dispute_id, "decision": decision, "reason": reason}
            if decision == "corrected":
                question = self.app.suite.target(found.question)
                if question is None:
                    raise SubmissionError(f"the suite no longer asks {found.question}; decline the dispute")
                answers = (*question.values, UNSURE)
                if answer not in answers:
                    raise SubmissionError(f"answer: a correction needs one of {', '.join(answers)}")
                body["answer"] = answer
            elif answer:
                raise SubmissionError("answer: only a correction has an answer; leave it out")
            if before is not None and (before.outcome, before.value) == (decision, answer or None):
                raise SubmissionError(f"this dispute is already {decision}")
            if decision != "corrected" and (version := self._published(session, found)):
                raise SubmissionError(
                    f"label version {version} contains this correction; to undo it, decide 'corrected' with "
                    "the correct answer"
                )
            return self._add(session, "dispute_decided", actor, body)

    def tag(
        self, judge: str, trajectory_id: str, category: str, note: str, actor: Actor, more: Sequence[str] = ()
    ) -> ErrorTag:
        """Record the categories of a judge's error and return the tag. Also raises ErrorTagInvalid.

        This method does not read labels, so the caller has to check that the judge made this error.
        """
        trajectory = self._trajectory(trajectory_id)
        if not self.app.suite.shows_labels(trajectory.split):
            raise PermissionDenied("this suite hides its test labels; tag errors on dev")
        now = self.app.clock()
        tag = make_tag(
            trajectory_id=trajectory.trajectory_id, judge=judge, tagger=actor.name,
            category=category, more=tuple(more), note=note, at=now,
        )  # fmt: skip
        with recording(self.app.engine) as session:
            self._may_add(session, actor, "error_tagged", TAGS_A_DAY, "tags")
            body: dict[str, Any] = {"suite": self.app.suite.name, "split": trajectory.split}
            body |= tag.model_dump(include={"judge", "trajectory_id", "category", "note"})
            if tag.more:
                body["more"] = list(tag.more)
            add_event(session, "error_tagged", actor.name, now, body)
        return tag

    def _trajectory(self, trajectory_id: str) -> Trajectory:
        found = self.app.suite.find(trajectory_id)
        if found is None:
            raise KeyError(trajectory_id)
        return found

    def _disputes(self, session: Session) -> dict[str, Dispute]:
        return disputes_in(events_after(session, kinds=DISPUTE_KINDS), self.app.suite.name)

    def _published(self, session: Session, dispute: Dispute) -> str | None:
        """Return the newest label version that contains the last decision on a dispute, or None."""
        of_it = (dispute.dispute_id, dispute.decided and dispute.decided.sequence)
        for version in reversed(versions_at(session, self.app.suite.name)):
            if any((each.dispute_id, each.sequence) == of_it for each in version.corrections):
                return version.version
        return None

    def _may_add(self, session: Session, actor: Actor, kind: Kind, most: int, what: str) -> None:
        """Raise PermissionDenied or RateLimited if the actor may not add such an event now."""
        if current_statuses(session).is_banned(actor.name):
            raise PermissionDenied(f"the account {actor.name} is banned; ask a maintainer why")
        same = select(Event.at).where(
            Event.kind == kind,
            func.lower(Event.actor) == actor.name.lower(),
            Event.at > self.app.clock() - DAY,
        )
        newest = session.scalars(same.order_by(Event.at.desc()).limit(most)).all()
        if len(newest) >= most:
            next_at = newest[-1] + DAY
            when = f"you can send the next one from {next_at:%Y-%m-%d %H:%M} UTC"
            raise RateLimited(f"an account may send {most} {what} in 24 hours; {when}", next_at)
