"""What there is to talk about: answers that differ, and every Unsure; and what was decided. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from leaderboard.agreement_report import OpenItem, open_items
from leaderboard.annotations import QUESTIONS, Annotation
from submissions.labelling.state import AnnotationState, Decision


@dataclass(frozen=True, slots=True, repr=False)
class DiscussionItem:
    """A trajectory in the discussion. ``open`` are the questions that wait for a decision.

    ``decisions`` maps a question to all that was decided of it, the newest last; ``comments`` are the
    annotators', in the order of ``item.annotators``.
    """

    item: OpenItem
    open: tuple[str, ...]
    comments: tuple[str, ...]
    decisions: Mapping[str, tuple[Decision, ...]]

    def __repr__(self) -> str:
        return f"Talk({self.item.trajectory_id!r})"


def finished_annotations(state: AnnotationState, trajectory_id: str | None = None) -> tuple[Annotation, ...]:
    """The finished annotations as they were given, first ones before second ones of each trajectory."""
    ids = sorted({name for name, _ in state.given}) if trajectory_id is None else [trajectory_id]
    return tuple(
        Annotation(name, who, **given.answers, comment=given.comment, at=given.at, seconds=given.seconds)
        for name in ids
        for who, given in state.finished(name)
    )


def discussion_items(
    state: AnnotationState, annotator: str | None, is_maintainer: bool
) -> tuple[DiscussionItem, ...]:
    """The discussion as far as somebody may see it: never answers on what they have yet to answer."""
    return tuple(
        _talk(state, item)
        for item in open_items(finished_annotations(state))
        if state.may_see_answers(item.trajectory_id, annotator, is_maintainer)
    )


def open_questions(state: AnnotationState, trajectory_id: str) -> tuple[str, ...]:
    """The questions of a trajectory that wait for a decision."""
    items = open_items(finished_annotations(state, trajectory_id))
    return _open(state, items[0]) if items else ()


def _open(state: AnnotationState, item: OpenItem) -> tuple[str, ...]:
    asked = {*item.disagreeing, *item.unsure} - set(state.decided(item.trajectory_id))
    return tuple(question for question in QUESTIONS if question in asked)


def _talk(state: AnnotationState, item: OpenItem) -> DiscussionItem:
    name = item.trajectory_id
    comments = tuple(state.given[name, who].comment for who in item.annotators if who is not None)
    decisions = {q: state.decisions[name, q] for q in QUESTIONS if (name, q) in state.decisions}
    return DiscussionItem(item, _open(state, item), comments, decisions)
