"""Asking: retries, the cache, calls shared in flight, money, and being stopped."""

import asyncio
from collections import Counter
from types import SimpleNamespace

import pytest

from judges.base import Call, Message, ModelSettings, Reply
from judges.engine.asker import Asker, about_tokens
from judges.engine.budget import BudgetReached, NoBudget
from judges.engine.cache import CallCache
from judges.engine.endpoints import open_endpoints
from judges.engine.errors import CallFailed
from judges.engine.limits import AdaptiveLimit
from judges.engine.patience import Patience
from tests.llm_server import FAULTS, FaultPlan, LLMServer

SOON = Patience(first_wait_s=0.001)


def call(text="Status: ?", **rest):
    return Call("verdict", (Message("user", text),), **rest)


class Ledger(NoBudget):
    """A budget that writes down what it is told; a token costs a dollar."""

    def __init__(self, most=None):
        super().__init__()
        self.open, self.settled, self.most = 0, [], most

    async def reserve(self, model, messages, max_output_tokens):
        if self.most is not None and len(self.settled) >= self.most:
            raise BudgetReached("no more money")
        self.open += 1
        return await super().reserve(model, messages, max_output_tokens)

    def settle(self, reservation, reply, *, maybe_paid=False):
        self.open -= 1
        self.settled.append((reply and reply.state, maybe_paid))

    def cost_of(self, model, input_tokens, output_tokens):
        return None if input_tokens is None else float(input_tokens + output_tokens)


class Kit:
    """An asker with all around it: ``kit.run(lambda asker: …)`` opens, asks and closes."""

    def __init__(self, folder, server=None, endpoint=None, budget=None, limit=None, **settings):
        self.folder, self.endpoint, self.budget = folder, endpoint, budget or NoBudget()
        self.limit = limit or AdaptiveLimit(64)
        base_url = server.base_url if server else "http://127.0.0.1:1/v1"
        self.models = {"judge": ModelSettings("m", provider="any", base_url=base_url, **settings)}
        self.events, self.how = [], {"patience": SOON, "draw": lambda: 1.0}

    def tell(self, kind, **facts):
        self.events.append((kind, facts))

    def kinds(self):
        return Counter(kind for kind, _ in self.events)

    def run(self, ask, timeout_s=30.0):
        async def run():
            async with open_endpoints(self.models, {}, timeout_s) as endpoints:
                if self.endpoint is not None:
                    endpoints = dict.fromkeys(self.models, self.endpoint)
                cache = CallCache(self.folder)
                try:
                    asker = Asker(
                        endpoints, self.models, cache, self.limit, self.budget, self.tell, **self.how
                    )
                    self.asker = asker
                    return await ask(asker)
                finally:
                    cache.close()

        return asyncio.run(run())

    def ask(self, *calls, timeout_s=30.0):
        return self.run(lambda asker: asyncio.gather(*map(asker.ask, calls)), timeout_s)


class Endpoint:
    """An endpoint in the test: ``answers`` are replies or exceptions, the last one for ever."""

    def __init__(self, *answers):
        self.answers, self.asked, self.begun = list(answers), [], asyncio.Event()

    async def attempt(self, model, messages, max_output_tokens, *, dropped=frozenset()):
        self.asked.append((messages, max_output_tokens, dropped))
        self.begun.set()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, asyncio.Event):
            await answer.wait()
            answer = Reply("waited", input_tokens=1, output_tokens=1)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def close(self):
        pass


def lines(folder):
    return "".join(path.read_text() for path in folder.iterdir() if path.suffix == ".jsonl")


RETRIED = [
    "rate_limit",
    "rate_limit_retry_after",
    "server_error",
    "overload",
    "timeout",
    "reset",
    "cut_body",
    "choices_null",
    "content_null",
    "cut_json",
]


