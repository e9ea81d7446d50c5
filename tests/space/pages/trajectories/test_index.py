"""The list's entries with labels on dev only; votes counted from verdicts, the rule-based one once."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from arb.core.predictions.table import Predictions
from arb.core.suite import load_dev_labels, load_suite
from arb.core.suites.targets import default_targets
from dataset_script.sources.published import PublishedDataset
from space.pages.trajectories.index import (
    NO_VOTES,
    Votes,
    build_index,
    natural,
    published_votes,
)
from space.pages.trajectories.verdicts import with_submitted
from tests.support.synthetic_dataset import JUDGES, Shape, make_dataset

MAIN = default_targets()[0]


def test_the_votes_are_those_of_the_judgments(built, entries):
    votes = published_votes(PublishedDataset(built), MAIN)
    rows = PublishedDataset(built).rows_of("judgments", entries[0].trajectory_id, ["success"])
    labels = [row["success"] for row in rows]
    assert votes[entries[0].trajectory_id] == Votes(labels.count(1), labels.count(0), labels.count(None))
    assert {found.cast + found.silent for found in votes.values()} == {len(JUDGES)}


def test_without_judgments_the_rule_based_verdict_comes_from_the_rewards(tmp_path, explorer):
    from tests.space.pages.trajectories.conftest import some_trajectories

    shape = Shape(pages=1, tree_characters=100, mean_steps=2, judges=())
    folder = make_dataset(tmp_path / "data", shape=shape, only=some_trajectories()[:6])
    votes = published_votes(PublishedDataset(folder), MAIN)
    assert len(votes) == 6
    assert {(found.cast, found.silent) for found in votes.values()} == {(1, 0)}


def test_submitted_verdicts_are_added_and_no_verdict_is_silence():
    verdicts = Predictions(tuple("abc"), {"success": np.array([1, 0, -1], dtype=np.int8)})
    judge = SimpleNamespace(places={"a": 0, "b": 1, "c": 2}, verdicts=verdicts)
    vote_counts = with_submitted({"a": Votes(yes=2, no=1), "z": Votes(silent=1)}, [judge, judge], MAIN)
    assert vote_counts == {
        "a": Votes(yes=4, no=1), "b": Votes(no=2), "c": Votes(silent=2), "z": Votes(silent=1),
    }  # fmt: skip


def test_a_trajectory_that_nobody_judged_has_no_votes_and_no_disagreement():
    assert (NO_VOTES.cast, NO_VOTES.disagreement, Votes(yes=1, no=3).disagreement) == (0, -1, 0.25)


def test_every_trajectory_has_an_entry_with_what_the_suite_says_of_it(entries):
    suite = load_suite()
    assert len(entries) == len({entry.trajectory_id for entry in entries}) > 30
    for entry in entries:
        known = suite.find(entry.trajectory_id)
        assert (entry.split, entry.benchmark, entry.agent, entry.task) == (
            known.split, known.benchmark, known.agent, known.task,
        )  # fmt: skip


def test_the_runs_of_a_task_stand_together_and_tasks_are_in_the_order_of_their_numbers(entries):
    tasks = list(dict.fromkeys((e.benchmark, e.task) for e in entries))
    pairs = pairwise((entry.benchmark, entry.task) for entry in entries)
    changes = sum(one != other for one, other in pairs)
    assert changes == len(tasks) - 1
    numbers = [int(task.split(".")[1]) for benchmark, task in tasks if benchmark == "webarena"]
    assert numbers == sorted(numbers)


def test_dev_has_the_published_labels_and_test_has_none(dev, test_entries):
    labels = {found.trajectory_id: found for found in load_dev_labels(load_suite()) if found.is_primary}
    assert dev
    for entry in dev:
        expected = labels[entry.trajectory_id].answers
        answers = {name: entry.labels[name] or "unsure" for name in ("success", "optimality")}
        assert answers == {name: expected[name] for name in answers}
    assert all(entry.labels is None for entry in test_entries)


def test_actions_are_one_fewer_than_steps(entries, explorer):
    entry = entries[3]
    steps = explorer.of_suite().dataset.rows_of("steps", entry.trajectory_id, ["num", "action"])
    assert entry.n_actions == sum(step["action"] is not None for step in steps)


def test_the_label_columns_of_test_are_never_asked_for(built, monkeypatch):
    asked, real = [], pq.read_table

    def noted(source, columns=None, **options):
        asked.append((str(source), columns))
        return real(source, columns=columns, **options)

    monkeypatch.setattr(pq, "read_table", noted)
    build_index(PublishedDataset(built), None)
    of_test = [columns for source, columns in asked if "/test-" in source]
    assert of_test
    assert not any("success" in columns for columns in of_test)


def test_a_trajectory_that_the_served_suite_has_on_test_shows_no_label_wherever_it_lies(built):
    suite = load_suite()
    moved = [t for t in suite.trajectories if t.split == "dev"]

    class OnTest:
        """The suite after every dev task was moved to test, and the dataset was not built again."""

        name = suite.name

        def find(self, trajectory_id):
            return next(type(t)(t.trajectory_id, t.benchmark, t.agent, t.task, "test") for t in moved[:1])

    index = build_index(PublishedDataset(built), OnTest())
    assert {(entry.split, entry.labels) for entry in index.entries} == {("test", None)}


@given(st.lists(st.integers(0, 10**9)), st.text(st.characters(exclude_categories=["Nd"]), max_size=5))
def test_names_that_differ_in_a_number_are_in_the_order_of_it(numbers, word):
    assert sorted((f"{word}{n}" for n in numbers), key=natural) == [f"{word}{n}" for n in sorted(numbers)]


@given(st.lists(st.text(max_size=30), max_size=20))
def test_any_names_can_be_put_in_order(names):
    assert sorted(sorted(names, key=natural)) == sorted(names)
