"""The folder of a run: what it is made of, what came out so far, and the prediction file at its end.

    run.json           configuration, versions, hashes, totals; replaced whole
    judgments.jsonl    a line for each judged trajectory, added as it ends; sorted when a session ends
    prompts.jsonl      what was sent in the calls of these lines, every text once (`engine.prompt_store`)
    predictions.jsonl  the prediction file; replaced whole when a session ends

One process at a time has the folder. Killed at any moment it is whole: a line without its end is not there.
While a run goes on results are written together, many with one wait for the disk, none before its replies
are on it; nothing is written while all end in errors, as they do with a wrong key or model name.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import fields
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from arb.core.files import atomic_write, atomic_writer
from arb.core.predictions.write import write_predictions
from arb.core.vocabulary import PREDICTION_COLUMNS
from arb.judges.engine.prompt_store import Prompt, PromptReader, PromptWriter, prompt_of
from arb.judges.engine.storage import LineFile, StorageError, complete_lines, storing
from arb.judges.run.progress import Progress, was_generated
from arb.judges.run.records import CallSums, prompts_changed
from arb.judges.run.scheduler import Exchange, Judgment, RunSource
from arb.judges.types import Answer, AnyJudge, Image, Message, ModelSettings, Reply

JudgmentRecord = dict[str, Any]
"""A line of judgments.jsonl, as JSON holds it."""

RUN, JUDGMENTS, PREDICTIONS = "run.json", "judgments.jsonl", "predictions.jsonl"
PROMPTS = "prompts.jsonl"
FORMAT: Final = 1
"""The form of the folder that this code writes and reads."""

UPDATE_INTERVAL_S: Final = 1.0
"""How often the dollars spent are noted in run.json."""

_ANSWER_FIELDS: Final = tuple(each.name for each in fields(Answer) if each.name != "state")
_REPLY_FIELDS: Final = tuple(
    each.name for each in fields(Reply) if each.name not in ("logprobs", "key", "rate_limits", "others")
)


DETAILED_TOKENS: Final = ("cached_input_tokens", "reasoning_tokens")
"""Tokens that are among those of input and output; 0 where the endpoint does not tell them apart."""


def judgment_record(judged: Judgment, judge: str) -> JudgmentRecord:
    """Return the line of a judged trajectory.

    It depends only on the replies, so a resumed run writes identical lines. Tokens and dollars are sums over
    the calls, or None if any is unknown; a failed call adds only what its attempts are known to have cost.
    Latency adds up the stages, each as long as its slowest call.
    """
    replies = [each.reply for each in judged.exchanges]
    made = [reply for reply in replies if was_generated(reply)]
    record = {
        "trajectory_id": judged.trajectory_id,
        "judge": judge,
        "state": judged.answer.state,
        "answer": {k: v for k in _ANSWER_FIELDS if (v := getattr(judged.answer, k)) is not None},
        "input_tokens": _sum(reply.input_tokens for reply in made),
        "output_tokens": _sum(reply.output_tokens for reply in made),
        "cost_usd": _sum(reply.cost_usd for reply in replies if was_generated(reply) or reply.cost_usd),
        "latency_s": _latency(judged.exchanges),
        "calls": [_call_record(each) for each in judged.exchanges],
    }
    for name in DETAILED_TOKENS:
        if tokens := sum(getattr(reply, name) or 0 for reply in made):
            record[name] = tokens
    if judged.problem is not None:
        record["problem"] = judged.problem
    if judged.reward is not None:
        record["reward"] = judged.reward
    return record


def prediction_row(record: JudgmentRecord) -> JudgmentRecord:
    """Return the row of a prediction file for a line; ``success`` is null unless the state is ``ok``."""
    known = {**record, **record["answer"]}
    row = {name: known[name] for name in PREDICTION_COLUMNS if known.get(name) is not None}
    return {**row, "success": known.get("success")}


def error_of(record: JudgmentRecord) -> str:
    """Return why a trajectory has no verdict: what prevented judging it, or its first failed call's error."""
    failures = (call["reply"].get("error") for call in record["calls"])
    return record.get("problem") or next(filter(None, failures), "no reply")


