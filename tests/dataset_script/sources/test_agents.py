"""Agents are told apart by the settings in which their evaluations differ, or by chosen facts."""

import json
import pickle
from pathlib import Path

import pytest

from dataset_script import sample as sample_data
from dataset_script.sources import open_source
from dataset_script.sources.agents import AgentFacts, name_agents, settings_in
from dataset_script.sources.problems import SourceError
from tests.dataset_script.sources.test_agentlab import study  # noqa: F401 - a fixture
from tests.dataset_script.sources.test_atif import agent, trajectory, write_trial
from tests.dataset_script.sources.test_inspect_log import LOGS, assistant, log_of, sample
from tests.support.sources import write_json


def facts(name="m", of_task=(), **settings):
    return AgentFacts(name, {"model": name}, {key: str(value) for key, value in settings.items()}, of_task)


def agents_in(folder, *agent_from):
    """Return the agent of each run, by the run's name without its file's ending."""
    listing = open_source(folder, agent_from=agent_from).list_all()
    names = {file.name.partition(".")[0]: file.trajectory_id.split("/")[1] for file in listing.files}
    return names, [note for note in listing.notes if note.code == "same_agent"]


def test_an_agent_with_one_condition_has_no_ending_and_others_have_what_differs_in_order_of_the_names():
    evaluations = [
        ("t", facts("one", temperature=1, effort="high")),
        ("t", facts("two", temperature=1, effort="high", tools=3)),
        ("t", facts("two", temperature=0, effort="low", tools=3)),
    ]
    names, notes = name_agents(evaluations)
    assert names == ["one", "two_effort=high_temperature=1", "two_effort=low_temperature=0"]
    assert notes == ()


def test_settings_of_the_task_are_compared_within_a_task_and_settings_of_the_user_everywhere():
    of_task = frozenset({"shots"})
    names, _ = name_agents([("a", facts(of_task=of_task, shots=1)), ("b", facts(of_task=of_task, shots=2))])
    assert names == ["m", "m"]
    names, _ = name_agents([("a", facts(temperature=0)), ("b", facts(temperature=1))])
    assert names == ["m_temperature=0", "m_temperature=1"]


def test_a_setting_that_only_some_evaluations_have_names_these_and_unknown_settings_differ_from_nothing():
    names, _ = name_agents([("t", facts()), ("t", facts(effort="low")), ("t", AgentFacts("m"))])
    assert names == ["m", "m_effort=low", "m"]


def test_equal_names_with_different_settings_are_noted_with_both_values():
    evaluations = [("t", facts(temperature=0, effort="low")), ("t", facts(temperature=1, effort="low"))]
    names, (note,) = name_agents(evaluations, ["model", "effort"])
    assert names == ["m_effort=low", "m_effort=low"]
    assert (note.code, note.detail) == ("same_agent", "m_effort=low: temperature is 0 or 1")
    assert name_agents(evaluations, ["temperature"]) == (["temperature=0", "temperature=1"], ())


def test_two_agents_with_one_name_are_noted():
    names, (note,) = name_agents([("t", AgentFacts("a/b")), ("t", AgentFacts("a_b"))])
    assert names == ["a_b", "a_b"]
    assert note.detail == "a_b: agent is a/b or a_b"


def test_long_names_are_cut_and_stay_different():
    long = {f"setting_{number}": "x" * 30 for number in range(9)}
    names, _ = name_agents([("t", facts(**long, last=1)), ("t", facts(**long, last=2))])
    assert names == ["m_last=1", "m_last=2"]
    names, _ = name_agents([("t", facts(**long, z=1)), ("t", facts(**dict.fromkeys(long, "y"), z=1))])
    assert len({*names}) == 2 and max(map(len, names)) == 120


def test_secrets_addresses_seeds_and_paths_of_machines_are_not_in_names():
    found = dict(
        settings_in(
            {
                "api_key": "sk-1", "hf_token": "t", "base_url": "http://10.0.0.1", "seed": 3, "top_p": None,
                "max_tokens": 5, "temperature": 0.0, "data": "/home/ada/set.csv", "deep": {"stop": ["a", 1]},
                "outputs": [{"text": "…"}], "prompt": "x" * 100, "on": True,
            }
        )
    )  # fmt: skip
    assert found.pop("data").startswith("set.csv-")
    assert len(found.pop("prompt")) == 8
    assert found == {"max_tokens": "5", "temperature": "0", "deep.stop": '["a", 1]', "on": "true"}


@pytest.fixture
def logs(tmp_path):
    """Two evaluations of one task by one model: with a temperature and one argument, and with another."""
    for name, temperature, shots in (("cold", 0.0, 0), ("warm", 0.7, 5)):
        spec = {
            "task_id": name,
            "task_args": {"shots": shots, "fewer": False},
            "model_generate_config": {"temperature": temperature, "max_connections": 10 + shots},
        }
        write_json(tmp_path, log_of(sample(assistant(name)), **spec), f"{name}.json")
    return tmp_path


def test_two_conditions_of_inspect_are_two_agents_and_one_condition_keeps_its_id(logs):
    assert agents_in(logs) == (
        {"cold": "m_x_task_args.shots=0_temperature=0", "warm": "m_x_task_args.shots=5_temperature=0.7"},
        [],
    )
    (logs / "warm.json").unlink()
    assert agents_in(logs) == ({"cold": "m_x"}, [])


