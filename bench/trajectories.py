"""Measure how fast a trajectory opens: ``python -m bench.trajectories`` (4 GB on disk, a few minutes).

It makes a dataset of the official suite's 1,302 trajectories, with made-up pages of the released sizes (21
steps and 150 kB per screenshot on average), and serves it. Then it opens 200 trajectories for the first time:
the story with its first picture over HTTP, and in Chromium from the click to the picture on the screen. For
comparison, it reads the whole test split of `steps` with pandas and with datasets to get the rows of one
trajectory. ``--quick`` uses a few trajectories and small pictures, and has no targets.
"""

import argparse
import http.client
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlencode

from arb.core.suite import load_suite
from bench.support.processes import watch
from bench.support.readers import chromium_path
from dataset_script.sources.published import PublishedDataset
from tests.support.ports import hold_port, port_of
from tests.support.synthetic_dataset import Shape, make_dataset

OPENS_MILLISECONDS = 300
MOST_BYTES = 1_000_000_000
LOOKS_MILLISECONDS = 800
"""How long a reader looks at a trajectory, while its thumbnails arrive."""

RELEASED = Shape(pages=60, tree_characters=20_000, picture_format="PNG", noise=33_000)
QUICK = Shape(pages=10, tree_characters=3_000)

PANDAS = """
import sys, time
import pandas
begun = time.perf_counter()
table = pandas.concat([pandas.read_parquet(file) for file in sys.argv[2:]])
rows = table[table["trajectory_id"] == sys.argv[1]]
print(len(rows), time.perf_counter() - begun)
"""
DATASETS = """
import sys, tempfile, time
import datasets
datasets.disable_progress_bars()
begun = time.perf_counter()
with tempfile.TemporaryDirectory() as cache:
    table = datasets.load_dataset("parquet", data_files=sys.argv[2:], split="train", cache_dir=cache)
    places = [place for place, found in enumerate(table["trajectory_id"]) if found == sys.argv[1]]
    rows = table.select(places).with_format("arrow")[:]
    print(rows.num_rows, time.perf_counter() - begun)
"""


@contextmanager
def space_over(data: Path, state: Path) -> Iterator[tuple[int, int]]:
    """Start a Space that shows this dataset, and yield its port and its process id."""
    held = hold_port()
    port = port_of(held)
    environment = {"ARB_DATA_DIR": str(data), "ARB_STATE_DIR": str(state), "ARB_PORT": str(port)}
    process = subprocess.Popen(
        [sys.executable, "-m", "space", "serve"],
        env={**os.environ, **environment, "ARB_LABELS": "none", "GRADIO_ANALYTICS_ENABLED": "False"},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/trajectories", timeout=60).read()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
        yield port, process.pid
    finally:
        process.kill()
        process.wait()
        held.close()


def memory(pid: int) -> tuple[int, int]:
    """Return the resident bytes of a process, now and at its peak."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    found = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if line.startswith("Vm")}
    return found["VmRSS"], found["VmHWM"]


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds of a process and its threads, which do not depend on other load."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def open_over_http(port: int, ids: Sequence[str]) -> list[float]:
    """Open stories with their first pictures one after another; return the milliseconds of each."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    taken = []
    for trajectory_id in ids:
        begun = time.perf_counter()
        query = {"trajectory_id": trajectory_id, "num": 0, "width": 960}
        for path in (
            f"/trajectories?{urlencode({'id': trajectory_id})}",
            f"/api/screenshot?{urlencode(query)}",
        ):
            connection.request("GET", path)
            answer = connection.getresponse()
            if answer.status != 200 or not answer.read():
                raise AssertionError(f"{path}: {answer.status}")
        taken.append(1000 * (time.perf_counter() - begun))
    return taken


PICTURE_SEEN = """
async (id) => {
  for (;;) {
    const image = document.querySelector(".step:not([hidden]) .picture img");
    const is_there = document.querySelector(".story")?.dataset.trajectory === id;
    if (is_there && image?.complete && image.naturalWidth) return performance.now();
    await new Promise(requestAnimationFrame);
  }
}
"""


def open_in_chromium(port: int, ids: Sequence[str]) -> list[float] | None:
    """Return the milliseconds from each click to the picture on the screen, or None without Chromium."""
    from playwright.sync_api import Error, sync_playwright

    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=chromium_path())
        except Error:
            return None
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"http://127.0.0.1:{port}/trajectories")  # style and scripts are cached from now on
        taken = []
        for trajectory_id in ids:
            address = f"http://127.0.0.1:{port}/trajectories?id={quote(trajectory_id, safe='')}"
            page.goto(address, wait_until="commit")
            taken.append(page.evaluate(PICTURE_SEEN, trajectory_id))
            page.wait_for_timeout(LOOKS_MILLISECONDS)
        browser.close()
    return taken