@pytest.mark.parametrize("fault", RETRIED)
def test_a_fault_that_passes_is_tried_again_and_then_answered_once(tmp_path, fault):
    with LLMServer(faults=FaultPlan({fault: 1.0}, at_most=1)) as server:
        kit = Kit(tmp_path, server)
        (reply,) = kit.ask(call(), timeout_s=1.0 if fault == "timeout" else 30.0)
        assert (reply.state, reply.text[:9]) == ("ok", "Thoughts:")
        assert kit.kinds() == {"retried": 1, "answered": 1}
        assert (server.counts.calls, server.counts.answers.total()) == (2, 1)
    assert lines(tmp_path).count('"attempt"') == 1


@pytest.mark.parametrize(
    ("fault", "calls"),
    [("rate_limit", 10), ("server_error", 8), ("cut_json", 3), ("choices_null", 3), ("content_null", 3)],
)
def test_a_fault_that_stays_ends_in_an_error_after_so_many_tries(tmp_path, fault, calls):
    with LLMServer(faults=FaultPlan({fault: 1.0})) as server:
        kit = Kit(tmp_path, server)
        (reply,) = kit.ask(call())
        assert (reply.state, server.counts.calls) == ("error", calls)
        assert reply.error and reply.key
        assert kit.events[-1][0] == "failed"


def test_what_came_of_a_cut_answer_stays_in_the_reply_and_among_the_attempts(tmp_path):
    with LLMServer(faults=FaultPlan({"cut_json": 1.0})) as server:
        (reply,) = Kit(tmp_path, server).ask(call())
    assert reply.text.startswith('{"id":"chatcmpl-')
    assert lines(tmp_path).count("chatcmpl-") == 3


def test_a_failure_is_never_an_answer(tmp_path):
    with LLMServer(faults=FaultPlan({"server_error": 1.0}, at_most=8)) as server:
        kit = Kit(tmp_path, server)
        assert kit.ask(call())[0].state == "error"
        again = kit.ask(call())[0]
        assert (again.state, again.is_from_cache, server.counts.calls) == ("ok", False, 9)


def test_the_same_call_is_paid_once_in_all_runs(tmp_path):
    with LLMServer() as server:
        (first,) = Kit(tmp_path, server).ask(call())
        (second,) = Kit(tmp_path, server).ask(call())
        assert (first.is_from_cache, second.is_from_cache) == (False, True)
        assert (second.text, second.key) == (first.text, first.key)
        Kit(tmp_path, server).ask(call(sample=1))
        assert server.counts.calls == 2


@pytest.mark.parametrize("finish", ["content_filter", "refusal"])
def test_a_refusal_that_was_paid_is_an_answer_and_kept(tmp_path, finish):
    refused = Reply(None, "refused", finish, error="no", input_tokens=1, output_tokens=1)
    endpoint = Endpoint(refused)
    kit = Kit(tmp_path, endpoint=endpoint)
    assert [kit.ask(call())[0].state for _ in range(2)] == ["refused", "refused"]
    assert len(endpoint.asked) == 1


def test_a_prompt_that_the_endpoint_will_not_have_is_refused_and_asked_again_another_time(tmp_path):
    endpoint = Endpoint(CallFailed("refused", "flagged"))
    kit = Kit(tmp_path, endpoint=endpoint)
    assert [kit.ask(call())[0].state for _ in range(2)] == ["refused", "refused"]
    assert len(endpoint.asked) == 2


def test_a_prompt_that_is_too_long_is_sent_once_more_shorter(tmp_path):
    long = call("long " * 900, shorter=(Message("user", "short"),))
    with LLMServer(max_input_tokens=100) as server:
        kit = Kit(tmp_path, server)
        (reply,) = kit.ask(long)
        assert (reply.state, reply.used_shorter, server.counts.calls) == ("ok", True, 2)
        # the answer goes by the name of what was asked first
        assert kit.ask(long)[0].is_from_cache
        assert not kit.ask(call("short"))[0].is_from_cache


