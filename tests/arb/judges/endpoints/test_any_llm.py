"""Providers with wire protocols of their own, by the real library, against a server that speaks them."""

import asyncio
import base64
import json

import pytest
from typer.testing import CliRunner

from arb.judges.__main__ import app
from arb.judges.endpoints.providers import resolve_access
from arb.judges.engine.errors import CallFailed
from arb.judges.registry import find_judge
from arb.judges.run.folder import read_judgments
from arb.judges.types import Message, ModelSettings, OptionsError, RateLimits, Request, Tool
from tests.support import provider_server as wire
from tests.support.call_executor import Kit, call
from tests.support.clocks import patient_time_limits
from tests.support.judges import image
from tests.support.llm_server.http import Answer
from tests.support.provider_server import ProviderServer, as_json, require_clients

MODELS = {
    "anthropic": "claude-x",
    "gemini": "gemini-2.5-flash",
    "bedrock": "anthropic.claude-x-v1:0",
    "openai-responses": "gpt-x",
}
KEYS = {
    "ANTHROPIC_API_KEY": "secret-1",
    "GEMINI_API_KEY": "secret-2",
    # Of Bedrock: botocore sends a bearer token over HTTPS only, so the tests sign as with any AWS service.
    "AWS_ACCESS_KEY_ID": "known-3",
    "AWS_SECRET_ACCESS_KEY": "secret-3",
    "OPENAI_API_KEY": "secret-4",
}
QUESTION = (Message("system", "Judge."), Message("user", ("Look.", image(3), "Answer.")))
ALL = pytest.mark.parametrize("provider", MODELS)


@pytest.fixture(scope="module", autouse=True)
def _library():
    require_clients("boto3", "google.genai")


