"""Batches of calls: their input files, the log in the run's folder, and the collection of their results.

An input file has one line per call without a reply. The log lists the submitted batches, which are polled
until they have ended. Their replies then go into the cache.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from pydantic import BaseModel, Field, PrivateAttr

from arb.core.files import atomic_write
from arb.judges.endpoints.batch_client import BatchClient, BatchState
from arb.judges.endpoints.openai_compatible import parse_reply
from arb.judges.engine.cache import CallCache
from arb.judges.engine.choices import shared_choices
from arb.judges.engine.errors import CallFailed, classify_status, read_json, with_whole_characters
from arb.judges.engine.prices import PriceTable
from arb.judges.engine.storage import storing
from arb.judges.run.folder import RunFolderError
from arb.judges.run.progress import Progress
from arb.judges.types import ModelSettings, Reply


def result_of(line: str) -> tuple[str, Reply | CallFailed] | None:
    """Return (key, reply or failure) from one line of a batch's results, or None if it has no key."""
    try:
        parsed: Any = read_json(line)
    except ValueError:
        return None
    key = parsed.get("custom_id") if isinstance(parsed, dict) else None
    if not isinstance(key, str):
        return None
    response = parsed.get("response")
    if not isinstance(response, dict):  # the call expired after a day, or the endpoint failed
        error = parsed.get("error")
        error = error if isinstance(error, dict) else {"message": str(error)}
        message = f"{error.get('code') or 'no response'}: {error.get('message') or ''}"
        return key, CallFailed("transient", message)
    body = response.get("body")
    raw = body if isinstance(body, str) else json.dumps(body)
    status = response.get("status_code")
    if type(status) is int and status != 200:
        return key, classify_status(status, raw)
    try:
        return key, parse_reply(raw)
    except CallFailed as failure:
        return key, failure


BATCHES: Final = "batches.json"

Status = Literal["handing in", "waiting", "collected", "failed"]
"""``handing in``: it is unknown whether the endpoint has the batch, so it is looked up by its mark."""


class BatchEntry(BaseModel):
    """A batch in the log, which is found at the endpoint by its ``mark`` until its ``id`` is known.

    ``keys`` are the keys of its calls, and ``shorter`` those that were sent with the shorter prompt.
    ``samples`` has the keys of further samples that a call asks for (``n``), by the key of the call.
    ``dropped`` are the parameters left out of its requests; ``most_usd`` is an upper limit of its cost, or
    None if no price is known.
    """

    mark: str
    role: str
    input_file: str
    keys: list[str] = []
    shorter: list[str] = []
    samples: dict[str, list[str]] = {}
    dropped: list[str] = []
    most_usd: float | None = None
    id: str | None = None
    status: Status = "handing in"
    handed_in_at: str | None = None


class BatchLog(BaseModel):
    """The batches of a run folder, as in batches.json. Every change is on the disk after `save`."""

    unsupported_params: dict[str, list[str]] = Field(default={}, alias="dropped")
    """The parameters that the endpoint of each role does not know."""
    too_long: list[str] = []
    """The keys of calls whose prompt was too long, so that the shorter prompt is sent instead."""
    batches: list[BatchEntry] = []
    _path: Path = PrivateAttr()

    @classmethod
    def open(cls, folder: Path) -> BatchLog:
        """Read the log of a run folder; a new folder has an empty log. Raises RunFolderError."""
        path = folder / BATCHES
        try:
            log = cls.model_validate_json(path.read_bytes()) if path.exists() else cls()
        except (OSError, ValueError) as problem:
            raise RunFolderError(
                f"{path}: cannot be read ({problem}). Remove it to continue without the batches that it "
                "lists; you then pay for their calls again"
            ) from problem
        log._path = path
        return log

    @property
    def uncollected(self) -> list[BatchEntry]:
        """The batches whose results are not collected yet."""
        return [entry for entry in self.batches if entry.status in ("handing in", "waiting")]

    def leave_out(self, role: str, parameter: str) -> None:
        """Note that the role's endpoint does not know a parameter, which is then no longer sent."""
        unsupported_params = self.unsupported_params.setdefault(role, [])
        if parameter not in unsupported_params:
            unsupported_params.append(parameter)

    def save(self) -> None:
        content = json.dumps(self.model_dump(by_alias=True), indent=1)
        with storing(self._path):
            atomic_write(self._path, content.encode("ascii") + b"\n")


