"""What annotators and maintainers do in annotation, each an event: the newest counts, none is overwritten.

Answers are checked before they become an event, partial ones too. Messages name questions and fields, never
what was answered.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy.orm import Session

from arb.core.judge_info import NAME_LENGTH
from submissions.errors import PermissionDenied, SubmissionError
from submissions.intake.accounts import Actor
from submissions.labels.annotation_state import (
    AnnotationState,
    AnnotationStateCache,
    Draft,
    open_questions,
)
from submissions.labels.assignment import known_answers, new_assignments, with_gold
from submissions.labels.exchange import ImportedAnswers
from submissions.moderation.actions import Actions, checked_line, require_maintainer
from submissions.records.database import transaction
from submissions.records.event_log import Event, lock_event_log


class SavedElsewhere(SubmissionError):
    """The annotation was changed from another window or device since this one read it."""

    def __init__(self) -> None:
        super().__init__("this annotation was changed in another window or on another device; load it again")


REASON_LENGTH: Final = 1_000
NOT_YOURS: Final = "this trajectory is not assigned to you, or does not exist"


@dataclass(frozen=True)
class AnnotationActions(Actions):
    """What annotators and maintainers do.

    Every method raises PermissionDenied for an actor who may not do it, SubmissionError where the state does
    not allow it. No message holds an answer.
    """

    state_cache: AnnotationStateCache

    def invite(self, account: str, actor: Actor) -> str:
        """Let an account annotate; gives its opaque id, the one it had before where it was invited once."""
        require_maintainer(actor)
        name = account.strip()
        if not name or len(name) > NAME_LENGTH or not name.isprintable():
            raise SubmissionError(f"name the account, in up to {NAME_LENGTH} characters on one line")
        with transaction(self.engine) as session:
            state = self._state(session)
            if state.annotator_of(name) is not None:
                raise SubmissionError(f"{name} is already invited")
            annotator = state.id_of(name) or f"annotator-{len(state.accounts) + 1}"
            self._add(session, "invited", actor, {"account": name, "annotator": annotator})
            return annotator

    def uninvite(self, account: str, actor: Actor) -> Event:
        """End it; what the account finished stays, what it did not can be assigned to others."""
        require_maintainer(actor)
        with transaction(self.engine) as session:
            annotator = self._state(session).annotator_of(account.strip())
            if annotator is None:
                raise SubmissionError("this account is not invited")
            name = self._state(session).accounts[annotator]
            return self._add(session, "uninvited", actor, {"account": name})

    def assign(
        self, trajectories: Iterable[str], share: float, seed: int, actor: Actor, gold_share: float = 0.0
    ) -> int:
        """Assign trajectories to those who are invited; how many assignments were added. See `assignment`,
        and `gold` for ``gold_share``, the share of gold items on top."""
        require_maintainer(actor)
        if not 0 <= share <= 1:
            raise SubmissionError("the share of second annotations is a number from 0 to 1")
        if not 0 <= gold_share <= 1:
            raise SubmissionError("the share of gold items is a number from 0 to 1")
        found = [self.suite.find(name) for name in trajectories]
        if None in found:
            raise SubmissionError("some of these trajectories are not in the suite")
        with transaction(self.engine) as session:
            state = self._state(session)
            if not state.active:
                raise SubmissionError("nobody is invited yet: invite annotators first")
            finished = {key for key, saved in state.saved.items() if saved.is_done}
            people = sorted(state.active)
            ids = [trajectory.trajectory_id for trajectory in found if trajectory]
            assignments = new_assignments(ids, people, state.assigned, finished, share, seed)
            assignments = with_gold(state, assignments, gold_share, seed)
            if assignments:
                self._add(session, "assigned", actor, {"assignments": [list(each) for each in assignments]})
            return len(assignments)

    def save(self, trajectory_id: str, draft: Draft, seen: int, actor: Actor) -> int:
        """Keep somebody's answers on a trajectory of theirs; gives the sequence of the event that stands.

        ``seen`` is the sequence of the answers that the draft was made from, 0 where there were none. Raises
        SavedElsewhere where others came between, unless the same client sent them: it did not get our answer.
        Saving what stands already adds nothing; skipping it once more puts it at the end again.
        """
        body = draft.body(self.suite.questions)
        with transaction(self.engine) as session:
            state = self._state(session)
            annotator = state.annotator_of(actor.name)
            if annotator is None or not state.is_assigned(trajectory_id, annotator):
                raise PermissionDenied(NOT_YOURS)
            before = state.saved.get((trajectory_id, annotator))
            if before is not None:
                if before.is_same(draft) and not (draft.is_skipped and before.sequence == seen):
                    return before.sequence
                if before.sequence != seen and not (draft.client and draft.client == before.client):
                    raise SavedElsewhere
                if state.is_closed(trajectory_id, annotator):
                    raise SubmissionError(
                        "this annotation is closed: others' answers are visible; continue in the discussion"
                    )
            whole = {"trajectory_id": trajectory_id, "annotator": annotator, **body}
            return self._add(session, "annotated", actor, whole).sequence

    def mark_gold(self, trajectory_id: str, actor: Actor, is_gold: bool = True) -> Event:
        """Make a finished trajectory a gold item with the answers that count now, or end that."""
        require_maintainer(actor)
        with transaction(self.engine) as session:
            state = self._state(session)
            if (trajectory_id in state.gold) == is_gold:
                raise SubmissionError(f"this trajectory is {'already' if is_gold else 'not'} a gold item")
            if not state.may_see_answers(trajectory_id, state.annotator_of(actor.name), is_maintainer=True):
                raise PermissionDenied(NOT_YOURS)
            answers = known_answers(state, trajectory_id) if is_gold else None
            body = {"trajectory_id": trajectory_id, "answers": answers}
            return self._add(session, "gold_marked", actor, body)

    def import_answers(self, given: Sequence[ImportedAnswers], actor: Actor) -> int:
        """Record finished annotations from elsewhere as their annotators' own; how many were new.

        ``person`` is the account of somebody invited, or their opaque id. What is not assigned to them is
        assigned first; what they answered the same way already adds nothing. All or none: raises
        SubmissionError with every problem, also where somebody has given another finished answer here.
        """
        require_maintainer(actor)
        with transaction(self.engine) as session:
            state = self._state(session)
            people = {each.person: self._invited(state, each.person) for each in given}
            problems = [
                f"{person or 'an annotation without a name'}: nobody of this name is invited; use `annotate "
                "invite`, or say who it is with --person NAME=ACCOUNT"
                for person, annotator in people.items()
                if annotator is None
            ]
            assignments: list[list[str | int]] = []
            bodies = []
            for each in given:
                name, annotator = each.trajectory_id, people[each.person] or ""
                before = state.saved.get((name, annotator))
                if before is not None and before.is_same(each.draft):
                    continue
                if before is not None and before.is_done:
                    problems.append(f"{name}, {each.person}: was answered otherwise here, which stays")
                try:
                    answers = each.draft.body(self.suite.questions)
                    body = {"trajectory_id": name, "annotator": annotator, **answers}
                except SubmissionError as problem:
                    problems.append(f"{name}, {each.person}: {problem}")
                    continue
                if each.at is not None:
                    body["answered_at"] = min(each.at, self.clock()).isoformat()
                bodies.append(body)
                if not state.is_assigned(name, annotator):
                    taken = [place for where, _, place in assignments if where == name]
                    place = max([*state.assigned.get(name, {}), *taken], default=0) + 1
                    assignments.append([name, annotator, place])
            if problems:
                raise SubmissionError("\n".join(problems))
            if assignments:
                self._add(session, "assigned", actor, {"assignments": assignments})
            for body in bodies:
                self._add(session, "annotated", actor, body)
        return len(bodies)

    @staticmethod
    def _invited(state: AnnotationState, person: str) -> str | None:
        return person if person in state.active else state.annotator_of(person)

    def resolve(self, trajectory_id: str, question: str, answer: str, reason: str, actor: Actor) -> Event:
        """Decide a question of a trajectory; an earlier decision stays in the log.

        For those who may see the answers; annotators decide what is open, maintainers whatever was annotated.
        """
        with transaction(self.engine) as session:
            body = self._decision(self._state(session), (trajectory_id, question, answer, reason), actor)
            return self._add(session, "resolved", actor, body)

    def resolve_all(self, decisions: Iterable[Sequence[str]], actor: Actor) -> int:
        """Decide many questions, each a trajectory (in any spelling), question, answer and reason; how many.

        All or none: raises SubmissionError with the problem of every one, by its place from 1.
        """
        problems, bodies = [], []
        with transaction(self.engine) as session:
            state = self._state(session)
            for number, (name, *rest) in enumerate(decisions, start=1):
                trajectory = self.suite.find(name)
                try:
                    if trajectory is None:
                        raise SubmissionError("the suite has no such trajectory")
                    bodies.append(self._decision(state, (trajectory.trajectory_id, *rest), actor))
                except SubmissionError as problem:
                    problems.append(f"decision {number}, {name[:200]}: {problem}")
            if problems:
                raise SubmissionError("\n".join(problems))
            for body in bodies:
                self._add(session, "resolved", actor, body)
        return len(bodies)

    def _decision(self, state: AnnotationState, decision: Sequence[str], actor: Actor) -> dict[str, str]:
        """The event's body. Raises SubmissionError, PermissionDenied."""
        trajectory_id, question, answer, reason = decision
        asked = self.suite.question(question)
        if asked is None or not answer or not asked.accepts(answer):
            raise SubmissionError("use one of the questions, and one of its answers or unsure")
        why = checked_line(reason, f"give a reason, in up to {REASON_LENGTH:,} characters", REASON_LENGTH)
        annotator = state.annotator_of(actor.name)
        if not state.may_see_answers(trajectory_id, annotator, actor.is_maintainer):
            raise PermissionDenied(NOT_YOURS)
        if not state.finished(trajectory_id):
            raise SubmissionError("nobody has annotated this trajectory yet")
        if not (actor.is_maintainer or question in open_questions(state, trajectory_id)):
            raise SubmissionError("this question is not open")
        return {"trajectory_id": trajectory_id, "question": question, "answer": answer, "reason": why}

    def _state(self, session: Session) -> AnnotationState:
        lock_event_log(session)
        return self.state_cache.within(session)
