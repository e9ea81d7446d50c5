"""The budget: what is set aside, what is counted, and that the limit holds whatever happens."""

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arb.judges.engine.budget import MAX_REFUSED, Budget, BudgetReached
from arb.judges.engine.prices import ANY_PROVIDER, Price, PriceTable
from arb.judges.engine.tokens import PER_CALL_AT_MOST, PER_MESSAGE_AT_MOST
from arb.judges.types import Message, ModelSettings, Request, Usage
from tests.conftest import examples
from tests.support.clocks import run_in_virtual_time

MODEL = ModelSettings("m")
PRICES = PriceTable({(ANY_PROVIDER, "m"): Price(1_000_000.0, 2_000_000.0)})  # $1 a token in, $2 out
QUESTION = (Message("user", "what?"),)


def budget(max_usd: float, *, prompt: int = 1, spent_usd: float = 0.0) -> Budget:
    return Budget(max_usd, PRICES, lambda model, messages: prompt, spent_usd)


def test_the_most_a_call_can_cost_is_set_aside_and_what_it_cost_is_counted():
    async def run():
        kept = budget(10.0, prompt=4)
        reservation = await kept.reserve(Request(MODEL, QUESTION, 3))
        assert reservation.usd == 10.0  # 4 x $1 + 3 x $2
        kept.settle(reservation, Usage(3, 1))
        assert kept.spent_usd == 5.0  # 3 x $1 + 1 x $2
        assert kept.presumed_usd == 0.0

    asyncio.run(run())


def test_a_call_that_could_pass_the_limit_is_not_begun_and_the_message_says_how_to_go_on():
    async def run():
        kept = budget(10.0, spent_usd=6.0)
        with pytest.raises(BudgetReached, match=r"--max-usd 10: \$6\.0000 is spent.*cost \$5\.0000.*higher"):
            await kept.reserve(Request(MODEL, QUESTION, 2))  # 1 + 2 x 2 = 5 > 4
        await kept.reserve(Request(MODEL, QUESTION, 1))  # 1 + 2 = 3 <= 4

    asyncio.run(run())


def test_a_call_that_waited_in_vain_gets_the_limit_error():
    async def run():
        kept = budget(10.0)
        first = await kept.reserve(Request(MODEL, QUESTION, 4))
        second = asyncio.ensure_future(kept.reserve(Request(MODEL, QUESTION, 2)))
        await asyncio.sleep(0)
        kept.settle(first, Usage(1, 3))  # 7 of the 9: 3 are left, 5 are needed
        with pytest.raises(BudgetReached):
            await second

    asyncio.run(run())


def test_what_could_never_be_paid_is_refused_at_once_though_others_are_under_way():
    async def run():
        kept = budget(10.0)
        await kept.reserve(Request(MODEL, QUESTION, 1))
        with pytest.raises(BudgetReached):
            await kept.reserve(Request(MODEL, QUESTION, 5))  # 11

    asyncio.run(run())


@pytest.mark.parametrize(
    ("came", "maybe_paid", "spend", "presumed"),
    [
        (None, False, 0.0, 0.0),  # refused: nothing was made
        (None, True, 5.0, 5.0),  # lost on the way: it may have been made, at most for 1 + 2 x 2
        (Usage(None, None), False, 5.0, 5.0),  # made, but not counted by the endpoint
        (Usage(1, 1), True, 3.0, 0.0),  # counted, whatever became of it
    ],
)
def test_what_a_failed_attempt_counts(came, maybe_paid, spend, presumed):
    async def run():
        kept = budget(10.0)
        kept.settle(await kept.reserve(Request(MODEL, QUESTION, 2)), came, maybe_paid=maybe_paid)
        assert (kept.spent_usd, kept.presumed_usd) == (spend, presumed)

    asyncio.run(run())


def test_what_the_user_adds_to_the_request_counts_in_the_most_it_can_cost():
    async def run():
        longer = ModelSettings("m", extra={"max_completion_tokens": 5, "n": 2})
        assert (await budget(100.0).reserve(Request(longer, QUESTION, 3))).usd == 21.0  # 1 + 2 x 5 x 2

    asyncio.run(run())


AROUND = PER_CALL_AT_MOST + PER_MESSAGE_AT_MOST + 1
"""Tokens of a call of one message beside those of its text, at most."""


def words(number: int) -> tuple[Message, ...]:
    """A prompt that has so many tokens at most, as the budget counts them."""
    return (Message("user", "x" * (number - AROUND)),)


def test_near_the_limit_calls_wait_for_each_other_and_each_counts_for_the_most_it_can_cost():
    async def run():
        kept = Budget(1_000.0, PRICES)
        for _ in range(20):  # however few tokens a byte the endpoint has counted so far
            kept.settle(await kept.reserve(Request(MODEL, words(200), 1)), Usage(10, 1))
        assert kept.spent_usd == 20 * 12.0  # 10 x $1 + 1 x $2; 760 are left
        first = await kept.reserve(Request(MODEL, words(400), 1))
        assert first.usd == 402.0
        second = asyncio.ensure_future(kept.reserve(Request(MODEL, words(400), 1)))
        await asyncio.sleep(0)
        assert not second.done()  # twice 402 are more than 760
        kept.settle(first, Usage(100, 1))  # 102: 658 are left
        assert (await second).usd == 402.0
        kept.settle(await second, Usage(400, 1))  # a token a byte, this time: 256 are left
        with pytest.raises(BudgetReached, match=r"cost \$402"):
            await kept.reserve(Request(MODEL, words(400), 1))
        assert kept.spent_usd == 744.0  # 240 + 102 + 402

    asyncio.run(run())


