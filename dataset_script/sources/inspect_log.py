"""Read logs of Inspect, `.eval` and `.json`, of every version from 0.3.60 on. Each sample is a run.

    <log>.eval   a zip: header.json (_journal/start.json while it runs), samples/<id>_epoch_<n>.json
    <log>.json   one object: version, status, eval, plan, …, samples

They are read without inspect_ai, whose version 0.3.285 cannot read the pictures of 0.3.60. The benchmark is
the task. The agent is named after the model, the solver if one was chosen for the run, and the settings in
which the evaluations of the source differ (see `agents`): arguments, generation, limits. The task id is the
sample's id. Epochs and further evaluations of a task by the same agent are repeats. A retried evaluation has
a second log with the same ``task_id``; the later attempt at each sample counts.

A run is read from the sample's ``messages``, which include what the agent did before an error or a limit.
Events are not read: they repeat the messages at each call of the model, and add what the agent did not see.
Scores, targets, metadata and system prompts are left out. So are messages to the agent between a submitted
answer and its next attempt, since they say how the scorer judged. A sub-agent is recorded only as far as the
agent saw it.
"""

import json
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from pathlib import Path, PurePosixPath
from string import ascii_uppercase
from typing import Any, ClassVar, Final
from zipfile import BadZipFile, ZipFile

from arb.core.trajectory import Recording, RunUsage, Step
from dataset_script.sources.agents import AgentFacts, name_agents, settings_in
from dataset_script.sources.base import FoundRun, SourceFile, SourceListing, TrajectorySource, value_of
from dataset_script.sources.files import content_of, files_in, find_links_out, json_problems
from dataset_script.sources.json_values import JsonPlace, json_parts, read_json_at
from dataset_script.sources.pickle_values import field
from dataset_script.sources.problems import Note, UnusableFileError
from dataset_script.sources.values import (
    add_up,
    call_text,
    data_image,
    finite,
    mapping,
    objects,
    sequence,
    valid_text,
)

_JSON_LOG: Final = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:\s*"\w+"\s*,\s*"eval"\s*:\s*\{'
)
_MEMBER: Final = re.compile(r"samples/(?P<id>.+)_epoch_(?P<epoch>\d{1,9})\.json", re.DOTALL)
_ATTACHMENT: Final = "attachment://"
_GRADES: Final = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""The numbers that Inspect's ``value_to_float`` gives to correct, partial, incorrect and no answer."""
_STOPPED_BY: Final = ("max_tokens", "model_length", "content_filter")
"""The stop reasons of a model whose output was cut off."""


@dataclass(frozen=True, slots=True)
class _Evaluation:
    """The fields of a log that apply to all its samples. Logs of a retried evaluation share a ``task_id``."""

    task_id: str
    task: str
    model: str | None
    seed: int
    created: str
    status: str
    submit_tools: frozenset[str]
    facts: AgentFacts

    @property
    def key(self) -> tuple[str, str, str]:
        return self.task_id, self.task, self.facts.name