def sent_prompts(judged: Judgment) -> list[Prompt]:
    """Return what was sent in each call of a judged trajectory, in order."""
    return [prompt_of(_sent(each)) for each in judged.exchanges]


def _sent(exchange: Exchange) -> tuple[Message, ...]:
    shorter = exchange.call.shorter if exchange.reply.used_shorter else None
    return exchange.call.messages if shorter is None else shorter


def _call_record(exchange: Exchange) -> JudgmentRecord:
    """The call is named by its key, a hash over messages and parameters; pictures by theirs."""
    call, reply = exchange.call, exchange.reply
    values = {name: getattr(reply, name) for name in _REPLY_FIELDS}
    return {
        "purpose": call.purpose,
        "role": call.role,
        "stage": exchange.stage,
        "sample": call.sample,
        "key": reply.key,
        "images": _pictures(_sent(exchange)),
        "reply": {k: v for k, v in values.items() if v is not None and v is not False and v != ()},
    }


def _pictures(sent: tuple[Message, ...]) -> list[str]:
    return [part.sha256 for message in sent for part in message.parts if isinstance(part, Image)]


def _latency(exchanges: Sequence[Exchange]) -> float | None:
    slowest: list[float] = []
    for _, stage in groupby(exchanges, key=lambda each: each.stage):
        known = [each.reply.latency_s for each in stage]
        if any(seconds is None for seconds in known):
            return None
        slowest.append(max(known))
    return sum(slowest)


def _sum(values: Iterable[float | None]) -> float | None:
    found = list(values)
    return None if any(value is None for value in found) else sum(found)


class RunFolderError(ValueError):
    """A folder that cannot be used for this run; the message says why and what to do."""


class OtherConfigurationError(RunFolderError):
    """Raised for a folder that holds a run of another configuration than ``wanted``.

    ``paths`` are those that differ; if none does, it is the prompts that are sent.
    """

    def __init__(self, folder: Path, there: Mapping[str, Any], wanted: Mapping[str, Any]):
        self.paths, self.wanted = tuple(_differing(there, wanted)) or (SENT_PROMPTS,), wanted
        differences = diff_configurations(there, wanted) or [f"{MEANINGS[SENT_PROMPTS]} have changed"]
        super().__init__(
            f"{folder}: holds a run with another configuration; name another folder, or use that "
            "configuration:\n" + "\n".join(f"  {each}" for each in differences)
        )


SENT_PROMPTS: Final = "sent_prompts"


