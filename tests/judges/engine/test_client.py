"""The client against a server that shows it every fault, one by one."""

import asyncio
import contextlib
import json
import warnings

import pytest

from judges.base import Message, ModelSettings
from judges.engine.client import OpenAIEndpoint
from judges.engine.errors import CallFailed
from judges.engine.providers import Access
from tests.llm_server import FAULTS, FaultPlan, LLMServer, Scripted
from tests.llm_server.http import Answer, Connection

ASKED = (Message("user", "Say Status: success or failure."),)
MODEL = ModelSettings("m")


@contextlib.asynccontextmanager
async def open_endpoint(server, key="a-key", timeout_s=30.0):
    endpoint = OpenAIEndpoint(Access(server.base_url, key, "max_tokens"), timeout_s)
    try:
        yield endpoint
    finally:
        await endpoint.close()


def attempt(server, model=MODEL, asked=ASKED, unsupported_params=frozenset(), **how):
    async def run():
        async with open_endpoint(server, **how) as endpoint:
            return await endpoint.attempt(model, asked, 50, unsupported_params=unsupported_params)

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
        assert attempt(server, unsupported_params={"seed"}).state == "ok"


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


GOOD = json.dumps({"choices": [{"message": {"content": "fine"}, "finish_reason": "stop"}]}).encode()


def sent(access_of_port, answers=(), asked=ASKED):
    """The requests of one attempt, which is answered with these answers and then with a good one."""
    requests, left = [], list(answers)

    async def handle(request):
        requests.append(request)
        return left.pop(0) if left else Answer(body=GOOD)

    async def run():
        server = await asyncio.get_running_loop().create_server(lambda: Connection(handle), "127.0.0.1", 0)
        endpoint = OpenAIEndpoint(access_of_port(server.sockets[0].getsockname()[1]), 30.0)
        try:
            assert (await endpoint.attempt(MODEL, asked, 50)).text == "fine"
        finally:
            await endpoint.close()
            server.close()

    asyncio.run(run())
    return requests


def test_key_and_headers_are_sent():
    headers = (("OpenAI-Organization", "org-1"),)
    (request,) = sent(lambda port: Access(f"http://127.0.0.1:{port}/v1/", "a-key", "max_tokens", headers))
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.headers["authorization"] == "Bearer a-key"
    assert request.headers["openai-organization"] == "org-1"
    assert request.headers["content-type"] == request.headers["accept"] == "application/json"


def test_a_name_and_a_password_in_the_address_are_sent_in_the_keys_place():
    (request,) = sent(lambda port: Access(f"http://me:pass@127.0.0.1:{port}/v1", None, "max_tokens"))
    assert request.headers["authorization"] == "Basic bWU6cGFzcw=="  # me:pass


def test_a_proxy_of_the_environment_is_used_but_for_hosts_that_need_none(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    def through_a_proxy(port):
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
        return Access("http://far.example/v1", None, "max_tokens")

    (request,) = sent(through_a_proxy)
    assert request.path == "http://far.example/v1/chat/completions"
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    (request,) = sent(lambda port: Access(f"http://127.0.0.1:{port}/v1", None, "max_tokens"))
    assert request.path == "/v1/chat/completions"


def test_a_call_that_is_sent_elsewhere_goes_there_whole():
    moved = Answer(status=307, headers={"location": "/v2/chat/completions"})
    first, second = sent(lambda port: Access(f"http://127.0.0.1:{port}/v1", "a-key", "max_tokens"), [moved])
    assert second.path == "/v2/chat/completions"
    assert first.body == second.body and json.loads(second.body)["model"] == "m"
    assert second.headers["authorization"] == "Bearer a-key"


def test_a_long_prompt_arrives_whole_and_without_a_warning():
    asked = (Message("user", "word " * 400_000),)  # 2 MB
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (request,) = sent(lambda port: Access(f"http://127.0.0.1:{port}/v1", None, "max_tokens"), asked=asked)
    assert json.loads(request.body)["messages"] == [{"role": "user", "content": "word " * 400_000}]


def test_an_answer_that_is_no_http_may_have_been_paid():
    with pytest.raises(CallFailed) as failed:
        sent(
            lambda port: Access(f"http://127.0.0.1:{port}/v1", None, "max_tokens"),
            [Answer(body=GOOD, headers={"bad header": "x"})],
        )
    assert (failed.value.kind, failed.value.maybe_paid) == ("transient", True)