MAX_LINES: Final = 50_000
MAX_BYTES: Final = 190_000_000
"""The most calls and bytes in a batch. OpenAI accepts 50,000 calls and 200 MB."""

ENDPOINT: Final = "/v1/chat/completions"


def batch_line(key: str, body: dict[str, Any]) -> bytes:
    """Return a call's line of an input file. Lone surrogates, which fail the batch, are replaced."""
    line = {"custom_id": key, "method": "POST", "url": ENDPOINT, "body": with_whole_characters(body)}
    return msgspec.json.encode(line) + b"\n"


@dataclass
class BatchFiles:
    """The input files of the next batches, in ``folder``. Use it as a context manager.

    A file has the calls of one role, since OpenAI accepts one model per batch. The files are removed at the
    end of the block: they were submitted, or the next run makes them again.
    """

    folder: Path
    most_lines: int = MAX_LINES
    most_bytes: int = MAX_BYTES
    entries: list[BatchEntry] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    _filling: dict[str, BatchEntry] = field(default_factory=dict)

    def __enter__(self) -> BatchFiles:
        for left_over in self.folder.glob("batch-input-*.jsonl"):  # left by a killed process
            left_over.unlink()
        return self

    def __exit__(self, *_: object) -> None:
        for entry in self.entries:
            self.path(entry).unlink(missing_ok=True)

    def path(self, entry: BatchEntry) -> Path:
        return self.folder / entry.input_file

    def add(self, role: str, key: str, line: bytes, samples: Sequence[str] = ()) -> BatchEntry:
        """Add a call whose ``key`` is new, and return the entry of its batch.

        ``samples`` has the keys of the other samples that the request asks for.
        """
        entry = self._filling.get(role)
        if entry is None or len(entry.keys) >= self.most_lines or not self._has_room(entry, line):
            mark = secrets.token_hex(16)
            entry = BatchEntry(mark=mark, role=role, input_file=f"batch-input-{mark}.jsonl")
            self._filling[role] = entry
            self.entries.append(entry)
        with storing(self.folder), self.path(entry).open("ab") as file:
            file.write(line)
        self.keys.update((key, *samples))
        entry.keys.append(key)
        if samples:
            entry.samples[key] = list(samples)
        return entry

    def _has_room(self, entry: BatchEntry, line: bytes) -> bool:
        return self.path(entry).stat().st_size + len(line) <= self.most_bytes

    @property
    def most_usd(self) -> float:
        """The most that the batches with known prices can cost in dollars."""
        return sum(entry.most_usd or 0.0 for entry in self.entries)


MAX_FAILURES: Final = 3
"""A call with a transient failure is submitted up to this many times. A rate limit does not count if other
calls of the batch were answered."""

_TRANSIENT: Final = ("transient", "rate_limit")


