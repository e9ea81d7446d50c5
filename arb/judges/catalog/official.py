"""The paper's judges, WebJudge, OSReward and browser-use with their authors' prompts, byte for byte.

The paper's prompts come from the installed package `agent-reward-bench`, in any version, or else from the
wheel that contains the labels. The others' prompts come from a checkout of their repository. The SHA-256 of
their templates must be the one for which the messages here were checked. The source code is parsed, not run,
since the templates are constants and importing the code would load many dependencies.

The messages are those of the package: steps are joined without a separator, goal images are left out, and a
missing tree is written as None. The package fails if there is no screenshot and does not support runs without
web pages. This module replaces a missing screenshot by a sentence, and in a run without web pages the tree or
caption by the last observation and the answer.
"""

import ast
import importlib.metadata
import importlib.util
import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Final

from arb.core.settings import Settings
from arb.judges.catalog.aer import AerJudge
from arb.judges.catalog.last_frames import BrowserUseJudge, OSRewardJudge
from arb.judges.catalog.nnetnav import NNetNavJudge, Pair
from arb.judges.catalog.simplified import SimplifiedJudge
from arb.judges.catalog.webjudge import RatedScreenshot, WebJudge
from arb.judges.prompting import ANSWER, last_step, observation_apart, prompts_hash, read_prompts
from arb.judges.types import (
    AnyJudge,
    DescribedJudge,
    Image,
    Judge,
    JudgeTraits,
    Message,
    View,
    ViewStep,
    Wants,
)
from leaderboard.labels.source import LabelsUnavailable, locate_labels

PACKAGE = "agent_reward_bench"
DEFAULTS, SCREENSHOT = "judge/defaults.py", "judge/__init__.py"
AER, NNETNAV = "judge/existing/aer.py", "judge/existing/nnetnav.py"
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
"""For each file of the package: our names of its templates, and the constants that contain them."""

ONLINE_MIND2WEB = "OSU-NLP-Group/Online-Mind2Web"
WEBJUDGE = "src/methods/webjudge_online_mind2web.py"
WEBJUDGE_SHA256 = "3b5869d47443bcb8d425770b57047a36e60ff28b1f1e7d649fa0778af1422fb2"
"""The `prompts_hash` of WebJudge's templates in the order of `WEBJUDGE_TEMPLATES`."""
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
"""Our names of WebJudge's templates, in the order of the authors' source file."""


@dataclass(frozen=True)
class FramesSource:
    """Where the templates of a judge with last screenshots are.

    ``texts`` has our names of texts by file, function and place among the function's texts. A file without
    functions is one text, named ``system``.
    """

    repository: str
    texts: Mapping[str, Mapping[str, Mapping[int, str]]]
    sha256: str


FRAMES: Final[Mapping[type, FramesSource]] = {
    OSRewardJudge: FramesSource(
        "OS-Copilot/OSReward",
        {
            "eval_pipeline/prompts/binary_v1.txt": {},
            "eval_pipeline/run_judge.py": {
                "build_history_text": {2: "empty", 5: "step"},
                "build_messages": {11: "shown", 12: "platform", 13: "task", 14: "steps"},
            },
        },
        "f4a58cbf6df073f17b235d8a60abb492d47772867af0b39f5a42d9263f48ee94",
    ),
    BrowserUseJudge: FramesSource(
        "browser-use/browser-use",
        {
            "browser_use/agent/judge.py": {
                "_truncate_text": {2: "cut"},
                "construct_judge_messages": {8: "system", 11: "user"},
            },
            "browser_use/agent/views.py": {"agent_steps": {1: "step", 3: "actions", 5: "error"}},
        },
        "ef7b2f9ee2efbe3bb1f45893f813a29e392dd1e9efce6af30213b4ff14bab525",
    ),
}

Templates = Mapping[str, str]
"""The authors' templates by name, stripped if their code strips them."""


class OfficialPromptsError(ValueError):
    """Raised if the official prompts are not available; the message says why and what to do."""


