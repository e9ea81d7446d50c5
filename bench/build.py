"""Measure how fast the dataset is built, verified and published: ``python -m bench.build`` (5 GB, 5 minutes).

The first part makes a corpus from ``../shared/data/released_layout`` and builds it. It compares the build
with a plain script of the standard library that loads each file, drops the same fields and writes JSON again,
with as many processes. It prints wall time and memory of both and their ratios, and checks the ratios. With
``--megabytes 300`` it is faster, but most of the time then goes into starting processes; 0 skips this part.

The second part runs build, verify and publish (to a Hub on this machine) at 40, 160, 640 and
2,560 runs (``--runs``; 20 GB), next to a script of json, pandas and pyarrow. For each further run it prints
CPU seconds in the program and in the kernel, bytes read and written, and calls of write, and also memory. At
the end it measures what publishing 1 % more runs uploads, by files (LFS) and by chunks (hf-xet with a store
on this disk). The corpora are deleted.
"""

import argparse
import hashlib
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from bench.support.build_corpus import make_corpus, make_runs
from bench.support.processes import Watched, watch
from dataset_script.build.workers import default_workers

AT_LEAST_TIMES_FASTER = 8
AT_MOST_BYTES = 1_000_000_000
AT_LEAST_TIMES_SMALLER = 50

RECORDED = Path(__file__).parents[2] / "shared" / "data" / "released_layout"


def compare(folder: Path, workers: int) -> bool:
    source, out = folder / "source", folder / "agent-reward-bench"
    python = [sys.executable, "-m"]
    standard = [*python, "bench.support.plain_json", str(source), str(folder / "plain"), "-n", str(workers)]
    plain = watch(standard)
    print(f"standard library  {plain.seconds:8.1f} s  {plain.peak_bytes / 1e6:8.0f} MB", flush=True)
    options = ["--source", str(source), "--out", str(out), "--suite", str(folder / "suite")]
    ours = watch([*python, "dataset_script", "build", *options, "--workers", str(workers)])
    print(f"build             {ours.seconds:8.1f} s  {ours.peak_bytes / 1e6:8.0f} MB")
    json_bytes = _bytes(source / "cleaned")
    default_bytes = _bytes(out / "data" / "trajectories")
    print(
        f"size: JSON {json_bytes / 1e6:.0f} MB, from the plain script {_bytes(folder / 'plain') / 1e6:.0f} MB"
    )
    for name in sorted(path.name for path in (out / "data").iterdir()):
        print(f"  {name:<32}{_bytes(out / 'data' / name) / 1e6:8.1f} MB")
    faster, smaller = plain.seconds / ours.seconds, json_bytes / default_bytes
    checks = (
        (f"{faster:.1f} times faster", faster >= AT_LEAST_TIMES_FASTER),
        (f"{ours.peak_bytes / 1e6:.0f} MB in all processes together", ours.peak_bytes < AT_MOST_BYTES),
        (f"default configuration {smaller:.0f} times smaller", smaller >= AT_LEAST_TIMES_SMALLER),
    )
    return _say(checks)


STAGES = ("plain", "build", "verify", "publish")
OURS = STAGES[1:]
MOST_GROWTH = 1.2
"""The factor by which memory and the cost of a further run may grow between numbers of runs; see `RULE`."""

NOISE_BYTES = 8_000_000
"""The variation of a peak between runs of the same command, since memory is sampled every 30 ms."""

NOISE_IO = 4_096
"""Bytes per run that are always allowed (a page of the database), for stages that hardly read or write."""
NOISE_CALLS = 2
"""Calls per run that are always allowed, since the number of messages between processes varies."""

