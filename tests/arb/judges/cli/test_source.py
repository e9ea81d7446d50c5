"""Runs of one's own, without a suite, without web pages: from a folder to prompts, verdicts, an estimate."""

import json
import re

import pytest
from typer.testing import CliRunner

from arb.judges.__main__ import app
from arb.judges.run.folder import read_run
from leaderboard.__main__ import app as leaderboard
from tests.support.llm_server import scripts
from tests.support.llm_server.server import LLMServer
from tests.support.text_runs import BROWSING, IDS, IN_A_BROWSER, READING, REPEAT

TEXT_JUDGES = ("simplified-axtree", "simplified-neither", "AER-C", "NNetNav")


@pytest.fixture(scope="module")
def _server():
    prompts: list[str] = []

    def judging(request):
        prompts.append(request.text)
        return scripts.judges(request)

    with LLMServer(script=judging) as opened:
        yield opened, prompts


@pytest.fixture
def asked(_server) -> list[str]:
    """The prompts that the server was sent in this test."""
    _server[1].clear()
    return _server[1]


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    monkeypatch.setenv("ARB_CACHE_DIR", str(tmp_path / "cache"))

    def invoked(*arguments, application=app):
        return CliRunner().invoke(application, [str(each) for each in arguments])

    return invoked


@pytest.fixture
def judge_source(invoke, tmp_path, asked, _server, text_runs):
    """A function that judges the text runs; gives the run's folder."""
    address = _server[0].base_url

    def run(judge, *more, out="run", exit_code=0):
        place = tmp_path / out
        told = invoke("run", judge, "--source", text_runs, "--out", place, "--base-url", address, *more)
        assert told.exit_code == exit_code, told.output
        return place

    return run


def rows_of(run) -> dict[str, dict]:
    lines = (run / "predictions.jsonl").read_text().splitlines()
    return {row["trajectory_id"]: row for row in map(json.loads, lines)}


def test_from_a_folder_to_verdicts_to_an_estimate(judge_source, invoke, tmp_path):
    run = judge_source("simplified-axtree")
    assert tuple(rows_of(run)) == IDS
    assert {row["state"] for row in rows_of(run).values()} == {"ok"}
    said = read_run(run)
    assert (said["configuration"]["suite"], said["configuration"]["split"]) == ("runs-of-logs", "test")
    source = said["source"]
    assert (source["name"], source["kind"], source["left_out"]) == ("logs", "text", 0)
    assert re.fullmatch("[0-9a-f]{64}", source["sha256"])
    assert str(tmp_path) not in (run / "run.json").read_text()
    (tmp_path / "labels.csv").write_text(f"trajectory_id,success\n{READING},true\n{REPEAT},false\n")
    verdicts = ("--verdicts", run / "predictions.jsonl", "--labels", tmp_path / "labels.csv", "--json")
    told = invoke("estimate", *verdicts, application=leaderboard)
    assert told.exit_code == 0, told.output
    agents = {each["agent"]: each["n"] for each in json.loads(told.stdout)["agents"]}
    assert agents == {"asker": 1, "solver": 2}


def test_the_same_command_goes_on_and_a_changed_source_is_judged_apart(judge_source, asked, text_runs):
    run = judge_source("simplified-neither", "--limit", 1)
    assert len(asked) == 1
    judge_source("simplified-neither")
    judge_source("simplified-neither")
    assert len(asked) == len(rows_of(run)) == 3  # one for each run
    before = (run / "judgments.jsonl").read_bytes()
    changed = text_runs / "run-0.json"
    changed.write_text(changed.read_text().replace("12 passed", "11 passed"))
    judge_source("simplified-neither")
    assert len(asked) == 4 and "11 passed" in asked[-1]  # the two other runs are as they were
    assert (run / "judgments.jsonl").read_bytes() == before
    apart = run.with_name("run-2")
    assert len(rows_of(apart)) == 3
    assert read_run(apart)["source"]["sha256"] != read_run(run)["source"]["sha256"]


def test_a_plan_asks_nothing_and_counts_the_runs_of_the_folder(invoke, text_runs):
    told = invoke("plan", "NNetNav", "--source", text_runs, "--json")
    assert told.exit_code == 0, told.output
    # changes between observations: 2 of one run, 1 of each of the two others; and three verdicts
    assert json.loads(told.stdout)["calls"] == 4 + 3
    assert "3 runs of 2 agents" in told.stderr


