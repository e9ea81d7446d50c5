"""Files and batches of the server."""

import io
import json

import openai

from tests.support.llm_server.chat import Scripted
from tests.support.llm_server.server import LLMServer


def client_of(server):
    return openai.OpenAI(base_url=server.base_url, api_key="k", max_retries=0)


def lines_of(texts):
    for number, text in enumerate(texts):
        body = {"model": "m", "messages": [{"role": "user", "content": text}]}
        yield {"custom_id": f"c{number}", "method": "POST", "url": "/v1/chat/completions", "body": body}


def start_batch(client, texts):
    content = "".join(json.dumps(line) + "\n" for line in lines_of(texts)).encode()
    file = client.files.create(file=("lines.jsonl", io.BytesIO(content)), purpose="batch")
    return client.batches.create(
        input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
    )


def output_of(client, file_id):
    return [json.loads(line) for line in client.files.content(file_id).text.splitlines()]


def test_a_batch_is_done_when_it_is_looked_at():
    with LLMServer("echo") as server:
        client = client_of(server)
        batch = client.batches.retrieve(start_batch(client, ["one", "two"]).id)
        assert (batch.status, batch.request_counts.completed, batch.error_file_id) == ("completed", 2, None)
        said = [
            (line["custom_id"], line["response"]["body"]["choices"][0]["message"]["content"])
            for line in output_of(client, batch.output_file_id)
        ]
        assert said == [("c0", "one"), ("c1", "two")]
        assert server.counts.answers.total() == 2
        assert [each.id for each in client.batches.list(limit=1)] == [batch.id]


def test_a_batch_moves_by_hand_and_what_is_late_expires():
    with LLMServer("echo") as server:
        server.batches.mode = "by_hand"
        client = client_of(server)
        started = start_batch(client, ["one", "two", "three"])
        assert client.batches.retrieve(started.id).status == "validating"
        server.batches.advance(started.id, lines=1)
        assert client.batches.retrieve(started.id).status == "in_progress"
        server.batches.expire(started.id)
        ended = client.batches.retrieve(started.id)
        assert (ended.status, ended.request_counts.completed, ended.request_counts.failed) == (
            "expired",
            1,
            2,
        )
        assert {line["error"]["code"] for line in output_of(client, ended.error_file_id)} == {"batch_expired"}


def test_a_batch_can_be_cancelled_and_can_fail_as_a_whole():
    with LLMServer("echo") as server:
        server.batches.mode = "by_hand"
        client = client_of(server)
        first, second = start_batch(client, ["one", "two"]), start_batch(client, ["one"])
        server.batches.advance(first.id, lines=1)
        assert client.batches.cancel(first.id).status == "cancelled"
        assert len(output_of(client, client.batches.retrieve(first.id).output_file_id)) == 1
        server.batches.fail(second.id, "no good")
        failed = client.batches.retrieve(second.id)
        assert (failed.status, failed.errors.data[0].message) == ("failed", "no good")


def test_lines_of_a_batch_meet_rules_and_faults_like_calls():
    def script(request):
        return Scripted("fine", fault="content_filter" if "bad" in request.text else None)

    with LLMServer(script, max_input_tokens=20) as server:
        client = client_of(server)
        batch = client.batches.retrieve(start_batch(client, ["bad", "good", "long " * 50]).id)
        output, errors = (output_of(client, file) for file in (batch.output_file_id, batch.error_file_id))
        finish = [line["response"]["body"]["choices"][0]["finish_reason"] for line in output]
        assert finish == ["content_filter", "stop"]
        assert [line["response"]["status_code"] for line in errors] == [400]