@pytest.mark.parametrize("version", ["0.3.60", "0.3.150", "0.3.285"])
def test_a_log_that_inspect_wrote_is_told_from_the_same_task_at_another_temperature(tmp_path, version):
    (recorded,) = (LOGS / version / "towns").glob("*.json")
    log = json.loads(recorded.read_bytes())
    write_json(tmp_path, log, "first.json")
    assert {*agents_in(tmp_path)[0].values()} == {"mockllm_other"}
    log["eval"] |= {"task_id": "again", "model_generate_config": {"temperature": 0.9}}
    log["eval"]["task_args"] = {"hints": True}
    write_json(tmp_path, log, "second.json")
    names = {"first": "mockllm_other", "second": "mockllm_other_task_args.hints=true_temperature=0.9"}
    assert agents_in(tmp_path) == (names, [])


def test_chosen_facts_name_the_agents_of_inspect(logs):
    assert agents_in(logs, "model", "temperature") == (
        {"cold": "m_x_temperature=0", "warm": "m_x_temperature=0.7"},
        [],
    )
    names, (note,) = agents_in(logs, "model")
    assert names == {"cold": "m_x", "warm": "m_x"}
    assert note.detail == "m_x: task_args.shots is 0 or 5; temperature is 0 or 0.7"
    assert agents_in(logs, "log")[0] == {"cold": "cold", "warm": "warm"}


def test_a_fact_that_no_run_has_is_refused_with_those_that_there_are(logs):
    with pytest.raises(SourceError, match=r"--agent-from temprature: .*choose from: agent, log, model"):
        agents_in(logs, "temprature")


def test_inspects_generation_settings_of_a_task_do_not_tell_an_agent_apart_on_other_tasks(tmp_path):
    for task, temperature in (("a", 0.0), ("b", 1.0)):
        plan = {"config": {"temperature": temperature}}
        spec = {"task": task, "config": {"message_limit": 5 + int(temperature)}}
        write_json(tmp_path, log_of(sample(assistant("x")), plan=plan, task_id=task, **spec), f"{task}.json")
    assert agents_in(tmp_path) == ({"a": "m_x", "b": "m_x"}, [])


def harbor_result(job, **kwargs):
    return {
        "task_name": "t",
        "agent_info": {"name": "coder", "version": "1"},
        "config": {"agent": {"kwargs": {"seed": len(job), **kwargs}}, "timeout_multiplier": 1.0},
    }


def test_harbors_arguments_and_jobs_tell_agents_apart_and_seeds_make_repeats(tmp_path):
    for job, turns in (("one", 5), ("two", 9)):
        for trial in ("t__1", "t__2"):
            folder = tmp_path / job / trial
            write_trial(folder, harbor_result(job, max_turns=turns), trajectory(agent("Done.")))
    listed = open_source(tmp_path).list_all().files
    assert [file.trajectory_id for file in listed] == [
        "harbor/coder_job=one_kwargs.max_turns=5/t",
        "harbor/coder_job=one_kwargs.max_turns=5/t~2",
        "harbor/coder_job=two_kwargs.max_turns=9/t",
        "harbor/coder_job=two_kwargs.max_turns=9/t~2",
    ]
    chosen = open_source(tmp_path, agent_from=("name", "kwargs.max_turns")).list_all()
    assert [file.trajectory_id.split("/")[1] for file in chosen.files] == [
        *["coder_kwargs.max_turns=5"] * 2,
        *["coder_kwargs.max_turns=9"] * 2,
    ]
    one = open_source(tmp_path / "one").list_all().files
    assert [file.trajectory_id for file in one] == ["harbor/coder/t", "harbor/coder/t~2"]


def test_agentlabs_arguments_tell_agents_apart(study, tmp_path, recorded_class):  # noqa: F811
    study("one")
    study("two", task="webarena.25")
    assert {*agents_in(tmp_path)[0].values()} == {"GenericAgent-gpt-4o"}
    arguments = {
        "agent_args": {
            "agent_name": "GenericAgent-gpt-4o",
            "chat_model_args": {"model_name": "openai/gpt-4o", "temperature": 0.5},
        },
        "env_args": {"task_name": "webarena.24", "task_seed": 3},
    }
    (tmp_path / "two" / "exp_args.pkl").write_bytes(pickle.dumps(arguments))
    names, _ = agents_in(tmp_path)
    assert names == {
        "one": "GenericAgent-gpt-4o",
        "two": "GenericAgent-gpt-4o_chat_model_args.temperature=0.5",
    }


def test_a_published_dataset_has_fixed_names():
    source = open_source(Path(sample_data.__file__).parent / "data", agent_from=("model",))
    with pytest.raises(SourceError, match="the ids of this format are fixed"):
        source.list_all()


def test_the_order_of_the_logs_does_not_change_the_names(logs):
    before = agents_in(logs)[0]
    log = json.loads((logs / "cold.json").read_text())
    (logs / "cold.json").rename(logs / "zero.json")
    assert agents_in(logs)[0] == {"zero": before["cold"], "warm": before["warm"]}
    assert log["eval"]["task_args"]["shots"] == 0
