"""The paper's judges with the wording of the package `agent-reward-bench`, byte for byte, and WebJudge with
that of a checkout of Online-Mind2Web.

Prompt templates are read out of their source, which is never run: importing it would import half of what it
depends on, and its templates are constants, which a parser finds. An installed package is read first,
whatever its version; else the wheel that the labels come from. A checkout is used if its templates have the
SHA-256 of those whose messages are known here.

For the package's judges steps are joined as that package joins them: by nothing. It has no words for what is
missing: a tree that was not recorded reads None, as there; where it would fail without a screenshot, our own
sentence is used. Pictures of the goal are left out, as there. Of a run without web pages, which it does not
know, the last observation and the answer stand where it has the tree or the caption.
"""

import ast
import importlib.metadata
import importlib.util
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import ClassVar, Final

from arb.core.settings import Settings
from arb.judges.catalog.aer import AerJudge
from arb.judges.catalog.nnetnav import NNetNavJudge, Pair
from arb.judges.catalog.simplified import SimplifiedJudge
from arb.judges.catalog.webjudge import WebJudge
from arb.judges.prompting import ANSWER, last_step, observation_apart, prompts_hash, read_prompts
from arb.judges.traits import DescribedJudge, JudgeTraits
from arb.judges.types import Image, Judge, Message, View, ViewStep, Wants
from leaderboard.labels.source import LabelsUnavailable, locate_labels

PACKAGE = "agent_reward_bench"
DEFAULTS, SCREENSHOT, AER, NNETNAV = (
    "judge/defaults.py",
    "judge/__init__.py",
    "judge/existing/aer.py",
    "judge/existing/nnetnav.py",
)
CONSTANTS: Final[Mapping[str, Mapping[str, str]]] = {
    DEFAULTS: {
        "system": "SYSTEM_PROMPT",
        "inverted_system": "INVERTED_SYSTEM_PROMPT",
        "step": "STEP_TEMPLATE",
        "goal": "GOAL_TEMPLATE",
        "action": "ACTION_TEMPLATE",
        "axtree": "AXTREE_TEMPLATE",
        "final": "FINAL_MSG",
    },
    AER: {
        "aer_system": "sys_prompt",
        "aer_user": "user_prompt_template",
        "aer_user_vision": "user_prompt_template_vis",
    },
    NNETNAV: {
        "nnetnav_judge": "JUDGE_SYS_PROMPT",
        "nnetnav_judge_user": "JUDGE_USER_PROMPT_TEMPLATE",
        "nnetnav_describer": "DELTA_LM_SYS_PROMPT",
        "nnetnav_describer_user": "DELTA_LM_USER_PROMPT",
        "nnetnav_actions": "webarena_action_str",
    },
}
"""By file of the package: our names of templates, and the constants that hold them."""

ONLINE_MIND2WEB = "OSU-NLP-Group/Online-Mind2Web"
WEBJUDGE = "src/methods/webjudge_online_mind2web.py"
WEBJUDGE_SHA256 = "3b5869d47443bcb8d425770b57047a36e60ff28b1f1e7d649fa0778af1422fb2"
"""Over WebJudge's templates (`prompts_hash`, in the order of `WEBJUDGE_TEMPLATES`)."""
WEBJUDGE_TEMPLATES: Final = (
    "max_images",  # a constant, in digits
    "key_points_system",
    "key_points",
    "rating_system",
    "rating",
    "system",
    "verdict",
    "verdict_without_pictures",
)
"""The templates in the authors' file, in its order."""

Templates = Mapping[str, str]
"""The authors' templates by name, as their code uses them: stripped where it strips them."""


class OfficialPromptsError(ValueError):
    """The official templates cannot be had; the message says why and what to do."""


