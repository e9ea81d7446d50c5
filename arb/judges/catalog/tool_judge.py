"""A judge that sees the end of a run, and looks up earlier steps with tools.

The method is our own. The tools are in `arb.judges.tools`, and other judges can offer them too.
"""

from dataclasses import dataclass
from typing import ClassVar

from arb.core.replies import Form
from arb.judges import prompting
from arb.judges.catalog.one_model import OneModelJudge
from arb.judges.parsing import parse_answer
from arb.judges.tools import TOOLS, RunTools
from arb.judges.types import Call, Image, JudgeSession, Message, View, Wants

TREE_CHARS = 20_000
"""The maximum length of the last page's tree in the first prompt."""


@dataclass(frozen=True)
class ToolJudge(OneModelJudge):
    """A judge that starts from the final state, and uses tools to look at whatever else it wants to see.

    It makes at most ``max_calls`` calls for a run. Once its calls have cost ``max_usd``, it makes only one
    more. In the last call, the model is told to answer; if it still calls a tool, the answer has no verdict.
    """

    form: ClassVar[Form] = "criteria"
    prompts: ClassVar[str] = "tools"
    method: ClassVar[str] = "tools"
    wants: ClassVar[Wants] = Wants(axtrees="all", screenshots="all", goal_images=True)

    max_calls: int = 8
    max_usd: float = 0.5
    inputs: str = "goal, actions, last page; the rest with tools"
    source: str = "our own"

    @property
    def calls(self) -> str:
        return f"1 to {self.max_calls}"

    @property
    def prompts_hash(self) -> str:
        return prompting.prompts_hash(super().prompts_hash, *(str(tool.declaration) for tool in TOOLS))

    def ask(self, view: View) -> JudgeSession:
        """Ask until the model answers without calling a tool, or until it has to answer."""
        tools, messages, paid_usd = RunTools(view), self.messages(view), 0.0
        for number in range(1, self.max_calls + 1):
            is_last = number == self.max_calls or paid_usd >= self.max_usd
            last = Message("user", prompting.read_prompts("tools")["last"])
            (reply,) = yield [Call("verdict", (*messages, last) if is_last else messages, tools=TOOLS)]
            if is_last or reply.state != "ok" or not reply.tool_calls:
                break
            paid_usd += reply.cost_usd or 0.0
            asked = Message("assistant", reply.text or "", reply.tool_calls)
            messages = (*messages, asked, *tools.results(reply.tool_calls))
        return parse_answer(reply, self.form)

    def messages(self, view: View) -> tuple[Message, ...]:
        """Return the messages of the first call: the goal, the actions, and the page at the end."""
        prompts, end = prompting.read_prompts("tools"), prompting.last_step(view)
        actions = "\n".join(f"step {step.number}: {step.action or '(none)'}" for step in view.steps)
        parts: list[str | Image] = prompting.goal_parts(view)
        parts.append(prompts["actions"].format(count=len(view.steps), actions=actions or "(none)"))
        tree = end.axtree_pruned if end.axtree_pruned is not None else end.axtree
        if tree is None:
            tree = end.text
        if tree is not None:
            cut = prompting.cut_middle(tree, TREE_CHARS)
            parts.append(prompts["tree"].format(number=end.number, tree=cut))
        if end.screenshot is not None:
            parts += [prompts["screenshot"].format(number=end.number), end.screenshot]
        parts += [prompting.ANSWER.format(answer=view.answer.strip())] if view.answer else []
        return (Message("system", prompts["system"]), Message("user", prompting.content_of(parts)))
