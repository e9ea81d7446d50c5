"""The judges of the paper, WebJudge, OSReward and browser-use, with exactly their authors' prompts.

The paper's prompts come from the installed package `agent-reward-bench`, in any version, or else from the
wheel that contains the labels. The prompts of each other judge come from a checkout of its repository. Only
templates with a known SHA-256 are accepted, since the messages here were checked with these. The source code
is parsed, not run: the templates are constants, and importing the code would load many dependencies.

The messages are those of the package: steps are joined without a separator, goal images are left out, and a
missing tree is written as None. The package fails if there is no screenshot, and it does not support runs
without web pages. This module replaces a missing screenshot with a sentence. In a run without web pages, it
replaces the tree or caption with the last observation and the answer.
"""

import ast
import importlib.metadata
import importlib.util
import json
import re
import tomllib
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
from arb.judges.wrappers import JudgeWrapper
from leaderboard.labels.source import LabelsUnavailable, locate_labels

PACKAGE = "agent_reward_bench"

Templates = Mapping[str, str]
"""The authors' templates, keyed by name. They are stripped if the authors' code strips them."""


@dataclass(frozen=True)
class PromptSource:
    """A source of templates: the package, or a checkout of a ``repository`` on GitHub.

    ``files`` maps each file to its templates, and our name of each template to its place in the file (see
    ``official.toml``).
    """

    files: Mapping[str, Mapping[str, str]]
    repository: str = ""
    sha256: str = ""


SOURCES: Final = {
    name: PromptSource(**fields)
    for name, fields in tomllib.loads(
        Path(__file__).with_name("official.toml").read_text(encoding="utf-8")
    ).items()
}


class OfficialPromptsError(ValueError):
    """Raised if the official prompts are not available. The message says why and what to do."""


def read_templates(
    source: PromptSource, settings: Settings | None = None, checkout: Path | None = None
) -> Templates:
    """Return the templates of a source, from a checkout of its repository or else from the package.

    Raises OfficialPromptsError if they cannot be read, are incomplete, or do not match the source's SHA-256.
    """
    url, place = f"https://github.com/{source.repository}", f"--prompts-from {checkout}"
    if source.repository and checkout is None:
        raise OfficialPromptsError(
            f"these prompts belong to their authors: name a checkout of {url} with --prompts-from, or leave "
            "out --prompts official"
        )
    folder = checkout if source.repository and checkout is not None else _package(settings)
    found: dict[str, str | None] = {}
    for file, places in source.files.items():
        try:
            content = (folder / file).read_text(encoding="utf-8")
            module = ast.parse(content if file.endswith(".py") else "")
        except (OSError, KeyError, ValueError, SyntaxError, zipfile.BadZipFile) as error:
            if source.repository:
                raise OfficialPromptsError(
                    f"{place}: its {file} cannot be read; name the folder of a checkout of {url}"
                ) from error
            raise OfficialPromptsError(
                f"agent-reward-bench's {file} cannot be read; reinstall agent-reward-bench==0.1.2"
            ) from error
        for name, where in places.items():
            found[name] = content.strip() if where == "*" else _text_at(module, where)
    templates = {name: text for name, text in found.items() if text is not None}
    if source.sha256 and (sha256 := prompts_hash(*templates.values())) != source.sha256:
        raise OfficialPromptsError(
            f"{place}: has prompts that this version does not know (SHA-256 {sha256[:12]}, not "
            f"{source.sha256[:12]}); check out another commit, or leave out --prompts official"
        )
    if absent := [name for name in found if name not in templates]:
        raise OfficialPromptsError(
            f"this agent-reward-bench has no template for {', '.join(absent)} where version 0.1.2 has one; "
            "install agent-reward-bench==0.1.2, or leave out --prompts official"
        )
    return templates


def _package(settings: Settings | None) -> Path | zipfile.Path:
    """Return the folder of the installed package, or else its path in the wheel, which may be downloaded."""
    package = importlib.util.find_spec(PACKAGE)
    if package is not None and package.origin is not None:
        return Path(package.origin).parent
    try:
        wheel = locate_labels((settings or Settings()).model_copy(update={"labels": "wheel"}))
    except LabelsUnavailable as problem:
        raise OfficialPromptsError(f"the official prompts cannot be loaded: {problem}") from problem
    return zipfile.Path(wheel, f"{PACKAGE}/")


_PLACE: Final = re.compile(r"(?P<name>\w+)(?:\.(?P<variable>\w+))?(?:\[(?P<number>\d+)\])?")


