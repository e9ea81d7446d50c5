"""Reference rows of trivial judges: their figures follow from the labels, counted by hand."""

import pytest

from leaderboard.board.board import make_board
from leaderboard.labels.references import trivial_rows
from tests.leaderboard.labels.test_items import labels, suite

__all__ = ["labels", "suite"]


@pytest.fixture
def cells(labels):
    rows = trivial_rows(labels, "2026-01-01")
    return {
        row.judge: {target: score and score["overall"] for target, score in row.labels.items()}
        for row in rows
    }


def test_always_yes_answers_binary_targets_only(cells):
    # Labels of final: yes, no, no, yes
    final = cells["Always yes"]["final"]
    assert (final["tp"], final["fp"], final["balanced_accuracy"]) == (2, 2, 0.5)
    assert cells["Always yes"]["verdict"] is None


def test_the_most_frequent_label_is_given_to_every_item_of_the_level(cells):
    # Labels of steps: 1, 1 | 1, 0, -1 | -1 | 1, 0. The value 1 is right in 4 of 8.
    assert cells["Most frequent answer"]["verdict"]["accuracy"] == 4 / 8
    # Two of four runs have either label of final; the first code, no, is taken.
    assert cells["Most frequent answer"]["final"]["tn"] == 2


def test_the_first_or_the_last_step_is_called_wrong_and_all_others_right(cells):
    # First step: -1, 1 | -1, 1, 1 | -1 | -1, 1 is right in the steps 2 of run 1 and 1 of run 3.
    first, last = cells["First step"]["verdict"], cells["Last step"]["verdict"]
    assert (first["n"], first["no_verdict"], first["accuracy"]) == (8, 0, 2 / 8)
    # The first errors are: none, step 10 (the third), step 1, none.
    assert first["first_error_accuracy"] == 1 / 4
    # Last step: 1, -1 | 1, 1, -1 | -1 | 1, -1
    assert (last["accuracy"], last["first_error_accuracy"]) == (5 / 8, 2 / 4)
    assert cells["First step"]["final"] is None


def test_references_are_listed_last_and_not_ranked(suite, labels):
    rows = trivial_rows(labels, "2026-01-01")
    board = make_board("qa", [], (), labels.version, rows, targets=suite.targets)
    assert [row.provenance for row in board.rows] == ["reference"] * 4
    assert board.ranks("final") == {} and board.ranks("verdict") == {}
