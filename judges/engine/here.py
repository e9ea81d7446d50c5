"""The engine that runs in this process: cache, budget, limit and executor of a job."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from judges.base import Call, Reply
from judges.engine.cache import CallCache
from judges.engine.progress import Progress
from judges.engine.run import Executor, Job, run_async
from judges.engine.run_folder import RunFolder
from judges.engine.spent import Spend
from judges.engine.stopping import RunEnd

if TYPE_CHECKING:
    from judges.engine.seams import OnEvent


@dataclass(frozen=True)
class OpenExecutor:
    """What answers a job's calls, and the cache that keeps the replies; None where there are none."""

    executor: Executor
    cache: CallCache | None

    def sync(self) -> None:
        if self.cache is not None:
            self.cache.sync()


def run_local(job: Job, folder: RunFolder, progress: Progress) -> RunEnd:
    """Judge the job's trajectories into the folder; see `run.run_async`. Raises OptionsError."""

    async def run() -> RunEnd:
        async with open_executor(job, progress.spend, progress.event) as opened:
            return await run_async(job, folder, progress, opened.executor, opened.sync)

    return asyncio.run(run())


@contextlib.asynccontextmanager
async def open_executor(job: Job, spend: Spend, on_event: OnEvent) -> AsyncIterator[OpenExecutor]:
    """What answers the job's calls, open for the block: endpoints, cache, limit and budget of its options.

    Raises OptionsError for a missing key, address or price.
    """
    if not job.models:
        yield OpenExecutor(_NoModels(), None)
        return
    from judges.engine.asker import CallExecutor
    from judges.engine.budget import build_budget
    from judges.engine.client import TIMEOUT_S
    from judges.engine.endpoints import open_endpoints
    from judges.engine.limits import AdaptiveLimit

    settings = job.settings
    budget = build_budget(settings.max_usd, settings.prices, job.models, spend.before_usd or 0.0)
    spend.presumed = lambda: getattr(budget, "presumed_usd", 0.0)
    limit = AdaptiveLimit(settings.max_in_flight, settings.requests_per_minute, settings.tokens_per_minute)
    async with open_endpoints(job.models, timeout_s=settings.timeout_s or TIMEOUT_S) as endpoints:
        cache = CallCache(settings.cache)
        try:
            yield OpenExecutor(CallExecutor(endpoints, job.models, cache, limit, budget, on_event), cache)
        finally:
            cache.close()


class _NoModels:
    """Answers for a judge that names no model, and so must not ask."""

    async def ask(self, call: Call) -> Reply:
        raise RuntimeError(f"a call for the role {call.role!r}, for which no model is named")
