"""A run over an endpoint's Batch API: half the price, replies within a day.

The judge is driven with the replies that there are; the calls it misses are handed in together, waited for,
taken into the cache, and so on until every trajectory is judged: as many rounds as the judge has stages. The
folder knows its batches, so the same command goes on another day.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from judges.base import OptionsError
from judges.engine.batch_client import BatchClient
from judges.engine.batch_collect import Collector
from judges.engine.batch_input import BatchFiles
from judges.engine.batch_log import BatchEntry, BatchLog
from judges.engine.batch_missing import Driving
from judges.engine.budget import build_budget, reached
from judges.engine.cache import CallCache
from judges.engine.errors import CallFailed
from judges.engine.first_errors import hopeless
from judges.engine.keeping import Keeper
from judges.engine.progress import Progress
from judges.engine.providers import Access, access_of
from judges.engine.run import Job
from judges.engine.run_folder import RunFolder
from judges.engine.stopping import Ended

POLL_S: Final = 20.0
"""How often it is asked how the batches stand."""

PROVIDERS: Final = ("openai", "any")
"""Where there is a Batch API like OpenAI's; ``any`` is an address that the user knows to have one."""


def run_batch(job: Job, folder: RunFolder, progress: Progress, *, poll_s: float = POLL_S) -> Ended:
    """Judge the job's trajectories into the folder, by batches.

    Ctrl-C leaves the batches with the endpoint; the same command collects them. Raises OptionsError for a
    provider without batches and for a missing key or price, RunFolderError for a list of batches that cannot
    be read.
    """
    if wrong := sorted({each.provider for each in job.models.values()} - set(PROVIDERS)):
        raise OptionsError(
            f"--batch: {', '.join(wrong)} has no Batch API that works like OpenAI's; leave --batch out, or "
            "give --provider any with the --base-url of an endpoint that has one"
        )
    return asyncio.run(_run(job, folder, progress, poll_s))


async def _run(job: Job, folder: RunFolder, progress: Progress, poll_s: float) -> Ended:
    access = access_of(job.models)
    settings = job.settings
    build_budget(settings.max_usd, settings.prices, job.models)  # a limit needs every price
    log = BatchLog(folder.folder)
    cache = CallCache(settings.cache)
    stop = asyncio.Event()
    try:
        async with _clients(access) as clients:
            collector = Collector(job.models, clients, cache, log, settings.prices, progress)
            rounds = _Rounds(folder, collector, Driving(job, access, collector, stop), stop, poll_s)
            async with Keeper(folder, job.judge.name, cache.sync, progress) as keeper:
                with _on_signals(stop.set):
                    ended = await rounds.run(keeper)
                if ended.how != "failing":
                    keeper.hope()
            return ended
    finally:
        cache.close()


@dataclass
class _Rounds:
    """Collecting, driving and handing in, in turns."""

    folder: RunFolder
    collector: Collector
    driving: Driving
    stop: asyncio.Event
    poll_s: float

    async def run(self, keeper: Keeper) -> Ended:
        """Go on until all are judged, or nothing more can be done now."""
        try:
            while True:
                await self.collector.wait(self.stop, self.poll_s)
                if (ended := self._ended_early()) is not None:
                    return ended
                with BatchFiles(self.folder.folder) as files:
                    await self.driving.drive(keeper, files)
                    if not files.keys:
                        return self._ended(keeper)
                    await self._hand_in(files)
        except CallFailed as failure:
            return Ended(
                "failing", f"the endpoint cannot be used for batches: {failure.message}{self._left()}"
            )

    async def _hand_in(self, files: BatchFiles) -> None:
        """Hand in the files; each batch is written down before, so that none is forgotten or made twice."""
        log = self.collector.log
        for entry in files.finished():
            if self.stop.is_set():
                return
            client = self.collector.clients[entry.role]
            file_id = await client.upload(files.path(entry))
            log.entries.append(entry)
            log.save()
            state = await client.hand_in(file_id, entry.mark)
            entry.id, entry.status, entry.handed_in_at = state.id, "waiting", _now()
            log.save()
            self.collector.progress.say(f"{state.id}: {len(entry.keys):,} calls handed in")

    def _ended(self, keeper: Keeper) -> Ended:
        """How a run ends that has no call to hand in."""
        driving = self.driving
        if keeper.is_hopeless:
            return Ended("failing", hopeless(keeper.give_up()))
        if len(driving.judged) == len(driving.job.ids):
            return Ended("finished")
        max_usd, left_out_usd = driving.job.settings.max_usd, driving.left_out_usd
        if max_usd is not None and left_out_usd is not None:
            spent_usd = self.collector.progress.spent.total_usd or 0.0
            return Ended("budget", reached(max_usd, spent_usd, left_out_usd))
        return Ended("interrupted", "stopped; what was done is kept")

    def _ended_early(self) -> Ended | None:
        """How the run ends when it cannot go on to another round."""
        collector = self.collector
        if self.stop.is_set():
            return Ended("waiting" if collector.log.open else "interrupted", f"stopped{self._left()}")
        if collector.refused:
            refused = "\n".join(collector.refused)
            return Ended(
                "failing",
                f"the endpoint would not run a batch, and nothing of it was paid:\n{refused}\nMend it, and "
                "give the same command again; where too much was handed in at once, later or with --limit",
            )
        if collector.cancelled:
            ids = ", ".join(collector.cancelled)
            return Ended("interrupted", f"{ids}: stopped at the endpoint; what it had done is kept")
        return None

    def _left(self) -> str:
        """What is to be said of the batches that are still open."""
        if not (left := self.collector.log.open):
            return "; what was done is kept"
        calls = sum(len(entry.keys) for entry in left)
        return f"; {calls:,} calls are with the endpoint ({_names(left)}): the same command collects them"


def _names(entries: list[BatchEntry]) -> str:
    return ", ".join(entry.id or "being handed in" for entry in entries)


@contextlib.asynccontextmanager
async def _clients(access: Mapping[str, Access]) -> AsyncIterator[dict[str, BatchClient]]:
    """The client of each role; roles at the same place share one."""
    opened = {place: BatchClient(place) for place in set(access.values())}
    try:
        yield {role: opened[place] for role, place in access.items()}
    finally:
        await asyncio.gather(*(client.close() for client in opened.values()))


@contextlib.contextmanager
def _on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C and a polite kill call ``stop``."""
    loop = asyncio.get_running_loop()
    handled = []
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(ValueError, RuntimeError, NotImplementedError):  # not the main thread
            loop.add_signal_handler(number, stop)
            handled.append(number)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