def test_a_call_too_dear_leaves_the_run_to_others_until_hardly_anything_is_left():
    async def run():
        kept = budget(100.0)
        for number in range(1, MAX_REFUSED + 1):
            with pytest.raises(BudgetReached) as refused:
                await kept.reserve(Request(MODEL, QUESTION, 50))  # 101
            assert refused.value.is_final is (number == MAX_REFUSED)
        kept.settle(
            await kept.reserve(Request(MODEL, QUESTION, 44)), Usage(1, 44)
        )  # 89: less than nine tenths
        with pytest.raises(BudgetReached) as refused:
            await kept.reserve(Request(MODEL, QUESTION, 6))
        assert not refused.value.is_final
        kept.settle(await kept.reserve(Request(MODEL, QUESTION, 0)), Usage(1, 0))  # 90
        with pytest.raises(BudgetReached) as refused:
            await kept.reserve(Request(MODEL, QUESTION, 6))
        assert refused.value.is_final

    asyncio.run(run())


def test_an_endpoint_that_makes_more_than_the_longest_reply_is_expected_to_do_so_again():
    """Hidden reasoning that it does not count into ``max_tokens``."""

    async def run():
        kept = budget(100.0)
        kept.settle(await kept.reserve(Request(MODEL, QUESTION, 4)), Usage(1, 10))  # 2.5 times as many
        assert (await kept.reserve(Request(MODEL, QUESTION, 4))).usd == 1 + 2 * 2.5 * 4

    asyncio.run(run())


ENDS = ["reply"] * 8 + ["refused", "lost", "cancelled", "uncounted"]


def random_calls(drawn: random.Random) -> list[tuple[int, int, int, float, float, float, str]]:
    """Tokens that the prompt can have and has, the longest reply and how much of it is made, seconds before
    the call is asked and that it takes, how it ends.
    """

    def one() -> tuple[int, int, int, float, float, float, str]:
        most = AROUND + drawn.randrange(500, 8_000)
        tokens = int(most * drawn.uniform(0.15, 0.34))
        made = drawn.choice([1.0, drawn.random()])
        return (
            most,
            tokens,
            drawn.randrange(1, 500),
            made,
            drawn.uniform(0, 20),
            drawn.uniform(0.1, 9),
            drawn.choice(ENDS),
        )

    return [one() for _ in range(drawn.randrange(10, 80))]


@pytest.mark.slow
@given(
    share=st.floats(0.0, 1.1),
    turns_hostile=st.floats(0.5, 1.1),
    width=st.integers(1, 16),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=examples(150), deadline=None)
def test_no_schedule_passes_the_limit_and_at_most_a_tenth_is_left_while_there_are_calls(
    share, turns_hostile, width, seed
):
    """In virtual time: calls of all sizes begin, end and fail in any order. What the endpoint charges never
    passes the limit, and no call is refused that was sure to fit. ``share``: the limit, of what all cost.
    Once ``turns_hostile`` of it is charged the tokenizer gives a token for every byte, and fewer before.
    """
    calls = random_calls(random.Random(seed))
    limit = share * sum(tokens + 2 * longest * made for _, tokens, longest, made, *_ in calls)
    charged, refused = 0.0, []

    async def one(kept: Budget, room: asyncio.Semaphore, call) -> None:
        nonlocal charged
        most, tokens, longest, made, begins, takes, end = call
        await asyncio.sleep(begins)
        async with room:
            try:
                reservation = await kept.reserve(Request(MODEL, words(most), longest))
            except BudgetReached:
                refused.append(most + 2 * longest)
                return
            is_hostile = charged >= turns_hostile * limit
            usage = Usage(most if is_hostile else tokens, round(made * (reservation.max_tokens or longest)))
            if end != "refused":  # made and charged, whether or not it arrives
                charged += usage.input_tokens + 2 * usage.output_tokens
            assert charged <= limit + 1e-6
            await asyncio.sleep(takes)
            came = {"reply": usage, "uncounted": Usage()}.get(end)
            kept.settle(reservation, came, maybe_paid=end in ("lost", "cancelled"))
            assert charged <= limit + 1e-6

    async def run() -> Budget:
        kept, room = Budget(limit, PRICES), asyncio.Semaphore(width)
        await asyncio.gather(*(one(kept, room, call) for call in calls))
        return kept

    kept = run_in_virtual_time(run())
    assert charged <= kept.spent_usd + 1e-6 <= limit + 2e-6
    if refused:
        # What is left is less than every refused call could cost. Where none can cost more than a tenth of
        # the limit, no more than a tenth is left.
        assert kept.spent_usd + min(refused) > limit
        if max(refused) <= limit / 10:
            assert kept.spent_usd >= 0.9 * limit


def test_without_a_limit_nothing_is_set_aside_and_costs_are_known():
    async def run():
        free = Budget(None, PRICES)
        free.settle(await free.reserve(Request(MODEL, QUESTION, 10**9)), None, maybe_paid=True)
        assert free.cost_of(MODEL, Usage(3, 1)) == 5.0
        assert free.cost_of(MODEL, Usage(None, 1)) is None
        assert free.cost_of(ModelSettings("nobody-knows"), Usage(3, 1)) is None
        assert Budget().cost_of(MODEL, Usage(3, 1)) is None

    asyncio.run(run())
