"""Run a judge over an endpoint's Batch API, which takes up to a day and costs half as much.

A run consists of rounds, one per stage of the judge. Each round gives the judge the cached replies, submits
all calls that have none as batches, and puts the replies to the batches into the cache. The run folder lists
the submitted batches, so that the same command can continue on another day.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from arb.core import console
from arb.judges.endpoints.batch_client import BatchClient
from arb.judges.endpoints.openai_compatible import request_body
from arb.judges.endpoints.providers import EndpointAccess, omitted_params, resolve_access
from arb.judges.engine.budget import build_budget, limit_message, most_output
from arb.judges.engine.cache import CallCache, key_of
from arb.judges.engine.choices import may_have_choices, with_choices
from arb.judges.engine.errors import AccountError, CallFailed
from arb.judges.engine.tokens import counted, token_ceiling
from arb.judges.run.batch_files import BatchCollector, BatchFiles, BatchLog, batch_line
from arb.judges.run.folder import ResultWriter, RunFolder
from arb.judges.run.progress import Progress, RunEnd, on_stop_signals, utc_now
from arb.judges.run.runner import Job, run_local
from arb.judges.run.scheduler import Judgment, StopRunError, judge_trajectories
from arb.judges.types import Call, OptionsError, Reply, Request

_MISSING: Final = "its replies have not arrived yet"
"""The ``problem`` of a `Judgment` that has to wait for the next round."""

POLL_S: Final = 20.0
"""The number of seconds between two requests for the status of the batches."""

PROVIDERS: Final = ("openai", "any")
"""The providers with a Batch API like OpenAI's. For ``any``, the user has to check that the endpoint has
one."""


class ReplyMissingError(ValueError):
    """Raised if a call has no reply yet. The trajectory is judged in a later round."""


def run_batch(job: Job, folder: RunFolder, progress: Progress, *, poll_s: float | None = None) -> RunEnd:
    """Judge the job's trajectories over a Batch API. This is an `Engine`.

    Ctrl-C does not cancel the batches; the same command collects them later. Raises OptionsError if a
    provider has no Batch API or a key or price is missing, and RunFolderError if batches.json is unreadable.
    """
    config = job.config
    if wrong := sorted({each.provider for each in config.models.values()} - set(PROVIDERS)):
        raise OptionsError(
            f"--batch: {', '.join(wrong)} has no Batch API that works like OpenAI's; leave out --batch, or "
            "use --provider any with the --base-url of an endpoint that has one"
        )
    with config.open_cache() as cache:
        if cache is None:  # the judge calls no model
            return run_local(job, folder, progress)
        return asyncio.run(_run(job, folder, progress, cache, POLL_S if poll_s is None else poll_s))


async def _run(job: Job, folder: RunFolder, progress: Progress, cache: CallCache, poll_s: float) -> RunEnd:
    config = job.config
    access = resolve_access(config.models)
    build_budget(config.options.max_usd, config.prices, config.models)  # raises if a price is missing
    log = BatchLog.open(folder.folder)
    stop = asyncio.Event()
    async with _clients(access) as clients:
        collector = BatchCollector(config.models, clients, cache, log, config.prices, progress)
        rounds = _BatchRounds(job, folder, access, collector, stop, poll_s)
        async with ResultWriter(folder, job.name_of, cache.sync, progress) as writer:
            with on_stop_signals(lambda number: stop.set()):
                ended = await rounds.run(writer)
            if ended.how != "failing":
                writer.write_errors()
        return ended


@dataclass
class _BatchRounds:
    """Repeats the rounds of a run: collect replies, run the judge, submit the missing calls.

    ``judged`` has the ids of finished trajectories. If a call was not submitted because of ``--max-usd``,
    ``left_out_usd`` is the highest possible cost of that call.
    """

    job: Job
    folder: RunFolder
    access: Mapping[str, EndpointAccess]
    collector: BatchCollector
    stop: asyncio.Event
    poll_s: float
    judged: set[str] = field(default_factory=set)
    left_out_usd: float | None = None

    async def run(self, writer: ResultWriter) -> RunEnd:
        """Repeat the rounds until every trajectory is judged or the run has to stop."""
        try:
            while True:
                await self.collector.wait(self.stop, self.poll_s)
                if (ended := self._ended_early()) is not None:
                    return ended
                with BatchFiles(self.folder.folder) as files:
                    await self._drive(writer, files)
                    if not files.keys:
                        return self._ended(writer)
                    if self.collector.account is not None:
                        return RunEnd("account", str(AccountError(self.collector.account)))
                    await self._submit(files)
        except CallFailed as failure:
            return RunEnd("failing", f"the endpoint refused a batch request: {failure.message}{self._left()}")

    async def _drive(self, writer: ResultWriter, files: BatchFiles) -> None:
        """Judge the trajectories whose replies are all cached, and add the missing calls to ``files``."""
        self.left_out_usd = None
        self.collector.cache.refresh()

        async def ask(call: Call) -> Reply:
            if self.stop.is_set():
                raise StopRunError
            return self._reply_to(call, files)

        def keep(judged: Judgment) -> None:
            if judged.problem != _MISSING:
                writer.write(judged)
                self.judged.add(judged.trajectory_id)

        left = [each for each in self.job.ids if each not in self.judged]
        most = self.job.config.options.max_in_flight
        with contextlib.suppress(StopRunError):
            await judge_trajectories(self.job.config.judge, left, self.job.views, ask, keep, most)

    def _reply_to(self, call: Call, files: BatchFiles) -> Reply:
        """Return the reply to a call, or add the call to ``files`` and raise ReplyMissingError."""
        collector = self.collector
        key = key_of(self.job.config.models[call.role], call)
        if (reply := collector.cache.get(key)) is not None:
            collector.progress.warnings.note(call.role, reply)
            return replace(reply, key=key)
        is_too_long = key in collector.log.too_long
        is_shorter = is_too_long and call.shorter is not None
        if is_too_long and not is_shorter:
            collector.fail(key, CallFailed("too_long", "the prompt is too long for the model"))
        if (failed := collector.failed.get(key)) is not None:
            return replace(failed, used_shorter=is_shorter)
        if key not in files.keys:
            samples = [] if is_shorter else self._samples_to_ask(call, files)
            self._put(call, [key, *samples], files, is_shorter=is_shorter)
        raise ReplyMissingError(_MISSING)

    def _samples_to_ask(self, call: Call, files: BatchFiles) -> list[str]:
        """Return the keys of the other samples that the same request can ask for (parameter ``n``)."""
        collector, model = self.collector, self.job.config.models[call.role]
        if not may_have_choices(model, collector.log.unsupported_params.get(call.role, ())):
            return []
        keys = (key_of(model, call, number) for number in call.together if number != call.sample)
        done = (files.keys, collector.failed, collector.log.too_long)
        return [
            key for key in keys if not any(key in each for each in done) and collector.cache.get(key) is None
        ]

    def _put(self, call: Call, keys: list[str], files: BatchFiles, *, is_shorter: bool) -> None:
        """Add a call to ``files``, unless the run might then cost more than ``--max-usd``.

        ``keys`` has the key of the call, followed by those of the other samples that the request asks for.
        """
        role, config, prices = call.role, self.job.config, self.collector.prices
        max_usd = config.options.max_usd
        model = with_choices(config.models[role], len(keys))
        messages = call.shorter if is_shorter and call.shorter is not None else call.messages
        max_tokens = call.max_output_tokens or model.max_output_tokens
        unsupported = frozenset(self.collector.log.unsupported_params.get(role, ()))
        request = Request(model, messages, max_tokens, unsupported, call.tools)
        most = most_output(prices, request)
        price = prices.of(model)
        most_usd = None
        if price is not None:
            most_usd = price.most(token_ceiling(model, counted(messages, call.tools)), most, is_batch=True)
        if max_usd is not None and most_usd is not None:
            spent_usd = self.collector.progress.spend.total_usd or 0.0
            if spent_usd + files.most_usd + most_usd > max_usd:
                self.left_out_usd = most_usd
                return
        body = request_body(request, self.access[role].output_limit)
        entry = files.add(role, keys[0], batch_line(keys[0], body), keys[1:])
        entry.dropped = list(omitted_params(model, unsupported))
        if is_shorter:
            entry.shorter.append(keys[0])
        if most_usd is not None and not math.isinf(most_usd):
            entry.most_usd = (entry.most_usd or 0.0) + most_usd

    async def _submit(self, files: BatchFiles) -> None:
        """Submit the files. Log each batch before creating it, so that it can be found after a crash."""
        log = self.collector.log
        for entry in files.entries:
            if self.stop.is_set():
                return
            client = self.collector.clients[entry.role]
            file_id = await client.upload(files.path(entry))
            log.batches.append(entry)
            log.save()
            state = await client.create_batch(file_id, entry.mark)
            entry.id, entry.status, entry.handed_in_at = state.id, "waiting", utc_now()
            log.save()
            self.collector.progress.say(f"{state.id}: {console.counted(len(entry.keys), 'call')} submitted")

    def _ended(self, writer: ResultWriter) -> RunEnd:
        """Return how the run ended if all calls were submitted."""
        if writer.all_failed:
            return writer.discard_errors()
        if len(self.judged) == len(self.job.ids):
            return RunEnd("finished")
        max_usd, left_out_usd = self.job.config.options.max_usd, self.left_out_usd
        if max_usd is not None and left_out_usd is not None:
            spent_usd = self.collector.progress.spend.total_usd or 0.0
            return RunEnd("budget", limit_message(max_usd, spent_usd, left_out_usd))
        return RunEnd("interrupted", "stopped; finished trajectories are saved")

    def _ended_early(self) -> RunEnd | None:
        """Return how the run ended if it has to stop before the next round, else None."""
        collector = self.collector
        if self.stop.is_set():
            return RunEnd("waiting" if collector.log.uncollected else "interrupted", f"stopped{self._left()}")
        if collector.refused:
            refused = "\n".join(collector.refused)
            return RunEnd(
                "failing",
                f"the endpoint rejected a batch, and nothing was charged:\n{refused}\nFix the cause and run "
                "the same command again. If the batch was too large, wait or use --limit",
            )
        if collector.cancelled:
            ids = ", ".join(collector.cancelled)
            return RunEnd("interrupted", f"{ids}: was cancelled at the endpoint; finished calls are saved")
        return None

    def _left(self) -> str:
        """Return the end of a message: it names the open batches, or says that all results are saved."""
        if not (left := self.collector.log.uncollected):
            return "; finished trajectories are saved"
        calls = console.counted(sum(len(entry.keys) for entry in left), "call")
        ids = ", ".join(entry.id or "being submitted" for entry in left)
        return f"; in batches ({ids}): {calls}; run the same command again to collect them"


@contextlib.asynccontextmanager
async def _clients(access: Mapping[str, EndpointAccess]) -> AsyncIterator[dict[str, BatchClient]]:
    """Yield the batch client of each role. Roles with the same endpoint and key share a client."""
    opened = {place: BatchClient(place) for place in set(access.values())}
    try:
        yield {role: opened[place] for role, place in access.items()}
    finally:
        await asyncio.gather(*(client.close() for client in opened.values()))