def read_templates(settings: Settings | None = None) -> Templates:
    """Return the templates of the installed package, else of the wheel in the cache, fetched if need be.

    Raises OfficialPromptsError.
    """
    files: dict[str, str] = {}
    for name in (DEFAULTS, SCREENSHOT, AER, NNETNAV):
        try:
            files[name] = (_package(settings) / name).read_text(encoding="utf-8")
        except (OSError, KeyError, UnicodeDecodeError, zipfile.BadZipFile) as error:
            raise OfficialPromptsError(
                f"agent-reward-bench's {name} cannot be read; reinstall agent-reward-bench==0.1.2"
            ) from error
    return templates_in(files)


def _package(settings: Settings | None) -> Path | zipfile.Path:
    """Return the package's folder, or its place in the wheel."""
    package = importlib.util.find_spec(PACKAGE)
    if package is not None and package.origin is not None:
        return Path(package.origin).parent
    try:
        wheel = locate_labels((settings or Settings()).model_copy(update={"labels": "wheel"}))
    except LabelsUnavailable as problem:
        raise OfficialPromptsError(f"the official prompts cannot be loaded: {problem}") from problem
    return zipfile.Path(wheel, f"{PACKAGE}/")


def templates_in(files: Mapping[str, str]) -> Templates:
    """Return the templates in the package's source files.

    Raises OfficialPromptsError naming every template that is not where version 0.1.2 has it.
    """
    modules = {name: ast.parse(text) for name, text in files.items()}
    constants = {name: _constants(modules[name]) for name in CONSTANTS}
    found = {ours: constants[DEFAULTS].get(theirs) for ours, theirs in CONSTANTS[DEFAULTS].items()}
    found["screenshot"] = _inside(modules[SCREENSHOT], "format_content_for_image", _text_of_part)
    found["captioner"] = _inside(modules[AER], "format_msg_for_captioning", _assigned_text)
    for ours, theirs in CONSTANTS[AER].items():
        text = constants[AER].get(theirs)
        found[ours] = text and text.strip()
    found |= {ours: constants[NNETNAV].get(theirs) for ours, theirs in CONSTANTS[NNETNAV].items()}
    if absent := [name for name, text in found.items() if text is None]:
        raise OfficialPromptsError(
            f"this agent-reward-bench has no template for {', '.join(absent)} where version 0.1.2 has it; "
            "install agent-reward-bench==0.1.2, or leave out --prompts official"
        )
    return {name: text or "" for name, text in found.items()}


def read_webjudge_templates(checkout: Path | None, sha256: str | None = None) -> Templates:
    """Return WebJudge's templates in a checkout of Online-Mind2Web.

    Raises OfficialPromptsError for another text.
    """
    if checkout is None:
        raise OfficialPromptsError(
            "WebJudge's prompts are its authors': name a checkout of "
            f"https://github.com/{ONLINE_MIND2WEB} with --prompts-from, or leave out --prompts official"
        )
    try:
        module = ast.parse((checkout / WEBJUDGE).read_bytes())
    except (OSError, ValueError, SyntaxError) as error:
        raise OfficialPromptsError(
            f"--prompts-from {checkout}: {WEBJUDGE} in it cannot be read; name the folder of a checkout of "
            f"{ONLINE_MIND2WEB}"
        ) from error
    texts = [
        str(node.value.value)
        for node in sorted(ast.walk(module), key=lambda node: getattr(node, "lineno", 0))
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        if ast.unparse(node.targets[0]) in ("MAX_IMAGE", "system_msg", "prompt")
    ]
    wanted = sha256 or WEBJUDGE_SHA256
    if prompts_hash(*texts) != wanted:
        raise OfficialPromptsError(
            f"--prompts-from {checkout}: the prompts in its {WEBJUDGE} are not those that were compared with "
            f"the messages made here (SHA-256 {prompts_hash(*texts)[:12]}, not {wanted[:12]}); check out "
            "another commit, or leave out --prompts official"
        )
    return dict(zip(WEBJUDGE_TEMPLATES, texts, strict=True))


def version_of_templates() -> str:
    try:
        return importlib.metadata.version("agent-reward-bench")
    except importlib.metadata.PackageNotFoundError:
        return "0.1.2"


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