RULE = f"""
Memory is flat if no process takes more at the last number of runs than at the one before it. For each stage,
the command's own process and its largest worker are checked separately, because the number of workers depends
on the machine and only larger datasets are shared among them. Their memory when idle is subtracted. The rest
may grow by {100 * MOST_GROWTH - 100:.0f} %, plus {NOISE_BYTES / 1e6:.0f} MB for noise.
CPU is flat if a further run takes at most {MOST_GROWTH} times as much between the last two numbers of runs as
between the two before. This is checked for CPU seconds in the program, bytes read, bytes written and calls of
write, plus {NOISE_IO} bytes and {NOISE_CALLS} calls for noise. The kernel's seconds, and the sum of both, are
printed but not judged: for the same bytes and calls they differ by machine (docs/speed.md).
"""

MEASURES: Final = (
    ("CPU ms", "cpu_seconds", 1000),
    ("ms in the program", "user_seconds", 1000),
    ("ms in the kernel", "kernel_seconds", 1000),
    ("kB read", "read_bytes", 0.001),
    ("kB written", "written_bytes", 0.001),
    ("calls of write", "write_calls", 1),
)
"""The measures of a further run: name with unit, field of `Watched`, and the factor to that unit."""
JUDGED: Final = {
    "ms in the program": 0.0,
    "kB read": NOISE_IO / 1000,
    "kB written": NOISE_IO / 1000,
    "calls of write": NOISE_CALLS,
}
"""The measures that are checked, with the difference per further run that is always allowed."""


def grow(source: Path, folder: Path, sizes: Sequence[int], workers: int) -> bool:
    """Run all stages at each number of runs and print the costs; return whether they grow within limits."""
    figures: dict[str, list[Watched]] = {stage: [] for stage in STAGES}
    idle = watch([sys.executable, "-c", _IDLE.format(workers=workers)])
    print(
        f"memory when idle: command {idle.parent_bytes / 1e6:.0f} MB, worker {idle.worker_bytes / 1e6:.0f} MB"
    )
    print("CPU seconds (program + kernel); peak MB of all processes, of the command, of its largest worker")
    print(f"{'runs':>6}" + "".join(f"{stage:>34}" for stage in STAGES))
    for count in sizes:
        place = folder / str(count)
        make_runs(source, place, count)
        for stage, watched in _stages(place, workers, _has_memory_for_plain(figures["plain"], sizes, count)):
            figures[stage].append(watched)
        cells = []
        for stage in STAGES:
            found = figures[stage]
            cells.append(_cell(found[-1] if len(found) > sizes.index(count) else None))
        print(f"{count:>6}" + "".join(f"{cell:>34}" for cell in cells), flush=True)
        shutil.rmtree(place)
    if len(sizes) < 2:
        return True
    slopes = _print_slopes(figures, sizes)
    last = {stage: found[-1] for stage, found in slopes["CPU ms"].items()}
    times = last["plain"] / (last["build"] + last["verify"])
    print(f"The plain script, which builds and verifies, takes {times:.1f} times as much CPU time as ours.")
    print(RULE)
    verify = last["verify"] / last["build"]
    checks: list[tuple[str, bool | None]] = [
        (f"a verification takes {verify:.2f} times the build", verify <= 2),
    ]
    for stage in OURS:
        if len(sizes) > 2:
            for name, _, _ in MEASURES:
                before, after = slopes[name][stage][-2:]
                grown = f"{before:,.2f} {name}, then {after:,.2f}"
                may_take = MOST_GROWTH * max(before, 0) + JUDGED.get(name, 0)
                holds = after <= may_take if name in JUDGED else None
                checks.append((f"{stage}: a further run takes {grown}", holds))
        for who in ("parent", "worker"):
            before, after = (getattr(w, f"{who}_bytes") for w in figures[stage][-2:])
            own = getattr(idle, f"{who}_bytes")
            may_take = MOST_GROWTH * max(before - own, 0) + NOISE_BYTES
            name = "the command itself" if who == "parent" else "its largest worker"
            grown = f"{before / 1e6:.0f} MB, then {after / 1e6:.0f} MB ({own / 1e6:.0f} MB idle)"
            if after:
                checks.append((f"{stage}: {name} takes {grown}", after - own <= may_take))
    return _say(checks)


