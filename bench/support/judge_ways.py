"""Make a judge's calls in one of two ways and measure them: ``python -m bench.support.judge_ways JSON``.

``ours`` is all of `judges run`: list and read runs, make views, calls, cache, results on the disk. ``bare``
is a loop over `openai.AsyncOpenAI` with a semaphore. Its messages are made before the clock starts, and it
stores nothing. Each way makes one call before the measurement, so that late imports are not timed.
"""

import asyncio
import json
import re
import resource
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

MODEL = "bench"


def judge_of(with_images: bool) -> str:
    return "simplified-both" if with_images else "simplified-axtree"


def messages_of(source: str, number: int, with_images: bool) -> list[list[dict]]:
    """Return the messages of the judge's calls as JSON."""
    from arb.core.suite import load_suite
    from arb.judges.endpoints.openai_compatible import message_to_json
    from arb.judges.registry import find_judge
    from arb.judges.views import Views

    judge, suite = find_judge(judge_of(with_images)), load_suite()
    views = Views(Path(source), suite)
    found = []
    for trajectory in suite.split("test")[:number]:
        (call,) = next(judge.ask(views.view(trajectory.trajectory_id, judge.wants)))
        found.append([message_to_json(message) for message in call.messages])
    return found


async def ask_all(base_url: str, prepared: list[list[dict]], in_flight: int) -> None:
    """Make all calls in a bare loop, with at most ``in_flight`` at a time."""
    from openai import AsyncOpenAI

    semaphore = asyncio.Semaphore(in_flight)
    async with AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0) as client:

        async def ask(messages: list[dict]) -> str | None:
            async with semaphore:
                completion = await client.chat.completions.create(
                    model=MODEL, messages=messages, temperature=0, seed=0, max_tokens=1024
                )
                return completion.choices[0].message.content

        texts = await asyncio.gather(*map(ask, prepared))
    assert len(texts) == len(prepared) and all(texts)


def bare(base_url: str, source: str, number: int, with_images: bool, in_flight: int) -> dict:
    """Measure the bare loop and return what `timed` returns."""
    prepared = messages_of(source, number, with_images)
    asyncio.run(ask_all(base_url, prepared[:1], 1))
    return timed(lambda: asyncio.run(ask_all(base_url, prepared, in_flight)))


def ours(
    base_url: str, source: str, number: int, with_images: bool, in_flight: int, samples: int = 1
) -> dict:
    """Measure `judges run` over the same trajectories, from its options to its files.

    Each call is made ``samples`` times, in separate requests because the temperature is 0.
    """
    from arb.judges.cli.options import RunOptions
    from arb.judges.run.config import build_config
    from arb.judges.run.runner import run_judge, run_local

    def run(limit: int, out: Path) -> None:
        options = RunOptions(
            judge=judge_of(with_images),
            split="test",
            suite="agent-reward-bench",
            source=Path(source),
            model=MODEL,
            base_url=base_url,
            max_in_flight=in_flight,
            limit=limit,
            samples=samples,
            temperature=0.0,
            cache=out / "cache",
        )
        outcome = run_judge(build_config(options), out / "run", run_local)
        assert outcome.totals["states"] == {"ok": limit}, outcome
        assert outcome.totals["calls"] == samples * limit, outcome

    with tempfile.TemporaryDirectory() as folder:
        run(1, Path(folder) / "before")
        return timed(lambda: run(number, Path(folder) / "timed"))


def timed(work) -> dict:
    """Return the seconds and CPU seconds of the work, and the peak memory of the process."""
    begun, begun_cpu = time.perf_counter(), time.process_time()
    work()
    return {
        "seconds": time.perf_counter() - begun,
        "cpu_seconds": time.process_time() - begun_cpu,
        "peak_mb": peak_mb(),
    }


def peak_mb() -> float:
    """Return the peak memory of this process in MB.

    On Linux ``ru_maxrss`` would include the memory of the process that started this one.
    """
    with suppress(OSError):
        status = Path("/proc/self/status").read_text()
        return int(re.search(r"VmHWM:\s*(\d+)", status)[1]) / 1000
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


if __name__ == "__main__":
    arguments = json.loads(sys.argv[1])
    measured = {"bare": bare, "ours": ours}[arguments.pop("way")](**arguments)
    print(json.dumps({"calls": arguments["number"] * arguments.get("samples", 1), **measured}))
