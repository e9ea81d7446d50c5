"""Result folders of AgentLab and browsergym-experiments are read without either installed."""

import gzip
import json
import os
import pickle
import shutil
from pathlib import Path

import pytest

from arb.core.trajectory import Recording
from dataset_script.sources.agentlab import AgentLabSource
from dataset_script.sources.axtree import axtree_text
from dataset_script.sources.pickles import read_pickle
from dataset_script.sources.problems import SourceError, UnusableFileError

GENUINE = Path(__file__).parent / "recorded_by_browsergym"
"""One run that browsergym-experiments 0.14.3 recorded in Chromium, with a scripted agent of our own."""

PIXEL = b"GIF89a"


@pytest.fixture
def genuine() -> Recording:
    source = AgentLabSource(GENUINE)
    (file,) = source.list_runs().files
    recording, notes = source.read(file)
    assert notes == []
    return recording


def test_a_genuine_run_is_read_whole(genuine):
    assert genuine.trajectory_id == "tinyshop/Scripted-both/tinyshop.1"
    assert genuine.model == "scripted/one"
    assert genuine.goal == "Buy it.\nThen say so.\n"
    assert [image[:4] for image in genuine.goal_images] == [b"\x89PNG"]
    assert genuine.cum_reward == 1.0
    assert [step.action for step in genuine.steps] == [
        "click('999')",
        "click('5')",
        "fill('7', 'Ada')",
        'send_msg_to_user("done")',
        None,
    ]


def test_a_genuine_run_has_reasons_errors_boxes_and_screenshots_where_they_belong(genuine):
    first, second, *_, last = genuine.steps
    assert first.reasoning == "I will do click('999')"
    assert first.box is None  # the page has no element 999
    assert second.last_action_error == 'ValueError: Could not find element with bid "999"'
    assert second.box == (8.0, 66.4375, 38.96875, 21.0)
    assert last.reasoning is None
    assert [step.screenshot.name for step in genuine.steps] == [f"screenshot_step_{n}.png" for n in range(5)]
    assert second.focused_element == "3"


def test_a_genuine_tree_becomes_the_text_that_browsergym_itself_made(genuine):
    for step in genuine.steps:
        path = next(GENUINE.rglob(f"step_{step.num}.pkl.gz"))
        seen = read_pickle(path).fields["obs"]
        assert axtree_text(seen["axtree_object"], seen["extra_element_properties"]) == seen["axtree_txt"]
        assert step.axtree == seen["axtree_txt"]
        assert step.axtree_pruned.startswith("[4] heading 'Tiny shop'\n[5] button 'Buy'")


def test_no_prompt_and_no_path_of_the_machine_gets_out(genuine):
    text = repr([(s.url, s.action, s.reasoning, s.last_action_error, s.axtree) for s in genuine.steps])
    assert "secret prompt" in str(read_pickle(next(GENUINE.rglob("step_0.pkl.gz"))))  # it is in the pickle
    assert "secret prompt" not in text


# -- folders made here, with classes that carry AgentLab's names ---------------------------------------------


@pytest.fixture
def study(tmp_path, recorded_class):
    """Writes runs as AgentLab does; its classes need not be installed."""
    loop = "agentlab.experiments.loop"
    classes = {
        name: recorded_class(loop, name) for name in ("ExpArgs", "EnvArgs", "StepInfo", "StepTimestamps")
    }
    generic = "agentlab.agents.generic_agent.generic_agent"
    classes["GenericAgentArgs"] = recorded_class(generic, "GenericAgentArgs")
    classes["OpenAIModelArgs"] = recorded_class("agentlab.llm.chat_api", "OpenAIModelArgs")
    classes["AgentInfo"] = recorded_class("browsergym.experiments.agent", "AgentInfo")
    classes["HumanMessage"] = recorded_class("agentlab.llm.llm_utils", "HumanMessage", (dict,))

    def of(class_name, **fields):
        made = classes[class_name]()
        made.__dict__.update(fields)
        return made

    def write(
        name="run", steps=2, agent="GenericAgent-gpt-4o", task="webarena.24", summary=True, seed=3, **changes
    ):
        run = tmp_path / name
        run.mkdir(parents=True)
        model = of("OpenAIModelArgs", model_name="openai/gpt-4o")
        arguments = of(
            "ExpArgs",
            agent_args=of("GenericAgentArgs", agent_name=agent, chat_model_args=model),
            env_args=of("EnvArgs", task_name=task, task_seed=seed),
            exp_dir=Path("/home/somebody/results"),
        )
        (run / "exp_args.pkl").write_bytes(pickle.dumps(arguments))
        goal = [{"type": "text", "text": "Find it."}]
        (run / "goal_object.pkl.gz").write_bytes(gzip.compress(pickle.dumps(goal)))
        for number in range(steps):
            is_last = number == steps - 1
            seen = {
                "url": f"http://shop/{number}",
                "focused_element_bid": "7",
                "last_action_error": "",
            } | changes
            info = of(
                "AgentInfo",
                think="Because.",
                chat_messages=[classes["HumanMessage"](role="user", content="p")],
            )
            step = of(
                "StepInfo",
                step=number,
                obs=seen,
                action=None if is_last else "click('7')",
                agent_info={} if is_last else info,
                profiling=of("StepTimestamps", env_start=1.5),
            )
            (run / f"step_{number}.pkl.gz").write_bytes(gzip.compress(pickle.dumps(step)))
            (run / f"screenshot_step_{number}.png").write_bytes(PIXEL)
        if summary:
            (run / "summary_info.json").write_text(json.dumps({"n_steps": steps - 1, "cum_reward": 0.5}))
        return run

    return write


