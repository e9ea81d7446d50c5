"""Find the runs of a folder: Harbor's trials, and trajectories of other programs."""

import json
import mmap
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from arb.core.trajectory import Recording, RunUsage
from dataset_script.sources.agents import AgentFacts, settings_in
from dataset_script.sources.atif import trajectory
from dataset_script.sources.base import FoundRun, SourceFile, SourceListing, TrajectorySource
from dataset_script.sources.files import (
    content_of,
    file_stamp,
    files_in,
    is_inside,
    read_json_object,
    released_folders,
    texts_in,
)
from dataset_script.sources.problems import Note, UnusableFileError
from dataset_script.sources.values import add_up, finite, mapping, objects, valid_text

_HEAD_BYTES: Final = 1 << 18
"""The number of bytes read to recognise a file. The version and the agent usually come first."""
_VERSION: Final = re.compile(r'"schema_version"\s*:\s*"ATIF-v')
_LATE_VERSION: Final = re.compile(rb'"schema_version"\s*:\s*"ATIF-v')
_BEGINNING: Final = re.compile(
    r'\s*\{\s*"(?:agent|continued_trajectory_ref|extra|final_metrics|notes|session_id|steps'
    r'|subagent_trajectories|trajectory_id)"\s*:'
)
"""Matches a trajectory whose version is not its first key. Only such files are searched to the end."""
_AGENT: Final = re.compile(r'"agent"\s*:\s*(?=\{)')
_TIME: Final = re.compile(r'"timestamp"\s*:\s*"([^"\\]{10,40})"')
_REFERENCES: Final = (b'"trajectory_path"', b'"continued_trajectory_ref"')
_NAMED_FILE: Final = re.compile(
    rb'"(?:trajectory_path|continued_trajectory_ref|path)"\s*:\s*("(?:[^"\\]|\\.){1,500}")'
)

_VERIFIER_FAILED: Final = ("AddTests", "DownloadVerifier", "Reward", "Verifier")
"""Prefixes of the exceptions that Harbor's verifier raises after the agent has finished."""


_OF_A_JOB: Final = ("config.json", "job.log", "lock.json", "result.json")
"""Files that Harbor writes into a job's folder, next to its trials."""


@dataclass(frozen=True, slots=True)
class _Trial:
    """Fields of a trial's result.json. ``regrades`` names the earlier trials that it only grades again."""

    names: frozenset[str]
    regrades: frozenset[str]
    benchmark: str
    agent: AgentFacts
    task: str
    usage: RunUsage | None
    model: str | None
    seed: int
    started: float
    state: str | None