@dataclass(slots=True)
class _Log:
    """A log. ``samples`` has the places of its samples, keyed by (id, epoch).

    If the log cannot be read, ``problem`` says why. A log that was cut off may have both.
    """

    path: Path
    name: str
    samples: dict[tuple[str, int], JsonPlace] = dataclass_field(default_factory=dict)
    evaluation: _Evaluation | None = None
    problem: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class InspectSource(TrajectorySource):
    """A log, or a folder with logs anywhere in it."""

    kind: ClassVar[str] = "inspect"
    expected: ClassVar[str] = "contains no sample in a log of Inspect (a .eval or .json file)"

    @staticmethod
    def candidates(folder: Path) -> Iterator[Path]:
        """Yield the `.eval` files, and the `.json` files that begin like a log."""
        for each in files_in(folder):
            if each.suffix not in (".eval", ".json") or each.name.startswith(".") or not each.is_file():
                continue
            if each.suffix == ".eval" or _JSON_LOG.match(content_of(each, 400)):
                yield each

    @staticmethod
    def holds_runs(path: Path) -> bool:
        return True

    def list_runs(self) -> SourceListing:
        """List the samples of each log. Raises SourceError if there is no sample."""
        links = find_links_out(self.folder)
        logs = [
            _read_log(path, self.name_of(path)) for path in sorted(set(self.candidates(self.folder)) - links)
        ]
        read = [(log, log.evaluation) for log in logs if log.evaluation is not None]
        begun: dict[Any, str] = {}
        latest: dict[Any, _Log] = {}
        for log, of in sorted(read, key=lambda each: (each[1].created, each[0].name)):
            begun.setdefault(of.key, of.created)
            latest |= {(of.key, *sample): log for sample in log.samples}
        notes, runs = [], []
        agents, same = name_agents([(of.task, of.facts) for _, of in read], self.agent_from)
        for (log, of), agent in zip(read, agents, strict=True):
            left = 0
            for (sample, epoch), place in log.samples.items():
                if latest[of.key, sample, epoch] is not log:
                    left += 1
                    continue
                order, details = (of.seed, begun[of.key], of.task_id, epoch), (of.model, of.submit_tools)
                file = self.file(log.path, f"#{sample}_epoch_{epoch}", place=place, details=details)
                runs.append(FoundRun(file, of.task, agent, sample, order))
            if of.status != "success":
                notes.append(Note("unfinished_log", f"{log.name}: {of.status}"))
            if left:
                notes.append(Note("earlier_attempt", f"{log.name}: {left} of {len(log.samples)} samples"))
        for log in logs:
            if log.problem:
                unknown = (0, "", "", 0)
                broken = self.file(log.path, problem=log.problem)
                runs.append(FoundRun(broken, "", "", log.path.stem, unknown))
        facts = frozenset[str]().union(*(of.facts.known for _, of in read))
        return self.listing(runs, links, (), (*notes, *same), facts)

    def read(self, file: SourceFile) -> tuple[Recording, list[Note]]:
        """Read one sample. Raises UnusableFileError if it has no run."""
        sample = value_of(file)
        if not isinstance(sample, dict):
            raise UnusableFileError("not_a_trajectory", "the sample is not a JSON object")
        if isinstance(sample.get("invalidation"), dict):
            raise UnusableFileError("invalid")
        try:
            return read_sample(sample, file.trajectory_id, *file.details)
        except RecursionError as error:
            raise UnusableFileError("not_a_trajectory", "is nested too deeply") from error

    def scores(self, file: SourceFile) -> Mapping[str, float]:
        """Return a sample's scores, keyed by scorer, or by ``scorer.value`` if it gives several values."""
        sample = value_of(file)
        scorers = field(sample, "scores") or {"score": field(sample, "score")}
        found: dict[str, float] = {}
        for scorer, score in mapping(scorers).items():
            value = field(score, "value")
            several = {f"{scorer}.{name}": each for name, each in mapping(value).items()}
            for name, each in (several if isinstance(value, dict) else {scorer: value}).items():
                number = _GRADES.get(each) if isinstance(each, str) else finite(each)
                if number is not None:
                    found[name] = number
        return found

    def own_files(self) -> Iterator[Path]:
        """Return every log, because not every log has runs: later attempts may replace all of its samples."""
        return self.candidates(self.folder)


def _read_log(path: Path, name: str) -> _Log:
    log = _Log(path, name)
    try:
        with json_problems():
            (_read_directory if path.suffix == ".eval" else _read_places)(log)
    except UnusableFileError as problem:
        log.problem = problem.code, problem.detail
    return log


def _read_directory(log: _Log) -> None:
    """Add the places of an `.eval`'s samples from the zip's directory. Of equal names, the last counts."""
    try:
        with ZipFile(log.path) as archive:
            members = {
                m.filename: JsonPlace(m.header_offset, m.compress_size, m.file_size, m.compress_type, m.CRC)
                for m in archive.infolist()
            }
    except (BadZipFile, NotImplementedError, EOFError, ValueError, struct.error) as error:
        raise UnusableFileError("unreadable", f"is not a complete zip file ({error})"[:200]) from error
    header = members.get("header.json") or members.get("_journal/start.json")
    if header is None:
        raise UnusableFileError("not_a_trajectory", "contains neither header.json nor _journal/start.json")
    log.evaluation = _evaluation(read_json_at(log.path, header), log.name)
    for name, place in members.items():
        if (found := _MEMBER.fullmatch(name)) is None:
            continue
        if ".." in PurePosixPath(name).parts:
            raise UnusableFileError("unreadable", f"{name[:100]!r} in it leads out of the zip file")
        log.samples[found["id"], int(found["epoch"])] = place