@pytest.fixture(autouse=True)
def _no_other_keys(monkeypatch):
    for name in ("AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (*KEYS.items(), ("AWS_REGION", "eu-west-3")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def settings(provider: str, server: ProviderServer, **more) -> ModelSettings:
    return ModelSettings(MODELS[provider], provider=provider, base_url=server.base_url, **more)


def attempt(model: ModelSettings, question=QUESTION, without=("seed",), timeout_s=20.0):
    from arb.judges.endpoints.any_llm import AnyLLMEndpoint

    async def run():
        endpoint = AnyLLMEndpoint(resolve_access({"judge": model}, KEYS)["judge"], timeout_s)
        try:
            return await endpoint.attempt(Request(model, question, 50, frozenset(without)))
        finally:
            await endpoint.close()

    with patient_time_limits():
        return asyncio.run(run())


def failure(provider: str, *answers: Answer, **how) -> CallFailed:
    with ProviderServer(*answers) as server, pytest.raises(CallFailed) as caught:
        attempt(settings(provider, server), **how)
    return caught.value


@ALL
def test_a_reply_has_its_text_and_its_tokens_with_those_of_the_cache_and_of_thoughts(provider):
    with ProviderServer("fine\n<success>Successful</success>") as server:
        reply = attempt(settings(provider, server))
    assert (reply.text, reply.state) == ("fine\n<success>Successful</success>", "ok")
    assert reply.finish_reason == "stop"
    assert (reply.input_tokens, reply.cached_input_tokens, reply.output_tokens) == (120, 100, 9)
    # Anthropic and Bedrock count thoughts within the output and do not tell them apart.
    assert reply.reasoning_tokens == (4 if provider in ("gemini", "openai-responses") else None)
    assert reply.latency_s > 0


@ALL
def test_text_picture_limit_and_key_are_sent_as_the_protocol_has_them(provider):
    with ProviderServer() as server:
        attempt(settings(provider, server))
        (request,), (body,) = server.requests, server.bodies
    picture = base64.b64encode(image(3).content).decode()
    texts = [{"text": "Look."}, {"text": "Answer."}]
    if provider == "anthropic":
        assert request.headers["x-api-key"] == "secret-1"
        assert (body["system"], body["max_tokens"], body["temperature"]) == ("Judge.", 50, 0.0)
        source = {"type": "base64", "media_type": "image/png", "data": picture}
        seen, shown, last = body["messages"][0]["content"]
        assert [seen, last] == [{"type": "text", **text} for text in texts]
        assert shown == {"type": "image", "source": source}
    elif provider == "gemini":
        assert request.headers["x-goog-api-key"] == "secret-2"
        assert body["generationConfig"] == {"temperature": 0.0, "maxOutputTokens": 50}
        seen, shown, last = body["contents"][0]["parts"]
        assert [seen, last] == texts and shown["inlineData"]["data"] == picture
    elif provider == "bedrock":
        assert "Credential=known-3/" in request.headers["authorization"]
        assert "/eu-west-3/bedrock/" in request.headers["authorization"]
        assert request.path == "/model/anthropic.claude-x-v1%3A0/converse"
        assert body["inferenceConfig"] == {"maxTokens": 50, "temperature": 0.0}
        seen, shown, last = body["messages"][0]["content"]
        assert [seen, last] == texts
        assert shown == {"image": {"format": "png", "source": {"bytes": picture}}}
    else:
        assert request.headers["authorization"] == "Bearer secret-4"
        assert (body["max_output_tokens"], body["store"]) == (50, False)
        kinds = [part["type"] for part in body["input"][1]["content"]]
        assert kinds == ["input_text", "input_image", "input_text"]
        assert body["input"][1]["content"][1]["image_url"] == f"data:image/png;base64,{picture}"


@ALL
def test_half_a_character_of_a_page_is_sent_as_the_sign_for_one(provider):
    question = (Message("system", "Judge."), Message("user", ("A page: \ud83d!", image(3))))
    with ProviderServer() as server:
        assert attempt(settings(provider, server), question).state == "ok"
        assert "A page: \ufffd!" in json.dumps(server.bodies[0], ensure_ascii=False)


@pytest.mark.parametrize("provider", ["anthropic", "openai-responses"])
def test_the_limits_that_an_answer_names_steer_the_pace(provider):
    with ProviderServer() as server:
        limits = attempt(settings(provider, server)).rate_limits
    assert limits == RateLimits(requests=(7, None, None))


REFUSED = {
    "anthropic": wire.anthropic_message(None, "refusal"),
    "gemini": wire.gemini_content(None, "SAFETY"),
    "bedrock": wire.converse_output("I", "guardrail_intervened"),
    "openai-responses": wire.openai_response(None, refusal="I will not."),
}
CUT_OFF = {
    "anthropic": wire.anthropic_message("half", "max_tokens"),
    "gemini": wire.gemini_content("half", "MAX_TOKENS"),
    "bedrock": wire.converse_output("half", "max_tokens"),
    "openai-responses": wire.openai_response("half", "max_output_tokens"),
}


@ALL
def test_a_refusal_and_a_reply_that_was_cut_off_are_told_apart(provider):
    with ProviderServer(as_json(REFUSED[provider]), as_json(CUT_OFF[provider])) as server:
        assert attempt(settings(provider, server)).state == "refused"
        cut = attempt(settings(provider, server))
    assert (cut.state, cut.text, cut.finish_reason) == ("ok", "half", "length")


def anthropic(kind: str, message: str) -> dict:
    return {"type": "error", "error": {"type": kind, "message": message}}


def google(status: str, message: str, code: int, *details) -> dict:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


def openai(code: str | None, message: str, param: str | None = None) -> dict:
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


BAD_REQUEST = "invalid_request_error"
DELAY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "26s"}
AWS = "x-amzn-errortype"
ERRORS = [
    ("anthropic", 429, anthropic("rate_limit_error", "slow"), {"retry-after": "7"}, "rate_limit", 7.0),
    ("anthropic", 529, anthropic("overloaded_error", "Overloaded"), {}, "rate_limit", None),
    ("anthropic", 401, anthropic("authentication_error", "invalid x-api-key"), {}, "account", None),
    ("anthropic", 400, anthropic(BAD_REQUEST, "Your credit balance is too low"), {}, "account", None),
    ("anthropic", 400, anthropic(BAD_REQUEST, "prompt is too long: 9 > 8"), {}, "too_long", None),
    ("anthropic", 500, anthropic("api_error", "Internal server error"), {}, "transient", None),
    ("gemini", 429, google("RESOURCE_EXHAUSTED", "Quota", 429, DELAY), {}, "rate_limit", 26.0),
    ("gemini", 400, google("INVALID_ARGUMENT", "API key not valid.", 400), {}, "final", None),
    ("gemini", 400, google("INVALID_ARGUMENT", "The input token count exceeds", 400), {}, "too_long", None),
    ("gemini", 503, google("UNAVAILABLE", "The model is overloaded.", 503), {}, "rate_limit", None),
    ("bedrock", 429, {"message": "Too many"}, {AWS: "ThrottlingException"}, "rate_limit", None),
    ("bedrock", 403, {"message": "The token is invalid"}, {AWS: "AccessDeniedException"}, "final", None),
    ("bedrock", 403, {"message": "It has expired"}, {AWS: "ExpiredTokenException"}, "account", None),
    ("bedrock", 400, {"message": "Input is too long."}, {AWS: "ValidationException"}, "too_long", None),
    ("bedrock", 500, {"message": "?"}, {AWS: "InternalServerException"}, "transient", None),
    (
        "openai-responses",
        429,
        openai("rate_limit_exceeded", "x"),
        {"retry-after-ms": "90"},
        "rate_limit",
        0.09,
    ),
    ("openai-responses", 429, openai("insufficient_quota", "no money"), {}, "account", None),
    ("openai-responses", 400, openai("context_length_exceeded", "too long"), {}, "too_long", None),
    ("openai-responses", 400, openai("content_filter", "filtered"), {}, "refused", None),
]