@dataclass
class BatchCollector:
    """Puts the replies of open batches into the cache, and decides what happens to calls without a reply.

    ``failed`` has the error reply of each call that was given up, by key. ``refused`` has the endpoint's
    reasons for rejecting batches, ``cancelled`` the ids of batches cancelled at the endpoint, and ``account``
    the endpoint's message if it refused the account.
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
    account: str | None = None
    _attempts: Counter[str] = field(default_factory=Counter)
    _spent_usd: dict[str, float] = field(default_factory=dict)
    _reported: object = None

    async def wait(self, stop: asyncio.Event, poll_s: float) -> None:
        """Poll and collect the batches until none is open or ``stop`` is set.

        A transient failure to get the status of a batch is retried; any other raises CallFailed.
        """
        while self.log.uncollected and not stop.is_set():
            states = []
            for entry in self.log.uncollected:
                try:
                    state = await self._poll(entry)
                except CallFailed as failure:
                    if failure.kind not in _TRANSIENT:
                        raise
                    self.progress.say(f"the endpoint does not answer ({failure.message}); trying again")
                    continue
                if state is not None:
                    states.append(state)
            self._report(states)
            if self.log.uncollected:
                try:
                    await asyncio.wait_for(stop.wait(), poll_s)
                except TimeoutError:
                    continue

    def fail(self, key: str, failure: CallFailed) -> None:
        """Give up a call, and put its error reply into ``failed``."""
        self.failed[key] = failure.as_reply(key, self._spent_usd.get(key))

    async def _poll(self, entry: BatchEntry) -> BatchState | None:
        """Return the state of an open batch, and collect it if it has ended.

        If it was never created, remove it from the log and return None.
        """
        client = self.clients[entry.role]
        if entry.id is None:
            state = await client.find(entry.mark)
            if state is None:
                self.log.batches.remove(entry)
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
        """Put the replies of an ended batch into the cache, then handle the calls without a reply."""
        if state.status == "failed" and not state.files:
            self.refused.append(f"{state.id}: {'; '.join(state.problems) or 'no reason was given'}")
            entry.status = "failed"
            self.log.save()
            return
        absent = CallFailed("transient", f"the results of {state.id} ({state.status}) contain no reply to it")
        failures: dict[str, CallFailed] = dict.fromkeys(entry.keys, absent)
        unreadable = answered = 0
        for file_id in state.files:
            async for line in self.clients[entry.role].lines(file_id):
                if (found := result_of(line)) is None:
                    unreadable += 1
                    continue
                key, result = found
                if isinstance(result, CallFailed) and key in failures:
                    failures[key] = result
                elif isinstance(result, Reply) and failures.pop(key, None) is not None:
                    self._keep(entry, key, result)
                    answered += 1
        if unreadable:
            self.progress.say(f"{state.id}: {unreadable:,} lines of the results cannot be read")
        self.cache.sync()
        if state.status == "cancelled":
            self.cancelled.append(state.id)
        for key, failure in failures.items():
            self._note(entry, key, failure, counts=failure.kind != "rate_limit" or not answered)
        entry.status = "collected"
        self.log.save()

    def _keep(self, entry: BatchEntry, key: str, reply: Reply) -> None:
        """Put a reply and its other samples into the cache and count them, unless ``key`` is cached."""
        if self.cache.get(key) is not None:
            return
        model, samples = self.models[entry.role], entry.samples.get(key, [])
        if samples and not reply.others:  # the endpoint accepted ``n`` but ignored it
            self.log.leave_out(entry.role, "n")
        choices = shared_choices(
            reply, partial(self.prices.cost, model, is_batch=True), self._spent_usd.get(key, 0.0)
        )
        for of, choice in zip((key, *samples), choices, strict=False):
            is_shorter, dropped = key in entry.shorter, tuple(entry.dropped)
            kept = replace(choice, key=of, used_shorter=is_shorter, dropped=dropped, others=())
            self.cache.put(of, kept)
            self.progress.spend.count(kept)

    def _note(self, entry: BatchEntry, key: str, failure: CallFailed, *, counts: bool) -> None:
        """Give up a failed call or leave it open. ``counts``: whether it counts towards `MAX_FAILURES`."""
        self.cache.note_attempt(key, failure.kind, failure.message)
        cost_usd = self.prices.cost(self.models[entry.role], failure.usage, is_batch=True)
        if cost_usd is not None:
            self._spent_usd[key] = self._spent_usd.get(key, 0.0) + cost_usd
        if failure.kind == "too_long" and key not in entry.shorter:
            self.log.too_long.append(key)
            return
        if failure.kind == "account":  # the call stays open
            self.account = failure.message
            return
        if failure.kind == "unsupported_parameter" and failure.parameter is not None:
            self.log.leave_out(entry.role, failure.parameter)
        self._attempts[key] += counts
        can_retry = failure.kind in (*_TRANSIENT, "unsupported_parameter")
        if not can_retry or self._attempts[key] >= MAX_FAILURES:
            self.fail(key, failure)

    def _report(self, states: list[BatchState]) -> None:
        """Print a line if a status has changed, or if another tenth of the calls is done."""
        done, total = sum(state.done for state in states), sum(state.total for state in states)
        failed = sum(state.failed for state in states)
        now = (sorted(state.status for state in states), 10 * (done + failed) // max(1, total))
        if not states or now == self._reported:
            return
        self._reported = now
        by_status = Counter(state.status for state in states)
        summary = ", ".join(f"{number} {status}" for status, number in sorted(by_status.items()))
        self.progress.say(f"batches: {summary}; {done:,} of {total:,} calls done, {failed:,} failed")
