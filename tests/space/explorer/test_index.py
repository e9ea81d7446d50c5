"""The list's entries: order, labels on dev only."""

from itertools import pairwise

import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from dataset_script.sources.published import PublishedDataset
from dataset_script.suite import load_dev_labels, load_suite
from space.explorer.index import build_index, natural


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
    said = {found.trajectory_id: found for found in load_dev_labels(load_suite()) if found.is_primary}
    assert dev
    for entry in dev:
        expected = said[entry.trajectory_id]
        assert (entry.labels.success, entry.labels.optimality) == (expected.success, expected.optimality)
    assert {entry.labels for entry in test_entries} == {None}


def test_actions_are_one_fewer_than_steps(entries, explorer):
    entry = entries[3]
    steps = explorer.of_suite().steps(entry.trajectory_id, ("num", "action"))
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


def test_a_number_within_a_name_counts_as_a_number():
    assert sorted(["webarena.24", "webarena.9", "webarena.100"], key=natural) == [
        "webarena.9", "webarena.24", "webarena.100",
    ]  # fmt: skip


@given(st.lists(st.integers(0, 10**9)), st.text(st.characters(exclude_categories=["Nd"]), max_size=5))
def test_names_that_differ_in_a_number_are_in_the_order_of_it(numbers, word):
    assert sorted((f"{word}{n}" for n in numbers), key=natural) == [f"{word}{n}" for n in sorted(numbers)]


@given(st.lists(st.text(max_size=30), max_size=20))
def test_any_names_can_be_put_in_order(names):
    assert sorted(sorted(names, key=natural)) == sorted(names)
