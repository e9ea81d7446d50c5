import pytest

from arb.core.suite import load_suite
from tools.sample_recorder.agents import load_tasks

SCRIPT = """
[[task]]
id = "sample-shop.9"
split = "dev"
goal = "Look."
path = "/"
[task.moves]
careful = [["say", "Seen.", "why"]]
hasty = [["say", "Seen.", "why"]]
stubborn = [["say", "Seen.", "why"]]
talkative = [["say", "Seen.", "why"]]
"""


def test_every_script_that_cannot_be_followed_is_named_at_once(tmp_path):
    wrong = SCRIPT.replace('hasty = [["say", "Seen."', 'hasty = [["shout", "Seen."')
    wrong = wrong.replace("stubborn =", "lazy =")
    (tmp_path / "shop.toml").write_text(wrong)
    with pytest.raises(ValueError) as problem:
        load_tasks(tmp_path)
    said = str(problem.value)
    assert "sample-shop.9, hasty, move 0: cannot be read: ['shout', 'Seen.', 'why']" in said
    assert "'lazy'" in said
    assert "'stubborn'" in said


def test_the_tasks_are_those_of_the_shipped_suite_split_by_task():
    suite = load_suite("sample")
    splits = {task.task_id: task.split for task in load_tasks()}
    assert {trajectory.task: trajectory.split for trajectory in suite.trajectories} == splits
    # 18 tasks by 4 agents; 5 tasks, one of each site, are dev: 28 %
    assert len(splits) == 18
    assert len(suite.trajectories) == 72
    assert sorted(task.rpartition(".")[0] for task, split in splits.items() if split == "dev") == [
        "sample-forum",
        "sample-map",
        "sample-market",
        "sample-office",
        "sample-shop",
    ]
