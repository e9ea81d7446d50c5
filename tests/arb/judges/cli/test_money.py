"""What commands say of money, against the books of the endpoint: cached input, reasoning, samples, pilots."""

import json

import pytest

from arb.judges.run.folder import read_run
from arb.judges.run.plan import spread_evenly
from bench import pilot
from tests.support import judge_runs
from tests.support.llm_server.server import LLMServer
from tests.support.llm_server.tokens import InputCache

IN, OUT, CACHED = 2.0, 8.0, 0.5
PRICE = f"m={IN},{OUT},{CACHED}"


def hidden(request) -> int:
    return 100 + len(request.text) % 50


def arguments(server, folder, judge: str, *more) -> list[str]:
    return judge_runs.options(server, folder, "--price", PRICE, *more, judge=judge)


def run(server, folder, judge: str, *more) -> str:
    result = judge_runs.invoke("run", *arguments(server, folder, judge, "--out", folder / "run", *more))
    assert result.exit_code == 0, result.output
    return result.output


def planned(server, folder, judge: str, *more) -> dict:
    result = judge_runs.invoke("plan", *arguments(server, folder, judge, "--json", *more))
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_run_costs_what_the_endpoints_books_say_with_cached_input_and_reasoning(tmp_path):
    """Samples of one prompt, an endpoint that does not take ``n``: all but the first find it cached."""
    server = LLMServer("judges", input_cache=InputCache(), reasoning_tokens=hidden, unsupported=["n"])
    with server:
        run(server, tmp_path, "simplified-axtree", "--samples", 3)
        counts = server.counts
        bill = counts.usd(IN, OUT, CACHED)
        assert counts.cached_tokens > counts.input_tokens / 10
        assert counts.usd(IN, OUT) > 1.1 * bill  # a tenth more if what is cached were not told apart
        facts = read_run(tmp_path / "run")
        assert facts["spent_usd"] == pytest.approx(bill, rel=0.02)
        totals = facts["totals"]
        assert totals["cost_usd"] == pytest.approx(bill, rel=0.02)
        assert totals["cached_input_tokens"] == counts.cached_tokens
        assert totals["reasoning_tokens"] == counts.reasoning_tokens
        assert (totals["input_tokens"], totals["output_tokens"]) == (
            counts.input_tokens,
            counts.output_tokens,
        )
        assert facts["prices"]["judge"]["source"] == "--price"


def test_samples_are_planned_and_paid_with_their_input_once(tmp_path):
    with LLMServer("judges") as server:
        made = planned(server, tmp_path, "simplified-axtree", "--samples", 4)
        assert made["calls"] == 20
        shown = judge_runs.invoke("plan", *arguments(server, tmp_path, "simplified-axtree", "--samples", 4))
        assert "one request (parameter n), so their input is paid once" in shown.stdout
        alone = planned(server, tmp_path, "simplified-axtree")
        with_samples, without = made["roles"][0], alone["roles"][0]
        assert with_samples["input_tokens"] == without["input_tokens"]
        assert with_samples["output_tokens"] == 4 * without["output_tokens"]
        run(server, tmp_path, "simplified-axtree", "--samples", 4)
        assert server.counts.calls == 20
        assert server.counts.answers.total() == 80
        totals = read_run(tmp_path / "run")["totals"]
        assert totals["cost_usd"] == pytest.approx(server.counts.usd(IN, OUT))
        assert totals["calls"] == 80  # replies, each of its own
        again = planned(server, tmp_path, "simplified-axtree", "--samples", 4)
        assert (again["calls"], again["roles"][0]["cached"]) == (0, 80)


