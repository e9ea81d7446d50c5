"""The client against a server that shows it every fault, one by one."""

import asyncio
import base64
import contextlib
import json
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.judges.endpoints.event_stream import completion_of_stream
from arb.judges.endpoints.openai_compatible import (
    OpenAIEndpoint,
    encoded,
    message_to_json,
    parse_reply,
    request_body,
)
from arb.judges.endpoints.providers import EndpointAccess
from arb.judges.engine.errors import CallFailed
from arb.judges.types import Image, Message, ModelSettings, Reply, Request, TokenProbability, ToolCall
from tests.support.clocks import patient_time_limits
from tests.support.json_values import ANY_JSON
from tests.support.llm_server.chat import Scripted
from tests.support.llm_server.faults import FAULTS, FaultPlan
from tests.support.llm_server.http import Answer, Connection
from tests.support.llm_server.rate_limits import RateLimitRule
from tests.support.llm_server.server import LLMServer

ASKED = (Message("user", "Was it done?"),)


def body(model=None, unsupported_params=(), **how):
    request = Request(model or ModelSettings("m"), ASKED, 99, frozenset(unsupported_params))
    return request_body(request, **how)


def completion(**changed):
    message = {"role": "assistant", "content": "Status: success"} | changed.pop("message", {})
    choice = {"index": 0, "message": message, "finish_reason": "stop"} | changed.pop("choice", {})
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    return json.dumps({"model": "m-1", "choices": [choice], "usage": usage} | changed)


def test_a_request_has_the_settings_and_nothing_that_was_not_asked_for():
    assert body() == {
        "model": "m",
        "messages": [{"role": "user", "content": "Was it done?"}],
        "max_tokens": 99,
        "temperature": 0.0,
        "seed": 0,
    }
    bare = body(ModelSettings("m", temperature=None, seed=None))
    assert set(bare) == {"model", "messages", "max_tokens"}


def test_the_users_own_fields_come_last_and_may_name_the_longest_reply_themselves():
    model = ModelSettings("m", extra={"max_completion_tokens": 5, "temperature": 1, "top_p": 0.5})
    own = body(model)
    assert (own["max_completion_tokens"], own["temperature"], own["top_p"]) == (5, 1, 0.5)
    assert "max_tokens" not in own


def test_what_to_keep_in_a_prompt_cache_is_said_as_the_provider_wants_it():
    asked = (Message("system", "Judge."), Message("user", "Was it done?"))
    mark = {"cache_control": {"type": "ephemeral"}}

    def sent(provider, what, messages=asked, unsupported_params=frozenset()):
        settings = ModelSettings("m", provider, prompt_cache=what)
        return request_body(Request(settings, messages, 9, unsupported_params))

    marked = sent("openrouter", "system")["messages"]
    assert marked[0]["content"] == [{"type": "text", "text": "Judge.", **mark}]
    assert marked[1]["content"] == "Was it done?"
    whole = sent("openrouter", "prompt")["messages"]
    assert [message["content"][0].get("cache_control") for message in whole] == [mark["cache_control"]] * 2
    other = (asked[0], Message("user", "Another."))
    key = sent("openai", "system")["prompt_cache_key"]
    assert key == sent("openai", "system", other)["prompt_cache_key"]
    assert sent("openai", "prompt")["prompt_cache_key"] != sent("openai", "prompt", other)["prompt_cache_key"]
    learned = sent("openai", "system", unsupported_params={"prompt_cache_key"})
    assert "prompt_cache_key" not in learned
    assert "prompt_cache_key" not in sent("openai", None)


def test_how_long_a_model_shall_think_is_said_where_it_was_asked_for():
    assert body(ModelSettings("m", reasoning_effort="low"))["reasoning_effort"] == "low"
    assert "reasoning_effort" not in body()


def test_pictures_go_as_data_addresses_in_their_place_and_detail_only_where_chosen():
    pictures = [Image(b"ab", "image/png", 1, 1), Image(b"cd", "image/webp", 1, 1, "low")]
    asked = (Message("user", ("first", *pictures, "last")),)
    parts = request_body(Request(ModelSettings("m"), asked, 9))["messages"][0]["content"]
    assert [part.get("text") for part in parts] == ["first", None, None, "last"]
    assert parts[1]["image_url"] == {"url": "data:image/png;base64," + base64.b64encode(b"ab").decode()}
    assert parts[2]["image_url"]["detail"] == "low"


