"""`arb.reward`: batches are judged with the cache, budget and records of a run; the page's arithmetic."""

import json
import logging
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import arb
from arb.core.trajectory import Recording, Step
from arb.judges.run.scheduler import StopRunError
from tests.support.llm_server.server import LLMServer
from tests.support.pages import ENDPOINT, blocks

PAGE = (Path(__file__).parents[2] / "docs" / "where_you_work.md").read_text(encoding="utf-8")


@pytest.fixture
def server():
    with LLMServer() as running:
        yield running


@pytest.fixture
def make(server, tmp_path):
    """Makes a reward function of the rubric judge, and closes it in the end."""
    made = []

    def make(judge="rubric", **options):
        given = {"model": "m", "base_url": server.base_url, "cache": tmp_path / "cache"}
        made.append(arb.reward(judge, **given | options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def run(number: int, answer: str = "Bergen") -> list[dict]:
    return [
        {"role": "user", "content": f"Find town {number}."},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "1", "function": {"name": "look_up", "arguments": json.dumps({"town": number})}}
        ]},
        {"role": "tool", "content": f"Town {number} is Bergen.", "tool_call_id": "1"},
        {"role": "assistant", "content": answer},
    ]  # fmt: skip


def test_rewards_are_the_verdicts_of_a_run_over_the_same_messages_in_files(server, make, tmp_path):
    from tests.support.judge_runs import invoke, predictions

    for number in range(8):
        (tmp_path / "runs" / "agent").mkdir(parents=True, exist_ok=True)
        (tmp_path / "runs" / "agent" / f"{number}.json").write_text(json.dumps({"messages": run(number)}))
    found = make()([run(number) for number in range(8)])
    paid = server.counts.as_json()
    done = invoke(
        "run", "rubric", "--source", tmp_path / "runs", "--model", "m", "--base-url", server.base_url,
        "--cache", tmp_path / "cache", "--out", tmp_path / "run",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    by_id = {row["trajectory_id"].rpartition("/")[2]: row["success"] for row in predictions(tmp_path)}
    assert found.rewards == [int(by_id[str(number)]) for number in range(8)]
    assert {*found.rewards} == {0, 1} and found.states == ["ok"] * 8 and found.problems == [None] * 8
    assert server.counts.as_json() == paid  # every prompt was the same to the byte, so no call was made


def test_a_run_that_was_judged_before_costs_nothing_and_equal_runs_are_judged_once(server, make):
    reward = make(price=["m=1,2"])
    first = reward([run(1), run(1), run(2)])
    assert first.calls == 4 and first.cost_usd > 0  # criteria and ratings of two tasks
    assert first.rewards[0] == first.rewards[1]
    again = reward([run(2), run(1)])
    assert (again.calls, again.cost_usd) == (0, 0)
    assert again.rewards == [first.rewards[2], first.rewards[0]]
    assert reward.total_usd == first.cost_usd
    assert reward([]).rewards == []


def test_threads_may_share_a_reward(make):
    reward = make()
    with ThreadPoolExecutor(4) as threads:
        found = [each.rewards for each in threads.map(reward, [[run(n)] for n in range(8)])]
    assert [value for (value,) in found] == reward([run(n) for n in range(8)]).rewards


def test_the_budget_holds_for_all_batches_and_for_a_later_session_with_the_same_folder(make, tmp_path):
    options = {"price": ["m=1000,1000"], "max_usd": 4.0, "max_output_tokens": 200, "out": tmp_path / "out"}
    reward = make(**options)
    with pytest.raises(StopRunError, match=r"stopped at max_usd 4.* with a higher max_usd$"):
        for number in range(30):
            reward([run(number)])
    spent = reward.total_usd
    assert 1 < spent <= 4
    reward.close()
    again = make(**options)
    with pytest.raises(StopRunError, match="stopped at max_usd 4"):
        again([run(number) for number in range(30)])
    assert spent <= again.total_usd <= 4


def test_the_folder_has_the_records_of_a_run(make, tmp_path):
    reward = make(out=tmp_path / "out")
    found = reward([run(1), run(2)])
    reward.close()
    lines = [json.loads(line) for line in (tmp_path / "out" / "judgments.jsonl").read_text().splitlines()]
    assert [int(each["answer"]["success"]) for each in lines] == found.rewards
    facts = json.loads((tmp_path / "out" / "run.json").read_text())
    assert facts["totals"]["states"] == {"ok": 2} and facts["calls_paid"] == 4
    assert [each["ended"] for each in facts["sessions"]] == ["finished"]
    assert len((tmp_path / "out" / "predictions.jsonl").read_text().splitlines()) == 2


def test_a_run_without_a_verdict_has_no_reward_and_is_logged(server, make, caplog):
    server.chat.script = lambda request: "I cannot say."
    with caplog.at_level(logging.WARNING):
        found = make()([run(1)])
    assert (found.rewards, found.states) == ([None], ["unparsed"])
    assert "1 of 1 runs have no reward" in caplog.text


def test_a_judge_of_rewards_gets_those_next_to_messages_and_of_recordings(make):
    steps = (Step(0, action="click('1')"),)
    runs = [{"messages": run(1), "reward": 1}, Recording("a/b/c", goal="Go.", cum_reward=0.0, steps=steps)]
    assert make("rule-based", model=None, base_url=None)(runs).rewards == [1, 0]


def test_every_unusable_run_is_named_and_no_call_is_made(server, make):
    picture = [{"type": "image_url", "image_url": {"url": "/etc/passwd"}}]
    seen = {"role": "user", "content": picture}
    with pytest.raises(ValueError) as problem:
        make()([run(1), [], run(2)[:1], 5, [seen, *run(1)], [{"role": "user", "content": {1, 2}}]])
    lines = str(problem.value).splitlines()
    assert lines[0] == "no call was made"
    assert [line.partition(":")[0] for line in lines[1:]] == ["run 2", "run 3", "run 4", "run 5", "run 6"]
    assert "has no message of the agent" in lines[1] and "pass pictures as data URLs" in lines[4]
    other = Recording("a/b/c", steps=(Step(0, action="a"),))
    with pytest.raises(ValueError, match="has no screenshots"):
        make("webjudge")([other, Recording("a/b/d", steps=(Step(0, url="http://a/"),))])
    with pytest.raises(ValueError, match=r"run 1 \(a/b/c\): another run has the same id"):
        make()([other, Recording("a/b/c", steps=(Step(0, action="b"),))])
    assert server.counts.as_json()["tries"] == {}


def test_options_are_checked_before_anything_runs(make):
    for options, message in (
        ({"source": "x"}, "source: not an option of a judge of runs in memory"),
        ({"temperature": "hot"}, "temperature: Input should be a valid number"),
        ({"max_usd": 1}, "^max_usd cannot be enforced: the price of m is unknown"),
    ):
        with pytest.raises(ValueError, match=message):
            make(**options)
    with pytest.raises(ValueError, match="answers about steps"):
        make("steps")


def test_the_pages_training_loop_runs_as_it_stands(server, tmp_path, monkeypatch, capsys):
    (block,) = [text for _, _, text in blocks(PAGE) if "arb.reward(" in text]
    monkeypatch.setenv("ARB_CACHE_DIR", str(tmp_path))
    names: dict = {}
    exec(block.replace(ENDPOINT, server.base_url), names)
    names["reward"].close()
    assert set(names["batch"].rewards) <= {0, 1} and names["batch"].states == ["ok", "ok"]
    assert capsys.readouterr().out


def test_the_pages_shares_of_wrong_rewards_follow_from_the_board():
    board = arb.board()
    board = board[board["label"] == "success"].set_index("judge")
    rows = re.findall(
        r"^\| ([^|]+?)(?: \(the environment's reward\))? \|((?: [\d.]+ % \|)+)$", PAGE, re.MULTILINE
    )
    assert [name for name, _ in rows] == [
        "Rule-based", "WebJudge (GPT-4o)", "AER-C", "NNetNav", "Always successful"
    ]  # fmt: skip
    fpr = {}
    for name, cells in rows:
        tp, fp, fn, tn = (board.loc[name, count] for count in ("tp", "fp", "fn", "tn"))
        tpr, fpr[name] = tp / (tp + fn), fp / (fp + tn)
        wrong = []
        for rate in (0.05, (tp + fn) / (tp + fp + fn + tn), 0.5):
            wrong.append((1 - rate) * fpr[name] / ((1 - rate) * fpr[name] + rate * tpr))
        expected = [f"{100 * value:.1f} %" for value in (tpr, fpr[name], *wrong)]
        assert [cell.strip() for cell in cells.strip(" |").split("|")] == expected, name
    together = 100 * (fpr["Rule-based"] + fpr["WebJudge (GPT-4o)"])
    assert (
        f"most {together:.1f} %, of which the environment's part is {100 * fpr['Rule-based']:.1f} points"
        in PAGE
    )
