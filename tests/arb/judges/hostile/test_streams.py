"""Gateways that answer in streams, endpoints whose answers never end, and what a request has to carry."""

import asyncio
import contextlib
import gzip
import json
import tracemalloc
import zlib
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from arb.judges.__main__ import app
from arb.judges.cli.options import RunOptions, typed
from arb.judges.endpoints.batch_client import BatchClient
from arb.judges.endpoints.connection import MAX_REPLY_BYTES
from arb.judges.endpoints.event_stream import completion_of_stream
from arb.judges.endpoints.openai_compatible import OpenAIEndpoint
from arb.judges.endpoints.providers import EndpointAccess, endpoint_url, resolve_access
from arb.judges.engine.errors import CallFailed
from arb.judges.run.folder import read_judgments, read_run
from arb.judges.run.judge_options import build_judge, build_models
from arb.judges.types import Message, ModelSettings, OptionsError, Request
from tests.support import judge_runs
from tests.support.llm_server.chat import Scripted
from tests.support.llm_server.server import LLMServer

ASKED = (Message("user", "Was it done?"),)
MODEL = ModelSettings("m", "any")


async def attempts(access, *models):
    """What becomes of one attempt per model, one after the other at one endpoint."""
    endpoint = OpenAIEndpoint(access, timeout_s=120)
    try:
        return [await endpoint.attempt(Request(model, ASKED, 99)) for model in models]
    finally:
        await endpoint.close()


def ask(access, *models):
    return asyncio.run(attempts(access, *models))


def at(base_url, **more):
    return EndpointAccess(base_url, None, "max_tokens", **more)


def run(server, folder, *arguments):
    return judge_runs.run(server.base_url, folder, "--limit", 4, *arguments, split="dev")


def test_a_gateway_that_only_streams_is_found_out_once_and_says_what_it_cost(tmp_path):
    with LLMServer(streams="only") as server:
        options = ("--max-in-flight", 1, "--price", "m=1000,2000", "--samples", 2, "--logprobs")
        result = run(server, tmp_path, *options)
        assert result.exit_code == 0, result.output
        assert server.counts.statuses == {400: 1, 200: 4}
        assert server.counts.paid_twice(samples=2) == {}
        records = list(read_judgments(tmp_path / "run"))
        usd = sum(record["cost_usd"] for record in records)
        assert usd == pytest.approx(server.counts.usd(1000, 2000))
    assert [len(record["calls"]) for record in records] == [2] * 4
    assert all("score" in record["answer"] for record in records)


@pytest.mark.parametrize("streams", ["only", "only, without stream_options", "always"])
def test_an_answer_in_a_stream_is_the_answer_that_comes_whole(streams):
    def script(request):
        return Scripted("Größe\u2028\n{}: yes", finish_reason="length")

    model = replace(MODEL, logprobs=True)
    with LLMServer(script) as whole, LLMServer(script, streams=streams) as streamed:
        (expected,), found = ask(at(whole.base_url), model), ask(at(streamed.base_url), model, model)
    for each in found:
        assert (each.text, each.finish_reason, each.model) == ("Größe\u2028\n{}: yes", "length", "m")
        assert (each.logprobs, each.state) == (expected.logprobs, "ok")
    asks_for_usage = streams != "only, without stream_options"
    assert (found[-1].usage == expected.usage) is asks_for_usage  # of ``always`` from the second call on
    assert (found[0].usage == expected.usage) is (streams == "only")


def events(*chunks, end="data: [DONE]\n\n"):
    return "".join(f"data: {json.dumps(each)}\r\n\r\n" for each in chunks) + end


def chunk(text, finish_reason=None, **more):
    return {"choices": [{"index": 0, "delta": {"content": text, **more}, "finish_reason": finish_reason}]}


def test_a_stream_is_put_together_whatever_stands_between_its_chunks():
    text = ": keep-alive\n\nevent: message\n" + events(
        {"choices": [], "prompt_filter_results": []}, chunk("St"), chunk("atus", reasoning_content="hm"), {},
        chunk(None, "stop"), {"model": "m-1", "choices": [], "usage": {"prompt_tokens": 7}},
    )  # fmt: skip
    made = json.loads(completion_of_stream(text))
    assert made["choices"][0]["message"] == {
        "role": "assistant", "content": "Status", "reasoning_content": "hm",
    }  # fmt: skip
    assert (made["model"], made["usage"]) == ("m-1", {"prompt_tokens": 7})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (events(chunk("Stat"), end=""), "the stream ended before the reply did"),
        (events(end=""), "the stream ended before"),
        (events(chunk("Stat"), end="data: {cut"), "an event that is not JSON"),
        (events([1]), "not a JSON object"),
    ],
)
def test_a_stream_that_breaks_off_is_no_answer_and_may_have_been_paid(text, said):
    with pytest.raises(CallFailed, match=said) as failed:
        completion_of_stream(text)
    assert (failed.value.kind, failed.value.maybe_paid, failed.value.raw) == ("transient", True, text)


