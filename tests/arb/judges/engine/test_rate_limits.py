"""Endpoints with few requests and tokens a minute: nothing is lost, whatever they say of their limits.

Time is virtual: the minutes that calls wait pass at once.
"""

import asyncio
from collections import Counter

import pytest

from arb.judges.catalog.simplified import SimplifiedJudge
from arb.judges.engine.concurrency import AdaptiveLimit, RateLimitTimeout
from arb.judges.engine.errors import CallFailed, classify_status
from arb.judges.engine.rate_limits import read_rate_limits
from arb.judges.run.scheduler import drive
from arb.judges.types import Reply, View, ViewStep
from tests.support.call_executor import ask_all, call, in_virtual_time
from tests.support.clocks import run_in_virtual_time
from tests.support.judges import READABLE_BY_EVERY_JUDGE
from tests.support.llm_server.errors import error_answer
from tests.support.llm_server.rate_limits import RateLimitRule

JUDGE = SimplifiedJudge("simplified-neither", "m")
LATENCY_S = 2.0
TRAJECTORIES = 40
TOKENS = 2_000


class LimitedEndpoint:
    """An endpoint with a rule: every call takes ``LATENCY_S`` and `TOKENS` tokens."""

    def __init__(self, rule: RateLimitRule):
        self.rule = rule
        self.in_flight, self.seen = 0, []

    async def attempt(self, request):
        self.rule.clock = asyncio.get_running_loop().time
        self.in_flight += 1
        self.seen.append(self.in_flight)
        try:
            await asyncio.sleep(0.1)
            message, headers = self.rule.take(TOKENS)
            if message is not None:
                refused = error_answer(429, message, code="rate_limit_exceeded")
                raise classify_status(429, refused.body.decode(), headers)
            await asyncio.sleep(LATENCY_S)
            limits = read_rate_limits(headers)
            return Reply(READABLE_BY_EVERY_JUDGE, input_tokens=TOKENS, output_tokens=10, rate_limits=limits)
        finally:
            self.in_flight -= 1


def view(number: int) -> View:
    """A trajectory whose prompt is estimated at about as many tokens as the endpoint counts."""
    text = f"because of {number} " + "x" * (4 * (TOKENS - 1024 - 500))
    return View("Order two teapots.", (), (ViewStep(1, "http://shop", "click('1')", text, ""),))


@pytest.mark.parametrize("counts_refused", [False, True])
@pytest.mark.parametrize(
    ("hints", "times_ideal", "most_refused"),
    [("headers", 1.1, 45), ("retry-after", 1.1, 80), ("words", 1.1, 80), ("none", 2.5, 95)],
)
@pytest.mark.parametrize("limits", [{"requests": 3}, {"tokens": 9_000}, {"requests": 3, "tokens": 9_000}])
def test_few_requests_and_tokens_a_minute_lose_no_trajectory(
    tmp_path, limits, hints, times_ideal, most_refused, counts_refused
):
    rule = RateLimitRule(**limits, hints=hints, counts_refused=counts_refused)
    endpoint = LimitedEndpoint(rule)

    def judge_all(executor):
        return asyncio.gather(*(drive(JUDGE, view(each), executor.ask, []) for each in range(TRAJECTORIES)))

    done, took_s = in_virtual_time(tmp_path, endpoint, judge_all)
    assert Counter(answer.state for answer in done) == {"ok": TRAJECTORIES}
    # 3 calls a minute, or 9,000 / 2,000 = 4; those of the first minute come at once
    a_minute = 3 if "requests" in limits else 4
    assert took_s < times_ideal * 60 * (TRAJECTORIES / a_minute - 1)
    assert rule.refused <= most_refused  # 29 of them are the first burst's: 32 calls at once
    assert 1 in endpoint.seen[-7:]
    if hints == "none":
        assert max(endpoint.seen[-10:]) == 1  # one by one, evenly: it had to find out how many it may make


def test_an_endpoint_that_only_ever_refuses_ends_the_run_after_the_time_allowed(tmp_path):
    rule = RateLimitRule(tokens=1_000)  # every call is larger than the limit
    rule._wait_s = lambda now, tokens: 5.0
    events = []
    ended, took_s = in_virtual_time(
        tmp_path,
        LimitedEndpoint(rule),
        ask_all(f"Status: {each}" for each in range(50)),
        lambda kind, **facts: events.append(kind),
        rate_limit_timeout_s=300.0,
    )
    # every call ends with it, at once: those that were refused, and those that waited for a place
    assert {type(each) for each in ended} == {RateLimitTimeout}
    assert 300 <= took_s < 300 + 60 + 1
    assert "failed" not in events  # no reply, so no verdict: the same command goes on with all of them
    message = str(ended[0])
    assert "for 3" in message and "asks to wait for 5 s" in message and "--rate-limit-timeout" in message


class Answers:
    """An endpoint that gives what a function of the call's number and the time says."""

    def __init__(self, answer):
        self.answer, self.asked = answer, 0

    async def attempt(self, request):
        self.asked += 1
        await asyncio.sleep(1.0)
        found = self.answer(request.messages[0].content, asyncio.get_running_loop().time())
        if isinstance(found, Exception):
            raise found
        return Reply(found, input_tokens=1, output_tokens=1)


