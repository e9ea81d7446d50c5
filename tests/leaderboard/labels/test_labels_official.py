"""The official labels against the figures of released-data.md, and the shipped files that rest on them."""

import csv
import dataclasses
from pathlib import Path

import numpy as np
import pytest

from arb.core.suite import load_suite
from leaderboard.labels.labels import load_labels

pytestmark = pytest.mark.labels


@pytest.fixture(scope="module")
def official(official_settings):
    suite = load_suite()
    return {split: load_labels(suite, split, official_settings) for split in ("dev", "test")}


def test_the_official_labels_have_the_known_sizes(official):
    sizes = {split: len(labels.trajectories) for split, labels in official.items()}
    tasks = {
        split: len({(t.benchmark, t.task) for t in labels.trajectories}) for split, labels in official.items()
    }
    assert sizes == {"dev": 196, "test": 1106}
    assert tasks == {"dev": 51, "test": 300}
    assert {split: labels.source for split, labels in official.items()} == {
        "dev": "published",
        "test": "wheel",
    }


def test_unsure_occurs_where_the_released_data_has_it(official):
    dev, test = official["dev"], official["test"]
    unsure_dev = [
        t.trajectory_id for t, v in zip(dev.trajectories, dev.primary["success"], strict=True) if v < 0
    ]
    unsure_test = [
        t.trajectory_id for t, v in zip(test.trajectories, test.primary["side_effect"], strict=True) if v < 0
    ]
    assert unsure_dev == ["webarena/GenericAgent-gpt-4o-2024-11-20/webarena.344"]
    assert unsure_test == [
        "visualwebarena/GenericAgent-Qwen_Qwen2.5-VL-72B-Instruct/visualwebarena.resized.220"
    ]
    assert int(dev.annotated_twice.sum() + test.annotated_twice.sum()) == 106


def test_the_published_dev_labels_are_those_of_the_wheel(official, official_settings):
    from_wheel_suite = dataclasses.replace(load_suite(), dev_labels_path=Path("absent.csv"))
    from_wheel = load_labels(from_wheel_suite, "dev", official_settings)
    assert from_wheel.source == "wheel"
    assert from_wheel.version == official["dev"].version != official["test"].version


PUBLISHED = Path(__file__).parents[3] / "leaderboard" / "published"


def shipped(name: str) -> list[dict[str, str]]:
    with (PUBLISHED / name).open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_shipped_marginals_are_those_of_the_labels(official):
    labels = official["test"]
    benchmarks = np.array([t.benchmark for t in labels.trajectories])
    rows = shipped("marginals.csv")
    assert len(rows) == 18  # three labels, overall and five benchmarks
    for row in rows:
        inside = (
            benchmarks == row["benchmark"] if row["benchmark"] != "overall" else np.ones(1106, dtype=bool)
        )
        values = labels.primary[row["label"]][inside]
        counted = (int((values >= 0).sum()), int((values == 1).sum()))
        assert (int(row["n"]), int(row["positives"])) == counted, row


def test_the_shipped_second_annotator_is_the_one_of_the_labels(official):
    counted: dict[tuple[str, str], list[int]] = {}
    for labels in official.values():
        for label in ("success", "side_effect", "repetition"):
            first, second = labels.primary[label], labels.second[label]
            for place in np.flatnonzero(labels.annotated_twice & (first >= 0) & (second >= 0)):
                key = label, labels.trajectories[place].benchmark
                column = {(1, 1): 0, (0, 1): 1, (1, 0): 2, (0, 0): 3}[first[place], second[place]]
                counted.setdefault(key, [0, 0, 0, 0])[column] += 1
    rows = {
        (row["label"], row["benchmark"]): [int(row[name]) for name in ("tp", "fp", "fn", "tn")]
        for row in shipped("second_annotator.csv")
    }
    assert rows == counted
