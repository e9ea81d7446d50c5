"""The books of the endpoint against what is printed: equal to the cent, for every judge of the catalogue."""

import json
import re

import pytest

from arb.judges.registry import entries
from arb.judges.run.folder import read_run
from bench import pilot
from tests.support import judge_runs
from tests.support.llm_server.faults import FaultPlan
from tests.support.llm_server.server import LLMServer
from tests.support.llm_server.tokens import InputCache

IN, OUT, CACHED = 250.0, 1_000.0, 125.0
"""Dollars for a million tokens: high ones, so that a cent is much less than one call."""

LIMIT = 6
JUDGES = [entry.judge.name for entry in entries() if getattr(entry.judge, "models", None)]
TO_THE_CENT = 0.005
PAID = re.compile(
    r"^paid: \$([\d.]+) for ([\d,]+) calls?(?:, of which \$([\d.]+) for ([\d,]+) in this session)?$", re.M
)
PER_JUDGMENT = re.compile(r"^per judgment: \$([\d.]+), ([\d.]+) repl(?:y|ies)", re.M)


def run(server, folder, judge, *arguments):
    options = ("--limit", LIMIT, "--price", f"m={IN},{OUT},{CACHED}", *arguments)
    result = judge_runs.run(server.base_url, folder, *options, judge=judge, split="dev")
    assert result.exit_code in (0, 3), result.output
    return result


def paid(result) -> tuple[float, int]:
    """What the summary says was paid in all sessions of the run."""
    usd, calls, *_ = PAID.search(result.output).groups()
    return float(usd), int(calls.replace(",", ""))


def session_paid(result) -> tuple[float, int]:
    usd, calls, session_usd, session_calls = PAID.search(result.output).groups()
    return float(session_usd or usd), int((session_calls or calls).replace(",", ""))


def bill(server) -> float:
    return server.counts.usd(IN, OUT, CACHED)


@pytest.mark.slow
@pytest.mark.parametrize("judge", JUDGES)
def test_what_is_printed_is_what_the_endpoint_billed(judge, tmp_path):
    with LLMServer("judges", input_cache=InputCache(), reasoning_tokens=lambda request: 40) as server:
        first = run(server, tmp_path, judge)
        assert paid(first) == (pytest.approx(bill(server), abs=TO_THE_CENT), server.counts.calls)
        before = bill(server)
        # A second run of the same calls pays nothing, and its judgments cost what the first one paid.
        again = run(server, tmp_path, judge, "--out", tmp_path / "again")
        assert (paid(again), bill(server)) == ((0.0, 0), before)
        per_judgment = [PER_JUDGMENT.search(each.output).groups() for each in (first, again)]
        assert per_judgment[0] == per_judgment[1]
        facts = read_run(tmp_path / "run")
        assert (facts["spent_usd"], facts["calls_paid"]) == (pytest.approx(before), server.counts.calls)


def test_a_call_that_several_trajectories_share_is_printed_once(tmp_path):
    """WebJudge asks for the key points of a task once, for the runs of all four agents."""
    with LLMServer("judges") as server:
        result = run(server, tmp_path, "webjudge")
        totals = read_run(tmp_path / "run")["totals"]
        assert totals["calls"] > server.counts.calls
        assert paid(result) == (pytest.approx(bill(server), abs=TO_THE_CENT), server.counts.calls)
        usd, replies = PER_JUDGMENT.search(result.output).groups()
        assert float(usd) == pytest.approx(totals["cost_usd"] / LIMIT, abs=TO_THE_CENT)
        assert float(usd) * LIMIT > bill(server) + TO_THE_CENT
        assert float(replies) == pytest.approx(totals["calls"] / LIMIT, rel=0.01)


@pytest.mark.parametrize("more", [("--samples", 3), ("--batch",), ("--cascade", "AER-V,NNetNav")])
def test_samples_batches_and_cascades_are_printed_as_they_were_billed(more, tmp_path, monkeypatch):
    monkeypatch.setattr("arb.judges.run.batch.POLL_S", 0.05)
    with LLMServer("judges") as server:
        result = run(server, tmp_path, None if more[0] == "--cascade" else "simplified-axtree", *more)
        usd, calls = paid(result)
        assert usd == pytest.approx(bill(server), abs=TO_THE_CENT)
        assert calls == (server.counts.calls or LIMIT)


def test_a_stopped_run_prints_all_that_it_paid_and_what_this_session_paid(tmp_path):
    with LLMServer("judges") as server:
        first = run(server, tmp_path, "simplified-axtree", "--limit", 2)
        one = bill(server)
        second = run(server, tmp_path, "simplified-axtree")
        assert paid(first) == (pytest.approx(one, abs=TO_THE_CENT), 2)
        assert paid(second) == (pytest.approx(bill(server), abs=TO_THE_CENT), LIMIT)
        assert session_paid(second) == (pytest.approx(bill(server) - one, abs=TO_THE_CENT), LIMIT - 2)
        third = run(server, tmp_path, "simplified-axtree")
        assert session_paid(third) == (0.0, 0)


def test_under_a_cap_no_more_than_the_cap_is_printed(tmp_path):
    with LLMServer("judges") as server:
        run(server, tmp_path, "webjudge", "--out", tmp_path / "first", "--limit", 3)
        before, cap = bill(server), 0.6 * bill(server)
        result = run(server, tmp_path, "webjudge", "--max-usd", cap)
        usd, _ = paid(result)
        assert usd == pytest.approx(bill(server) - before, abs=TO_THE_CENT)
        assert usd <= cap


def test_json_has_the_bill_next_to_the_totals(tmp_path):
    with LLMServer("judges") as server:
        run(server, tmp_path, "webjudge", "--limit", 2)
        printed = json.loads(run(server, tmp_path, "webjudge", "--json").stdout)["paid"]
        assert printed["usd"] == pytest.approx(bill(server))
        assert printed["calls"] == server.counts.calls
        assert 0 < printed["session_usd"] < printed["usd"]
        assert 0 < printed["session_calls"] < printed["calls"]


@pytest.mark.slow
def test_tries_whose_tokens_the_endpoint_counted_are_on_the_bill_too(tmp_path):
    faults = FaultPlan({"choices_empty": 0.3, "content_null": 0.3}, seed=1, at_most=2)
    with LLMServer("judges", faults=faults) as server:
        result = run(server, tmp_path, "simplified-axtree")
        assert server.counts.unusable.total() > 0
        assert paid(result)[0] == pytest.approx(bill(server), abs=TO_THE_CENT)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_plan_of_webjudge_after_a_pilot_is_within_a_tenth_of_the_bill(seed, tmp_path):
    with pilot.open_server(seed) as server:
        measured = pilot.measure(server, "WebJudge (o4-mini)", tmp_path, 5)
        assert measured.planned == pytest.approx(measured.bill, rel=0.1)