@pytest.mark.parametrize(("shorter", "calls"), [(None, 1), ("still long " * 900, 2), ("long " * 900, 2)])
def test_too_long_twice_is_a_state_of_its_own(tmp_path, shorter, calls):
    shorter = shorter and (Message("user", shorter),)
    with LLMServer(max_input_tokens=100) as server:
        (reply,) = Kit(tmp_path, server).ask(call("long " * 900, shorter=shorter))
        assert (reply.state, reply.used_shorter) == ("too_long", shorter is not None)
        assert server.counts.calls == calls


@pytest.mark.parametrize(
    ("provider", "unknown", "used"),
    [("any", "max_tokens", "max_completion_tokens"), ("openai", "max_completion_tokens", "max_tokens")],
)
def test_the_other_name_of_the_longest_reply_is_taken_and_remembered(tmp_path, provider, unknown, used):
    with LLMServer(unsupported={unknown}) as server:
        kit = Kit(tmp_path, server)
        kit.models = {
            "judge": ModelSettings("m", provider=provider, base_url=server.base_url, key_variable="K")
        }

        async def one_after_the_other(asker):
            return [(await asker.ask(call(f"Status: {number}"))).state for number in range(3)]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("judges.engine.endpoints.access_of", with_key)
            assert kit.run(one_after_the_other) == ["ok"] * 3
        assert [used in body for body in server.chat.bodies] == [False, True, True, True]
        assert server.counts.answers.total() == 3
        assert kit.asker.dropped == {"judge": [unknown]}


def with_key(models, environment):
    from judges.engine.providers import access_of

    return access_of(models, {"K": "a-key"})


def test_every_parameter_that_is_not_known_is_left_out_in_turn_and_for_all_roles(tmp_path):
    with LLMServer(unsupported={"temperature", "seed", "logprobs"}) as server:
        kit = Kit(tmp_path, server, logprobs=True)
        kit.models["captioner"] = kit.models["judge"]

        async def one_after_the_other(asker):
            first = await asker.ask(call())
            return first, await asker.ask(call("Status: caption?", role="captioner"))

        assert [reply.state for reply in kit.run(one_after_the_other)] == ["ok", "ok"]
        assert server.counts.calls == 3 + 1 + 1
        assert kit.kinds()["dropped"] == 3
        assert not {"temperature", "seed", "logprobs", "top_logprobs"} & set(server.chat.bodies[-1])


def test_many_calls_at_once_that_meet_the_same_unknown_parameter_all_go_well(tmp_path):
    with LLMServer(unsupported={"seed"}) as server:
        replies = Kit(tmp_path, server).ask(*(call(f"Status: {number}") for number in range(20)))
        assert {reply.state for reply in replies} == {"ok"}


def test_a_parameter_that_is_refused_even_when_left_out_is_final(tmp_path):
    endpoint = Endpoint(CallFailed("unsupported_parameter", "seed?", parameter="seed"))
    (reply,) = Kit(tmp_path, endpoint=endpoint).ask(call())
    assert (reply.state, len(endpoint.asked)) == ("error", 2)


def test_equal_calls_at_once_are_made_once_and_counted_once(tmp_path):
    with LLMServer(latency_s=0.02) as server:
        kit = Kit(tmp_path, server)
        replies = kit.ask(*[call()] * 5)
        assert (server.counts.calls, len({reply.text for reply in replies})) == (1, 1)
        assert sorted(reply.is_from_cache for reply in replies) == [False] + [True] * 4


def test_when_the_one_that_asks_is_stopped_another_that_waits_takes_over(tmp_path):
    release = asyncio.Event()
    endpoint = Endpoint(release, Reply("second"))
    kit = Kit(tmp_path, endpoint=endpoint)

    async def run(asker):
        first, second = (asyncio.create_task(asker.ask(call())) for _ in range(2))
        await endpoint.begun.wait()
        first.cancel()
        return await second

    assert kit.run(run).text == "second"


