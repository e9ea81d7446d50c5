"""Read and write the folder of a run.

    run.json           configuration, versions, hashes, totals
    judgments.jsonl    one line per judged trajectory, appended as it ends and sorted after each session
    prompts.jsonl      the prompts that were sent, with each text stored once (`engine.prompt_store`)
    predictions.jsonl  the prediction file, written after each session

Only one process can use the folder at a time. It stays usable if the process is killed, since an incomplete
last line is ignored.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from arb.core.files import atomic_write, atomic_writer
from arb.core.formats import FORMATS, format_problem
from arb.core.predictions.write import write_predictions
from arb.judges.engine.prompt_store import Prompt, PromptReader, PromptWriter
from arb.judges.engine.storage import LineFile, StorageError, complete_lines, storing
from arb.judges.run.progress import Progress, RunEnd
from arb.judges.run.records import (
    JudgmentRecord,
    answer_of,
    error_of,
    judgment_record,
    prediction_rows,
    prompts_changed,
    sent_prompts,
)
from arb.judges.run.scheduler import Judgment, RunSource
from arb.judges.types import AnyJudge, ModelSettings

if TYPE_CHECKING:
    from arb.core.suite import Suite

RUN, JUDGMENTS, PREDICTIONS = "run.json", "judgments.jsonl", "predictions.jsonl"
PROMPTS = "prompts.jsonl"

UPDATE_INTERVAL_S: Final = 1.0
"""The minimum number of seconds between two updates of the dollars in run.json."""


class RunFolderError(ValueError):
    """Raised if a folder cannot be used for this run. The message says why and what to do."""


class OtherConfigurationError(RunFolderError):
    """Raised if a folder contains a run with a configuration other than ``wanted``.

    ``paths`` names the values that differ. If the configurations are equal, it names only `SENT_PROMPTS`.
    """

    def __init__(self, folder: Path, there: Mapping[str, Any], wanted: Mapping[str, Any]):
        self.paths, self.wanted = tuple(_differing(there, wanted)) or (SENT_PROMPTS,), wanted
        differences = diff_configurations(there, wanted) or [f"{MEANINGS[SENT_PROMPTS]} have changed"]
        super().__init__(
            f"{folder}: contains a run with another configuration; use another folder, or the same options:\n"
            + "\n".join(f"  {each}" for each in differences)
        )


SENT_PROMPTS: Final = "sent_prompts"
"""The name for the prompts if they differ although their hash in the configuration is the same."""


class RunFolder:
    """A run's folder, created if necessary and locked by this process until `close`.

    Raises OtherConfigurationError if it contains a run with another configuration, and RunFolderError if it
    is damaged, cannot be used or another process uses it.
    """

    def __init__(self, folder: Path, configuration: Mapping[str, Any]):
        self.folder = folder
        self.run: dict[str, Any]
        """The content of run.json."""
        self._places: dict[str, tuple[int, int]] = {}
        self.states: dict[str, str] = {}
        """The state of every trajectory judged so far, by id."""
        self._has_steps = False
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise RunFolderError(f"{folder}: cannot be written ({error.strerror}); use another") from error
        with ExitStack() as opened:
            opened.callback(os.close, self._lock)
            self._take(configuration)
            with storing(folder):
                self._judgments = opened.enter_context(closing(LineFile(folder / JUDGMENTS)))
            for start, line, each in _checked_lines(folder / JUDGMENTS):
                self._note(each.trajectory_id, each.state, each.answer, (start, len(line)))
            self._prompts = opened.enter_context(closing(PromptWriter(folder / PROMPTS)))
            self._opened = opened.pop_all()

    def append(self, records: Iterable[JudgmentRecord], prompts: Iterable[Prompt] = ()) -> None:
        """Append records of judged trajectories and flush them to the disk. The last record of an id counts.

        ``prompts`` has the prompts of all calls in the records, in order. The name under which a call's
        prompt is stored is added to the call. Raises StorageError.
        """
        with storing(self.folder):
            names = iter(self._prompts.add(prompts))
            for record in records:
                for call, name in zip(record["calls"], names, strict=False):
                    call["prompt"] = name
                line = json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"
                place = (self._judgments.append(line), len(line))
                self._note(record["trajectory_id"], record["state"], record["answer"], place)
            self._judgments.sync()

    def records(self, ids: Iterable[str] | None = None) -> Iterator[JudgmentRecord]:
        """Yield the records of those ``ids`` that were judged, or of all, reading one record at a time."""
        for trajectory_id in self._places if ids is None else ids:
            if trajectory_id in self._places:
                yield json.loads(self._line(trajectory_id))

    def update_run(self, facts: Mapping[str, Any]) -> None:
        """Set these keys of run.json and write the file. Raises StorageError."""
        self.run = {**self.run, **facts}
        with storing(self.folder):
            atomic_write(self.folder / RUN, json.dumps(self.run, indent=2).encode("ascii") + b"\n")

    def finalize(self, ids: Sequence[str], suite: Suite | None = None) -> None:
        """Rewrite judgments.jsonl with one line per id, in the order of ``ids``, and predictions.jsonl.

        If the judge gave answers about steps, predictions.jsonl has rows for the steps of the suite too.

        Raises StorageError if a file cannot be written; that file stays unchanged.
        """
        order = [each for each in ids if each in self._places]
        with storing(self.folder):
            with atomic_writer(self.folder / JUDGMENTS) as file:
                file.writelines(map(self._line, order))
            rows = prediction_rows(self.records(order), suite, has_steps=self._has_steps)
            targets = suite.targets if suite is not None else ()
            write_predictions(self.folder / PREDICTIONS, rows, targets)

    def check_prompts(
        self, judge: AnyJudge, models: Mapping[str, ModelSettings], views: RunSource, there: Collection[str]
    ) -> None:
        """Raise OtherConfigurationError if the judge would now send prompts other than those in the folder.

        Only the first, middle and last of the judged trajectories that have a run (``there``) are compared.
        """
        done = [each for each in self.states if each in there]
        chosen = {done[place] for place in (0, len(done) // 2, -1)} if done else ()
        records = list(self.records(chosen))
        if prompts_changed(records, judge, models, views, partial(open_prompts, self.folder)):
            configuration = self.run["configuration"]
            raise OtherConfigurationError(self.folder, configuration, configuration)

    def close(self) -> None:
        """Close the files and unlock the folder."""
        self._opened.close()

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self, configuration: Mapping[str, Any]) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunFolderError(f"{self.folder}: is in use by another process; wait for it") from None
        path = self.folder / RUN
        if path.is_file():
            self.run = read_run(self.folder)
            wanted = json.loads(json.dumps(configuration))
            differs = bool(_differing(there := self.run["configuration"], wanted))
            judgments = self.folder / JUDGMENTS
            if differs and not (judgments.is_file() and judgments.stat().st_size):
                # Nothing was judged yet (perhaps the address was wrong), so the configuration may change.
                self.update_run({"configuration": wanted})
            elif differs:
                raise OtherConfigurationError(self.folder, there, wanted)
            return
        if (self.folder / JUDGMENTS).exists():
            raise RunFolderError(f"{self.folder}: contains {JUDGMENTS} but no {RUN}; use another folder")
        self.run = {"format": FORMATS["run folder"], "configuration": dict(configuration)}
        self.update_run({})

    def _line(self, trajectory_id: str) -> bytes:
        return self._judgments.read(*self._places[trajectory_id])

    def _note(
        self, trajectory_id: str, state: str, answer: Mapping[str, Any], place: tuple[int, int]
    ) -> None:
        self._places[trajectory_id] = place
        self.states[trajectory_id] = state
        self._has_steps |= "steps" in answer


def read_run(folder: Path) -> dict[str, Any]:
    """Return the content of run.json. Raises RunFolderError if the file is missing or unreadable."""
    path = folder / RUN
    if not folder.exists():
        raise RunFolderError(f"{folder}: this path does not exist; check its spelling")
    try:
        run = json.loads(path.read_bytes())
        problem = format_problem("run folder", run)
        if problem is None and isinstance(run, dict) and "configuration" in run:
            msgspec.convert(run, _Run)
    except OSError as error:
        raise RunFolderError(f"{folder}: contains no readable {RUN}; name the folder of a run") from error
    except (ValueError, RecursionError) as error:
        raise RunFolderError(
            f"{path}: is damaged ({error}). Restore the file, or run the judge again in a new folder: "
            "replies in the cache cost nothing"
        ) from error
    if problem is not None:
        raise RunFolderError(f"{path}: {problem}")
    if not isinstance(run, dict) or not {"format", "configuration"} <= run.keys():
        raise RunFolderError(f"{path}: does not describe a run; name another folder")
    return run


def read_judgments(folder: Path) -> Iterator[JudgmentRecord]:
    """Yield the last record of each id in judgments.jsonl, without locking. Raises RunFolderError."""
    try:
        last = {each.trajectory_id: start for start, _, each in _checked_lines(folder / JUDGMENTS)}
        with (folder / JUDGMENTS).open("rb") as file:
            for start in last.values():
                file.seek(start)
                yield json.loads(file.readline())
    except OSError as error:
        raise RunFolderError(f"{folder}: contains no readable {JUDGMENTS} ({error})") from error


class _Configuration(msgspec.Struct):
    """The fields of a configuration that every reader relies on."""

    suite: str
    split: str
    judge: str
    models: dict[str, dict[str, Any]]


class _Run(msgspec.Struct):
    """The fields of run.json that every reader relies on."""

    configuration: _Configuration
    sessions: list[dict[str, Any]] = []
    spent_usd: float | None = None
    calls_paid: int = 0


class _Reply(msgspec.Struct):
    """The fields of a reply in judgments.jsonl that every reader relies on."""

    state: str


class _Call(msgspec.Struct):
    """The fields of a call in judgments.jsonl that every reader relies on."""

    role: str
    purpose: str
    stage: int
    sample: int
    reply: _Reply


class _Line(msgspec.Struct):
    """The fields of a line of judgments.jsonl that every reader relies on."""

    trajectory_id: str
    state: str
    answer: dict[str, Any]
    calls: list[_Call]
    input_tokens: float | None = None
    output_tokens: float | None = None
    cost_usd: float | None = None


def _checked_lines(path: Path) -> Iterator[tuple[int, bytes, _Line]]:
    """Yield the offset, the bytes and the fields of each complete line. Raises OSError, RunFolderError."""
    for number, (start, line) in enumerate(complete_lines(path), start=1):
        try:
            # msgspec.json rejects lone surrogates and NaN, which `RunFolder.append` can write.
            found = msgspec.convert(json.loads(line), _Line)
            answer_of({"state": found.state, "answer": found.answer})  # fails if a key is unknown
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise RunFolderError(
                f"{path}, line {number}: is damaged ({error}). Restore the file, or delete this line and run "
                "the judge again: replies in the cache cost nothing"
            ) from error
        yield start, line, found


MEANINGS: Final = {
    "judge_file_sha256": "the file of your judge; replies in the cache are not paid again",
    "prompts_hash": "the judge's prompts",
    "view_hash": "what the judge sees of a run",
    "data_hash": "the recorded runs",
    SENT_PROMPTS: "the prompts that are sent",
}
"""What the hashes in a configuration stand for, in the words of messages."""


def diff_configurations(there: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return one line per value that differs, such as ``models.judge.temperature: 0.0 there, 0.7 now``."""
    return [
        f"{path}{f' ({MEANINGS[path]})' if path in MEANINGS else ''}: {one} there, {other} now"
        for path, (one, other) in _differing(there, now).items()
    ]


