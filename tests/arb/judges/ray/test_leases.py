"""What workers are lent of rate, money and calls in flight: never more than there is, and all comes back."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.judges.engine.budget import BudgetReached
from arb.judges.engine.prices import Price, PriceTable
from arb.judges.ray.leases import EXPIRY_S, Lease, LeasedBudget, LeasedLimit, Leases, Report
from arb.judges.run.progress import MAX_LEADING_ERRORS
from arb.judges.types import Message, ModelSettings, Reply, Usage

MODEL = ModelSettings("m", "any", "http://host/v1")


class Clock:
    def __init__(self):
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_a_single_worker_is_lent_all_calls_in_flight(clock):
    assert Leases(64, clock=clock).renew("a", Report(wanted=500)).in_flight == 64


def test_a_second_worker_gets_its_half_once_the_first_renews(clock):
    leases = Leases(64, clock=clock)
    assert leases.renew("a", Report(wanted=500)).in_flight == 64
    assert leases.renew("b", Report(wanted=500)).in_flight == 0  # all of them are in use
    assert leases.renew("a", Report(wanted=500)).in_flight == 32
    assert leases.renew("b", Report(wanted=500)).in_flight == 32


def test_what_one_worker_does_not_use_another_has(clock):
    leases = Leases(64, clock=clock)
    assert leases.renew("a", Report(wanted=4)).in_flight == 4
    assert leases.renew("b", Report(wanted=500)).in_flight == 60
    assert leases.renew("a", Report(wanted=0)).in_flight == 0
    assert leases.renew("b", Report(wanted=500)).in_flight == 64


@given(
    most=st.integers(1, 40),
    steps=st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 60)), max_size=60),
)
def test_never_more_calls_are_lent_than_may_be_in_flight(most, steps):
    leases, lent = Leases(most, clock=lambda: 0.0), {}
    for name, wanted in steps:
        lent[name] = leases.renew(name, Report(wanted=wanted)).in_flight
        assert lent[name] <= wanted
        assert sum(lent.values()) <= most


def test_a_worker_that_is_not_heard_of_gives_its_calls_back(clock):
    leases = Leases(8, clock=clock)
    assert leases.renew("dead", Report(wanted=8)).in_flight == 8
    clock.now += EXPIRY_S - 1
    assert leases.renew("b", Report(wanted=8)).in_flight == 0
    clock.now += 2
    assert leases.renew("b", Report(wanted=8)).in_flight == 8


def test_requests_are_lent_as_they_come_and_given_back(clock):
    leases = Leases(64, requests_per_minute=600, clock=clock)  # 10 a second, 10 at once
    assert leases.renew("a", Report(wanted=64, requests=64)).requests == 10
    assert leases.renew("b", Report(wanted=64, requests=64)).requests == 0
    leases.renew("a", Report(wanted=0, requests=-8))
    assert leases.renew("b", Report(wanted=64, requests=9)).requests == 4  # 8 are there: 9, 4
    assert leases.renew("b", Report(wanted=64, requests=4)).requests == 4
    clock.now += 0.5
    assert leases.renew("b", Report(wanted=64, requests=5)).requests == 5


def test_a_prompt_of_more_tokens_than_a_second_has_is_lent_them_and_they_are_owed(clock):
    leases = Leases(64, tokens_per_minute=60_000, clock=clock)  # 1,000 a second
    assert leases.renew("a", Report(wanted=1, tokens=5_000)).tokens == 5_000
    clock.now += 4.5
    assert leases.renew("b", Report(wanted=1, tokens=1_000)).tokens == 500  # 4,000 were owed


def test_money_is_lent_in_small_parts_and_never_more_than_there_is(clock):
    leases = Leases(64, max_usd=10.0, spent_usd=2.0, clock=clock)
    # 8 dollars are left, one worker, a part is an eighth of its share: 8 / 8
    assert leases.renew("a", Report(wanted=1, usd=0.1)).usd == pytest.approx(1.0)
    # 7 are left for two: 7 / 16, which is less than the call needs
    assert leases.renew("b", Report(wanted=1, usd=6.5)).usd == pytest.approx(6.5)
    wait = leases.renew("c", Report(wanted=1, usd=1.0))
    assert (wait.usd, wait.refusal) == (0.0, None)  # 0.5 is left, but 7.5 may come back
    leases.renew("b", Report(wanted=1, spent_usd=0.5, kept_usd=0.0))
    assert leases.renew("c", Report(wanted=1, usd=1.0)).usd == pytest.approx(1.0)


def test_a_call_that_no_money_can_come_back_for_is_refused(clock):
    leases = Leases(64, max_usd=10.0, clock=clock)
    leases.renew("a", Report(spent_usd=8.5))
    message, is_final = leases.renew("a", Report(usd=1.6)).refusal
    assert "stopped at --max-usd 10: $8.5000 is spent" in message
    assert not is_final  # less than nine tenths are spent: another call may be paid
    leases.renew("a", Report(spent_usd=0.6))
    assert leases.renew("a", Report(usd=1.6)).refusal[1]


def test_money_that_a_dead_worker_had_counts_as_spent(clock):
    leases = Leases(64, max_usd=10.0, clock=clock)
    assert leases.renew("dead", Report(wanted=1, usd=4.0)).usd == 4.0
    clock.now += EXPIRY_S + 1
    assert leases.totals().presumed_usd == 4.0
    assert leases.renew("b", Report(usd=6.5)).refusal is not None
    assert leases.renew("b", Report(usd=6.0)).usd == 6.0


def test_a_run_whose_first_calls_all_failed_is_stopped(clock):
    leases, report = Leases(64, clock=clock), Report(wanted=1)
    for _ in range(MAX_LEADING_ERRORS):
        report.count(Reply(state="error", error="401 wrong key"))
    stop = leases.renew("a", report).stop
    assert stop[0] == "failing"
    assert "401 wrong key" in stop[1]
    assert leases.renew("b", Report(wanted=5)).in_flight == 0


def test_one_answer_among_failures_lets_a_run_go_on(clock):
    leases, report = Leases(64, clock=clock), Report(wanted=1)
    report.count(Reply("yes"))
    for _ in range(100):
        report.count(Reply(state="error", error="500"))
    assert leases.renew("a", report).stop is None
    assert (leases.totals().answered, leases.totals().failed) == (1, 100)


def lease_of(leases: Leases, **limits: bool) -> Lease:
    async def renew(report: Report):
        await asyncio.sleep(0)
        return leases.renew("a", report)

    return Lease(renew, **limits)


def test_calls_wait_for_the_requests_that_are_lent():
    async def run() -> list[float]:
        lease = lease_of(Leases(64, requests_per_minute=60_000), limits_requests=True)
        lease.wants(30)
        await lease.renew()
        limit, running = LeasedLimit(lease), asyncio.create_task(lease.run())
        made = []

        async def call() -> None:
            async with limit.slot():
                made.append(limit.in_flight)

        await asyncio.gather(*(call() for _ in range(30)))
        running.cancel()
        assert lease.requests >= 0
        return made

    assert len(asyncio.run(run())) == 30


def test_a_limit_lets_no_more_calls_in_than_are_lent():
    async def run() -> int:
        lease, most = lease_of(Leases(3)), 0
        lease.wants(20)
        await lease.renew()
        limit = LeasedLimit(lease)

        async def call() -> None:
            nonlocal most
            async with limit.slot():
                most = max(most, limit.in_flight)
                await asyncio.sleep(0)

        await asyncio.gather(*(call() for _ in range(20)))
        return most

    assert asyncio.run(run()) == 3


def test_a_budget_spends_what_it_is_lent_up_to_the_limit_of_the_run():
    """A dollar for a million tokens out: 1,000 tokens at most are 0.001 dollars and the prompt's."""

    async def run() -> tuple[int, float]:
        leases = Leases(64, max_usd=0.01)
        lease = lease_of(leases)
        budget = LeasedBudget(lease, PriceTable({("any", "m"): Price(0.0, 1.0)}), True)
        paid = 0
        lease.did.wanted = 1
        try:
            while True:
                reservation = await budget.reserve(MODEL, (Message("user", "Hi"),), 1_000)
                budget.settle(reservation, Usage(1, 400))
                paid += 1
        except BudgetReached as reached:
            assert reached.is_final
        await lease.renew()
        return paid, leases._spent_usd

    paid, spent_usd = asyncio.run(run())
    # a reply costs 0.0004 and needs 0.001 at most: after 22 of them 0.0012 are left, after 23 only 0.0008
    assert (paid, spent_usd) == (23, pytest.approx(0.0092))