def _read_places(log: _Log) -> None:
    """Add the places of a `.json`'s samples, which are read one at a time."""
    header: dict[str, Any] = {}
    for key, value, place in json_parts(log.path, "samples"):
        if key in ("status", "eval", "plan"):
            header[key] = read_json_at(log.path, place)
        elif key == "samples" and value is not None:
            log.evaluation = log.evaluation or _evaluation(header, log.name)
            log.samples[_id_and_epoch(value, log.path, place)] = place
    log.evaluation = log.evaluation or _evaluation(header, log.name)


def _id_and_epoch(sample: Any, path: Path, place: JsonPlace) -> tuple[str, int]:
    found, epoch = field(sample, "id"), field(sample, "epoch")
    if isinstance(found, str) and not found.isascii():
        found = valid_text(field(read_json_at(path, place), "id"))
    if type(found) not in (str, int):
        raise UnusableFileError("not_a_trajectory", "a sample in it has no id")
    return str(found), epoch if type(epoch) is int else 1


def _evaluation(header: Any, name: str) -> _Evaluation:
    """Return what a log's header says, except results. Raises UnusableFileError if it names no task."""
    spec = field(header, "eval")
    task, model, solver = (valid_text(field(spec, key)) for key in ("task", "model", "solver"))
    if not task:
        raise UnusableFileError("not_a_trajectory", "names no task (eval.task)")
    seed = field(spec, "model_generate_config", "seed") or field(header, "plan", "config", "seed")
    return _Evaluation(
        task_id=valid_text(field(spec, "task_id")) or name,
        task=task,
        model=model,
        seed=seed if type(seed) is int else 0,
        created=valid_text(field(spec, "created")) or "",
        status=valid_text(field(header, "status")) or "started",
        submit_tools=frozenset(_submit_tools(sequence(field(header, "plan", "steps")))),
        facts=_facts("_".join(filter(None, (model, solver))), header, PurePosixPath(name)),
    )


_OPERATION: Final = frozenset(
    {"adaptive_connections", "attempt_timeout", "batch", "cache", "cache_prompt", "max_connections"}
    | {"max_retries", "timeout"}
)
"""Generation settings that say how requests are sent, not what is asked."""
_LIMITS: Final = ("cost_limit", "message_limit", "time_limit", "token_limit", "turn_limit", "working_limit")


def _facts(agent: str, header: Any, log: PurePosixPath) -> AgentFacts:
    """Return what the log says about the agent and its settings.

    Generation settings and limits may come from the task.
    """
    spec, plan = field(header, "eval"), field(header, "plan")
    of_task = dict(settings_in(field(spec, "task_args"), "task_args."))
    of_task |= settings_in(field(plan, "config"))
    of_task |= settings_in({name: field(spec, "config", name) for name in _LIMITS})
    settings = dict(settings_in(field(spec, "model_generate_config")))
    for name in ("solver_args", "model_args"):
        settings |= settings_in(field(spec, name), f"{name}.")
    roles = mapping(field(spec, "model_roles"))
    settings |= settings_in({role: each for role, each in roles.items() if role != "grader"}, "model_roles.")
    chosen = {name: value for name, value in (of_task | settings).items() if name not in _OPERATION}
    texts = {
        "model": field(spec, "model"),
        "solver": field(spec, "solver"),
        "log": log.stem,
        "folder": log.parent.name,
        "tags": ",".join(map(str, sequence(field(spec, "tags")))),
    }
    fields = {name: text for name, value in texts.items() if (text := valid_text(value))}
    fields |= settings_in(field(spec, "metadata"), "metadata.")
    return AgentFacts(agent, fields, chosen, frozenset(of_task) - frozenset(settings))


def _submit_tools(steps: Iterable[Any]) -> Iterator[str]:
    """Yield the names of the tools by which a plan's agents submit their answer, ``submit`` by default."""
    yield "submit"
    for step in steps:
        for places in (("submit_name",), ("submit", "name"), ("params", "submit")):
            if isinstance(name := field(step, "params", *places), str):
                yield name


