"""The actions of annotators and maintainers: invite, assign, answer, decide, publish labels.

Every action adds an event. The newest event counts, and no event is overwritten. All answers, even incomplete
ones, are checked before they are recorded. Messages name questions and fields, never answers.

A published label set contains the annotations recorded here. Trajectories without such an annotation keep the
annotations of the previous label set.
"""

import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any, Final

from sqlalchemy.orm import Session

from arb.core.annotation import Annotation
from arb.core.judge_info import NAME_LENGTH
from arb.core.vocabulary import SPLITS
from leaderboard.labels.aggregation import aggregate, answer_by_rule
from leaderboard.labels.agreement import AgreementReport, agreement_report
from leaderboard.labels.annotations import with_opaque_annotators, with_unsure, write_released
from leaderboard.labels.labels import load_annotations
from submissions.app import SubmissionsApp
from submissions.errors import PermissionDenied, SubmissionError
from submissions.intake.accounts import Actor, require_maintainer
from submissions.labels.annotation_state import (
    MOST_LISTED,
    AnnotationState,
    Draft,
    discussion_items,
    drafts_of,
    finished_annotations,
    fold_annotations,
    open_questions,
)
from submissions.labels.assignment import Assignment, chosen, known_answers, new_assignments, with_gold
from submissions.labels.corrections import waiting_corrections
from submissions.labels.decisions import Rule, newest_decisions, with_decisions
from submissions.labels.versions import UNREADABLE, LabelVersion, published_versions, serves_records
from submissions.moderation.actions import Actions, checked_line
from submissions.records.database import Event
from submissions.records.event_log import ANNOTATION_KINDS, events_after, number_of_events, recording
from submissions.scoring.rescore import publish

EARLIER: Final = "earlier-"
"""The prefix of annotator ids from an earlier label set, to distinguish them from annotators invited here."""
REASON_LENGTH: Final = 1_000
NOT_YOURS: Final = "this trajectory does not exist or is not assigned to you"
SAVED_ELSEWHERE: Final = "this annotation was changed in another window or on another device; load it again"


def label_set(state: AnnotationState, before: Sequence[Annotation] = ()) -> tuple[Annotation, ...]:
    """Return the rows of the next label set: first annotations sorted by trajectory id, then all others.

    Trajectories without a finished annotation keep their rows from ``before``, the previous label set.
    Questions from the paper that were added after an annotation was made are answered Unsure.
    """
    finished = finished_annotations(state)
    annotated = {annotation.item for annotation in finished}
    kept = (each for each in before if each.item not in annotated)
    earlier = with_opaque_annotators(kept, EARLIER)
    first: dict[tuple[str, str | None, str | None], Annotation] = {}
    others = []
    for annotation in [*finished, *earlier]:
        if first.setdefault(annotation.item, annotation) is not annotation:
            others.append(annotation)
    by_id = sorted(first.values(), key=lambda each: each.trajectory_id)  # steps stay in their order
    return tuple(
        with_unsure(annotation, state.questions) if annotation.level == "run" else annotation
        for annotation in (*by_id, *others)
    )


def annotations_before(service: SubmissionsApp) -> tuple[Annotation, ...]:
    """Return the annotations of the previous label set, or none if this is the first one.

    It is the newest published set, or the served one if ARB_LABELS names a file. Raises SubmissionError if
    the annotations cannot be read.
    """
    known = published_versions(service.engine, service.suite.name)
    is_of_records = serves_records(service.settings) or service.settings.labels == "none"
    if not known and is_of_records:
        return ()
    try:
        if not is_of_records:
            return service.labels.annotations()
        file = service.files.path(known[-1].file_sha256)
        return load_annotations(service.suite, service.settings, file=file)
    except UNREADABLE:
        raise SubmissionError(
            "the previous label set cannot be read, so publishing would lose its labels; restore its file"
        ) from None


