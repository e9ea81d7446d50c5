"""`--max-usd` through whole runs: never passed, whatever faults and however many calls at once (4)."""

import asyncio
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arb.judges.engine.budget import Budget, BudgetReached
from arb.judges.engine.cache import CallCache
from arb.judges.engine.concurrency import AdaptiveLimit
from arb.judges.engine.engine import CallExecutor
from arb.judges.engine.errors import CallFailed
from arb.judges.engine.prices import Price, PriceTable
from arb.judges.run.folder import read_run
from arb.judges.types import Call, Message, ModelSettings, Reply
from tests.support import judge_runs
from tests.support.clocks import run_in_virtual_time
from tests.support.judge_runs import predictions
from tests.support.llm_server.faults import FaultPlan
from tests.support.llm_server.server import LLMServer
from tests.support.waiting import eventually

LIMIT = 0.50
IN, OUT = 10.0, 20.0  # dollars for a million tokens: the whole split costs about twice the limit
STORM = {
    "rate_limit": 0.05,
    "rate_limit_retry_after": 0.05,
    "server_error": 0.05,
    "overload": 0.05,
    "reset": 0.05,
    "cut_body": 0.05,
    "choices_null": 0.05,
    "content_null": 0.05,
    "content_filter": 0.05,
    "length": 0.05,
    "cut_json": 0.05,
}


def run(server, folder, max_usd: float, *more):
    options = ("--price", f"m={IN},{OUT}", "--max-output-tokens", 400, "--max-usd", max_usd, *more)
    return judge_runs.run(server.base_url, folder, *options, judge="NNetNav", split="dev")


@pytest.mark.slow
@pytest.mark.parametrize("max_in_flight", [1, 64])
@pytest.mark.parametrize(
    ("faults", "seed"), [({}, 0), (STORM, 1), (STORM, 2)], ids=["calm", "storm 1", "storm 2"]
)
def test_the_limit_is_never_passed_and_nearly_used_up(faults, seed, max_in_flight, tmp_path):
    plan = FaultPlan(faults, seed=seed, retry_after_s=0.01)
    with LLMServer("judges", latency_s=0.002, faults=plan) as server:
        result = run(server, tmp_path, LIMIT, "--max-in-flight", max_in_flight)
        assert result.exit_code == 3, result.output
        assert server.counts.usd(IN, OUT) <= LIMIT
        if not faults:  # a lost reply counts for the most that it can have cost
            assert server.counts.usd(IN, OUT) >= 0.9 * LIMIT
            assert predictions(tmp_path)
        assert f"stopped at --max-usd {LIMIT}" in result.output
        assert "higher --max-usd" in result.output
        assert len(predictions(tmp_path)) < 20


def test_samples_in_one_request_and_hidden_reasoning_are_within_the_limit_too(tmp_path):
    with LLMServer("judges", latency_s=0.002, reasoning_tokens=lambda request: 150) as server:
        # Few at once: trajectories end one after another, and verdicts are asked for before money is out.
        result = run(server, tmp_path, LIMIT, "--samples", 3, "--max-in-flight", 4)
        assert result.exit_code == 3, result.output
        assert 3 in [body.get("n") for body in server.chat.bodies]
        assert 0.9 * LIMIT <= server.counts.usd(IN, OUT) <= LIMIT


def test_calls_of_tools_and_their_declarations_are_within_the_limit_too(tmp_path):
    faults = FaultPlan(STORM, seed=3, retry_after_s=0.01)
    with LLMServer("judges", latency_s=0.002, faults=faults) as server:
        options = ("--price", f"m={IN},{OUT}", "--max-output-tokens", 400, "--max-usd", LIMIT)
        result = judge_runs.run(server.base_url, tmp_path, *options, judge="tools", split="dev")
        assert result.exit_code == 3, result.output
        assert any(body["messages"][-1]["role"] == "tool" for body in server.chat.bodies)
        assert server.counts.usd(IN, OUT) <= LIMIT


class PricedEndpoint:
    """An endpoint in virtual time that keeps books: each call takes as long and costs as much as is drawn,
    and may be refused, or lost once it is paid.
    """

    def __init__(self, seed: int):
        self.drawn, self.usd = random.Random(seed), 0.0

    async def attempt(self, request):
        rate = 1.0 if self.drawn.random() < 0.03 else self.drawn.uniform(0.2, 0.34)
        tokens = round(len(request.messages[0].content) * rate)
        made = self.drawn.randrange(request.max_output_tokens + 1)
        end = self.drawn.choice(["reply"] * 12 + ["refused", "lost"])
        if end != "refused":
            self.usd += (tokens * IN + made * OUT) / 1_000_000
        await asyncio.sleep(self.drawn.uniform(0.1, 20))
        if end == "reply":
            return Reply("fine", input_tokens=tokens, output_tokens=made)
        kind, is_paid = ("rate_limit", False) if end == "refused" else ("transient", True)
        raise CallFailed(kind, end, maybe_paid=is_paid)

    async def close(self):
        pass


