"""Run a judge as configured and write the run folder (`run_judge`).

The trajectories are judged by an `Engine`: in this process (`run_local`), over a Batch API (`run.batch`), or
on a Ray cluster (`arb.judges.ray`).
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

    ``skipped`` counts chosen trajectories that lack the trees or screenshots that the judge needs.
    """

    config: RunConfig
    views: RunSource
    ids: tuple[str, ...]
    skipped: int = 0

    def name_of(self, judged: Judgment) -> str:
        """Return the judge's full name, which lists the models that answered if they are unexpected."""
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
        """The number of chosen trajectories without a recorded run."""
        return len(self.config.ids) - len(self.ids) - self.skipped


Engine = Callable[[Job, RunFolder, Progress], RunEnd]
"""A function that judges a job's trajectories and writes the results into a run folder."""


def run_local(job: Job, folder: RunFolder, progress: Progress) -> RunEnd:
    """Judge a job in this process. This is an `Engine`."""
    return asyncio.run(run_async(job, folder, progress))


async def run_async(
    job: Job, folder: RunFolder, progress: Progress, judge_one: JudgeOne = judge_trajectory
) -> RunEnd:
    """Judge the job's trajectories, write each result into the folder, and return how the run ended.

    The run stops early on Ctrl-C, when the budget is used up, if the endpoint refuses the account, if for a
    long time it refuses all calls with rate limits, and if all results are errors. Calls in flight still
    finish.
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
                    config.judge, job.ids, job.views, ask, keep, config.options.max_in_flight, judge_one
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
    """Yield the executor, which makes calls. Raises OptionsError if a key, address or price is missing."""
    config, typed = job.config, job.config.options
    budget = build_budget(typed.max_usd, config.prices, config.models, spend.before_usd or 0.0)
    spend.presumed = lambda: budget.presumed_usd
    spend.reserved = lambda: budget.reserved_usd
    limit = AdaptiveLimit(
        typed.max_in_flight, typed.requests_per_minute, typed.tokens_per_minute, typed.rate_limit_timeout
    )
    async with open_endpoints(config.models, timeout_s=typed.timeout or TIMEOUT_S) as endpoints:
        with config.open_cache() as cache:
            yield CallExecutor(endpoints, config.models, cache, limit, budget, on_event)


Wrap = Callable[[Judge, RunSource, Sequence[str]], Judge]
"""A function that takes a judge, the recorded runs and the ids to judge, and returns the judge to use."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of `run_judge`.

    Of the ``chosen`` trajectories, ``absent`` have no recorded run and ``skipped`` are incomplete. ``totals``
    sums up the judgments, no matter which run paid for their replies, while ``paid`` is the cost of this run
    (`Spend.bill`). ``problem`` is the reason for the first ``error``. ``judge`` is the full name.
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
        """Whether a trajectory ended in an error, or no trajectory has a verdict."""
        return "error" in self.totals["states"] or not self.has_verdicts


class NoRecordings:
    """A `RunSource` with empty views, for a judge that looks at nothing."""

    def view(self, trajectory_id: str, wants: Wants) -> View:
        return View("", (), ())

    def reward(self, trajectory_id: str) -> float | None:
        return None

    def data_hash(self) -> None:
        return None


def run_judge(
    config: RunConfig, out: Path, engine: Engine, retry: Collection[str] = (), wrap: Wrap | None = None
) -> Outcome:
    """Judge those trajectories of a configuration that do not have a result in the run folder ``out`` yet.

    Trajectories whose state is in ``retry`` are judged again. ``wrap`` may replace the judge. However the run
    ends, the folder is complete: judgments and predictions are sorted, and run.json has the totals.

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
            except KeyboardInterrupt:  # raised only while the engine does not handle signals
                pass
            finally:
                ids = [each.trajectory_id for each in config.suite.split(config.options.split_name)]
                folder.finalize(ids, config.suite)
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
    """Return the configuration with ``not_before`` set to the time of the run's first ``--refresh``.

    Replies since then are used, so that a continued run does not pay for them again. Raises OptionsError if
    every trajectory was judged before the user asked for ``--refresh``.
    """
    if not config.options.refresh:
        return config
    since = folder.run.get("refresh_since")
    if since is None and is_done:
        raise OptionsError(
            f"--refresh: every trajectory in {folder.folder} is already judged; to judge them again, use "
            "another --out"
        )
    if since is None:
        folder.update_run({"refresh_since": (since := config.not_before)})
    return replace(config, not_before=since)


def open_job(config: RunConfig, wrap: Wrap | None = None) -> Job:
    """Open the recorded runs of a configuration, and return its job; ``wrap`` may replace the judge.

    Raises OptionsError if no run can be judged, or if runs are incomplete and not skipped.
    """
    judge = config.judge
    try:
        views = Views(source_folder(config.options.source, config.suite), config.suite, config.images)
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
            "judge all runs of the source"
        )
    if is_reward_judge(judge) and source_facts_of(config.options.source):
        raise OptionsError(
            f"{judge.name} needs rewards, which are not read from --source. Use another judge, or build a "
            "dataset and name it with --suite and --split"
        )
    incomplete = views.incomplete(judge, ids)
    if incomplete and not config.options.skip_incomplete:
        raise OptionsError(views.describe_incomplete(judge, incomplete, len(ids)))
    whole = tuple(each for each in ids if each not in incomplete)
    if not whole:
        raise OptionsError(f"--skip-incomplete skips all runs: none has what {judge.name} needs")
    if wrap is not None and not is_reward_judge(judge):
        config = replace(config, judge=wrap(judge, views, whole))
    return Job(config, views, whole, len(incomplete))
