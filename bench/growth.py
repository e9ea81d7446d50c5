"""Check that the Space stays fast when it grows: ``python -m bench.growth`` (``--quick``: 20 and 300 rows).

A Space is started on made-up records of 20, 300 and 1,000 scored submissions. Then new judges are sent one
after another, each from its own account. The benchmark measures the seconds from the upload to the ranked row
(`POST /api/submissions`, then the table with the row in it), and of `GET /` for the first reader afterwards
and for later readers. It prints 95th percentiles, their ratios to those of 20 rows, the time from the start
to the first page, the final memory of the server, and the time for computing the ranks only.
"""

import argparse
import os
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import httpx2
import numpy as np

from bench.space import at_95th, free_port, serving
from bench.support.space_records import fill_records, verdict_file

SIZES, QUICK = (20, 300, 1_000), (20, 300)
MOST_TIMES, MOST_TIMES_UP_TO = 1.5, 300
"""Up to this many rows, an upload may take this many times as long."""
MOST_SECONDS, DESIGNED_FOR = 2.0, 1_000
"""Up to this many rows, an upload is ranked within this many seconds; larger boards have no target."""
READERS = 20
"""The number of readers who open the page after each new row."""
TASKS = 50
"""The number of tasks in `ranks_seconds`."""
FIRST_TIMED = 1_000_000
"""The lowest seed of a timed judge's verdicts, so that they differ from those of all recorded judges."""


@dataclass
class Measured:
    """Seconds of the start, of uploads and of page loads at one size, and the server's final memory in MB."""

    start: float = 0.0
    ranked: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    readers: list[float] = field(default_factory=list)
    memory: float = 0.0


def measure(folder: Path, n_rows: int, n_uploads: int) -> Measured:
    """Measure uploads to a Space with ``n_rows`` submissions, and loads of its first page."""
    from arb.core.settings import Settings
    from submissions.app import SubmissionsApp

    state = folder / str(n_rows)
    begun = time.perf_counter()
    fill_records(state, n_rows)
    print(f"{n_rows:,} submissions: records written in {time.perf_counter() - begun:.0f} s", flush=True)
    labels = SubmissionsApp(Settings(state_dir=state)).labels_for_public_figures()
    found = Measured()
    begun = time.perf_counter()
    environment = {"ARB_STATE_DIR": str(state), "ARB_CHECKS_A_MINUTE": "10000"}
    log = folder / f"space-{n_rows}.log"
    with (
        free_port() as port,
        serving(log, ["space", "serve"], port, ARB_PORT=str(port), **environment) as url,
        httpx2.Client(base_url=url, timeout=300, trust_env=False) as client,
    ):
        client.get("/").raise_for_status()
        found.start = time.perf_counter() - begun
        run = f"{os.getpid()}-{n_rows}"
        for number in range(n_uploads + 1):
            content = verdict_file(labels, FIRST_TIMED + time.time_ns() % 10**9 + number)
            seconds = _upload(client, content, f"timed-{run}-{number}")
            pages = [_seconds(client, "/") for _ in range(READERS)]
            if number:  # the first one has to import modules
                found.ranked.append(seconds)
                found.first.append(pages[0])
                found.readers += pages[1:]
        found.memory = _memory_of_children() / 1e6
    return found


def ranks_seconds(n_rows: int) -> float:
    """Return the seconds for the ranks of this many judges."""
    from arb.core.suites.targets import default_targets
    from leaderboard.board.ranks import RankingData, rank_cells

    generator = np.random.default_rng(0)
    right = generator.binomial(3, generator.uniform(0.2, 0.95, (n_rows, 1)), (n_rows, TASKS))
    wrong = generator.binomial(2, 0.5, right.shape)
    counts = {f"{row}": {"success": np.stack([right[row], wrong[row]], axis=1)} for row in range(n_rows)}
    cells = {}
    for name, judge in counts.items():
        tp, fp = judge["success"].sum(axis=0)
        cells[name] = {"precision": tp / (tp + fp), "precision_ci": None}
    best_first = dict(sorted(cells.items(), key=lambda each: -each[1]["precision"]))
    begun = time.perf_counter()
    rank_cells(best_first, default_targets()[0], "precision", RankingData(counts))
    return time.perf_counter() - begun