@given(share=st.floats(0.1, 0.9), most=st.integers(1, 40), seed=st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_no_schedule_of_a_run_passes_the_limit_or_leaves_more_than_a_tenth(share, most, seed):
    """Through limit, retries and budget: 80 calls of all sizes, in virtual time."""
    drawn = random.Random(seed)
    sizes = [drawn.randrange(500, 6_000) for _ in range(80)]
    limit = share * sum(size * 0.27 * IN + 100 * OUT for size in sizes) / 1_000_000
    endpoint, model = PricedEndpoint(seed), ModelSettings("m", provider="any", base_url="http://h/v1")
    budget = Budget(limit, PriceTable({("*", "m"): Price(IN, OUT)}))
    refused = []

    async def ask(executor, number: int, size: int) -> None:
        message = Message("user", f"{number:>{size}}")
        try:
            await executor.ask(Call("verdict", (message,), max_output_tokens=200))
        except BudgetReached:
            refused.append(number)
        assert endpoint.usd <= limit

    async def judged(folder) -> None:
        cache, clock = CallCache(Path(folder)), asyncio.get_running_loop().time
        parts = ({"judge": endpoint}, {"judge": model}, cache, AdaptiveLimit(most, clock=clock), budget)
        executor = CallExecutor(*parts)
        await asyncio.gather(*(ask(executor, *each) for each in enumerate(sizes)))
        cache.close()

    with tempfile.TemporaryDirectory() as folder:
        run_in_virtual_time(judged(folder))
    assert endpoint.usd <= budget.spent_usd + 1e-9 <= limit + 2e-9
    dearest = (6_000 * IN + 113 * IN + 200 * OUT) / 1_000_000
    if refused and dearest <= limit / 10:
        assert budget.spent_usd >= 0.9 * limit


def test_what_was_done_is_kept_and_a_higher_limit_goes_on_with_it(tmp_path):
    with LLMServer("judges") as server:
        run(server, tmp_path, LIMIT)
        first, calls = predictions(tmp_path), server.counts.calls
        assert run(server, tmp_path, LIMIT).exit_code == 3  # the same limit holds for the folder, not the day
        assert server.counts.usd(IN, OUT) <= LIMIT
        result = run(server, tmp_path, 100)
        assert result.exit_code == 0, result.output
        assert len(predictions(tmp_path)) == 20
        assert all(row in predictions(tmp_path) for row in first)
        assert server.counts.paid_twice() == {}
        assert server.counts.calls > calls
        assert read_run(tmp_path / "run")["spent_usd"] == pytest.approx(server.counts.usd(IN, OUT))


def test_lost_replies_count_for_a_run_that_goes_on(tmp_path):
    """Replies that were cut on the way were made, so they stay counted when the command is given again."""
    with LLMServer("judges", faults=FaultPlan({"cut_body": 0.4}, at_most=2, seed=3)) as server:
        for _ in range(4):
            run(server, tmp_path, LIMIT)
        assert server.counts.usd(IN, OUT) <= LIMIT


def test_a_limit_that_nothing_fits_in_makes_no_call(tmp_path):
    with LLMServer("judges") as server:
        assert run(server, tmp_path, 0.001).exit_code == 3
        assert server.counts.calls == 0


def test_a_limit_without_a_price_does_not_start(tmp_path):
    with LLMServer("judges") as server:
        result = run(server, tmp_path, LIMIT, "--model-of", "describer=other")
        assert result.exit_code == 2
        assert "the price of other is unknown" in result.output
        assert "--price other=IN,OUT" in result.output
        assert server.counts.calls == 0


def test_a_call_in_flight_when_a_run_is_killed_counts_against_the_limit(tmp_path):
    """The endpoint may charge for it, and the continued run has to pay for it again."""
    given = ("--price", f"m={IN},{OUT}", "--out", tmp_path / "run", "--max-usd", LIMIT)
    with LLMServer("judges") as server:
        server.chat.held = lambda: True  # the first call is made alone, and is not answered
        options = judge_runs.options(server, tmp_path, *given)
        command = [sys.executable, "-m", "arb", "judges", "run", *options]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        eventually(lambda: server.counts.in_flight, process)
        eventually(lambda: read_run(tmp_path / "run").get("spent_usd"), process)
        process.kill()
        process.wait()
        server.chat.held = lambda: False
        spent = read_run(tmp_path / "run")["spent_usd"]
        # what is left of this limit, a hundredth of a call, is not enough for another call
        result = judge_runs.invoke("run", *judge_runs.options(server, tmp_path, *given[:-1], 1.01 * spent))
        assert result.exit_code == 3, result.output
        assert server.counts.calls == 1
