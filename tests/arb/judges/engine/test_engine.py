"""Executing calls: the cache, calls shared in flight and with other processes, and being stopped."""

import asyncio
from collections import Counter

import pytest

from arb.judges.engine.budget import BudgetReached
from arb.judges.engine.cache import CallCache
from arb.judges.engine.errors import CallFailed
from arb.judges.run.runner import open_endpoints
from arb.judges.types import Message, ModelSettings, Reply
from tests.support.call_executor import Endpoint, Kit, RecordingBudget, call, lines
from tests.support.llm_server.faults import FAULTS, FaultPlan
from tests.support.llm_server.server import LLMServer


def test_roles_at_one_address_share_an_endpoint_and_all_are_closed():
    here = ModelSettings("a", provider="any", base_url="http://127.0.0.1:1/v1")
    models = {
        "judge": here,
        "captioner": ModelSettings("b", provider="any", base_url=here.base_url),
        "strong.judge": ModelSettings("a", provider="any", base_url="http://127.0.0.1:2/v1"),
    }

    async def run():
        async with open_endpoints(models, {}) as endpoints:
            assert endpoints.keys() == models.keys()
            assert endpoints["judge"] is endpoints["captioner"]
            assert endpoints["judge"] is not endpoints["strong.judge"]
        return endpoints

    assert all(each._session.closed for each in asyncio.run(run()).values())


def test_a_failure_is_never_an_answer(tmp_path):
    with LLMServer(faults=FaultPlan({"server_error": 1.0}, at_most=8)) as server:
        kit = Kit(tmp_path, server)
        assert kit.ask(call())[0].state == "error"
        again = kit.ask(call())[0]
        assert (again.state, again.is_from_cache, server.counts.calls) == ("ok", False, 9)


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

    async def run(executor):
        first, second = (asyncio.create_task(executor.ask(call())) for _ in range(2))
        await endpoint.begun.wait()
        first.cancel()
        return await second

    assert kit.run(run).text == "second"


def test_who_waits_and_is_stopped_stops_nobody_else(tmp_path):
    release = asyncio.Event()
    kit = Kit(tmp_path, endpoint=Endpoint(release))

    async def run(executor):
        first, second = (asyncio.create_task(executor.ask(call())) for _ in range(2))
        await asyncio.sleep(0.01)
        second.cancel()
        await asyncio.sleep(0)
        release.set()
        return await first

    assert kit.run(run).text == "waited"


def test_a_call_that_is_stopped_leaves_limit_budget_and_cache_whole(tmp_path):
    kit = Kit(tmp_path, endpoint=Endpoint(asyncio.Event()), budget=RecordingBudget())

    async def run(executor):
        task = asyncio.create_task(executor.ask(call()))
        await kit.endpoint.begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    kit.run(run)
    assert (kit.limit.in_flight, kit.budget.open) == (0, 0)
    assert kit.budget.settled == [(False, True)]  # it may have been paid
    assert '"kind":"cancelled"' in lines(tmp_path) and '"answer"' not in lines(tmp_path)
    kit.endpoint = Endpoint(Reply("ok"))
    assert kit.ask(call())[0].text == "ok"


def test_no_money_is_raised_and_reaches_a_call_that_waits_for_the_same_answer(tmp_path):
    kit = Kit(tmp_path, endpoint=Endpoint(Reply("fine")), budget=RecordingBudget(most=0))

    async def run(executor):
        return await asyncio.gather(executor.ask(call()), executor.ask(call()), return_exceptions=True)

    assert [type(result) for result in kit.run(run)] == [BudgetReached, BudgetReached]
    assert (kit.limit.in_flight, kit.endpoint.asked) == (0, [])


def test_a_call_that_another_process_has_is_waited_for_and_not_made(tmp_path):
    endpoint = Endpoint(Reply("ours"))
    kit = Kit(tmp_path, endpoint=endpoint)
    mine, theirs = call("mine"), call("theirs")

    async def run(executor):
        cache, polls = executor._cache, []
        claim = cache.claim

        def claim_of(key):
            polls.append(key)
            if len(polls) == 3:  # the other process is done: its answer is there, its claim is gone
                CallCache(tmp_path).put(key, Reply("from another process"))
            return claim(key) if len(polls) >= 3 else False

        cache.claim = claim_of
        executor._sleep = lambda seconds: asyncio.sleep(0)
        return await executor.ask(theirs), await executor.ask(mine)

    theirs_reply, mine_reply = kit.run(run)
    assert (theirs_reply.text, theirs_reply.is_from_cache) == ("from another process", True)
    assert (mine_reply.text, len(endpoint.asked)) == ("ours", 1)


@pytest.mark.slow
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
