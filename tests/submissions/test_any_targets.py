"""A private suite with a binary target of its own, and a public one with grades and steps.

Nothing in them is named like a target of AgentRewardBench. Their files go all the way to the board.
"""

import json
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from arb.core.settings import Settings
from leaderboard.board.every_eval_ever import every_eval_ever
from leaderboard.board.export import board_to_csv, site_files
from leaderboard.compare import Entrant, columns_of, compare, compare_verdicts
from leaderboard.labels.quality import ceiling_row, summarise
from leaderboard.paper.published import SECOND_ANNOTATOR
from submissions.app import SubmissionsApp
from submissions.intake.accounts import Actor
from submissions.moderation.overview import overview
from submissions.scoring.rescore import label_effects, publish, rescore, rescorings
from tests.attacks.service_oracle import Clock
from tests.support.submissions import send
from tests.support.target_suites import (
    PRIVATE,
    PUBLIC,
    RUNS,
    STEPS,
    folder_of,
    private_file,
    private_labels,
    public_file,
    public_labels,
)

MIA, ADA = Actor("Mia", is_maintainer=True), Actor("Ada")


def service_of(tmp_path, labels: str, name="labels.csv", **changes) -> SubmissionsApp:
    """The service of the suite with these labels; services of one folder share their records."""
    (tmp_path / name).write_text(labels)
    settings = Settings(
        suite=str(tmp_path / "small"), labels=f"csv:{tmp_path / name}", state_dir=tmp_path / "state",
        cache_dir=tmp_path / "cache", database_url=None, secret="863bf41c30eb455c968d136c2c02861a",
    )  # fmt: skip
    return SubmissionsApp(settings, **changes)


def test_only_files_with_the_same_answers_are_flagged_as_the_same(tmp_path):
    folder_of(tmp_path, PRIVATE)
    service = service_of(tmp_path, private_labels())
    send(service, private_file(), account="Ada")
    send(service, private_file(false_alarms=6), account="Bob", judge="Second judge")
    third = send(service, private_file(), account="Eve", judge="Third judge")  # as Ada's
    with service.snapshot() as session:
        flags = overview(session, service.suite.name, service.label_version).flags
    assert [flag.submission.id for flag in flags if flag.kind == "same verdicts"] == [third.submission_id]


def test_a_private_outcome_of_any_name_gets_noise_a_rank_a_budget_and_effects(tmp_path):
    folder_of(tmp_path, PRIVATE)
    clock = Clock()
    first = service_of(tmp_path, private_labels(), clock=clock)
    sent = send(first, private_file(false_alarms=6))
    other = send(first, private_file(), judge="Second judge")
    exact = first.records.submission(sent.submission_id, MIA).report["labels"]["solved"]["overall"]
    assert (exact["tp"], exact["fp"], exact["fn"], exact["tn"]) == (30, 6, 0, 24)  # 30 of 60 are solved

    noisy = first.records.submission(sent.submission_id, ADA).report["labels"]
    assert noisy["solved"]["overall"]["noise"] == {"tp_sd": 6.0, "positives_sd": 3.0}
    assert noisy["polite"]["overall"]["noise"]["tp_sd"] == 6.0 and noisy["solved"]["by_agent"] == {}
    assert noisy["solved"]["overall"]["tp"] != 30
    # Both files say the same about polite, so the owners saw two figures of solved and one of polite. A label
    # is of one target: two figures cost 2 x 1 / (2 x 6**2).
    leak = first.records.leak.get().total
    assert (leak.figures, leak.rho) == (3, pytest.approx(2 / 72))

    for each in (sent, other):
        first.moderation.publish(each.submission_id, ADA)
    clock.now += timedelta(days=2)
    board = first.records.board()
    assert board.main.name == "solved" and {row.id for row in board.rows} == {
        sent.submission_id,
        other.submission_id,
    }
    assert {rank.place for rank in board.ranks("solved").values()} == {1, 2}
    entrants = [Entrant(row, None) for row in board.rows]
    assert compare(entrants, None, "solved").pairs[0].overall.basis == "approximate"
    assert b"solved" in board_to_csv(board).encode() and "Solved" in site_files(board)["index.html"].decode()

    second = service_of(tmp_path, private_labels(swapped=2), "new.csv", clock=clock)
    (effect, _) = sorted(
        label_effects(first, first.labels.test, second.labels.test)["solved"], key=lambda e: e.to_wrong
    )
    # Run 0 was solved, and run 1 was not; the first file calls both solved.
    assert (effect.to_wrong, effect.to_right) == (1, 1)
    assert effect.after == {"precision": 30 / 36, "recall": 1.0, "f1": 60 / 66}
    assert rescore(second, MIA).scored == 2
    (record,) = rescorings(second)
    assert record.body["ranks"].keys() == {sent.submission_id, other.submission_id}
    assert publish(second, private_labels(swapped=2).encode(), MIA, "corrected").labelled == 60


