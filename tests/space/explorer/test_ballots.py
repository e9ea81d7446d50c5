"""Votes are counted from verdicts: those the dataset carries, the rule-based one once, and submitted ones."""

from types import SimpleNamespace

import numpy as np

from dataset_script.sources.published import PublishedDataset
from space.explorer.vote_counts import NOBODY, VoteCounts, Votes, published_votes, with_submitted
from tests.synthetic_dataset import JUDGES, Shape, make_dataset


def test_the_votes_are_those_of_the_judgments(built, entries):
    votes = published_votes(PublishedDataset(built))
    rows = PublishedDataset(built).rows_of("judgments", entries[0].trajectory_id, ["success"])
    said = [row["success"] for row in rows]
    assert votes[entries[0].trajectory_id] == Votes(said.count(1), said.count(0), said.count(None))
    assert {found.cast + found.silent for found in votes.values()} == {len(JUDGES)}


def test_without_judgments_the_rule_based_verdict_comes_from_the_rewards(tmp_path, explorer):
    from tests.space.explorer.conftest import some_trajectories

    shape = Shape(pages=1, tree_characters=100, mean_steps=2, judges=())
    folder = make_dataset(tmp_path / "data", shape=shape, only=some_trajectories()[:6])
    votes = published_votes(PublishedDataset(folder))
    assert len(votes) == 6
    assert {(found.cast, found.silent) for found in votes.values()} == {(1, 0)}


def test_submitted_verdicts_are_added_and_no_verdict_is_silence():
    judge = SimpleNamespace(
        trajectory_ids=("a", "b", "c"), answers={"success": np.array([1, 0, -1], dtype=np.int8)}
    )
    vote_counts = with_submitted({"a": Votes(yes=2, no=1), "z": Votes(silent=1)}, [judge, judge])
    assert vote_counts.by_id == {
        "a": Votes(yes=4, no=1), "b": Votes(no=2), "c": Votes(silent=2), "z": Votes(silent=1),
    }  # fmt: skip


def test_a_trajectory_that_nobody_judged_has_no_votes_and_no_disagreement():
    vote_counts = VoteCounts({"a": Votes(yes=1, no=3)})
    assert vote_counts.votes("b") == NOBODY
    assert (vote_counts.votes("b").disagreement, vote_counts.votes("a").disagreement) == (-1, 0.25)
    assert vote_counts.most == 4
    assert VoteCounts({}).most == 0