@pytest.mark.parametrize(("provider", "status", "body", "headers", "kind", "retry_after_s"), ERRORS)
def test_an_error_is_of_the_kind_that_the_provider_means(
    provider, status, body, headers, kind, retry_after_s
):
    failed = failure(provider, as_json(body, status, headers))
    assert (failed.kind, failed.retry_after_s) == (kind, retry_after_s)
    assert failed.message.startswith(f"{status}: ")


UNSUPPORTED = [
    ("anthropic", anthropic(BAD_REQUEST, "`temperature` is deprecated for this model."), "temperature"),
    (
        "anthropic",
        anthropic(BAD_REQUEST, "`temperature` may only be set to 1 when thinking is enabled"),
        "temperature",
    ),
    (
        "openai-responses",
        openai(None, "Unsupported parameter: 'temperature' is not supported", "temperature"),
        "temperature",
    ),
    ("gemini", google("INVALID_ARGUMENT", "seed is not supported for this model", 400), "seed"),
]


@pytest.mark.parametrize(("provider", "body", "parameter"), UNSUPPORTED)
def test_a_parameter_that_a_provider_refuses_is_named(provider, body, parameter):
    failed = failure(provider, as_json(body, 400))
    assert (failed.kind, failed.parameter) == ("unsupported_parameter", parameter)


def test_how_long_a_model_shall_think_is_not_left_out_behind_the_users_back():
    body = openai("unsupported_parameter", "'reasoning.effort' is not supported", "reasoning.effort")
    assert failure("openai-responses", as_json(body, 400)).kind == "final"


@pytest.mark.parametrize("delivery", ["reset", "cut"])
@ALL
def test_a_connection_that_breaks_may_go_well_another_time(provider, delivery):
    answer = Answer(200, json.dumps(CUT_OFF[provider]).encode(), delivery=delivery)
    assert failure(provider, answer).kind == "transient"


@ALL
def test_a_call_that_takes_too_long_is_given_up(provider):
    failed = failure(provider, Answer(delivery="hang"), timeout_s=0.5)
    assert (failed.kind, failed.is_slow) == ("transient", True)


@pytest.mark.parametrize("provider", ["anthropic", "openai-responses"])
def test_the_key_is_in_no_message(provider):
    echoed = {"error": {"type": "x", "message": "no such key: secret-1 secret-4"}}
    message = failure(provider, as_json(echoed, 401)).message
    assert "[key]" in message
    assert ("secret-1" if provider == "anthropic" else "secret-4") not in message


def test_an_answer_without_counts_has_no_cost_rather_than_none_to_pay():
    without = wire.gemini_content("fine")
    del without["usageMetadata"]
    with ProviderServer(as_json(without)) as server:
        reply = attempt(settings("gemini", server))
    assert (reply.text, reply.input_tokens, reply.output_tokens) == ("fine", None, None)


SCHEMA = find_judge("simplified-axtree").__class__("j", "m", is_structured=True).response_format


@ALL
def test_a_form_of_the_reply_is_sent_as_the_protocol_has_it(provider):
    with ProviderServer() as server:
        attempt(settings(provider, server, extra={"response_format": SCHEMA}))
        (body,) = server.bodies
    sent = {
        "anthropic": lambda: body["output_config"]["format"]["schema"],
        "gemini": lambda: body["generationConfig"]["responseJsonSchema"],
        "bedrock": lambda: body["toolConfig"]["tools"][0]["toolSpec"]["inputSchema"]["json"],
        "openai-responses": lambda: body["text"]["format"]["schema"],
    }[provider]()
    assert sent["properties"]["success"]["enum"] == ["Successful", "Unsuccessful"]
    assert list(sent["properties"]) == ["reasoning", "success", "side", "optimal", "loop"]