def _upload(client: httpx2.Client, content: bytes, name: str) -> float:
    """Upload a file, and return the seconds until the judge of this name is in the table."""
    form = {"account": name, "judge": name, "kind": "Other", "inputs": "tree", "test_labels_used": "no"}
    begun = time.perf_counter()
    answer = client.post("/api/submissions", data=form, files={"file": ("verdicts.csv", content)})
    answer.raise_for_status()
    row = f'data-row="{answer.json()["submission_id"]}"'
    while row not in client.get("/board/rows", params={"q": name}).raise_for_status().text:
        time.sleep(0.01)
    return time.perf_counter() - begun


def _seconds(client: httpx2.Client, path: str) -> float:
    begun = time.perf_counter()
    client.get(path).raise_for_status()
    return time.perf_counter() - begun


def _memory_of_children() -> float:
    """Return the resident bytes of the processes that this one started (Linux)."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    lines = [line for child in children for line in Path(f"/proc/{child}/status").read_text().splitlines()]
    return sum(1024.0 * int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def report(found: dict[int, Measured]) -> bool:
    """Print a line for each size; return whether the ratios hold."""
    base, holds = found[min(found)], True
    print(f"\n{'rows':>8}{'upload to ranked row':>30}{'GET / after it':>24}{'GET / of readers':>24}", end="")
    print(f"{'start':>10}{'memory':>10}")
    for n_rows, one in sorted(found.items()):
        print(f"{n_rows:>8,}", end="")
        for name, width in (("ranked", 30), ("first", 24), ("readers", 24)):
            seconds, ratio = getattr(one, name), at_95th(getattr(one, name)) / at_95th(getattr(base, name))
            text = f"{1000 * median(seconds):.0f} / {1000 * at_95th(seconds):.0f} ms x{ratio:.2f}"
            print(f"{text:>{width}}", end="")
            if name == "readers" or (name == "ranked" and n_rows <= MOST_TIMES_UP_TO):
                holds = holds and ratio <= MOST_TIMES
        if n_rows <= DESIGNED_FOR:
            holds = holds and at_95th(one.ranked) <= MOST_SECONDS
        print(f"{one.start:>8.1f} s{one.memory:>7,.0f} MB")
    print(
        f"Cells: median / 95th percentile; x: ratio of the 95th percentile to that of {min(found)} rows.\n"
        f"Targets: at most x{MOST_TIMES} for readers, and for uploads up to {MOST_TIMES_UP_TO:,} rows; "
        f"uploads within {MOST_SECONDS:g} s up to {DESIGNED_FOR:,} rows."
    )
    return holds


def main(arguments: list[str] | None = None) -> int:
    """Print the figures; return 1 if a target is missed. ``--quick`` checks no targets."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="use few rows and uploads, and no targets")
    parser.add_argument("--sizes", type=int, nargs="+", help="numbers of submissions")
    parser.add_argument("--uploads", type=int, default=20, help="number of judges to send and time")
    parser.add_argument("--folder", type=Path, help="folder to keep the records in, for the next run")
    options = parser.parse_args(arguments)
    sizes = options.sizes or (QUICK if options.quick else SIZES)
    with tempfile.TemporaryDirectory(prefix="bench-growth-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        uploads = 3 if options.quick else options.uploads
        holds = report({n_rows: measure(folder, n_rows, uploads) for n_rows in sizes})
    for n_rows in sizes:
        print(f"ranks of {n_rows:,} judges: {ranks_seconds(n_rows):.2f} s")
    if options.quick:
        return 0
    print("All targets are met." if holds else "At least one target was MISSED.")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
