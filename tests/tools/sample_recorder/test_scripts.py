"""Every script, followed on the real sites by a browser of a few lines."""

import pytest

from tools.sample_recorder.agents import load_tasks
from tools.sample_recorder.record import runs
from tools.sample_recorder.rewards import REWARDS

EVERY = [(run.task.task_id, run.character.name) for run in runs()]
TASKS = sorted({task_id for task_id, _ in EVERY})
CAREFUL_MISTAKES = {"sample-map.3", "sample-market.2"}
"""The careful agent asks instead of saving, and takes an orange frame for a red one."""


@pytest.mark.parametrize(("task_id", "name"), EVERY)
def test_a_script_can_be_followed_to_its_end(follow, task_id, name):
    done = follow(task_id, name)
    assert 2 <= len(done.actions) <= 16
    assert all(text.strip() for text in done.reasoning)
    assert done.said.text


@pytest.mark.parametrize("task_id", TASKS)
def test_every_task_can_be_solved_and_can_be_failed(follow, task_id):
    rewards = {name: follow(task_id, name).reward for task, name in EVERY if task == task_id}
    assert set(rewards.values()) == {0.0, 1.0}
    assert rewards["careful"] == (0.0 if task_id in CAREFUL_MISTAKES else 1.0)


def test_a_run_leaves_nothing_for_the_next_one(follow, open_site):
    bought = follow("sample-shop.1", "careful").site
    site, browser = open_site("sample-shop")
    assert len(bought.orders) == 1
    assert site.orders == []
    assert "'Basket (0)'" in browser.tree()


def test_every_task_has_a_rule_and_every_rule_a_task():
    assert {task.task_id for task in load_tasks()} == set(REWARDS)


def test_every_agent_writes_in_its_own_words():
    """No sentence is shared by two agents, and the talkative one writes most."""
    words: dict[str, list[str]] = {}
    for run in runs():
        moves = run.task.moves[run.character.name]
        words.setdefault(run.character.name, []).extend(move[-1] for move in moves)
    lengths = {name: sum(map(len, said)) / len(said) for name, said in words.items()}
    assert sorted(lengths, key=lengths.get) == ["hasty", "stubborn", "careful", "talkative"]
    for name, said in words.items():
        others = {text for other, texts in words.items() if other != name for text in texts if len(text) > 20}
        assert not others & set(said)


def test_the_office_work_happens_in_the_frame(follow):
    actions = follow("sample-office.1", "careful").actions
    assert [action for action in actions if action.startswith(("fill('a", "select_option('a", "click('a"))]