def test_a_call_that_is_refused_for_an_hour_is_answered_while_others_are(tmp_path):
    def answer(text, now):
        return CallFailed("rate_limit", "429") if text == "0" and now < 3600 else "fine"

    async def ask(executor):
        refused = asyncio.create_task(executor.ask(call("0")))
        for number in range(1, 80):
            assert (await executor.ask(call(str(number)))).state == "ok"
            await asyncio.sleep(60.0)
        return await refused

    reply, took_s = in_virtual_time(tmp_path, Answers(answer), ask, rate_limit_timeout_s=300.0)
    assert reply.state == "ok" and took_s > 3600


def test_a_wait_of_hours_holds_nobody_and_is_believed_after_a_minute_without_a_reply(tmp_path):
    later = CallFailed("rate_limit", "429: daily limit", retry_after_s=7200)
    endpoint = Answers(lambda text, now: later if text == "0" else "fine")
    ended, took_s = in_virtual_time(tmp_path / "one", endpoint, ask_all("01"))
    # the other one is answered first; then 60 s of refusals only, at growing distances
    assert [type(each) for each in ended] == [RateLimitTimeout, Reply]
    assert 60 <= took_s < 130
    assert "asks to wait for 7,200 s" in str(ended[0])
    endpoint = Answers(lambda text, now: later if now < 20 else "fine")
    ended, took_s = in_virtual_time(tmp_path / "two", endpoint, ask_all("01"))
    assert [each.state for each in ended] == ["ok", "ok"]


def test_a_wait_of_nothing_is_no_reason_to_hurry(tmp_path):
    at_once = CallFailed("rate_limit", "429", retry_after_s=0.0)
    asked = []

    def answer(text, now):
        asked.append(now)
        return at_once if now < 300 else "fine"

    ended, took_s = in_virtual_time(tmp_path, Answers(answer), ask_all("0"))
    assert ended[0].state == "ok"
    # gaps of 0.05, 0.1, 0.2 ... 51, 60 s: 12 calls until a minute lies between them
    assert len(asked) < 20 and took_s < 300 + 62


def test_each_model_has_the_quotas_that_its_own_answers_name():
    async def run():
        clock = asyncio.get_running_loop().time
        limit = AdaptiveLimit(8, clock=clock)
        empty = read_rate_limits(
            {
                "x-ratelimit-limit-requests": "60",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "1m0s",
            }
        )
        async with limit.slot(pool="a") as slot:
            slot.succeeded(None, empty)
        async with limit.slot(pool="b"):
            at_b = clock()
        async with limit.slot(pool="a"):
            pass
        return at_b, clock()

    # 60 missing of 60 in a minute: the next request is there after a second
    assert run_in_virtual_time(run()) == (0.0, pytest.approx(1.0))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "20"}, 20),  # no limit: one more after the reset
        ({"x-ratelimit-remaining": "0", "x-ratelimit-limit": "30"}, 2),  # no reset: 30 a minute
        ({"x-ratelimit-remaining": "0"}, 0),  # nothing says when there will be more; a refusal may
        ({"x-ratelimit-remaining": "9", "x-ratelimit-limit": "3"}, 0),  # nonsense holds nobody
        ({"x-ratelimit-remaining-tokens": "500", "x-ratelimit-limit-tokens": "9000",
          "x-ratelimit-reset-tokens": "17s"}, 3),  # 1,500 missing of 2,000; 8,500 / 17 = 500 come a second
    ],
)  # fmt: skip
def test_the_next_call_waits_for_what_the_headers_say_is_missing(headers, seconds):
    async def run():
        limit = AdaptiveLimit(8, clock=asyncio.get_running_loop().time)
        async with limit.slot() as slot:
            slot.succeeded(None, read_rate_limits(headers))
        async with limit.slot(tokens=2_000):
            return asyncio.get_running_loop().time()

    assert run_in_virtual_time(run()) == pytest.approx(seconds)


def test_headers_that_promise_nothing_for_hours_are_asked_about_once_a_minute():
    async def run():
        clock = asyncio.get_running_loop().time
        limit = AdaptiveLimit(8, clock=clock)
        headers = {"x-ratelimit-limit": "1000", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "9999999"}
        for _ in range(3):
            async with limit.slot() as slot:
                slot.succeeded(None, read_rate_limits(headers))
        return clock()

    assert run_in_virtual_time(run()) == pytest.approx(120.0)


def test_calls_sent_since_are_taken_off_what_an_answer_says_is_left():
    async def run():
        clock = asyncio.get_running_loop().time
        limit = AdaptiveLimit(8, clock=clock)
        begun = []
        headers = {"x-ratelimit-limit": "60", "x-ratelimit-remaining": "3", "x-ratelimit-reset": "57"}

        async def one(latency_s, limits=None):
            async with limit.slot() as slot:
                begun.append(clock())
                await asyncio.sleep(latency_s)
                slot.succeeded(None, limits)

        first = asyncio.create_task(one(0.01, read_rate_limits(headers)))
        others = [asyncio.create_task(one(10.0)) for _ in range(2)]
        await first
        await asyncio.gather(*others, *(one(10.0) for _ in range(3)))
        return begun

    # 3 were left as the first came in, a second brings one (57 in 57 s), and two were sent after it: one may
    # go at once, the next when the second is over, counted from the first
    assert run_in_virtual_time(run()) == pytest.approx([0, 0, 0, 0.01, 1, 2])
