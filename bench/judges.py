"""Measure how fast judges run: ``python -m bench.judges`` (``--quick`` for a look that takes seconds).

A scripted server in a separate process takes 200 ms per call. A bare loop and `judges run` alternately make
the same calls of simplified judges, without and with screenshots. The bare loop also makes some of them one
at a time. Then `judges run` makes each call without screenshots ten times (`--samples 10`), to measure the
memory that many calls take. With ``--inspect PYTHON``, a Python that has inspect_ai, that library makes the
same calls, also with more in flight and a faster endpoint: 64 calls in flight that take 200 ms each cannot
exceed 320 calls per second.
"""

import argparse
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

from arb.core.suite import Trajectory, load_suite
from bench.support.judge_ways import messages_of
from tests.support.llm_server.process import LLMProcess

STEPS = 8
TREE_CHARACTERS = 30_000
SCREENSHOT_BYTES = 150_000
SCREENSHOTS = 40
"""The number of different pictures; every run ends with one of them."""


def make_runs(folder: Path, number: int, seed: int = 0) -> None:
    """Write ``cleaned/`` and ``screenshots/`` for the first ``number`` test trajectories of the suite."""
    generator = random.Random(seed)
    pictures = [_picture(folder / "pictures" / f"{index}.png", generator) for index in range(SCREENSHOTS)]
    for place, trajectory in enumerate(load_suite().split("test")[:number]):
        benchmark, agent, task = trajectory.trajectory_id.split("/")
        run = folder / "cleaned" / benchmark / agent / f"{agent}_on_{benchmark}" / f"{task}.json"
        run.parent.mkdir(parents=True, exist_ok=True)
        run.write_text(json.dumps(_run(trajectory, task, generator)))
        for step in range(STEPS):
            picture = folder / "screenshots" / benchmark / agent / task / f"screenshot_step_{step}.png"
            picture.parent.mkdir(parents=True, exist_ok=True)
            os.link(pictures[(place + step) % SCREENSHOTS], picture)


def _run(trajectory: Trajectory, task: str, generator: random.Random) -> dict:
    place = f"screenshots/{trajectory.trajectory_id}/screenshot_step_"
    return {
        "benchmark": trajectory.benchmark,
        "agent": trajectory.agent,
        "goal": f"Find the price of item {task} and put it into the basket.\n",
        "valid": True,
        "summary_info": {"cum_reward": 0.0},
        "steps": [_step(number, f"{place}{number}.png", generator) for number in range(STEPS)],
    }


