"""Rate, money and calls in flight of a run, lent to its workers in parts by one actor, and given back.

A worker renews its lease about every second, and at once where it needs more, and gives back what it does not
use. When it is not heard of for `EXPIRY_S`, its calls in flight come back. The money that it had then counts
as spent, since it may be: no more than a small part of what is left is lent at a time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Hashable
from dataclasses import dataclass
from typing import Any, Final

from arb.judges.engine.budget import (
    MAX_REFUSED,
    NEARLY_SPENT,
    Budget,
    BudgetReached,
    Reservation,
    limit_message,
)
from arb.judges.engine.concurrency import INITIAL_CONCURRENCY, AdaptiveLimit, TokenBucket
from arb.judges.engine.prices import PriceTable
from arb.judges.run.progress import MAX_LEADING_ERRORS, leading_errors_message, was_generated
from arb.judges.types import Message, ModelSettings, Reply

RENEW_S: Final = 1.0
"""How often a worker renews its lease when it needs nothing."""

RETRY_S: Final = 0.05
"""How soon it asks again for what there was not."""

EXPIRY_S: Final = 30.0
"""A worker that was not heard of for so long is dead."""

MONEY_PARTS: Final = 8
"""A worker is lent one part in so many of its even share of the money that is left."""


@dataclass
class Report:
    """What a worker says when it renews: what it wants and what it did since the last time.

    ``wanted``: calls that could be in flight. ``requests`` and ``tokens``: how many more it would use now;
    negative ones are given back. ``usd``: the dollars that its next call needs, ``kept_usd`` those that it
    keeps; what else it had is given back. ``presumed_usd`` is
    the part of ``spent_usd`` for attempts with nothing to show, ``paid_usd`` what replies cost (None: a price
    is not known), ``answered`` and ``failed`` are calls that ended.
    """

    wanted: int = 0
    requests: int = 0
    tokens: int = 0
    usd: float = 0.0
    kept_usd: float = 0.0
    spent_usd: float = 0.0
    presumed_usd: float = 0.0
    paid_usd: float | None = 0.0
    calls: int = 0
    answered: int = 0
    failed: int = 0
    retried: int = 0
    first_error: str = ""
    left_out: str = ""
    stop: tuple[str, str] | None = None

    def count(self, reply: Reply) -> None:
        """A call that ended, with what it cost."""
        self.answered += reply.state == "ok"
        self.failed += reply.state != "ok"
        if reply.state != "ok":
            self.first_error = self.first_error or reply.error or reply.state
        if was_generated(reply) or reply.cost_usd:
            self.calls += reply.input_tokens != 0  # of several answers to one request the first one has them
            known = self.paid_usd is not None and reply.cost_usd is not None
            self.paid_usd = self.paid_usd + reply.cost_usd if known else None


@dataclass
class Grant:
    """What a worker may use until it renews: ``requests``, ``tokens`` and ``usd`` come on top of what it had.

    ``refusal`` says that there is no money for the call, and whether there is none for others either.
    """

    in_flight: int = 0
    requests: int = 0
    tokens: int = 0
    usd: float = 0.0
    refusal: tuple[str, bool] | None = None
    stop: tuple[str, str] | None = None


@dataclass
class Totals:
    """What all workers did in this session. ``paid_usd`` is None once a price was not known."""

    answered: int = 0
    failed: int = 0
    retried: int = 0
    calls: int = 0
    paid_usd: float | None = 0.0
    presumed_usd: float = 0.0
    first_error: str = ""
    left_out: str = ""
    """Why calls were left out for lack of money, where others could still be paid."""
    stop: tuple[str, str] | None = None


@dataclass
class _Holder:
    in_flight: int = 0
    wanted: int = 0
    usd: float = 0.0
    seen_at: float = 0.0


class Leases:
    """The limits of a run and who has what of them. An actor in a cluster; a plain object in tests.

    ``requests_per_minute`` and ``tokens_per_minute`` are for all workers together, ``spent_usd`` is what the
    run had cost before.
    """

    def __init__(
        self,
        max_in_flight: int,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        max_usd: float | None = None,
        spent_usd: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._max_in_flight, self._max_usd, self._spent_usd = max_in_flight, max_usd, spent_usd
        self._clock = clock
        self._requests = _bucket(requests_per_minute, clock)
        self._tokens = _bucket(tokens_per_minute, clock)
        self._burst = max(1, int((requests_per_minute or 0) / 60))
        self._holders: dict[str, _Holder] = {}
        self._refused = 0
        self._totals = Totals()

    def renew(self, name: str, report: Report) -> Grant:
        """Note what a worker did, and lend it what there is."""
        self._expire()
        holder = self._holders.setdefault(name, _Holder())
        holder.seen_at, holder.wanted = self._clock(), report.wanted
        self._count(holder, report)
        grant = Grant(stop=self._totals.stop)
        grant.in_flight = holder.in_flight = 0 if grant.stop else self._in_flight(holder)
        if grant.stop is None:
            grant.requests = _lend(self._requests, min(report.requests, self._burst))
            grant.tokens = _lend(self._tokens, report.tokens)
            if report.usd > 0 and self._max_usd is not None:
                self._lend_money(holder, report.usd, grant)
        return grant

    def totals(self) -> Totals:
        self._expire()
        return self._totals

    def stop(self, how: str, message: str) -> None:
        """Let no worker begin another call; the first reason counts."""
        self._totals.stop = self._totals.stop or (how, message)

    def forget_workers(self) -> None:
        """Take back what workers have that are known to be gone, at the end of a round."""
        for holder in self._holders.values():
            holder.seen_at = float("-inf")
        self._expire()

    def _count(self, holder: _Holder, report: Report) -> None:
        totals = self._totals
        self._spent_usd += report.spent_usd
        holder.usd = report.kept_usd
        totals.answered += report.answered
        totals.failed += report.failed
        totals.retried += report.retried
        totals.calls += report.calls
        totals.presumed_usd += report.presumed_usd
        known = totals.paid_usd is not None and report.paid_usd is not None
        totals.paid_usd = totals.paid_usd + report.paid_usd if known else None
        totals.first_error = totals.first_error or report.first_error
        totals.left_out = report.left_out or totals.left_out
        if report.stop is not None:
            self.stop(*report.stop)
        if totals.failed >= MAX_LEADING_ERRORS and not totals.answered:
            self.stop("failing", leading_errors_message(totals.first_error))

    def _in_flight(self, holder: _Holder) -> int:
        """A worker's part: an even one where others wait for theirs, else whatever nobody has."""
        others = [each for each in self._holders.values() if each is not holder]
        free = max(0, self._max_in_flight - sum(each.in_flight for each in others))
        active = sum(each.wanted > 0 for each in self._holders.values())
        share = max(1, self._max_in_flight // max(1, active))
        is_contended = any(each.in_flight < min(each.wanted, share) for each in others)
        return min(holder.wanted, share if is_contended else free, free)

    def _lend_money(self, holder: _Holder, usd: float, grant: Grant) -> None:
        lent = sum(each.usd for each in self._holders.values())
        left = self._max_usd - self._spent_usd - lent
        if usd <= left:
            self._refused = 0
            grant.usd = min(left, max(usd, left / (MONEY_PARTS * len(self._holders))))
            holder.usd += grant.usd
        elif usd > self._max_usd - self._spent_usd:  # else others may leave enough
            self._refused += 1
            is_final = self._spent_usd >= NEARLY_SPENT * self._max_usd or self._refused >= MAX_REFUSED
            grant.refusal = limit_message(self._max_usd, self._spent_usd, usd), is_final

    def _expire(self) -> None:
        oldest = self._clock() - EXPIRY_S
        for name, holder in [*self._holders.items()]:
            if holder.seen_at < oldest:
                self._spent_usd += holder.usd
                self._totals.presumed_usd += holder.usd
                del self._holders[name]


class Lease:
    """A worker's side: what it may use, renewed by ``renew`` for as long as `run` is running.

    For one event loop. ``limits_requests`` and ``limits_tokens`` say whether there are such limits.
    """

    def __init__(
        self,
        renew: Callable[[Report], Awaitable[Grant]],
        *,
        limits_requests: bool = False,
        limits_tokens: bool = False,
    ):
        self._renew = renew
        self.limits_requests, self.limits_tokens = limits_requests, limits_tokens
        self.in_flight = self.requests = self.tokens = 0
        self.next_tokens = 0  # what the call that waits for tokens takes
        self.stop: tuple[str, str] | None = None
        self.did = Report()
        """Counted up by the worker, and sent with the next renewal."""
        self.budget: LeasedBudget | None = None
        self.on_change: list[Callable[[], None]] = []
        self._turn, self._needs, self._money = asyncio.Lock(), asyncio.Event(), asyncio.Lock()

    async def run(self) -> None:
        """Renew for as long as the worker lives."""
        while True:
            await self.renew()
            is_short = bool(self.did.wanted) and (self.in_flight == 0 or not self.has_room(self.next_tokens))
            self._needs.clear()
            try:
                await asyncio.wait_for(self._needs.wait(), RETRY_S if is_short else RENEW_S)
            except TimeoutError:
                continue

    def wants(self, calls: int) -> None:
        """So many more calls could be in flight, or fewer."""
        self.did.wanted += calls
        if self.did.wanted == calls or self.did.wanted == 0:  # from nothing, or to nothing
            self._needs.set()

    def has_room(self, tokens: int) -> bool:
        """Whether a call may be made as far as requests and tokens a minute go; if not, more is asked for."""
        self.next_tokens = tokens
        has = not (self.limits_requests and self.requests < 1)
        has = has and not (self.limits_tokens and self.tokens < tokens)
        if not has:
            self._needs.set()
        return has

    async def money(self, usd: float) -> None:
        """Wait until the budget has so much left. Raises BudgetReached."""
        budget = self.budget
        async with self._money:
            while budget.lacks(usd):
                if self.stop is not None:
                    raise BudgetReached(self.stop[1])
                budget.return_unreserved()
                grant = await self.renew(usd)
                budget.max_usd += grant.usd
                if grant.refusal is not None:
                    raise BudgetReached(grant.refusal[0], is_final=grant.refusal[1])
                if not grant.usd:
                    await asyncio.sleep(RETRY_S)

    async def renew(self, usd: float = 0.0) -> Grant:
        """Report, and take what is granted."""
        async with self._turn:
            report, self.did = self.did, Report(wanted=self.did.wanted)
            if self.budget is not None:
                self.budget.report(report)
            if self.limits_requests:
                wanted = report.wanted if self.requests < 1 else 0
                report.requests = wanted if report.wanted else -self.requests
            if self.limits_tokens:
                lacking = self.next_tokens - self.tokens
                report.tokens = max(0, lacking) if report.wanted else -self.tokens
            report.usd = usd
            grant = await self._renew(report)
            self.in_flight, self.stop = grant.in_flight, grant.stop
            self.requests += min(report.requests, 0) + grant.requests
            self.tokens += min(report.tokens, 0) + grant.tokens
            for changed in self.on_change:
                changed()
            return grant


class LeasedLimit(AdaptiveLimit):
    """The limit of one worker: what its endpoint takes, within what it is lent."""

    def __init__(self, lease: Lease, rate_limit_timeout_s: float | None = None):
        self._lease = lease
        super().__init__(max(1, lease.in_flight), rate_limit_timeout_s=rate_limit_timeout_s)
        lease.on_change.append(self._lease_changed)

    @property
    def allowed(self) -> int:
        return min(int(self._allowed), self._lease.in_flight)

    def counts_tokens(self, pool: Hashable = None) -> bool:
        return self._lease.limits_tokens or super().counts_tokens(pool)

    def _lease_changed(self) -> None:
        self.max_in_flight = max(1, self._lease.in_flight)
        if self._is_starting:
            self._allowed = max(self._allowed, float(min(INITIAL_CONCURRENCY, self.max_in_flight)))
        self._changed.set()

    def _wait_s(self, tokens: int, pool: Any) -> float | None:
        wait_s = super()._wait_s(tokens, pool)
        return RETRY_S if wait_s == 0 and not self._lease.has_room(tokens) else wait_s

    def _take(self, tokens: int, pool: Any) -> None:
        super()._take(tokens, pool)
        self._lease.requests -= self._lease.limits_requests

    def _correct_tokens(self, more: int) -> None:
        if self._lease.limits_tokens:
            self._lease.tokens -= more


class LeasedBudget(Budget):
    """The money of one worker: ``max_usd`` is what it was lent so far. Without a limit nothing is lent."""

    def __init__(self, lease: Lease, prices: PriceTable, is_limited: bool):
        super().__init__(0.0 if is_limited else None, prices)
        self._lease, self._reported_usd, self._reported_presumed_usd = lease, 0.0, 0.0
        lease.budget = self

    async def reserve(
        self,
        model: ModelSettings,
        messages: tuple[Message, ...],
        max_output_tokens: int,
        unsupported_params: Collection[str] = (),
        *,
        may_shorten: bool = False,
    ) -> Reservation:
        if self.max_usd is not None:
            output = self._most_output(model, max_output_tokens, unsupported_params)
            await self._lease.money(self._most_usd(model, self._ceiling(model, messages), output))
        return await super().reserve(model, messages, max_output_tokens, unsupported_params)

    def lacks(self, usd: float) -> bool:
        return self.spent_usd + self._reserved_usd + usd > self.max_usd

    def return_unreserved(self) -> None:
        """Keep what calls under way may cost, and no more."""
        self.max_usd = self.spent_usd + self._reserved_usd

    def report(self, report: Report) -> None:
        """Put into the report what was spent since the last one, and what is kept."""
        if self.max_usd is None:
            return
        if not report.wanted:
            self.return_unreserved()
        report.spent_usd = self.spent_usd - self._reported_usd
        report.presumed_usd = self.presumed_usd - self._reported_presumed_usd
        self._reported_usd, self._reported_presumed_usd = self.spent_usd, self.presumed_usd
        report.kept_usd = self.max_usd - self.spent_usd


def _bucket(per_minute: float | None, clock: Callable[[], float]) -> TokenBucket | None:
    return TokenBucket(per_minute / 60, max(1.0, per_minute / 60), clock) if per_minute else None


def _lend(bucket: TokenBucket | None, wanted: int) -> int:
    """As much of what is wanted as there is, by halves. What is more than there ever is (the tokens of a long
    prompt) is lent when all is there, and owed.
    """
    if bucket is None:
        return 0
    if wanted <= 0:
        bucket.take(wanted)
        return 0
    while wanted > 1 and bucket.wait_s(wanted) > 0:
        wanted //= 2
    if bucket.wait_s(wanted) > 0:
        return 0
    bucket.take(wanted)
    return wanted
