"""Find the runs of a folder: Harbor's trials, and trajectories of other programs."""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Final

from arb.core.trajectory import Recording
from dataset_script.sources.atif.trajectory import RunReader, files_named, read_document, references
from dataset_script.sources.base import (
    Note,
    SourceFile,
    SourceListing,
    TrajectorySource,
    UnusableFileError,
    content_of,
    file_stamp,
    finite,
    id_part,
    is_inside,
    mapping,
    objects,
    read_json_object,
    text_of_literal,
    valid_text,
)

_HEAD_BYTES: Final = 1 << 18
"""The part of a file that is read to recognise it; the version and the agent come before the steps."""
_VERSION: Final = re.compile(r'"schema_version"\s*:\s*"ATIF-v')
_AGENT: Final = re.compile(r'"agent"\s*:\s*(?=\{)')
_TIME: Final = re.compile(r'"timestamp"\s*:\s*"([^"\\]{10,40})"')
_REFERENCES: Final = (b'"trajectory_path"', b'"continued_trajectory_ref"')
_NAMED_FILE: Final = re.compile(
    rb'"(?:trajectory_path|continued_trajectory_ref|path)"\s*:\s*("(?:[^"\\]|\\.){1,500}")'
)

_VERIFIER_FAILED: Final = ("AddTests", "DownloadVerifier", "Reward", "Verifier")
"""Prefixes of the exceptions that Harbor's verifier raises after the agent has finished."""


@dataclass(frozen=True, slots=True)
class _Trial:
    """The facts in a trial's result.json. ``regrades`` names the trial that this one only verifies again."""

    names: frozenset[str]
    regrades: frozenset[str]
    benchmark: str
    agent: str
    task: str
    model: str | None
    seed: int
    started: float
    state: str | None


@dataclass(frozen=True, slots=True)
class AtifSource(TrajectorySource):
    """The runs under a folder, or in one file."""

    kind: ClassVar[str] = "atif"

    @staticmethod
    def recognises(folder: Path) -> bool:
        return any(_head(path) is not None for path in _candidates(folder))

    def list_runs(self) -> SourceListing:
        """List the runs, from each trial's result.json and the beginning of other files.

        Files that continue a run or belong to its subagents are not listed; the other files are searched for
        references to them. Raises SourceError if there is no run.
        """
        candidates = sorted(_candidates(self.folder))
        outside = {path for path in candidates if not is_inside(path, self.root)}
        runs: dict[Path, tuple[str, tuple[Any, ...]]] = {}
        parts: set[Path] = set()
        trials: dict[Path, _Trial] = {}
        for path in candidates:
            if path in outside:
                continue
            if trial := self._trial(path):
                trials[path] = trial
                names, order = (trial.benchmark, trial.agent, trial.task), (trial.seed, trial.started)
            elif head := _head(path):
                names, order = ("atif", head[0], _task_of(path)), (0, head[1])
                parts.update(self._parts(path))
            else:
                continue
            runs[path] = "/".join(map(id_part, names)), (not path.exists(), *order, path.as_posix())
        known = frozenset[str]().union(*(trial.names for trial in trials.values()))
        again = {path for path, trial in trials.items() if known & trial.regrades - trial.names}
        listed = {path: run for path, run in runs.items() if path not in parts | again}
        notes = tuple(Note("regraded", self.name_of(path)) for path in sorted(again))
        problem = "contains no ATIF trajectory; name Harbor's jobs folder, or a file"
        return self.listing(listed, outside, problem, notes=notes)

    def read(self, file: SourceFile) -> tuple[Recording, Sequence[Note]]:
        """Read one run, with its continuations and the files that it refers to. Raises UnusableFileError."""
        trial = self._trial(file.path, must_be_whole=True)
        state = trial.state if trial else None
        if trial and not file.path.is_file():
            raise UnusableFileError(
                "invalid", f"the trial left no {file.path.name} ({state or 'unfinished'})"
            )
        document, run = read_document(file.path), RunReader(self.root)
        run.add(document, file.path, run.main)
        if not run.main.has_begun:
            raise UnusableFileError("no_steps")
        answer = run.finish()
        model = valid_text(mapping(document.get("agent")).get("model_name")) or run.model
        recording = Recording(
            trajectory_id=file.trajectory_id,
            model=model or (trial.model if trial else None),
            goal="\n\n".join(run.goal or run.copied_goal),
            goal_images=tuple(run.goal_images),
            steps=tuple(run.steps),
            answer=answer,
            state=state,
        )
        return recording, run.notes

    def scores(self, file: SourceFile) -> Mapping[str, float]:
        """Return the rewards of a trial's verifier by name, those of the step if it has several steps."""
        folder = _trial_folder(file.path)
        if self._trial(file.path, must_be_whole=True) is None:
            return {}
        result = read_json_object(folder / "result.json")
        steps = {each.get("step_name"): each for each in objects(result.get("step_results"))}
        own = steps.get(file.path.parent.parent.name, {}) if file.path.parent.parent != folder else result
        verified = mapping(own.get("verifier_result"))
        found = mapping(verified.get("rewards")) or {"reward": verified.get("reward")}
        return {name: number for name, value in found.items() if (number := finite(value)) is not None}

    def identity(self, file: SourceFile) -> str:
        found: dict[Path, None] = {_trial_folder(file.path) / "result.json": None}
        waiting = [file.path]
        while waiting:
            path = waiting.pop()
            if path not in found:
                found[path] = None
                names = _NAMED_FILE.findall(content_of(path)) if path.suffix == ".json" else ()
                waiting += files_named(map(text_of_literal, names), path, self.root)
        return "\n".join(file_stamp(path) for path in found if is_inside(path, self.root))

    def _trial(self, path: Path, *, must_be_whole: bool = False) -> _Trial | None:
        """Return the facts in result.json about a file's trial, or None if it belongs to no trial.

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
        """Yield the files that a trajectory continues in or refers to. It is parsed only if it has any."""
        content = content_of(path)
        if any(key in content for key in _REFERENCES):
            try:
                names = list(references(read_document(path)))
            except UnusableFileError:  # reported when the run is read
                return
            yield from (part for part in files_named(names, path, self.root) if part != path)


def _candidates(folder: Path) -> Iterator[Path]:
    """Yield files that may contain a run: trials' trajectories, even if absent, and other JSON files."""
    if folder.is_file():
        yield folder
    for top, folders, names in os.walk(folder):
        place = Path(top)
        if "result.json" in names and not {"agent", "steps"}.isdisjoint(folders) and _is_trial(place):
            steps = list(place.glob("steps/*/agent/trajectory.json"))
            yield from steps or [place / "agent" / "trajectory.json"]
            folders.clear()
        else:
            yield from (place / name for name in names if name.endswith(".json"))


