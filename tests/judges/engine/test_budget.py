"""The budget: what is set aside, what is counted, and that the limit holds whatever happens."""

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.engine.budget import Budget, BudgetReached, build_budget
from judges.engine.prices import ANY_PROVIDER, Price, PriceTable, read_prices
from judges.types import Message, ModelSettings, OptionsError, Reply

MODEL = ModelSettings("m")
PRICES = PriceTable({(ANY_PROVIDER, "m"): Price(1_000_000.0, 2_000_000.0)})  # $1 a token in, $2 out
QUESTION = (Message("user", "what?"),)


def budget(max_usd: float, *, prompt: int = 1, spent_usd: float = 0.0) -> Budget:
    return Budget(max_usd, PRICES, lambda model, messages: prompt, spent_usd)


def reply(input_tokens: int | None, output_tokens: int | None) -> Reply:
    return Reply("yes", input_tokens=input_tokens, output_tokens=output_tokens)


def test_the_most_a_call_can_cost_is_set_aside_and_what_it_cost_is_counted():
    async def run():
        kept = budget(10.0, prompt=4)
        reservation = await kept.reserve(MODEL, QUESTION, 3)
        assert reservation.usd == 10.0  # 4 x $1 + 3 x $2
        kept.settle(reservation, reply(3, 1))
        assert kept.spent_usd == 5.0  # 3 x $1 + 1 x $2
        assert kept.presumed_usd == 0.0

    asyncio.run(run())


def test_a_call_that_could_pass_the_limit_is_not_begun_and_the_message_says_how_to_go_on():
    async def run():
        kept = budget(10.0, spent_usd=6.0)
        with pytest.raises(BudgetReached, match=r"--max-usd 10: \$6\.0000 is spent.*cost \$5\.0000.*higher"):
            await kept.reserve(MODEL, QUESTION, 2)  # 1 + 2 x 2 = 5 > 4
        await kept.reserve(MODEL, QUESTION, 1)  # 1 + 2 = 3 <= 4

    asyncio.run(run())


def test_a_call_waits_for_those_under_way_when_they_may_leave_enough():
    async def run():
        kept = budget(10.0)
        first = await kept.reserve(MODEL, QUESTION, 4)  # 9
        second = asyncio.ensure_future(kept.reserve(MODEL, QUESTION, 2))  # 5: 9 + 5 > 10, but 5 alone fits
        await asyncio.sleep(0)
        assert not second.done()
        kept.settle(first, reply(1, 1))  # cost 3 of the 9
        assert (await second).usd == 5.0

    asyncio.run(run())


def test_a_call_that_waited_in_vain_gets_the_limit_error():
    async def run():
        kept = budget(10.0)
        first = await kept.reserve(MODEL, QUESTION, 4)
        second = asyncio.ensure_future(kept.reserve(MODEL, QUESTION, 2))
        await asyncio.sleep(0)
        kept.settle(first, reply(1, 3))  # 7 of the 9: 3 are left, 5 are needed
        with pytest.raises(BudgetReached):
            await second

    asyncio.run(run())


def test_what_could_never_be_paid_is_refused_at_once_though_others_are_under_way():
    async def run():
        kept = budget(10.0)
        await kept.reserve(MODEL, QUESTION, 1)
        with pytest.raises(BudgetReached):
            await kept.reserve(MODEL, QUESTION, 5)  # 11

    asyncio.run(run())


@pytest.mark.parametrize(
    ("came", "maybe_paid", "spend", "presumed"),
    [
        (None, False, 0.0, 0.0),  # refused: nothing was made
        (None, True, 5.0, 5.0),  # lost on the way: it may have been made, at most for 1 + 2 x 2
        (reply(None, None), False, 5.0, 5.0),  # made, but not counted by the endpoint
        (reply(1, 1), True, 3.0, 0.0),  # counted, whatever became of it
    ],
)
def test_what_a_failed_attempt_counts(came, maybe_paid, spend, presumed):
    async def run():
        kept = budget(10.0)
        kept.settle(await kept.reserve(MODEL, QUESTION, 2), came, maybe_paid=maybe_paid)
        assert (kept.spent_usd, kept.presumed_usd) == (spend, presumed)

    asyncio.run(run())


def test_a_reservation_is_settled_once():
    async def run():
        kept = budget(10.0)
        reservation = await kept.reserve(MODEL, QUESTION, 1)
        kept.settle(reservation, None)
        with pytest.raises(ValueError, match="once"):
            kept.settle(reservation, None)

    asyncio.run(run())


def test_what_the_user_adds_to_the_request_counts_in_the_most_it_can_cost():
    async def run():
        longer = ModelSettings("m", extra={"max_completion_tokens": 5, "n": 2})
        assert (await budget(100.0).reserve(longer, QUESTION, 3)).usd == 21.0  # 1 + 2 x 5 x 2

    asyncio.run(run())


@given(
    limit=st.floats(0, 60),
    calls=st.lists(
        st.tuples(
            st.integers(1, 4), st.floats(0, 1), st.sampled_from(["reply", "refused", "lost", "cancelled"])
        ),
        max_size=30,
    ),
    width=st.integers(1, 8),
    seed=st.integers(0, 2**32),
)
def test_no_order_of_calls_and_failures_passes_the_limit(limit, calls, width, seed):
    drawn = random.Random(seed)
    truly_paid = 0.0

    async def one(kept: Budget, room: asyncio.Semaphore, most: int, share: float, end: str) -> bool:
        nonlocal truly_paid
        async with room:
            try:
                reservation = await kept.reserve(MODEL, QUESTION, most)
            except BudgetReached:
                return False
            for _ in range(drawn.randrange(4)):
                await asyncio.sleep(0)
            output = round(share * most)
            if end != "refused":
                truly_paid += 1 + 2 * output
            came = reply(1, output) if end == "reply" else None
            kept.settle(reservation, came, maybe_paid=end in ("lost", "cancelled"))
            return True

    async def run():
        kept, room = budget(limit), asyncio.Semaphore(width)
        ended = await asyncio.gather(*(one(kept, room, *call) for call in calls))
        assert truly_paid <= kept.spent_usd + 1e-9 <= limit + 2e-9
        # None is refused that could have been paid: even the dearest call would not have fitted any more.
        if not all(ended):
            assert kept.spent_usd + 1 + 2 * max(most for most, *_ in calls) > limit

    asyncio.run(run())


def test_without_a_limit_nothing_is_set_aside_and_costs_are_known():
    async def run():
        free = Budget(None, PRICES)
        free.settle(await free.reserve(MODEL, QUESTION, 10**9), None, maybe_paid=True)
        assert free.cost_of(MODEL, 3, 1) == 5.0
        assert free.cost_of(MODEL, None, 1) is None
        assert free.cost_of(ModelSettings("nobody-knows"), 3, 1) is None
        assert Budget().cost_of(MODEL, 3, 1) is None

    asyncio.run(run())


def test_a_limit_is_refused_where_a_price_is_unknown():
    prices = read_prices(None, ["a=1,2"])
    models = {"judge": ModelSettings("nobody-knows", provider="vllm"), "other": ModelSettings("a")}
    with pytest.raises(OptionsError, match=r"price of nobody-knows is unknown.*--price nobody-knows=IN,OUT"):
        build_budget(1.0, prices, models)
    known = {"other": models["other"]}
    assert build_budget(1.0, prices, known, spent_usd=0.25).spent_usd == 0.25
    assert build_budget(None, prices, models).max_usd is None
