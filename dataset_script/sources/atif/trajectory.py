"""Turn a trajectory, its continuations and its subagents' trajectories into the steps of one run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from arb.core.trajectory import RunUsage, Step
from dataset_script.sources.files import content_of, file_inside, read_json_object
from dataset_script.sources.problems import Note, UnusableFileError
from dataset_script.sources.steps import in_order
from dataset_script.sources.values import MOST_IMAGE_BYTES, add_up, call_text, mapping, objects, valid_text

VERSIONS: Final = frozenset(f"ATIF-v1.{minor}" for minor in range(9))
_AGENT_FOLDER: Final = "/logs/agent/"
"""The path of a trial's ``agent`` folder in its container. Some programs record paths below it."""
_MOST_NESTED: Final = 8
"""The maximum number of levels of subagents that are read."""
FINAL_CALLS: Final = frozenset(
    {"attempt_completion", "complete_task", "done", "final_answer", "finish", "mark_task_complete", "submit"}
    | {"task_complete", "task_done"}
)
"""Calls that end a run if they come last. They contain the answer and do not count as actions."""
_ANSWERS: Final = ("result", "answer", "final_answer", "message", "output", "response", "summary", "text")


def read_document(path: Path) -> Mapping[str, Any]:
    document = read_json_object(path)
    version = valid_text(document.get("schema_version")) or "no schema_version"
    if version not in VERSIONS:
        raise UnusableFileError(
            "not_a_trajectory", f"{version[:40]}: only ATIF-v1.0 to ATIF-v1.8 can be read"
        )
    return document


