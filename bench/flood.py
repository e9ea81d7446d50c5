"""What a flood of junk costs everybody else: ``python -m bench.flood`` (``--quick`` for a look).

1. A Space over the shipped suite, with the settings it comes with. An honest reader checks a real-sized file
   again and again, each time from another address, and something asks for ``/healthz`` ten times a second:
   alone, then while 30 connections send junk as fast as they are answered, from one address and from an
   address each. Junk is Parquet that only begins like it (208 bytes), Parquet that is read and is for
   nothing, wrong JSON, and bodies that come in byte by byte. Printed: seconds of an honest check, as a ratio
   to those alone; of the health check; what junk was answered. An address is one of 127.0.0.0/8: Linux.
2. A Space without a limit on checks: fuzzed files (right ones with bytes changed, cut off, doubled), and the
   memory that all its processes hold afterwards, against that after the first few hundred.
"""

import argparse
import asyncio
import io
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.space import at_95th, free_port, serving
from bench.support.processes import family, resident

MOST_TIMES_ALONE: Final = 2.0
MOST_HEALTH_SECONDS: Final = 0.050
MOST_MORE_BYTES: Final = 50_000_000
CONNECTIONS: Final = 30
SLOW_EVERY: Final = 6
"""Of the connections, every so many sends slowly."""
HEALTH_EVERY_SECONDS: Final = 0.1
HONEST, JUNK, HEALTH = "127.1.{}.{}", "127.2.0.{}", "127.3.0.1"
LIMIT_SECONDS: Final = 300.0


@dataclass(frozen=True)
class Sizes:
    """How much: honest checks in each phase, fuzzed files before memory is read first, and after that."""

    checks: int
    first_files: int
    files: int


FULL = Sizes(checks=60, first_files=500, files=5_000)
QUICK = Sizes(checks=10, first_files=50, files=200)


