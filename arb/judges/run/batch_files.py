"""Write the input files of batches, log submitted batches in the run's folder, and collect their results.

An input file has one line per call. Submitted batches are polled until they have ended; then their replies
are put into the cache.
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

from arb.core.console import counted
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
    """Return the key, and the reply or failure, in a line of a batch's results. None if there is no key."""
    try:
        parsed: Any = read_json(line)
    except ValueError:
        return None
    key = parsed.get("custom_id") if isinstance(parsed, dict) else None
    if not isinstance(key, str):
        return None
    response = parsed.get("response")
    if not isinstance(response, dict):  # the call expired, or the endpoint failed
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
"""``handing in`` means that the batch may not have been created, so it is looked up by its mark."""


class BatchEntry(BaseModel):
    """A batch in the log. As long as its ``id`` is unknown, it is found at the endpoint by its ``mark``.

    ``keys`` has the keys of all calls, and ``shorter`` those of the calls with the shorter prompt.
    ``samples`` maps a call's key to the keys of other samples in the same request. ``dropped`` has parameters
    that were not sent. ``most_usd`` is an upper limit on the cost, or None if no price is known.
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
    """The content of batches.json in a run folder. `save` writes changes to the disk."""

    unsupported_params: dict[str, list[str]] = Field(default={}, alias="dropped")
    """The parameters that the endpoint of a role does not know, keyed by role."""
    too_long: list[str] = []
    """The keys of calls whose prompt was too long; they are sent again with the shorter prompt."""
    batches: list[BatchEntry] = []
    _path: Path = PrivateAttr()

    @classmethod
    def open(cls, folder: Path) -> BatchLog:
        """Read the log of a run folder, which may not exist yet. Raises RunFolderError."""
        path = folder / BATCHES
        try:
            log = cls.model_validate_json(path.read_bytes()) if path.exists() else cls()
        except (OSError, ValueError) as problem:
            raise RunFolderError(
                f"{path}: cannot be read ({problem}). If you remove it, the run can continue, but you pay "
                "again for all calls in open batches"
            ) from problem
        log._path = path
        return log

    @property
    def uncollected(self) -> list[BatchEntry]:
        """The batches whose results have not been collected."""
        return [entry for entry in self.batches if entry.status in ("handing in", "waiting")]

    def leave_out(self, role: str, parameter: str) -> None:
        """Record that a role's endpoint does not know a parameter. Then the parameter is not sent again."""
        unsupported_params = self.unsupported_params.setdefault(role, [])
        if parameter not in unsupported_params:
            unsupported_params.append(parameter)

    def save(self) -> None:
        content = json.dumps(self.model_dump(by_alias=True), indent=1)
        with storing(self._path):
            atomic_write(self._path, content.encode("ascii") + b"\n")


MAX_LINES: Final = 50_000
MAX_BYTES: Final = 190_000_000
"""The maximum number of calls and bytes in a batch. OpenAI accepts 50,000 calls and 200 MB."""

ENDPOINT: Final = "/v1/chat/completions"


def batch_line(key: str, body: dict[str, Any]) -> bytes:
    """Return the line for a call in an input file. Lone surrogates, which make batches fail, are replaced."""
    line = {"custom_id": key, "method": "POST", "url": ENDPOINT, "body": with_whole_characters(body)}
    return msgspec.json.encode(line) + b"\n"


@dataclass
class BatchFiles:
    """The input files of the next batches. Use it as a context manager, which removes the files at the end.

    Each file contains calls of only one role, because OpenAI accepts one model per batch.
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
        """Add a new call, and return the entry of its batch. ``samples`` has the keys of other samples."""
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
        """The highest possible cost in dollars of all batches whose prices are known."""
        return sum(entry.most_usd or 0.0 for entry in self.entries)


MAX_FAILURES: Final = 3
"""The maximum number of times that a call is submitted if it fails for a transient reason. A rate limit does
not count if other calls of the batch were answered."""

_TRANSIENT: Final = ("transient", "rate_limit")


@dataclass
class BatchCollector:
    """Puts the replies of open batches into the cache, and decides which failed calls to give up.

    ``failed`` has the error reply of each call that was given up, by the call's key. ``refused`` has the
    reasons why the endpoint rejected batches, ``cancelled`` the ids of batches that were cancelled at the
    endpoint, and ``account`` the endpoint's message if it refused the account.
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
        """Poll the batches and collect their results until no batch is open or ``stop`` is set.

        Transient failures of polling are retried; any other failure raises CallFailed.
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
        """Return the state of an open batch, after collecting its results if it has ended.

        If the batch was never created, remove it from the log and return None.
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
        """Put the replies of a batch that has ended into the cache, and handle the failed calls."""
        if state.status == "failed" and not state.files:
            self.refused.append(f"{state.id}: {'; '.join(state.problems) or 'no reason was given'}")
            entry.status = "failed"
            self.log.save()
            return
        absent = CallFailed("transient", f"{state.id} ({state.status}) has no reply to this call")
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
        """Unless ``key`` is cached already, cache a reply and the other samples in it, and count the cost."""
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
        """Record a failed call: give up on it, or leave it open for another attempt.

        ``counts`` says whether it counts towards `MAX_FAILURES`.
        """
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
        """Print a line if the status of a batch has changed or another tenth of the calls is done."""
        done, total = sum(state.done for state in states), sum(state.total for state in states)
        failed = sum(state.failed for state in states)
        now = (sorted(state.status for state in states), 10 * (done + failed) // max(1, total))
        if not states or now == self._reported:
            return
        self._reported = now
        by_status = Counter(state.status for state in states)
        summary = ", ".join(f"{number} {status}" for status, number in sorted(by_status.items()))
        self.progress.say(f"batches: {summary}; {done:,} of {counted(total, 'call')} done, {failed:,} failed")