def malformed_parts(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the place of each part that does not match the format. Such parts are not read."""
    steps = document.get("steps")
    if not isinstance(steps, list):
        yield "steps is not a list"
        return
    for place, step in enumerate(steps):
        if not isinstance(step, dict):
            yield f"steps[{place}] is not an object"
            continue
        if step.get("source") not in ("agent", "system", "user"):
            yield f"steps[{place}].source"
        if not isinstance(step.get("message", ""), str | list | None):
            yield f"steps[{place}].message"
        observation = step.get("observation")
        if not isinstance(observation, dict | None):
            yield f"steps[{place}].observation"
        results = mapping(observation).get("results")
        for name, members in (("tool_calls", step.get("tool_calls")), ("results", results)):
            if not isinstance(members, list | None):
                yield f"steps[{place}].{name}"
            elif not all(isinstance(each, dict) for each in members or ()):
                yield f"a member of steps[{place}].{name}"


def usage_in(documents: Sequence[Mapping[str, Any]]) -> RunUsage | None:
    """Return what a run used: the last document's final metrics, or else the sum over all steps."""
    final = mapping(documents[-1].get("final_metrics")) if documents else {}
    steps = [step for document in documents for step in objects(document.get("steps"))]
    used = [mapping(step.get("metrics")) for step in steps if step.get("is_copied_context") is not True]
    times = [each for step in steps if (each := seconds_of(step.get("timestamp"))) != float("inf")]
    names = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens", "cost_usd": "cost_usd"}
    found = {
        ours: add_up(
            [final[f"total_{name}"]] if f"total_{name}" in final else [each.get(name) for each in used]
        )
        for ours, name in names.items()
    }
    return RunUsage.of(**found, seconds=max(times) - min(times) if len(times) > 1 else None)


def seconds_of(time: Any) -> float:
    """Return a time in ISO format as seconds, or infinity if it is something else."""
    try:
        return datetime.fromisoformat(time).timestamp()
    except (TypeError, ValueError, OverflowError, OSError):
        return float("inf")


def _file_named(name: Any, path: Path, root: Path) -> Path:
    text = valid_text(name) or ""
    return file_inside(text.removeprefix(_AGENT_FOLDER), path.parent, root)


def files_named(names: Iterable[Any], path: Path, root: Path) -> Iterator[Path]:
    for name in names:
        with suppress(UnusableFileError):
            yield _file_named(name, path, root)


def _results(step: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return objects(mapping(step.get("observation")).get("results"))


def references(document: Mapping[str, Any], depth: int = 0) -> Iterator[Any]:
    """Yield the names of files that a trajectory or an embedded subagent continues in or refers to."""
    yield document.get("continued_trajectory_ref")
    for step in objects(document.get("steps")):
        for result in _results(step):
            for reference in objects(result.get("subagent_trajectory_ref")):
                yield reference.get("trajectory_path")
    for subagent in objects(document.get("subagent_trajectories")) if depth < _MOST_NESTED else ():
        yield from references(subagent, depth + 1)


def _name(call: Mapping[str, Any]) -> str:
    return valid_text(call.get("function_name")) or "unknown"


def _calls_text(calls: Iterable[Mapping[str, Any]]) -> str:
    return "\n".join(call_text(_name(call), call.get("arguments")) for call in calls)


def _beside(texts: Iterable[str]) -> str:
    """Join the texts written with an action, leaving out any that one of the next three contains."""
    parts = [text.strip() for text in texts if text.strip()]
    kept = []
    for number, part in enumerate(parts):
        if not any(part in later for later in parts[number + 1 : number + 4]):
            kept.append(part)
    return "\n\n".join(kept)


def answer_in(arguments: Any) -> str | None:
    """Return the answer in a final call: the argument with a usual name, or the only string, or None."""
    found = {key: valid_text(value) for key, value in mapping(arguments).items()}
    texts = {key: text for key, text in found.items() if text}
    named = next((texts[key] for key in _ANSWERS if key in texts), None)
    return next(iter(texts.values())) if named is None and len(texts) == 1 else named


@dataclass(slots=True)
class _Agent:
    """The agent or a subagent, with what it has observed, thought and written since its last action."""

    name: str = ""
    has_begun: bool = False
    seen: list[str] = field(default_factory=list)
    pictures: list[Path] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def rest(self, known: str = "") -> list[str]:
        """Return the texts seen and written since the last action, except those that ``known`` contains."""
        texts = (text for text in (*self.seen, *self.messages) if text.strip() and text.strip() not in known)
        return [f"[{self.name}] {text}" for text in texts]


@dataclass(slots=True)
class RunReader:
    """A run that is being read, step by step."""

    root: Path
    notes: list[Note] = field(default_factory=list)
    goal: list[str] = field(default_factory=list)
    copied_goal: list[str] = field(default_factory=list)
    goal_images: list[bytes] = field(default_factory=list)
    model: str | None = None
    steps: list[Step] = field(default_factory=list)
    main: _Agent = field(default_factory=_Agent)
    side: dict[str, _Agent] = field(default_factory=dict)
    last: tuple[int, Sequence[Mapping[str, Any]], Sequence[str]] = (-1, (), ())
    """The main agent's last action: the step's number, the calls and the texts written with them."""
    documents: list[Mapping[str, Any]] = field(default_factory=list)
    """The run's trajectory and its continuations."""
    opened: set[Path] = field(default_factory=set)
    delegated: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    """The embedded subagents that were read, keyed by ``id()``. Keeping them here keeps these ids unique."""
    missing: dict[str, list[str]] = field(default_factory=dict)
    """The reasons why files that the run names cannot be read, keyed by the code of the note on them."""

    def add(
        self, document: Mapping[str, Any], path: Path, agent: _Agent, around: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        """Read a trajectory and its continuations. ``around`` has those that called it, outermost first."""
        self.opened.add(path.resolve())
        following: tuple[Mapping[str, Any], Path] | None = (document, path)
        while following is not None:
            document, path = following
            if agent is self.main:
                self.documents.append(document)
            steps, notes = in_order(objects(document.get("steps")), lambda step: step.get("step_id"))
            self.notes += notes
            for step in steps:
                self._add_step(step, path, self._actor(step, agent), (*around, document))
            name = document.get("continued_trajectory_ref")
            following = None if name is None else self._open(name, path)

    def finish(self) -> str | None:
        """Add the final observation. Return the answer, or None if the agent gave none."""
        main, (place, calls, beside) = self.main, self.last
        for agent in self.side.values():
            main.seen += agent.rest("\n".join(main.seen))
        answer = main.messages.pop() if main.messages else None
        final = [call for call in calls if _name(call) in FINAL_CALLS]
        if answer is None and final:
            answers = (answer_in(call.get("arguments")) for call in final)
            answer = next((each for each in answers if each is not None), None)
            step = self.steps[place]
            if others := _calls_text(call for call in calls if _name(call) not in FINAL_CALLS):
                self.steps[place] = replace(step, action=others)
            elif place == len(self.steps) - 1:
                self.steps.pop()
                answer = answer or next((text for text in reversed(beside) if text.strip()), None)
                main.seen[:0] = [step.text] if step.text else []
                if not main.pictures and isinstance(step.screenshot, Path):
                    main.pictures = [step.screenshot]
                main.thoughts = [text for text in beside if text != answer]
        self._add(main, None, [*main.thoughts, *main.messages])
        for code, reasons in self.missing.items():
            self.notes.append(Note(code, f"{len(reasons)}: {'; '.join(reasons[:3])}"))
        return answer

    def _actor(self, step: Mapping[str, Any], agent: _Agent) -> _Agent:
        """Return who took a step: ``agent``, or a subagent that Claude Code recorded in the same file."""
        extra = mapping(step.get("extra"))
        if extra.get("is_sidechain") is not True:
            return agent
        name = valid_text(extra.get("agent_id")) or "subagent"
        return self.side.setdefault(name, _Agent(name))

    def _add_step(
        self, step: Mapping[str, Any], path: Path, agent: _Agent, around: Sequence[Mapping[str, Any]]
    ) -> None:
        source, (message, pictures) = step.get("source"), self._content(step.get("message"), path)
        is_goal = source == "user" and agent is self.main and not agent.has_begun
        if step.get("is_copied_context") is True:
            self.copied_goal += [message] if is_goal and message else []
            return
        if source == "agent":
            self._act(step, message, agent)
        elif is_goal:
            self.goal += [message] if message else []
            self.goal_images += [image for each in pictures if (image := self._image(each)) is not None]
        elif agent.has_begun:  # before that, it is the prompt of the system or of a subagent
            if message or pictures or _results(step):
                self._answered(agent)
            agent.seen += [f"{'User' if source == 'user' else 'System'}: {message}"] if message else []
            agent.pictures += pictures
        self._observe(step, path, agent, around)

    def _act(self, step: Mapping[str, Any], message: str, agent: _Agent) -> None:
        agent.has_begun = True
        agent.thoughts.append(valid_text(step.get("reasoning_content")) or "")
        calls = [call for call in objects(step.get("tool_calls")) if call]
        if agent is self.main:
            self.model = self.model or valid_text(step.get("model_name"))
        if not calls and not _results(step):  # belongs to the next action, or is the answer
            agent.messages += [message] if message.strip() else []
            return
        beside = [*agent.thoughts, *agent.messages, *([message] if calls else [])]
        if agent is self.main:
            self.last = len(self.steps), calls, beside
        self._add(agent, _calls_text(calls) or message or None, beside)

    def _answered(self, agent: _Agent) -> None:
        """If the agent wrote messages since its last action, add a step for them, since they got a reply."""
        if agent.messages:
            self.last = (-1, (), ()) if agent is self.main else self.last
            self._add(agent, None, [*agent.thoughts, *agent.messages])

    def _add(self, agent: _Agent, action: str | None, beside: Sequence[str]) -> None:
        reasoning = f"[{agent.name}] {_beside(beside)}".rstrip() if agent.name else _beside(beside)
        step = Step(
            num=len(self.steps),
            action=action,
            reasoning=reasoning or None,
            screenshot=agent.pictures[-1] if agent.pictures else None,
            text="\n".join(agent.seen) or None,
        )
        if len(agent.pictures) > 1:
            self.notes.append(Note("more_pictures", f"step {step.num}: {len(agent.pictures)}"))
        self.steps.append(step)
        agent.seen, agent.pictures, agent.thoughts, agent.messages = [], [], [], []

    def _observe(
        self, step: Mapping[str, Any], path: Path, agent: _Agent, around: Sequence[Mapping[str, Any]]
    ) -> None:
        """Record the results of a step's calls in order, each with the call's name if there are several."""
        calls = objects(step.get("tool_calls"))
        places = {valid_text(call.get("tool_call_id")): place for place, call in enumerate(calls)}
        by_place = [
            (places.get(valid_text(each.get("source_call_id")) or "", len(calls)), each)
            for each in _results(step)
        ]
        for place, result in sorted(by_place, key=itemgetter(0)):
            text, pictures = self._content(result.get("content"), path)
            for reference in objects(result.get("subagent_trajectory_ref")):
                agent.seen += self._delegate(reference, path, text, around)
            if text and place < len(calls) > 1:
                text = f"[{_name(calls[place])}] {text}"
            agent.seen += [text] if text else []
            agent.pictures += pictures

    def _delegate(
        self, reference: Mapping[str, Any], path: Path, result: str, around: Sequence[Mapping[str, Any]]
    ) -> list[str]:
        """Add a subagent's steps. Return the last texts that it saw and wrote, except those in ``result``."""
        name = reference.get("trajectory_id")
        found = None
        for near in (around[-1], around[0]):
            for each in objects(near.get("subagent_trajectories")):
                if found is None and name is not None and each.get("trajectory_id") == name:
                    found = each
        if found is None:
            opened = self._open(reference.get("trajectory_path"), path)
        else:
            opened = None if id(found) in self.delegated else (found, path)
            self.delegated[id(found)] = found
        if opened is None:
            return []
        if len(around) > _MOST_NESTED:
            self._miss("missing_reference", f"subagents are nested more than {_MOST_NESTED} deep")
            return []
        agent = _Agent(valid_text(mapping(opened[0].get("agent")).get("name")) or "subagent")
        self.add(*opened, agent, around)
        return agent.rest(result)

    def _open(self, name: Any, path: Path) -> tuple[Mapping[str, Any], Path] | None:
        """Return a referenced file's trajectory and path, or None if it was read before or cannot be read."""
        try:
            if not isinstance(name, str):
                raise UnusableFileError(
                    "unreadable", "a subagent's trajectory is neither embedded nor a file"
                )
            file = _file_named(name, path, self.root)
            is_new = file.resolve() not in self.opened
            self.opened.add(file.resolve())
            return (read_document(file), file) if is_new else None
        except UnusableFileError as error:
            self._miss("missing_reference", str(error))
            return None

    def _content(self, value: Any, path: Path) -> tuple[str, list[Path]]:
        """Return the text of a message or result, and the files of its pictures."""
        if not isinstance(value, list):
            return valid_text(value) or "", []
        texts, pictures = [], []
        for part in objects(value):
            if part.get("type") == "image":
                try:
                    pictures.append(_file_named(mapping(part.get("source")).get("path"), path, self.root))
                except UnusableFileError as error:
                    self._miss("missing_screenshot", str(error))
            else:
                texts.append("[audio]" if part.get("type") == "audio" else valid_text(part.get("text")) or "")
        return "\n".join(filter(None, texts)), pictures

    def _image(self, path: Path) -> bytes | None:
        image = content_of(path, MOST_IMAGE_BYTES + 1)
        if 0 < len(image) <= MOST_IMAGE_BYTES:
            return image
        self._miss(
            "missing_screenshot", f"{path.name} is empty or has more than {MOST_IMAGE_BYTES / 1e6:g} MB"
        )
        return None

    def _miss(self, code: str, reason: str) -> None:
        self.missing.setdefault(code, []).append(reason)