@dataclass(frozen=True, kw_only=True)
class _Official(DescribedJudge):
    """A judge that sends the prompts of its authors."""

    templates: Templates = field(hash=False)

    @property
    def prompts_hash(self) -> str:
        return prompts_hash(*self.templates.values())

    def describe(self) -> JudgeTraits:
        return replace(super().describe(), is_official=True)


@dataclass(frozen=True, kw_only=True)
class OfficialSimplified(_Official, SimplifiedJudge):
    """The simplified judge in the package's words."""

    @property
    def system(self) -> str:
        return self.templates["inverted_system"] if self.is_inverted else self.templates["system"]

    def messages(self, view: View, axtree: str | None) -> tuple[Message, ...]:
        templates = self.templates
        parts: list[str | Image] = [
            templates["goal"].format(goal=format_goal(view)),
            templates["action"].format(steps=format_steps(templates, view.steps)),
        ]
        if self.has_axtree:
            parts.append(templates["axtree"].format(axtree=_last_text(view) if axtree is None else axtree))
        if self.has_screenshot:
            screenshot = last_step(view).screenshot
            missing = read_prompts("simplified")["no screenshot"]
            parts += [templates["screenshot"], screenshot] if screenshot else [missing]
        parts.append(templates["final"])
        return (Message("system", self.system), Message("user", tuple(parts)))


@dataclass(frozen=True, kw_only=True)
class OfficialAer(_Official, AerJudge):
    """AER-C and AER-V in the package's words."""

    wants: ClassVar[Wants] = Wants(screenshots="last")

    def caption_messages(self, screenshot: Image) -> tuple[Message, ...]:
        return (Message("user", (self.templates["captioner"], screenshot)),)

    def messages(self, view: View, caption: str | None) -> tuple[Message, ...]:
        steps = format_steps(self.templates, view.steps)
        system = Message("system", self.templates["aer_system"])
        missing = read_prompts("aer")["no screenshot"]
        if self.captioner:
            text = self.templates["aer_user"].format(
                intent=format_goal(view), last_actions=steps, cap=caption or _last_text(view) or missing
            )
            return (system, Message("user", text))
        text = self.templates["aer_user_vision"].format(intent=format_goal(view), last_actions=steps)
        return (system, Message("user", (text, last_step(view).screenshot or missing)))


@dataclass(frozen=True, kw_only=True)
class OfficialNNetNav(_Official, NNetNavJudge):
    """NNetNav in the package's words. A change that could not be described is left out, as there."""

    def description_messages(self, before: str, action: str | None, after: str) -> tuple[Message, ...]:
        system = self.templates["nnetnav_describer"].format(action_str=self.templates["nnetnav_actions"])
        user = self.templates["nnetnav_describer_user"].format(
            prev_axtree=before, curr_axtree=after, action=action
        )
        return (Message("system", system), Message("user", user))

    def describe_change(self, pair: Pair, was_asked: bool, description: str | None) -> str | None:
        return description

    def messages(self, view: View, changes: Sequence[str]) -> tuple[Message, ...]:
        user = self.templates["nnetnav_judge_user"].format(
            goal=format_goal(view), descriptions="\n".join(changes)
        )
        return (Message("system", self.templates["nnetnav_judge"]), Message("user", user))


