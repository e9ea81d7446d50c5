"""What no judge may be told: the reward, the labels, who acted, and which trajectory it is.

Recorded runs are planted with words and numbers in every place that names one of those, and every message of
every judge is searched for them.
"""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from arb.judges.catalog.aer import AerJudge
from arb.judges.catalog.nnetnav import NNetNavJudge
from arb.judges.catalog.simplified import SimplifiedJudge
from arb.judges.registry import find_judge
from arb.judges.tools import RunTools
from arb.judges.types import ToolCall, Wants
from arb.judges.views import Views
from dataset_script.sources import published as published_views
from tests.support.judges import image, images, judged, judges, picture, text

AGENT, MODEL, BENCHMARK, TASK, EXPERIMENT, REWARD, ERROR, PROMPT = PLANTED = (
    "GenericAgent-planted-agent",
    "planted-model",
    "plantedbench",
    "plantedbench.77",
    "planted-experiment",
    "0.734519",
    "planted error of the environment",
    "planted prompt of the agent",
)
TRAJECTORY_ID = f"{BENCHMARK}/{AGENT}/{TASK}"
OF_THE_PACKAGE = (SimplifiedJudge, AerJudge, NNetNavJudge)
"""Judges whose official words are those of the package."""
ASKING = [name for name, judge in judges().items() if hasattr(judge, "ask")]


@pytest.fixture
def planted(tmp_path):
    """A run of three observations in the released layout, with everything in it that must not be shown."""
    screenshots = tmp_path / "screenshots" / BENCHMARK / AGENT / TASK
    screenshots.mkdir(parents=True)
    steps = []
    for number in range(3):
        (screenshots / f"screenshot_step_{number}.png").write_bytes(picture(number))
        is_last = number == 2
        steps.append(
            {
                "num": number,
                "url": f"http://shop/{number}",
                "action": None if is_last else f"click('{number}')",
                "reasoning": None if is_last else f"reason {number}",
                "screenshot_path": f"screenshots/{BENCHMARK}/{AGENT}/{TASK}/screenshot_step_{number}.png",
                "last_action_error": "",
                "focused_element": "1",
                "stats": {"cost": REWARD, "model": MODEL},
                "axtree": f"tree {number}",
                "axtree_pruned": f"pruned {number}",
                "axtree_obj": {"nodes": [], "agent": AGENT},
                "chat_messages": [{"role": "system", "content": PROMPT}],
                "bounding_boxes": {},
            }
        )
    run = {
        "benchmark": BENCHMARK,
        "agent": AGENT,
        "model": MODEL,
        "valid": True,
        "experiment": EXPERIMENT,
        "goal": "Buy a teapot.\n",
        "seed": 0,
        "model_args": {"model_name": MODEL},
        "flags": {"agent": AGENT},
        "summary_info": {"n_steps": 2, "cum_reward": float(REWARD), "err_msg": ERROR, "terminated": True},
        "steps": steps,
    }
    file = tmp_path / "cleaned" / BENCHMARK / AGENT / EXPERIMENT / f"{TASK}.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(run))
    return Views(tmp_path)


def assert_nothing_planted(judge, views) -> None:
    done = judged(judge, views.view(TRAJECTORY_ID, judge.wants))
    assert done.answer.state == "ok"
    for call in done.calls:
        for messages in (call.messages, call.shorter or ()):
            said = text(messages)
            assert [word for word in (*PLANTED, "reward", "label") if word.lower() in _without(said)] == []
            assert {each.sha256 for each in images(messages)} <= {image(n).sha256 for n in range(3)}


def _without(said: str) -> str:
    """The text in small letters, less the word by which NNetNav's judge announces its own rating."""
    return said.lower().replace("reward: ", "")


@pytest.mark.parametrize("name", ASKING)
def test_no_message_of_a_judge_contains_reward_label_agent_or_trajectory(planted, name):
    assert planted.reward(TRAJECTORY_ID) == float(REWARD)  # it is there to be told
    assert_nothing_planted(find_judge(name), planted)


@pytest.mark.labels
@pytest.mark.parametrize("name", [name for name in ASKING if type(judges()[name]) in OF_THE_PACKAGE])
def test_nor_does_it_in_the_official_words(planted, name, official_settings):
    assert_nothing_planted(find_judge(name, prompts="official", settings=official_settings), planted)


def test_nor_does_any_tool_show_it(planted):
    shown = planted.view(TRAJECTORY_ID, find_judge("tools").wants)
    asked = [("open_step", {"n": step.number}) for step in shown.steps]
    asked += [("diff", {"a": 1, "b": 3}), *(("search", {"text": word[:4]}) for word in PLANTED)]
    calls = [ToolCall(str(number), name, json.dumps(each)) for number, (name, each) in enumerate(asked)]
    results = [message.content for call in calls for message in RunTools(shown).results([call])]
    assert len(results) == len(calls) and "pruned 2" in results[2]
    assert [word for word in PLANTED if any(word.lower() in text.lower() for text in results)] == []


def test_nor_does_nnetnav_in_its_compatible_form(planted):
    assert_nothing_planted(find_judge("nnetnav", compat=True), planted)


def test_a_view_has_no_place_for_any_of_it(planted):
    shown = planted.view(TRAJECTORY_ID, Wants("all", "all", True))
    assert [word for word in PLANTED if word in repr(shown)] == []
    assert len(shown.steps) == 3 and shown.steps[-1].axtree == "tree 2"


@pytest.mark.parametrize("heavy", ["none", "last", "all"])
def test_of_a_published_dataset_no_column_with_labels_rewards_or_names_is_even_read(monkeypatch, heavy):
    from dataset_script import sample

    read, real = [], pq.ParquetFile.read_row_group

    def noted(self, number, columns):
        read.extend(columns)
        return real(self, number, columns=columns)

    published_views._opened_at.cache_clear()
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", noted)
    views = Views(Path(sample.__file__).parent / "data")
    for trajectory_id in views.ids()[:3]:
        views.view(trajectory_id, Wants(heavy, heavy, goal_images=True))
    light = {"trajectory_id", "goal", "answer", "steps", "goal_images"}
    last = {"final_axtree", "final_axtree_pruned", "final_screenshot"}
    every = {"axtree", "axtree_pruned", "screenshot", "box"}
    assert set(read) == light | {"none": set(), "last": last, "all": every}[heavy]
