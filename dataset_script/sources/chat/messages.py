"""Turn chat messages of OpenAI's and Anthropic's APIs into the steps of one run."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from arb.core.trajectory import Recording, Step
from dataset_script.sources.atif.trajectory import FINAL_CALLS, answer_in
from dataset_script.sources.files import content_of, file_inside
from dataset_script.sources.problems import Note, UnusableFileError
from dataset_script.sources.values import (
    MOST_IMAGE_BYTES,
    call_text,
    data_image,
    finite,
    mapping,
    objects,
    sequence,
    valid_text,
)

_LISTS: Final = ("messages", "input", "traj")
"""The keys under which a run may have its messages. tau-bench uses ``traj``."""
_INSTRUCTIONS: Final = frozenset({"system", "developer"})
_SAME: Final = ("role", "content", "tool_calls", "type", "id", "call_id")
_AGENT: Final = frozenset({"assistant", "model"})
_CALL: Final = ("request", "response")
"""The keys of a logged API call. The object under either of them may name the model."""
_CALL_FIELDS: Final = ("action", "queries", "code", "operation", "prompt")
"""The keys that hold the arguments in calls of the provider's own tools (Responses API)."""
_TEXT_FIELDS: Final = ("text", "content", "output", "logs", "stdout", "stderr")
_RESULT_FIELDS: Final = ("output", "outputs", "results", "result", "error", "content")


def is_message(value: Any) -> bool:
    """Return whether a value is a message: it has a role, or is an item of the Responses API."""
    kind = mapping(value).get("type")
    if isinstance(mapping(value).get("role"), str):
        return any(key in value for key in ("content", "tool_calls", "function_call"))
    return isinstance(kind, str) and (kind == "reasoning" or kind.endswith(("_call", "_call_output")))


def has_messages(record: Any) -> bool:
    """Return whether a value is a run: an object with messages, or the array of messages itself."""
    if isinstance(record, list):
        return bool(record) and is_message(record[0])
    return next(messages_of(mapping(record)), None) is not None


