"""The same attacks, on few files, through the service itself."""

import json
from functools import partial

import numpy as np
import pytest

from leaderboard.report import score_report
from submissions.intake.accounts import Actor
from tests.attacks.certain_attacks import single_item
from tests.attacks.findings import Notebook, disguise, likely_negatives, undecided
from tests.attacks.oracle import BudgetSpent, FileHeld, GeneratedOracle
from tests.attacks.plausibility import flips_that_do_not_fit
from tests.attacks.service_oracle import ServiceOracle
from tests.attacks.world import make_world


@pytest.fixture(scope="module")
def world():
    return make_world(0)


@pytest.fixture(autouse=True)
def _few_resamples(monkeypatch):
    """Intervals of exact counts are shown to nobody here: 20 resamples are enough."""
    monkeypatch.setattr("submissions.scoring.scorer.score_report", partial(score_report, n_resamples=20))


def test_single_items_follow_for_certain_where_labels_are_public(world, tmp_path):
    oracle = ServiceOracle(world, tmp_path, is_public=True)
    oracle.files_left = 10
    found = single_item(world, oracle)
    assert len(found.claims) == 9 and found.wrong(world) == 0


def test_single_items_do_not_where_they_are_private(world, tmp_path):
    oracle = ServiceOracle(world, tmp_path)
    notebook = Notebook(world, oracle)
    targets = undecided(world, 19)
    base = disguise(world, targets)
    counts = [notebook.ask(np.append(base, target)) for target in targets]
    exact = [world.truth[base].sum() + world.truth[target] for target in targets]
    # Exact counts differ by 1 at most; the noise of 6 on 19 files by 10 and more.
    assert np.ptp(exact) <= 1
    assert np.ptp(counts) > 5
    assert {observation.sd for observation in notebook.observations} == {
        oracle.service.suite.rules.private_noise
    }


def test_an_owner_and_the_board_are_told_noisy_figures_and_a_maintainer_exact_ones(world, tmp_path):
    oracle = ServiceOracle(world, tmp_path)
    exact = GeneratedOracle(world, is_exact=True).figures(world.votes[0])["labels"]["success"]
    public = oracle.public_figures(world.votes[0])["labels"]["success"]
    owner = oracle.figures(world.votes[1])
    assert public["overall"]["noise"] and owner["labels"]["success"]["overall"]["noise"]
    assert owner["labels"]["success"]["by_benchmark"] == {} == public["by_agent"]
    assert any(
        cell["tp"] != exact["by_benchmark"][name]["tp"] for name, cell in public["by_benchmark"].items()
    )
    row = oracle.service.records.board().rows[0]
    told = oracle.service.records.submission(row.id, Actor("keeper", is_maintainer=True)).report["labels"][
        "success"
    ]
    assert told["overall"]["tp"] == exact["overall"]["tp"]
    seen = [(world.votes[1], owner), (world.votes[0], {"labels": {"success": public}})]
    assert flips_that_do_not_fit(world, seen) == []


def test_a_file_in_another_dress_is_told_the_same(world, tmp_path):
    oracle = ServiceOracle(world, tmp_path)
    rows = [
        {"trajectory_id": one.trajectory_id, "success": bool(said)}
        for one, said in zip(world.trajectories, world.votes[0].tolist(), strict=True)
    ]
    dressed = [
        {**row, "success": row["success"] or None, "score": 0.5, "reasoning": "x"} for row in rows[::-1]
    ]
    counts = [
        oracle.figures_of_content("\n".join(map(json.dumps, file)).encode())["labels"]["success"]["overall"][
            "tp"
        ]
        for file in (rows, rows[::-1], dressed)
    ]
    assert counts == [counts[0]] * 3


def test_a_day_of_five_accounts_is_ten_files(world, tmp_path):
    oracle = ServiceOracle(world, tmp_path)
    notebook = Notebook(world, oracle)
    for row in range(10):
        notebook.ask(np.arange(row, 1_106, 11))
    oracle.sent += 5  # the clock stands still
    with pytest.raises(BudgetSpent):
        notebook.ask(np.arange(0, 1_106, 5))


def test_a_suspicious_form_is_told_nothing(world, tmp_path):
    oracle = ServiceOracle(world, tmp_path)
    with pytest.raises(FileHeld):
        Notebook(world, oracle).ask(likely_negatives(world, 240)[:29])
    assert oracle.service.records.board().rows == ()
