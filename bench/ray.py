"""Does judging over a cluster grow in a straight line? ``python -m bench.ray`` (``--quick``: 500 and 2,000).

For 13,000, 130,000 and 1,300,000 one-call judgments (``--sizes``) a dataset is made, and judged by `judges
run --engine ray` with an engine that answers in process. Printed are seconds, CPU seconds of all processes,
the most memory of the driver and of each kind of process, the bytes that the search for calls without an
answer reads when none, half and all of them are answered, and how CPU seconds grow from size to size: as they
are, and without what a run takes before its first call, which hides in the former that calls would cost more
in a large run.

A size can be run by itself: what was measured is kept in ``--results``, and the growth is that of all sizes
in it (``python -m bench.ray --sizes 1300000 --calls 0 --results ray.json``).

Then 24,000 calls (``--calls``) over HTTP on loopback: 200 ms each, one of eight workers ten times slower, a
tenth of the calls failing; and how much of the ideal rate is reached. That kills lose nothing is a test:
`tests/arb/judges/ray/test_run.py`.
"""

import argparse
import csv
import hashlib
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from bench.support.processes import family
from tests.support.llm_server.process import LLMProcess

SIZES, QUICK = (13_000, 130_000, 1_300_000), (500, 2_000)
MOST_EXPONENT = 1.05
MOST_DRIVER_MB = 500
LEAST_OF_IDEAL = 0.85
RESTARTED = 200_000
"""Of so many calls at most a run with all of them answered is made too, into a new folder."""

IN_FLIGHT_HERE = 512
"""Calls in flight with the engine in process, as with a large endpoint: the chunks of workers follow them."""

WORKERS, IN_FLIGHT, CALLS = 8, 64, 24_000
LATENCY_S, SLOWER, FAILING = 0.2, 10, 0.1
FILE_ROWS, GROUP_ROWS = 100_000, 1_000
SLOW_FOLDER = "ARB_BENCH_SLOW"
"""The first worker that makes a file in the folder of this variable is the slow one."""

REPLY = "<reasoning>It went as asked.</reasoning><success>Successful</success><side>No</side>"
KEYS_BYTES, FOOTER_BYTES = 36, 70_000
"""What the key of an answer takes at most to read, and what a file takes beside its keys."""

ROLES = ("pass_over", "AnswerWorker", "Planner", "Leases", "HashShuffle")
_TICKS = os.sysconf("SC_CLK_TCK")