@dataclass(frozen=True, slots=True)
class AtifSource(TrajectorySource):
    """The runs under a folder, or in one file."""

    kind: ClassVar[str] = "atif"
    expected: ClassVar[str] = "contains no ATIF trajectory; name Harbor's jobs folder, or a file"

    @staticmethod
    def candidates(folder: Path) -> Iterator[Path]:
        """Yield the path of each trial's trajectory, even if it is missing, and all other JSON files."""
        if folder.is_file():
            yield folder
        for top, folders, names in os.walk(folder):
            place = Path(top)
            folders[:] = set(folders) - released_folders(place, folder)
            if "result.json" in names and not {"agent", "steps"}.isdisjoint(folders) and _is_trial(place):
                steps = list(place.glob("steps/*/agent/trajectory.json"))
                yield from steps or [place / "agent" / "trajectory.json"]
                folders.clear()
            else:
                yield from (place / name for name in names if name.endswith(".json"))

    @staticmethod
    def holds_runs(path: Path) -> bool:
        return _head(path) is not None

    def list_runs(self) -> SourceListing:
        """List the runs, from each trial's result.json and the beginning of other files.

        Files that continue a run or belong to its subagents are not listed. References to them are looked up
        in the files outside trials. Raises SourceError if there is no run.
        """
        candidates = sorted(self.candidates(self.folder))
        outside = {path for path in candidates if not is_inside(path, self.root)}
        runs: list[FoundRun] = []
        parts: set[Path] = set()
        trials: dict[Path, _Trial] = {}
        for path in candidates:
            if path in outside:
                continue
            if trial := self._trial(path):
                trials[path] = trial
                order = not path.exists(), trial.seed, trial.started, path.as_posix()
                runs.append(FoundRun(self.file(path), trial.benchmark, trial.agent, trial.task, order))
            elif head := _head(path):
                order = False, 0, head[1], path.as_posix()
                runs.append(FoundRun(self.file(path), self.kind, head[0], _task_of(path), order))
                parts.update(self._parts(path))
        known = frozenset[str]().union(*(trial.names for trial in trials.values()))
        again = {path for path, trial in trials.items() if known & trial.regrades - trial.names}
        notes = [Note("regraded", self.name_of(path)) for path in sorted(again)]
        return self.listing([run for run in runs if run.file.path not in parts | again], outside, (), notes)

    def read(self, file: SourceFile) -> tuple[Recording, Sequence[Note]]:
        """Read one run, with its continuations and the files that it refers to. Raises UnusableFileError."""
        trial = self._trial(file.path, must_be_whole=True)
        state = trial.state if trial else None
        if trial and not file.path.is_file():
            raise UnusableFileError(
                "crashed", f"the trial left no {file.path.name} ({state or 'unfinished'})"
            )
        document, run = trajectory.read_document(file.path), trajectory.RunReader(self.root)
        if malformed := list(trajectory.malformed_parts(document)):
            run.notes.append(Note("malformed", f"{len(malformed)}: {', '.join(malformed[:5])}"))
        run.add(document, file.path, run.main)
        if not run.main.has_begun:
            has_crashed = state is not None and state != "completed"
            reason = state or ", ".join(malformed[:5])
            raise UnusableFileError("crashed" if has_crashed else "no_steps", reason)
        answer = run.finish()
        found = (trajectory.usage_in(run.documents), trial and trial.usage)
        used = {name: each for one in found if one for name, each in asdict(one).items() if each is not None}
        model = valid_text(mapping(document.get("agent")).get("model_name")) or run.model
        recording = Recording(
            trajectory_id=file.trajectory_id,
            model=model or (trial.model if trial else None),
            goal="\n\n".join(run.goal or run.copied_goal),
            goal_images=tuple(run.goal_images),
            steps=tuple(run.steps),
            answer=answer,
            state=state,
            usage=RunUsage.of(**used) if used else None,
        )
        return recording, run.notes

    def scores(self, file: SourceFile) -> Mapping[str, float]:
        """Return the rewards that a trial's verifier gave, keyed by name.

        If the run is one step of a trial, they are the rewards of that step.
        """
        folder = _trial_folder(file.path)
        if self._trial(file.path, must_be_whole=True) is None:
            return {}
        result = read_json_object(folder / "result.json")
        steps = {each.get("step_name"): each for each in objects(result.get("step_results"))}
        own = steps.get(file.path.parent.parent.name, {}) if file.path.parent.parent != folder else result
        verified = mapping(own.get("verifier_result"))
        found = mapping(verified.get("rewards")) or {"reward": verified.get("reward")}
        return {name: number for name, value in found.items() if (number := finite(value)) is not None}

    def files_of(self, file: SourceFile) -> Iterator[Path]:
        """Return all files of a trial, or a trajectory with the files that it names."""
        if self._trial(file.path):
            yield from files_in(_trial_folder(file.path))
        yield from self._named_files(file)

    def own_files(self) -> Iterator[Path]:
        """Return all files of trials, even those that only regrade an earlier run, and Harbor's job files."""
        for path in self.candidates(self.folder):
            if self._trial(path):
                folder = _trial_folder(path)
                yield from files_in(folder)
                yield from (folder.parent / name for name in _OF_A_JOB)

    def identity(self, file: SourceFile) -> str:
        return "\n".join(map(file_stamp, self._named_files(file)))

    def _named_files(self, file: SourceFile) -> Iterator[Path]:
        """Yield the trial's result.json, the run's file, and the files that it names, inside the source."""
        found: dict[Path, None] = {_trial_folder(file.path) / "result.json": None}
        waiting = [file.path]
        while waiting:
            path = waiting.pop()
            if path not in found:
                found[path] = None
                names = texts_in(path, _NAMED_FILE) if path.suffix == ".json" else ()
                waiting += trajectory.files_named(names, path, self.root)
        yield from (path for path in found if is_inside(path, self.root))

    def _trial(self, path: Path, *, must_be_whole: bool = False) -> _Trial | None:
        """Return what result.json says about a file's trial, or None if the file belongs to no trial.

        With ``must_be_whole``, raises UnusableFileError if result.json cannot be read.
        """
        folder = _trial_folder(path)
        result = folder / "result.json"
        if self.folder.is_file() or not is_inside(result, self.root) or not _is_trial(folder):
            return None
        step = path.parent.parent.name if path.parent.parent != folder else None
        try:
            return _trial_of(read_json_object(result), folder, step)
        except UnusableFileError as error:
            if must_be_whole:
                raise UnusableFileError(error.code, f"result.json: {error.detail}") from error
            return _trial_of({}, folder, step)

    def _parts(self, path: Path) -> Iterator[Path]:
        """Yield the files that a trajectory names. It is parsed only if it contains such a reference."""
        content = content_of(path)
        if any(key in content for key in _REFERENCES):
            try:
                names = list(trajectory.references(trajectory.read_document(path)))
            except UnusableFileError:  # reported when the run is read
                return
            yield from (part for part in trajectory.files_named(names, path, self.root) if part != path)


def _trial_folder(path: Path) -> Path:
    """Return the folder of the trial, assuming that the file is a trial's trajectory."""
    above = path.parent.parent
    return above.parent.parent if above.parent.name == "steps" else above


def _is_trial(folder: Path) -> bool:
    return b'"trial_name"' in content_of(folder / "result.json", 4096)


