"""The judge with tools: it looks back from the end, within its bounds, and every look is in the records."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from arb.judges.catalog.tool_judge import ToolJudge
from arb.judges.run.folder import read_judgments
from arb.judges.types import Evidence, Reply, ToolCall
from tests.support import judge_runs
from tests.support.judges import images, judged, text, view
from tests.support.llm_server.faults import FaultPlan
from tests.support.llm_server.server import LLMServer

VERDICT = (
    "1 | required | met | step 3 | two teapots: the basket has them\n2 | optional | not met | - | a note"
)
JUDGE = ToolJudge("tools", "m")


def look(number: int, name: str = "open_step", cost_usd: float | None = None, **arguments) -> Reply:
    asked = ToolCall(f"call_{number}", name, json.dumps(arguments or {"n": 1}))
    return Reply("I look.", finish_reason="tool_calls", tool_calls=(asked,), cost_usd=cost_usd)


def replies(*given: Reply):
    """The replies in turn, the last one for ever."""
    left = list(given)
    return lambda call: left.pop(0) if len(left) > 1 else left[0]


def test_it_sees_the_end_and_then_what_it_asked_for():
    done = judged(JUDGE, view(), replies(look(1), look(2, "screenshot", n=2), Reply(VERDICT)))
    first, second, third = done.calls
    assert "tree 3 pruned" in text(first.messages) and "tree 1" not in text(first.messages)
    assert [each.content for each in images(first.messages)] == [view().steps[2].screenshot.content]
    asked, told = second.messages[-2:]
    assert (asked.role, asked.content, asked.tool_calls[0].id) == ("assistant", "I look.", "call_1")
    assert (told.role, told.tool_call_id) == ("tool", "call_1") and "tree 1 pruned" in told.content
    assert images(third.messages)[-1] == view().steps[1].screenshot
    assert third.messages[: len(second.messages)] == second.messages  # a provider can reuse its cache
    assert (done.answer.state, done.answer.success) == ("ok", True)
    assert done.answer.evidence == (
        Evidence(3, None, True, "two teapots: the basket has them"),
        Evidence(None, None, False, "a note"),
    )


def test_after_the_last_call_that_it_may_make_it_has_no_verdict():
    done = judged(JUDGE, view(), replies(look(1)))
    assert len(done.calls) == 8
    assert "Answer now" in text(done.last.messages) and "Answer now" not in text(done.calls[-2].messages)
    assert done.answer.state == "unparsed"


def test_after_the_dollars_that_it_may_spend_the_next_call_is_the_last():
    # 0.2 + 0.2 < 0.5 <= 0.2 + 0.2 + 0.2, so the fourth call is the last
    done = judged(JUDGE, view(), replies(look(1, cost_usd=0.2)))
    assert len(done.calls) == 4


@pytest.mark.parametrize("state", ["error", "refused", "too_long"])
def test_a_failed_call_ends_the_judgment_in_its_state(state):
    done = judged(JUDGE, view(), replies(look(1), Reply(state=state)))
    assert (len(done.calls), done.answer.state) == (2, state)


def test_a_run_has_every_look_in_its_records_and_a_second_run_pays_nothing(tmp_path):
    with LLMServer() as server:
        assert judge_runs.run(server.base_url, tmp_path, judge="tools", split="dev").exit_code == 0
        paid = server.counts.calls
        for body in server.chat.bodies:
            assert [tool["function"]["name"] for tool in body["tools"]] == [
                "open_step", "screenshot", "search", "diff",
            ]  # fmt: skip
        again = ("--out", tmp_path / "again")
        assert judge_runs.run(server.base_url, tmp_path, *again, judge="tools", split="dev").exit_code == 0
        assert server.counts.calls == paid
    records = list(read_judgments(tmp_path / "run"))
    assert list(map(without_cache, records)) == list(map(without_cache, read_judgments(tmp_path / "again")))
    for record in records:
        tools = [[each["name"] for each in call["reply"].get("tool_calls", ())] for call in record["calls"]]
        assert tools == [["open_step", "search"], ["screenshot"], []]
        assert record["answer"]["evidence"][0] | {"met": True} == {
            "step": 1, "met": True, "text": "the goal: the page shows it",
        }  # fmt: skip
    row = judge_runs.predictions(tmp_path)[0]
    assert row["reasoning"].splitlines() == [
        f"{'met' if row['success'] else 'not met'}, step 1: the goal: the page shows it",
        "met, step 999: told",
        'Looked up: open_step({"n": 1}), search({"text": "the"}), screenshot({"n": 1})',
    ]
    shown = judge_runs.invoke("show", tmp_path / "run", records[0]["trajectory_id"]).output
    assert 'calls open_step({"n": 1})' in shown and "Answer without" not in shown


def without_cache(record: dict) -> dict:
    """The record without the field that says which replies came from the cache."""
    calls = [{**call, "reply": {**call["reply"], "is_from_cache": None}} for call in record["calls"]]
    return {**record, "calls": calls}


KILLS, IN_FLIGHT = 10, 4


@pytest.mark.slow
def test_of_ten_kills_under_faults_only_replies_in_flight_are_paid_again(tmp_path):
    """A call follows from the replies before it, which are cached, so it is the same call after a kill."""
    draw, at_risk, kills = random.Random(0), 0, 0
    faults = ("rate_limit", "server_error", "cut_json", "reset", "choices_empty", "slow_stream")
    plan = FaultPlan(dict.fromkeys(faults, 0.03), seed=1, at_most=2)
    with LLMServer(latency_s=0.1, faults=plan) as server:
        given = judge_runs.options(server, tmp_path, "--out", tmp_path / "run", judge="tools", split="test")
        command = [sys.executable, "-m", "arb", "judges", "run", *given, "--max-in-flight", str(IN_FLIGHT)]
        for _ in range(KILLS):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            before, more = server.counts.calls, draw.randint(6, 12)
            while server.counts.calls < before + more and process.poll() is None:
                time.sleep(0.01)
            kills += process.poll() is None
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            at_risk += IN_FLIGHT
        assert kills == KILLS, "the run ended before all kills"
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        assert sum(number - 1 for number in server.counts.paid_twice().values()) <= at_risk
        assert sum(server.counts.faults.values()) > 10
        paid = server.counts.calls
        assert subprocess.run(command, capture_output=True, check=False).returncode == 0
        assert server.counts.calls == paid
    rows = judge_runs.predictions(tmp_path)
    assert len(rows) == judge_runs.HELD_OUT
    assert {row["state"] for row in rows} == {"ok"}
    assert max(len(record["calls"]) for record in read_judgments(tmp_path / "run")) <= JUDGE.max_calls