@dataclass(frozen=True, kw_only=True)
class OfficialWebJudge(_Official, WebJudge):
    """WebJudge in its authors' words, its replies taken apart as they do.

    Their pictures for the verdict are called PNG, though JPEG is what is in them; so are these. Pictures of
    the goal are left out, as there. A screenshot that cannot be shown because none was recorded is not rated.
    """

    wants: ClassVar[Wants] = Wants(screenshots="all")

    def describe(self) -> JudgeTraits:
        return replace(super().describe(), method="webjudge")

    def key_points(self, reply: str) -> str:
        text = reply.replace("\n\n", "\n")
        marked = text.split("**Key Points**:")
        listed = marked[1] if len(marked) > 1 else text.split("Key Points:")[-1]
        return "\n".join(line.lstrip() for line in listed.splitlines())

    def rating(self, reply: str) -> tuple[int | None, str]:
        """The first number from 1 to 5 between the first "Score" and the next, and the first paragraph."""
        score = re.search("[1-5]", "".join(reply.split("Score")[1:2]))
        note = reply.split("**Reasoning**:")[-1].strip().split("\n\n")[0].replace("\n", " ")
        return (int(score[0]) if score else None), note

    def key_points_messages(self, view: View) -> tuple[Message, ...]:
        asked = self.templates["key_points"].format(task=view.goal.strip())
        return (Message("system", self.templates["key_points_system"]), Message("user", (asked,)))

    def rating_messages(self, view: View, points: str, screenshot: Image) -> tuple[Message, ...]:
        asked = self.templates["rating"].format(task=view.goal.strip(), key_points=points)
        return (Message("system", self.templates["rating_system"]), Message("user", (asked, screenshot)))

    def messages(
        self, view: View, points: str, chosen: Sequence[tuple[ViewStep, str]], has_screenshots: bool
    ) -> tuple[Message, ...]:
        templates = self.templates
        is_over = bool(view.steps) and view.steps[-1].action is None
        asked = (templates["verdict"] if chosen else templates["verdict_without_pictures"]).format(
            task=view.goal.strip(),
            key_points=points,
            last_actions=_numbered([step.action for step in view.steps[: -1 if is_over else None]]),
            thoughts=_numbered([note for _, note in chosen if note][: self.max_images]),
        )
        pictures = (_called_png(step.screenshot) for step, _ in chosen[: self.max_images])
        return (Message("system", templates["system"]), Message("user", (asked, *pictures)))


def _called_png(picture: Image) -> Image:
    return replace(picture, media_type="image/png") if picture.media_type == "image/jpeg" else picture


def _numbered(lines: Sequence[object]) -> str:
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, start=1))


_OFFICIAL = {
    SimplifiedJudge: OfficialSimplified,
    AerJudge: OfficialAer,
    NNetNavJudge: OfficialNNetNav,
    WebJudge: OfficialWebJudge,
}


def official_judge(judge: Judge, settings: Settings | None = None, checkout: Path | None = None) -> Judge:
    """The judge in the words of its authors: of the package, or for WebJudge of the ``checkout``.

    Raises OfficialPromptsError, also for a judge that neither has.
    """
    if isinstance(judge, WebJudge):
        return with_official_prompts(judge, read_webjudge_templates(checkout), ONLINE_MIND2WEB)
    made_by = f"agent-reward-bench {version_of_templates()}"
    return with_official_prompts(judge, read_templates(settings), made_by)


def with_official_prompts(judge: Judge, templates: Templates, made_by: str) -> Judge:
    """The judge with these prompts. Raises OfficialPromptsError for one that has none."""
    kind = _OFFICIAL.get(type(judge))
    if kind is None:
        raise OfficialPromptsError(
            f"{judge.name}: agent-reward-bench has no prompts for it; leave out --prompts official"
        )
    same = {each.name: getattr(judge, each.name) for each in fields(judge)}
    if isinstance(judge, SimplifiedJudge):
        same["shows_goal_images"] = False
    official = kind(**same, templates=templates)
    return replace(official, source=f"{judge.source}; prompts of {made_by}")


def format_goal(view: View) -> str:
    """The goal as released files have it, ending in a line break; a published dataset leaves that out."""
    return view.goal if view.goal.endswith("\n") else f"{view.goal}\n"


def _last_text(view: View) -> str | None:
    """The last observation of a run without web pages, and its answer; None of a run in a browser."""
    text = observation_apart(view)[1]
    return text and "\n\n".join([text, *([ANSWER.format(answer=view.answer)] if view.answer else [])])


def format_steps(templates: Templates, steps: Sequence[ViewStep]) -> str:
    """All steps as the package writes them, one after the other with nothing in between."""
    template = templates["step"]
    return "".join(
        template.format(step_number=number, url=step.url, action=step.action, reasoning=step.reasoning)
        for number, step in enumerate(steps, start=1)
    )