def read_templates(settings: Settings | None = None) -> Templates:
    """Return the templates of the installed package or of the wheel, which is downloaded if needed.

    Raises OfficialPromptsError if they cannot be read.
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
    """Return the folder of the installed package, or else its path in the wheel, downloaded if needed."""
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

    Raises OfficialPromptsError if some are missing from where version 0.1.2 has them.
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
            f"this agent-reward-bench has no template for {', '.join(absent)} where version 0.1.2 has one; "
            "install agent-reward-bench==0.1.2, or leave out --prompts official"
        )
    return {name: text or "" for name, text in found.items()}


def read_webjudge_templates(checkout: Path | None, sha256: str | None = None) -> Templates:
    """Return WebJudge's templates in a checkout of Online-Mind2Web.

    Raises OfficialPromptsError if they cannot be read or do not have the expected SHA-256.
    """
    if checkout is None:
        raise OfficialPromptsError(
            "WebJudge's prompts belong to its authors: name a checkout of "
            f"https://github.com/{ONLINE_MIND2WEB} with --prompts-from, or leave out --prompts official"
        )
    try:
        module = ast.parse((checkout / WEBJUDGE).read_bytes())
    except (OSError, ValueError, SyntaxError) as error:
        raise OfficialPromptsError(
            f"--prompts-from {checkout}: its {WEBJUDGE} cannot be read; name the folder of a checkout of "
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
            f"--prompts-from {checkout}: its {WEBJUDGE} has prompts that this version does not know "
            f"(SHA-256 {prompts_hash(*texts)[:12]}, not {wanted[:12]}); check out another commit, or leave "
            "out --prompts official"
        )
    return dict(zip(WEBJUDGE_TEMPLATES, texts, strict=True))


def read_frames_templates(source: FramesSource, checkout: Path | None) -> Templates:
    """Return the templates of a judge in a checkout of its repository.

    In f-strings, an expression stays as its source in braces (see `fill`). Raises OfficialPromptsError if the
    templates cannot be read or do not have the expected SHA-256.
    """
    url = f"https://github.com/{source.repository}"
    if checkout is None:
        raise OfficialPromptsError(
            f"these prompts belong to their authors: name a checkout of {url} with --prompts-from, or leave "
            "out --prompts official"
        )
    found: dict[str, str] = {}
    for name, functions in source.texts.items():
        try:
            content = (checkout / name).read_text(encoding="utf-8")
            module = ast.parse(content if functions else "")
        except (OSError, ValueError, SyntaxError) as error:
            raise OfficialPromptsError(
                f"--prompts-from {checkout}: its {name} cannot be read; name a folder "
                f"with a checkout of {url}"
            ) from error
        if not functions:
            found["system"] = content.strip()
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef) and node.name in functions:
                texts = list(_texts_in(node))
                places = functions[node.name].items()
                found |= {ours: texts[place] for place, ours in places if place < len(texts)}
    if (sha256 := prompts_hash(*found.values())) != source.sha256:
        raise OfficialPromptsError(
            f"--prompts-from {checkout}: has prompts that this version does not know (SHA-256 {sha256[:12]}, "
            f"not {source.sha256[:12]}); check out another commit, or leave out --prompts official"
        )
    return found


def _texts_in(node: ast.AST) -> Iterator[str]:
    """Yield the strings in a piece of source in their order; an f-string is one, with its expressions."""
    if isinstance(node, ast.JoinedStr):
        yield "".join(
            str(part.value) if isinstance(part, ast.Constant) else f"{{{ast.unparse(part.value)}}}"
            for part in node.values
            if isinstance(part, ast.Constant | ast.FormattedValue)
        )
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    else:
        for child in ast.iter_child_nodes(node):
            yield from _texts_in(child)


def fill(template: str, **values: object) -> str:
    """Return a template of `_texts_in` with a value for the first name in each of its expressions.

    If the value is empty, an expression such as ``{task or 'none'}`` becomes ``none``.
    """

    def value(found: re.Match[str]) -> str:
        name, other = found["name"], found["other"]
        return found[0] if name not in values else str(values[name]) or other or ""

    return re.sub(
        r"\{(?:len\(|trace\[')?(?P<name>\w+)[^{}\n]*?(?: or '(?P<other>[^']*)')?\}", value, template
    )


def _package_version() -> str:
    try:
        return importlib.metadata.version("agent-reward-bench")
    except importlib.metadata.PackageNotFoundError:
        return "0.1.2"


def _constants(module: ast.Module) -> Mapping[str, str]:
    """Return the string constants of a module by name, stripped if the module strips them later."""
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
    """Return the first text that ``wanted`` finds in a node of a function, or None."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            texts = map(wanted, ast.walk(node))
            return next((text for text in texts if text is not None), None)
    return None


