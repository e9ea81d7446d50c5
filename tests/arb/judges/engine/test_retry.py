"""One call, try after try: faults, shorter prompts, unknown parameters, limit and money."""

import asyncio

import pytest

from arb.judges.engine.concurrency import AdaptiveLimit
from arb.judges.engine.errors import CallFailed
from arb.judges.engine.retry import RetryState
from arb.judges.types import Message, ModelSettings, Reply, Usage
from tests.support.call_executor import Endpoint, Kit, RecordingBudget, call, lines
from tests.support.llm_server.faults import FaultPlan
from tests.support.llm_server.server import LLMServer

TRANSIENT = CallFailed("transient", "500")
IN_VAIN = CallFailed("transient", "cut", maybe_paid=True, raw="{")
SLOW = CallFailed("transient", "no reply in time", maybe_paid=True, is_slow=True)
RATE_LIMIT = CallFailed("rate_limit", "429")
MIXED = [TRANSIENT, RATE_LIMIT, IN_VAIN] * 2 + [TRANSIENT, RATE_LIMIT]


def waits(*failures, draw=1.0):
    state = RetryState(lambda: draw)
    return [state.wait_s(failure) for failure in failures]


@pytest.mark.parametrize(
    ("failures", "draw", "expected"),
    [
        # doubled, and none after the last try
        ([TRANSIENT] * 8, 1.0, [0.5, 1, 2, 4, 8, 16, 32, None]),
        # drawn from the second half of their length
        ([TRANSIENT], 0.0, [0.25]),
        ([TRANSIENT], 0.5, [0.375]),
        # every kind has attempts and waits of its own
        (MIXED, 1.0, [0.5, 0.5, 0.5, 1, 1, 1, 2, 2]),
        # where a wait is asked for all wait, and this one no longer
        ([CallFailed("rate_limit", "429", retry_after_s=30)], 1.0, [0.0]),
        # after refusals a call waits by itself no longer than some seconds
        ([RATE_LIMIT] * 7, 1.0, [0.5, 1, 2, 4, 8, 8, 8]),
    ],
)
def test_how_long_a_call_waits_follows_from_its_failures(failures, draw, expected):
    assert waits(*failures, draw=draw) == expected


def test_what_was_paid_in_vain_is_tried_less_often_and_what_costs_nothing_more_often():
    assert waits(*[IN_VAIN] * 3)[-1] is None
    assert waits(*[SLOW] * 3)[-1] is None
    assert None not in waits(*[TRANSIENT] * 7)
    assert None not in waits(*[RATE_LIMIT] * 100)


@pytest.mark.parametrize("kind", ["final", "too_long", "refused", "unsupported_parameter"])
def test_other_failures_are_not_tried_again(kind):
    assert waits(CallFailed(kind, "no")) == [None]


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
    ("fault", "calls"), [("server_error", 8), ("cut_json", 3), ("choices_null", 3), ("content_null", 3)]
)
def test_a_permanent_fault_ends_in_an_error_after_so_many_attempts(tmp_path, fault, calls):
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

        async def one_after_the_other(executor):
            return [(await executor.ask(call(f"Status: {number}"))).state for number in range(3)]

        kit.environment = {"K": "a-key"}
        assert kit.run(one_after_the_other) == ["ok"] * 3
        assert [used in body for body in server.chat.bodies] == [False, True, True, True]
        assert server.counts.answers.total() == 3
        assert kit.executor.unsupported_params == {"judge": [unknown]}


def test_every_parameter_that_is_not_known_is_left_out_in_turn_and_for_all_roles(tmp_path):
    with LLMServer(unsupported={"temperature", "seed", "logprobs"}) as server:
        kit = Kit(tmp_path, server, logprobs=True)
        kit.models["captioner"] = kit.models["judge"]

        async def one_after_the_other(executor):
            first = await executor.ask(call())
            return first, await executor.ask(call("Status: caption?", role="captioner"))

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


def test_money_is_set_aside_for_every_attempt_and_the_reply_has_what_failed_ones_cost(tmp_path):
    tries = [
        CallFailed("transient", "no text", maybe_paid=True, raw="{}", usage=Usage(5, 2)),
        CallFailed("transient", "no answer", maybe_paid=True),
        CallFailed("rate_limit", "429"),
        Reply("fine", input_tokens=10, output_tokens=3),
    ]
    kit = Kit(tmp_path, endpoint=Endpoint(*tries), budget=RecordingBudget())
    (reply,) = kit.ask(call())
    assert kit.budget.settled == [(True, True), (False, True), (False, False), (True, False)]
    assert reply.cost_usd == (5 + 2) + (10 + 3)
    assert (reply.input_tokens, reply.output_tokens) == (10, 3)
    assert kit.ask(call())[0].cost_usd == 20  # what was paid for it when it was made


def test_a_call_given_up_still_has_its_cost(tmp_path):
    unusable = CallFailed("transient", "no text", maybe_paid=True, raw="{}", usage=Usage(5, 2))
    kit = Kit(tmp_path, endpoint=Endpoint(unusable), budget=RecordingBudget())
    assert kit.ask(call())[0].cost_usd == 3 * 7
    kit = Kit(tmp_path, endpoint=Endpoint(CallFailed("final", "401")), budget=RecordingBudget())
    assert kit.ask(call())[0].cost_usd is None


def test_an_endpoint_with_a_fault_of_its_own_is_an_error_and_raises_nothing(tmp_path):
    kit = Kit(tmp_path, endpoint=Endpoint(ZeroDivisionError("oops")))
    (reply,) = kit.ask(call())
    assert (reply.state, reply.error) == ("error", "ZeroDivisionError: oops")


def test_a_call_that_sleeps_between_attempts_ends_at_once_when_the_run_does(tmp_path):
    kit = Kit(tmp_path, endpoint=Endpoint(TRANSIENT))
    sleeping = asyncio.Event()

    async def sleep(seconds):
        sleeping.set()
        await asyncio.Event().wait()  # for ever

    async def ask(executor):
        asked = asyncio.ensure_future(executor.ask(call()))
        await sleeping.wait()
        executor.stop_waiting(RuntimeError("the run has ended"))
        await asyncio.wait_for(asked, 30)

    kit.how["sleep"] = sleep
    with pytest.raises(RuntimeError, match="the run has ended"):
        kit.run(ask)
    assert len(kit.endpoint.asked) == 1


def test_no_reply_in_time_is_a_sign_of_too_many_calls(tmp_path):
    limit = AdaptiveLimit(8)
    slow = CallFailed("transient", "no reply in time", maybe_paid=True, is_slow=True)
    Kit(tmp_path, endpoint=Endpoint(slow, Reply("fine")), limit=limit).ask(call())
    assert limit.allowed < 8


def test_tokens_a_minute_are_counted_from_the_prompt_and_the_longest_reply(tmp_path):
    taken = []
    limit = AdaptiveLimit(8, tokens_per_minute=10**9)
    limit._own.tokens.take = taken.append
    endpoint = Endpoint(Reply("fine", input_tokens=30, output_tokens=4))
    kit = Kit(tmp_path, endpoint=endpoint, limit=limit, max_output_tokens=100)
    kit.ask(call("x" * 80))
    # (96 + 16 + 81) / 4 = 48 in, at most 100 out; in the end 30 + 4
    assert taken == [148, 34 - 148]
