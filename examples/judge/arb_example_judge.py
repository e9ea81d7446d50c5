"""A judge that says no if the last action failed, and otherwise asks a model whether the goal was reached."""

from typing import ClassVar

from arb.judges.parsing import parse_answer
from arb.judges.prompting import prompts_hash, steps_text
from arb.judges.types import Answer, Call, JudgeSession, Message, View, Wants

PROMPT = """A web agent was given this goal: {goal}

It did the following:
{steps}

Did it reach the goal? Answer with one line:
Status: success or failure
"""


class NoFailedAction:
    """A judge that makes at most one call."""

    name = "No failed action"
    inputs = "goal, steps"
    calls = "0 or 1"
    source = "examples/judge"
    wants = Wants()
    models: ClassVar = {"judge": "gpt-4o-mini-2024-07-18"}
    prompts_hash = prompts_hash(PROMPT)

    def ask(self, view: View) -> JudgeSession:
        if view.steps[-1].error:
            return Answer("ok", success=False, reasoning="The last action failed.")
        prompt = PROMPT.format(goal=view.goal, steps=steps_text(view.steps, view.answer))
        (reply,) = yield [Call("verdict", (Message("user", prompt),))]
        return parse_answer(reply, "status")
