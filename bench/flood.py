"""Measure how a flood of junk affects other users: ``python -m bench.flood`` (``--quick`` for a quick look).

1. The first Space has the shipped suite and the default settings. An honest reader checks a file of real size
   again and again through REST, MCP and Gradio, each time from a new address, and asks for ``/healthz`` ten
   times per second. This is measured without and with a flood: 30 connections send junk through every door
   (REST, Gradio upload, Gradio call, MCP, estimate), from one address and from 30 addresses. The clients of
   the flood run in a process of lower priority, so that they do not take the processors from the server.
   Printed are the 95th percentile of an honest check and its ratio to that without a flood, the health check,
   the responses to the junk, and the memory of all processes of the server before and after. The addresses
   are in 127.0.0.0/8, which works on Linux only.
2. The second Space has no limit on checks. It gets fuzzed files (correct files with bytes changed, cut off or
   doubled). The memory of all its processes afterwards is compared with that after the first few hundred.

``--minutes 10 --most-mb 512`` floods one Space for ten minutes instead. The Space may use that much memory: a
control group enforces it, or the resident memory of all processes is watched if no group can be made. The
command fails if the Space ends, exceeds the memory, answers 5xx other than 503, or refuses an honest check.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.space import at_95th, free_port, serving
from bench.support.flood_requests import (
    DOORS,
    Connection,
    form,
    honest_file,
    junk,
    junk_files,
    parquet_file,
    request,
    turns,
)
from bench.support.memory_limit import entering, memory_group
from bench.support.processes import family, resident

MOST_TIMES_ALONE: Final = 2.0
MOST_HEALTH_SECONDS: Final = 0.050
MOST_MORE_BYTES: Final = 50_000_000
CONNECTIONS: Final = 30
SLOW_EVERY: Final = 10
"""One connection in this many sends a form slowly."""
JUNK_NICENESS: Final = 10
RECONNECT_SECONDS: Final = 0.05
"""The pause of a client whose connection was closed or refused."""
HEALTH_EVERY_SECONDS: Final = 0.1
SETTLING_SECONDS: Final = 90.0
"""Seconds within which the Space has to release memory after a flood."""
HONEST, JUNK, HEALTH = "127.1.{}.{}", "127.2.{}.{}", "127.3.0.1"
LIMIT_SECONDS: Final = 300.0


@dataclass(frozen=True)
class Sizes:
    """Numbers of honest checks per door and phase, and of fuzzed files before and after memory is read."""

    checks: int
    first_files: int
    files: int


FULL = Sizes(checks=60, first_files=500, files=5_000)
QUICK = Sizes(checks=5, first_files=50, files=200)


async def send_junk(port: int, addresses: int, ended: asyncio.Event) -> dict[str, Counter[int]]:
    """Send junk over 30 connections, spread over the doors, until ``ended`` is set.

    Returns:
        The number of answers by status for each door. Status 0 means that there was no answer.
    """
    doors = junk(port)
    slow, answered = form(port, ("file", "a", junk_files()[0])), {name: Counter[int]() for name in doors}

    async def one(number: int) -> None:
        name = list(doors)[number % len(doors)]
        connection, sends = (
            Connection(port, JUNK.format(addresses, 2 + number % addresses)),
            turns(doors[name], number),
        )
        while not ended.is_set():
            if number % SLOW_EVERY == 0:
                answer = await connection.ask_slowly(slow, ended)
            else:
                answer = await next(sends)(connection)
            answered[name][answer.status] += 1
            if not answer.status:
                await asyncio.sleep(RECONNECT_SECONDS)

    await asyncio.gather(*map(one, range(CONNECTIONS)))
    return answered


@dataclass(frozen=True)
class Phase:
    """Seconds of honest checks by door, seconds of health checks, and the statuses of both."""

    checks: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in DOORS})
    health: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)

    @property
    def is_answered(self) -> bool:
        """Return whether every honest request got 200."""
        return self.statuses[200] == self.statuses.total()


def honest_addresses() -> Iterator[str]:
    """Yield loopback addresses for honest checks, each of them once."""
    return (HONEST.format(high, low) for high in range(256) for low in range(1, 255))


async def measure(port: int, addresses: Iterator[str], is_over: Callable[[int], bool]) -> Phase:
    """Make honest checks one after another, and health checks meanwhile, until ``is_over(rounds)``."""
    content, found, ended = honest_file(), Phase(), asyncio.Event()

    async def ask_health() -> None:
        connection, health = Connection(port, HEALTH), request(port, "GET", "/healthz")
        while not ended.is_set():
            begun = time.perf_counter()
            found.statuses[(await connection.ask(health)).status] += 1
            found.health.append(time.perf_counter() - begun)
            await asyncio.sleep(HEALTH_EVERY_SECONDS)

    asking, rounds = asyncio.create_task(ask_health()), 0
    while not is_over(rounds):
        rounds += 1
        for name, check in DOORS.items():
            connection = Connection(port, next(addresses))
            begun = time.perf_counter()
            found.statuses[(await check(connection, content)).status] += 1
            found.checks[name].append(time.perf_counter() - begun)
            connection.close()
    ended.set()
    await asking
    return found


async def start_parsers(port: int) -> None:
    """Make the server start all its processes for reading files, which it then keeps running."""
    content = form(port, ("file", "a", parquet_file(40_000)))
    await asyncio.gather(*(Connection(port, HEALTH).ask(content) for _ in range(4)))


@contextmanager
def flooding(port: int, addresses: int) -> Iterator[dict[str, Counter[int]]]:
    """Send junk from a separate process during the block. The yielded counts are filled in at its end."""
    command = [sys.executable, "-m", "bench.flood", "--junk", str(port), "--addresses", str(addresses)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    answered: dict[str, Counter[int]] = {}
    try:
        process.stdout.readline()  # wait until it sends
        time.sleep(3.0)
        yield answered
        output, _ = process.communicate("end\n", timeout=LIMIT_SECONDS)
    finally:
        process.kill()
        process.wait()
    for name, statuses in json.loads(output).items():
        answered[name] = Counter({int(status): number for status, number in statuses.items()})


def junk_process(port: int, addresses: int) -> None:
    """Send junk until a line arrives on standard input, then print the responses."""
    os.nice(JUNK_NICENESS)

    async def send() -> dict[str, Counter[int]]:
        ended = asyncio.Event()
        print("sending", flush=True)
        sending = asyncio.create_task(send_junk(port, addresses, ended))
        await asyncio.to_thread(sys.stdin.readline)
        ended.set()
        return await sending

    print(json.dumps(asyncio.run(send())))


def fuzzed(seeds: Sequence[bytes], generator: random.Random) -> bytes:
    """Return one of the correct ``seeds``, cut off, with a part repeated, or with some bytes changed."""
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
    """Send ``files`` fuzzed files over four connections, and return the number of responses by status."""
    honest, generator, answered = honest_file(), random.Random(seed), Counter[int]()
    rows = [json.loads(line) for line in honest.splitlines()]
    csv = "\n".join(["trajectory_id,success", *(f"{row['trajectory_id']},yes" for row in rows)]).encode()
    seeds, left = [honest, csv, parquet_file(1_000), honest * 4], iter(range(files))

    async def one() -> None:
        connection = Connection(port, "127.0.0.1")
        for _ in left:
            content = fuzzed(seeds, generator)
            answered[(await connection.ask(form(port, ("file", "verdicts", content)))).status] += 1

    await asyncio.gather(*(one() for _ in range(4)))
    return answered


def memory(pid: int) -> int:
    """Return the resident bytes of a process and of all processes that it started."""
    return sum(map(resident, family(pid)))


def memory_within(pid: int, most: int, seconds: float = SETTLING_SECONDS) -> int:
    """Wait up to ``seconds`` until the memory is at most ``most`` bytes, and return the memory."""
    deadline = time.monotonic() + seconds
    while (found := memory(pid)) > most and time.monotonic() < deadline:
        time.sleep(1.0)
    return found


def server_errors(statuses: Counter[int]) -> int:
    """Return the number of 5xx responses other than 503, which no flood may cause."""
    return sum(number for status, number in statuses.items() if status >= 500 and status != 503)


def print_phase(title: str, phase: Phase, alone: Phase | None = None) -> bool:
    """Print a phase with its ratios to the phase without a flood; return whether it meets the targets."""
    holds = phase.is_answered
    parts = []
    for name, seconds in phase.checks.items():
        parts.append(f"{name} {1000 * at_95th(seconds):5.0f} ms")
        if alone is not None:
            ratio = at_95th(seconds) / at_95th(alone.checks[name])
            holds = holds and ratio <= MOST_TIMES_ALONE
            parts.append(f"(x {ratio:.2f})")
    health = at_95th(phase.health)
    print(
        f"  {title:<28} {'  '.join(parts)}   /healthz {1000 * health:5.1f} ms (95th percentiles)", flush=True
    )
    if not phase.is_answered:
        print(f"    answers to honest requests: {dict(sorted(phase.statuses.items()))}")
    return holds and health < MOST_HEALTH_SECONDS


def print_junk(answered: dict[str, Counter[int]]) -> bool:
    """Print the responses to the junk by door; return whether none was an error of the server."""
    for name, statuses in answered.items():
        print(f"    answers to junk by {name:<9} {dict(sorted(statuses.items()))}")
    errors = sum(map(server_errors, answered.values()))
    print(f"    5xx other than 503: {errors}", flush=True)
    return errors == 0


def run_floods(folder: Path, sizes: Sizes) -> bool:
    """Flood a Space through every door; return whether the targets hold."""
    environment = {"ARB_STATE_DIR": str(folder / "state"), "ARB_LABELS": "none"}
    log, honest = folder / "flood.log", honest_addresses()
    with free_port() as port, serving(log, ["space", "serve"], port, ARB_PORT=str(port), **environment):
        pid = server_process()
        asyncio.run(measure(port, honest, lambda rounds: rounds == QUICK.checks))
        asyncio.run(start_parsers(port))
        before = memory(pid)
        alone = asyncio.run(measure(port, honest, lambda rounds: rounds == sizes.checks))
        print_phase("alone", alone)
        holds = True
        for addresses in (1, CONNECTIONS):
            with flooding(port, addresses) as answered:
                phase = asyncio.run(measure(port, honest, lambda rounds: rounds == sizes.checks))
            title = f"{CONNECTIONS} connections, {addresses} addresses"
            is_met = [print_phase(title, phase, alone), print_junk(answered)]
            holds = holds and all(is_met)
        after = memory_within(pid, before + MOST_MORE_BYTES)
    more = after - before
    print(
        f"  memory of all processes {before / 1e6:.0f} MB before, {more / 1e6:+.0f} MB after "
        f"(target: at most {MOST_MORE_BYTES / 1e6:+.0f})"
    )
    print(
        f"  targets: a check takes at most {MOST_TIMES_ALONE:g} times as long in a flood, /healthz under "
        f"{1000 * MOST_HEALTH_SECONDS:.0f} ms, no 5xx other than 503"
    )
    return holds and more <= MOST_MORE_BYTES


def run_fuzzed(folder: Path, sizes: Sizes) -> bool:
    """Send fuzzed files; return whether the memory stays the same and nothing fails."""
    environment = {
        "ARB_STATE_DIR": str(folder / "fuzzed"), "ARB_LABELS": "none", "ARB_CHECKS_A_MINUTE": "1000000",
    }  # fmt: skip
    log = folder / "fuzzed.log"
    with free_port() as port, serving(log, ["space", "serve"], port, ARB_PORT=str(port), **environment):
        pid = server_process()
        answered = asyncio.run(send_fuzzed(port, sizes.first_files, 1))
        before = memory(pid)
        answered += asyncio.run(send_fuzzed(port, sizes.files, 2))
        more, errors = memory(pid) - before, server_errors(answered)
    print(
        f"  answers to {answered.total():,} fuzzed files: {dict(sorted(answered.items()))}; "
        f"5xx other than 503: {errors}"
    )
    print(
        f"  memory of all processes {before / 1e6:.0f} MB after {sizes.first_files:,}, "
        f"then {more / 1e6:+.0f} MB",
        end=" ",
    )
    print(f"(target: at most {MOST_MORE_BYTES / 1e6:+.0f})")
    return more <= MOST_MORE_BYTES and not errors


def run_small(folder: Path, minutes: float, most_bytes: int) -> bool:
    """Flood a Space with little memory; return whether it survives within its memory."""
    environment = {
        "ARB_STATE_DIR": str(folder / "state"), "ARB_LABELS": "none", "ARB_MEMORY_MB": str(most_bytes >> 20),
    }  # fmt: skip
    log, honest, peaks, ended = folder / "small.log", honest_addresses(), [0], threading.Event()

    def watch(pid: int) -> None:
        while not ended.wait(0.5):
            peaks.append(memory(pid))

    with memory_group(most_bytes) as group, free_port() as port, serving(
        log, ["space", "serve"], port, entering(group), ARB_PORT=str(port), **environment
    ):  # fmt: skip
        pid = server_process()
        watching = threading.Thread(target=watch, args=(pid,))
        watching.start()
        try:
            with flooding(port, CONNECTIONS) as answered:
                deadline = time.monotonic() + 60 * minutes
                phase = asyncio.run(measure(port, honest, lambda _: time.monotonic() > deadline))
            is_met = [print_junk(answered), phase.is_answered]
        finally:
            ended.set()
            watching.join()
        survives, killed = server_process() == pid, 0 if group is None else group.killed()
    print_phase(f"{minutes:g} minutes of flood", phase)
    by = "enforced by a control group" if group is not None else "resident memory, watched"
    print(
        f"  the server {'survived' if survives else 'ended'}; memory of all processes at most "
        f"{max(peaks) / 1e6:.0f} of {most_bytes / 1e6:.0f} MB ({by}); {killed} processes killed for memory"
    )
    return survives and all(is_met) and (group is not None or max(peaks) <= most_bytes)


def server_process() -> int | None:
    """Return the only child of this process, the server, or None once it has ended."""
    children = [pid for pid in family(os.getpid()) if os.getpid() == _parent(pid)]
    return children[0] if children else None


def _parent(pid: int) -> int | None:
    try:
        state, parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
    except OSError:
        return None
    return None if state == "Z" else int(parent)


def main() -> bool:
    """Run the benchmark; return whether its targets hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="make few checks and files, as a smoke test")
    parser.add_argument("--minutes", type=float, help="flood one Space for so many minutes instead")
    parser.add_argument("--most-mb", type=int, default=512, help="with --minutes: memory of that Space in MB")
    parser.add_argument("--junk", type=int, metavar="PORT", help=argparse.SUPPRESS)
    parser.add_argument("--addresses", type=int, default=1, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.junk:
        junk_process(options.junk, options.addresses)
        return True
    sizes = QUICK if options.quick else FULL
    with tempfile.TemporaryDirectory() as folder:
        if options.minutes:
            return run_small(Path(folder), options.minutes, options.most_mb << 20)
        floods = run_floods(Path(folder), sizes)
        return run_fuzzed(Path(folder), sizes) and floods


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