def test_a_reply_is_read_with_all_that_came_with_it():
    logprobs = {
        "content": [
            {
                "token": "success",
                "logprob": -0.1,
                "top_logprobs": [
                    {"token": "success", "logprob": -0.1},
                    {"token": "failure", "logprob": -2.3},
                ],
            }
        ]
    }
    assert parse_reply(completion(choice={"logprobs": logprobs}), 0.5) == Reply(
        text="Status: success",
        finish_reason="stop",
        input_tokens=7,
        output_tokens=3,
        latency_s=0.5,
        model="m-1",
        logprobs=(TokenProbability("success", -0.1, (("failure", -2.3),)),),
    )


def test_text_in_parts_is_one_text_and_its_spaces_stay():
    parts = [{"type": "text", "text": " a"}, {"type": "thinking"}, {"type": "text", "text": "b\n"}]
    assert parse_reply(completion(message={"content": parts})).text == " ab\n"


def test_half_a_character_where_a_reply_was_cut_can_still_be_written():
    raw = completion(message={"content": "fine \U0001f600 \ud83d"})
    assert parse_reply(raw).text == "fine \U0001f600 \ufffd"
    assert parse_reply(completion(message={"content": "C:\\udir"})).text == "C:\\udir"


def test_a_reply_cut_for_its_length_is_a_reply_even_with_no_text_at_all():
    reply = parse_reply(completion(message={"content": None}, choice={"finish_reason": "length"}))
    assert (reply.state, reply.text, reply.finish_reason) == ("ok", None, "length")


@pytest.mark.parametrize(
    "refused",
    [
        {"message": {"content": None}, "choice": {"finish_reason": "content_filter"}},
        {"message": {"content": None, "refusal": "I cannot judge that."}},
        {"message": {"content": "Status: succ"}, "choice": {"finish_reason": "content_filter"}},
    ],
)
def test_refusals_are_recognised_and_their_words_stay(refused):
    reply = parse_reply(completion(**refused))
    assert reply.state == "refused"
    assert (reply.text, reply.refusal) == (refused["message"]["content"], refused["message"].get("refusal"))
    assert reply.output_tokens == 3


@pytest.mark.parametrize(
    ("raw", "counted"),
    [
        (completion(choices=None), (7, 3)),
        (completion(choices=[]), (7, 3)),
        (completion(choices=[None]), (7, 3)),
        (completion(choice={"message": None}), (7, 3)),
        (completion(message={"content": None}), (7, 3)),
        (completion(message={"content": " \n"}), (7, 3)),
        (completion(choices=None, usage={"prompt_tokens": "7"}), (None, None)),
        (completion()[:-20], (None, None)),
        ("", (None, None)),
        ("[1]", (None, None)),
        ("[" * 100_000, (None, None)),
        (completion(error={"message": "the provider broke", "code": "x"}), (7, 3)),
    ],
)
def test_an_answer_without_a_reply_may_go_well_another_time_and_keeps_what_came(raw, counted):
    with pytest.raises(CallFailed) as failed:
        parse_reply(raw)
    failure = failed.value
    assert (failure.kind, failure.maybe_paid, failure.raw) == ("transient", True, raw)
    assert failure.usage[:2] == counted


@pytest.mark.parametrize("code", [429, "rate_limit_exceeded"])
def test_an_error_inside_of_a_good_answer_is_read_by_its_own_status_or_code(code):
    with pytest.raises(CallFailed) as failed:
        parse_reply(json.dumps({"error": {"message": "slower", "code": code}}))
    assert failed.value.kind == "rate_limit"


@given(
    st.sampled_from(["model", "choices", "usage", "error", "choice", "message", "content", "refusal",
                     "finish_reason", "logprobs"]),
    ANY_JSON,
)  # fmt: skip
def test_whatever_an_endpoint_puts_anywhere_there_is_a_reply_or_a_failure(place, value):
    if place in ("content", "refusal"):
        raw = completion(message={place: value})
    elif place in ("finish_reason", "logprobs"):
        raw = completion(choice={place: value})
    elif place == "message":
        raw = completion(choice={"message": value})
    elif place == "choice":
        raw = completion(choices=[value])
    else:
        raw = completion(**{place: value})
    try:
        reply = parse_reply(raw)
    except CallFailed:
        return
    assert reply.state in ("ok", "refused")
    assert reply.text is None or isinstance(reply.text, str)