def read_sample(
    sample: Mapping[str, Any], trajectory_id: str, model: str | None, submit_tools: Set[str]
) -> tuple[Recording, list[Note]]:
    """Return the recording of a sample as it is in a log, and the notes.

    ``submit_tools`` are the tools by which the agent submits its answer. Raises UnusableFileError if the
    agent had no turn.
    """
    messages = objects(sample.get("messages"))
    turn_places = [place for place, message in enumerate(messages) if is_turn(message)]
    if not turn_places:  # a solver may set only the output
        outputs = objects(field(sample, "output", "choices"))[:1]
        messages, turn_places = objects([each.get("message") for each in outputs]), [0]
    if not messages:
        state = _state(sample)
        raise UnusableFileError("crashed" if state != "completed" else "no_steps", state)
    first, last = turn_places[0], turn_places[-1]
    run = _Conversation(sample, submit_tools)
    goal, goal_images = run.goal()
    recording = Recording(
        trajectory_id=trajectory_id,
        model=model,
        goal=goal,
        goal_images=goal_images,
        answer=run.read(messages[first:last], messages[last], messages[last + 1 :]),
        steps=tuple(run.steps),
        state=_state(sample),
        usage=_usage(sample),
    )
    return recording, run.notes


class _Conversation:
    """The conversion of a sample's messages into steps. Observations after a turn go to the next step."""

    def __init__(self, sample: Mapping[str, Any], submit_tools: Set[str]):
        self._sample, self._submit_tools = sample, submit_tools
        self.steps: list[Step] = []
        self.notes: list[Note] = []
        self._texts: list[str] = []
        self._errors: list[str] = []
        self._images: list[bytes] = []

    def read(
        self, before: Iterable[Mapping[str, Any]], last: Mapping[str, Any], after: Iterable[Mapping[str, Any]]
    ) -> str | None:
        """Add the steps of the messages before, at and after the agent's last turn. Return its answer."""
        submitted: list[Mapping[str, Any]] = []
        for message in before:
            if is_turn(message):
                self._turn(message)
                submitted = self._submitted(message)
            elif not submitted or message.get("role") != "user":
                self._observe(message)
        submitted = self._submitted(last)
        answer = self._turn(last, submitted, is_last=True)
        submitted_ids = [call.get("id") for call in submitted]
        for message in after:
            # Skip the result of submitting the answer, and a user's request to continue after an answer.
            is_result = message.get("role") == "tool"
            if message.get("tool_call_id") not in submitted_ids if is_result else not answer:
                self._observe(message)
        if self._texts or self._images:
            self._add(None)
        return answer

    def _submitted(self, message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        calls = objects(message.get("tool_calls"))
        return [call for call in calls if self._text(call.get("function")) in self._submit_tools]

    def _turn(
        self, message: Mapping[str, Any], submitted: Sequence[Any] = (), is_last: bool = False
    ) -> str | None:
        """Add the step of a turn. Return the turn's answer or None; an answer does not count as an action.

        Each tool that the provider ran within the turn becomes a separate step.
        """
        thoughts, texts = [self._text(message.get("reasoning"))], []
        for part in _parts(message.get("content")):
            match part.get("type"):
                case "text":
                    texts.append(self._text(part.get("text")))
                case "reasoning":
                    thoughts.append(self._text(part.get("summary" if part.get("redacted") else "reasoning")))
                case "tool_use":
                    arguments = self._text(part.get("arguments"))
                    with suppress(ValueError):  # usually they are JSON in a string
                        arguments = json.loads(arguments)
                    self._add(call_text(self._text(part.get("name")), arguments), *thoughts, *texts)
                    thoughts, texts = [], []
                    self._texts += [self._text(part.get("result")), self._text(part.get("error"))]
        calls = objects(message.get("tool_calls"))
        answer = None
        if submitted:
            arguments = self._resolved(submitted[-1].get("arguments"))
            found = field(arguments, "answer")
            answer = valid_text(found if isinstance(found, str) else json.dumps(arguments))
            texts = [text for text in texts if text != answer]  # 0.3.60 records it in both places
        elif is_last and not calls:
            answer, texts = "\n".join(texts).strip() or None, []
        actions = [
            call_text(self._text(call.get("function")), self._resolved(call.get("arguments")))
            for call in calls
            if call not in submitted
        ]
        self._add("\n".join(actions) or None, *thoughts, *texts)
        return answer

    def _observe(self, message: Mapping[str, Any]) -> None:
        """Record what a tool or a user answered, and the message of a tool's error. Ignore other roles."""
        if message.get("role") not in ("tool", "user"):
            return
        texts, images = self._parts(message.get("content"), f"step {len(self.steps)}")
        if error := self._text(field(message, "error", "message")):
            self._errors.append(error)
            texts.append(error)
        self._texts += texts
        self._images += images

    def _add(self, action: str | None, *reasoning: str) -> None:
        if len(self._images) > 1:
            self.notes.append(Note("more_pictures", f"step {len(self.steps)}: {len(self._images)}"))
        step = Step(
            num=len(self.steps),
            action=action,
            reasoning="\n\n".join(filter(None, reasoning)) or None,
            last_action_error="\n".join(self._errors) or None,
            screenshot=self._images[-1] if self._images else None,
            text="\n\n".join(filter(None, self._texts)) or None,
        )
        self.steps.append(step)
        self._texts, self._errors, self._images = [], [], []

    def goal(self) -> tuple[str, tuple[bytes, ...]]:
        """Return the sample's input and choices, and its pictures. Roles are named unless all are "user"."""
        asked = self._sample.get("input")
        messages = [{"role": "user", "content": asked}] if isinstance(asked, str) else objects(asked)
        is_talk = any(message.get("role") != "user" for message in messages)
        paragraphs, images = [], []
        for message in messages:
            texts, found = self._parts(message.get("content"), "the goal")
            paragraphs.append((f"{message.get('role')}: " if is_talk else "") + "\n".join(texts))
            images += found
        choices = self._sample.get("choices")
        letters = (*ascii_uppercase, *map(str, range(1, 1000)))
        options = zip(letters, sequence(choices), strict=False)
        paragraphs.append("\n".join(f"{letter}) {self._text(option)}" for letter, option in options))
        return valid_text("\n\n".join(filter(None, paragraphs))) or "", tuple(images)

    def _parts(self, content: Any, where: str) -> tuple[list[str], list[bytes]]:
        """Return the texts and pictures in ``content``. Add a note for each picture missing from the log."""
        texts, images = [], []
        for part in _parts(content):
            kind = part.get("type")
            if kind == "text":
                texts.append(self._text(part.get("text")))
            elif kind != "image":
                texts.append(f"[{self._text(part.get('filename')) or self._text(kind)}]")
            elif (image := data_image(self._resolved(part.get("image")))) is not None:
                images.append(image)
            else:
                self.notes.append(
                    Note("missing_screenshot", f"{where}: the log does not contain the picture")
                )
        return texts, images

    def _text(self, value: Any) -> str:
        return valid_text(self._resolved(value)) or ""

    def _resolved(self, value: Any) -> Any:
        """Return the value with the sample's attachments (pictures and long texts) filled in."""
        if isinstance(value, str) and value.startswith(_ATTACHMENT):
            found = field(self._sample, "attachments", value.removeprefix(_ATTACHMENT))
            return found if isinstance(found, str) else value
        if isinstance(value, dict):
            return {key: self._resolved(each) for key, each in value.items()}
        return [self._resolved(each) for each in value] if isinstance(value, list) else value


def _usage(sample: Mapping[str, Any]) -> RunUsage | None:
    """Return the sum over the sample's models, including tokens read from or written to a cache."""
    models = objects([*mapping(sample.get("model_usage")).values()])
    read = ("input_tokens", "input_tokens_cache_read", "input_tokens_cache_write")
    return RunUsage.of(
        input_tokens=add_up(each.get(name) for each in models for name in read),
        output_tokens=add_up(each.get("output_tokens") for each in models),
        cost_usd=add_up(each.get("total_cost") for each in models),
        seconds=add_up([sample.get("total_time")]),
    )


def _state(sample: Mapping[str, Any]) -> str:
    if message := valid_text(field(sample, "error", "message")):
        return f"error: {message}"[:200]
    if limit := valid_text(field(sample, "limit", "type")):
        return f"limit: {limit}"
    reasons = [each.get("stop_reason") for each in objects(field(sample, "output", "choices"))[:1]]
    return reasons[0] if reasons and reasons[0] in _STOPPED_BY else "completed"


def is_turn(message: Mapping[str, Any]) -> bool:
    """Return whether a message is the agent's own, and not part of the sample's input."""
    return message.get("role") == "assistant" and message.get("source") != "input"


def _parts(content: Any) -> list[Mapping[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)