_IDLE = """
from dataset_script.build.workers import Workers
from dataset_script.schema import arrow_schema
if __name__ == "__main__":
    with Workers({workers}) as workers:
        list(workers.run_each(arrow_schema, [("steps", 0)] * 64))
"""
"""A script whose processes import their modules and do nothing else."""


def _cell(watched: Watched | None) -> str:
    if watched is None:
        return "-"
    parts = (watched.peak_bytes, watched.parent_bytes, watched.worker_bytes)
    seconds = f"{watched.user_seconds:.2f} + {watched.kernel_seconds:.2f} s "
    return seconds + " ".join(f"{part / 1e6:5.0f}" for part in parts)


def _print_slopes(
    figures: Mapping[str, Sequence[Watched]], sizes: Sequence[int]
) -> dict[str, dict[str, list[float]]]:
    """Print the cost of a further run, and return it by measure, stage and step between sizes."""
    slopes = {
        name: {
            stage: _slopes([factor * getattr(watched, field) for watched in found], sizes)
            for stage, found in figures.items()
        }
        for name, field, factor in MEASURES
    }
    print(f"{'a further run takes':<32}" + "".join(f"{stage:>14}" for stage in STAGES))
    for number, (first, last) in enumerate(pairwise(sizes)):
        for name, by_stage in slopes.items():
            each = (f"{found[number]:.2f}" if number < len(found) else "" for found in by_stage.values())
            print(f"{f'{first} to {last}: {name}':<32}" + "".join(f"{text:>14}" for text in each))
    return slopes


def _slopes(amounts: Sequence[float], sizes: Sequence[int]) -> list[float]:
    """Return the cost of one further run, from each number of runs to the next."""
    both = pairwise(zip(amounts, sizes, strict=False))
    return [(after - before) / (more - fewer) for (before, fewer), (after, more) in both]


def _has_memory_for_plain(found: Sequence[Watched], sizes: Sequence[int], count: int) -> bool:
    """Return whether half of the free memory is enough for the plain script, which keeps all runs there."""
    if not found:
        return True
    expected = found[-1].peak_bytes * count / sizes[len(found) - 1]
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return expected <= free / 2


def _say(checks: Sequence[tuple[str, bool | None]]) -> bool:
    """Print each check with its outcome (None: not judged); return whether all judged checks hold."""
    for what, holds in checks:
        outcome = {None: "not judged", True: "holds", False: "FAILS"}[holds]
        print(f"{outcome}: {what}")
    return all(holds is not False for _, holds in checks)


def _stages(place: Path, workers: int, with_plain: bool) -> Iterator[tuple[str, Watched]]:
    from tests.support.hub_server.server import HubServer

    python, suite = [sys.executable, "-m"], ["--suite", str(place / "suite")]
    source, out = ["--source", str(place / "source")], str(place / "built")
    with HubServer() as hub:
        environment = {
            **os.environ, "ARB_CACHE_DIR": str(place / "cache"), "HF_HOME": str(place / "hf"),
            "HF_ENDPOINT": hub.url, "HF_TOKEN": "hf_maintainer", "HF_HUB_DISABLE_XET": "1",
            "NO_PROXY": "127.0.0.1",
        }  # fmt: skip
        if with_plain:
            plain = [*python, "bench.support.plain_pandas", *source[1:], str(place / "plain")]
            yield "plain", watch(plain)
            shutil.rmtree(place / "plain")
        some = ["--workers", str(workers)]
        commands = (
            ("build", ["build", *source, "--out", out, *suite, *some]),
            ("verify", ["verify", out, *suite, *some]),
            ("publish", ["publish", out, *suite, "--repo", "maintainer/bench"]),
        )
        for stage, command in commands:
            yield stage, watch([*python, "dataset_script", *command], environment=environment)


