"""Judge runs as a program produces them: in a training loop, an evaluation or a scan (`LiveJudge`)."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from arb.core.suite import Suite
from arb.core.trajectory import Recording
from arb.judges.cli.options import RunOptions
from arb.judges.engine.errors import NoMoreCallsError
from arb.judges.run.config import RunConfig, build_config
from arb.judges.run.folder import RunFolder
from arb.judges.run.progress import CallWarnings, Spend
from arb.judges.run.records import (
    JudgmentRecord,
    error_of,
    judgment_record,
    prediction_row,
    sent_prompts,
    totals,
)
from arb.judges.run.run_facts import judge_facts, run_facts, run_session
from arb.judges.run.runner import Job, NoRecordings, open_executor
from arb.judges.run.scheduler import Judgment, StopRunError, judge_trajectories
from arb.judges.types import Call, ImageOptions, OptionsError, Reply, View, Wants, is_reward_judge, traits_of
from arb.judges.views import missing_inputs, view_of
from dataset_script.new_suite import SOURCE_SPLIT
from dataset_script.sources.base import Observed
from dataset_script.sources.problems import UnusableFileError

_SUITE: Final = Suite("live", (), Path(), Path())
"""The suite of runs that are judged live: it has neither labels nor a list of trajectories."""

_OF_SOURCES: Final = frozenset(
    {"judge", "split", "suite", "source", "agent_from", "typed_source", "benchmark", "agent", "subset", "ids"}
    | {"shard", "limit", "skip_incomplete"}
)
"""The options of ``judges run`` that choose recorded runs. A program passes its runs directly instead."""

_PER_PROCESS: Final = ("max_usd", "requests_per_minute", "tokens_per_minute")
"""The limits that each of several processes would apply on its own."""

_logger: Final = logging.getLogger(__name__)


JudgedBatch = tuple[list[JudgmentRecord], Spend]
"""A batch's records (lines of judgments.jsonl), in the order of its runs, and the cost of the batch."""


class LiveJudge:
    """A judge with the cache, budget, limits and records of ``arb judges run``, for runs in memory.

    A thread with its own event loop makes the calls, so a judge can be used from any thread and next to any
    event loop. The thread starts with the first batch, and again in a forked process.

    Args:
        judge: A judge's name, or ``FILE.py:CLASS``.
        out: A folder for run.json, judgments.jsonl, prompts.jsonl and predictions.jsonl, or None. If the
            folder has an earlier run with the same options, that run is continued within the same budget.
        options: Options of ``arb judges run`` about models, requests, budget, limits and cache.

    Raises:
        OptionsError: Options cannot be used. The message lists all problems.
    """

    def __init__(self, judge: str, out: str | Path | None = None, **options: object):
        self.config = _config(judge, options)
        self._options = {"judge": judge, "out": out, **options}
        self._out = None if out is None else Path(out)
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._engine: _Engine | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # Scout sends scanners to its worker processes, which make the judge again.
        return _for_worker, (type(self), self._owner, self._options)

    @property
    def total_usd(self) -> float | None:
        """The dollars of all batches, and of earlier sessions in the folder ``out``; None if unknown.

        It is 0 before the first batch and after `close`.
        """
        return 0.0 if self._engine is None else self._engine.spend.total_usd

    def submit(self, runs: Sequence[Recording]) -> Future[JudgedBatch]:
        """Start judging runs, and return a future with the result.

        Runs with the same id have to be equal. The future raises StopRunError if the budget is used up or the
        endpoint refuses the account. Replies that have arrived stay in the cache.

        Raises:
            ValueError: Some runs cannot be judged. The message lists all problems. No call was made.
        """
        by_id = {run.trajectory_id: run for run in runs}
        problems = list(_problems(self.config, runs, by_id))
        if problems:
            raise ValueError(f"{self.config.judge.name}: no call was made\n" + "\n".join(problems))
        engine = self._running()
        return asyncio.run_coroutine_threadsafe(engine.judge(by_id, list(runs)), engine.loop)

    async def judge(self, run: Recording) -> JudgmentRecord:
        """Judge one run and return its record. Call it from an asyncio event loop."""
        records, _ = await asyncio.wrap_future(self.submit([run]))
        return records[0]

    def close(self) -> None:
        """Finish the records and stop the thread. This also happens by itself when the program ends.

        A later batch starts the thread again, with a budget that counts only the costs recorded in ``out``.
        """
        with self._lock:
            engine, self._engine = self._engine, None
        if engine is not None and engine.process == os.getpid():
            atexit.unregister(self.close)
            engine.close()

    def _running(self) -> _Engine:
        """Return the engine of this process, which is started if necessary."""
        process = os.getpid()
        if process != self._owner:
            limited = [name for name in _PER_PROCESS if getattr(self.config.options, name) is not None]
            if limited := limited + (["out"] if self._out else []):
                raise OptionsError(
                    f"{', '.join(limited)}: cannot be shared by several processes; use one process (in "
                    "Scout: max_processes=1), or leave out the option"
                )
            if self._engine is not None and self._engine.process != process:
                self._lock, self._engine = threading.Lock(), None  # a fork copies no thread
        with self._lock:
            if self._engine is None:
                self._engine = _Engine(self.config, self._out)
                atexit.register(self.close)
            return self._engine


