"""Submitted batches: polled until they have ended, their replies taken into the cache."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from judges.base import ModelSettings, Reply
from judges.engine.batch_client import BatchClient, BatchState
from judges.engine.batch_log import BatchEntry, BatchLog
from judges.engine.batch_results import UnreadableLineError, result_of
from judges.engine.cache import CallCache
from judges.engine.errors import CallFailed
from judges.engine.prices import PriceTable
from judges.engine.progress import Progress

MAX_FAILURES: Final = 3
"""A call with a transient failure is submitted again, up to this many times in all."""

_PASSING: Final = ("transient", "rate_limit")
_STATES: Final = {"too_long": "too_long", "refused": "refused"}


@dataclass
class BatchCollector:
    """Takes the replies of open batches into the cache, and knows what became of the other calls.

    ``failed``: by key, what stands for the reply of a call that is given up. ``refused``: the
    endpoint's reasons for rejected batches; ``cancelled``: batches that were stopped at the endpoint.
    """

    models: Mapping[str, ModelSettings]
    clients: Mapping[str, BatchClient]
    cache: CallCache
    log: BatchLog
    prices: PriceTable
    progress: Progress
    failed: dict[str, Reply] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    _tries: Counter[str] = field(default_factory=Counter)
    _spent_usd: dict[str, float] = field(default_factory=dict)
    _reported: object = None

    async def wait(self, stop: asyncio.Event, poll_s: float) -> None:
        """Return when no batch is open, or ``stop`` is set.

        Raises CallFailed when the endpoint will not tell how a batch stands; trouble that passes is waited
        out.
        """
        while self.log.open and not stop.is_set():
            states = [await self._poll_with_retry(entry) for entry in self.log.open]
            self._report([state for state in states if state is not None])
            if self.log.open:
                try:
                    await asyncio.wait_for(stop.wait(), poll_s)
                except TimeoutError:
                    continue

    def fail(self, key: str, failure: CallFailed) -> None:
        """Let a call stay without a reply."""
        self.failed[key] = Reply(
            text=failure.raw,
            state=_STATES.get(failure.kind, "error"),
            error=failure.message,
            cost_usd=self._spent_usd.get(key),
            key=key,
        )

    async def _poll_with_retry(self, entry: BatchEntry) -> BatchState | None:
        try:
            return await self._poll(entry)
        except CallFailed as failure:
            if failure.kind not in _PASSING:
                raise
            self.progress.say(f"the endpoint does not answer ({failure.message}); trying again")
            return None

    async def _poll(self, entry: BatchEntry) -> BatchState | None:
        """How an open batch stands; one that has ended is collected, one that was never made is forgotten."""
        client = self.clients[entry.role]
        if entry.id is None:
            state = await client.find(entry.mark)
            if state is None:
                self.log.entries.remove(entry)
                self.log.save()
                return None
            entry.id, entry.status = state.id, "waiting"
            self.log.save()
        else:
            state = await client.retrieve(entry.id)
        if state.has_ended:
            await self._collect(entry, state)
        return state

    async def _collect(self, entry: BatchEntry, state: BatchState) -> None:
        """Take all replies of a batch; only when every file was read, see to the calls without one."""
        if state.status == "failed" and not state.files:
            self.refused.append(f"{state.id}: {'; '.join(state.problems) or 'no reason was given'}")
            entry.status = "failed"
            self.log.save()
            return
        absent = CallFailed("transient", f"the results of {state.id} ({state.status}) have no answer to it")
        failures: dict[str, CallFailed] = dict.fromkeys(entry.keys, absent)
        unreadable = 0
        for file_id in state.files:
            async for line in self.clients[entry.role].lines(file_id):
                try:
                    key, result = result_of(line)
                except UnreadableLineError:
                    unreadable += 1
                    continue
                if isinstance(result, CallFailed) and key in failures:
                    failures[key] = result
                elif isinstance(result, Reply) and failures.pop(key, None) is not None:
                    self._keep(entry, key, result)
        if unreadable:
            self.progress.say(f"{state.id}: {unreadable:,} lines of the results cannot be read")
        self.cache.sync()
        if state.status == "cancelled":
            self.cancelled.append(state.id)
        for key, failure in failures.items():
            self._note(entry, key, failure)
        entry.status = "collected"
        self.log.save()

    def _keep(self, entry: BatchEntry, key: str, reply: Reply) -> None:
        """Put a reply into the cache; one that is there already was counted before."""
        if self.cache.get(key) is not None:
            return
        cost_usd = self._cost(entry.role, reply)
        reply = replace(
            reply,
            key=key,
            used_shorter=key in entry.shorter,
            cost_usd=None if cost_usd is None else cost_usd + self._spent_usd.get(key, 0.0),
        )
        self.cache.put(key, reply)
        self.progress.spend.count(reply)

    def _note(self, entry: BatchEntry, key: str, failure: CallFailed) -> None:
        """Find out what to do about a call that failed."""
        self.cache.note_attempt(key, failure.kind, failure.message)
        if (cost_usd := self._cost(entry.role, failure)) is not None:
            self._spent_usd[key] = self._spent_usd.get(key, 0.0) + cost_usd
        unsupported_params = self.log.unsupported_params.setdefault(entry.role, [])
        if failure.kind == "too_long" and key not in entry.shorter:
            self.log.too_long.append(key)
            return
        if failure.kind == "unsupported_parameter" and failure.parameter not in (None, *unsupported_params):
            unsupported_params.append(failure.parameter)
        self._tries[key] += 1
        is_passing = failure.kind in (*_PASSING, "unsupported_parameter")
        if not is_passing or self._tries[key] >= MAX_FAILURES:
            self.fail(key, failure)

    def _cost(self, role: str, made: Reply | CallFailed) -> float | None:
        price = self.prices.of(self.models[role])
        if price is None or made.input_tokens is None or made.output_tokens is None:
            return None
        return price.cost(made.input_tokens, made.output_tokens, is_batch=True)

    def _report(self, states: list[BatchState]) -> None:
        """A line when a batch has got on: into another status, or by a tenth of its calls."""
        done, total = sum(state.done for state in states), sum(state.total for state in states)
        failed = sum(state.failed for state in states)
        now = (sorted(state.status for state in states), 10 * (done + failed) // max(1, total))
        if not states or now == self._reported:
            return
        self._reported = now
        by_status = Counter(state.status for state in states)
        summary = ", ".join(f"{number} {status}" for status, number in sorted(by_status.items()))
        self.progress.say(f"batches: {summary}; {done:,} of {total:,} calls done, {failed:,} failed")
