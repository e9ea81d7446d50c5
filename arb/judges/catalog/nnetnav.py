"""NNetNav (Murty et al., arXiv 2410.02907; paper, section 4.1): describe the changes, then rate them.

One model describes the change between each pair of consecutive observations, from their accessibility trees
or, in a run without web pages, from their texts. Another model reads the descriptions and rates the run from
1 to 5. A rating of 4 or 5 is a success.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, Final

from arb.core.replies import Form
from arb.judges import prompting
from arb.judges.catalog.one_model import OneModelJudge
from arb.judges.parsing import parse_answer
from arb.judges.types import (
    JUDGE_ROLE,
    Answer,
    Call,
    JudgeSession,
    JudgeTraits,
    Message,
    Reply,
    View,
    ViewStep,
    Wants,
)

DESCRIBER = "describer"
"""The role of the model that describes the changes."""

DESCRIPTION_TOKENS: Final = 2048
"""The output limit of descriptions in the released code. The verdict has the usual limit of 1,024 tokens."""

Pair = tuple[ViewStep, ViewStep]

_NOTHING: Final = "(nothing)"
"""The text that replaces a missing observation (such as the first) in a run without web pages."""

_CHANGE = re.compile(r"\bstate change\W*:[\s*_]*", re.IGNORECASE)


@dataclass(frozen=True)
class NNetNavJudge(OneModelJudge):
    """A judge that first asks for descriptions of all changes, and then for the rating.

    The describer is told the action of step i, which caused the change from observation i to i+1. With
    ``is_compat``, it is told the action of step i+1, as in the released code. The prompt for the rating
    mentions changes that were not recorded or not described. If a call fails, the state is ``error``, so that
    a resumed run repeats the judgment. If all descriptions fail, the answer has no verdict.
    """

    form: ClassVar[Form] = "rating"
    prompts: ClassVar[str] = "nnetnav"
    method: ClassVar[str] = "nnetnav"
    takes_texts: ClassVar[bool] = False
    wants: ClassVar[Wants] = Wants(axtrees="all")

    describer: str
    is_compat: bool = False
    inputs: str = "goal, changes between all trees"
    calls: str = "n"
    source: str = "arXiv 2410.02907"

    @property
    def models(self) -> Mapping[str, str]:
        return {JUDGE_ROLE: self.model, DESCRIBER: self.describer}

    def describe(self) -> JudgeTraits:
        return replace(super().describe(), output_tokens={DESCRIBER: DESCRIPTION_TOKENS})

    def ask(self, view: View) -> JudgeSession:
        """Ask for a description of each change, in parallel, and then for the rating."""
        view = _with_texts_as_trees(view)
        pairs = list(pairwise(view.steps))
        seen = [pair for pair in pairs if all(_tree(step) is not None for step in pair)]
        replies: Sequence[Reply] = ()
        if seen:
            replies = yield [self._description_call(pair) for pair in seen]
        if (ended := _ended(replies)) is not None:
            return ended
        descriptions = {
            pair[0].number: prompting.text_of(reply) for pair, reply in zip(seen, replies, strict=True)
        }
        changes = [
            self.describe_change(pair, pair[0].number in descriptions, descriptions.get(pair[0].number))
            for pair in pairs
        ]
        (reply,) = yield [Call("verdict", self.messages(view, [change for change in changes if change]))]
        return parse_answer(reply, self.form)

    def description_messages(self, before: str, action: str | None, after: str) -> tuple[Message, ...]:
        """Return the messages that ask what an action changed between two trees."""
        prompts = prompting.read_prompts("nnetnav")
        parts = (
            prompts["before"].format(before=before),
            prompts["action"].format(action=action or "(none)"),
            prompts["after"].format(after=after),
        )
        return (Message("system", prompts["describer"]), Message("user", "\n\n".join(parts)))

    def describe_change(self, pair: Pair, was_asked: bool, description: str | None) -> str | None:
        """Return what the verdict's prompt says about a change, or None to leave the change out.

        ``was_asked`` is false if the describer was not asked, because the change was not recorded.
        ``description`` is None if there is no description.
        """
        if description is not None:
            return _change_in(description)
        problem = "change not described" if was_asked else "change not recorded"
        text = prompting.read_prompts("nnetnav")[problem]
        return text.format(action=self._action(pair) or "(none)")

    def messages(self, view: View, changes: Sequence[str]) -> tuple[Message, ...]:
        prompts = prompting.read_prompts("nnetnav")
        listed = "\n".join(f"{number}. {change}" for number, change in enumerate(changes, start=1))
        parts = [
            *prompting.goal_parts(view, "The user's instruction:"),
            prompts["changes"].format(changes=listed or prompts["no changes"]),
        ]
        parts += [prompting.ANSWER.format(answer=view.answer.strip())] if view.answer else []
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
    """Return the view with text observations in place of missing trees."""
    if all(step.text is None for step in view.steps):
        return view
    shorter = prompting.with_bounded_texts(view, prompting.SHORTER)
    steps = []
    for step, short in zip(view.steps, shorter.steps, strict=True):
        if _tree(step) is None:
            step = replace(step, axtree=step.text or _NOTHING, axtree_pruned=short.text or _NOTHING)
        steps.append(step)
    return replace(view, steps=tuple(steps))


def _change_in(description: str) -> str:
    """Return the text after the last "State change:", or else the whole text, on one line."""
    after = _CHANGE.split(description)[-1].strip()
    return " ".join((after or description).split())


def _ended(replies: Sequence[Reply]) -> Answer | None:
    """If a call failed, or if all descriptions failed, return an answer without a verdict, else None."""
    if (failed := next((reply for reply in replies if reply.state == "error"), None)) is not None:
        return prompting.failed_answer(failed)
    if replies and all(prompting.text_of(reply) is None for reply in replies):
        return prompting.failed_answer(replies[0])
    return None