def read_only_run(folder):
    source = AgentLabSource(folder)
    (file,) = source.list_runs().files
    return source.read(file)


def test_agentlabs_own_classes_need_no_permission(study, tmp_path):
    study()
    recording, notes = read_only_run(tmp_path)
    assert recording.trajectory_id == "webarena/GenericAgent-gpt-4o/webarena.24"
    assert (recording.model, recording.goal, recording.cum_reward) == ("openai/gpt-4o", "Find it.\n", 0.5)
    assert [(s.num, s.action, s.reasoning) for s in recording.steps] == [
        (0, "click('7')", "Because."),
        (1, None, None),
    ]
    assert notes == []


def test_an_agents_name_with_a_slash_is_spelled_as_in_the_release(study, tmp_path):
    study(agent="GenericAgent-anthropic/claude-3.7-sonnet", task="browsergym/webarena.1")
    (file,) = AgentLabSource(tmp_path).list_runs().files
    assert file.trajectory_id == "webarena/GenericAgent-anthropic_claude-3.7-sonnet/webarena.1"


def test_steps_are_in_the_order_of_their_numbers_not_of_their_names(study, tmp_path):
    study(steps=12)
    recording, _ = read_only_run(tmp_path)
    assert [step.num for step in recording.steps] == list(range(12))


def test_a_run_that_was_moved_aside_is_listed_among_the_others(study, tmp_path):
    study("study/run-2")
    study("study/_run-1")
    listing = AgentLabSource(tmp_path).list_runs()
    assert [file.name for file in listing.files] == ["study/run-2"]
    assert listing.others == ("study/_run-1",)


def test_repeats_of_a_task_are_numbered_by_seed_then_time_and_those_cut_off_come_last(study, tmp_path):
    study("2026-01-02_b", seed=1)
    study("2026-01-01_a", seed=2)
    study("2026-01-03_c", seed=1)
    study("2026-01-01_cut", seed=0, summary=False)
    study("2026-01-01_other", seed=0, task="webarena.25")
    source = AgentLabSource(tmp_path)
    files = source.list_runs().files
    task = "webarena/GenericAgent-gpt-4o/webarena.24"
    assert {file.name: file.trajectory_id for file in files} == {
        "2026-01-02_b": task,
        "2026-01-03_c": f"{task}~2",
        "2026-01-01_a": f"{task}~3",
        "2026-01-01_cut": f"{task}~4",
        "2026-01-01_other": "webarena/GenericAgent-gpt-4o/webarena.25",
    }
    third = next(file for file in files if file.name == "2026-01-01_a")
    assert source.read(third)[0].trajectory_id == f"{task}~3"


def test_a_run_with_a_link_out_of_the_source_is_none_and_a_linked_picture_is_left_out(tmp_path):
    for name in ("whole", "linked-step", "linked-picture", "linked-run"):
        shutil.copytree(GENUINE, tmp_path / "study" / name)
    outside = tmp_path / "outside"
    outside.mkdir()
    run = next(GENUINE.iterdir()).name
    files = f"linked-step/{run}/step_1.pkl.gz", f"linked-picture/{run}/screenshot_step_1.png", "linked-run"
    for path in (tmp_path / "study" / name for name in files):
        path.rename(outside / path.name)
        path.symlink_to(outside / path.name)
    source = AgentLabSource(tmp_path / "study")
    listing = source.list_runs()
    assert listing.links_out == (
        f"linked-picture/{run}/screenshot_step_1.png",
        "linked-run",
        f"linked-step/{run}/step_1.pkl.gz",
    )
    assert [file.name for file in listing.files] == [f"linked-picture/{run}", f"whole/{run}"]
    recording, (note,) = source.read(listing.files[0])
    assert recording.steps[1].screenshot is None
    assert (note.code, note.detail) == ("missing_screenshot", "steps 1 of 5")


def test_half_a_character_becomes_a_replacement_character(study, tmp_path):
    study(url="http://shop/\ud83d")
    recording, _ = read_only_run(tmp_path)
    assert recording.steps[0].url == "http://shop/\N{REPLACEMENT CHARACTER}"