def _head(path: Path) -> tuple[AgentFacts, float] | None:
    """Return the agent and the time of the first step, or None if the file is not a trajectory."""
    head = content_of(path, _HEAD_BYTES)
    text = head.decode(json.detect_encoding(head), "replace")
    agent: Any = None
    if _VERSION.search(text):
        found = _AGENT.search(text)
        if not text.lstrip().startswith("{"):
            return None
        if found is not None:
            with suppress(ValueError, RecursionError):  # the agent may reach beyond the part that was read
                agent = json.JSONDecoder().raw_decode(text, found.end())[0]
    elif len(head) < _HEAD_BYTES or not _BEGINNING.match(text) or not _has_late_version(path):
        return None
    if agent is None:
        with suppress(UnusableFileError):  # reported when the run is read
            agent = read_json_object(path).get("agent")
    names, time = mapping(agent), _TIME.search(text)
    fields = {"file": path.stem, "folder": path.absolute().parent.name}
    agent_facts = _agent_facts(names.get("name"), names.get("model_name"), names.get("version"), fields)
    return agent_facts, trajectory.seconds_of(time and time[1])


def _has_late_version(path: Path) -> bool:
    with (
        suppress(OSError, ValueError),
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        return _LATE_VERSION.search(content) is not None
    return False


def _agent_facts(
    name: Any, model: Any, version: Any, fields: Mapping[str, str], settings: Mapping[str, str] | None = None
) -> AgentFacts:
    """Return the facts about an agent. Its model is part of its name, since two models are two agents."""
    both = "-".join(filter(None, map(valid_text, (name, model)))) or "unknown"
    texts = {"name": name, "model": model, "version": version}
    recorded = {key: text for key, value in texts.items() if (text := valid_text(value))}
    return AgentFacts(both, {**fields, **recorded}, settings, frozenset({"job"}))


def _task_of(path: Path) -> str:
    """Return the task of a file outside trials: its name, or for trajectory.json the folder's name."""
    above = path.absolute().parent
    above = above.parent if above.name == "agent" else above
    return path.stem if path.name != "trajectory.json" else above.name


_AGENT_SETTINGS: Final = ("import_path", "max_timeout_sec", "override_timeout_sec", "skills")
_TRIAL_SETTINGS: Final = ("agent_timeout_multiplier", "extra_instructions", "timeout_multiplier")


def _trial_of(result: Mapping[str, Any], folder: Path, step: str | None) -> _Trial:
    info, config = mapping(result.get("agent_info")), mapping(result.get("config"))
    model = mapping(info.get("model_info"))
    model_name = "/".join(filter(None, (valid_text(model.get(key)) for key in ("provider", "name"))))
    chosen = mapping(config.get("agent"))
    seed = mapping(chosen.get("kwargs")).get("seed")
    settings = dict(settings_in(chosen.get("kwargs"), "kwargs."))
    settings |= settings_in({name: chosen.get(name) or None for name in _AGENT_SETTINGS})
    trial_settings = {name: config.get(name) for name in _TRIAL_SETTINGS}
    settings |= settings_in({name: each for name, each in trial_settings.items() if each not in (1, [])})
    fields = {"folder": folder.absolute().parent.name}
    settings["job"] = folder.absolute().parent.name
    regrades = mapping(config.get("source_trial"))
    regraded = filter(None, (valid_text(regrades.get(key)) for key in ("trial_id", "path")))
    task = valid_text(result.get("task_name")) or folder.name.rpartition("__")[0] or folder.name
    return _Trial(
        names=frozenset((folder.name, valid_text(result.get("id")) or folder.name)),
        regrades=frozenset(text.rstrip("/").rpartition("/")[2] for text in regraded),
        benchmark=valid_text(result.get("source")) or "harbor",
        agent=_agent_facts(info.get("name"), model_name, info.get("version"), fields, settings),
        task=f"{task}.{step}" if step else task,
        usage=None if step else _usage(result),
        model=model_name or None,
        seed=seed if type(seed) is int else 0,
        started=trajectory.seconds_of(result.get("started_at")),
        state=_state(result, step),
    )


def _usage(result: Mapping[str, Any]) -> RunUsage | None:
    """Return what the agent of a trial used, or None if result.json has no such figures."""
    used, time = mapping(result.get("agent_result")), mapping(result.get("agent_execution"))
    seconds = trajectory.seconds_of(time.get("finished_at")) - trajectory.seconds_of(time.get("started_at"))
    figures = {
        "input_tokens": add_up([used.get("n_input_tokens")]),
        "output_tokens": add_up([used.get("n_output_tokens")]),
        "cost_usd": add_up([used.get("cost_usd")]),
    }
    return RunUsage.of(**figures, seconds=add_up([seconds]))


def _state(result: Mapping[str, Any], step: str | None) -> str | None:
    """Return how a trial ended, or its step if ``step`` is given; None if it did not end."""
    steps = objects(result.get("step_results"))
    own = next((each for each in steps if step and each.get("step_name") == step), {})
    for ended in (own, result):
        failed = valid_text(mapping(ended.get("exception_info")).get("exception_type"))
        if failed and not failed.startswith(_VERIFIER_FAILED):
            return f"exception: {failed}"  # without its message, which may quote the verifier
    return "completed" if result.get("finished_at") else None
