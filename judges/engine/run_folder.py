"""The folder of a run: what it is made of, what came out so far, and the prediction file at its end.

    run.json           configuration, versions, hashes, totals; replaced whole
    judgments.jsonl    a line a judged trajectory, added as each ends; put in order when a session ends
    predictions.jsonl  the prediction file; replaced whole when a session ends

One process at a time has the folder. Killed at any moment it is whole: a line without its end is not there.
"""

import fcntl
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from core.files import atomic_write, atomic_writer
from dataset_script.prediction_file.write import write_predictions
from judges.engine.records import Record, prediction_row
from judges.engine.segments import complete_lines, truncate_partial_line

RUN, JUDGMENTS, PREDICTIONS = "run.json", "judgments.jsonl", "predictions.jsonl"
FORMAT: Final = 1
"""The form of the folder that this code writes and reads."""


class RunFolderError(ValueError):
    """A folder that cannot be used for this run; the message says why and what to do."""


class RunFolder:
    """A run's folder, held by this process until `close`.

    Made when it is not there. Raises RunFolderError when another process has it, when it holds something
    else, or a run of another configuration; the message names every difference.
    """

    def __init__(self, folder: Path, configuration: Mapping[str, Any]):
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise RunFolderError(f"{folder}: cannot be written ({error.strerror}); name a folder") from error
        try:
            self._take(configuration)
            self._judgments = os.open(folder / JUDGMENTS, os.O_RDWR | os.O_CREAT, 0o666)
        except BaseException:
            os.close(self._lock)
            raise
        self._end = truncate_partial_line(self._judgments)
        self._places: dict[str, tuple[int, int]] = {}
        self.states: dict[str, str] = {}
        """The state of every trajectory judged so far, by id."""
        with (folder / JUDGMENTS).open("rb") as file:
            for start, line in complete_lines(file, 0):
                self._note(json.loads(line), start, len(line))

    def append(self, records: Iterable[Record]) -> None:
        """Add judged trajectories; when this returns they are on the disk. A later line of an id counts."""
        for record in records:
            line = json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"
            rest = memoryview(line)
            while rest:
                rest = rest[os.pwrite(self._judgments, rest, self._end + len(line) - len(rest)) :]
            self._note(record, self._end, len(line))
            self._end += len(line)
        os.fsync(self._judgments)

    def records(self, ids: Iterable[str] | None = None) -> Iterator[Record]:
        """The judged trajectories, one line in memory at a time: those of ``ids`` in their order, or all."""
        for trajectory_id in self._places if ids is None else ids:
            if trajectory_id in self._places:
                yield json.loads(self._line(trajectory_id))

    def update_run(self, facts: Mapping[str, Any]) -> None:
        """Put facts into run.json, over those of the same name; it is replaced whole."""
        self.run = {**self.run, **facts}
        atomic_write(self.folder / RUN, json.dumps(self.run, indent=2).encode("ascii") + b"\n")

    def finalize(self, ids: Sequence[str]) -> None:
        """Rewrite judgments and predictions in the order of ``ids``, without lines that were replaced."""
        order = [each for each in ids if each in self._places]
        with atomic_writer(self.folder / JUDGMENTS) as file:
            file.writelines(map(self._line, order))
        write_predictions(self.folder / PREDICTIONS, map(prediction_row, self.records(order)))

    def close(self) -> None:
        """Leave the folder to other processes."""
        os.close(self._judgments)
        os.close(self._lock)

    def __enter__(self) -> "RunFolder":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self, configuration: Mapping[str, Any]) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunFolderError(f"{self.folder}: another process is running in it") from None
        path = self.folder / RUN
        if path.is_file():
            self.run = read_run(self.folder)
            if differences := diff_configurations(
                self.run["configuration"], json.loads(json.dumps(configuration))
            ):
                raise RunFolderError(
                    f"{self.folder}: holds a run with another configuration; name another folder, or use "
                    "that configuration:\n" + "\n".join(f"  {each}" for each in differences)
                )
            return
        if (self.folder / JUDGMENTS).exists():
            raise RunFolderError(f"{self.folder}: has {JUDGMENTS} but no {RUN}; name another folder")
        self.run = {"format": FORMAT, "configuration": dict(configuration)}
        self.update_run({})

    def _line(self, trajectory_id: str) -> bytes:
        start, length = self._places[trajectory_id]
        return os.pread(self._judgments, length, start)

    def _note(self, record: Record, start: int, length: int) -> None:
        self._places[record["trajectory_id"]] = (start, length)
        self.states[record["trajectory_id"]] = record["state"]


def read_run(folder: Path) -> dict[str, Any]:
    """What run.json says. Raises RunFolderError when the folder is no run's."""
    path = folder / RUN
    try:
        run = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise RunFolderError(f"{folder}: has no {RUN} that can be read; name the folder of a run") from error
    if not isinstance(run, dict) or run.get("format") != FORMAT or "configuration" not in run:
        raise RunFolderError(f"{path}: is not of format {FORMAT}; name another folder")
    return run


def read_judgments(folder: Path) -> Iterator[Record]:
    """The lines of judgments.jsonl, the last of each id, without taking the folder. Raises RunFolderError."""
    try:
        with (folder / JUDGMENTS).open("rb") as file:
            last = {json.loads(line)["trajectory_id"]: start for start, line in complete_lines(file, 0)}
            for start in last.values():
                file.seek(start)
                yield json.loads(file.readline())
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunFolderError(f"{folder}: has no {JUDGMENTS} that can be read ({error})") from error


def totals(records: Iterable[Record]) -> dict[str, Any]:
    """Sums over judged trajectories: states, calls, tokens, dollars; null where one of them is not known."""
    sums: dict[str, float | None] = dict.fromkeys(("input_tokens", "output_tokens", "cost_usd"), 0)
    states: Counter[str] = Counter()
    calls = 0
    for record in records:
        states[record["state"]] += 1
        calls += len(record["calls"])
        for name, sum_so_far in sums.items():
            value = record.get(name)
            sums[name] = None if value is None or sum_so_far is None else sum_so_far + value
    return {"trajectories": states.total(), "states": dict(sorted(states.items())), "calls": calls, **sums}


def diff_configurations(there: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Each value that differs, by its path: ``models.judge.temperature: 0.0 there, 0.7 now``."""
    one, other = dict(_leaves(there)), dict(_leaves(now))
    return [
        f"{path}: {one.get(path, 'nothing')} there, {other.get(path, 'nothing')} now"
        for path in sorted({*one, *other})
        if one.get(path) != other.get(path)
    ]


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}" if path else name)
    elif value is not None:
        yield path, value
