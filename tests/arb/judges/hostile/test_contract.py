"""Judges that break the contract: each ends its own trajectory with one sentence, and no other."""

import itertools
import json
import re

import pytest
from typer.testing import CliRunner

from arb.judges.__main__ import app
from arb.judges.cli.options import RunOptions
from arb.judges.contract import MAX_STAGES
from arb.judges.run.config import build_config
from arb.judges.run.folder import read_judgments
from arb.judges.run.plan import plan_run
from arb.judges.run.runner import run_judge, run_local
from tests.support.llm_server.server import LLMServer

HEAD = """
import math

import numpy
from arb.judges.types import Answer, Call, Evidence, Message, Wants

QUESTION = (Message("user", "Was it done?"),)


def run_of(view):
    return view.goal + str([step.reasoning for step in view.steps])


class Mine:
    name, inputs, calls, source, prompts_hash = "mine", "goal", "1", "", "1"
    wants, models = Wants(), {"judge": "m"}
"""

ASK = """
    def ask(self, view):
        (reply,) = yield [Call("verdict", (Message("user", run_of(view)), *QUESTION))]
        if reply.text == "break":
            MISTAKE
        return Answer("ok", success=True)
"""

MISTAKES = {
    "yield None": "`ask` yields None instead of a list of calls",
    "yield True": "`ask` yields True instead",
    "yield math.nan": "`ask` yields nan instead",
    'yield Call("verdict", QUESTION)': "`ask` yields a Call instead of a list of calls",
    "yield [None]": "`ask` yields a list that contains None",
    'yield [Call("verdict", "Was it done?")]': "whose messages is 'Was it done?': use a tuple",
    'yield [Call("verdict", ("Was it done?",))]': "whose messages contains 'Was it done?'",
    'yield [Call("verdict", ())]': "whose messages is an empty tuple: send at least one message",
    'yield [Call("verdict", QUESTION, shorter=())]': "empty tuple: leave it out (None), or send",
    'yield [Call("verdict", (Message("user", None),))]': "whose messages contains a Message",
    'yield [Call("verdict", QUESTION, role="poet")]': "whose role is 'poet': `models` has judge",
    'yield [Call("verdict", QUESTION, max_output_tokens=0)]': "whose max_output_tokens is 0",
    'yield [Call("verdict", QUESTION, sample=True)]': "whose sample is True",
    'yield [Call("verdict", QUESTION, tools=["look"])]': "whose tools is a list: use a tuple of Tool",
    "return None": "`ask` returns None instead of an Answer",
    "return True": "`ask` returns True instead of an Answer",
    "return math.nan": "`ask` returns nan instead of an Answer",
    "raise SystemExit(2)": "SystemExit: 2",
    'return Answer("great")': "the state 'great': use one of ok, unsure",
    'return Answer("ok", success=1)': "whose success is 1: use True, False or None",
    'return Answer("ok", success=numpy.True_)': "success is a numpy.bool (convert it with bool(…))",
    'return Answer("ok", True, evidence=(Evidence(met=numpy.True_),))': "met is a numpy.bool (convert",
    'return Answer("ok", True, side_effect="no")': "whose side_effect is 'no'",
    'return Answer("ok", True, optimality=7)': "whose optimality is 7: use a whole number from 1 to 4",
    'return Answer("ok", True, score=7.5)': "whose score is 7.5: use a number from 0 to 1",
    'return Answer("ok", True, score=math.nan)': "whose score is nan",
    'return Answer("ok", True, reasoning=3)': "whose reasoning is 3",
    'return Answer("ok", True, evidence=[1])': "evidence is not a tuple of at most 100 Evidence",
    'return Answer("ok", True, evidence=(1,))': "evidence contains 1: use Evidence",
    'return Answer("ok", True, evidence=(Evidence(step="3"),))': "step is '3': use int or None",
    'return Answer("ok", True, evidence=(Evidence(met=1),))': "met is 1: use bool or None",
    'return Answer("ok")': "ValueError: the state 'ok' does not match success None",
    "return 1 / 0": "ZeroDivisionError: division by zero",
    "raise OSError('no disk')": "OSError: no disk",
}


def write_judge(folder, body):
    path = folder / "mine.py"
    path.write_text(HEAD + body)
    return f"{path}:Mine"