def _require_no_open_questions(state: AnnotationState, annotator: str | None) -> None:
    """Raise SubmissionError if the first annotator's answer to an open question would become a label.

    The message contains no answer and names only trajectories that ``annotator`` may see.
    """
    first = {question.name for question in state.questions if question.aggregate == "first"}
    items = discussion_items(state, None, is_maintainer=True)
    found = {each.item.trajectory_id: [name for name in each.open if name in first] for each in items}
    asked = {name: questions for name, questions in found.items() if questions}
    if not asked:
        return
    visible = [name for name in asked if state.may_see_answers(name, annotator, is_maintainer=True)]
    listed = [f"{name}: {', '.join(asked[name])}" for name in visible[:MOST_LISTED]]
    if rest := len(asked) - len(listed):
        listed.append(f"{rest} more {'trajectory' if rest == 1 else 'trajectories'}")
    n_open = sum(map(len, asked.values()))
    raise SubmissionError(
        f"{n_open} {'question is' if n_open == 1 else 'questions are'} open ({'; '.join(listed)}). Decide "
        "them first, or publish with open questions (--with-open): the first annotator's answer then becomes "
        "the label"
    )


def progress_of_annotators(state: AnnotationState) -> list[dict[str, Any]]:
    """Return the progress of everyone who was ever invited, in the order of their ids.

    ``seconds`` is the median time per trajectory, or None if unknown.
    """
    found = []
    for annotator, account in state.accounts.items():
        tasks = state.queue(annotator)
        done = [task.saved for task in tasks if task.saved and task.is_done]
        took = [saved.seconds for saved in done if saved.seconds]  # 0 if answers came from a file
        found.append(
            {"annotator": annotator, "account": account, "is_active": annotator in state.active,
             "n_done": len(done), "n_assigned": len(tasks), "seconds": median(took) if took else None}
        )  # fmt: skip
    return found