def test_who_waits_and_is_stopped_stops_nobody_else(tmp_path):
    release = asyncio.Event()
    kit = Kit(tmp_path, endpoint=Endpoint(release))

    async def run(asker):
        first, second = (asyncio.create_task(asker.ask(call())) for _ in range(2))
        await asyncio.sleep(0.01)
        second.cancel()
        await asyncio.sleep(0)
        release.set()
        return await first

    assert kit.run(run).text == "waited"


def test_a_call_that_is_stopped_leaves_limit_budget_and_cache_whole(tmp_path):
    kit = Kit(tmp_path, endpoint=Endpoint(asyncio.Event()), budget=Ledger())

    async def run(asker):
        task = asyncio.create_task(asker.ask(call()))
        await kit.endpoint.begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    kit.run(run)
    assert (kit.limit.in_flight, kit.budget.open) == (0, 0)
    assert kit.budget.settled == [(None, True)]  # it may have been paid
    assert '"kind":"cancelled"' in lines(tmp_path) and '"answer"' not in lines(tmp_path)
    kit.endpoint = Endpoint(Reply("ok"))
    assert kit.ask(call())[0].text == "ok"


def test_money_is_set_aside_for_every_try_and_what_failed_tries_cost_is_in_the_reply(tmp_path):
    tries = [
        CallFailed("transient", "no text", maybe_paid=True, raw="{}", input_tokens=5, output_tokens=2),
        CallFailed("transient", "no answer", maybe_paid=True),
        CallFailed("rate_limit", "429"),
        Reply("fine", input_tokens=10, output_tokens=3),
    ]
    kit = Kit(tmp_path, endpoint=Endpoint(*tries), budget=Ledger())
    (reply,) = kit.ask(call())
    assert kit.budget.settled == [("error", True), (None, True), (None, False), ("ok", False)]
    assert reply.cost_usd == (5 + 2) + (10 + 3)
    assert (reply.input_tokens, reply.output_tokens) == (10, 3)
    assert kit.ask(call())[0].cost_usd == 20  # what was paid for it when it was made


def test_a_call_given_up_still_tells_what_it_cost(tmp_path):
    in_vain = CallFailed("transient", "no text", maybe_paid=True, raw="{}", input_tokens=5, output_tokens=2)
    kit = Kit(tmp_path, endpoint=Endpoint(in_vain), budget=Ledger())
    assert kit.ask(call())[0].cost_usd == 3 * 7
    kit = Kit(tmp_path, endpoint=Endpoint(CallFailed("final", "401")), budget=Ledger())
    assert kit.ask(call())[0].cost_usd is None


def test_no_money_is_raised_and_a_call_that_waits_for_the_same_answer_is_told_too(tmp_path):
    kit = Kit(tmp_path, endpoint=Endpoint(Reply("fine")), budget=Ledger(most=0))

    async def run(asker):
        return await asyncio.gather(asker.ask(call()), asker.ask(call()), return_exceptions=True)

    assert [type(result) for result in kit.run(run)] == [BudgetReached, BudgetReached]
    assert (kit.limit.in_flight, kit.endpoint.asked) == (0, [])


def test_an_endpoint_with_a_fault_of_its_own_is_an_error_and_raises_nothing(tmp_path):
    kit = Kit(tmp_path, endpoint=Endpoint(ZeroDivisionError("oops")))
    (reply,) = kit.ask(call())
    assert (reply.state, reply.error) == ("error", "ZeroDivisionError: oops")


def test_refusals_cut_the_limit_and_a_pause_holds_everyone(tmp_path):
    clock = SimpleNamespace(now=0.0)

    async def sleep(seconds):
        clock.now += seconds
        await asyncio.sleep(0)

    limit = AdaptiveLimit(8, clock=lambda: clock.now, sleep=sleep)
    endpoint = Endpoint(CallFailed("rate_limit", "429", retry_after_s=30), Reply("fine"))
    Kit(tmp_path, endpoint=endpoint, limit=limit).ask(call())
    # cut from 8 to the least, 4; the reply adds a part of a step
    assert (clock.now, limit.allowed) == (30.0, 4)


