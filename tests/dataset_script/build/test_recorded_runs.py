"""The recorded runs beside the checkout, through every configuration, against their JSON."""

import json

import pytest

from dataset_script.build.build import build
from dataset_script.schema import LABEL_COLUMNS, STEP_FIELDS, features

pytestmark = pytest.mark.shared


@pytest.fixture
def recorded(shared):
    return shared / "data" / "released_layout"


@pytest.fixture
def files(recorded):
    """The JSON of each run by its trajectory id."""
    found = sorted(recorded.glob("cleaned/*/*/*/*.json"))
    return {f"{p.parts[-4]}/{p.parts[-3]}/{p.stem}": json.loads(p.read_bytes()) for p in found}


@pytest.fixture
def rows(recorded, out, load):
    """Rows of a configuration, whole and streamed, which have to be the same; pictures are not decoded."""
    report = build(recorded, out)
    assert (report.suite, report.left_out, report.notes) == ("localshop", [], [])

    def rows_of(configuration, *images):
        import datasets

        found = {}
        whole, stream = load(out, configuration), load(out, configuration, streaming=True)
        assert list(whole) == list(stream)
        for split in whole:
            both = []
            for one in (whole[split], stream[split]):
                assert one.features == features(configuration)
                for name in images:
                    one = one.cast_column(name, datasets.Image(decode=False))
                both.append(list(one))
            assert both[0] == both[1]
            found[split] = both[0]
        return found

    return rows_of


def expected_trajectory(name, run):
    last = run["steps"][-1]
    return {
        "trajectory_id": name,
        "benchmark": run["benchmark"],
        "agent": run["agent"],
        "model": run["model"],
        "task_id": name.split("/")[2],
        "goal": run["goal"].rstrip("\n"),
        "n_steps": len(run["steps"]),
        "steps": [{field.name: step.get(field.name) for field in STEP_FIELDS} for step in run["steps"]],
        "final_axtree": last["axtree"],
        "final_axtree_pruned": last["axtree_pruned"],
        "answer": None,  # it is an action in the release
    }


def is_dev(name):
    return name.endswith("localshop.1")


def test_trajectories_are_the_values_of_the_json_with_labels_on_dev_only(rows, files):
    found = rows("trajectories")
    assert {split: len(of) for split, of in found.items()} == {"dev": 2, "test": 4}
    # The careful agent bought two blue teapots as asked; the hasty one ordered one green teapot that nobody
    # wanted, and reported it as done.
    labels = {"careful": (1, 0, 0, 4), "hasty": (0, 1, 0, 1)}
    for split, of in found.items():
        for row in of:
            said = tuple(row.pop(name) for name in LABEL_COLUMNS)
            agent = row["agent"].removeprefix("GenericAgent-scripted-")
            assert said == (labels[agent] if split == "dev" else (None,) * 4)
            assert row == expected_trajectory(row["trajectory_id"], files[row["trajectory_id"]])
            assert (split == "dev") == is_dev(row["trajectory_id"])


def test_the_final_screenshot_is_the_file_of_the_last_step(rows, files, recorded):
    for of in rows("trajectories_with_screenshot", "final_screenshot").values():
        for row in of:
            name = row["trajectory_id"]
            last = recorded / "screenshots" / name / f"screenshot_step_{row['n_steps'] - 1}.png"
            assert row["final_screenshot"] == {"bytes": last.read_bytes(), "path": None}
            assert row["goal_images"] == []
            assert row["final_axtree"] == files[name]["steps"][-1]["axtree"]


def test_steps_are_the_values_of_the_json_with_the_box_of_the_element_acted_on(rows, files, recorded):
    found = rows("steps", "screenshot")
    assert sum(map(len, found.values())) == sum(len(run["steps"]) for run in files.values())
    boxes = 0
    for of in found.values():
        for row in of:
            step = files[row["trajectory_id"]]["steps"][row["num"]]
            picture = recorded / "screenshots" / row["trajectory_id"] / f"screenshot_step_{row['num']}.png"
            assert row["screenshot"]["bytes"] == picture.read_bytes()
            names = [field.name for field in STEP_FIELDS] + ["axtree", "axtree_pruned"]
            assert {name: row[name] for name in names} == {name: step.get(name) for name in names}
            bid = (step["action"] or "").partition("('")[2].partition("'")[0]
            element = step["bounding_boxes"].get(bid) or {}
            assert row["box"] == element.get("bbox")
            boxes += row["box"] is not None
    assert boxes > 10


def test_rewards_are_those_of_the_json(rows, files):
    for of in rows("rewards").values():
        for row in of:
            reward = files[row["trajectory_id"]]["summary_info"]["cum_reward"]
            assert (row["cum_reward"], row["rule_based"]) == (reward, int(reward > 0.5))


def test_annotations_and_tasks_are_those_of_the_suite(rows):
    assert [(row["annotation"], row["success"]) for row in rows("annotations")["dev"]] == [(1, 1), (1, 0)]
    assert {split: [row["task"] for row in of] for split, of in rows("tasks").items()} == {
        "dev": ["localshop.1"],
        "test": ["localshop.2", "localshop.3"],
    }