def _step(number: int, screenshot: str, generator: random.Random) -> dict:
    is_last = number == STEPS - 1
    lines = [f"[{place}] link 'item {generator.randrange(10**6)}'" for place in range(TREE_CHARACTERS // 24)]
    return {
        "num": number,
        "url": f"http://shop.example/page/{number}",
        "action": None if is_last else f"click('{generator.randrange(1000)}')",
        "reasoning": None if is_last else "The next page should show the item that is asked for. " * 4,
        "screenshot_path": screenshot,
        "axtree": "\n".join(lines),
        "axtree_pruned": "\n".join(lines[::2]),
    }


def _picture(path: Path, generator: random.Random) -> Path:
    """Write a grey PNG of noise with as many bytes as a screenshot, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    width = 500
    height = SCREENSHOT_BYTES // width
    rows = b"".join(b"\0" + generator.randbytes(width) for _ in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 0)), (b"IEND", b""))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in parts))
    return path


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


AT_LEAST_OF_BARE = 0.90
AT_LEAST_TIMES_ONE = 45
AT_LEAST_TIMES_INSPECT = 9
"""The target, which one setting has to meet. A slow endpoint limits both sides, and a run has to start."""

INSPECT_SETTINGS = ((256, 0.2, 1), (64, 0.02, 1), (256, 0.02, 1), (256, 0.02, 4))
"""Calls in flight, seconds of the server per call, and how often each call is made."""

INSPECT_WAY = Path(__file__).parent / "support" / "inspect_way.py"
PEAK_MB = 600
PEAK_TEXT_MB = 77
"""The target of ``--samples 10`` over the test split without pictures, which is 11,060 calls."""


def way(name: str, **arguments) -> dict:
    """Make the calls in one way (`judge_ways`), in a separate process; return its time and memory."""
    arguments = json.dumps({"way": name, **arguments})
    return _answer(name, [sys.executable, "-m", "bench.support.judge_ways", arguments])


def by_inspect(
    python: Path, source: Path, *, base_url: str, with_images: bool, number: int, in_flight: int, samples: int
) -> dict:
    """Make the same calls with inspect_ai in its own environment; return what `way` returns."""
    with tempfile.TemporaryDirectory() as folder:
        messages = Path(folder) / "messages.json"
        messages.write_text(json.dumps(messages_of(str(source), number, with_images)))
        arguments = {"messages": str(messages), "base_url": base_url, "in_flight": in_flight}
        arguments["samples"] = samples
        return _answer("inspect_ai", [str(python), str(INSPECT_WAY), json.dumps(arguments)])


def _answer(name: str, command: list[str]) -> dict:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def rate(taken: dict) -> float:
    return taken["calls"] / taken["seconds"]


def show(name: str, taken: dict) -> None:
    print(
        f"  {name:<26}{rate(taken):8.1f} calls/s  {taken['seconds']:7.2f} s"
        f"  {taken['cpu_seconds']:6.2f} CPU s  {taken['peak_mb']:6.0f} MB at most"
    )


def bench(server: LLMProcess, source: Path, options: argparse.Namespace, with_images: bool) -> bool:
    """Measure both ways and print the figures; return whether every target is met."""
    shown = "with a screenshot of 150 kB each" if with_images else "text only"
    latency_ms = options.latency * 1000
    print(f"{options.calls:,} calls of {latency_ms:.0f} ms, {options.in_flight} in flight, {shown}")
    same = {"base_url": server.base_url, "source": str(source), "with_images": with_images}
    taken: dict[str, list[dict]] = {"bare": [], "ours": []}
    for _ in range(options.rounds):
        for name, found in taken.items():
            found.append(way(name, **same, number=options.calls, in_flight=options.in_flight))
            show({"bare": "bare loop", "ours": "judges run"}[name], found[-1])
    one = way("bare", **same, number=options.one_at_a_time, in_flight=1)
    show(f"one at a time ({options.one_at_a_time} calls)", one)
    bare, ours = (max(found, key=rate) for found in taken.values())
    of_bare, times_one = rate(ours) / rate(bare), rate(ours) / rate(one)
    peak = max(each["peak_mb"] for each in taken["ours"])
    print(f"  of the bare loop's rate   {of_bare:8.1%}   (best round of each; target {AT_LEAST_OF_BARE:.0%})")
    print(f"  times one at a time       {times_one:8.1f}   (target {AT_LEAST_TIMES_ONE})")
    print(f"  peak memory               {peak:8.0f} MB (target under {PEAK_MB})")
    holds = of_bare >= AT_LEAST_OF_BARE and times_one >= AT_LEAST_TIMES_ONE and peak < PEAK_MB
    if not with_images:
        many = way("ours", **same, number=options.calls, in_flight=options.in_flight, samples=options.samples)
        show(f"judges run, {many['calls']:,} calls", many)
        print(f"  peak memory of those      {many['peak_mb']:8.0f} MB (target at most {PEAK_TEXT_MB})")
        holds = holds and many["peak_mb"] <= PEAK_TEXT_MB
    return holds


def times_inspect(
    source: Path,
    options: argparse.Namespace,
    with_images: bool,
    in_flight: int,
    latency: float,
    samples: int = 1,
) -> float:
    """Return the ratio of our rate to that of inspect_ai, with equally many calls in flight.

    With ``samples`` each call is made that many times: by `--samples` here, by epochs there.
    """
    calls = f"{samples * options.calls:,} calls, " if samples > 1 else ""
    shown = ", with screenshots" if with_images else ""
    print(f"{calls}{in_flight} in flight, {latency * 1000:.0f} ms{shown}")
    with LLMProcess("tags", latency_s=latency) as server:
        same = {"base_url": server.base_url, "with_images": with_images, "in_flight": in_flight}
        same |= {"number": options.calls, "samples": samples}
        ours = way("ours", source=str(source), **same)
        show("judges run", ours)
        theirs = by_inspect(options.inspect, source, **same)
        show("inspect_ai", theirs)
    times, times_cpu = rate(ours) / rate(theirs), theirs["cpu_seconds"] / ours["cpu_seconds"]
    print(f"  times inspect_ai          {times:8.1f}   with its CPU time divided by {times_cpu:.1f}")
    return times


def bench_inspect(source: Path, options: argparse.Namespace) -> bool:
    """Compare with inspect_ai in each setting; return whether the target is met."""
    here = (options.in_flight, options.latency, 1)
    times_inspect(source, options, True, *here)
    best = max(times_inspect(source, options, False, *each) for each in (here, *INSPECT_SETTINGS))
    print(f"  at best                   {best:8.1f}   times inspect_ai (target {AT_LEAST_TIMES_INSPECT})")
    return best >= AT_LEAST_TIMES_INSPECT


def main(arguments: list[str] | None = None) -> int:
    """Print the figures; return 1 if a target is missed. ``--quick`` makes too few calls to check targets."""
    parser = argparse.ArgumentParser(prog="python -m bench.judges", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="make few calls, and use no targets")
    parser.add_argument("--calls", type=int, default=1106, help="number of calls, at most 1,106")
    parser.add_argument("--in-flight", type=int, default=64, help="calls at the same time")
    parser.add_argument("--latency", type=float, default=0.2, help="seconds per call of the server")
    parser.add_argument("--one-at-a-time", type=int, default=20, help="number of calls made one at a time")
    parser.add_argument("--rounds", type=int, default=3, help="number of measurements")
    parser.add_argument("--samples", type=int, default=10, help="repetitions of each call, to measure memory")
    parser.add_argument(
        "--inspect", type=Path, metavar="PYTHON", help="Python of an environment with inspect_ai"
    )
    options = parser.parse_args(arguments)
    if options.calls > (most := len(load_suite().split("test"))):
        parser.error(
            f"--calls {options.calls} is more than the {most:,} of the test split. Use --samples for more."
        )
    if options.quick:
        options.calls, options.one_at_a_time, options.rounds, options.samples = 40, 2, 1, 2
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the start")
    with tempfile.TemporaryDirectory() as folder:
        make_runs(Path(folder), options.calls)
        with LLMProcess("tags", latency_s=options.latency) as server:
            held = [bench(server, Path(folder), options, with_images) for with_images in (False, True)]
        if options.inspect:
            held.append(bench_inspect(Path(folder), options))
    if options.quick:
        return 0
    print("All targets are met." if all(held) else "At least one target was MISSED.")
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
