"""Comparisons of rows with and without verdicts; boards from synthetic records."""

from dataclasses import replace

import numpy as np
import pytest

from arb.core.ids import Trajectory
from leaderboard.board.board import make_board
from leaderboard.compare import Entrant, compare, score_votes, vote
from leaderboard.judge_precision.scores import judge_scores
from leaderboard.labels.labels import LabelSet
from leaderboard.paper.published import load_published_rows
from leaderboard.report import task_names

A = np.array([1, 1, 0, -1, -1], dtype=np.int8)
B = np.array([1, 0, 0, 1, -1], dtype=np.int8)
C = np.array([1, 1, 0, -1, -1], dtype=np.int8)


@pytest.mark.parametrize(
    "needed, expected",
    # yes votes: 3, 2, 0, 1, none at all (no judge has a verdict on the last run)
    [(1, [1, 1, 0, 1, -1]), (2, [1, 1, 0, 0, -1]), (3, [1, 0, 0, 0, -1])],
)
def test_a_vote_says_yes_when_enough_judges_do(needed, expected):
    assert vote([A, B, C], needed).tolist() == expected


@pytest.mark.parametrize("needed", [0, 4, -1])
def test_a_vote_that_nobody_could_win_is_refused(needed):
    with pytest.raises(ValueError, match=f"needed: {needed} of 3 judges; give 1 to 3"):
        vote([A, B, C], needed)


def test_every_vote_is_scored_as_a_judge_of_its_own_would_be(entrants, small_labels):
    judges = [entrant.verdicts for entrant in entrants.values()]
    votes = score_votes(judges, small_labels, "success", n_resamples=300)
    assert [(v.needed, v.is_majority, v.is_unanimous) for v in votes] == [
        (1, False, False),
        (2, True, False),
        (3, False, True),
    ]
    for found in votes:
        expected = judge_scores(
            vote(judges, found.needed),
            small_labels.primary["success"],
            benchmarks=[t.benchmark for t in small_labels.trajectories],
            clusters=task_names(small_labels),
            n_resamples=300,
        )
        assert found.cells["by_benchmark"] == expected.pop("by_benchmark")
        assert found.cells["overall"] == expected


def test_a_pair_with_a_row_that_cannot_be_compared_has_no_difference(entrants, small_labels):
    careful, hasty, right = entrants.values()
    tuned = Entrant(replace(hasty.row, provenance="self-reported", test_labels_used=True), hasty.verdicts)
    found = compare([careful, tuned, right], small_labels, "success", n_resamples=300)
    assert [(pair.first, pair.second) for pair in found.comparable()] == [(0, 2)]
    for pair in found.pairs:
        for each in (pair.overall, *pair.by_benchmark.values(), *pair.by_agent.values()):
            if pair not in found.comparable():
                assert (each.value, each.interval, each.basis, each.favours) == (None, None, None, 0)
    assert found.pairs[0].overall.first == careful.row.score("success")["overall"]["precision"]
    assert found.pairs[0].runs is not None  # how often both say the same compares no metrics


@pytest.fixture(scope="module")
def entrants(judged, small_labels):
    """Three judges of the synthetic runs with verdicts: careful, hasty, and one that never errs."""
    columns = {
        "careful": judged.verdicts(errors=4, misses=10),
        "hasty": judged.verdicts(errors=20, misses=2, seed=2),
        "right": judged.verdicts(errors=0),
    }
    records = [judged.record(name, column) for name, column in columns.items()]
    board = make_board("small", records, (), "0123456789ab")
    rows = {row.id: row for row in board.rows}
    return {name: Entrant(rows[name], column.astype("int8")) for name, column in columns.items()}


@pytest.fixture(scope="module")
def small_labels(judged):
    trajectories = tuple(
        Trajectory(str(place), "webarena" if place < 60 else "workarena", f"a{place % 2}", str(task), "test")
        for place, task in enumerate(judged.tasks)
    )
    return LabelSet(
        suite="small",
        split="test",
        source="table",
        version="1",
        trajectories=trajectories,
        primary={"success": judged.labels.astype("int8")},
        second={},
        annotated_twice=np.zeros(len(trajectories), dtype=bool),
    )


