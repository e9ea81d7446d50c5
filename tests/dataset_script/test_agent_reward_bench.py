"""The builder, called from Python, and as a loading script under older versions of datasets."""

import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dataset_script import sample
from dataset_script.agent_reward_bench import AgentRewardBench
from dataset_script.build import report
from dataset_script.build.build import build
from dataset_script.schema import CONFIGURATIONS, features

REPOSITORY = Path(__file__).parents[2]
DEV_1 = "shop/GenericAgent-a/shop.1"


@pytest.fixture
def make(tmp_path, suite_folder):
    def make_builder(configuration, folder):
        cache = tmp_path / "builder-cache"
        return AgentRewardBench(
            cache_dir=str(cache), config_name=configuration, data_dir=str(folder), suite=str(suite_folder)
        )

    return make_builder


@pytest.fixture
def judged_source(full_source):
    full_source.picture(DEV_1, 0)
    full_source.judge(DEV_1, "aer", "Status: success")
    full_source.judge("shop/GenericAgent-a/shop.2", "nnetnav", "Reward: 2")
    return full_source


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_it_gives_the_rows_that_build_publishes(judged_source, out, suite, make, load, configuration):
    build(judged_source.path, out, suite)
    published = load(out, configuration)
    for folder in (judged_source.path, out):
        builder = make(configuration, folder)
        builder.download_and_prepare()
        made, streamed = builder.as_dataset(), builder.as_streaming_dataset()
        assert list(made) == list(streamed) == list(published)
        for split in published:
            assert made[split].features == published[split].features == features(configuration)
            assert list(made[split]) == list(streamed[split]) == list(published[split])


def test_a_dataset_built_before_there_was_observation_text_gives_null_for_it(make, tmp_path):
    older = shutil.copytree(Path(sample.__file__).parent / "data", tmp_path / "older")
    for path, column in (("steps", "text"), ("trajectories", "answer")):
        for shard in older.glob(f"data/{path}/*.parquet"):
            table = pq.read_table(shard)
            pq.write_table(table.drop_columns([column]), shard, row_group_size=1)
    row = next(iter(make("trajectories", older).as_streaming_dataset(split="dev")))
    assert row["answer"] is None and {step["text"] for step in row["steps"]} == {None}
    assert row["steps"][0]["url"] and list(row) == list(features())


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_failed_judgments_and_unusable_runs_are_left_out_as_build_leaves_them_out(
    source, out, suite, make, load, configuration
):
    labelled, unlabelled = "shop/GenericAgent-b/shop.resized.1", "shop/GenericAgent-b/shop.resized.2"
    source.put(DEV_1, b"{")  # not JSON, so its two annotations are left out with it
    source.put(labelled)
    source.put(unlabelled)
    source.judge(unlabelled, "aer", "Status: success")
    source.judge(unlabelled, "nnetnav", "Reward: 2")
    source.judge(unlabelled, "aer", {"error": "the model gave up"}, ending="_error")
    build(source.path, out, suite)
    builder = make(configuration, source.path)
    made = {split: list(rows) for split, rows in builder.as_streaming_dataset().items()}
    assert made == {split: list(rows) for split, rows in load(out, configuration).items()}
    if configuration == "judgments":
        assert [row["judge"] for row in made["test"]] == ["aer", "nnetnav"]
    if configuration == "annotations":
        assert [row["trajectory_id"] for row in made["dev"]] == [labelled]


def test_the_default_configuration_is_the_text(full_source, tmp_path):
    builder = AgentRewardBench(cache_dir=str(tmp_path), data_dir=str(full_source.path))
    assert builder.config.name == "trajectories"


def test_a_folder_has_to_be_named(tmp_path):
    with pytest.raises(ValueError, match="data_dir"):
        AgentRewardBench(cache_dir=str(tmp_path)).download_and_prepare()


def test_a_bad_file_is_named_in_the_log_and_the_next_is_taken(source, make, caplog):
    source.put(DEV_1, b"{", experiment="run-1")
    source.put(DEV_1, experiment="run-2")
    with caplog.at_level(logging.WARNING):
        builder = make("trajectories", source.path)
        builder.download_and_prepare()
    assert builder.as_dataset()["dev"].num_rows == 1
    assert "left out: cleaned/shop/GenericAgent-a/run-1/shop.1.json: not_json" in caplog.text


def test_json_files_that_are_no_runs_are_not_parsed_because_nothing_reports_them(source, make, monkeypatch):
    source.put(DEV_1)
    (source.path / "cleaned" / "stray.json").write_text("{")
    parsed = []
    monkeypatch.setattr(report, "json_fault", parsed.append)
    builder = make("trajectories", source.path)
    builder.download_and_prepare()
    assert (builder.as_dataset()["dev"].num_rows, parsed) == (1, [])


IN_TWO_PROCESSES = """
import sys
from dataset_script.agent_reward_bench import AgentRewardBench
folder, cache, suite = sys.argv[1:]
builder = AgentRewardBench(cache_dir=cache, config_name="trajectories", data_dir=folder, suite=suite)
builder.download_and_prepare(num_proc=2)
print(builder.as_dataset()["test"].num_rows)
"""


@pytest.mark.slow
def test_several_processes_share_the_work(full_source, suite_folder, tmp_path):
    # `datasets` forks, which may hang in a process with the threads of other tests.
    arguments = [sys.executable, "-c", IN_TWO_PROCESSES, full_source.path, tmp_path, suite_folder]
    done = subprocess.run(arguments, cwd=REPOSITORY, capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["3"], done.stderr


SCRIPT = """
import json, sys
import datasets
folder, published, cache = sys.argv[1:]
datasets.disable_progress_bars()
script = "dataset_script/agent_reward_bench.py"
found = {"version": datasets.__version__}
for name in ("trajectories", "trajectories_with_screenshot", "steps", "annotations", "rewards", "tasks"):
    options = {"data_dir": folder, "cache_dir": cache, "trust_remote_code": True}
    whole = datasets.load_dataset(script, name, **options)
    streamed = datasets.load_dataset(script, name, streaming=True, **options)
    parquet = datasets.load_dataset(published, name, cache_dir=cache)
    for split in whole:
        first = [row[list(row)[0]] for row in whole[split]]
        assert first == [row[list(row)[0]] for row in streamed[split]]
        assert first == list(parquet[split][list(parquet[split].features)[0]])
        assert whole[split].features == parquet[split].features, (name, parquet[split].features)
        found[f"{name}/{split}"] = len(first)
print(json.dumps(found))
"""


@pytest.mark.shared
@pytest.mark.parametrize("variable", ["DATASETS_2_PYTHON", "DATASETS_3_PYTHON"])
def test_the_same_file_is_a_loading_script_under_older_versions(shared, out, tmp_path, variable):
    python = os.environ.get(variable)
    if not python:
        pytest.skip(
            f"{variable} is not set: name the python of an environment with datasets {variable[9]}, msgspec "
            "and pillow to try the loading script there"
        )
    recorded = shared / "data" / "released_layout"
    build(recorded, out)
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "HF_HOME": str(tmp_path / "hf")}
    command = [python, "-c", SCRIPT, str(recorded), str(out), str(tmp_path / "cache")]
    done = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.pop("version").startswith(f"{variable[9]}.")
    assert found == {
        **{
            f"{name}/dev": 2
            for name in ("trajectories", "trajectories_with_screenshot", "rewards", "annotations")
        },
        **{f"{name}/test": 4 for name in ("trajectories", "trajectories_with_screenshot", "rewards")},
        **{"steps/dev": 20, "steps/test": 19, "tasks/dev": 1, "tasks/test": 2},
    }
