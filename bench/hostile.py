"""Kill a run against a hostile endpoint ten times: ``python -m bench.hostile`` (``--judge``, ``--kills``).

The server answers the prompts of the sample's dev runs with every fault that it can make, by a plan that
depends on the prompt. It always filters some prompts, and rejects some others as too long. `judges run` is
killed (SIGKILL) at random moments and started again; at last it runs to its end. The server records which
usable answers it has sent.

The command checks that every trajectory has one state; that states and answers are those of a run without
random faults and kills; that every reply is in the cache once; and that no answer was sent twice, except
those that were on their way to a process when it was killed. It prints the checks that fail and returns 1.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from arb.core.suite import load_suite
from arb.judges.run.folder import read_judgments
from tests.support.llm_server.chat import Request, Scripted
from tests.support.llm_server.faults import FAULTS, FaultPlan
from tests.support.llm_server.scripts import judges, share
from tests.support.llm_server.server import LLMServer

REPOSITORY = Path(__file__).parents[1]
BY_RULE = ("content_filter", "too_long")
"""Faults that depend only on the prompt, so that a clean run meets them, too."""

BY_CHANCE = tuple(fault for fault in FAULTS if fault not in (*BY_RULE, "length"))
"""Faults that go away when the call is repeated. A reply cut off at its limit is not requested again."""

RULE_SHARE = 0.06
FAULT_RATE = 0.03
MOST_FAULTY_TRIES = 2
"""The most faults of a prompt. A call is given up after three unusable answers."""

MAX_IN_FLIGHT = 8
TIMEOUT_S = 6
WAIT_S = 120.0


def script(request: Request) -> Scripted:
    """Return a judge's answer, or the fault that this prompt always gets. The model is the prompt's key."""
    drawn = share(f"rule{request.key}")
    fault = None
    if drawn < RULE_SHARE:
        fault = "content_filter"
    elif drawn < 2 * RULE_SHARE:
        fault = "too_long"
    return Scripted(judges(request), fault=fault, model=request.key)


@dataclass
class Books:
    """Counts of the answers that were sent, cached and lost so far, by prompt, over all processes."""

    cached: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    """Answers on their way to a process that was killed before it had stored them."""
    last: Counter[str] = field(default_factory=Counter)
    """Answers that were the last on their connection; the client has read all earlier answers."""

    def close_session(self, server: LLMServer, cache: Path) -> tuple[int, int]:
        """Note the answers that a process lost at its end; return (how many, how many it had read).

        An answer counts as read unless it was the last on its connection.
        """
        answered, cached = Counter(server.counts.answers), cached_prompts(cache)
        lost = (answered - self.answered) - (cached - self.cached)
        last = Counter(server.counts.last)
        unread = lost & (last - self.last)
        self.answered, self.cached, self.last = answered, cached, last
        self.lost += lost
        return lost.total(), lost.total() - unread.total()

    def paid_again(self) -> dict[str, int]:
        """Return the prompts that were paid again: more usable answers than one plus those that were lost."""
        return {key: n for key, n in self.answered.items() if n > 1 + self.lost[key]}


def cached_prompts(cache: Path) -> Counter[str]:
    """Return how often the cache has a reply to each prompt, counting whole lines of its segments."""
    lines = (line for path in cache.glob("segment-*") for line in path.read_bytes().splitlines(keepends=True))
    replies = (
        json.loads(line)["reply"] for line in lines if line.startswith(b'{"answer"') and line[-1:] == b"\n"
    )
    return Counter(reply["model"] for reply in replies)


def start(server: LLMServer, judge: str, folder: Path) -> subprocess.Popen:
    command = [
        "run",
        judge,
        "--suite",
        "sample",
        "--split",
        "dev",
        "--base-url",
        server.base_url,
        "--model",
        "m",
    ]
    command += ["--out", folder / "run", "--cache", folder / "cache", "--max-in-flight", MAX_IN_FLIGHT]
    command += ["--timeout", TIMEOUT_S]
    return subprocess.Popen(
        [sys.executable, "-m", "arb", "judges", *map(str, command)],
        cwd=REPOSITORY,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + WAIT_S
    while not holds():
        if time.monotonic() > ends:
            raise SystemExit(f"The run did not reach the expected state within {WAIT_S:g} s.")
        time.sleep(0.002)


def kill_at_random(
    process: subprocess.Popen, server: LLMServer, chance: random.Random, most_calls: int
) -> bool:
    """Kill a run at its start or after one of its first calls; return False if it had ended already."""
    if chance.random() < 0.2:
        time.sleep(chance.uniform(0.0, 1.5))
    else:
        enough = server.counts.calls + chance.randint(1, most_calls)
        wait_until(lambda: server.counts.calls >= enough or process.poll() is not None)
        time.sleep(chance.uniform(0.0, 0.1))
    was_alive = process.poll() is None
    if was_alive:
        os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    wait_until(lambda: server.open_connections == 0)  # by now the answers to a dead socket are counted
    return was_alive


def answers(folder: Path) -> dict[str, tuple]:
    """Return (state, answer) by trajectory. Exit if a trajectory is in the prediction file twice."""
    records = [json.loads(line) for line in (folder / "run" / "predictions.jsonl").read_text().splitlines()]
    if len({record["trajectory_id"] for record in records}) < len(records):
        raise SystemExit("a trajectory is in the prediction file twice")
    return {each["trajectory_id"]: (each["state"], each["answer"]) for each in read_judgments(folder / "run")}


def finish(process: subprocess.Popen) -> int:
    _, errors = process.communicate(timeout=600)
    if process.returncode not in (0, 1):
        raise SystemExit(f"judges run ended with {process.returncode}:\n{errors}")
    return process.returncode


def hostile_run(judge: str, kills: int, seed: int) -> list[str]:
    """Make a clean and a hostile run, print the results, and return the checks that fail."""
    chance, books = random.Random(seed), Books()
    plan = FaultPlan(
        dict.fromkeys(BY_CHANCE, FAULT_RATE), seed, at_most=MOST_FAULTY_TRIES, retry_after_s=0.05, slow_s=0.1
    )
    with tempfile.TemporaryDirectory() as name:
        hostile, clean = Path(name) / "hostile", Path(name) / "clean"
        for folder in (hostile, clean):
            (folder / "cache").mkdir(parents=True)
        with LLMServer(script) as server:
            finish(start(server, judge, clean))
            calls, expected = server.counts.calls, cached_prompts(clean / "cache")
        killed = 0
        with LLMServer(script, latency_s=0.02, faults=plan) as server:
            lost = []
            for _ in range(kills):
                process = start(server, judge, hostile)
                killed += kill_at_random(process, server, chance, max(1, calls // (kills + 2)))
                lost.append(books.close_session(server, hostile / "cache"))
            code = finish(start(server, judge, hostile))
            wait_until(lambda: server.open_connections == 0)
            lost_at_the_end, _ = books.close_session(server, hostile / "cache")
            counts = server.counts
        found, wanted = answers(hostile), answers(clean)
    states = Counter(state for state, _ in found.values())
    met = {fault: counts.faults[fault] for fault in FAULTS if counts.faults[fault]}
    print(f"{judge}: {len(found)} trajectories, {calls} calls in a clean run, seed {seed}")
    print(f"  {len(met)} kinds of faults met: {', '.join(f'{n} {fault}' for fault, n in met.items())}")
    print(f"  killed {killed} times; {counts.calls} calls made, {counts.unusable.total()} unusable answers")
    print(f"  states: {', '.join(f'{n} {state}' for state, n in sorted(states.items()))}; exit code {code}")
    print(f"  usable answers: {books.answered.total()} to {len(books.answered)} prompts;"
          f" {books.lost.total()} of them were on their way at a kill")  # fmt: skip
    dev = {each.trajectory_id for each in load_suite("sample").split("dev")}
    differing = [each for each in dev if found.get(each) != wanted.get(each)]
    problems = {
        f"{len(dev ^ found.keys())} of {len(dev)} trajectories are missing or unexpected": found.keys()
        != dev,
        f"{len(differing)} answers differ from the clean run's": bool(differing),
        f"{len(books.paid_again())} prompts were paid again": bool(books.paid_again()),
        f"{lost_at_the_end} answers were lost without a kill": lost_at_the_end > 0,
        "a kill lost more answers than were on their way": any(each > MAX_IN_FLIGHT for each, _ in lost),
        "a kill lost more than one answer that had been read": any(read > 1 for _, read in lost),
        "the cache does not have each reply of the clean run exactly once": books.cached != expected,
        f"only {killed} of {kills} kills hit a running process": killed < kills,
        f"only {len(met)} kinds of fault were met": len(met) < 12,
    }
    return [problem for problem, is_one in problems.items() if is_one]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.hostile", description=__doc__.splitlines()[0])
    parser.add_argument("--judge", action="append", help="name of a judge; repeat to add a judge")
    parser.add_argument("--kills", type=int, default=10, help="number of kills")
    parser.add_argument("--seed", type=int, default=0, help="seed of the faults and kills")
    options = parser.parse_args(arguments)
    problems = [
        f"{judge}: {problem}"
        for judge in options.judge or ("webjudge", "nnetnav")
        for problem in hostile_run(judge, options.kills, options.seed)
    ]
    print(
        "\n".join(problems)
        or "Every trajectory has one state and the answer of a clean run; none was paid twice."
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
