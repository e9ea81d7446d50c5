"""A run on this machine: trajectories judged over one event loop, each result kept as it comes.

`here.run_local` is this engine. The others (batch, Ray) have its form, `Engine`: they are given a job, the
run's folder and its progress, keep results with `RunFolder.append`, and say how the run ended.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from judges.base import Call, Judge, ModelSettings, Reply, RewardJudge
from judges.engine.budget import BudgetReached
from judges.engine.first_errors import leading_errors_message
from judges.engine.judging import RunSource, StopRunError, judge_trajectories
from judges.engine.keeping import ResultWriter
from judges.engine.progress import Progress
from judges.engine.records import Judgment
from judges.engine.run_folder import RunFolder
from judges.engine.stopping import RunEnd, StopControl

if TYPE_CHECKING:
    from judges.engine.prices import PriceTable


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """The limits of a run, the folder of its reply cache (None where no model is asked), and its prices."""

    cache: Path | None
    prices: PriceTable
    max_in_flight: int = 64
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    timeout_s: float | None = None
    max_usd: float | None = None


@dataclass(frozen=True)
class Job:
    """What an engine has to do. ``ids``: the trajectories still to be judged, in their order.

    ``rebuild`` makes judge and views again, where they cannot be pickled (a judge in a user's own file).
    """

    judge: Judge | RewardJudge
    models: Mapping[str, ModelSettings]
    views: RunSource
    ids: tuple[str, ...]
    settings: EngineSettings
    rebuild: Callable[[], tuple[Judge | RewardJudge, RunSource]] | None = None


Engine = Callable[[Job, RunFolder, Progress], RunEnd]
"""What judges a job's trajectories into a folder."""


class Executor(Protocol):
    """What answers calls: `engine.executor.CallExecutor`."""

    async def ask(self, call: Call) -> Reply:
        """The reply, from wherever it is had. Raises BudgetReached."""


async def run_async(
    job: Job, folder: RunFolder, progress: Progress, executor: Executor, sync: Callable[[], None]
) -> RunEnd:
    """Judge the job's trajectories into the folder.

    Ends before all are judged when Ctrl-C is pressed, the budget is reached, or nothing but errors comes;
    what is under way is waited for then, and kept.
    """
    stopping = StopControl(progress.say)

    async def ask(call: Call) -> Reply:
        if stopping.ended is not None:
            raise StopRunError
        try:
            reply = await executor.ask(call)
        except BudgetReached as reached:
            stopping.stop("budget", str(reached))
            raise StopRunError from reached
        progress.spend.count(reply)
        return reply

    def keep(judged: Judgment) -> None:
        writer.write(judged)
        if job.models and writer.all_failed and stopping.ended is None:
            stopping.stop("failing", "")

    async with ResultWriter(folder, job.judge.name, sync, progress) as writer:
        if not job.models:
            writer.write_errors()
        with stopping.on_signals(), contextlib.suppress(StopRunError):
            try:
                await judge_trajectories(job.judge, job.ids, job.views, ask, keep, job.settings.max_in_flight)
            except asyncio.CancelledError:
                if stopping.ended is None:
                    raise
        if stopping.ended is not None and stopping.ended.how == "failing":
            return RunEnd("failing", leading_errors_message(writer.discard_errors()))
        writer.write_errors()
    return RunEnd("finished") if writer.written == len(job.ids) else stopping.ended or RunEnd("interrupted")