def _for_worker(kind: type[LiveJudge], owner: int, options: dict[str, Any]) -> LiveJudge:
    live = kind(**options)
    live._owner = owner
    return live


def judge_of_logs(judge: str, out: str | Path | None, options: Mapping[str, object]) -> LiveJudge:
    """Return a judge for runs in logs. Raises OptionsError, for example if the judge needs rewards."""
    live = LiveJudge(judge, out, **options)
    if is_reward_judge(live.config.judge):
        raise OptionsError(f"{judge}: needs rewards, which are not read from logs; use another judge")
    return live


def recorded_options(options: Mapping[str, object]) -> dict[str, object]:
    """Return the options that a log may contain: all but headers, which may be secrets."""
    return {name: value for name, value in options.items() if name != "header"}


def in_python(message: str) -> str:
    """Return a message in which options are named as in Python: ``max_usd`` instead of ``--max-usd``."""
    return re.sub(r"--([a-z][a-z-]*)", lambda flag: flag[1].replace("-", "_"), message)


async def judge_for_log(
    live: LiveJudge, read: Callable[[], Recording]
) -> tuple[bool | None, str | None, dict[str, Any] | None]:
    """Judge the run that ``read`` returns.

    Returns:
        The verdict or None, the reason for the verdict or why there is none, and the facts for the log (None
        if the run cannot be read).
    """
    try:
        record = await live.judge(read())
    except UnusableFileError as problem:
        return None, f"{problem.code} {problem}".strip(), None
    reason = error_of(record) if record["state"] == "error" else prediction_row(record).get("reasoning")
    names = ("judge", "state", "input_tokens", "output_tokens", "cost_usd")
    facts = {name: record[name] for name in names} | {"calls": len(record["calls"])}
    facts |= {name: each for name, each in record["answer"].items() if name != "reasoning"}
    return record["answer"].get("success"), reason, facts


