"""What experts and judges said, beside each other."""

from types import SimpleNamespace

import numpy as np
import pytest

from dataset_script.sources.published import PublishedDataset
from space.explorer.index import Labels
from space.explorer.verdict_column import experts_of, judge_names, judges_of, reasoning_in
from tests.synthetic_dataset import JUDGES


@pytest.fixture
def dataset(built):
    return PublishedDataset(built)


def test_experts_are_there_on_dev_and_not_on_test(dataset, dev, test_entries):
    first = experts_of(dataset, dev[0])
    assert first[0].annotation == 1
    assert first[0].said == dev[0].labels
    assert [experts_of(dataset, entry) for entry in test_entries] == [()] * len(test_entries)


def test_every_judge_of_the_dataset_is_there_with_the_rule_based_one_first(dataset, entries):
    found = judges_of(dataset, entries[0], (), {"paper/gpt-4o-tree"})
    assert len(found) == len(JUDGES)
    assert (found[0].key, found[0].name, found[0].has_reasoning) == ("functional", "Rule-based", False)
    by_key = {judge.key: judge for judge in found}
    assert by_key["gpt-4o-noscreen"].name == "GPT-4o (A)"
    assert by_key["gpt-4o-noscreen"].about == "gpt-4o-2024-11-20 · tree"


def test_only_a_judge_on_the_board_has_a_page(dataset, entries):
    found = judges_of(dataset, entries[0], (), {"paper/gpt-4o-tree"})
    assert [judge.row_id for judge in found if judge.row_id] == ["paper/gpt-4o-tree"]


def test_a_judge_differs_where_it_contradicts_the_expert_and_never_on_test(dataset, dev, test_entries):
    for entry in dev[:3]:
        for judge in judges_of(dataset, entry, (), ()):
            answers = (judge.said.success, entry.labels.success)
            assert judge.differs == (None if None in answers else answers[0] is not answers[1])
    judges = judges_of(dataset, test_entries[0], (), ())
    assert {judge.differs for judge in judges} == {None}


def test_a_submitted_judge_answers_from_its_columns(dataset, test_entries):
    entry = test_entries[0]
    columns = {"success": 1, "side_effect": -1, "optimality": 0}
    judge = SimpleNamespace(
        submission_id="abc", judge="Mine", account="Ada", model="m", inputs="tree", has_reasoning=True,
        places={entry.trajectory_id: 1}, states=None,
        answers={name: np.array([0, value], dtype=np.int8) for name, value in columns.items()},
    )  # fmt: skip
    found = judges_of(dataset, entry, [judge], {"abc"})[-1]
    assert (found.name, found.row_id, found.about) == ("Mine", "abc", "m · tree · sent by Ada")
    assert found.said == Labels(True, None, None, None)
    elsewhere = SimpleNamespace(**{**vars(judge), "places": {}})
    assert len(judges_of(dataset, entry, [elsewhere], ())) == len(JUDGES)


def test_every_released_folder_of_a_judge_of_the_paper_has_a_name():
    assert {folder for folder, *_ in JUDGES} <= judge_names().keys()


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        ("<reasoning>\nIt paid.\n</reasoning><success>Successful</success>", "It paid."),
        ("Thoughts: no\nStatus: failure", "Thoughts: no\nStatus: failure"),
        ("<reasoning></reasoning> rest", "<reasoning></reasoning> rest"),
        ("<think>a</think>b", "a"),
        ("", ""),
    ],
)
def test_a_reply_is_shown_by_its_reasoning(reply, shown):
    assert reasoning_in(reply) == shown