@pytest.mark.parametrize(
    ("provider", "found"),
    [
        ("anthropic", lambda body: (body["thinking"], body["output_config"])),
        ("openai-responses", lambda body: body["reasoning"]),
        ("gemini", lambda body: body["generationConfig"]["thinkingConfig"]["thinking_budget"]),
    ],
)
def test_the_reasoning_effort_is_sent_as_the_protocol_has_it(provider, found):
    expected = {
        "anthropic": ({"type": "adaptive"}, {"effort": "low"}),
        "openai-responses": {"effort": "low"},
        "gemini": 1024,
    }
    with ProviderServer() as server:
        attempt(settings(provider, server, reasoning_effort="low"))
        assert found(server.bodies[0]) == expected[provider]


def test_anthropic_is_told_where_the_prefix_ends_that_it_should_keep():
    mark = {"cache_control": {"type": "ephemeral"}}
    with ProviderServer() as server:
        attempt(settings("anthropic", server, prompt_cache="system"))
        attempt(settings("anthropic", server, prompt_cache="prompt"))
        instructions, whole = server.bodies
    assert instructions["system"] == whole["system"] == [{"type": "text", "text": "Judge.", **mark}]
    assert instructions["messages"][0]["content"][-1] == {"type": "text", "text": "Answer."}
    assert whole["messages"][0]["content"][-1] == {"type": "text", "text": "Answer.", **mark}


def test_openai_is_told_which_requests_begin_alike():
    with ProviderServer() as server:
        for question in (QUESTION, (QUESTION[0], Message("user", "Another."))):
            attempt(settings("openai-responses", server, prompt_cache="system"), question)
            attempt(settings("openai-responses", server, prompt_cache="prompt"), question)
        one, whole, other, other_whole = (body["prompt_cache_key"] for body in server.bodies)
    assert one == other
    assert len({one, whole, other_whole}) == 3


def test_what_the_provider_never_takes_is_not_sent_and_is_recorded(tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret-1")
    with ProviderServer("Status: success") as server:
        kit = Kit(tmp_path)
        kit.models = {"judge": settings("anthropic", server, seed=0, logprobs=True)}
        kit.environment = KEYS
        first, *_ = kit.ask(call("one"))
        again, *_ = kit.ask(call("one"), call("two"))
    assert first.state == "ok" and again.is_from_cache
    assert len(server.requests) == 2
    assert not [kind for kind, _ in kit.events if kind == "dropped"]  # nothing had to be refused first
    assert first.dropped == again.dropped == ("logprobs", "seed")


def run(folder, server: ProviderServer, provider: str, *more: str):
    options = ["--suite", "sample", "--split", "dev", "--limit", "2", "--provider", provider]
    options += ["--model", MODELS[provider], "--base-url", server.base_url, "--out", str(folder / "run")]
    given = ["run", "simplified-both", *options, "--cache", str(folder / "cache"), *more]
    return CliRunner().invoke(app, given)


JSON_REPLY = json.dumps(
    {
        "reasoning": "the basket",
        "success": "Unsuccessful",
        "side": "No",
        "optimal": "2. Suboptimal",
        "loop": "Yes",
    }
)


@ALL
def test_a_judge_runs_there_from_prompt_to_priced_predictions(provider, tmp_path):
    price = ("--price", f"{MODELS[provider]}=10,100,1")
    with ProviderServer(JSON_REPLY) as server:
        address = server.base_url
        result = run(tmp_path, server, provider, "--structured-output", *price)
        assert result.exit_code == 0, result.output
        calls = len(server.requests)
        (tmp_path / "run/judgments.jsonl").unlink()
        run(tmp_path, server, provider, "--structured-output", *price)
        assert len(server.requests) == calls == 2  # what is in the cache is not bought again
    first, _ = read_judgments(tmp_path / "run")
    assert first["judge"] == f"simplified-both · {MODELS[provider]} · own wording, structured output"
    answer = first["answer"]
    assert (first["state"], answer["success"], answer["side_effect"]) == ("ok", False, False)
    assert (answer["optimality"], answer["repetition"]) == (2, True)
    # a call: 20 tokens at $10, 100 from the cache at $1, 9 at $100, a million each
    assert first["cost_usd"] == pytest.approx((20 * 10 + 100 * 1 + 9 * 100) / 1e6)
    configuration = json.loads((tmp_path / "run/run.json").read_text())["configuration"]
    assert configuration["models"]["judge"]["address"] == address


def test_a_provider_whose_client_cannot_be_made_is_an_option_that_is_wrong(monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/dev/null")
    with ProviderServer() as server, pytest.raises(OptionsError, match="AWS_BEARER_TOKEN_BEDROCK"):
        attempt(settings("bedrock", server))


LOOK = Tool(
    "open_step",
    "Show a step.",
    {
        "type": "object",
        "required": ["n"],
        "properties": {"n": {"type": "integer", "description": "Its number."}},
    },
)


def with_tools(provider: str, server: ProviderServer, messages=QUESTION):
    from arb.judges.endpoints.any_llm import AnyLLMEndpoint

    async def run():
        endpoint = AnyLLMEndpoint(resolve_access({"judge": settings(provider, server)}, KEYS)["judge"])
        try:
            request = Request(settings(provider, server), messages, 50, frozenset(("seed",)), (LOOK,))
            return await endpoint.attempt(request)
        finally:
            await endpoint.close()

    return asyncio.run(run())


TOOL_REPLIES = {
    "anthropic": wire.anthropic_message("I look.", "tool_use")
    | {
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "signed"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "call_9", "name": "open_step", "input": {"n": 2}},
        ]
    },
    "gemini": wire.gemini_content("I look.")
    | {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [
                        {"text": "I look."},
                        {
                            "functionCall": {"id": "call_9", "name": "open_step", "args": {"n": 2}},
                            "thoughtSignature": base64.b64encode(b"signed").decode(),
                        },
                    ],
                },
                "finishReason": "STOP",
                "index": 0,
            }
        ]
    },
    "openai-responses": wire.openai_response("I look.")
    | {
        "output": [
            *wire.openai_response("I look.")["output"],
            {
                "id": "fc_1",
                "type": "function_call",
                "status": "completed",
                "call_id": "call_9",
                "name": "open_step",
                "arguments": '{"n": 2}',
            },
        ]
    },
}


