"""The client against a server that shows it every fault, one by one."""

import asyncio
import contextlib

import pytest

from judges.base import Message, ModelSettings
from judges.engine.client import OpenAIEndpoint
from judges.engine.errors import CallFailed
from judges.engine.providers import Access
from tests.llm_server import FAULTS, FaultPlan, LLMServer, Scripted

ASKED = (Message("user", "Say Status: success or failure."),)
MODEL = ModelSettings("m")


@contextlib.asynccontextmanager
async def open_endpoint(server, key="a-key", timeout_s=30.0):
    endpoint = OpenAIEndpoint(Access(server.base_url, key, "max_tokens"), timeout_s)
    try:
        yield endpoint
    finally:
        await endpoint.close()


def attempt(server, model=MODEL, asked=ASKED, dropped=frozenset(), **how):
    async def run():
        async with open_endpoint(server, **how) as endpoint:
            return await endpoint.attempt(model, asked, 50, dropped=dropped)

    return asyncio.run(run())


def failure_of(server, **how):
    with pytest.raises(CallFailed) as failed:
        attempt(server, **how)
    return failed.value


def test_a_reply_comes_with_its_tokens_latency_and_model():
    with LLMServer(lambda request: "Status: success", latency_s=0.02) as server:
        reply = attempt(server)
    # by the server's rule: 3 + 3 + 31 bytes / 4 = 14 in, 15 bytes / 4 = 4 out
    assert (reply.text, reply.input_tokens, reply.output_tokens) == ("Status: success", 14, 4)
    assert (reply.state, reply.finish_reason, reply.model) == ("ok", "stop", "m")
    assert reply.latency_s >= 0.02


def test_every_fault_of_the_server_is_known_for_what_it_is():
    expected = {
        "rate_limit": ("rate_limit", False),
        "rate_limit_retry_after": ("rate_limit", False),
        "server_error": ("transient", False),
        "overload": ("rate_limit", False),
        "timeout": ("transient", True),
        "reset": ("transient", True),
        "cut_body": ("transient", True),
        "too_long": ("too_long", False),
        "unsupported_parameter": ("unsupported_parameter", False),
        "choices_null": ("transient", True),
        "content_null": ("transient", True),
        "cut_json": ("transient", True),
    }
    with LLMServer() as server:
        for fault, (kind, maybe_paid) in expected.items():
            server.chat.faults = FaultPlan({fault: 1.0})
            failure = failure_of(server, timeout_s=0.3 if fault == "timeout" else 30.0)
            assert (fault, failure.kind, failure.maybe_paid) == (fault, kind, maybe_paid)
            assert failure.message
    assert set(FAULTS) - set(expected) == {"length", "content_filter", "slow_stream"}


def test_retry_after_and_the_unknown_parameter_are_told():
    with LLMServer(faults=FaultPlan({"rate_limit_retry_after": 1.0}, retry_after_s=1.5)) as server:
        assert failure_of(server).retry_after_s == 1.5
    with LLMServer(unsupported={"seed"}) as server:
        assert failure_of(server).parameter == "seed"
        assert attempt(server, dropped={"seed"}).state == "ok"


def test_what_came_of_a_cut_answer_is_kept():
    with LLMServer(lambda request: "Status: success", faults=FaultPlan({"cut_json": 1.0})) as server:
        failure = failure_of(server)
    assert failure.raw.startswith('{"id":"chatcmpl-')


def test_faults_that_are_replies_are_replies():
    with LLMServer(lambda request: "Status: success") as server:
        server.chat.faults = FaultPlan({"length": 1.0})
        cut = attempt(server)
        assert (cut.state, cut.text, cut.finish_reason) == ("ok", "Status:", "length")
        server.chat.faults = FaultPlan({"content_filter": 1.0})
        assert attempt(server).state == "refused"
        server.chat.faults = FaultPlan({"slow_stream": 1.0}, slow_s=0.05)
        assert attempt(server).text == "Status: success"


def test_a_reply_that_drips_for_ever_ends_with_the_time_of_the_whole_call():
    # ten pieces, 0.2 s apart: each comes in time for a timeout that starts again with every byte
    with LLMServer(faults=FaultPlan({"slow_stream": 1.0}, slow_s=2.0)) as server:
        failure = failure_of(server, timeout_s=0.5)
    assert (failure.kind, failure.is_slow, failure.maybe_paid) == ("transient", True, True)


def test_a_server_that_is_not_there_was_never_paid():
    with LLMServer() as server:
        pass
    gone = type("Gone", (), {"base_url": f"http://127.0.0.1:{1}/v1"})
    failure = failure_of(gone)
    assert (failure.kind, failure.maybe_paid) == ("transient", False)
    assert server.counts.calls == 0


def test_a_wrong_key_is_final_and_the_key_is_in_no_message():
    echo = Scripted(None, fault="rate_limit")
    with LLMServer(lambda request: echo, api_key="right") as server:
        failure = failure_of(server, key="wrong")
        assert (failure.kind, "401" in failure.message) == ("final", True)
    with LLMServer(unsupported={"a-key"}) as server:
        model = ModelSettings("m", extra={"a-key": 1})  # the server names it in its message
        failure = failure_of(server, model=model)
    assert "a-key" not in failure.message and "[key]" in failure.message


def test_a_key_that_no_header_can_hold_fails_and_raises_nothing_else():
    with LLMServer() as server:
        assert failure_of(server, key="line\nbreak").kind in ("final", "transient")


def test_connections_are_reused():
    with LLMServer() as server:

        async def run():
            async with open_endpoint(server) as endpoint:
                for _ in range(5):
                    await asyncio.gather(*(endpoint.attempt(MODEL, ASKED, 50) for _ in range(8)))

        asyncio.run(run())
    assert (server.connections, server.counts.calls) == (8, 40)


def test_the_client_itself_never_tries_again():
    with LLMServer(faults=FaultPlan({"server_error": 1.0})) as server:
        failure_of(server)
        assert server.counts.calls == 1