@pytest.mark.parametrize("text", ["a tree", "é \U0001f600", "half a pair \ud83d", '"quoted" \\ \n'])
def test_a_body_is_sent_as_the_json_that_it_is_whatever_stands_in_a_page(text):
    body = request_body(Request(ModelSettings("m", extra={"top_k": 3}), (Message("user", text),), 16))
    assert json.loads(encoded(body)) == body


CLIENT_ASKED = (Message("user", "Say Status: success or failure."),)
MODEL = ModelSettings("m")


@contextlib.asynccontextmanager
async def open_endpoint(server, key="a-key", timeout_s=30.0):
    endpoint = OpenAIEndpoint(EndpointAccess(server.base_url, key, "max_tokens"), timeout_s)
    try:
        yield endpoint
    finally:
        await endpoint.close()


def attempt(server, model=MODEL, asked=CLIENT_ASKED, unsupported_params=frozenset(), **how):
    async def run():
        async with open_endpoint(server, **how) as endpoint:
            return await endpoint.attempt(Request(model, asked, 50, unsupported_params))

    with patient_time_limits():
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
        "reset_body": ("transient", True),
        "choices_empty": ("transient", True),
        "wrong_type": ("transient", True),
    }
    with LLMServer() as server:
        for fault, (kind, maybe_paid) in expected.items():
            server.chat.faults = FaultPlan({fault: 1.0})
            failure = failure_of(server, timeout_s=0.3 if fault == "timeout" else 30.0)
            assert (fault, failure.kind, failure.maybe_paid) == (fault, kind, maybe_paid)
            assert failure.message
    assert set(FAULTS) - set(expected) == {"length", "content_filter", "slow_stream"}


def test_what_an_answer_says_of_limits_comes_with_the_reply_and_with_the_refusal():
    rule = RateLimitRule(requests=1, clock=lambda: 0.0)
    with LLMServer(rate_limits=rule) as server:
        reply, refused = attempt(server), failure_of(server)
    assert reply.rate_limits.requests == refused.rate_limits.requests == (0, 1, pytest.approx(60, abs=1))
    assert refused.retry_after_s == pytest.approx(60, abs=1)


def test_a_reply_that_breaks_off_is_told_without_the_objects_of_the_http_library():
    with LLMServer(faults=FaultPlan({"cut_body": 1.0})) as server:
        failure = failure_of(server)
    assert failure.message == "the connection was lost before the reply was complete"


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


def test_a_wrong_key_refuses_the_account_and_the_key_is_in_no_message():
    echo = Scripted(None, fault="rate_limit")
    with LLMServer(lambda request: echo, api_key="right") as server:
        failure = failure_of(server, key="wrong")
        assert (failure.kind, "401" in failure.message) == ("account", True)
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
                    await asyncio.gather(
                        *(endpoint.attempt(Request(MODEL, CLIENT_ASKED, 50)) for _ in range(8))
                    )

        asyncio.run(run())
    assert (server.connections, server.counts.calls) == (8, 40)


GOOD = json.dumps({"choices": [{"message": {"content": "fine"}, "finish_reason": "stop"}]}).encode()


def access_of(port, key=None, headers=()):
    return EndpointAccess(f"http://127.0.0.1:{port}/v1/", key, "max_tokens", headers)


def sent(access_of_port=access_of, answers=(), asked=CLIENT_ASKED):
    """The requests of one attempt, which is answered with these answers and then with a good one."""
    requests, left = [], list(answers)

    async def handle(request):
        requests.append(request)
        return left.pop(0) if left else Answer(body=GOOD)

    async def run():
        server = await asyncio.get_running_loop().create_server(lambda: Connection(handle), "127.0.0.1", 0)
        endpoint = OpenAIEndpoint(access_of_port(server.sockets[0].getsockname()[1]), 30.0)
        try:
            assert (await endpoint.attempt(Request(MODEL, asked, 50))).text == "fine"
        finally:
            await endpoint.close()
            server.close()

    asyncio.run(run())
    return requests