def _differing(there: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    one, other = dict(_leaves(there)), dict(_leaves(now))
    pairs = {path: (one.get(path, "nothing"), other.get(path, "nothing")) for path in sorted({*one, *other})}
    return {path: pair for path, pair in pairs.items() if one.get(path) != other.get(path)}


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}" if path else name)
    elif value is not None:
        yield path, value


@contextmanager
def open_prompts(folder: Path) -> Iterator[PromptReader | None]:
    """Yield a reader of a run's prompts, which is closed afterwards, or None if no prompts are stored."""
    path = folder / PROMPTS
    with closing(PromptReader(path)) if path.is_file() else nullcontext() as prompts:
        yield prompts


MAX_LEADING_ERRORS: Final = 20
"""A run stops if it has at least this many results and all of them are errors."""

_Result = tuple[JudgmentRecord, list[Prompt]]
"""A line of judgments.jsonl, and the prompts of its calls."""


class ResultWriter:
    """Writes results into the run's folder as they arrive, in a thread. Use it with ``async with``.

    As long as all results are errors, they are held back: with a wrong key or model name, every trajectory
    fails and has to be judged again. The dollars spent, and those reserved for calls in flight, are written
    into run.json every second, so that a killed run can continue within its budget.

    ``name_of`` returns the judge's name for a result. ``sync`` flushes the reply cache, and is called before
    results are written. ``on_failure`` is called if a write fails.
    """

    def __init__(
        self,
        folder: RunFolder,
        name_of: Callable[[Judgment], str],
        sync: Callable[[], None],
        progress: Progress,
        on_failure: Callable[[StorageError], None] = lambda problem: None,
    ):
        self._folder, self._name_of, self._sync, self._progress = folder, name_of, sync, progress
        self._on_failure = on_failure
        self._waiting: asyncio.Queue[_Result | None] = asyncio.Queue()
        self._first_errors: list[_Result] | None = []
        self._noted_usd: float | None = 0.0
        self._noted_at = 0.0
        self.written = 0

    def write(self, judged: Judgment) -> None:
        """Queue a result to be written before the block ends. Raises StorageError if a write has failed."""
        if self._task.done():
            self._task.result()
        record = judgment_record(judged, self._name_of(judged))
        result = (record, sent_prompts(judged))
        if self._first_errors is None:
            self._waiting.put_nowait(result)
            return
        self._first_errors.append(result)
        if record["state"] != "error":
            self.write_errors()

    @property
    def all_failed(self) -> bool:
        """Whether all results so far are errors, and there are at least `MAX_LEADING_ERRORS`."""
        return self._first_errors is not None and len(self._first_errors) >= MAX_LEADING_ERRORS

    def write_errors(self) -> None:
        """Write the errors that were held back, and from now on write every result."""
        for result in self._first_errors or ():
            self._waiting.put_nowait(result)
        self._first_errors = None

    def discard_errors(self) -> RunEnd:
        """Discard the errors that were held back, and return how the run ended: every trajectory failed."""
        first = error_of(self._first_errors[0][0]) if self._first_errors else "no reply"
        self._first_errors = []
        return RunEnd(
            "failing",
            f"stopped: every trajectory so far ended in an error; the first error: {first}\n"
            "No result was written. Fix the cause and run the same command again.",
        )

    async def __aenter__(self) -> ResultWriter:
        self._task = asyncio.create_task(self._write())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._waiting.put_nowait(None)
        await self._task

    async def _write(self) -> None:
        is_open = True
        while is_open:
            waiting = await self._next()
            is_open = None not in waiting
            results = [result for result in waiting if result is not None]
            try:
                await asyncio.to_thread(self._put, results, self._progress.spend.facts)
            except StorageError as problem:
                self._on_failure(problem)
                raise
            for record, _ in results:
                self._progress.judged(record["state"])
            self.written += len(results)

    async def _next(self) -> list[_Result | None]:
        """Return the queued results, or [] if none arrives for a while. None marks the end of the run."""
        try:
            waiting = [await asyncio.wait_for(self._waiting.get(), UPDATE_INTERVAL_S)]
        except TimeoutError:
            return []
        while not self._waiting.empty():
            waiting.append(self._waiting.get_nowait())
        return waiting

    def _put(self, results: list[_Result], facts: Mapping[str, Any]) -> None:
        if results:
            self._sync()
            prompts = (prompt for _, sent in results for prompt in sent)
            self._folder.append([record for record, _ in results], prompts)
        if facts["spent_usd"] != self._noted_usd and time.monotonic() - self._noted_at >= UPDATE_INTERVAL_S:
            self._folder.update_run(facts)
            self._noted_usd, self._noted_at = facts["spent_usd"], time.monotonic()