class _Engine:
    """The thread of a `LiveJudge`, with the open cache, endpoints, budget and run folder."""

    def __init__(self, config: RunConfig, out: Path | None):
        self.process = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.spend = Spend()
        self._job = Job(config, NoRecordings(), ())
        self._warnings = CallWarnings(config.models, _logger.warning)
        self._folder: RunFolder | None = None
        self._open = AsyncExitStack()
        threading.Thread(target=self.loop.run_forever, name="arb-judge", daemon=True).start()
        try:
            asyncio.run_coroutine_threadsafe(self._start(out), self.loop).result()
        except BaseException:
            self.close()
            raise

    async def _start(self, out: Path | None) -> None:
        config = self._job.config
        if out is not None:
            folder = RunFolder(out, config.configuration(data_hash=None))
            self._folder = self._open.enter_context(folder)
            self.spend = Spend.of_run(folder.run)
            session = self._open.enter_context(run_session(folder, run_facts(config, 0, 0), self.spend))
            self._open.callback(_finish, folder, config, session)
        executor = open_executor(self._job, self.spend, lambda kind, **facts: None)
        self._executor = await self._open.enter_async_context(executor)

    async def judge(self, runs: Mapping[str, Recording], order: Sequence[Recording]) -> JudgedBatch:
        config, spend = self._job.config, Spend()
        judged: list[Judgment] = []

        async def ask(call: Call) -> Reply:
            try:
                reply = await self._executor.ask(call)
            except NoMoreCallsError as reached:
                raise StopRunError(in_python(str(reached))) from reached
            spend.count(reply)
            self.spend.count(reply)
            self._warnings.note(call.role, reply)
            return reply

        views, most = _RunsInMemory(runs, config.images), config.options.max_in_flight
        try:
            await judge_trajectories(config.judge, runs, views, ask, judged.append, most)
        finally:
            records = [judgment_record(each, self._job.name_of(each)) for each in judged]
            if self._folder is not None:
                self._executor.sync()
                self._folder.append(records, (prompt for each in judged for prompt in sent_prompts(each)))
        by_id = {each["trajectory_id"]: each for each in records}
        return [by_id[each.trajectory_id] for each in order], spend

    def close(self) -> None:
        try:
            asyncio.run_coroutine_threadsafe(self._open.aclose(), self.loop).result()
        finally:
            self.loop.call_soon_threadsafe(self.loop.stop)


def _finish(folder: RunFolder, config: RunConfig, session: dict[str, Any]) -> None:
    """Finish the files of a folder at the end of a session."""
    folder.finalize([*folder.states])
    session["ended"] = "finished"
    facts = {"totals": totals(folder.records()), "judge": judge_facts(config.judge, config.name)}
    folder.update_run(facts)


class _RunsInMemory(NoRecordings):
    """The recordings of a batch by id, as the `RunSource` of its judge."""

    def __init__(self, runs: Mapping[str, Recording], images: ImageOptions):
        self._runs, self._images = runs, images

    def view(self, trajectory_id: str, wants: Wants) -> View:
        return view_of(self._runs[trajectory_id], wants, self._images)

    def reward(self, trajectory_id: str) -> float | None:
        return self._runs[trajectory_id].cum_reward


def _config(judge: str, options: Mapping[str, object]) -> RunConfig:
    known = {each.name for each in fields(RunOptions)} - _OF_SOURCES
    if unknown := sorted(options.keys() - known):
        raise OptionsError(
            f"{', '.join(unknown)}: not an option of a judge of runs in memory; use one of "
            + ", ".join(sorted(known))
        )
    try:
        typed = TypeAdapter(RunOptions).validate_python({"judge": judge, "split": SOURCE_SPLIT, **options})
    except ValidationError as problem:
        lines = (f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in problem.errors())
        raise OptionsError("\n".join(lines)) from problem
    try:
        config = build_config(typed, chosen=(_SUITE, ()))
    except OptionsError as problem:
        raise OptionsError(in_python(str(problem))) from problem
    if traits_of(config.judge).steps is not None:
        raise OptionsError(f"{judge}: answers about steps, not about runs; use another judge")
    return config


def _problems(config: RunConfig, runs: Sequence[Recording], by_id: Mapping[str, Recording]) -> Iterator[str]:
    """Yield why runs cannot be judged: unequal runs have the same id, or inputs of the judge are missing."""
    for number, run in enumerate(runs, start=1):
        name = f"run {number} ({run.trajectory_id})"
        if by_id[run.trajectory_id] != run:
            yield f"{name}: another run has the same id; give every run an id of its own"
            continue
        observed = Observed(
            urls=any(step.url for step in run.steps),
            axtrees=any(step.axtree or step.axtree_pruned for step in run.steps),
            screenshots=any(step.screenshot for step in run.steps),
            texts=any(step.text for step in run.steps),
        )
        if missing := missing_inputs(config.judge, observed):
            yield f"{name}: has no {' and no '.join(missing)}; use a judge that does without"