def test_a_file_is_held_by_its_verdicts_on_the_main_target(tmp_path):
    folder_of(tmp_path, PRIVATE)
    service = service_of(tmp_path, private_labels())
    rows = [{"trajectory_id": run, "solved": "failed", "polite": True} for run in RUNS]
    assert send(service, "\n".join(map(json.dumps, rows)).encode()).status == "held"


@pytest.fixture
def public(tmp_path) -> SubmissionsApp:
    items = "trajectory_id,step\n" + "".join(f"{run},{step}\n" for run in RUNS for step in STEPS)
    folder_of(tmp_path, PUBLIC, items)
    return service_of(tmp_path, public_labels())


def test_grades_and_steps_go_from_a_file_to_the_board_a_comparison_and_new_labels(public, tmp_path):
    good = send(public, public_file(wrong=1, blind=2))
    poor = send(public, public_file(wrong=30, blind=30), judge="Second judge")
    report = public.records.submission(good.submission_id, ADA).report["labels"]
    # One of 60 grades is off by one; of the two runs without a wrong step named, the second has one.
    assert report["quality"]["overall"]["mae"] == 1 / 60
    assert report["act"]["overall"]["first_error_accuracy"] == 59 / 60
    assert report["act"]["by_agent"]["agent-a"]["first_error_accuracy"] == 29 / 30
    assert report["act"]["overall"]["tp"] + report["act"]["overall"]["fp"] == 91  # of 120 steps, 30 are wrong

    board = public.records.board()
    judges = [row.id for row in board.rows if row.provenance == "scored"]
    assert judges == [good.submission_id, poor.submission_id]
    ranks = board.ranks("act")
    assert ranks[good.submission_id].separated_from == (poor.submission_id,)
    assert board.ranks("act", "precision")[good.submission_id].place == 1
    # The second annotator agrees with the first on everything.
    human = board.row(SECOND_ANNOTATOR)
    assert (human.score("quality")["overall"]["weighted_kappa"], human.score("act")["overall"]["n"]) == (
        1,
        120,
    )

    labels = public.labels.test
    files = {each.id: public.records.verdicts(each.id) for each in board.rows[:2]}
    (pair,) = compare_verdicts(columns_of(files, "quality"), labels, "quality")
    assert list(pair.metrics) == ["weighted_kappa", "mae"]
    # 1 / 60 against 10 runs each of which is off by 1, 1 and 2.
    assert pair.metrics["mae"].value == pytest.approx(1 / 60 - 40 / 60) and pair.metrics["mae"].favours == -1
    assert pair.p_accuracy == 2 / 2**29  # 29 runs, of which only the first judge has all right
    found = compare([Entrant(row, files[row.id].targets["act"]) for row in board.rows[:2]], labels, "act",
                    "first_error_accuracy")  # fmt: skip
    assert found.pairs[0].overall.value == pytest.approx(59 / 60 - 45 / 60) and len(found.votes) == 2
    entrants = [Entrant(row, files[row.id].targets["quality"]) for row in board.rows[:2]]
    grades = compare(entrants, labels, "quality", "mae")
    assert (grades.votes, grades.fooled, grades.pairs[0].runs) == ((), None, None)

    corrected = service_of(tmp_path, public_labels(quality_of_first=2), "new.csv")
    effects = label_effects(public, labels, corrected.labels.test)
    assert list(effects) == ["quality"]
    first = effects["quality"][0]
    assert (first.id, first.to_wrong, first.to_right) == (good.submission_id, 0, 1)
    assert (first.before["mae"], first.after["mae"]) == (1 / 60, 0.0)
    assert rescore(corrected, MIA).scored == 2


def test_exports_and_counts_of_labels_name_the_metrics_of_the_targets(public):
    send(public, public_file(wrong=1))
    board = public.records.board()
    header = board_to_csv(board).splitlines()[0].split(",")
    assert {"weighted_kappa", "mae_ci_low", "first_error_accuracy_chat"} <= set(header)
    (content,) = every_eval_ever(board, 1).values()
    configs = [each["metric_config"] for each in json.loads(content)["evaluation_results"]]
    kinds = {
        each["metric_id"]: (each["metric_unit"], each["min_score"], each["max_score"]) for each in configs
    }
    assert kinds["small.quality.mae"] == ("points", 0.0, "Infinity")
    assert kinds["small.quality.weighted_kappa"] == ("proportion", -1.0, 1.0)
    assert kinds["small.act.first_error_accuracy"] == ("proportion", 0.0, 1.0)
    counts = summarise(public.labels.test)
    assert counts["overall"] == {"trajectories": 60, "quality": {"n": 60}, "act": {"positives": 90, "n": 120}}
    assert counts["agreement"]["act"]["pairs"] == 120 and counts["agreement"]["quality"]["alpha"] == 1


def test_missing_second_answers_leave_out_their_items(public):
    labels = public.labels.test
    second = {
        **labels.second,
        "quality": np.where(np.arange(len(labels.trajectories)) < 10, -1, labels.second["quality"]),
    }
    row = ceiling_row([replace(labels, second=second)], "2026-01-01")
    assert row.score("quality")["overall"]["n"] == 50