class AnnotationService(Actions):
    """The annotation actions of a suite. Create one instance per process; it is thread-safe.

    Every action raises PermissionDenied for an actor who may not do it, and SubmissionError if the state does
    not allow it. No message contains an answer.
    """

    def __init__(self, service: SubmissionsApp) -> None:
        super().__init__(service)
        self.service, self.suite = service, service.suite
        self._lock = threading.Lock()
        self._known: tuple[int, AnnotationState] = (0, AnnotationState(questions=service.suite.targets))
        self._agreement: tuple[AnnotationState, AgreementReport] | None = None

    def now(self) -> AnnotationState:
        """Return the current state, including events of other processes."""
        with self.service.snapshot() as session:
            return self._state_at(session)

    def _state_at(self, session: Session) -> AnnotationState:
        """Return the state as of the session or later. Only new events are read."""
        last = number_of_events(session)
        with self._lock:
            sequence, state = self._known
            if last > sequence:
                events = events_after(session, sequence, kinds=ANNOTATION_KINDS)
                state = fold_annotations(state, events, lambda name: self.suite.find(name) is not None)
                self._known = (last, state)
            return state

    def is_annotator(self, account: str) -> bool:
        return self.now().annotator_of(account) is not None

    def invite(self, account: str, actor: Actor) -> str:
        """Invite an account to annotate and return its opaque id, which it keeps if it is invited again."""
        require_maintainer(actor)
        name = account.strip()
        if not name or len(name) > NAME_LENGTH or not name.isprintable():
            raise SubmissionError(f"write the account's name on one line, in up to {NAME_LENGTH} characters")
        with self._changing() as (session, state):
            if state.annotator_of(name) is not None:
                raise SubmissionError(f"{name} is already invited")
            annotator = state.id_of(name) or f"annotator-{len(state.accounts) + 1}"
            self._add(session, "invited", actor, {"account": name, "annotator": annotator})
            return annotator

    def uninvite(self, account: str, actor: Actor) -> Event:
        """End an invitation and return the event. Only unfinished trajectories can then be reassigned."""
        require_maintainer(actor)
        with self._changing() as (session, state):
            annotator = state.annotator_of(account.strip())
            if annotator is None:
                raise SubmissionError("this account is not invited")
            return self._add(session, "uninvited", actor, {"account": state.accounts[annotator]})

    def assign(
        self, split: str, most: int | None, share: float, seed: int, available: Collection[str],
        actor: Actor, gold_share: float = 0.0, times: int | None = None,
    ) -> int:  # fmt: skip
        """Assign trajectories of a split, or of "both", and return the number of new assignments.

        At most ``most`` new trajectories are assigned, in proportion to the sizes of the benchmarks.
        ``available`` has the trajectories that annotators can open. See `assign_trajectories` for the other
        arguments.
        """
        assigned = self.now().assigned
        splits = SPLITS if split == "both" else (split,)
        ids = [
            trajectory.trajectory_id
            for name in splits
            for trajectory in self.suite.split(name)
            if trajectory.trajectory_id in available and trajectory.trajectory_id not in assigned
        ]
        wanted = ids if most is None else chosen(ids, max(0, most), seed)
        return self.assign_trajectories(wanted, share, seed, actor, gold_share, times)

    def assign_trajectories(
        self, trajectories: Iterable[str], share: float, seed: int, actor: Actor, gold_share: float = 0.0,
        times: int | None = None,
    ) -> int:  # fmt: skip
        """Assign trajectories to the annotators and return the number of new assignments.

        ``share`` (0 to 1) is the share of trajectories that get a second annotator. With ``times``, all of
        them get that many annotators instead. ``gold_share`` (0 to 1) is the share of additional gold items;
        see `assignment`.
        """
        require_maintainer(actor)
        for what, value in (("second annotations", share), ("gold items", gold_share)):
            if not 0 <= value <= 1:
                raise SubmissionError(f"the share of {what} must be a number from 0 to 1")
        found = [self.suite.find(name) for name in trajectories]
        ids = [trajectory.trajectory_id for trajectory in found if trajectory]
        if len(ids) != len(found):
            raise SubmissionError("some of these trajectories are not in the suite; use ids of the suite")
        with self._changing() as (session, state):
            if not state.active:
                raise SubmissionError("no annotators have been invited yet; invite some first")
            if times is not None and not 1 <= times <= len(state.active):
                raise SubmissionError(
                    f"{times} annotators per trajectory: {len(state.active)} are invited; invite more "
                    "annotators or choose a smaller number"
                )
            shares = [share] if times is None else [1.0] * (times - 1)
            finished = {key for key, saved in state.saved.items() if saved.is_done}
            assignments = new_assignments(ids, sorted(state.active), state.assigned, finished, shares, seed)
            assignments = with_gold(state, assignments, gold_share, seed)
            if assignments:
                self._add(session, "assigned", actor, {"assignments": [list(each) for each in assignments]})
            return len(assignments)

    def save(self, trajectory_id: str, draft: Draft, seen: int, actor: Actor) -> int:
        """Save an annotator's answers on an assigned trajectory and return the number of the event.

        ``seen`` is the event number of the saved answers that the draft is based on, or 0 if there were none.
        If other answers were saved since then, the draft is refused, unless the same client saved them,
        because it may have missed the response. Saving the same answers again adds no event, but skipping a
        trajectory again moves it to the end of the queue.
        """
        body = draft.body(self.suite.targets, *self.suite.asked_in(trajectory_id))
        with self._changing() as (session, state):
            annotator = state.annotator_of(actor.name)
            if annotator is None or not state.is_assigned(trajectory_id, annotator):
                raise PermissionDenied(NOT_YOURS)
            before = state.saved.get((trajectory_id, annotator))
            if before is not None:
                if before.content == draft.content and not (draft.is_skipped and before.sequence == seen):
                    return before.sequence
                if before.sequence != seen and not (draft.client and draft.client == before.client):
                    raise SubmissionError(SAVED_ELSEWHERE)
                if state.is_closed(trajectory_id, annotator):
                    raise SubmissionError(
                        "this annotation is closed, because you can see others' answers; use the discussion"
                    )
            whole = {"trajectory_id": trajectory_id, "annotator": annotator, **body}
            return self._add(session, "annotated", actor, whole).sequence

    def mark_gold(self, trajectory_id: str, actor: Actor, is_gold: bool = True) -> Event:
        """Mark a finished trajectory as a gold item with its current answers, or undo that."""
        require_maintainer(actor)
        with self._changing() as (session, state):
            if (trajectory_id in state.gold) == is_gold:
                raise SubmissionError(f"this trajectory is {'already' if is_gold else 'not'} a gold item")
            if not state.may_see_answers(trajectory_id, state.annotator_of(actor.name), is_maintainer=True):
                raise PermissionDenied(NOT_YOURS)
            answers = known_answers(state, trajectory_id) if is_gold else None
            body = {"trajectory_id": trajectory_id, "answers": answers}
            return self._add(session, "gold_marked", actor, body)

    def import_answers(self, annotations: Sequence[Annotation], actor: Actor) -> int:
        """Record finished annotations that were made in another tool, and return how many were new.

        The ``annotator`` of each annotation is an invited account or its opaque id. Trajectories that are not
        assigned to the annotator yet are assigned first. If there is any problem, such as different answers
        that are already recorded, nothing is recorded, and SubmissionError lists all problems.
        """
        require_maintainer(actor)
        with self._changing() as (session, state):
            names = dict.fromkeys(each.person or "" for each in annotations)
            annotators = {name: name if name in state.active else state.annotator_of(name) for name in names}
            problems = [
                f"{person or 'an annotation without a name'}: no invited account has this name; invite "
                "it, or name the account with --person NAME=ACCOUNT"
                for person, annotator in annotators.items()
                if annotator is None
            ]
            assignments: list[Assignment] = []
            bodies = []
            for each, draft in drafts_of(annotations):
                name, annotator = each.trajectory_id, annotators[each.person or ""] or ""
                before = state.saved.get((name, annotator))
                if before is not None and before.content == draft.content:
                    continue
                if before is not None and before.is_done:
                    problems.append(
                        f"{name}, {each.person}: other answers are already recorded; remove this annotation"
                    )
                try:
                    asked = draft.body(self.suite.targets, *self.suite.asked_in(name))
                    body = {"trajectory_id": name, "annotator": annotator, **asked}
                except SubmissionError as problem:
                    problems.append(f"{name}, {each.person}: {problem}")
                    continue
                if each.at is not None:
                    body["answered_at"] = min(each.at, self.service.clock()).isoformat()
                bodies.append(body)
                if not state.is_assigned(name, annotator):
                    taken = [place for where, _, place in assignments if where == name]
                    place = max([*state.assigned.get(name, {}), *taken], default=0) + 1
                    assignments.append((name, annotator, place))
            if problems:
                raise SubmissionError("\n".join(problems))
            if assignments:
                self._add(session, "assigned", actor, {"assignments": assignments})
            for body in bodies:
                self._add(session, "annotated", actor, body)
        return len(bodies)

    def resolve(self, trajectory_id: str, question: str, answer: str, reason: str, actor: Actor) -> Event:
        """Decide a question on a trajectory and return the event. The newest decision counts.

        The actor must be allowed to see the answers. Annotators may decide only open questions, maintainers
        any question on an annotated trajectory.
        """
        with self._changing() as (session, state):
            body = self._decision(state, (trajectory_id, question, answer, reason), actor)
            return self._add(session, "resolved", actor, body)

    def resolve_all(self, decisions: Iterable[Sequence[str]], actor: Actor) -> int:
        """Decide many questions and return their number.

        Each decision is a sequence of trajectory id (in any spelling), question, answer and reason. If any
        decision is invalid, none is recorded, and SubmissionError lists all problems.
        """
        problems, bodies = [], []
        with self._changing() as (session, state):
            for number, (name, *rest) in enumerate(decisions, start=1):
                trajectory = self.suite.find(name)
                try:
                    if trajectory is None:
                        raise SubmissionError("this trajectory is not in the suite; use ids of the suite")
                    bodies.append(self._decision(state, (trajectory.trajectory_id, *rest), actor))
                except SubmissionError as problem:
                    problems.append(f"decision {number}, {name[:200]}: {problem}")
            if problems:
                raise SubmissionError("\n".join(problems))
            for body in bodies:
                self._add(session, "resolved", actor, body)
        return len(bodies)

    def resolve_by_rule(self, rule: Rule, actor: Actor, reason: str = "") -> tuple[int, int]:
        """Decide all open questions that a rule can decide. Return (number decided, number left open).

        The reason of each decision is the rule's name and the number of answers, followed by ``reason``.
        """
        require_maintainer(actor)
        bodies, n_open = [], 0
        with self._changing() as (session, state):
            for item in discussion_items(state, state.annotator_of(actor.name), is_maintainer=True):
                for question in (each for each in state.questions if each.name in item.open):
                    answers = [each for each in item.item.answers[question.name] if each]
                    answer = answer_by_rule(rule, question, answers)
                    n_open += answer is None
                    if answer is not None:
                        why = f"{rule} of {len(answers)} answers{reason and ': '}{reason}"
                        decision = item.item.trajectory_id, question.name, answer, why
                        bodies.append(self._decision(state, decision, actor))
            for body in bodies:
                self._add(session, "resolved", actor, body)
        return len(bodies), n_open

    def _decision(self, state: AnnotationState, decision: Sequence[str], actor: Actor) -> dict[str, str]:
        """Check a decision and return the body of its event. Raises SubmissionError, PermissionDenied."""
        trajectory_id, question, answer, reason = decision
        asked = self.suite.target(question)
        if asked is None or asked.level != "run" or not answer or not asked.accepts(answer):
            raise SubmissionError("name a question of the suite, and one of its answers (or unsure)")
        why = checked_line(reason, f"give a reason of up to {REASON_LENGTH:,} characters", REASON_LENGTH)
        annotator = state.annotator_of(actor.name)
        if not state.may_see_answers(trajectory_id, annotator, actor.is_maintainer):
            raise PermissionDenied(NOT_YOURS)
        if not state.finished(trajectory_id):
            raise SubmissionError("nobody has annotated this trajectory yet")
        if not (actor.is_maintainer or question in open_questions(state, trajectory_id)):
            raise SubmissionError("this question is not open, so only maintainers may decide it")
        return {"trajectory_id": trajectory_id, "question": question, "answer": answer, "reason": why}

    def agreement(self) -> AgreementReport:
        """Return how well the annotators' answers agreed before any decision."""
        state, known = self.now(), self._agreement
        if known is None or known[0] is not state:  # cached, because the report can take a second
            known = (state, agreement_report(finished_annotations(state), state.questions))
            self._agreement = known
        return known[1]

    def publish(self, actor: Actor, why: str, with_open: bool = False) -> LabelVersion:
        """Publish the finished annotations and all decisions on them as a new label version.

        Decisions come from the discussion and from accepted disputes; the newest one on a question counts.
        Other labels follow from the rules of the suite's targets (see `aggregate`) or, if no rule decides,
        are left out. If the rule is "first", open questions are refused. With ``with_open``, the label of
        every open question is the first annotator's answer. Raises PermissionDenied, SubmissionError.
        """
        require_maintainer(actor, "publish labels")
        state = self.now()
        if not any(saved.is_done for saved in state.saved.values()):
            raise SubmissionError("there is nothing to publish: nobody has finished an annotation yet")
        if not with_open:
            _require_no_open_questions(state, state.annotator_of(actor.name))
        with self.service.snapshot() as session:
            corrections = waiting_corrections(session, self.service.suite)
        discussed = [each for name, _ in state.saved for each in state.decided(name).values()]
        decisions = newest_decisions([*discussed, *corrections])
        rows = label_set(state, annotations_before(self.service))
        labels = aggregate(rows, state.questions, with_open)
        found = with_decisions(labels.annotations, decisions)
        content = write_released(found.annotations, questions=state.questions).encode()
        applied = [each for each in found.applied if each.origin == "dispute"]
        left_out = labels.names_left_out({(each.trajectory_id, each.target) for each in decisions})
        base = self.service.labels.base
        return publish(self.service, content, actor, why, base, applied, left_out=left_out)

    @contextmanager
    def _changing(self) -> Iterator[tuple[Session, AnnotationState]]:
        """Yield a session that adds events, and the state, which nobody else can change during the block."""
        with recording(self.service.engine) as session:
            yield session, self._state_at(session)