def test_a_run_that_was_stopped_pays_only_for_the_samples_that_lack(tmp_path):
    with LLMServer("judges") as server:
        run(server, tmp_path, "simplified-axtree", "--samples", 2, "--out", tmp_path / "two")
        before = server.counts.usd(IN, OUT)
        run(server, tmp_path, "simplified-axtree", "--samples", 5)
        assert server.counts.answers.total() == 20 * 5
        assert [body["n"] for body in server.chat.bodies] == [2] * 20 + [3] * 20
        paid = server.counts.usd(IN, OUT) - before
        assert read_run(tmp_path / "run")["spent_usd"] == pytest.approx(paid)


def test_a_run_prices_what_its_plan_priced_and_both_say_by_whose_list(tmp_path):
    """README's two commands: the plan without an address, the run with one."""
    given = ["gpt-4o-mini-noscreen", "--suite", "sample", "--split", "dev", "--cache", tmp_path / "cache"]
    made = judge_runs.invoke("plan", *given, "--json")
    assert json.loads(made.stdout)["roles"][0]["price_source"].startswith("genai-prices")
    with LLMServer("judges") as server:
        there = [*given, "--base-url", server.base_url]
        same = json.loads(judge_runs.invoke("plan", *there, "--json").stdout)
        assert same["usd"] == json.loads(made.stdout)["usd"]
        result = judge_runs.invoke("run", *there, "--out", tmp_path / "run")
        assert result.exit_code == 0, result.output
        assert "cost unknown" not in result.output
        facts = read_run(tmp_path / "run")
        assert facts["totals"]["cost_usd"] == pytest.approx(server.counts.usd(0.15, 0.6))
        assert facts["prices"]["judge"] == {
            "model": "gpt-4o-mini-2024-07-18",
            "input": 0.15,
            "output": 0.6,
            "cached_input": 0.075,
            "source": same["roles"][0]["price_source"],
        }
        assert "openai's list" in same["roles"][0]["price_source"]


@pytest.mark.parametrize("judge", ["AER-V", pytest.param("NNetNav", marks=pytest.mark.slow)])
def test_a_plan_after_a_pilot_is_within_a_tenth_of_the_bill(judge, tmp_path):
    """`python -m bench.pilot` prints this for five judges."""
    with pilot.open_server() as server:
        measured = pilot.measure(server, judge, tmp_path, 5)
        assert measured.planned == pytest.approx(measured.bill, rel=0.1)
        assert server.counts.paid_twice() == {}  # the run did not pay the pilot's calls again


def test_a_pilot_is_spread_over_the_trajectories_and_says_what_it_paid(tmp_path):
    assert spread_evenly([*"abcdefghij"], 5) == (*"bdfhj",)
    assert spread_evenly([*"abc"], 9) == (*"abc",)
    assert spread_evenly([], 5) == ()
    with LLMServer("judges") as server:
        given = arguments(server, tmp_path, "simplified-axtree", "--pilot", 4)
        shown = judge_runs.invoke("plan", *given).stdout
        assert server.counts.calls == 4
        paid = f"pilot: 4 trajectories judged with 4 new calls for ${server.counts.usd(IN, OUT):.4f}"
        assert paid in shown
        assert "20 trajectories, 16 calls" in shown
        assert "replies are assumed to be like those of the pilot" in shown
        again = planned(server, tmp_path, "simplified-axtree", "--pilot", 4)
        assert again["pilot"] == {"trajectories": 4, "calls": 0, "usd": 0.0}
        assert server.counts.calls == 4


def test_a_pilot_that_cannot_be_made_says_why(tmp_path):
    with LLMServer("judges", api_key="right") as server:
        refused = judge_runs.invoke("plan", *arguments(server, tmp_path, "AER-C", "--pilot", 2))
        assert refused.exit_code == 2
        assert "--pilot: stopped: the endpoint refuses the account (401" in refused.output
    with LLMServer("judges") as server:
        given = arguments(server, tmp_path, "AER-C", "--pilot", 2, "--max-usd", 0.0001)
        stopped = judge_runs.invoke("plan", *given)
        assert stopped.exit_code == 2
        assert "--pilot: stopped at --max-usd 0.0001" in stopped.output
        assert server.counts.calls == 0