def tell(what: str, taken: Sequence[float]) -> tuple[float, float]:
    """Print the median, the 95th percentile and the maximum; return the first two."""
    ordered = sorted(taken)
    late = ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))]
    median = statistics.median(ordered)
    print(
        f"{what:<34}{median:9.0f} ms {late:9.0f} ms {ordered[-1]:9.0f} ms   ({len(ordered)} opened)",
        flush=True,
    )
    return median, late


def tell_whole_split(name: str, code: str, trajectory_id: str, files: Sequence[str]) -> None:
    """Print the time to get one trajectory's rows by reading the whole split."""
    found = watch([sys.executable, "-c", code, trajectory_id, *files])
    print(f"{name:<34}{1000 * found.seconds:9.0f} ms   {found.peak_bytes / 1e6:,.0f} MB", flush=True)


def compare(data: Path, folder: Path, n: int) -> list[tuple[str, bool]]:
    """Measure the Space, pandas and datasets, print the figures, and return (target, whether it holds)."""
    manifest = PublishedDataset(data).manifest
    size = sum(entry.bytes for entry in manifest.files.values())
    ids = sorted(PublishedDataset(data).table("trajectories", columns=["trajectory_id"])[0].to_pylist())
    chosen = random.Random(0).sample(ids, min(len(ids), 2 * n))
    print(f"{len(ids):,} trajectories, {size / 1e6:,.0f} MB; each one is opened for the first time")
    print(f"{'':<34}{'median':>12}{'95th':>13}{'longest':>13}")
    with space_over(data, folder / "state") as (port, pid):
        started = memory(pid)[0]
        before = cpu_seconds(pid)
        _, late = tell("story and picture over HTTP", open_over_http(port, chosen[:n]))
        print(
            f"{'  of that, CPU time of the Space':<34}{1000 * (cpu_seconds(pid) - before) / n:9.0f} ms each"
        )
        seen = None
        in_browser = open_in_chromium(port, chosen[n : n + max(5, n // 4)])
        if in_browser is None:
            print("Chromium is not installed, so no trajectory was opened in a browser.")
        else:
            seen, _ = tell("in Chromium, until visible", in_browser)
        most = memory(pid)[1]
    print(f"the Space: {started / 1e6:,.0f} MB after its start, {most / 1e6:,.0f} MB at most")
    files = [str(data / name) for name in manifest.files if name.startswith("data/steps/test")]
    of_test = next(name for name in chosen if load_suite().find(name).split == "test")
    tell_whole_split("the whole split with pandas", PANDAS, of_test, files)
    tell_whole_split("the whole split with datasets", DATASETS, of_test, files)
    return [
        (f"95 of 100 requests are answered in under {OPENS_MILLISECONDS} ms", late < OPENS_MILLISECONDS),
        (
            f"a trajectory is visible in Chromium in under {OPENS_MILLISECONDS} ms (median)",
            seen is None or seen < OPENS_MILLISECONDS,
        ),
        (f"the Space takes under {MOST_BYTES / 1e6:,.0f} MB of memory", most < MOST_BYTES),
    ]


def main(arguments: list[str] | None = None) -> int:
    """Print the figures; return 1 if a target is missed. ``--quick`` checks no targets."""
    parser = argparse.ArgumentParser(prog="python -m bench.trajectories", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="use few trajectories and small pictures, and no targets"
    )
    parser.add_argument("--folder", type=Path, help="folder for the dataset (default: a temporary one)")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="bench-trajectories-", dir=options.folder))
    try:
        begun = time.perf_counter()
        only = load_suite().trajectories[::26] if options.quick else None
        data = make_dataset(folder / "data", shape=QUICK if options.quick else RELEASED, only=only)
        print(f"dataset made in {time.perf_counter() - begun:.0f} s", flush=True)
        held = compare(data, folder, 20 if options.quick else 200)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if options.quick:
        return 0
    for what, holds in held:
        print(f"{'holds' if holds else 'FAILS'}: {what}")
    return 0 if all(holds for _, holds in held) else 1


if __name__ == "__main__":
    sys.exit(main())
