"""The state of annotation: annotators, assignments, answers, decisions and open questions.

The state is computed from the event log. It contains answers, which no ``repr`` shows, since a ``repr`` may
end up in a log.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Annotated, Any, Final

from pydantic import Field

from arb.core.annotation import Annotation
from arb.core.suites.targets import UNSURE, Target, default_targets
from leaderboard.labels.aggregation import answer_by_rule
from leaderboard.labels.agreement import OpenItem, open_items
from leaderboard.labels.annotations import COMMENT_LENGTH
from submissions.errors import SubmissionError
from submissions.intake.accounts import is_same_name
from submissions.labels.decisions import Decision, discussion_decision
from submissions.moderation.actions import is_utf8
from submissions.records.database import Event

LONGEST_SECONDS: Final = 7 * 24 * 3600.0
FIRST, SECOND, GOLD = 1, 2, 0
"""The places of an assignment: first annotation, second annotation (to measure agreement), and gold item (to
compare with known answers; see `assignment`)."""
FLAG_LENGTH: Final = 1_000
HIGHEST_STEP: Final = 100_000
MOST_LISTED: Final = 10
CLIENT_LENGTH: Final = 64


@dataclass(frozen=True, repr=False)
class Draft:
    """An annotator's answers on one trajectory, which may be incomplete."""

    answers: Annotated[
        Mapping[str, str | None], Field(description="The answer to each question, or `unsure`.")
    ] = field(default_factory=dict)
    comment: Annotated[str, Field(description="A comment for the other annotators.")] = ""
    seconds: Annotated[float, Field(description="Seconds spent on the trajectory so far.")] = 0.0
    is_done: Annotated[bool, Field(description="Whether the annotation is finished.")] = False
    step: Annotated[int | None, Field(description="Number of the step that decided the outcome.")] = None
    flag: Annotated[str, Field(description="Why maintainers should look at this trajectory.")] = ""
    is_skipped: Annotated[bool, Field(description="Whether to move it to the end of the queue.")] = False
    client: Annotated[
        str, Field(description="Random text that identifies the open page, so that it can repeat a save.")
    ] = ""
    steps: Annotated[
        Mapping[str, Mapping[str, str | None]],
        Field(description="The answers about steps, by the step's number and the question."),
    ] = field(default_factory=dict)
    parts: Annotated[
        Mapping[str, Mapping[str, str | None]],
        Field(description="The answers about other parts, by the part's name and the question."),
    ] = field(default_factory=dict)

    @property
    def answered_steps(self) -> dict[str, dict[str, str]]:
        """The answers about steps, without those that are missing."""
        return _without_missing(self.steps)

    @property
    def answered_parts(self) -> dict[str, dict[str, str]]:
        """The answers about other parts, without those that are missing."""
        return _without_missing(self.parts)

    @property
    def content(self) -> tuple[object, ...]:
        """Everything in the draft except ``seconds``, ``client`` and unanswered questions."""
        answers = {question: answer for question, answer in self.answers.items() if answer}
        texts = (self.comment.strip(), self.flag.strip())
        about_parts = (self.answered_steps, self.answered_parts)
        return answers, *about_parts, *texts, self.is_done, self.step, self.is_skipped

    def body(
        self, questions: Sequence[Target] = (), steps: Sequence[str] = (), parts: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Return the body of an ``annotated`` event. Raises SubmissionError with every problem.

        ``questions`` are the suite's questions, by default the paper's. ``steps`` and ``parts`` are the steps
        and other parts of the run that the suite asks about.
        """
        questions = questions or default_targets()
        about_runs = [question for question in questions if question.level == "run"]
        if problems := self._problems(questions, {"step": steps, "part": parts}):
            raise SubmissionError("; ".join(problems))
        # Empty optional fields are left out of the event.
        more = {
            "step": self.step, "steps": self.answered_steps, "parts": self.answered_parts,
            "flag": self.flag.strip(), "is_skipped": self.is_skipped, "client": self.client,
        }  # fmt: skip
        return {
            "answers": {question.name: self.answers.get(question.name) for question in about_runs},
            "comment": self.comment.strip(),
            "seconds": round(float(self.seconds), 1),
            "is_done": self.is_done,
            **{name: value for name, value in more.items() if value or (name == "step" and value == 0)},
        }

    def _problems(self, questions: Sequence[Target], asked: Mapping[str, Sequence[str]]) -> list[str]:
        """Return the problems of the draft. ``asked`` has the steps and parts of the run, keyed by level."""
        about_runs = [question for question in questions if question.level == "run"]
        problems = _problems_of_answers(self.answers, about_runs, "answers")
        missing = [question.title for question in about_runs if not self.answers.get(question.name)]
        answered = {"step": self.answered_steps, "part": self.answered_parts}
        for level, names in asked.items():
            about = [question for question in questions if question.level == level]
            if answered[level].keys() - set(names):
                spelled = "numbers" if level == "step" else "names"
                problems.append(f"{level}s: a {level} is unknown; use the {spelled} of the suite's {level}s")
            for name in names:
                problems += _problems_of_answers(answered[level].get(name, {}), about, f"{level} {name}")
            left = [name for name in names if len(answered[level].get(name, ())) < len(about)]
            if left:
                missing.append(f"{len(left)} of {len(names)} {level}s ({', '.join(left[:MOST_LISTED])})")
        if len(self.comment) > COMMENT_LENGTH:
            problems.append(f"comment: longer than {COMMENT_LENGTH:,} characters; shorten it")
        if not is_utf8(self.comment):
            problems.append("comment: contains invalid Unicode; write it again")
        if not (math.isfinite(self.seconds) and 0 <= self.seconds <= LONGEST_SECONDS):
            problems.append(f"seconds: use a number from 0 to {LONGEST_SECONDS:.0f} (a week)")
        if len(self.flag) > FLAG_LENGTH or not is_utf8(self.flag):
            problems.append(f"flag: write a reason of up to {FLAG_LENGTH:,} characters")
        if self.step is not None and not 0 <= self.step <= HIGHEST_STEP:
            problems.append("step: use the number of a step of the trajectory")
        if len(self.client) > CLIENT_LENGTH or not (self.client.isascii() and self.client.isprintable()):
            problems.append(f"client: use up to {CLIENT_LENGTH} ASCII characters")
        if self.is_done and self.is_skipped:
            problems.append("is_skipped: a finished trajectory cannot be skipped")
        if self.is_done and missing:
            problems.append(f"not answered yet: {', '.join(missing)}; choose an answer or Unsure")
        return problems


def _without_missing(of_parts: Mapping[str, Mapping[str, str | None]]) -> dict[str, dict[str, str]]:
    found = {}
    for part, answers in of_parts.items():
        if kept := {question: answer for question, answer in answers.items() if answer}:
            found[part] = kept
    return found


def _problems_of_answers(
    answers: Mapping[str, str | None], questions: Sequence[Target], place: str
) -> list[str]:
    names = [question.name for question in questions]
    is_known = not answers.keys() - set(names)
    problems = [] if is_known else [f"{place}: a question is unknown; the questions are {', '.join(names)}"]
    about = "" if place == "answers" else f"{place}, "
    return problems + [
        f"{about}{question.name}: use one of {', '.join(question.values)}, {UNSURE}, or leave it empty"
        for question in questions
        if not question.accepts(answers.get(question.name))
    ]


@dataclass(frozen=True, kw_only=True, repr=False)
class SavedAnswers(Draft):
    """The last saved answers of one annotator on one trajectory, without unanswered questions.

    ``seconds`` is the total time. ``sequence`` is the event number, which the next save passes as ``seen``.
    """

    answers: Mapping[str, str] = field(default_factory=dict)
    at: datetime
    sequence: int


@dataclass(frozen=True, slots=True)
class AssignedTask:
    """A trajectory in an annotator's queue, with their answers so far."""

    trajectory_id: str
    place: int
    saved: SavedAnswers | None

    @property
    def is_done(self) -> bool:
        return self.saved is not None and self.saved.is_done


@dataclass(repr=False)
class AnnotationState:
    """The state of annotation at one moment; only `fold_annotations` changes it.

    Attributes:
        accounts: The account of every annotator, keyed by opaque id.
        active: The opaque ids of the annotators who are invited now.
        assigned: The annotator at each place, keyed by trajectory and place.
        saved: The saved answers, keyed by (trajectory, annotator).
        decisions: All decisions, the newest last, keyed by (trajectory, question).
        queues: All trajectories ever assigned to an annotator, in order, keyed by annotator.
        gold: The known answers of gold items, keyed by trajectory and question.
        gold_tasks: Pairs of gold item and annotator.
        last_done: The last trajectory that an annotator with open tasks finished, keyed by annotator. Until
            the annotator finishes another one, they can undo it, and the answers of others on it are hidden.
    """

    accounts: dict[str, str] = field(default_factory=dict)
    active: set[str] = field(default_factory=set)
    assigned: dict[str, Mapping[int, str]] = field(default_factory=dict)
    saved: dict[tuple[str, str], SavedAnswers] = field(default_factory=dict)
    decisions: dict[tuple[str, str], tuple[Decision, ...]] = field(default_factory=dict)
    queues: dict[str, tuple[str, ...]] = field(default_factory=dict)
    gold: dict[str, Mapping[str, str]] = field(default_factory=dict)
    gold_tasks: set[tuple[str, str]] = field(default_factory=set)
    last_done: dict[str, str] = field(default_factory=dict)
    questions: tuple[Target, ...] = field(default_factory=default_targets)

    def assign(self, assignments: Iterable[tuple[str, str, int]]) -> None:
        """Add assignments: trajectory, annotator and place."""
        added: dict[str, list[str]] = {}
        for trajectory_id, annotator, place in assignments:
            added.setdefault(annotator, []).append(trajectory_id)
            if place == GOLD:
                self.gold_tasks.add((trajectory_id, annotator))
            else:
                self.assigned[trajectory_id] = {**self.assigned.get(trajectory_id, {}), place: annotator}
        for annotator, names in added.items():
            self.queues[annotator] = tuple(dict.fromkeys((*self.queues.get(annotator, ()), *names)))

    def add(self, event: Event) -> None:
        """Apply an event other than an assignment."""
        body = event.body
        match event.kind:
            case "invited":
                self.accounts[body["annotator"]] = body["account"]
                self.active.add(body["annotator"])
            case "uninvited":
                self.active -= {
                    who for who, name in self.accounts.items() if is_same_name(name, body["account"])
                }
            case "gold_marked":
                self.gold.pop(body["trajectory_id"], None)
                if body["answers"] is not None:
                    self.gold[body["trajectory_id"]] = body["answers"]
            case "annotated":
                name, who = body["trajectory_id"], body["annotator"]
                was_done = self.is_done(name, who)
                self.saved[name, who] = _saved_answers(event)
                if body["is_done"] and not was_done:
                    self.last_done[who] = name
                    if not self.has_open(who):
                        del self.last_done[who]
            case "resolved":
                key = (body["trajectory_id"], body["question"])
                self.decisions[key] = (*self.decisions.get(key, ()), discussion_decision(event))

    def id_of(self, account: str) -> str | None:
        """Return the opaque id of an account, or None if it was never invited."""
        return next((who for who, name in self.accounts.items() if is_same_name(name, account)), None)

    def annotator_of(self, account: str) -> str | None:
        """Return the opaque id of an account if it is invited now, else None."""
        found = self.id_of(account)
        return found if found in self.active else None

    def place_of(self, trajectory_id: str, annotator: str) -> int | None:
        """Return an annotator's place (FIRST, SECOND, GOLD or a later one), or None if there is none."""
        places = self.assigned.get(trajectory_id, {})
        found = next((place for place, who in places.items() if who == annotator), None)
        return GOLD if found is None and (trajectory_id, annotator) in self.gold_tasks else found

    def is_assigned(self, trajectory_id: str, annotator: str) -> bool:
        return self.place_of(trajectory_id, annotator) is not None

    def is_gold(self, trajectory_id: str, annotator: str) -> bool:
        return self.place_of(trajectory_id, annotator) == GOLD

    def is_done(self, trajectory_id: str, annotator: str) -> bool:
        found = self.saved.get((trajectory_id, annotator))
        return found is not None and found.is_done

    def is_closed(self, trajectory_id: str, annotator: str) -> bool:
        """Return whether an annotation is final: it is done, and others' answers or decisions are visible."""
        if self.can_undo(trajectory_id, annotator):
            return False
        others = {who for who, _ in self.finished(trajectory_id)} - {annotator}
        is_seen = bool(others) or any((trajectory_id, q.name) in self.decisions for q in self.questions)
        return self.is_done(trajectory_id, annotator) and is_seen

    def can_undo(self, trajectory_id: str, annotator: str) -> bool:
        """Return whether the annotator finished this trajectory last and may still undo it."""
        return self.last_done.get(annotator) == trajectory_id

    def queue(self, annotator: str) -> tuple[AssignedTask, ...]:
        """Return an annotator's tasks in the order of assignment, with skipped ones last."""
        tasks = [
            AssignedTask(trajectory_id, place, self.saved.get((trajectory_id, annotator)))
            for trajectory_id in self.queues.get(annotator, ())
            if (place := self.place_of(trajectory_id, annotator)) is not None
        ]
        return tuple(sorted(tasks, key=lambda t: t.saved.sequence if t.saved and t.saved.is_skipped else 0))

    def has_open(self, annotator: str) -> bool:
        return any(
            self.is_assigned(name, annotator) and not self.is_done(name, annotator)
            for name in reversed(self.queues.get(annotator, ()))
        )

    def blind_items(self, annotator: str) -> frozenset[str]:
        """Return the annotator's blind trajectories: those that are unfinished or can still be undone."""
        return frozenset(
            task.trajectory_id
            for task in self.queue(annotator)
            if not task.is_done or self.can_undo(task.trajectory_id, annotator)
        )

    def finished(self, trajectory_id: str) -> tuple[tuple[str, SavedAnswers], ...]:
        """Return (annotator, answers) for each finished annotation except gold items, in order of place."""
        places = self.assigned.get(trajectory_id, {})
        annotators = dict.fromkeys((places.get(FIRST), places.get(SECOND), *self.accounts))
        return tuple(
            (who, self.saved[trajectory_id, who])
            for who in annotators
            if who and self.is_done(trajectory_id, who) and not self.is_gold(trajectory_id, who)
        )

    def decided(self, trajectory_id: str) -> Mapping[str, Decision]:
        """Return the newest decision on each decided question of a trajectory."""
        found = ((q.name, self.decisions.get((trajectory_id, q.name))) for q in self.questions)
        return {question: decisions[-1] for question, decisions in found if decisions}

    def may_see_answers(self, trajectory_id: str, annotator: str | None, is_maintainer: bool) -> bool:
        """Return whether a person may see the answers of others on a trajectory.

        Annotators have to finish their own annotation first. On their gold items, only maintainers see the
        answers of others, so that annotators do not learn which items are gold.
        """
        if annotator is not None and self.is_assigned(trajectory_id, annotator):
            if not self.is_done(trajectory_id, annotator) or self.can_undo(trajectory_id, annotator):
                return False
            return is_maintainer or not self.is_gold(trajectory_id, annotator)
        has_done = annotator is not None and self.is_done(trajectory_id, annotator)
        return is_maintainer or has_done


def fold_annotations(
    before: AnnotationState,
    events: Iterable[Event],
    knows: Callable[[str], bool] = lambda trajectory_id: True,
) -> AnnotationState:
    """Apply further events to a state and return the new one. Other kinds of events are ignored.

    ``knows`` returns whether a trajectory belongs to the suite, because all suites share one event log.
    """
    state = AnnotationState(*map(copy, vars(before).values()))
    for event in events:
        if event.kind == "assigned":
            state.assign(each for each in event.body["assignments"] if knows(each[0]))
        elif "trajectory_id" not in event.body or knows(event.body["trajectory_id"]):
            state.add(event)
    return state


def _saved_answers(event: Event) -> SavedAnswers:
    body = event.body
    answers = {question: answer for question, answer in body["answers"].items() if answer}
    recorded = {each.name: body[each.name] for each in fields(Draft) if each.name in body}
    return SavedAnswers(
        **{**recorded, "answers": answers},
        at=datetime.fromisoformat(body["answered_at"]) if "answered_at" in body else event.at,
        sequence=event.sequence,
    )


@dataclass(frozen=True, slots=True, repr=False)
class DiscussionItem:
    """A trajectory in the discussion.

    ``open`` names the questions to decide. ``comments`` are in the order of ``item.annotators``.
    ``decisions`` maps a question to its decisions, the newest last.
    """

    item: OpenItem
    open: tuple[str, ...]
    comments: tuple[str, ...]
    decisions: Mapping[str, tuple[Decision, ...]]


def finished_annotations(state: AnnotationState, trajectory_id: str | None = None) -> tuple[Annotation, ...]:
    """Return the finished annotations of one or all trajectories, sorted by trajectory id and place.

    The annotation of a run is followed by those of its steps and other parts. Answers to questions that the
    suite no longer asks are left out, as are answers that it no longer allows.
    """
    ids = sorted({name for name, _ in state.saved}) if trajectory_id is None else [trajectory_id]
    asks_runs = any(question.level == "run" for question in state.questions)
    found = []
    for name in ids:
        for who, saved in state.finished(name):
            if asks_runs:
                answers = _still_asked(state.questions, saved.answers)
                found.append(
                    Annotation(name, who, answers, saved.comment, saved.at, saved.seconds, step=saved.step)
                )
            for step, of_step in saved.answered_steps.items():
                answers = _still_asked(state.questions, of_step)
                found.append(Annotation(name, who, answers, at=saved.at, of_step=step))
            for part, of_part in saved.answered_parts.items():
                answers = _still_asked(state.questions, of_part)
                found.append(Annotation(name, who, answers, at=saved.at, of_part=part))
    return tuple(found)


def drafts_of(annotations: Iterable[Annotation]) -> list[tuple[Annotation, Draft]]:
    """Combine each person's annotations of a run and its parts into one draft.

    Returns (first annotation, draft) for each run and person.
    """
    grouped: dict[tuple[str, str | None], list[Annotation]] = {}
    for each in annotations:
        grouped.setdefault((each.trajectory_id, each.person), []).append(each)
    found = []
    for rows in grouped.values():
        of_run = [row for row in rows if row.level == "run"] or [Annotation(rows[0].trajectory_id)]
        run = of_run[-1]
        steps = {row.of_step: row.answers for row in rows if row.of_step is not None}
        parts = {row.of_part: row.answers for row in rows if row.of_part is not None}
        draft = Draft(run.answers, run.comment, run.seconds or 0.0, True, steps=steps, parts=parts)
        found.append((rows[0], draft))
    return found


def _still_asked(questions: Iterable[Target], answers: Mapping[str, str]) -> dict[str, str]:
    asked = {question.name: question for question in questions}
    return {name: answers[name] for name in asked if name in answers and asked[name].accepts(answers[name])}


def discussion_items(
    state: AnnotationState, annotator: str | None, is_maintainer: bool
) -> tuple[DiscussionItem, ...]:
    """Return the runs in the discussion whose answers the reader may see. Steps are not discussed."""
    found = []
    for item in _open_items(state):
        name = item.trajectory_id
        if state.may_see_answers(name, annotator, is_maintainer):
            comments = tuple(state.saved[name, who].comment for who in item.annotators if who is not None)
            decisions = {q.name: state.decisions.get((name, q.name)) for q in state.questions}
            known = {question: made for question, made in decisions.items() if made}
            found.append(DiscussionItem(item, _open(state, item), comments, known))
    return tuple(found)


def _open_items(state: AnnotationState, trajectory_id: str | None = None) -> tuple[OpenItem, ...]:
    finished = finished_annotations(state, trajectory_id)
    return open_items([each for each in finished if each.level == "run"], state.questions)


def open_questions(state: AnnotationState, trajectory_id: str) -> tuple[str, ...]:
    items = _open_items(state, trajectory_id)
    return _open(state, items[0]) if items else ()


def _open(state: AnnotationState, item: OpenItem) -> tuple[str, ...]:
    """Return the questions that have no decision and to which the suite's own rule gives no label."""
    asked = {*item.disagreeing, *item.unsure} - set(state.decided(item.trajectory_id))
    found = []
    for question in state.questions:
        if question.name in asked:
            known = [answer for answer in item.answers[question.name] if answer]
            rule = question.aggregate
            if rule == "first" or answer_by_rule(rule, question, known) is None:
                found.append(question.name)
    return tuple(found)