def messages_of(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a run's messages, and then the ``response`` in its record unless this repeats the last one."""
    asked = mapping(record.get("request")) or mapping(record.get("body")) or record
    found: list[Mapping[str, Any]] = []
    for key in _LISTS:
        listed = asked.get(key)
        if (
            key == "input"
            and isinstance(listed, str)
            and "output" in {*record, *mapping(record.get("response"))}
        ):
            found.append({"role": "user", "content": listed})
        found += (each for each in sequence(listed) if is_message(each))
    response = mapping(record.get("response"))
    response = mapping(response.get("body")) or response or record
    answered = [mapping(choice.get("message")) for choice in objects(response.get("choices"))[:1]]
    answered += (each for each in sequence(response.get("output")) if is_message(each))
    if response is not record and response.get("role") in _AGENT:  # Anthropic's response is a message
        answered.append(response)
    yield from found
    if found and answered and all(found[-1].get(key) == answered[0].get(key) for key in _SAME):
        return
    yield from answered


def read_run(
    record: Mapping[str, Any], trajectory_id: str, folder: Path | None, root: Path
) -> tuple[Recording, list[Note]]:
    """Return the recording of a run's messages, and the notes. See `Conversation` for ``folder``.

    Raises UnusableFileError if it has no message of the agent.
    """
    run = Conversation(folder, root)
    for message in messages_of(record):
        run.add(message)
    steps, answer = run.finish()
    if not steps:
        raise UnusableFileError("no_steps", "has no message of the agent (role assistant)")
    named = (valid_text(each.get("model")) for each in (record, *map(mapping, map(record.get, _CALL))))
    recording = Recording(
        trajectory_id=trajectory_id,
        model=next(filter(None, named), None),
        goal=valid_text(record.get("goal")) or "\n\n".join(run.goal),
        goal_images=tuple(run.goal_images),
        cum_reward=finite(record.get("reward")),
        steps=tuple(steps),
        answer=answer,
    )
    return recording, run.notes


@dataclass(slots=True)
class _Turn:
    """An observation, and what the agent thought, said and called after it; each may be empty."""

    texts: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    images: list[bytes | Path] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    spoken: list[str] = field(default_factory=list)
    calls: list[tuple[str, Any]] = field(default_factory=list)

    @property
    def has_acted(self) -> bool:
        return bool(self.thoughts or self.spoken or self.calls)


class Conversation:
    """The conversion of a run's messages into steps.

    Names of pictures are relative to ``folder``. If it is None, no file is read.
    """

    def __init__(self, folder: Path | None, root: Path):
        self._folder, self._root = folder, root
        self._turns = [_Turn()]
        self.goal: list[str] = []
        self.goal_images: list[bytes] = []
        self.notes: list[Note] = []

    def add(self, message: Mapping[str, Any]) -> None:
        """Read one message, or one item of the Responses API."""
        role, kind = message.get("role"), message.get("type")
        if role in _INSTRUCTIONS:
            return
        if isinstance(role, str):
            if role in _AGENT and kind != "message" and self._turns[-1].has_acted:
                self._turns.append(_Turn())
            self._add_message(message, is_agent=role in _AGENT)
        elif kind == "reasoning":
            for part in (*sequence(message.get("summary")), *sequence(message.get("content"))):
                self._think(mapping(part).get("text"))
        elif isinstance(kind, str) and kind.endswith("_call_output"):
            self._see(message.get("output"))
        elif isinstance(kind, str):
            self._add_call(kind, message)

    def finish(self) -> tuple[list[Step], str | None]:
        """Return the steps and the agent's answer. If the agent did nothing, there are no steps."""
        place = max((n for n, turn in enumerate(self._turns) if turn.has_acted), default=-1)
        if place < 0:
            return [], None
        last, rest = self._turns[place], self._turns[place + 1 :]
        finals = [arguments for name, arguments in last.calls if name in FINAL_CALLS]
        answer = None
        if finals or not last.calls:
            own = valid_text(finals[-1]) if finals and isinstance(finals[-1], str) else None
            answer = own or answer_in(finals[-1] if finals else None)
            if not answer:
                answer, last.spoken = "\n\n".join(last.spoken) or None, []
            last.calls = [call for call in last.calls if call[0] not in FINAL_CALLS]
            rest = rest if last.calls else []  # what follows an answer may say how it was graded
        return [self._step(num, turn) for num, turn in enumerate((*self._turns[: place + 1], *rest))], answer

    def _add_message(self, message: Mapping[str, Any], *, is_agent: bool) -> None:
        if is_agent:
            self._think(message.get("reasoning_content") or message.get("reasoning"))
        content = message.get("content")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)
        for part in parts:
            self._add_part(part, is_agent=is_agent)
        if is_agent:
            self._say(message.get("refusal"))
            for call in (*objects(message.get("tool_calls")), {"function": message.get("function_call")}):
                made = mapping(call.get("function")) or mapping(call.get("custom"))
                if made:
                    self._call(made.get("name"), made.get("arguments", made.get("input")))

    def _add_part(self, part: Mapping[str, Any], *, is_agent: bool) -> None:
        kind = valid_text(part.get("type")) or "text"
        if kind.endswith("tool_result"):
            self._see(part.get("content"), is_error=part.get("is_error") is True)
        elif kind.endswith("tool_use"):
            self._call(part.get("name"), part.get("input"))
        elif kind in ("thinking", "reasoning"):
            self._think(part.get("thinking") or part.get("reasoning") or part.get("text"))
        elif is_agent and kind != "redacted_thinking":
            self._say(part.get("text") or part.get("refusal"))
        elif not is_agent:
            self._see([part])

    def _add_call(self, kind: str, item: Mapping[str, Any]) -> None:
        """Read an item of the Responses API that is a call. A call of a provider's tool has its results."""
        arguments = next((item[key] for key in ("arguments", "input") if key in item), None)
        if arguments is None:
            arguments = {key: item[key] for key in _CALL_FIELDS if item.get(key)}
            arguments = arguments["action"] if isinstance(arguments.get("action"), dict) else arguments
        self._call(item.get("name") or kind.removesuffix("_call"), arguments)
        if kind == "image_generation_call":
            self._see({"image_url": f"data:image/png;base64,{item.get('result')}"})
            return
        for key in _RESULT_FIELDS:
            if item.get(key):
                self._see(item[key], is_error=key == "error")

    def _think(self, text: Any) -> None:
        if thought := (valid_text(text) or "").strip():
            self._turns[-1].thoughts.append(thought)

    def _say(self, text: Any) -> None:
        if spoken := (valid_text(text) or "").strip():
            self._turns[-1].spoken.append(spoken)

    def _call(self, name: Any, arguments: Any) -> None:
        if isinstance(arguments, str):
            with suppress(ValueError, RecursionError):  # usually they are JSON in a string
                arguments = json.loads(arguments)
        self._turns[-1].calls.append((valid_text(name) or "unknown", arguments))

    def _see(self, content: Any, *, is_error: bool = False) -> None:
        """Record the answer of a tool or user, which is a string or a list of text and picture parts."""
        if self._turns[-1].has_acted:
            self._turns.append(_Turn())
        turn, is_goal = self._turns[-1], len(self._turns) == 1
        parts = content if isinstance(content, list) else [content]
        for part in parts:
            if (image := self._image(mapping(part))) is not None:
                if is_goal:
                    read = content_of(image, MOST_IMAGE_BYTES) if isinstance(image, Path) else image
                    self.goal_images.append(read)
                else:
                    turn.images.append(image)
            elif text := _text_of(part):
                (self.goal if is_goal else turn.texts).append(text)
                turn.errors += [text] if is_error else []

    def _image(self, part: Mapping[str, Any]) -> bytes | Path | None:
        """Return the picture in a part, or None if it has none. Add a note if it cannot be read."""
        source = mapping(part.get("source"))
        address = part.get("image_url") or part.get("image") or source.get("url")
        address = mapping(address).get("url", address)
        if source.get("type") == "base64" and part.get("type") == "image":
            address = f"data:image/png;base64,{source.get('data')}"
        if not isinstance(address, str):
            return None
        with suppress(UnusableFileError):
            if (image := data_image(address)) is not None:
                return image
            if self._folder is not None:
                return file_inside(address.removeprefix("file://"), self._folder, self._root)
        where = f"step {len(self._turns) - 1}" if len(self._turns) > 1 else "the goal"
        self.notes.append(
            Note("missing_screenshot", f"{where}: {address[:60]} cannot be read from the source")
        )
        return None

    def _step(self, num: int, turn: _Turn) -> Step:
        if len(turn.images) > 1:
            self.notes.append(Note("more_pictures", f"step {num}: {len(turn.images)}"))
        return Step(
            num=num,
            action="\n".join(call_text(*call) for call in turn.calls) or None,
            reasoning="\n\n".join((*turn.thoughts, *turn.spoken)) or None,
            last_action_error="\n".join(turn.errors) or None,
            screenshot=turn.images[-1] if turn.images else None,
            text="\n\n".join(turn.texts) or None,
        )


def _text_of(part: Any) -> str:
    """Return a part as text. Parts of other kinds, such as documents, are described or given as JSON."""
    if isinstance(part, dict):
        texts = [part[key] for key in _TEXT_FIELDS if isinstance(part.get(key), str)]
        kind = part.get("type")
        if texts or (isinstance(kind, str) and "image" in kind):
            part = "\n".join(texts)
        elif isinstance(kind, str):
            known = (part.get(key) for key in ("title", "filename", "url"))
            part = " ".join((f"[{kind}]", *(each for each in known if isinstance(each, str))))
    if part is None or isinstance(part, str):
        return (valid_text(part) or "").strip()
    with suppress(RecursionError):
        return valid_text(json.dumps(part, ensure_ascii=False)) or ""
    return ""