class Connection:
    """HTTP/1.1 over one socket from an address of choice, as light as it gets: it shares the cores."""

    def __init__(self, port: int, address: str) -> None:
        self._port, self._address = port, address
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: bytes) -> int:
        """The status of the answer, which is read whole; 0 where the server closed the connection."""
        try:
            reader, writer = await self._open()
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = head.partition(b"content-length:")[2].split(b"\r\n")[0]
            await reader.readexactly(int(length or 0))
            if b"connection: close" in head:
                self.close()
            return int(head.split()[1])
        except (OSError, asyncio.IncompleteReadError):
            self.close()
            return 0

    async def ask_slowly(self, request: bytes, ended: asyncio.Event) -> int:
        """The same with the body at two bytes a second; the server may answer before its end."""
        reader, writer = await self._open()
        body = request.index(b"\r\n\r\n") + 4
        writer.write(request[:body])
        status = asyncio.ensure_future(reader.readline())
        try:
            for place in range(body, len(request), 2):
                if ended.is_set() or status.done():
                    break
                writer.write(request[place : place + 2])
                await asyncio.wait({status}, timeout=1.0)
            line = await asyncio.wait_for(status, 0.1)
            return int(line.split()[1]) if line else 0
        except (OSError, TimeoutError):
            return 0
        finally:
            status.cancel()
            self.close()

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            self._streams = await asyncio.open_connection(
                "127.0.0.1", self._port, local_addr=(self._address, 0), limit=1 << 22
            )
        return self._streams

    def close(self) -> None:
        """Forget the socket; the next request opens another."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def form(port: int, content: bytes, name: str = "verdicts") -> bytes:
    """A request that has the file checked."""
    body = (
        f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
        + content
        + b"\r\n--x--\r\n"
    )
    head = (
        f"POST /api/check HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: {len(body)}\r\n"
        "Content-Type: multipart/form-data; boundary=x\r\n\r\n"
    )
    return head.encode() + body


def honest_file() -> bytes:
    """A row for every trajectory of test, as a judge writes it."""
    from core.suite import OFFICIAL, load_suite

    ids = [trajectory.trajectory_id for trajectory in load_suite(OFFICIAL).split("test")]
    rows = [{"trajectory_id": name, "success": n % 3 == 0, "score": 0.5} for n, name in enumerate(ids)]
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def parquet_file(rows: int) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    table = {"trajectory_id": [f"no/such/{n}" for n in range(rows)], "success": [True] * rows}
    pq.write_table(pa.table(table), buffer)
    return buffer.getvalue()


def junk_files() -> list[bytes]:
    return [
        b"PAR1" + b"x" * 204,
        parquet_file(3),
        b'{"trajectory_id": "x", "success": tru\n' * 2_000,
        b"[" * 100_000,
    ]


async def send_junk(port: int, addresses: int, ended: asyncio.Event) -> Counter[int]:
    """What 30 connections were answered that send until the event; 0 is none, or not yet."""
    files, answered = [form(port, content) for content in junk_files()], Counter[int]()

    async def one(number: int) -> None:
        connection = Connection(port, JUNK.format(2 + number % addresses))
        sent = number
        while not ended.is_set():
            sent += 1
            if number % SLOW_EVERY == 0:
                answered[await connection.ask_slowly(files[0], ended)] += 1
            else:
                answered[await connection.ask(files[sent % len(files)])] += 1

    await asyncio.gather(*map(one, range(CONNECTIONS)))
    return answered


@dataclass(frozen=True)
class Phase:
    """Seconds of honest checks and of health checks, and what all of them were answered."""

    checks: list[float]
    health: list[float]
    statuses: Counter[int]


async def measure(port: int, sizes: Sizes, first_address: int) -> Phase:
    """Honest checks one after the other, and the health check beside them."""
    request = form(port, honest_file(), "my-judge.jsonl")
    found, ended = Phase([], [], Counter()), asyncio.Event()

    async def ask_health() -> None:
        connection = Connection(port, HEALTH)
        health = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
        while not ended.is_set():
            begun = time.perf_counter()
            found.statuses[await connection.ask(health)] += 1
            found.health.append(time.perf_counter() - begun)
            await asyncio.sleep(HEALTH_EVERY_SECONDS)

    asking = asyncio.create_task(ask_health())
    for number in range(first_address, first_address + sizes.checks):
        connection = Connection(port, HONEST.format(number // 250, 1 + number % 250))
        begun = time.perf_counter()
        found.statuses[await connection.ask(request)] += 1
        found.checks.append(time.perf_counter() - begun)
        connection.close()
    ended.set()
    await asking
    return found


def flood(port: int, sizes: Sizes, addresses: int, first_address: int) -> tuple[Phase, Counter[int]]:
    """What is measured while another process sends junk; what the junk was answered."""
    command = [sys.executable, "-m", "bench.flood", "--junk", str(port), "--addresses", str(addresses)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        process.stdout.readline()  # it sends
        time.sleep(3.0)
        found = asyncio.run(measure(port, sizes, first_address))
        answered, _ = process.communicate("end\n", timeout=LIMIT_SECONDS)
    finally:
        process.kill()
        process.wait()
    return found, Counter({int(status): n for status, n in json.loads(answered).items()})


def junk_process(port: int, addresses: int) -> None:
    """Sends junk until a line comes on standard input, then says what it was answered."""

    async def send() -> Counter[int]:
        ended = asyncio.Event()
        print("sending", flush=True)
        sending = asyncio.create_task(send_junk(port, addresses, ended))
        await asyncio.to_thread(sys.stdin.readline)
        ended.set()
        return await sending

    print(json.dumps(asyncio.run(send())))


def fuzzed(seeds: Sequence[bytes], generator: random.Random) -> bytes:
    """A right file with some bytes changed, cut off, or with a part of it twice."""
    content = bytearray(generator.choice(seeds))
    match generator.randrange(4):
        case 0:
            del content[generator.randrange(4, len(content)) :]
        case 1:
            first = generator.randrange(len(content))
            content[first:first] = content[first : first + generator.randrange(1, 50_000)]
        case _:
            for _ in range(generator.randrange(1, 20)):
                content[generator.randrange(4, len(content))] = generator.randrange(256)
    return bytes(content)


async def send_fuzzed(port: int, files: int, seed: int) -> Counter[int]:
    """The answers to so many fuzzed files, over four connections."""
    honest, generator, answered = honest_file(), random.Random(seed), Counter[int]()
    rows = [json.loads(line) for line in honest.splitlines()]
    csv = "\n".join(["trajectory_id,success", *(f"{row['trajectory_id']},yes" for row in rows)]).encode()
    seeds, left = [honest, csv, parquet_file(1_000), honest * 4], iter(range(files))

    async def one() -> None:
        connection = Connection(port, "127.0.0.1")
        for _ in left:
            answered[await connection.ask(form(port, fuzzed(seeds, generator)))] += 1

    await asyncio.gather(*(one() for _ in range(4)))
    return answered


def memory(pid: int) -> int:
    return sum(map(resident, family(pid)))


def server_errors(statuses: Counter[int]) -> int:
    """Answers that no flood may bring about: 5xx but for 503."""
    return sum(number for status, number in statuses.items() if status >= 500 and status != 503)


def describe(phase: Phase) -> str:
    checks, health = at_95th(phase.checks), at_95th(phase.health)
    return f"a check {1000 * checks:7.0f} ms   /healthz {1000 * health:6.1f} ms at the 95th"


def run_floods(folder: Path, sizes: Sizes) -> bool:
    environment = {"ARB_STATE_DIR": str(folder / "state"), "ARB_LABELS": "none"}
    log = folder / "flood.log"
    with free_port() as port, serving(log, ["space", "serve"], port, ARB_PORT=str(port), **environment):
        asyncio.run(measure(port, QUICK, 0))  # what is made once is made now
        alone = asyncio.run(measure(port, sizes, 100))
        print(f"  alone                      {describe(alone)}", flush=True)
        holds = True
        for number, addresses in enumerate((1, CONNECTIONS)):
            phase, junk = flood(port, sizes, addresses, 300 + 200 * number)
            ratio = at_95th(phase.checks) / at_95th(alone.checks)
            errors = server_errors(junk + phase.statuses)
            print(
                f"  {CONNECTIONS} connections, addresses {addresses:<3} {describe(phase)}   ratio {ratio:.2f}"
            )
            print(f"    junk was answered {dict(sorted(junk.items()))}; 5xx but 503: {errors}", flush=True)
            honest = phase.statuses[200] == phase.statuses.total()
            if not honest:
                print(f"    honest requests were answered {dict(sorted(phase.statuses.items()))}")
            is_quick = at_95th(phase.health) < MOST_HEALTH_SECONDS
            holds = holds and ratio <= MOST_TIMES_ALONE and is_quick and not errors and honest
    print(
        f"  targets: ratio at most {MOST_TIMES_ALONE:g}, /healthz under {1000 * MOST_HEALTH_SECONDS:.0f} ms, "
        "no 5xx but 503"
    )
    return holds


def run_fuzzed(folder: Path, sizes: Sizes) -> bool:
    environment = {
        "ARB_STATE_DIR": str(folder / "fuzzed"), "ARB_LABELS": "none", "ARB_CHECKS_A_MINUTE": "1000000",
    }  # fmt: skip
    log = folder / "fuzzed.log"
    with free_port() as port, serving(log, ["space", "serve"], port, ARB_PORT=str(port), **environment):
        pid = _server_on(port)
        answered = asyncio.run(send_fuzzed(port, sizes.first_files, 1))
        before = memory(pid)
        answered += asyncio.run(send_fuzzed(port, sizes.files, 2))
        more, errors = memory(pid) - before, server_errors(answered)
    print(
        f"  {answered.total():,} fuzzed files were answered {dict(sorted(answered.items()))}; "
        f"5xx but 503: {errors}"
    )
    print(
        f"  memory of all processes {before / 1e6:.0f} MB after {sizes.first_files:,}, "
        f"then {more / 1e6:+.0f} MB",
        end=" ",
    )
    print(f"(target: at most {MOST_MORE_BYTES / 1e6:+.0f})")
    return more <= MOST_MORE_BYTES and not errors


def _server_on(port: int) -> int:
    """The child of this process that listens there: the only one there is."""
    import os

    (child, *_) = [pid for pid in family(os.getpid()) if pid != os.getpid()]
    return child


def main() -> bool:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few checks and files, to see that it works")
    parser.add_argument("--junk", type=int, metavar="PORT", help=argparse.SUPPRESS)
    parser.add_argument("--addresses", type=int, default=1, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.junk:
        junk_process(options.junk, options.addresses)
        return True
    sizes = QUICK if options.quick else FULL
    with tempfile.TemporaryDirectory() as folder:
        floods = run_floods(Path(folder), sizes)
        return run_fuzzed(Path(folder), sizes) and floods


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