def line_of(folder, text):
    lines = (folder / "mine.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, start=1) if text in line)


def run(folder, server, judge, **more):
    given = {"split": "dev", "suite": "sample", "limit": 4, "cache": folder / "cache"}
    options = RunOptions(judge=judge, base_url=server.base_url, **given, **more)
    outcome = run_judge(build_config(options), folder / "run", run_local)
    return outcome, {each["trajectory_id"]: each for each in read_judgments(folder / "run")}


def first_breaks():
    """A script whose first answer makes the judge break its contract; all later ones do not."""
    numbers = itertools.count()
    return lambda request: "fine" if next(numbers) else "break"


@pytest.mark.parametrize("samples", [1, 2])
@pytest.mark.parametrize(("mistake", "said"), MISTAKES.items(), ids=MISTAKES)
def test_a_mistake_ends_one_trajectory_with_a_sentence_that_names_file_and_line(
    tmp_path, mistake, said, samples
):
    judge = write_judge(tmp_path, ASK.replace("MISTAKE", mistake))
    with LLMServer(first_breaks()) as server:
        outcome, records = run(tmp_path, server, judge, samples=samples)
        assert server.counts.answers.total() == 4 * samples  # nothing was asked after the mistake
    assert outcome.ended.how == "finished"
    assert sorted(each["state"] for each in records.values()) == ["error", "ok", "ok", "ok"]
    (failed,) = (each for each in records.values() if each["state"] == "error")
    problem = failed["problem"]
    # the replies are paid for, so they are recorded
    assert "break" in [call["reply"]["text"] for call in failed["calls"]] and failed["output_tokens"] > 0
    assert problem.startswith(f"mine.py, in ask, line {line_of(tmp_path, mistake)}: ") and said in problem
    assert "\n" not in problem
    shown = CliRunner().invoke(app, ["show", str(tmp_path / "run"), failed["trajectory_id"]])
    assert f"problem: {problem}\n" in shown.stdout


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("    async def ask(self, view):\n        return None\n", "is declared `async def`"),
        ("    async def ask(self, view):\n        yield []\n", "is declared `async def`"),
        ("    def ask(self, view):\n        return Answer('ok', True)\n", "returns an Answer without having"),
        ("    def ask(self, view):\n        return [Call('verdict', QUESTION)]\n", "returns a list without"),
        ("    def ask(self):\n        yield []\n", "TypeError: "),
    ],
)
@pytest.mark.filterwarnings("error")
def test_an_ask_that_is_no_generator_ends_trajectories_and_pays_nothing(tmp_path, body, said):
    judge = write_judge(tmp_path, body)
    with LLMServer() as server:
        outcome, records = run(tmp_path, server, judge)
        assert server.counts.calls == 0
    assert outcome.totals["states"] == {"error": 4}
    problems = {each["problem"] for each in records.values()}
    assert len(problems) == 1 and said in problems.pop()


def test_a_judge_that_never_answers_stops_after_a_hundred_stages(tmp_path):
    body = """
    def ask(self, view):
        for number in range(10_000):
            yield [Call("again", (Message("user", f"{run_of(view)} {number}"),))]
        return Answer("ok", success=True)
"""
    judge = write_judge(tmp_path, body)
    with LLMServer(lambda request: "fine") as server:
        _, records = run(tmp_path, server, judge)
        assert server.counts.answers.total() == 4 * 100  # of 4 trajectories
    assert {each["state"] for each in records.values()} == {"error"}
    assert "`ask` has yielded calls 100 times without an answer" in records.popitem()[1]["problem"]


def test_a_judge_that_answers_after_exactly_a_hundred_stages_is_fine(tmp_path):
    body = f"""
    def ask(self, view):
        for number in range({MAX_STAGES}):
            yield []
        return Answer("ok", success=True)
"""
    with LLMServer() as server:
        outcome, _ = run(tmp_path, server, write_judge(tmp_path, body))
    assert outcome.totals["states"] == {"ok": 4}


def test_names_of_attributes_mean_nothing_special(tmp_path):
    extra = """
    judge = cheap = strong = parts = "mine"
    output_tokens = images = form = response_format = templates = "mine"
    takes_text_for_screenshots = is_structured = is_inverted = is_official = "mine"
    describe = n = probe = value = number = variants = "mine"
"""
    judge = write_judge(tmp_path, extra + ASK.replace("MISTAKE", "pass"))
    with LLMServer(lambda request: "fine") as server:
        outcome, _ = run(tmp_path, server, judge)
    assert (outcome.totals["states"], outcome.judge) == ({"ok": 4}, "mine")
    facts = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (facts["configuration"]["judge"], facts["judge"]["judge_args"]["invert_sys_prompt"]) == (
        "mine",
        False,
    )


def test_plan_says_which_trajectories_a_mistake_will_end(tmp_path):
    judge = write_judge(
        tmp_path, ASK.replace('if reply.text == "break"', "if True").replace("MISTAKE", "yield None")
    )
    options = RunOptions(judge=judge, split="dev", suite="sample", limit=2, base_url="http://127.0.0.1:9/v1")
    made = plan_run(build_config(options, will_run=False))
    assert {re.sub(r"line \d+", "line N", each) for each in made.problems.values()} == {
        "mine.py, in ask, line N: `ask` yields None instead of a list of calls: write `yield [Call(…)]`"
    }
    command = ["plan", judge, "--split", "dev", "--suite", "sample", "--limit", "2"]
    said = CliRunner().invoke(app, [*command, "--base-url", "http://127.0.0.1:9/v1"])
    assert said.exit_code == 0 and "2 trajectories will end in the state `error`" in said.output
    assert "Next, run it" not in said.output


@pytest.mark.parametrize(
    ("mistake", "expected"),
    [
        ("return 3", "line 4: `judge_reward` returns 3 instead of an Answer"),
        ("raise SystemExit(2)", "line 5: SystemExit: 2"),
        ("return 1 / 0", "line 5: ZeroDivisionError: division by zero"),
    ],
)
def test_a_reward_judge_is_checked_too(tmp_path, mistake, expected):
    path = tmp_path / "mine.py"
    path.write_text(
        f"class Mine:\n    name = 'mine'\n\n    def judge_reward(self, cum_reward):\n        {mistake}\n"
    )
    options = RunOptions(judge=f"{path}:Mine", split="dev", suite="sample", limit=2)
    run_judge(build_config(options), tmp_path / "run", run_local)
    (said,) = {each["problem"] for each in read_judgments(tmp_path / "run")}
    assert said.startswith(f"mine.py, in judge_reward, {expected}")