class RunFolder:
    """A run's folder, held by this process until `close`.

    Made when it is not there. Raises RunFolderError if another process has the folder, or it holds something
    else, and OtherConfigurationError, which names every difference, when it holds a run of another
    configuration.
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
            with storing(folder):
                self._judgments = LineFile(folder / JUDGMENTS)
        except BaseException:
            os.close(self._lock)
            raise
        self._prompts = PromptWriter(folder / PROMPTS)
        self._places: dict[str, tuple[int, int]] = {}
        self.states: dict[str, str] = {}
        """The state of every trajectory judged so far, by id."""
        for start, line in complete_lines(folder / JUDGMENTS):
            self._note(json.loads(line), start, len(line))

    def append(self, records: Iterable[JudgmentRecord], prompts: Iterable[Prompt] = ()) -> None:
        """Add judged trajectories, which are on the disk when this returns. The last line of an id counts.

        ``prompts`` are those of their calls, in order; each call gets the name of its own.
        Raises StorageError.
        """
        with storing(self.folder):
            names = iter(self._prompts.add(prompts))
            for record in records:
                for call, name in zip(record["calls"], names, strict=False):
                    call["prompt"] = name
                line = json.dumps(record, separators=(",", ":")).encode("ascii") + b"\n"
                self._note(record, self._judgments.append(line), len(line))
            self._judgments.sync()

    def records(self, ids: Iterable[str] | None = None) -> Iterator[JudgmentRecord]:
        """Yield judged trajectories, one in memory at a time: those of ``ids`` in their order, or all."""
        for trajectory_id in self._places if ids is None else ids:
            if trajectory_id in self._places:
                yield json.loads(self._line(trajectory_id))

    def update_run(self, facts: Mapping[str, Any]) -> None:
        """Put facts into run.json, over those of the same name, and replace the file. Raises StorageError."""
        self.run = {**self.run, **facts}
        with storing(self.folder):
            atomic_write(self.folder / RUN, json.dumps(self.run, indent=2).encode("ascii") + b"\n")

    def finalize(self, ids: Sequence[str]) -> None:
        """Rewrite judgments and predictions in the order of ``ids``, without lines that were replaced.

        Raises StorageError; then the files are as they were.
        """
        order = [each for each in ids if each in self._places]
        with storing(self.folder):
            with atomic_writer(self.folder / JUDGMENTS) as file:
                file.writelines(map(self._line, order))
            write_predictions(self.folder / PREDICTIONS, map(prediction_row, self.records(order)))

    def check_prompts(
        self, judge: AnyJudge, models: Mapping[str, ModelSettings], views: RunSource, there: Collection[str]
    ) -> None:
        """Raise OtherConfigurationError if the judge now sends other prompts than those in the folder.

        Three of the judged trajectories that are ``there`` are looked at: the first, the middle and the last.
        """
        done = [each for each in self.states if each in there]
        chosen = {done[place] for place in (0, len(done) // 2, -1)} if done else ()
        records = list(self.records(chosen))
        if prompts_changed(records, judge, models, views, partial(open_prompts, self.folder)):
            configuration = self.run["configuration"]
            raise OtherConfigurationError(self.folder, configuration, configuration)

    def close(self) -> None:
        """Leave the folder to other processes."""
        self._prompts.close()
        self._judgments.close()
        os.close(self._lock)

    def __enter__(self) -> RunFolder:
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
            wanted = json.loads(json.dumps(configuration))
            differs = bool(_differing(there := self.run["configuration"], wanted))
            judgments = self.folder / JUDGMENTS
            if differs and not (judgments.is_file() and judgments.stat().st_size):
                # Nothing was judged: all failed, at a wrong address say, which is another configuration.
                self.update_run({"configuration": wanted})
            elif differs:
                raise OtherConfigurationError(self.folder, there, wanted)
            return
        if (self.folder / JUDGMENTS).exists():
            raise RunFolderError(f"{self.folder}: has {JUDGMENTS} but no {RUN}; name another folder")
        self.run = {"format": FORMAT, "configuration": dict(configuration)}
        self.update_run({})

    def _line(self, trajectory_id: str) -> bytes:
        return self._judgments.read(*self._places[trajectory_id])

    def _note(self, record: JudgmentRecord, start: int, length: int) -> None:
        self._places[record["trajectory_id"]] = (start, length)
        self.states[record["trajectory_id"]] = record["state"]


def read_run(folder: Path) -> dict[str, Any]:
    """Return the content of run.json. Raises RunFolderError if the folder holds no run."""
    path = folder / RUN
    try:
        run = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise RunFolderError(f"{folder}: has no {RUN} that can be read; name the folder of a run") from error
    if not isinstance(run, dict) or run.get("format") != FORMAT or "configuration" not in run:
        raise RunFolderError(f"{path}: is not of format {FORMAT}; name another folder")
    return run


def read_judgments(folder: Path) -> Iterator[JudgmentRecord]:
    """Yield the last line of each id in judgments.jsonl, without taking the folder. Raises RunFolderError."""
    try:
        last = {
            json.loads(line)["trajectory_id"]: start for start, line in complete_lines(folder / JUDGMENTS)
        }
        with (folder / JUDGMENTS).open("rb") as file:
            for start in last.values():
                file.seek(start)
                yield json.loads(file.readline())
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunFolderError(f"{folder}: has no {JUDGMENTS} that can be read ({error})") from error


def totals(records: Iterable[JudgmentRecord]) -> dict[str, Any]:
    """Sum up judged trajectories: states, calls, tokens, dollars (None if one of them is not known), and what
    `CallSums` counts.
    """
    sums: dict[str, float | None] = dict.fromkeys(("input_tokens", "output_tokens", "cost_usd"), 0)
    details = dict.fromkeys(DETAILED_TOKENS, 0)
    states: Counter[str] = Counter()
    calls, sums_of_calls = 0, CallSums()
    for record in records:
        sums_of_calls.add(record)
        states[record["state"]] += 1
        calls += len(record["calls"])
        for name, sum_so_far in sums.items():
            value = record.get(name)
            sums[name] = None if value is None or sum_so_far is None else sum_so_far + value
        for name in DETAILED_TOKENS:
            details[name] += record.get(name, 0)
    found = {"trajectories": states.total(), "states": dict(sorted(states.items())), "calls": calls}
    return found | sums | details | sums_of_calls.facts()


MEANINGS: Final = {
    "judge_file_sha256": "the file of your judge; replies in the cache are not paid again",
    "prompts_hash": "the wording of the prompts",
    "view_hash": "what of a run is shown, and how",
    "data_hash": "the recorded runs",
    SENT_PROMPTS: "the prompts that are sent",
}
"""Of the digests in a configuration."""


def diff_configurations(there: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return each value that differs, by its path: ``models.judge.temperature: 0.0 there, 0.7 now``."""
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
    """Open what was sent in the calls of a run, by the names in its lines; None if no call was made."""
    path = folder / PROMPTS
    with closing(PromptReader(path)) if path.is_file() else nullcontext() as prompts:
        yield prompts


