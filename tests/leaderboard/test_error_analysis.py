import dataclasses

import numpy as np
import pytest

from dataset_script.settings import Settings
from leaderboard.error_analysis import CATEGORIES, ErrorsHidden, error_queue, may_see_errors
from leaderboard.labels import load_labels

# In the order of the split; labels: yes, no, no, unsure.
IDS = [
    "visualwebarena/agent-a/visualwebarena.resized.7",
    "visualwebarena/agent-b/visualwebarena.7",
    "workarena/agent-a/workarena.servicenow.order-l2",
    "workarena/agent-b/workarena.servicenow.order-l2",
]
WORDS = ["Successful", "Unsuccessful", "Unsuccessful", "Unsure"]


@pytest.fixture
def public(small_suite):
    return dataclasses.replace(small_suite, labels_are_public=True)


@pytest.fixture
def labels(small_suite, write_annotations):
    rows = [(name, word, "No", "Unsure", "No") for name, word in zip(IDS, WORDS, strict=True)]
    rows.append(("webarena/agent-a/webarena.1", "Successful", "No", "Unsure", "No"))
    settings = Settings(labels=f"csv:{write_annotations(rows)}")
    return lambda split="test": load_labels(small_suite, split, settings)


def column(*verdicts) -> np.ndarray:
    return np.array(verdicts, dtype=np.int8)


def test_errors_come_with_the_share_of_other_judges_that_got_them_right_highest_first(public, labels):
    others = [column(0, 0, 0, 1), column(1, 0, 1, 1), column(-1, 0, 1, 1)]
    found = error_queue(public, labels(), "success", column(0, 1, 1, 1), others)
    assert [(e.trajectory_id, e.kind, e.others_right, e.others, e.priority) for e in found] == [
        (IDS[1], "false positive", 3, 3, 1.0),
        (IDS[0], "false negative", 1, 2, 0.5),  # the third judge gave no verdict
        (IDS[2], "false positive", 1, 3, 1 / 3),
    ]
    assert (found[2].benchmark, found[2].agent) == ("workarena++", "agent-a")


def test_right_verdicts_missing_ones_and_unsure_labels_are_no_errors(public, labels):
    assert error_queue(public, labels(), "success", column(1, 0, -1, 1)) == ()


def test_one_kind_alone_can_be_asked_for(public, labels):
    verdicts = column(0, 1, 0, 0)
    (found,) = error_queue(public, labels(), "success", verdicts, kind="false positive")
    assert (found.trajectory_id, found.priority, found.others) == (IDS[1], 0.0, 0)


def test_among_equals_more_judges_then_the_id_decide(public, labels):
    others = [column(-1, 0, 0, 0), column(1, 0, 0, 0)]
    found = error_queue(public, labels(), "success", column(0, 1, 1, 1), others)
    assert [e.trajectory_id for e in found] == [IDS[1], IDS[2], IDS[0]]


def test_errors_of_test_are_hidden_where_its_labels_are_and_those_of_dev_never(small_suite, public, labels):
    with pytest.raises(ErrorsHidden, match="the test labels of small are hidden"):
        error_queue(small_suite, labels(), "success", column(0, 1, 1, 1))
    (found,) = error_queue(small_suite, labels("dev"), "success", column(0, 0))
    assert found.trajectory_id == "webarena/agent-a/webarena.1"
    assert [may_see_errors(suite, split) for suite in (small_suite, public) for split in ("dev", "test")] == [
        True, False, True, True,
    ]  # fmt: skip


def test_columns_of_another_length_are_refused(public, labels):
    with pytest.raises(ValueError, match=r"^verdicts: \[3\] rows; test has 4"):
        error_queue(public, labels(), "success", column(0, 1, 1, 1), [column(0, 0, 0)])


def test_an_error_shows_no_label(public, labels):
    (found,) = error_queue(public, labels(), "success", column(0, 0, 0, 0))
    assert repr(found) == f"JudgeError({IDS[0]!r})"


def test_the_papers_four_categories_are_there_each_described_in_a_sentence():
    assert [category.title for category in CATEGORIES.values()] == [
        "Grounding mismatch",
        "Misleading agent reasoning",
        "Missed instruction details",
        "Misunderstood action intent",
    ]
    assert all(category.description.endswith(".") for category in CATEGORIES.values())