def test_a_last_step_without_observation_is_kept(study, tmp_path, recorded_class):
    run = study()
    failed = recorded_class("agentlab.experiments.loop", "StepInfo")()
    failed.__dict__.update(step=1, obs=None, action=None, agent_info={"err_msg": "timeout"})
    (run / "step_1.pkl.gz").write_bytes(gzip.compress(pickle.dumps(failed)))
    recording, _ = read_only_run(tmp_path)
    assert (recording.steps[1].url, recording.steps[1].axtree) == (None, None)


def test_a_tree_without_text_is_made_into_text(study, tmp_path):
    tree = {"nodes": [{"nodeId": 1, "role": {"value": "link"}, "name": {"value": "Home"}, "childIds": []}]}
    tree["nodes"][0]["browsergym_id"] = "7"
    seen = {"visibility": 1.0, "bbox": [1, 2, 3, 4], "clickable": True, "set_of_marks": True}
    study(axtree_object=tree, extra_element_properties={"7": seen})
    recording, _ = read_only_run(tmp_path)
    assert recording.steps[0].axtree == "[7] link 'Home', clickable, visible"
    assert recording.steps[0].axtree_pruned == "[7] link 'Home'"
    assert recording.steps[0].box == (1.0, 2.0, 3.0, 4.0)


def packed(value) -> bytes:
    return gzip.compress(pickle.dumps(value))


class Evil:
    def __reduce__(self):
        return os.system, ("true",)


ODD_TREE = {"obs": {"axtree_object": {"nodes": 3}, "extra_element_properties": {}}}


@pytest.mark.parametrize(
    ("name", "content", "code", "said"),
    [
        ("summary_info.json", None, "crashed", "summary_info.json is missing"),
        ("summary_info.json", b"", "crashed", "summary_info.json is missing"),
        ("summary_info.json", b'{"cum_rew', "not_json", "summary_info.json"),
        ("step_*", None, "no_steps", "^$"),
        ("step_1.pkl.gz", packed(["x" * 100])[:-10], "not_a_pickle", "step_1.pkl.gz"),
        ("step_1.pkl.gz", packed(Evil()), "refused_pickle", "step_1.pkl.gz: posix.system"),
        ("step_1.pkl.gz", packed(ODD_TREE), "not_a_trajectory", "step_1.pkl.gz: the accessibility tree"),
        (
            "exp_args.pkl",
            pickle.dumps({"agent_args": 3}),
            "not_a_trajectory",
            "does not name an agent and a task",
        ),
    ],
)
def test_a_damaged_run_says_which_file_and_what(study, tmp_path, name, content, code, said):
    for path in study().glob(name):
        path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(UnusableFileError, match=said) as error:
        read_only_run(tmp_path)
    assert error.value.code == code


def test_a_run_whose_file_changed_has_another_identity(study, tmp_path):
    run = study()
    source = AgentLabSource(tmp_path)
    (file,) = source.list_runs().files
    before = source.identity(file)
    (run / "summary_info.json").write_text('{"cum_reward": 1.0}')
    assert source.identity(file) != before


def test_a_folder_without_runs_is_no_source(tmp_path):
    with pytest.raises(SourceError, match=r"exp_args\.pkl"):
        AgentLabSource(tmp_path).list_runs()


@pytest.mark.parametrize(
    ("summary", "state"),
    [
        (
            {"err_msg": "Exception in task x\nTimeoutError: …", "truncated": True},
            "error: Exception in task x TimeoutError: …",
        ),
        ({"err_msg": None, "truncated": True}, "truncated"),
        ({"err_msg": None, "truncated": False, "terminated": True}, "completed"),
        ({}, None),
    ],
)
def test_the_state_says_how_the_run_ended(study, tmp_path, summary, state):
    (study() / "summary_info.json").write_text(json.dumps(summary))
    assert read_only_run(tmp_path)[0].state == state


def test_a_run_that_failed_before_its_first_step_has_crashed(study, tmp_path):
    (study(steps=0) / "summary_info.json").write_text(json.dumps({"err_msg": "no browser"}))
    with pytest.raises(UnusableFileError, match="error: no browser") as error:
        read_only_run(tmp_path)
    assert error.value.code == "crashed"


def test_tokens_dollars_and_seconds_are_the_sums_of_the_summary(study, tmp_path, genuine):
    assert (genuine.state, genuine.usage.cost_usd, round(genuine.usage.seconds, 2)) == (
        "completed",
        2.0,
        7.27,
    )
    figures = {
        "input_tokens": 70,
        "output_tokens": 7,
        "cost": float("nan"),
        "agent_elapsed": 1.5,
        "step_elapsed": 2,
    }
    summary = {f"stats.cum_{name}": value for name, value in figures.items()}
    (study() / "summary_info.json").write_text(json.dumps(summary))
    usage = read_only_run(tmp_path)[0].usage
    assert (usage.input_tokens, usage.output_tokens, usage.cost_usd, usage.seconds) == (70, 7, None, 3.5)