def republish(source: Path, folder: Path, count: int, workers: int) -> bool:
    """Print the share of the dataset uploaded for 1 % more runs, built from scratch and with --append.

    Returns whether it is at most 5 % with --append.
    """
    make_runs(source, folder, count)
    header, *rows = (folder / "suite" / "trajectories.csv").read_text().splitlines()
    later = set(random.Random(0).sample(rows, max(1, count // 100)))
    before = folder / "before"
    before.mkdir()
    (before / "trajectories.csv").write_text("\n".join([header, *(r for r in rows if r not in later)]) + "\n")
    (before / "suite").mkdir()
    (before / "trajectories.csv").rename(before / "suite" / "trajectories.csv")
    shares = {}
    for how, more in (("anew", []), ("--append", ["--append"])):
        out, store = folder / how / "built", folder / how / "store"
        store.mkdir(parents=True)
        common = ["--source", str(folder / "source"), "--out", str(out), "--workers", str(workers)]
        known: set[str] = set()
        for suite, options in ((before / "suite", []), (folder / "suite", more)):
            # both folders are called suite, since a growing suite keeps its name
            build = [sys.executable, "-m", "dataset_script", "build", *common]
            watch([*build, "--suite", str(suite), *options])
            files = sorted(path for path in out.rglob("*") if path.is_file())
            sums = {hashlib.sha256(path.read_bytes()).hexdigest(): path.stat().st_size for path in files}
            total = sum(sums.values())
            by_files = sum(size for name, size in sums.items() if name not in known)
            known |= sums.keys()
            by_chunks = _xet_upload(files, store)
        shares[how] = by_files / total, by_chunks / total
        by_files, by_chunks = shares[how]
        ways = f"{100 * by_files:.1f} % by files (LFS), {100 * by_chunks:.1f} % by chunks (Xet)"
        print(f"1 % more runs, {how}: {ways}")
    return _say([("with --append at most 5 % of the bytes are uploaded", max(shares["--append"]) <= 0.05)])


def _xet_upload(files: Sequence[Path], store: Path) -> int:
    """Return the bytes that hf-xet uploads to add these files to a store, which may have similar files."""
    import hf_xet

    commit = hf_xet.XetSession().new_upload_commit(endpoint=f"local://{store}")
    for path in files:
        commit.start_upload_file(str(path))
    return commit.wait_to_finish().dedup_metrics.total_bytes_uploaded


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=5_000, help="size of the corpus")
    parser.add_argument("--workers", type=int, default=default_workers(), help="processes of each side")
    parser.add_argument("--source", type=Path, default=RECORDED, help="recorded runs to replicate")
    parser.add_argument("--folder", type=Path, help="folder for the corpus (default: a temporary one)")
    parser.add_argument(
        "--runs", type=int, nargs="*", default=(40, 160, 640, 2_560), help="numbers of runs to compare"
    )
    parser.add_argument(
        "--more-of", type=int, default=400, help="runs of which 1 percent are published later"
    )
    options = parser.parse_args()
    if not options.source.is_dir():
        sys.exit(f"{options.source} does not exist. Use --source to name a folder in the released layout.")
    folder = Path(tempfile.mkdtemp(prefix="bench-build-", dir=options.folder))
    holds = True
    try:
        if options.runs:
            holds = grow(options.source, folder / "runs", options.runs, options.workers)
            holds &= republish(options.source, folder / "republished", options.more_of, options.workers)
        if not options.megabytes:
            return
        files = make_corpus(options.source, folder, options.megabytes * 1_000_000)
        sizes = [path.stat().st_size / 1e6 for path in (folder / "source" / "cleaned").rglob("*.json")]
        print(
            f"{files} files of {min(sizes):.0f} to {max(sizes):.0f} MB, {sum(sizes):.0f} MB in total",
            flush=True,
        )
        print(f"{options.workers} processes on each side", flush=True)
        holds &= compare(folder, options.workers)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if not holds:
            sys.exit(1)


if __name__ == "__main__":
    main()
