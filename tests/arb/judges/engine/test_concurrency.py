"""The limit on calls under way, with a clock of the test's own: every number is exact."""

import asyncio
from contextlib import AsyncExitStack
from itertools import pairwise

import pytest

from arb.judges.engine.concurrency import INITIAL_CONCURRENCY, AdaptiveLimit, TokenBucket
from arb.judges.engine.errors import CallFailed

REFUSED = CallFailed("rate_limit", "429")
SLOW = CallFailed("transient", "no reply in time", is_slow=True)


class Clock:
    """A clock that only moves when somebody sleeps."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now

    async def sleep(self, seconds):
        self.now += seconds
        await asyncio.sleep(0)


def limit_of(clock=None, **how):
    clock = clock or Clock()
    return AdaptiveLimit(**how, clock=clock, sleep=clock.sleep)


async def succeed(limit, tokens=0, used=None):
    async with limit.slot(tokens) as slot:
        slot.succeeded(used)


async def round_of_replies(limit):
    """As many calls as are allowed, all under way at once, all answered."""
    number = limit.allowed
    together = asyncio.Barrier(number)

    async def one():
        async with limit.slot() as slot:
            await together.wait()
            slot.succeeded()

    await asyncio.gather(*(one() for _ in range(number)))


def windows(limit, rounds):
    async def run():
        seen = []
        for _ in range(rounds):
            await round_of_replies(limit)
            seen.append(limit.allowed)
        return seen

    return asyncio.run(run())


def test_starts_low_and_doubles_with_every_round_up_to_the_most():
    limit = limit_of(max_in_flight=200)
    assert limit.allowed == INITIAL_CONCURRENCY == 32
    assert windows(limit, 4) == [64, 128, 200, 200]
    assert limit_of(max_in_flight=3).allowed == 3


def test_never_more_under_way_than_allowed_and_first_come_is_first_served():
    limit, order, most = limit_of(max_in_flight=4), [], 0

    async def one(number):
        nonlocal most
        async with limit.slot():
            order.append(number)
            most = max(most, limit.in_flight)
            await asyncio.sleep(0)

    async def run():
        await asyncio.gather(*map(one, range(50)))

    asyncio.run(run())
    assert (most, order, limit.in_flight) == (4, list(range(50)), 0)


@pytest.mark.parametrize(("failure", "least"), [(REFUSED, 1), (SLOW, 4)])
def test_a_burst_of_refusals_halves_once_and_the_next_burst_again(failure, least):
    limit = limit_of(max_in_flight=32)

    async def burst(number):
        together = asyncio.Barrier(number)

        async def one():
            async with limit.slot() as slot:
                await together.wait()
                slot.failed(failure)

        await asyncio.gather(*(one() for _ in range(number)))
        return limit.allowed

    async def run():
        return [await burst(limit.allowed) for _ in range(6)]

    # 32 / 2 = 16, and so on, down to one where the endpoint says that it wants fewer
    assert asyncio.run(run()) == [max(least, allowed) for allowed in (16, 8, 4, 2, 1, 1)]


def test_single_calls_refused_in_a_row_widen_the_gap_and_replies_narrow_it():
    clock = Clock()
    limit = limit_of(clock, max_in_flight=1)
    begun = []

    async def run():
        for is_refused in (True, True, True, False, False, False):
            async with limit.slot() as slot:
                begun.append(clock.now)
                slot.failed(REFUSED) if is_refused else slot.succeeded()

    asyncio.run(run())
    # the first refusal may be chance; then 0.05 and 0.1 s; the first reply's gap is still 0.1 s, then 0.08
    assert begun == pytest.approx([100, 100, 100.05, 100.15, 100.25, 100.33])


def test_a_cut_is_measured_from_what_was_under_way():
    limit = limit_of(max_in_flight=32)

    async def run():
        async with AsyncExitStack() as stack:
            slots = [await stack.enter_async_context(limit.slot()) for _ in range(12)]
            slots[0].failed(SLOW)

    asyncio.run(run())
    assert limit.allowed == 6  # 12 were under way though 32 were allowed


def test_recovers_in_even_steps_after_a_cut():
    limit = limit_of(max_in_flight=64)

    async def cut():
        async with limit.slot() as slot:
            slot.failed(REFUSED)

    asyncio.run(cut())
    assert limit.allowed == 4  # it may be chance
    asyncio.run(cut())
    assert limit.allowed == 1
    seen = windows(limit, 22)
    # doubled up to 4; then 64 / 16 = 4 more with every round, a little less since it grows within the round
    assert seen[:3] == [2, 4, 7]
    assert all(3 <= after - before <= 4 for before, after in pairwise(seen[1:]) if after < 64)
    assert seen[-1] == 64


def test_retry_after_stops_everyone_until_then():
    clock = Clock()
    limit = limit_of(clock, max_in_flight=8)
    begun = []

    async def refused():
        async with limit.slot() as slot:
            slot.failed(CallFailed("rate_limit", "429", retry_after_s=7.0))

    async def one():
        async with limit.slot():
            begun.append(clock.now)

    async def run():
        await refused()
        await asyncio.gather(*(one() for _ in range(5)))

    asyncio.run(run())
    assert begun == [107.0] * 5


def test_of_two_pauses_the_longer_counts():
    clock = Clock()
    limit = limit_of(clock, max_in_flight=8)

    async def run():
        async with limit.slot() as first, limit.slot() as second:
            first.failed(CallFailed("rate_limit", "429", retry_after_s=9.0))
            second.failed(CallFailed("rate_limit", "429", retry_after_s=2.0))
        async with limit.slot():
            return clock.now

    assert asyncio.run(run()) == 109.0


@pytest.mark.parametrize(
    ("requests_per_minute", "expected"),
    [
        (30, [100, 102, 104, 106]),  # 60 / 30 = 2 seconds apart
        # 240 / 60 = 4 at once, then one every quarter of a second
        (240, [100, 100, 100, 100, 100.25, 100.5]),
    ],
)
def test_requests_a_minute_are_spaced_evenly_and_those_of_a_second_may_go_at_once(
    requests_per_minute, expected
):
    clock = Clock()
    limit = limit_of(clock, max_in_flight=8, requests_per_minute=requests_per_minute)
    begun = []

    async def run():
        for _ in expected:
            async with limit.slot():
                begun.append(clock.now)

    asyncio.run(run())
    assert begun == pytest.approx(expected)


def test_tokens_a_minute_hold_back_the_next_call_and_replies_put_the_estimate_right():
    clock = Clock()
    limit = limit_of(clock, max_in_flight=8, tokens_per_minute=600)  # ten a second
    begun = []

    async def run():
        for used in (None, 20, None):
            await succeed(limit, tokens=50, used=used)
            begun.append(clock.now)

    asyncio.run(run())
    # 10 are there. The first takes 50, so 40 are owed; the second waits until 10 are there:
    # (40 + 10) / 10 = 5 s. It took 20 instead of 50, so 10 are owed: the third waits (10 + 10) / 10 = 2 s.
    assert begun == pytest.approx([100, 105, 107])


def test_a_bucket_never_holds_more_than_a_seconds_worth():
    clock = Clock()
    bucket = TokenBucket(10, 10, clock)
    clock.now += 3600
    bucket.take(-100)
    bucket.take(10)
    assert bucket.wait_s(10) == pytest.approx(1.0)


@pytest.mark.parametrize("where", ["waiting", "holding"])
def test_a_call_that_is_stopped_leaves_its_place(where):
    limit = limit_of(max_in_flight=1)

    async def run():
        async def hold(release):
            async with limit.slot():
                await release.wait()

        release = asyncio.Event()
        holder = asyncio.create_task(hold(release))
        await asyncio.sleep(0)
        waiter = asyncio.create_task(hold(release))
        await asyncio.sleep(0)
        (waiter if where == "waiting" else holder).cancel()
        await asyncio.sleep(0)
        release.set()
        await asyncio.gather(holder, waiter, return_exceptions=True)
        await asyncio.wait_for(succeed(limit), 60)

    asyncio.run(run())
    assert limit.in_flight == 0