def _text_of_part(node: ast.AST) -> str | None:
    """Return the text in ``{"type": "text", "text": …}``, or None."""
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == "text" and isinstance(value, ast.Constant):
                return str(value.value)
    return None


def _assigned_text(node: ast.AST) -> str | None:
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
        return str(node.value.value)
    return None


@dataclass(frozen=True, kw_only=True)
class _Official(DescribedJudge):
    """The base class of judges that send their authors' prompts."""

    templates: Templates = field(hash=False)

    @property
    def prompts_hash(self) -> str:
        return prompts_hash(*self.templates.values())

    def describe(self) -> JudgeTraits:
        return replace(super().describe(), is_official=True)


@dataclass(frozen=True, kw_only=True)
class OfficialSimplified(_Official, SimplifiedJudge):
    """The simplified judge with the package's prompts."""

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
    """AER-C and AER-V with the package's prompts."""

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
    """NNetNav with the package's prompts. Like the package, it leaves out changes without a description."""

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
    """WebJudge with its authors' prompts. Replies are parsed as in their code.

    As in their code, the verdict's JPEG pictures are declared as PNG, and goal images are left out. Steps
    without a screenshot are not rated.
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
        """Return the first digit from 1 to 5 after "Score", or None, and the paragraph after "Reasoning"."""
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
        self, view: View, points: str, chosen: Sequence[RatedScreenshot], has_screenshots: bool
    ) -> tuple[Message, ...]:
        templates = self.templates
        is_over = bool(view.steps) and view.steps[-1].action is None
        asked = (templates["verdict"] if chosen else templates["verdict_without_pictures"]).format(
            task=view.goal.strip(),
            key_points=points,
            last_actions=_numbered([step.action for step in view.steps[: -1 if is_over else None]]),
            thoughts=_numbered([each.note for each in chosen if each.note][: self.max_images]),
        )
        pictures = (_called_png(each.screenshot) for each in chosen[: self.max_images])
        return (Message("system", templates["system"]), Message("user", (asked, *pictures)))


@dataclass(frozen=True, kw_only=True)
class OfficialOSReward(_Official, OSRewardJudge):
    """OSReward's judge with its authors' prompt. Clicks are not marked in screenshots."""

    wants: ClassVar[Wants] = Wants(screenshots="all")

    def describe(self) -> JudgeTraits:
        return replace(super().describe(), method="osreward", takes_text_for_screenshots=False)

    def messages(self, view: View) -> tuple[Message, ...]:
        templates, images = self.templates, self.screenshots(view)
        steps = []
        for number, step in enumerate(view.steps):
            thought, action = (
                (text or "").strip() or templates["empty"] for text in (step.reasoning, step.action)
            )
            steps.append(fill(templates["step"], step_index=number, thought=thought, action=action))
        texts = [
            fill(templates["shown"], items=len(images)),
            fill(templates["platform"], platform="Web"),
            fill(templates["task"], instruction=view.goal.strip()),
            fill(templates["steps"], history_text="\n\n".join(steps)),
        ]
        return (Message("system", templates["system"]), Message("user", (*images, "\n".join(texts))))


@dataclass(frozen=True, kw_only=True)
class OfficialBrowserUse(_Official, BrowserUseJudge):
    """The judge of browser-use with its authors' prompt, without a ground truth.

    The original tells the current date. The date of a recorded run is not known, so the prompt says so.
    """

    wants: ClassVar[Wants] = Wants(screenshots="all")

    def describe(self) -> JudgeTraits:
        return replace(super().describe(), method="browseruse", takes_text_for_screenshots=False)

    def messages(self, view: View) -> tuple[Message, ...]:
        templates, images = self.templates, self.screenshots(view)
        steps = []
        for number, step in enumerate(view.steps, start=1):
            if step.action is not None:
                text = fill(templates["step"], i=number)
                text += fill(templates["actions"], action_json=json.dumps([step.action], indent=1))
                if number < len(view.steps) and (error := view.steps[number].error):
                    text += fill(templates["error"], j=1, error=error)
                steps.append(text)
        system = fill(templates["system"], current_date="(not recorded)", ground_truth_section="")
        asked = fill(
            templates["user"],
            task_truncated=self._cut(view.goal.strip()),
            ground_truth_prompt="",
            steps_text_truncated=self._cut("\n".join(steps)),
            final_result_truncated=self._cut(final_result(view)),
            encoded_images=len(images),
        )
        return (Message("system", system), Message("user", (asked, *map(_called_png, images))))

    def _cut(self, text: str, most: int = 40_000) -> str:
        return text if len(text) <= most else text[: most - 23] + self.templates["cut"]


def final_result(view: View) -> str:
    """Return the agent's answer or its last message to the user, or an empty text."""
    last = next((step.action for step in reversed(view.steps) if step.action), "")
    return view.answer or (last if last.startswith(("send_msg_to_user(", "report_infeasible(")) else "")


