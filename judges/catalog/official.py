"""The paper's judges with the wording of the package `agent-reward-bench`, byte for byte.

Its prompt templates are read out of its source and never run: importing it would import half of what it
depends on, and its templates are constants, which a parser finds. An installed package is read first,
whatever its version; else the wheel that the labels come from.

Steps are joined as that package joins them: by nothing. It has no words for what is missing: a tree that was
not recorded reads None, as there; where it would fail without a screenshot, our own sentence is used.
Pictures of the goal are left out, as there.
"""

import ast
import importlib.metadata
import importlib.util
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import ClassVar

from core.settings import Settings
from judges.catalog.aer import AerJudge
from judges.catalog.nnetnav import NNetNavJudge, Pair
from judges.catalog.simplified import SimplifiedJudge
from judges.prompting import last_step, prompts_hash, read_prompts
from judges.types import Image, Judge, Message, View, ViewStep, Wants
from leaderboard.labels.source import LabelsUnavailable, locate_labels

PACKAGE = "agent_reward_bench"
DEFAULTS, SCREENSHOT, AER, NNETNAV = (
    "judge/defaults.py",
    "judge/__init__.py",
    "judge/existing/aer.py",
    "judge/existing/nnetnav.py",
)


class OfficialPromptsError(ValueError):
    """The official templates cannot be had; the message says why and what to do."""


@dataclass(frozen=True)
class Templates:
    """The package's templates, as its code uses them: stripped where it strips them."""

    system: str
    inverted_system: str
    step: str
    goal: str
    action: str
    axtree: str
    final: str
    screenshot: str
    captioner: str
    aer_system: str
    aer_user: str
    aer_user_vision: str
    nnetnav_judge: str
    nnetnav_judge_user: str
    nnetnav_describer: str
    nnetnav_describer_user: str
    nnetnav_actions: str


def read_templates(settings: Settings | None = None) -> Templates:
    """The templates of the installed package, else of the wheel in the cache, fetched when it is not there.

    Raises OfficialPromptsError.
    """
    return templates_in(_reader(settings))


def templates_in(read: Callable[[str], str]) -> Templates:
    """The templates in the package's source; ``read`` gives a file by its path inside the package.

    Raises OfficialPromptsError naming every template that is not where version 0.1.2 has it.
    """
    defaults, aer, nnetnav = (_constants(ast.parse(read(name))) for name in (DEFAULTS, AER, NNETNAV))
    screenshot = _inside(ast.parse(read(SCREENSHOT)), "format_content_for_image", _text_of_part)
    captioner = _inside(ast.parse(read(AER)), "format_msg_for_captioning", _assigned_text)
    found = {
        "system": defaults.get("SYSTEM_PROMPT"),
        "inverted_system": defaults.get("INVERTED_SYSTEM_PROMPT"),
        "step": defaults.get("STEP_TEMPLATE"),
        "goal": defaults.get("GOAL_TEMPLATE"),
        "action": defaults.get("ACTION_TEMPLATE"),
        "axtree": defaults.get("AXTREE_TEMPLATE"),
        "final": defaults.get("FINAL_MSG"),
        "screenshot": screenshot,
        "captioner": captioner,
        "aer_system": _stripped(aer.get("sys_prompt")),
        "aer_user": _stripped(aer.get("user_prompt_template")),
        "aer_user_vision": _stripped(aer.get("user_prompt_template_vis")),
        "nnetnav_judge": nnetnav.get("JUDGE_SYS_PROMPT"),
        "nnetnav_judge_user": nnetnav.get("JUDGE_USER_PROMPT_TEMPLATE"),
        "nnetnav_describer": nnetnav.get("DELTA_LM_SYS_PROMPT"),
        "nnetnav_describer_user": nnetnav.get("DELTA_LM_USER_PROMPT"),
        "nnetnav_actions": nnetnav.get("webarena_action_str"),
    }
    if absent := [name for name, text in found.items() if text is None]:
        raise OfficialPromptsError(
            f"this agent-reward-bench has no template for {', '.join(absent)} where version 0.1.2 has it; "
            "install agent-reward-bench==0.1.2, or leave out --prompts official"
        )
    return Templates(**{field.name: found[field.name] or "" for field in fields(Templates)})


def version_of_templates() -> str:
    try:
        return importlib.metadata.version("agent-reward-bench")
    except importlib.metadata.PackageNotFoundError:
        return "0.1.2"


def _reader(settings: Settings | None) -> Callable[[str], str]:
    package = importlib.util.find_spec(PACKAGE)
    if package is not None and package.origin is not None:
        folder = Path(package.origin).parent
        return lambda name: _read(lambda: (folder / name).read_text(encoding="utf-8"), name)
    try:
        wheel = locate_labels((settings or Settings()).model_copy(update={"labels": "wheel"}))
    except LabelsUnavailable as problem:
        raise OfficialPromptsError(f"the official prompts cannot be loaded: {problem}") from problem

    def read_member(name: str) -> str:
        with zipfile.ZipFile(wheel) as opened:
            return opened.read(f"{PACKAGE}/{name}").decode("utf-8")

    return lambda name: _read(lambda: read_member(name), name)


def _read(read: Callable[[], str], name: str) -> str:
    try:
        return read()
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise OfficialPromptsError(
            f"agent-reward-bench's {name} cannot be read; reinstall agent-reward-bench==0.1.2"
        ) from error


def _constants(module: ast.Module) -> Mapping[str, str]:
    """Texts assigned to names at the module's top, stripped where the source strips them after that."""
    found: dict[str, str] = {}
    for node in module.body:
        if not (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)):
            continue
        name, value = node.targets[0].id, node.value
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            found[name] = value.value
        elif ast.unparse(value) == f"{name}.strip()" and name in found:
            found[name] = found[name].strip()
    return found


def _inside(module: ast.Module, function: str, wanted: Callable[[ast.AST], str | None]) -> str | None:
    """The first wanted text inside a function."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return next((text for each in ast.walk(node) if (text := wanted(each)) is not None), None)
    return None


def _text_of_part(node: ast.AST) -> str | None:
    """The text of ``{"type": "text", "text": …}``."""
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == "text" and isinstance(value, ast.Constant):
                return str(value.value)
    return None


def _assigned_text(node: ast.AST) -> str | None:
    is_text = isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
    return str(node.value.value) if is_text else None


def _stripped(text: str | None) -> str | None:
    return text.strip() if text is not None else None


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

    wants: ClassVar[Wants] = Wants(screenshots="last")

    templates: Templates

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