@pytest.mark.parametrize("provider", TOOL_REPLIES)
def test_tools_are_declared_called_and_answered_as_the_protocol_has_them(provider):
    with ProviderServer(as_json(TOOL_REPLIES[provider]), "Status: success") as server:
        reply = with_tools(provider, server)
        (called,) = reply.tool_calls
        assert (reply.text, called.id, called.name) == ("I look.", "call_9", "open_step")
        assert json.loads(called.arguments) == {"n": 2}
        answered = (
            *QUESTION,
            Message("assistant", reply.text, reply.tool_calls),
            Message("tool", "Step 2", tool_call_id="call_9"),
            Message("user", ("Its picture:", image(4))),
        )
        assert with_tools(provider, server, answered).text == "Status: success"
        first, second = server.bodies
    picture = base64.b64encode(image(4).content).decode()
    sent = json.dumps(second).replace("-", "+").replace("_", "/")  # Gemini's client uses the other alphabet
    assert picture in sent
    if provider == "anthropic":
        assert first["tools"][0]["input_schema"]["properties"]["n"]["type"] == "integer"
        *_, called_back, result, _ = second["messages"]
        assert called_back["content"] == TOOL_REPLIES[provider]["content"]  # the signed thought too
        assert result["content"] == [{"type": "tool_result", "tool_use_id": "call_9", "content": "Step 2"}]
    elif provider == "gemini":
        (declared,) = first["tools"][0]["functionDeclarations"]
        assert declared["name"] == "open_step"
        *_, called_back, result, _ = second["contents"]
        (part,) = (each for each in called_back["parts"] if "functionCall" in each)
        assert base64.b64decode(part["thoughtSignature"], altchars=b"-_") == b"signed"
        assert part["functionCall"]["args"] == {"n": 2}
        assert result["parts"][0]["functionResponse"]["name"] == "open_step"
    else:
        assert (first["tools"][0]["type"], first["tools"][0]["name"]) == ("function", "open_step")
        kinds = [each.get("type", "message") for each in second["input"]]
        assert kinds[-4:] == ["message", "function_call", "function_call_output", "message"]
        assert second["input"][-2] | {"output": "Step 2", "call_id": "call_9"} == second["input"][-2]