def _trial_folder(path: Path) -> Path:
    """Return the folder of the trial, assuming that the file is a trial's trajectory."""
    above = path.parent.parent
    return above.parent.parent if above.parent.name == "steps" else above


def _is_trial(folder: Path) -> bool:
    return b'"trial_name"' in content_of(folder / "result.json", 4096)


def _head(path: Path) -> tuple[str, float] | None:
    """Return the agent and the time of the first step, or None if the file is not a trajectory."""
    text = content_of(path, _HEAD_BYTES).decode("utf-8-sig", "replace")
    if not text.lstrip().startswith("{") or not _VERSION.search(text):
        return None
    found, time = _AGENT.search(text), _TIME.search(text)
    agent: Any = None
    if found is not None:
        with suppress(ValueError, RecursionError):  # the agent may reach beyond the part that was read
            agent = json.JSONDecoder().raw_decode(text, found.end())[0]
    if agent is None:
        with suppress(UnusableFileError):  # reported when the run is read
            agent = read_json_object(path).get("agent")
    names = mapping(agent)
    return _agent_name(names.get("name"), names.get("model_name")), _seconds(time and time[1])


def _agent_name(name: Any, model: Any) -> str:
    """Return the agent's name with its model, since one program with two models counts as two agents."""
    return "-".join(filter(None, map(valid_text, (name, model)))) or "unknown"


def _task_of(path: Path) -> str:
    """Return the task of a file outside trials: the file's name, or its folder's for trajectory.json."""
    above = path.absolute().parent
    above = above.parent if above.name == "agent" else above
    return path.stem if path.name != "trajectory.json" else above.name


def _seconds(time: Any) -> float:
    try:
        return datetime.fromisoformat(time).timestamp()
    except (TypeError, ValueError, OverflowError, OSError):
        return float("inf")


def _trial_of(result: Mapping[str, Any], folder: Path, step: str | None) -> _Trial:
    info, config = mapping(result.get("agent_info")), mapping(result.get("config"))
    model = mapping(info.get("model_info"))
    model_name = "/".join(filter(None, (valid_text(model.get(key)) for key in ("provider", "name"))))
    seed = mapping(mapping(config.get("agent")).get("kwargs")).get("seed")
    regrades = mapping(config.get("source_trial"))
    regraded = filter(None, (valid_text(regrades.get(key)) for key in ("trial_id", "path")))
    task = valid_text(result.get("task_name")) or folder.name.rpartition("__")[0] or folder.name
    return _Trial(
        names=frozenset((folder.name, valid_text(result.get("id")) or folder.name)),
        regrades=frozenset(text.rstrip("/").rpartition("/")[2] for text in regraded),
        benchmark=valid_text(result.get("source")) or "harbor",
        agent=_agent_name(info.get("name"), model_name),
        task=f"{task}.{step}" if step else task,
        model=model_name or None,
        seed=seed if type(seed) is int else 0,
        started=_seconds(result.get("started_at")),
        state=_state(result, step),
    )


def _state(result: Mapping[str, Any], step: str | None) -> str | None:
    """Return how a trial, or its step ``step``, ended; None if it did not."""
    steps = objects(result.get("step_results"))
    own = next((each for each in steps if step and each.get("step_name") == step), {})
    for ended in (own, result):
        failed = valid_text(mapping(ended.get("exception_info")).get("exception_type"))
        if failed and not failed.startswith(_VERIFIER_FAILED):
            return f"exception: {failed}"  # without its message, which may quote the verifier
    return "completed" if result.get("finished_at") else None
