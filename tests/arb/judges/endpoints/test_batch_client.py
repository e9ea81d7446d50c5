"""The client of files and batches, over HTTP against the scripted server."""

import asyncio

import pytest

from arb.judges.endpoints import batch_client
from arb.judges.endpoints.batch_client import BatchClient
from arb.judges.endpoints.providers import EndpointAccess
from arb.judges.engine.errors import CallFailed
from tests.support.llm_server.server import LLMServer

NOWHERE = "http://127.0.0.1:1/v1"


def with_client(base_url, step, sleep=asyncio.sleep):
    async def run():
        client = BatchClient(EndpointAccess(base_url, "sk-very-secret", "max_tokens"), sleep)
        try:
            return await step(client)
        finally:
            await client.close()

    return asyncio.run(run())


async def lines_of(client, content, path):
    path.write_bytes(content)
    file_id = await client.upload(path)
    return [line async for line in client.lines(file_id)]


@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_file_comes_back_line_by_line_however_long_its_lines_are(end, tmp_path):
    long = "ä" * 3 * batch_client.READ_BYTES
    content = f"first\n\n{long}\nlast".encode() + end
    with LLMServer("judges") as server:
        lines = with_client(server.base_url, lambda client: lines_of(client, content, tmp_path / "a.jsonl"))
    assert lines == ["first", long, "last"]


def test_bytes_that_are_not_utf_8_do_not_stop_the_other_lines(tmp_path):
    with LLMServer("judges") as server:
        lines = with_client(
            server.base_url, lambda client: lines_of(client, b"a\xff\nb\n", tmp_path / "a.jsonl")
        )
    assert lines == ["a\ufffd", "b"]


def test_a_batch_is_found_by_its_mark_beyond_the_first_page(tmp_path):
    async def step(client):
        path = tmp_path / "a.jsonl"
        path.write_bytes(b"")
        file_id = await client.upload(path)
        first = await client.create_batch(file_id, "the-first")
        for number in range(100):  # a page has 100
            await client.create_batch(file_id, f"later-{number}")
        return first.id, (await client.find("the-first")).id, await client.find("no-such-mark")

    with LLMServer("judges") as server:
        made, found, absent = with_client(server.base_url, step)
    assert made == found == "batch_1"
    assert absent is None


def test_the_key_is_in_no_message_although_the_endpoint_repeats_it():
    with LLMServer("judges") as server, pytest.raises(CallFailed) as failure:
        with_client(server.base_url, lambda client: client.create_batch("sk-very-secret", "mark"))
    assert "[key]" in str(failure.value) and "secret" not in str(failure.value)


def test_a_connection_that_is_refused_from_the_start_is_tried_twice():
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    with pytest.raises(CallFailed, match="no connection"):
        with_client(NOWHERE, lambda client: client.find("mark"), sleep)
    assert len(waits) == 1 and 4 <= waits[0] <= 8  # drawn between the half and the whole of 8 seconds


@pytest.mark.parametrize(("asked_s", "tries"), [(30.0, 5), (7200.0, 1)])
def test_a_wait_that_the_endpoint_asks_for_is_kept_but_nobody_waits_for_hours(asked_s, tries):
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    async def refused():
        raise CallFailed("rate_limit", "429", retry_after_s=asked_s)

    with pytest.raises(CallFailed, match="429"):
        with_client(NOWHERE, lambda client: client._with_retry(refused), sleep)
    assert waits == [asked_s] * (tries - 1)
