"""Turn a configuration into a complete run folder (`run_judge`), in this process (`run_local`).

An `Engine` takes a job, the run's folder and its progress, writes results into the folder, and returns how
the run ended. Other engines use a Batch API (`batch`) or a Ray cluster (`arb.judges.ray`).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from arb.core.cli import stopped_like_ctrl_c
from arb.judges.endpoints.connection import TIMEOUT_S
from arb.judges.engine.budget import BudgetReached, build_budget
from arb.judges.engine.concurrency import AdaptiveLimit
from arb.judges.engine.engine import CallExecutor, OnEvent, open_endpoints
from arb.judges.engine.errors import NoMoreCallsError
from arb.judges.registry import full_name
from arb.judges.run.config import RunConfig
from arb.judges.run.folder import ResultWriter, RunFolder
from arb.judges.run.progress import Progress, RunEnd, Spend, StopControl
from arb.judges.run.records import error_of, totals
from arb.judges.run.run_facts import judge_facts, run_facts, run_session, source_facts_of
from arb.judges.run.scheduler import (
    JudgeOne,
    Judgment,
    LeaveOutError,
    RunSource,
    StopRunError,
    judge_trajectories,
    judge_trajectory,
)
from arb.judges.run.selection import source_folder
from arb.judges.types import Call, Judge, OptionsError, Reply, View, Wants, is_reward_judge
from arb.judges.views import Views


@dataclass(frozen=True)
class Job:
    """The work of an engine: a configuration, the recorded runs, and the ids to judge, in order.

    ``skipped`` is the number of chosen trajectories that lack a part that the judge looks at.
    """

    config: RunConfig
    views: RunSource
    ids: tuple[str, ...]
    skipped: int = 0

    def name_of(self, judged: Judgment) -> str:
        """Return the judge's full name for a trajectory, with the models that answered if they differ."""
        config = self.config
        served: defaultdict[str, set[str]] = defaultdict(set)
        for each in judged.exchanges:
            if each.reply.model is not None:
                served[each.call.role].add(each.reply.model)
        if all(names == {config.models[role].model} for role, names in served.items()):
            return config.name
        return full_name(config.judge, config.models, served)

    @property
    def absent(self) -> int:
        """How many of the configuration's trajectories have no recorded run."""
        return len(self.config.ids) - len(self.ids) - self.skipped


Engine = Callable[[Job, RunFolder, Progress], RunEnd]
"""Judges a job's trajectories, writes the results into a run folder, and returns how the run ended."""


def run_local(job: Job, folder: RunFolder, progress: Progress) -> RunEnd:
    """Judge a job in this process, with all calls on one event loop. This is an `Engine`."""
    return asyncio.run(run_async(job, folder, progress))


async def run_async(
    job: Job, folder: RunFolder, progress: Progress, judge_one: JudgeOne = judge_trajectory
) -> RunEnd:
    """Judge the job's trajectories, write each result into the folder, and return how the run ended.

    It stops early on Ctrl-C, at the budget, if the account is refused, if all results are errors, and after a
    long time of only rate limits. Calls in flight are still completed, and their results are written.
    """
    config = job.config
    stopping = StopControl(progress.say, lambda: executor.stop_waiting(StopRunError()))
    left_out: BudgetReached | None = None

    async def ask(call: Call) -> Reply:
        nonlocal left_out
        if stopping.ended is not None:
            raise StopRunError
        try:
            reply = await executor.ask(call)
        except NoMoreCallsError as reached:
            if isinstance(reached, BudgetReached) and not reached.is_final:
                left_out = reached
                raise LeaveOutError from reached
            stopping.stop(reached.how, str(reached))
            raise StopRunError from reached
        progress.spend.count(reply)
        progress.warnings.note(call.role, reply)
        return reply

    def keep(judged: Judgment) -> None:
        writer.write(judged)
        if config.models and writer.all_failed and stopping.ended is None:
            stopping.stop("failing", "")

    async with (
        open_executor(job, progress.spend, progress.event) as executor,
        ResultWriter(folder, job.name_of, executor.sync, progress, executor.stop_waiting) as writer,
    ):
        if not config.models:
            writer.write_errors()
        with stopping.on_signals(), suppress(StopRunError):
            try:
                await judge_trajectories(
                    config.judge, job.ids, job.views, ask, keep, config.max_in_flight, judge_one
                )
            except asyncio.CancelledError:
                if stopping.ended is None:
                    raise
        if stopping.ended is not None and stopping.ended.how == "failing" and not stopping.ended.message:
            return writer.discard_errors()
        writer.write_errors()
    if writer.written == len(job.ids):
        return RunEnd("finished")
    return stopping.ended or (RunEnd("budget", str(left_out)) if left_out else RunEnd("interrupted"))