def make_dataset(folder: Path, number: int) -> None:
    """A published dataset of text runs, ``folder/data``, and its suite, ``folder/suite``."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from dataset_script.schema import arrow_schema

    (folder / "data").mkdir(parents=True)
    (folder / "suite").mkdir()
    schema, files = arrow_schema("trajectories"), {}
    with (folder / "suite" / "trajectories.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("trajectory_id", "split"))
        for start in range(0, number, FILE_ROWS):
            rows = [_row(index, schema.names) for index in range(start, min(start + FILE_ROWS, number))]
            writer.writerows((row["trajectory_id"], "test") for row in rows)
            name = f"trajectories-{start:09d}.parquet"
            pq.write_table(
                pa.Table.from_pylist(rows, schema), folder / "data" / name, row_group_size=GROUP_ROWS
            )
            content = (folder / "data" / name).read_bytes()
            files[name] = {
                "configuration": "trajectories", "split": "test", "rows": len(rows), "bytes": len(content),
                "sha256": hashlib.sha256(content).hexdigest(),
            }  # fmt: skip
    manifest = {"format": 1, "suite": "suite", "files": files}
    (folder / "data" / "manifest.json").write_text(json.dumps(manifest))


def _row(index: int, columns: list[str]) -> dict:
    step = {"num": 0, "url": "http://shop.example/", "action": f"click('{index}')", "reasoning": "Next."}
    known = {
        "trajectory_id": f"webarena/agent/webarena.{index:09d}", "benchmark": "webarena", "agent": "agent",
        "goal": f"Find the price of item {index}. " * 8, "steps": [step, {"num": 1, "url": "http://shop.example/end"}],
    }  # fmt: skip
    return {name: known.get(name) for name in columns}


class InProcess:
    """An endpoint that answers at once."""

    async def attempt(self, model, messages, max_output_tokens, *, unsupported_params=frozenset()):
        from arb.judges.types import Reply

        return Reply(REPLY, input_tokens=500, output_tokens=20, latency_s=0.0, model=model.model)

    async def close(self) -> None: ...


@asynccontextmanager
async def in_process(models, **_):
    yield dict.fromkeys(models, InProcess())


@asynccontextmanager
async def with_a_slow_worker(models, **more):
    """The endpoints over HTTP; in one of the workers calls take ten times as long. Each worker notes when its
    calls began and ended, and how many it made.
    """
    import asyncio

    from arb.judges.engine.engine import open_endpoints

    folder = Path(os.environ[SLOW_FOLDER])
    try:
        os.close(os.open(folder / "slow", os.O_CREAT | os.O_EXCL))
        is_slow = True
    except FileExistsError:
        is_slow = False
    with (folder / f"times-{os.getpid()}").open("a") as noted:
        async with open_endpoints(models, **more) as endpoints:
            for endpoint in set(endpoints.values()):
                attempt = endpoint.attempt

                async def timed(*arguments, attempt=attempt, **named):
                    begun = time.time()
                    await asyncio.sleep(LATENCY_S * (SLOWER - 1) if is_slow else 0.0)
                    try:
                        return await attempt(*arguments, **named)
                    finally:
                        noted.write(f"{int(is_slow)} {begun} {time.time()}\n")
                        noted.flush()

                endpoint.attempt = timed
            yield endpoints


def judge(folder: Path, out: Path, base_url: str | None) -> None:
    """Judge the dataset of the folder: the process that is measured as the driver."""
    from arb.judges.cli.options import RunOptions
    from arb.judges.ray.run import run_on_ray
    from arb.judges.run.config import build_config

    options = RunOptions(
        judge="simplified-neither", model="m", provider="any", base_url=base_url or "http://127.0.0.1:1/v1",
        suite=str(folder / "suite"), source=folder / "data", split="test", cache=folder / "cache",
        max_in_flight=IN_FLIGHT if base_url else IN_FLIGHT_HERE,
    )  # fmt: skip
    endpoints = with_a_slow_worker if base_url else in_process
    outcome = run_on_ray(
        build_config(options), out, workers=WORKERS if base_url else None, endpoints=endpoints
    )
    if outcome.ended.how != "finished":
        raise SystemExit(outcome.ended.message)


@dataclass
class Measured:
    """Of one run: seconds, CPU seconds, and the most memory of a process of each kind, in MB."""

    seconds: float = 0.0
    cpu: dict[int, float] = field(default_factory=dict)
    peak: dict[str, float] = field(default_factory=dict)

    @property
    def cpu_seconds(self) -> float:
        return sum(self.cpu.values())

    def sample(self, pid: int) -> None:
        for each in family(pid):
            try:
                fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
                status = Path(f"/proc/{each}/status").read_text()
                name = Path(f"/proc/{each}/cmdline").read_text()
            except (OSError, IndexError):
                continue
            self.cpu[each] = (int(fields[11]) + int(fields[12])) / _TICKS
            role = "driver" if each == pid else next((role for role in ROLES if role in name), "other")
            mb = next((int(line.split()[1]) / 1e3 for line in status.splitlines() if "VmHWM" in line), 0.0)
            self.peak[role] = max(self.peak.get(role, 0.0), mb)


def measured(folder: Path, out: Path, base_url: str | None = None) -> Measured:
    """Run `judge` in a process of its own and watch it, and all that it starts."""
    found, begun = Measured(), time.perf_counter()
    command = [sys.executable, "-m", "bench.ray", "--judge", str(folder), str(out)]
    process = subprocess.Popen(
        [*command, *([base_url] if base_url else [])], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env={**os.environ, SLOW_FOLDER: str(folder)}, text=True,
    )  # fmt: skip
    messages: list[str] = []
    reader = threading.Thread(target=lambda: messages.extend(process.stderr))
    reader.start()
    while process.poll() is None:
        found.sample(process.pid)
        time.sleep(0.5)
    reader.join()
    found.seconds = time.perf_counter() - begun
    if process.returncode:
        raise SystemExit("".join(messages[-30:]))
    return found


def bytes_of_restart(folder: Path, share: float) -> tuple[int, int, bool]:
    """The bytes that the search for calls reads with the answers of a share of the partitions there, those of
    the files, and whether keys alone can have been read.
    """
    from arb.judges.engine.answers import PARTITIONS, AnswerStore

    store = AnswerStore(str(folder / "cache" / "answers"))
    keys = sum(len(store.keys(partition)) for partition in range(int(PARTITIONS * share)))
    files = [name for name in store.place.files("answers") if int(name.split("/")[1], 16) < 256 * share]
    there = sum(Path(store.place.path(name)).stat().st_size for name in files)
    return (
        store.place.bytes_read,
        there,
        store.place.bytes_read <= keys * KEYS_BYTES + len(files) * FOOTER_BYTES,
    )


def bench_size(root: Path, size: int) -> dict:
    """Measure a size and print it; returns what is kept of it."""
    folder = root / str(size)
    make_dataset(folder, size)
    one = measured(folder, folder / "out")
    peaks = ", ".join(f"{role} {mb:,.0f}" for role, mb in sorted(one.peak.items()) if role != "other")
    print(
        f"{size:,} calls: {one.seconds:,.0f} s, {one.cpu_seconds:,.0f} CPU s; MB at most: {peaks}", flush=True
    )
    keys_alone = True
    for share in (0.0, 0.5, 1.0):
        read, there, are_keys = bytes_of_restart(folder, share)
        keys_alone = keys_alone and are_keys
        print(f"  {share:4.0%} answered: {read / 1e6:,.1f} MB of {there / 1e6:,.1f} MB are read for keys")
    if size <= RESTARTED:
        again = measured(folder, folder / "again")
        print(f"  all answered, in a new folder: {again.seconds:,.0f} s, {again.cpu_seconds:,.0f} CPU s")
    shutil.rmtree(folder)
    return {"seconds": one.seconds, "cpu_seconds": one.cpu_seconds, "mb": one.peak, "keys_alone": keys_alone}


def bench_sizes(root: Path, sizes: list[int], results: Path | None) -> bool:
    """Measure each size, and print the growth over all that were measured; whether the targets hold."""
    found: dict[int, dict] = {}
    if results is not None and results.exists():
        found = {int(size): one for size, one in json.loads(results.read_text()).items()}
    for size in sizes:
        found[size] = bench_size(root, size)
        if results is not None:
            results.write_text(json.dumps(found, indent=1))
    cpu = {size: one["cpu_seconds"] for size, one in sorted(found.items())}
    exponents, steps = [], []
    for small, large in pairwise(cpu):
        exponents.append(math.log(cpu[large] / cpu[small]) / math.log(large / small))
        steps.append((large, (cpu[large] - cpu[small]) / (large - small)))
        print(
            f"from {small:,} to {large:,}: CPU time grows by the power of {exponents[-1]:.2f}, "
            f"{steps[-1][1] * 1e3:.2f} ms for each further call"
        )
    for (small, before), (large, after) in pairwise(steps):
        exponents.append(1 + math.log(after / before) / math.log(large / small))
        print(f"up to {large:,}, without the start of a run: by the power of {exponents[-1]:.2f}")
    print(f"targets: power at most {MOST_EXPONENT}, driver at most {MOST_DRIVER_MB} MB, keys alone are read")
    return all(
        (
            *(each <= MOST_EXPONENT for each in exponents),
            *(one["mb"]["driver"] <= MOST_DRIVER_MB and one["keys_alone"] for one in found.values()),
        )
    )


def bench_http(root: Path, calls: int) -> bool:
    """Measure the rate over HTTP from the first call to the last; whether the target holds.

    Ideal is that from the first to the last as many calls are in flight as may be; those that fail take as
    long as the others, and are among them.
    """
    folder = root / "http"
    make_dataset(folder, calls)
    with LLMProcess(latency_s=LATENCY_S, rates={"server_error": FAILING}) as server:
        measured(folder, folder / "out", server.base_url)
    noted = [line.split() for path in folder.glob("times-*") for line in path.read_text().splitlines()]
    seconds = max(float(end) for *_, end in noted) - min(float(begin) for _, begin, _ in noted)
    slow = sum(each == "1" for each, *_ in noted)
    part = IN_FLIGHT / WORKERS
    ideal = (part * (WORKERS - 1) + part / SLOWER) / LATENCY_S
    share = len(noted) / seconds / ideal
    print(
        f"{calls:,} calls over HTTP in {seconds:.0f} s, one of {WORKERS} workers {SLOWER} times slower, "
        f"which had {slow:,}, {len(noted) - calls:,} failed: {share:.2f} of the ideal {ideal:.0f} a second "
        f"(target {LEAST_OF_IDEAL})"
    )
    return share >= LEAST_OF_IDEAL


def main(arguments: list[str] | None = None) -> int:
    """Print the figures; 1 when a target is missed; ``--quick`` makes too few calls to judge by."""
    parser = argparse.ArgumentParser(prog="python -m bench.ray", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few calls, no targets")
    parser.add_argument("--sizes", type=int, nargs="*", help="how many judgments")
    parser.add_argument("--calls", type=int, default=CALLS, help="over HTTP; 0: none")
    parser.add_argument("--results", type=Path, help="keeps the figures of sizes between runs")
    parser.add_argument("--judge", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.judge:
        folder, out, *base_url = options.judge
        judge(Path(folder), Path(out), base_url[0] if base_url else None)
        return 0
    sizes = list(QUICK if options.quick else SIZES) if options.sizes is None else options.sizes
    with tempfile.TemporaryDirectory(prefix="bench-ray-") as folder:
        holds = [bench_sizes(Path(folder), sizes, options.results)]
        if calls := min(options.calls, 200) if options.quick else options.calls:
            holds.append(bench_http(Path(folder), calls))
    if options.quick:
        return 0
    print("every target holds" if all(holds) else "a target is MISSED")
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