def test_an_endpoint_that_asks_for_hours_is_not_waited_for_and_holds_nobody(tmp_path):
    later = CallFailed("rate_limit", "tomorrow", retry_after_s=7200)
    endpoint = Endpoint(later, Reply("fine"))
    kit = Kit(tmp_path, endpoint=endpoint)

    async def run(asker):
        first = await asker.ask(call())
        return first.state, (await asyncio.wait_for(asker.ask(call("other")), 1)).state

    assert kit.run(run) == ("error", "ok")


def test_no_reply_in_time_is_a_sign_of_too_many_calls(tmp_path):
    limit = AdaptiveLimit(8)
    slow = CallFailed("transient", "no reply in time", maybe_paid=True, is_slow=True)
    Kit(tmp_path, endpoint=Endpoint(slow, Reply("fine")), limit=limit).ask(call())
    assert limit.allowed < 8


def test_tokens_a_minute_are_counted_from_the_prompt_and_the_longest_reply(tmp_path):
    taken = []
    limit = AdaptiveLimit(8, tokens_per_minute=10**9)
    limit._correct_tokens = taken.append
    endpoint = Endpoint(Reply("fine", input_tokens=30, output_tokens=4))
    kit = Kit(tmp_path, endpoint=endpoint, limit=limit, max_output_tokens=100)
    kit.ask(call("x" * 80))
    # 80 / 4 + 1 = 21 in, at most 100 out; in the end 30 + 4
    assert taken == [121, 34 - 121]
    assert about_tokens(None, call("x" * 80).messages) == 21


def test_a_call_that_another_process_has_is_waited_for_and_not_made(tmp_path):
    endpoint = Endpoint(Reply("ours"))
    kit = Kit(tmp_path, endpoint=endpoint)
    mine, theirs = call("mine"), call("theirs")

    async def run(asker):
        cache, polls = asker._cache, []
        claim = cache.claim

        def claim_of(key):
            polls.append(key)
            if len(polls) == 3:  # the other process is done: its answer is there, its claim is gone
                CallCache(tmp_path).put(key, Reply("from another process"))
            return claim(key) if len(polls) >= 3 else False

        cache.claim = claim_of
        asker._sleep = lambda seconds: asyncio.sleep(0)
        return await asker.ask(theirs), await asker.ask(mine)

    theirs_reply, mine_reply = kit.run(run)
    assert (theirs_reply.text, theirs_reply.is_from_cache) == ("from another process", True)
    assert (mine_reply.text, len(endpoint.asked)) == ("ours", 1)


def test_a_storm_of_every_fault_leaves_each_call_in_one_state_and_none_is_paid_twice(tmp_path):
    plan = FaultPlan.each(0.04, seed=3, retry_after_s=0.01, slow_s=0.02)
    calls = [call(f"Status: {number}?", shorter=(Message("user", f"{number}"),)) for number in range(100)]
    with LLMServer(faults=plan) as server:
        kit = Kit(tmp_path, server)
        replies = kit.ask(*calls, timeout_s=2.0)  # an answer just late would be paid, and asked for again
        states = Counter(reply.state for reply in replies)
        assert states.total() == 100 and set(states) <= {"ok", "refused", "too_long", "error"}
        assert states["ok"] > 60
        assert server.counts.paid_twice() == {}
        assert set(server.counts.faults) >= set(FAULTS) - {"unsupported_parameter"}
        kept = states["ok"] + states["refused"]
        assert server.counts.answers.total() == kept
        server.chat.faults = FaultPlan()
        before = server.counts.calls
        kit.ask(*calls)
        assert server.counts.calls - before == 100 - kept
        assert server.counts.paid_twice() == {}
    assert kit.limit.in_flight == 0