MAX_LEADING_ERRORS: Final = 20
"""A run stops when its first results, this many, are all in the state ``error``."""

_Result = tuple[JudgmentRecord, list[Prompt]]
"""A line of judgments.jsonl, and what was sent in each of its calls."""


class ResultWriter:
    """A writer of results into the run's folder, in a thread, as they come. Use it with ``async with``.

    ``name_of`` gives the judge's name for a line. ``sync`` flushes the cache to disk; ``on_failure`` is
    called at once when a write fails. While every trajectory has ended in an error, nothing is written: with
    a wrong key or model name all do, and they are judged again once that is fixed (see `discard_errors`).
    What was paid is written into run.json every second, so that the budget survives a kill.
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
        """Take a result; it is on the disk when the block is left, at the latest. Raises what writing did."""
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
        """Whether so many results came, all of them errors, that the run should stop."""
        return self._first_errors is not None and len(self._first_errors) >= MAX_LEADING_ERRORS

    def write_errors(self) -> None:
        """Write the errors so far after all; from now on nothing is held back."""
        for result in self._first_errors or ():
            self._waiting.put_nowait(result)
        self._first_errors = None

    def discard_errors(self) -> str:
        """Forget the errors, and return what the first one was."""
        first = error_of(self._first_errors[0][0]) if self._first_errors else "no reply"
        self._first_errors = []
        return first

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
                await asyncio.to_thread(self._put, results)
            except StorageError as problem:
                self._on_failure(problem)
                raise
            for record, _ in results:
                self._progress.judged(record["state"])
            self.written += len(results)

    async def _next(self) -> list[_Result | None]:
        """What there is to write; empty when nothing came for a while."""
        try:
            waiting = [await asyncio.wait_for(self._waiting.get(), UPDATE_INTERVAL_S)]
        except TimeoutError:
            return []
        while not self._waiting.empty():
            waiting.append(self._waiting.get_nowait())
        return waiting

    def _put(self, results: list[_Result]) -> None:
        if results:
            self._sync()
            prompts = (prompt for _, sent in results for prompt in sent)
            self._folder.append([record for record, _ in results], prompts)
        spend = self._progress.spend
        if spend.total_usd != self._noted_usd and time.monotonic() - self._noted_at >= UPDATE_INTERVAL_S:
            self._folder.update_run(facts := spend.facts)
            self._noted_usd, self._noted_at = facts["spent_usd"], time.monotonic()
