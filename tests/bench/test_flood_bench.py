"""The flood's own parts: what is sent, what it is answered, what counts as a fault of the server."""

import asyncio
import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from arb.core.predictions import read_predictions
from bench.flood import (
    CONNECTIONS,
    DOORS,
    JUNK_NICENESS,
    Phase,
    flooding,
    fuzzed,
    print_phase,
    send_junk,
    server_errors,
)
from bench.support.flood_requests import Answer, Connection, honest_file, junk, junk_files
from bench.support.memory_limit import memory_group
from tests.support.event_loop import in_event_loop

CONFIG = json.dumps({"dependencies": [{"api_name": "check", "id": 1}, {"api_name": "board", "id": 2}]})


class Server:
    """A server that notes what is asked, answers slow forms with 408 and all others with 429."""

    def __init__(self) -> None:
        self.addresses, self.paths = Counter(), Counter()

    async def answer(self, reader, writer) -> None:
        self.addresses[writer.get_extra_info("peername")[0]] += 1
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.lower().partition("content-length:")[2].split("\r\n")[0])
        path = head.split()[1]
        self.paths[path] += 1
        if path == "/config":
            self._write(writer, "200 OK", CONFIG)
        elif path == "/api/check" and length < 1_000:  # 208 bytes and their form, some byte by byte
            self._write(writer, "408 Too Slow")
        else:
            await reader.readexactly(length)
            self._write(writer, "429 Too Many", "no")
        await writer.drain()
        writer.close()

    def _write(self, writer, status: str, body: str = "") -> None:
        head = f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        writer.write((head + body).encode())


def test_the_honest_file_is_right_and_the_junk_is_not():
    table, findings = read_predictions(honest_file())
    assert (table.rows, findings) == (1_106, [])
    assert len(junk_files()[0]) == 208
    assert all(read_predictions(content) is not None for content in junk_files())


def test_fuzzed_files_are_the_same_in_each_run_and_differ_from_their_seeds():
    seeds = [b"PAR1" + bytes(1_000), b"{}\n" * 500]
    files = [[fuzzed(seeds, random.Random(7)) for _ in range(5)] for _ in range(2)]
    assert files[0] == files[1]
    assert not set(files[0]) & set(seeds)


def test_a_fault_is_any_5xx_but_503():
    assert server_errors(Counter({200: 9, 429: 9, 503: 9, 500: 2, 502: 1, 0: 4})) == 3


@in_event_loop
async def test_thirty_connections_send_through_every_door_and_slow_ones_are_answered_early():
    server, ended = Server(), asyncio.Event()
    listening = await asyncio.start_server(server.answer, "127.0.0.1", 0, limit=1 << 22)
    port = listening.sockets[0].getsockname()[1]
    sending = asyncio.create_task(send_junk(port, CONNECTIONS, ended))
    doors = {
        "/api/check", "/api/submissions", "/api/estimate", "/my-agent", "/rates", "/validate", "/mcp",
        "/gradio_api/upload",
        "/gradio_api/queue/join",
    }  # fmt: skip
    async with asyncio.timeout(120):
        while len(server.addresses) < CONNECTIONS or not doors <= server.paths.keys():
            await asyncio.sleep(0.01)
    ended.set()
    answered = await asyncio.wait_for(sending, 120)
    listening.close()
    assert set(answered) == set(junk(port)) == {"REST", "upload", "call", "MCP", "estimate"}
    assert all(statuses[429] > 0 for statuses in answered.values())
    assert sum(statuses[408] for statuses in answered.values()) > 0


@in_event_loop
async def test_a_chunked_answer_is_read_to_its_end():
    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        writer.write(b"5\r\nevent\r\n3\r\n: x\r\n0\r\n\r\n")
        await writer.drain()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    assert await Connection(port, "127.0.0.1").ask(b"GET / HTTP/1.1\r\n\r\n") == Answer(200, b"event: x")
    listening.close()


@pytest.mark.parametrize(
    ("seconds", "health", "statuses", "holds"),
    [
        (0.2, 0.01, {200: 9}, True),
        (0.21, 0.01, {200: 9}, False),  # 2.1 times as long as alone
        (0.2, 0.06, {200: 9}, False),  # the health check took over 50 ms
        (0.2, 0.01, {200: 9, 503: 1}, False),  # an honest check was refused
    ],
)
def test_a_flood_meets_the_targets_or_not(seconds, health, statuses, holds):
    alone = Phase({name: [0.1] for name in DOORS}, [0.001], Counter({200: 9}))
    phase = Phase({name: [seconds] for name in DOORS}, [health], Counter(statuses))
    assert print_phase("flood", phase, alone) is holds


@pytest.mark.slow
def test_the_junk_is_sent_by_a_process_of_low_priority_that_says_what_it_was_answered():
    """Port 9 of this machine refuses connections, so that every answer is none."""
    with flooding(9, CONNECTIONS) as answered:
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        niceness = min(19, os.getpriority(os.PRIO_PROCESS, 0) + JUNK_NICENESS)
        assert niceness in [os.getpriority(os.PRIO_PROCESS, int(child)) for child in children]
    assert set(answered) == set(junk(9))
    assert {status for statuses in answered.values() for status in statuses} <= {0}


def test_a_process_that_takes_more_than_its_group_may_is_killed():
    program = "import os; held = bytearray(os.urandom(1 << 20)) * 200"
    with memory_group(64 << 20) as group:
        if group is None:
            pytest.skip("this user may not make a control group")
        run = subprocess.run([sys.executable, "-c", program], preexec_fn=group.enter, check=False)
        assert run.returncode == -9
        assert group.killed() == 1
    assert not group.folder.exists()
