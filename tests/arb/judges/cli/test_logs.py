"""Logs of every format: from the folder to a judge's prompts, to verdicts, to an estimate."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arb.judges.__main__ import app
from leaderboard.__main__ import app as leaderboard
from tests.support.llm_server import scripts
from tests.support.llm_server.server import LLMServer

LOGS = Path(__file__).parents[3] / "dataset_script" / "sources"


@pytest.mark.parametrize(
    ("folder", "judge", "runs", "in_prompts"),
    [
        (
            "inspect_logs/0.3.285/towns",
            "simplified-axtree",
            5,
            (
                "Find the town and name it.",
                'look_up(name="nothing")',
                "a harbour town of the north",
                "Blue town",
            ),
        ),
        (
            "inspect_logs/0.3.285/agents",
            "simplified-axtree",
            3,
            (
                "Observation: Successfully transferred to librarian.",
                "The last observation, of a run without web pages:\n\nPlease proceed to the next step",
                "The agent's final answer:\nDone.\n\nIn the third row.",
            ),
        ),
        (
            "online_mind2web_by_hand",
            "simplified-screenshot",
            4,
            ("cheapest tea kettle", "CLICK coords(88, 40)", "The button did nothing.", "costs 12 €."),
        ),
        (
            "atif_by_harbor/jobs",
            "simplified-axtree",
            10,
            ("Count the words of notes.txt.", 'Bash(command="wc -w notes.txt")', "vmlinux", "It is Monday."),
        ),
        (
            "recorded_by_browser_use",
            "simplified-axtree",
            10,
            ("cheapest tea kettle", 'navigate(url="https://shop.example/"', "Press Enter.", "href=/k1"),
        ),
    ],
)
def test_logs_become_prompts_verdicts_and_an_estimate(monkeypatch, tmp_path, folder, judge, runs, in_prompts):
    monkeypatch.setenv("ARB_CACHE_DIR", str(tmp_path / "cache"))
    prompts = []

    def judging(request):
        prompts.append(request.text)
        return scripts.judges(request)

    run, labels = tmp_path / "run" / "predictions.jsonl", tmp_path / "labels.jsonl"
    with LLMServer(script=judging) as server:
        where = ("--source", str(LOGS / folder), "--out", str(run.parent), "--base-url", server.base_url)
        told = CliRunner().invoke(app, ["run", judge, *where])
    assert told.exit_code == 0, told.output
    verdicts = [json.loads(line) for line in run.read_text().splitlines()]
    assert (len(verdicts), {row["state"] for row in verdicts}) == (runs, {"ok"})
    assert [text for text in in_prompts if text not in "\n".join(prompts)] == []
    assert "PLANTED LABEL" not in "\n".join(prompts)

    answers = [{"trajectory_id": row["trajectory_id"], "success": True} for row in verdicts[::2]]
    labels.write_text("".join(f"{json.dumps(answer)}\n" for answer in answers))
    files = ("--verdicts", str(run), "--labels", str(labels))
    told = CliRunner().invoke(leaderboard, ["estimate", *files, "--json"])
    assert told.exit_code == 0, told.output
    found = json.loads(told.stdout)
    assert sum(each["n"] for each in found["agents"]) == runs + len(found.get("crashed", {}).get("runs", ()))
