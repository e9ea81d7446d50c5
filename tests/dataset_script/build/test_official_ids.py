"""The official suite with a synthetic file for each of its 1,302 trajectories: the counts of the paper."""

import json

import pyarrow.parquet as pq
import pytest

from arb.core.suite import load_dev_labels, load_suite
from dataset_script.build.build import BuildOptions, build
from dataset_script.schema import LABEL_COLUMNS


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("official")
    suite = load_suite()
    for trajectory in suite.trajectories:
        benchmark, agent, task_id = trajectory.trajectory_id.split("/")
        place = (
            folder
            / "trajectories"
            / "cleaned"
            / benchmark
            / agent
            / f"{agent}_on_{benchmark}"
            / f"{task_id}.json"
        )
        place.parent.mkdir(parents=True, exist_ok=True)
        content = {
            "benchmark": benchmark,
            "agent": agent,
            "model": agent,
            "valid": True,
            "goal": f"Synthetic goal of {task_id}\n",
            "summary_info": {"cum_reward": 0.0},
            "steps": [
                {
                    "num": 0,
                    "action": "noop()",
                    "reasoning": "Synthetic.",
                    "axtree": "page",
                    "axtree_pruned": "page",
                },
                {"num": 1, "axtree": "page", "axtree_pruned": "page"},
            ],
        }
        place.write_text(json.dumps(content))
    out = folder / "agent-reward-bench"
    return out, build(folder, out, options=BuildOptions(workers=1))


def rows(out, configuration, split):
    files = sorted((out / "data" / configuration).glob(f"{split}-*"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


def test_every_trajectory_is_built_in_the_published_numbers(built):
    _, report = built
    assert report.suite == "agent-reward-bench"
    assert (report.built("dev"), report.built("test")) == (196, 1106)
    assert report.counts["test"] == {
        "assistantbench": 108,
        "visualwebarena": 276,
        "webarena": 310,
        "workarena": 64,
        "workarena++": 348,
    }
    assert (report.left_out, {note.code for note in report.notes}) == ([], {"no_screenshots"})
    # 218 annotations of dev: 196 trajectories, 22 of them twice (106 in all, 84 of them on test)
    assert report.rows["annotations"] == {"dev": 218}
    assert report.rows["tasks"] == {"dev": 51, "test": 300}


def test_labels_are_on_dev_only(built):
    out, _ = built
    suite = load_suite()
    primary = [said for said in load_dev_labels(suite) if said.is_primary]
    dev, test = rows(out, "trajectories", "dev"), rows(out, "trajectories", "test")
    assert [row["trajectory_id"] for row in dev] == [said.trajectory_id for said in primary]
    assert [row["success"] for row in dev] == [
        {"yes": 1, "no": 0}.get(said.answers["success"]) for said in primary
    ]
    assert (
        sum(row["success"] is None for row in dev) == 1
    )  # GPT-4o on webarena.344, where the expert was unsure
    assert {tuple(row[name] for name in LABEL_COLUMNS) for row in test} == {(None,) * 4}
    assert not {row["trajectory_id"] for row in rows(out, "annotations", "dev")} & {
        row["trajectory_id"] for row in test
    }


def test_no_annotator_is_named(built):
    annotators = {row["annotator"] for row in rows(built[0], "annotations", "dev")}
    assert annotators == {f"annotator-{number}" for number in range(1, 8)}


def test_no_task_is_in_both_splits(built):
    tasks = {split: {row["task"] for row in rows(built[0], "tasks", split)} for split in ("dev", "test")}
    assert not tasks["dev"] & tasks["test"]