def _text_at(module: ast.Module, place: str) -> str | None:
    """Return the string at a place, written as in ``official.toml``, or None if there is no such string."""
    parsed = _PLACE.fullmatch(place.removesuffix(".strip()"))
    if parsed is None:
        raise ValueError(f"{place} is not a place of a text")
    nodes = _named(module, parsed["name"])
    if parsed["variable"]:
        nodes = [inner for node in nodes for inner in _named(node, parsed["variable"])]
    texts = [text for node in nodes for text in _texts_in(node)]
    number = int(parsed["number"] or 0)
    if number >= len(texts):
        return None
    return texts[number].strip() if place.endswith(".strip()") else texts[number]


def _named(inside: ast.AST, name: str) -> list[ast.AST]:
    """Return the functions with this name, and the constants (as strings) that are assigned to it."""
    found: list[ast.AST] = []
    for node in ast.walk(inside):
        match node:
            case ast.FunctionDef(name=there) | ast.AsyncFunctionDef(name=there) if there == name:
                found.append(node)
            case ast.Assign([ast.Name(there)], ast.Constant(value)) if there == name:
                found.append(ast.Constant(str(value)))  # also of a number
    return found


def _texts_in(node: ast.AST) -> Iterator[str]:
    """Yield the strings in a piece of source, in order. An f-string is one string, with its expressions."""
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
    """Return a template from `_texts_in`, with each expression replaced by the value of its first name.

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

    method: ClassVar[str] = "webjudge"
    wants: ClassVar[Wants] = Wants(screenshots="all")

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

    method: ClassVar[str] = "osreward"
    takes_texts: ClassVar[bool] = False
    wants: ClassVar[Wants] = Wants(screenshots="all")

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

    The original prompt gives the current date. This one says that the date of the recorded run is not known.
    """

    method: ClassVar[str] = "browseruse"
    takes_texts: ClassVar[bool] = False
    wants: ClassVar[Wants] = Wants(screenshots="all")

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
    """Return the agent's answer or its last message to the user, or an empty string."""
    last = next((step.action for step in reversed(view.steps) if step.action), "")
    return view.answer or (last if last.startswith(("send_msg_to_user(", "report_infeasible(")) else "")


def _called_png(picture: Image) -> Image:
    return replace(picture, media_type="image/png") if picture.media_type == "image/jpeg" else picture


def _numbered(lines: Sequence[object]) -> str:
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, start=1))


_OFFICIAL: Final[Mapping[type, tuple[str, Callable[..., Judge]]]] = {
    SimplifiedJudge: ("agent-reward-bench", OfficialSimplified),
    AerJudge: ("agent-reward-bench", OfficialAer),
    NNetNavJudge: ("agent-reward-bench", OfficialNNetNav),
    WebJudge: ("webjudge", OfficialWebJudge),
    OSRewardJudge: ("osreward", OfficialOSReward),
    BrowserUseJudge: ("browser-use", OfficialBrowserUse),
}
"""For each judge class, the name of its source in `SOURCES` and the class that uses the authors' prompts."""


def is_from_checkout(judge: AnyJudge) -> bool:
    """Return whether a judge, or one of its parts, sends prompts that were read from a checkout."""
    if isinstance(judge, JudgeWrapper):
        return any(map(is_from_checkout, judge.parts.values()))
    return any(type(judge) is made and SOURCES[name].repository for name, made in _OFFICIAL.values())


def official_judge(judge: AnyJudge, settings: Settings | None = None, checkout: Path | None = None) -> Judge:
    """Return a judge like this one that sends its authors' prompts.

    The prompts of judges that are not from the paper are read from ``checkout``. Raises OfficialPromptsError
    if the prompts cannot be read or the judge has no official prompts.
    """
    name, _ = _OFFICIAL.get(type(judge), ("agent-reward-bench", None))
    templates, made_by = read_templates(SOURCES[name], settings, checkout), SOURCES[name].repository
    return with_official_prompts(judge, templates, made_by or f"agent-reward-bench {_package_version()}")


def with_official_prompts(judge: AnyJudge, templates: Templates, made_by: str) -> Judge:
    """Return a judge like this one that sends these templates. ``made_by`` names their authors.

    Raises OfficialPromptsError if the judge has no official prompts.
    """
    if type(judge) not in _OFFICIAL:
        raise OfficialPromptsError(
            f"agent-reward-bench has no prompts for {judge.name}; leave out --prompts official"
        )
    same = {**vars(judge), "source": f"{judge.source}; prompts of {made_by}"}
    if isinstance(judge, SimplifiedJudge):
        same["shows_goal_images"] = False
    return _OFFICIAL[type(judge)][1](**same, templates=templates)


def format_goal(view: View) -> str:
    """Return the goal with a final line break, as in the released files. Datasets leave out the break."""
    return view.goal if view.goal.endswith("\n") else f"{view.goal}\n"


def _last_text(view: View) -> str | None:
    """Return the last observation and the agent's answer as one text. None if no observation is text."""
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
