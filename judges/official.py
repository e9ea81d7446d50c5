"""The paper's judges with the wording of the package `agent-reward-bench`, byte for byte.

Steps are joined as that package joins them: by nothing. It has no words for what is missing: a tree that was
not recorded reads None, as there; where it would fail for want of a screenshot, our own sentence stands.
Pictures of the goal are left out, as there.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace

from judges.aer import AerJudge
from judges.base import Image, Judge, Message, View, ViewStep, Wants
from judges.nnetnav import NNetNavJudge, Pair
from judges.official_templates import OfficialPromptsError, Templates
from judges.prompt_files import prompts_hash, read_prompts
from judges.showing import last_step
from judges.simplified import SimplifiedJudge


@dataclass(frozen=True, kw_only=True)
class OfficialSimplified(SimplifiedJudge):
    """The simplified judge in the package's words."""

    templates: Templates

    @property
    def prompts_hash(self) -> str:
        return _hash(self.templates)

    def messages(self, view: View, axtree: str | None) -> tuple[Message, ...]:
        templates = self.templates
        parts: list[str | Image] = [
            templates.goal.format(goal=format_goal(view)),
            templates.action.format(steps=format_steps(templates, view.steps)),
        ]
        if self.has_axtree:
            parts.append(templates.axtree.format(axtree=axtree))
        if self.has_screenshot:
            screenshot = last_step(view).screenshot
            missing = read_prompts("simplified")["no screenshot"]
            parts += [templates.screenshot, screenshot] if screenshot else [missing]
        parts.append(templates.final)
        system = templates.inverted_system if self.is_inverted else templates.system
        return (Message("system", system), Message("user", tuple(parts)))


@dataclass(frozen=True, kw_only=True)
class OfficialAer(AerJudge):
    """AER-C and AER-V in the package's words."""

    templates: Templates

    @property
    def wants(self) -> Wants:
        return Wants(screenshots="last")

    @property
    def prompts_hash(self) -> str:
        return _hash(self.templates)

    def caption_messages(self, screenshot: Image) -> tuple[Message, ...]:
        return (Message("user", (self.templates.captioner, screenshot)),)

    def messages(self, view: View, caption: str | None) -> tuple[Message, ...]:
        steps = format_steps(self.templates, view.steps)
        system = Message("system", self.templates.aer_system)
        missing = read_prompts("aer")["no screenshot"]
        if self.captioner:
            text = self.templates.aer_user.format(
                intent=format_goal(view), last_actions=steps, cap=caption or missing
            )
            return (system, Message("user", text))
        text = self.templates.aer_user_vision.format(intent=format_goal(view), last_actions=steps)
        return (system, Message("user", (text, last_step(view).screenshot or missing)))


@dataclass(frozen=True, kw_only=True)
class OfficialNNetNav(NNetNavJudge):
    """NNetNav in the package's words. A change that could not be described is left out, as there."""

    templates: Templates

    @property
    def prompts_hash(self) -> str:
        return _hash(self.templates)

    def description_messages(self, before: str, action: str | None, after: str) -> tuple[Message, ...]:
        system = self.templates.nnetnav_describer.format(action_str=self.templates.nnetnav_actions)
        user = self.templates.nnetnav_describer_user.format(
            prev_axtree=before, curr_axtree=after, action=action
        )
        return (Message("system", system), Message("user", user))

    def describe_change(self, pair: Pair, was_asked: bool, description: str | None) -> str | None:
        return description

    def messages(self, view: View, changes: Sequence[str]) -> tuple[Message, ...]:
        user = self.templates.nnetnav_judge_user.format(
            goal=format_goal(view), descriptions="\n".join(changes)
        )
        return (Message("system", self.templates.nnetnav_judge), Message("user", user))


_OFFICIAL = {SimplifiedJudge: OfficialSimplified, AerJudge: OfficialAer, NNetNavJudge: OfficialNNetNav}


def with_official_prompts(judge: Judge, templates: Templates, version: str) -> Judge:
    """The judge with the package's prompts. Raises OfficialPromptsError for one that it does not have."""
    kind = _OFFICIAL.get(type(judge))
    if kind is None:
        raise OfficialPromptsError(
            f"{judge.name}: agent-reward-bench has no prompts for it; leave out --prompts official"
        )
    same = {field.name: getattr(judge, field.name) for field in fields(judge)}
    if isinstance(judge, SimplifiedJudge):
        same["shows_goal_images"] = False
    official = kind(**same, templates=templates)
    return replace(official, source=f"{judge.source}; prompts of agent-reward-bench {version}")


def format_goal(view: View) -> str:
    """The goal as released files have it, ending in a line break; a published dataset leaves that out."""
    return view.goal if view.goal.endswith("\n") else f"{view.goal}\n"


def format_steps(templates: Templates, steps: Sequence[ViewStep]) -> str:
    """All steps as the package writes them, one after the other with nothing in between."""
    return "".join(
        templates.step.format(step_number=number, url=step.url, action=step.action, reasoning=step.reasoning)
        for number, step in enumerate(steps, start=1)
    )


def _hash(templates: Templates) -> str:
    return prompts_hash(*asdict(templates).values())