def chosen(entrants, *names):
    return [entrants[name] for name in names]


def test_every_pair_is_compared_once_and_the_first_with_each(entrants, small_labels):
    found = compare(chosen(entrants, "careful", "hasty", "right"), small_labels, "success", n_resamples=200)
    assert [(pair.first, pair.second) for pair in found.pairs] == [(0, 1), (0, 2), (1, 2)]
    assert [(pair.first, pair.second) for pair in found.against_first()] == [(0, 1), (0, 2)]
    assert set(found.pairs[0].by_benchmark) == {"webarena", "workarena"}
    assert set(found.pairs[0].by_agent) == {"a0", "a1"}
    assert all(pair.runs is not None for pair in found.pairs)


def test_the_paired_values_are_those_of_the_rows(entrants, small_labels):
    (pair,) = compare(
        chosen(entrants, "careful", "hasty"), small_labels, "success", "f1", n_resamples=200
    ).pairs
    rows = [entrants[name].row.labels["success"]["overall"] for name in ("careful", "hasty")]
    assert (pair.overall.first, pair.overall.second) == (rows[0]["f1"], rows[1]["f1"])
    assert pair.overall.basis == "paired"


def test_a_judge_that_never_errs_is_compared_by_the_two_intervals(entrants, small_labels):
    (pair,) = compare(chosen(entrants, "right", "hasty"), small_labels, "success", n_resamples=200).pairs
    assert pair.overall.first == 1.0
    assert pair.overall.basis == "approximate"
    assert not pair.is_paired and pair.runs.mcnemar.only_second == 0


def test_without_labels_every_pair_is_approximate_and_no_single_trajectory_is_revealed(entrants):
    found = compare(chosen(entrants, "careful", "hasty", "right"), None, "success")
    assert {pair.overall.basis for pair in found.pairs} == {"approximate"}
    assert all(pair.runs is None and pair.by_agent == {} for pair in found.pairs)
    assert (found.voters, found.votes, found.fooled) == ((), (), None)


def test_a_row_of_which_only_counts_are_known_is_compared_approximately_and_does_not_vote(
    entrants, small_labels
):
    counts_only = Entrant(entrants["hasty"].row, None)
    mixed = [entrants["careful"], counts_only, entrants["right"]]
    found = compare(mixed, small_labels, "success", n_resamples=200)
    assert [pair.runs is not None for pair in found.pairs] == [False, True, False]
    assert found.voters == (0, 2)
    assert [vote.n_judges for vote in found.votes] == [2, 2]
    alone = compare([entrants["careful"], counts_only], small_labels, "success", n_resamples=200)
    assert (alone.voters, alone.votes, alone.fooled) == ((0,), (), None)


def test_two_rows_of_the_paper_are_compared_on_every_benchmark_either_has():
    rows = make_board("agent-reward-bench", (), load_published_rows(), None).rows
    by_id = {row.id: row for row in rows}
    pair_of = [Entrant(by_id[name], None) for name in ("paper/aer-c", "reference/second-annotator")]
    (pair,) = compare(pair_of, None, "success").pairs
    # Table 1: 67.7 = 212/313, and 33 of 39 of the second annotator: 84.6
    assert pair.overall.value == pytest.approx(212 / 313 - 33 / 39)
    assert pair.overall.basis == "approximate"
    assert set(pair.by_benchmark) > {"webarena", "assistantbench"}
    assert pair.by_benchmark["assistantbench"].second is None  # nobody annotated it twice


@pytest.mark.parametrize(
    "names, figure, message",
    [
        (["careful"], "precision", "got 1; compare 2 to 5"),
        (["careful"] * 6, "precision", "got 6; compare 2 to 5"),
        (["careful", "hasty"], "npv", "no 'npv'"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_words(entrants, names, figure, message):
    with pytest.raises(ValueError, match=message):
        compare(chosen(entrants, *names), None, "success", figure)


def test_a_judge_that_does_not_answer_the_label_is_named(entrants):
    with pytest.raises(ValueError, match="label repetition: careful, hasty have no verdicts on it"):
        compare(chosen(entrants, "careful", "hasty"), None, "repetition")