def _called_png(picture: Image) -> Image:
    return replace(picture, media_type="image/png") if picture.media_type == "image/jpeg" else picture


def _numbered(lines: Sequence[object]) -> str:
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, start=1))


_OFFICIAL: Final[Mapping[type, Callable[..., Judge]]] = {
    SimplifiedJudge: OfficialSimplified,
    AerJudge: OfficialAer,
    NNetNavJudge: OfficialNNetNav,
    WebJudge: OfficialWebJudge,
    OSRewardJudge: OfficialOSReward,
    BrowserUseJudge: OfficialBrowserUse,
}


def official_judge(judge: AnyJudge, settings: Settings | None = None, checkout: Path | None = None) -> Judge:
    """Return a judge like this one that sends its authors' prompts, for later judges read from ``checkout``.

    Raises OfficialPromptsError if the prompts cannot be read or the judge has no official prompts.
    """
    if isinstance(judge, WebJudge):
        return with_official_prompts(judge, read_webjudge_templates(checkout), ONLINE_MIND2WEB)
    if (source := FRAMES.get(type(judge))) is not None:
        return with_official_prompts(judge, read_frames_templates(source, checkout), source.repository)
    return with_official_prompts(judge, read_templates(settings), f"agent-reward-bench {_package_version()}")


def with_official_prompts(judge: AnyJudge, templates: Templates, made_by: str) -> Judge:
    """Return a judge like this one that sends these templates. Raises OfficialPromptsError if it has none."""
    kind = _OFFICIAL.get(type(judge))
    if kind is None:
        raise OfficialPromptsError(
            f"agent-reward-bench has no prompts for {judge.name}; leave out --prompts official"
        )
    same = {**vars(judge), "source": f"{judge.source}; prompts of {made_by}"}
    if isinstance(judge, SimplifiedJudge):
        same["shows_goal_images"] = False
    return kind(**same, templates=templates)


def format_goal(view: View) -> str:
    """Return the goal with a final line break, as in the released files. Datasets leave it out."""
    return view.goal if view.goal.endswith("\n") else f"{view.goal}\n"


def _last_text(view: View) -> str | None:
    """Return the last text observation and the answer, or None if no observation is a text."""
    text = observation_apart(view)[1]
    if text is not None and view.answer:
        return f"{text}\n\n{ANSWER.format(answer=view.answer)}"
    return text


def format_steps(templates: Templates, steps: Sequence[ViewStep]) -> str:
    """Return the text of all steps in the package's format."""
    template = templates["step"]
    return "".join(
        template.format(step_number=number, url=step.url, action=step.action, reasoning=step.reasoning)
        for number, step in enumerate(steps, start=1)
    )