@asynccontextmanager
async def open_executor(job: Job, spend: Spend, on_event: OnEvent) -> AsyncIterator[CallExecutor]:
    """Yield the executor of the job's calls, with its endpoints, cache, limit and budget.

    Raises OptionsError for a missing key, address or price.
    """
    config = job.config
    budget = build_budget(config.max_usd, config.prices, config.models, spend.before_usd or 0.0)
    spend.presumed = lambda: budget.presumed_usd
    limit = AdaptiveLimit(
        config.max_in_flight,
        config.requests_per_minute,
        config.tokens_per_minute,
        config.rate_limit_timeout,
    )
    timeout_s = config.timeout or TIMEOUT_S
    async with open_endpoints(config.models, timeout_s=timeout_s) as endpoints:
        with config.open_cache() as cache:
            yield CallExecutor(endpoints, config.models, cache, limit, budget, on_event)


Wrap = Callable[[Judge, RunSource, Sequence[str]], Judge]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of `run_judge`: how it ended, how many of the chosen trajectories are judged, the totals.

    ``absent`` trajectories have no recorded run; ``skipped`` ones lack a part that the judge looks at.
    ``problem`` explains the first ``error``. ``judge`` is the judge's full name. ``totals`` sum up the
    judgments, no matter which run paid for their replies; ``paid`` has the costs of this run (`Spend.bill`).
    """

    ended: RunEnd
    judged: int
    chosen: int
    absent: int
    totals: dict[str, Any]
    problem: str | None = None
    judge: str = ""
    skipped: int = 0
    paid: Mapping[str, Any] = field(default_factory=lambda: Spend().bill)

    @property
    def has_verdicts(self) -> bool:
        """Whether any trajectory has a verdict; true if nothing was judged yet."""
        states = self.totals["states"]
        return not states or "ok" in states

    @property
    def has_errors(self) -> bool:
        """Whether a trajectory ended in an error, or none has a verdict."""
        return "error" in self.totals["states"] or not self.has_verdicts


class NoRecordings:
    """Empty views, for a judge that needs no recorded runs."""

    def view(self, trajectory_id: str, wants: Wants) -> View:
        return View("", (), ())

    def reward(self, trajectory_id: str) -> float | None:
        return None

    def data_hash(self) -> None:
        return None


def run_judge(
    config: RunConfig, out: Path, engine: Engine, retry: Collection[str] = (), wrap: Wrap | None = None
) -> Outcome:
    """Judge the trajectories of a configuration that are not judged yet, in the run folder ``out``.

    However the run ends, the folder is complete: judgments and predictions are in order, and run.json has the
    totals. ``retry`` names states whose trajectories are judged again; cached replies are not paid again.
    ``wrap`` takes the configuration's judge, the views and the ids to judge, and returns the judge to use.

    Raises OptionsError, SourceError, SuiteError, RunFolderError.
    """
    job = open_job(config, wrap)
    config = job.config
    with RunFolder(out, config.configuration(job.views.data_hash())) as folder:
        folder.check_prompts(config.judge, config.models, job.views, set(job.ids))
        todo = tuple(each for each in job.ids if folder.states.get(each) in (None, *retry))
        config = _with_refresh(config, folder, is_done=not todo)
        spend = Spend.of_run(folder.run)
        ended = RunEnd("interrupted", "stopped; finished trajectories are saved")
        with run_session(folder, run_facts(config, job.absent, job.skipped), spend) as session:
            try:
                done = len(job.ids) - len(todo)
                progress = Progress(len(job.ids), done, spend, models=config.models)
                with progress, stopped_like_ctrl_c():
                    left = replace(job, config=config, ids=todo)
                    ended = engine(left, folder, progress) if todo else RunEnd("finished")
            except KeyboardInterrupt:  # before or after the engine handled signals
                pass
            finally:
                folder.finalize([each.trajectory_id for each in config.suite.split(config.split)])
                session["ended"] = ended.how
                sums = totals(folder.records())
                name = full_name(config.judge, config.models, sums["served_models"])
                folder.update_run({"totals": sums, "judge": judge_facts(config.judge, name)})
        progress.warnings.note_sums(sums["dropped_params"], sums["served_models"])
        judged = sum(each in folder.states for each in config.ids)
        in_error = (each for each, state in folder.states.items() if state == "error")
        problem = next(map(error_of, folder.records(in_error)), None)
        return Outcome(
            ended,
            judged,
            chosen=len(config.ids),
            absent=job.absent,
            totals=sums,
            problem=problem,
            judge=name,
            skipped=job.skipped,
            paid=spend.bill,
        )


def _with_refresh(config: RunConfig, folder: RunFolder, *, is_done: bool) -> RunConfig:
    """Return the configuration with ``not_before`` set to the folder's first session with ``--refresh``.

    Replies since then are used, so that a continued run does not pay again for its own calls. Raises
    OptionsError if there was no such session and every trajectory is judged.
    """
    if not config.refresh:
        return config
    since = folder.run.get("refresh_since")
    if since is None and is_done:
        raise OptionsError(
            f"--refresh: every trajectory in {folder.folder} is already judged; to ask again, name another "
            "--out"
        )
    if since is None:
        folder.update_run({"refresh_since": (since := config.not_before)})
    return replace(config, not_before=since)


def open_job(config: RunConfig, wrap: Wrap | None = None) -> Job:
    """Return the job of a configuration, with its recorded runs opened; ``wrap`` is as in `run_judge`.

    Raises OptionsError if no run can be judged, or if some are incomplete for the judge and not skipped.
    """
    judge = config.judge
    try:
        views = Views(source_folder(config.source, config.suite), config.suite, config.images)
    except OptionsError:
        if is_reward_judge(judge) or judge.inputs != "nothing":
            raise
        return Job(config, NoRecordings(), config.ids)
    there = set(views.ids())
    ids = [each for each in config.ids if each in there]
    if not ids:
        raise OptionsError(
            f"the source contains {len(there):,} runs of the suite {config.suite.name}, but none of the "
            f"{len(config.ids):,} chosen trajectories. Change --source or --suite, or leave out --split to "
            "judge all runs of the source, of whatever suite"
        )
    if is_reward_judge(judge) and source_facts_of(config.source):
        raise OptionsError(
            f"{judge.name} needs rewards, but the runs of --source are read without them. Name another "
            "judge, or build a dataset and give it with --suite and --split"
        )
    incomplete = views.incomplete(judge, ids)
    if incomplete and not config.skip_incomplete:
        raise OptionsError(views.describe_incomplete(judge, incomplete, len(ids)))
    whole = tuple(each for each in ids if each not in incomplete)
    if not whole:
        raise OptionsError(f"--skip-incomplete leaves no run: none has what {judge.name} looks at")
    if wrap is not None and not is_reward_judge(judge):
        config = replace(config, judge=wrap(judge, views, whole))
    return Job(config, views, whole, len(incomplete))