@pytest.mark.parametrize("judge", ["simplified-both", "simplified-screenshot", "AER-V", "webjudge"])
def test_a_judge_of_screenshots_refuses_runs_without_any_before_the_first_call(
    invoke, text_runs, judge, tmp_path
):
    for command in (("plan", judge), ("run", judge, "--out", tmp_path / "run")):
        told = invoke(*command, "--source", text_runs, "--base-url", "http://127.0.0.1:9/v1")
        assert told.exit_code == 2
        assert "cannot judge 3 of 3 runs; no call was made" in told.output
        assert f"without screenshots: {', '.join(IDS)}" in told.output
        able = re.search("judges that can: (.*)", told.output)[1].split(", ")
        assert set(TEXT_JUDGES) <= set(able) and not {"AER-V", "simplified-both"} & set(able)
        assert "--skip-incomplete" not in told.output  # nothing would be left
    assert not (tmp_path / "run").exists()


def test_of_a_mixture_the_incomplete_runs_are_named_and_may_be_skipped(judge_source, asked, text_runs):
    (text_runs / "browsing.json").write_text(json.dumps(IN_A_BROWSER))
    judge_source("simplified-both", exit_code=2)
    assert asked == []
    run = judge_source("simplified-both", "--skip-incomplete")
    assert list(rows_of(run)) == [BROWSING] and len(asked) == 1
    assert (read_run(run)["selection"]["skipped"], read_run(run)["selection"]["without_a_run"]) == (3, 0)
    assert list(rows_of(judge_source("simplified-axtree", out="all"))) == [*IDS, BROWSING]


@pytest.mark.parametrize("judge", TEXT_JUDGES)
def test_judges_that_read_are_shown_what_was_observed_and_the_answer(judge_source, asked, judge):
    run = judge_source(judge)
    assert rows_of(run)[READING]["state"] == "ok"
    whole = "\n".join(asked)
    assert "12 passed in 0.1s" in whole and "1 failed: <empty> line" in whole
    assert "The agent's final answer:\nThe parser now reads <empty> lines." in whole
    assert "reward" not in whole.replace("Reward: ", "") and "solver" not in whole and "model-x" not in whole


@pytest.mark.parametrize(
    ("judge", "more", "said"),
    [
        ("simplified-axtree", ("--suite", "sample"), "--source and --suite cannot be used together"),
        (
            "simplified-axtree",
            ("--agent", "nobody"),
            "--agent nobody: not in runs-of-logs; use asker, solver",
        ),
        ("rule-based", (), "needs rewards, which are not read from --source"),
        ("simplified-axtree", ("--agent-from", "model"), "--agent-from model: no run records this"),
        (
            "simplified-axtree",
            ("--agent-from", "model", "--split", "dev", "--suite", "sample"),
            "--agent-from needs --source without --split",
        ),
    ],
)
def test_what_does_not_go_with_a_source_is_refused_in_words(invoke, text_runs, judge, more, said, tmp_path):
    told = invoke("run", judge, "--source", text_runs, "--out", tmp_path / "run", *more)
    assert (told.exit_code, said in told.output) == (2, True), told.output


def test_a_command_without_runs_says_how_to_name_them(invoke):
    told = invoke("plan", "simplified-axtree")
    assert (
        told.exit_code == 2 and "--split dev or --split test for those of a suite, or --source" in told.output
    )


def test_files_that_give_no_run_are_named_each_time(invoke, text_runs, tmp_path):
    (text_runs / "run-1.json").write_text('{"trajectory_id": "coding/solver/broken"}')
    for command in (("plan",), ("plan",)):
        told = invoke(*command, "always-successful", "--source", text_runs)
        assert told.exit_code == 0, told.output
        assert "left out: 1 file without a usable run:\n  run-1.json: KeyError" in told.stderr


def test_ctrl_c_while_the_source_is_read_ends_the_command_in_words(invoke, text_runs, monkeypatch):
    def interrupted(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("dataset_script.new_suite.build", interrupted)
    told = invoke("plan", "always-successful", "--source", text_runs)
    assert told.exit_code == 130 and "run the same command again to resume" in told.output


def test_pictures_of_a_judgment_are_found_in_the_source(judge_source, invoke, text_runs, tmp_path):
    (text_runs / "browsing.json").write_text(json.dumps(IN_A_BROWSER))
    run = judge_source("simplified-both", "--skip-incomplete")
    pictures = ("--pictures", tmp_path / "pictures", "--source", text_runs)
    told = invoke("show", run, BROWSING, *pictures)
    assert told.exit_code == 0, told.output
    assert [path.suffix for path in (tmp_path / "pictures").iterdir()] == [".png"]