def test_key_and_headers_are_sent():
    headers = (("OpenAI-Organization", "org-1"),)
    (request,) = sent(lambda port: access_of(port, "a-key", headers))
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.headers["authorization"] == "Bearer a-key"
    assert request.headers["openai-organization"] == "org-1"
    assert request.headers["content-type"] == request.headers["accept"] == "application/json"


def test_a_name_and_a_password_in_the_address_are_sent_in_the_keys_place():
    (request,) = sent(lambda port: EndpointAccess(f"http://me:pass@127.0.0.1:{port}/v1", None, "max_tokens"))
    assert request.headers["authorization"] == "Basic bWU6cGFzcw=="  # me:pass


def test_a_proxy_of_the_environment_is_used_but_for_hosts_that_need_none(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    def through_a_proxy(port):
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
        return EndpointAccess("http://far.example/v1", None, "max_tokens")

    (request,) = sent(through_a_proxy)
    assert request.path == "http://far.example/v1/chat/completions"
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    (request,) = sent()
    assert request.path == "/v1/chat/completions"


def test_a_call_that_is_sent_elsewhere_goes_there_whole():
    moved = Answer(status=307, headers={"location": "/v2/chat/completions"})
    first, second = sent(lambda port: access_of(port, "a-key"), [moved])
    assert second.path == "/v2/chat/completions"
    assert first.body == second.body and json.loads(second.body)["model"] == "m"
    assert second.headers["authorization"] == "Bearer a-key"


def test_a_long_prompt_arrives_whole_and_without_a_warning():
    asked = (Message("user", "word " * 400_000),)  # 2 MB
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (request,) = sent(asked=asked)
    assert json.loads(request.body)["messages"] == [{"role": "user", "content": "word " * 400_000}]


def test_an_answer_that_is_no_http_may_have_been_paid():
    with pytest.raises(CallFailed) as failed:
        sent(answers=[Answer(body=GOOD, headers={"bad header": "x"})])
    assert (failed.value.kind, failed.value.maybe_paid) == ("transient", True)


def with_calls(*calls, content=None) -> str:
    """A response whose message calls tools."""
    message = {"role": "assistant", "content": content, "tool_calls": list(calls)}
    return json.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}]})


def test_calls_of_tools_are_read_and_unreadable_ones_are_left_out():
    good = {"id": "a", "type": "function", "function": {"name": "search", "arguments": '{"text": "x"}'}}
    nameless = {"id": "b", "function": {"arguments": "{}"}}
    parsed = {"function": {"name": "diff", "arguments": {"a": 1}}}  # some servers send an object, and no id
    reply = parse_reply(with_calls(good, nameless, "call", {"function": None}, parsed))
    assert reply.tool_calls == (
        ToolCall("a", "search", '{"text": "x"}'),
        ToolCall("call_1", "diff", '{"a": 1}'),
    )
    assert (reply.state, reply.text, reply.finish_reason) == ("ok", None, "tool_calls")


def test_a_conversation_with_tools_is_sent_back_as_it_was_with_valid_arguments():
    calls = (ToolCall("a", "search", '{"text": "x"}'), ToolCall("b", "diff", '{"a": '))
    assert message_to_json(Message("assistant", "", calls)) == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "search", "arguments": '{"text": "x"}'}},
            {"id": "b", "type": "function", "function": {"name": "diff", "arguments": "{}"}},
        ],
    }
    assert message_to_json(Message("tool", "found", tool_call_id="a")) == {
        "role": "tool",
        "content": "found",
        "tool_call_id": "a",
    }


def test_a_call_of_a_tool_that_comes_in_pieces_of_a_stream_is_joined():
    pieces = [
        {"index": 0, "id": "a", "function": {"name": "search", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"text"'}},
        {"index": 1, "id": "b", "function": {"name": "diff", "arguments": "{}"}},
        {"index": 0, "function": {"arguments": ': "x"}'}},
    ]
    chunks = [{"choices": [{"index": 0, "delta": {"tool_calls": [piece]}}]} for piece in pieces]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    stream = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    calls = parse_reply(completion_of_stream(stream)).tool_calls
    assert calls == (ToolCall("a", "search", '{"text": "x"}'), ToolCall("b", "diff", "{}"))
