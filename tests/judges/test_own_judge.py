"""A judge of one's own: twenty lines in a file, named by where it is."""

from pathlib import Path

import pytest

from dataset_script import sample
from judges.base import Answer
from judges.own_judge import CustomJudgeError, is_address
from judges.registry import find_judge
from judges.views import Views
from tests.judges.shown import judged, text

TWENTY_LINES = '''"""Executor whether the last page thanks the user."""

from judges.base import Call, Message, Wants
from judges.parsing import parse_answer
from judges.prompt_files import prompts_hash

PROMPT = "Goal: {goal}\\nLast page:\\n{page}\\nIs it done? End with Status: success or failure"


class ThanksJudge:
    name, inputs, calls, source = "Thanks", "goal, last tree", "1", "my own"
    wants = Wants(axtrees="last")
    models = {"judge": "gpt-4o-mini-2024-07-18"}
    prompts_hash = prompts_hash(PROMPT)

    def ask(self, view):
        page = view.steps[-1].axtree_pruned or "(not recorded)"
        question = PROMPT.format(goal=view.goal, page=page)
        (reply,) = yield [Call("verdict", (Message("user", question),))]
        return parse_answer(reply, "status")
'''


@pytest.fixture
def own_file(tmp_path) -> Path:
    path = tmp_path / "my_judge.py"
    path.write_text(TWENTY_LINES)
    return path


def test_a_new_judge_is_a_file_of_about_twenty_lines_and_judges_recorded_runs(own_file):
    assert len(TWENTY_LINES.splitlines()) <= 22
    judge = find_judge(f"{own_file}:ThanksJudge")
    views = Views(Path(sample.__file__).parent / "data")
    shown = views.view(views.ids()[0], judge.wants)
    done = judged(judge, shown)
    assert (judge.name, done.answer.success, len(done.calls)) == ("Thanks", True, 1)
    assert shown.steps[-1].axtree_pruned in text(done.last.messages)


def test_a_judge_may_be_an_instance_in_a_module(monkeypatch, tmp_path):
    (tmp_path / "some_judges_of_mine.py").write_text(
        "from judges.constant import ConstantJudge\nYES = ConstantJudge('Yes', True)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert judged(find_judge("some_judges_of_mine:YES"), None).answer == Answer("ok", success=True)


@pytest.mark.parametrize(
    ("content", "attribute", "message"),
    [
        ("", "Judge", "has no Judge"),
        ("x = (", "x", r"cannot be loaded \(SyntaxError"),
        ("raise SystemError('no')", "x", r"cannot be loaded \(SystemError: no"),
        ("class J:\n    def __init__(self, model): ...", "J", "without arguments"),
        ("class J:\n    name = 'J'\n    def ask(self, view): ...", "J", "needs inputs, calls, source, wants"),
    ],
)
def test_what_is_wrong_with_ones_own_judge_is_told(tmp_path, content, attribute, message):
    path = tmp_path / "odd.py"
    path.write_text(content)
    with pytest.raises(CustomJudgeError, match=message):
        find_judge(f"{path}:{attribute}")


def test_a_file_or_a_module_that_is_not_there_is_told(tmp_path):
    with pytest.raises(CustomJudgeError, match="there is no such file"):
        find_judge(f"{tmp_path / 'absent.py'}:J")
    with pytest.raises(CustomJudgeError, match="no_such_module_at_all"):
        find_judge("no_such_module_at_all:J")


@pytest.mark.parametrize("name", ["GPT-4o (A)", "WebJudge(o4-mini)", "x.py", "a b:c", ":c", "x.py:"])
def test_an_ordinary_name_is_no_address(name):
    assert not is_address(name)
