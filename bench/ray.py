"""Measure the cost of judging over a cluster: ``python -m bench.ray`` (``--quick``: 500 and 2,000 judgments).

For each number of one-call judgments (``--sizes``) a dataset is made and judged by `judges run --engine ray`
over HTTP on loopback, with a server that answers immediately. The benchmark prints seconds, CPU seconds of
the driver and of all processes, and the peak memory of each kind of process.
"""

import argparse
import csv
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from bench.support.processes import family
from tests.support.llm_server.process import LLMProcess

SIZES, QUICK = (1_300, 13_000), (500, 2_000)
IN_FLIGHT = 64
FILE_ROWS, GROUP_ROWS = 100_000, 1_000
ROLES = ("JudgeWorker",)
_TICKS = os.sysconf("SC_CLK_TCK")


def make_dataset(folder: Path, number: int) -> None:
    """Make a dataset of ``number`` text runs in ``folder/data``, and its suite in ``folder/suite``."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from dataset_script.by_id import write_index
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
    write_index(folder / "data", (("trajectories", "test", name) for name in files))
    manifest = {"format": 1, "suite": "suite", "files": files}
    (folder / "data" / "manifest.json").write_text(json.dumps(manifest))


def _row(index: int, columns: list[str]) -> dict:
    step = {"num": 0, "url": "http://shop.example/", "action": f"click('{index}')", "reasoning": "Next."}
    known = {
        "trajectory_id": f"webarena/agent/webarena.{index:09d}", "benchmark": "webarena", "agent": "agent",
        "goal": f"Find the price of item {index}. " * 8, "steps": [step, {"num": 1, "url": "http://shop.example/end"}],
    }  # fmt: skip
    return {name: known.get(name) for name in columns}


def judge(folder: Path, base_url: str) -> None:
    """Judge the dataset in ``folder/data`` on Ray. The parent process measures this one as the driver."""
    from arb.judges.cli.options import RunOptions
    from arb.judges.ray.run import run_on_ray
    from arb.judges.run.config import build_config

    options = RunOptions(
        judge="simplified-neither", model="m", provider="any", base_url=base_url, max_in_flight=IN_FLIGHT,
        suite=str(folder / "suite"), source=folder / "data", split="test", cache=folder / "cache",
    )  # fmt: skip
    outcome = run_on_ray(build_config(options), folder / "out")
    if outcome.ended.how != "finished":
        raise SystemExit(outcome.ended.message)


@dataclass
class Measured:
    """The seconds and CPU seconds of a run, and the peak memory of each kind of process in MB."""

    seconds: float = 0.0
    driver_cpu: float = 0.0
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


def measured(folder: Path, base_url: str) -> Measured:
    """Run `judge` in a separate process, and measure it and all processes that it starts."""
    found, begun = Measured(), time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.ray", "--judge", str(folder), base_url],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "OPENAI_API_KEY": "none"},
    )  # fmt: skip
    messages: list[str] = []
    reader = threading.Thread(target=lambda: messages.extend(process.stderr))
    reader.start()
    while process.poll() is None:
        found.sample(process.pid)
        time.sleep(0.5)
    reader.join()
    found.seconds = time.perf_counter() - begun
    found.driver_cpu = found.cpu.get(process.pid, 0.0)
    if process.returncode:
        raise SystemExit("".join(messages[-30:]))
    return found


def main(arguments: list[str] | None = None) -> int:
    """Print the figures of each size."""
    parser = argparse.ArgumentParser(prog="python -m bench.ray", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="make few calls")
    parser.add_argument("--sizes", type=int, nargs="*", help="numbers of judgments")
    parser.add_argument("--judge", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.judge:
        judge(Path(options.judge[0]), options.judge[1])
        return 0
    with tempfile.TemporaryDirectory(prefix="bench-ray-") as root:
        for size in options.sizes or (QUICK if options.quick else SIZES):
            folder = Path(root) / str(size)
            make_dataset(folder, size)
            with LLMProcess() as server:
                one = measured(folder, server.base_url)
            peaks = ", ".join(f"{role} {mb:,.0f}" for role, mb in sorted(one.peak.items()) if role != "other")
            print(
                f"{size:,} calls: {one.seconds:,.0f} s, {one.driver_cpu:,.0f} CPU s of the driver, "
                f"{one.cpu_seconds:,.0f} CPU s of all; peak MB: {peaks}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
