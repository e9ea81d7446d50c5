"""The flood's own parts: what is sent, what it is answered, what counts as a fault of the server."""

import asyncio
import random
from collections import Counter

from bench.flood import (
    CONNECTIONS,
    Connection,
    form,
    fuzzed,
    honest_file,
    junk_files,
    send_junk,
    server_errors,
)
from core.predictions import read_predictions


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


def test_thirty_connections_send_until_the_end_and_slow_ones_are_answered_early():
    async def scene():
        seen, ended = Counter(), asyncio.Event()

        async def answer(reader, writer):
            seen[writer.get_extra_info("peername")[0]] += 1
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            if length < 1_000:  # 208 bytes and their form, which some send byte by byte
                writer.write(b"HTTP/1.1 408 Too Slow\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            else:
                await reader.readexactly(length)
                writer.write(b"HTTP/1.1 429 Too Many\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno")
            await writer.drain()
            writer.close()
            if seen.total() > 100:
                ended.set()

        server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=1 << 22)
        port = server.sockets[0].getsockname()[1]
        answered = await asyncio.wait_for(send_junk(port, CONNECTIONS, ended), 120)
        server.close()
        assert len(seen) == CONNECTIONS  # an address each
        assert answered[408] > 0 and answered[429] > 0

    asyncio.run(scene())


def test_a_server_that_is_gone_is_no_answer():
    assert asyncio.run(Connection(9, "127.0.0.1").ask(form(9, b"{}"))) == 0