def test_a_stream_that_ends_without_done_but_with_a_finish_reason_is_whole():
    text = events(chunk("yes", "stop"), end="")
    assert json.loads(completion_of_stream(text))["choices"][0]["message"]["content"] == "yes"


def test_an_error_within_a_stream_is_that_error():
    text = events(chunk("St"), {"error": {"code": 429, "message": "Rate limit reached"}}, end="")
    assert json.loads(completion_of_stream(text))["error"]["code"] == 429


class Endless:
    """A server that sends its head, then pieces without an end; it counts the bytes that it got rid of."""

    def __init__(self, head: str, pieces):
        self._head = f"HTTP/1.1 {head}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
        self._pieces = pieces
        self.sent = 0

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}/v1"

    async def __aexit__(self, *_):
        self._server.close()

    async def _answer(self, reader, writer):
        with contextlib.suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(self._head)
            for piece in self._pieces():
                writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                await writer.drain()
                self.sent += len(piece)
                await asyncio.sleep(0)  # the client reads meanwhile: else up to 32 MB wait in the sockets
        writer.close()


def spaces():
    while True:
        yield b" " * 65_536


def chunks():
    piece = events(chunk("ha" * 100), end="").encode() * 200
    while True:
        yield piece


def zipped():
    packer = zlib.compressobj(wbits=31)
    first, further = (packer.compress(b" " * 10_000_000) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    yield first
    while True:  # after a full flush the same bytes stand for the same text
        yield further


@pytest.mark.parametrize(
    ("head", "pieces"),
    [
        ("200 OK\r\ncontent-type: application/json", spaces),
        ("200 OK\r\ncontent-type: text/event-stream", chunks),
        ("200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip", zipped),
        ("400 Bad Request\r\ncontent-type: application/json", spaces),
        ("400 Bad Request\r\ncontent-encoding: gzip", zipped),
    ],
)
def test_an_answer_without_an_end_ends_its_call_and_takes_bounded_memory(head, pieces):
    endless = Endless(head, pieces)

    async def attempt():
        async with endless as base_url:
            tracemalloc.start()
            try:
                with pytest.raises(CallFailed) as failed:
                    await attempts(at(base_url), MODEL)
                return failed.value, tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

    failure, peak = asyncio.run(attempt())
    assert "the response is longer than 32 MiB and was cut off" in failure.message
    assert (failure.kind, failure.maybe_paid, failure.raw) == ("final", True, None)
    # what was read, once more while its buffer grows, and what the server of this process holds
    assert peak < 3 * MAX_REPLY_BYTES
    # a sixteenth more than the bound may be on its way; of zipped bytes a thousandth is needed
    assert endless.sent < MAX_REPLY_BYTES * 17 / 16


@pytest.mark.slow
def test_a_line_of_a_batch_without_an_end_ends_its_reading():
    endless = Endless("200 OK", spaces)

    async def read():
        async with endless as base_url:
            client = BatchClient(at(base_url))
            try:
                return [line async for line in client.lines("file-1")]
            finally:
                await client.close()

    with pytest.raises(CallFailed, match="longer than 32 MiB"):
        asyncio.run(read())
    assert endless.sent < MAX_REPLY_BYTES * 17 / 16


def test_the_users_headers_follow_no_redirect():
    async def attempt(**more):
        with LLMServer() as other:
            head = f"307 Temporary Redirect\r\nlocation: {other.base_url}/chat/completions"
            async with Endless(head, lambda: [b""]) as base_url:
                with contextlib.suppress(CallFailed):
                    await attempts(at(base_url, **more), MODEL)
            return len(other.requests)

    assert asyncio.run(attempt(own_headers=(("X-Key", "sk-0123456789"),))) == 0
    assert asyncio.run(attempt()) == 1


def test_a_compressed_answer_is_read():
    body = json.dumps({"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}).encode()
    packed = gzip.compress(body)

    async def attempt():
        async with Endless("200 OK\r\ncontent-encoding: gzip", lambda: [packed, b""]) as base_url:
            return await attempts(at(base_url), MODEL)

    assert asyncio.run(attempt())[0].text == "yes"


def test_query_parameters_of_the_address_are_sent_with_every_request(tmp_path, monkeypatch):
    monkeypatch.setattr("arb.judges.run.batch.POLL_S", 0.01)
    with LLMServer() as server:
        address = f"{server.base_url}/?api-version=2024-10-21"
        assert run(server, tmp_path, "--base-url", address).exit_code == 0
        assert {each.path for each in server.requests} == {"/v1/chat/completions?api-version=2024-10-21"}
        server.requests.clear()
        (tmp_path / "batch").mkdir()
        assert run(server, tmp_path / "batch", "--base-url", address, "--batch").exit_code == 0
        assert {each.path.partition("?")[2] for each in server.requests} == {"api-version=2024-10-21"}
    assert "api-version" not in (tmp_path / "run" / "run.json").read_text()


@pytest.mark.parametrize(
    ("base_url", "path", "expected"),
    [
        ("http://h/v1", "batches", "http://h/v1/batches"),
        ("http://h/v1/", "batches?limit=1", "http://h/v1/batches?limit=1"),
        ("http://h/v1?a=1", "batches?limit=1", "http://h/v1/batches?a=1&limit=1"),
        ("http://u:p@h", "batches", "http://u:p@h/batches"),
    ],
)
def test_a_path_goes_below_the_base_url_and_before_its_query(base_url, path, expected):
    assert endpoint_url(base_url, path) == expected


def test_azure_with_a_dated_api_version_gets_the_key_in_its_own_header():
    with LLMServer() as server:
        dated = replace(MODEL, provider="azure", base_url=f"{server.base_url}?api-version=2024-10-21")
        access = resolve_access({"judge": dated}, {"AZURE_OPENAI_API_KEY": "secret"})["judge"]
        ask(access, dated)
        headers = server.requests[-1].headers
    assert (headers["api-key"], "authorization" in headers) == ("secret", False)


def test_headers_are_sent_and_only_their_names_are_recorded(tmp_path):
    secret = "sk-0123456789abcdef"

    def script(request):
        return "<success>Successful</success>"

    with LLMServer(script) as server:
        given = ("--header", f"X-Gateway-Key={secret}", "--header", "x-team=blue=green")
        result = run(server, tmp_path, *given)
        assert result.exit_code == 0, result.output
        sent = [(each.headers["x-gateway-key"], each.headers["x-team"]) for each in server.requests]
        assert sent == [(secret, "blue=green")] * 4
        command = ["plan", "simplified-axtree", "--suite", "sample", "--split", "dev", *given]
        planned = CliRunner().invoke(app, [*command, "--base-url", "http://h/v1"])
    assert read_run(tmp_path / "run")["headers"] == ["X-Gateway-Key", "x-team"]
    assert planned.exit_code == 0 and "--header X-Gateway-Key=VALUE" in planned.output
    assert secret not in result.output + planned.output
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files and not [path for path in files if secret.encode() in path.read_bytes()]


def test_a_header_that_an_endpoint_repeats_in_an_error_is_not_shown():
    access = at("http://h/v1", own_headers=(("X-Key", "sk-0123456789abcdef"), ("X-Team", "blue")))
    with LLMServer() as server:
        access = replace(access, base_url=server.base_url.replace("/v1", "/sk-0123456789abcdef-blue"))
        with pytest.raises(CallFailed) as failed:
            ask(access, MODEL)
    assert "[key]-blue" in failed.value.message and "sk-0123456789abcdef" not in str(failed.value)


def test_an_authorization_of_the_users_replaces_the_key():
    with LLMServer() as server:
        own_headers = (("authorization", "Basic abc"),)
        ask(EndpointAccess(server.base_url, "the-key", "max_tokens", own_headers=own_headers), MODEL)
        assert server.requests[-1].headers["authorization"] == "Basic abc"


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("X-Key", "write NAME=VALUE"),
        ("X Key=secretsecret", "write NAME=VALUE"),
        ("X-Key=secret\r\nsecret", "--header X-Key: use only printable ASCII"),
    ],
)
def test_a_header_that_cannot_be_is_refused_without_its_value(tmp_path, header, said):
    with LLMServer() as server:
        result = run(server, tmp_path, "--header", header)
        assert (result.exit_code, server.counts.calls) == (2, 0)
    assert said in result.output and "secretsecret" not in result.output


def test_headers_stay_with_the_provider_that_they_were_given_for(tmp_path):
    options = RunOptions(
        cascade="simplified-axtree,simplified-both",
        model_of=["strong.judge=openrouter:m"],
        header=["X-Key=sk-0123456789"],
        base_url="http://h/v1",
    )
    models = build_models(options, build_judge(options))
    assert [bool(models[role].header) for role in ("cheap.judge", "strong.judge")] == [True, False]
    assert "sk-0123456789" not in repr(models) and "sk-0123456789" not in " ".join(typed(options))


def test_a_provider_with_a_library_of_its_own_takes_no_headers():
    model = replace(MODEL, provider="anthropic", header=(("X-Key", "sk-0123456789"),))
    with pytest.raises(OptionsError, match="--header cannot be used with --provider anthropic"):
        resolve_access({"judge": model}, {"ANTHROPIC_API_KEY": "k"})
