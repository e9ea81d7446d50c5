"""NNetNav (Murty et al., arXiv 2410.02907; paper, section 4.1): what each action changed, then a rating.

A model describes the change between every two observations that follow each other, from their trees (or their
texts, in a run without web pages); another rates the descriptions from 1 to 5, and from 4 it is a success.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, Final

from arb.core.replies import Form
from arb.judges.parsing import parse_answer
from arb.judges.prompting import (
    ANSWER,
    SHORTER,
    failed_answer,
    goal_parts,
    hash_of_file,
    read_prompts,
    text_of,
    with_bounded_texts,
)
from arb.judges.traits import DescribedJudge, JudgeTraits
from arb.judges.types import JUDGE_ROLE, Answer, Call, JudgeSession, Message, Reply, View, ViewStep, Wants

DESCRIBER = "describer"
"""The role of the model that describes changes."""

DESCRIPTION_TOKENS: Final = 2048
"""The longest description, as the released code has it; its verdict has the 1,024 of every other judge."""

Pair = tuple[ViewStep, ViewStep]

_NOTHING: Final = "(nothing)"
"""What an agent without web pages saw before its first action, or of one that returned nothing."""

_CHANGE = re.compile(r"\bstate change\W*:[\s*_]*", re.IGNORECASE)


@dataclass(frozen=True)
class NNetNavJudge(DescribedJudge):
    """Asks for a description of every change, all at once, then for the rating.

    The change from observation i to i+1 goes with the action of step i, which caused it; ``is_compat`` names
    the action of step i+1, as the released code did. A page that was not recorded, or a change that the
    describer refused or could not take in, is described to the judge as such; a call that failed ends in that
    state, since it can be made again. When no change at all could be described there is no verdict.
    """

    form: ClassVar[Form] = "rating"
    wants: ClassVar[Wants] = Wants(axtrees="all")

    name: str
    model: str
    describer: str
    is_compat: bool = False
    inputs: str = "goal, changes between all trees"
    calls: str = "n"
    source: str = "arXiv 2410.02907"

    @property
    def models(self) -> Mapping[str, str]:
        return {JUDGE_ROLE: self.model, DESCRIBER: self.describer}

    @property
    def prompts_hash(self) -> str:
        return hash_of_file("nnetnav")

    def describe(self) -> JudgeTraits:
        return JudgeTraits(method="nnetnav", form=self.form, output_tokens={DESCRIBER: DESCRIPTION_TOKENS})

    def ask(self, view: View) -> JudgeSession:
        """A description for each pair of observations, then the rating."""
        view = _with_texts_as_trees(view)
        pairs = list(pairwise(view.steps))
        seen = [pair for pair in pairs if all(_tree(step) is not None for step in pair)]
        replies: Sequence[Reply] = ()
        if seen:
            replies = yield [self._description_call(pair) for pair in seen]
        if (ended := _ended(replies)) is not None:
            return ended
        descriptions = {pair[0].number: text_of(reply) for pair, reply in zip(seen, replies, strict=True)}
        changes = [
            self.describe_change(pair, pair[0].number in descriptions, descriptions.get(pair[0].number))
            for pair in pairs
        ]
        (reply,) = yield [Call("verdict", self.messages(view, [change for change in changes if change]))]
        return parse_answer(reply, self.form)

    def description_messages(self, before: str, action: str | None, after: str) -> tuple[Message, ...]:
        """The question what an action changed, with these texts of the trees."""
        prompts = read_prompts("nnetnav")
        parts = (
            prompts["before"].format(before=before),
            prompts["action"].format(action=action or "(none)"),
            prompts["after"].format(after=after),
        )
        return (Message("system", prompts["describer"]), Message("user", "\n\n".join(parts)))

    def describe_change(self, pair: Pair, was_asked: bool, description: str | None) -> str | None:
        """The text of one change in the prompt; None to leave it out."""
        if description is not None:
            return _change_in(description)
        text = read_prompts("nnetnav")["change not described" if was_asked else "change not recorded"]
        return text.format(action=self._action(pair) or "(none)")

    def messages(self, view: View, changes: Sequence[str]) -> tuple[Message, ...]:
        """The question for the rating."""
        prompts = read_prompts("nnetnav")
        listed = "\n".join(f"{number}. {change}" for number, change in enumerate(changes, start=1))
        parts = [
            *goal_parts(view, "The user's instruction:"),
            prompts["changes"].format(changes=listed or prompts["no changes"]),
        ]
        parts += [ANSWER.format(answer=view.answer.strip())] if view.answer else []
        return (Message("system", prompts["judge"]), Message("user", "\n\n".join(map(str, parts))))

    def _action(self, pair: Pair) -> str | None:
        return pair[1 if self.is_compat else 0].action

    def _description_call(self, pair: Pair) -> Call:
        before, after = pair
        full = self.description_messages(_tree(before) or "", self._action(pair), _tree(after) or "")
        shorter = None
        if before.axtree_pruned is not None and after.axtree_pruned is not None:
            shorter = self.description_messages(before.axtree_pruned, self._action(pair), after.axtree_pruned)
        return Call("change", full, shorter if shorter != full else None, role=DESCRIBER)


def _tree(step: ViewStep) -> str | None:
    return step.axtree if step.axtree is not None else step.axtree_pruned


def _with_texts_as_trees(view: View) -> View:
    """The view with what was observed in words as the tree of each step without one."""
    if all(step.text is None for step in view.steps):
        return view
    shorter = (step.text for step in with_bounded_texts(view, SHORTER).steps)
    steps = (
        replace(step, axtree=step.text or _NOTHING, axtree_pruned=short or _NOTHING)
        if _tree(step) is None
        else step
        for step, short in zip(view.steps, shorter, strict=True)
    )
    return replace(view, steps=tuple(steps))


def _change_in(description: str) -> str:
    """The text after the last "State change:", on one line; the whole text where there is none."""
    after = _CHANGE.split(description)[-1].strip()
    return " ".join((after or description).split())


def _ended(replies: Sequence[Reply]) -> Answer | None:
    """No verdict when a call failed, or when none of them gave a description."""
    if (failed := next((reply for reply in replies if reply.state == "error"), None)) is not None:
        return failed_answer(failed)
    if replies and all(text_of(reply) is None for reply in replies):
        return failed_answer(replies[0])
    return None
