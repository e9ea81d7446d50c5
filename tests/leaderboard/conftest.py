"""What the leaderboard's tests share: small suites, label files, real verdicts."""

import csv
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from arb.core.judge_info import JudgeInfo
from arb.core.predictions.table import Predictions
from arb.core.suite import load_suite
from leaderboard.board.board import ScoredRecord
from leaderboard.judge_precision.scores import judge_scores
from leaderboard.labels.labels import LabelSet, load_labels
from leaderboard.labels.source import LabelsUnavailable, locate_labels
from tests.support.submissions import RELEASED_HEADER
from tests.support.verdict_tables import verdict_table


@pytest.fixture
def small_suite(tmp_path):
    """Two agents on three tasks: four trajectories of test, two of dev; no published dev labels."""
    rows = [
        ("visualwebarena/agent-a/visualwebarena.resized.7", "test"),
        ("visualwebarena/agent-b/visualwebarena.7", "test"),
        ("workarena/agent-a/workarena.servicenow.order-l2", "test"),
        ("workarena/agent-b/workarena.servicenow.order-l2", "test"),
        ("webarena/agent-a/webarena.1", "dev"),
        ("webarena/agent-b/webarena.1", "dev"),
    ]
    folder = tmp_path / "small"
    folder.mkdir()
    with (folder / "trajectories.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("trajectory_id", "split"), *rows])
    return load_suite(folder)


@pytest.fixture
def write_annotations(tmp_path):
    """A function that writes a CSV in the released format.

    Each row is (trajectory id, success, side effect, optimality, looping), then the annotator if it matters.
    """

    def write(rows, name="annotations.csv", newline="\n", encoding="utf-8") -> Path:
        path = tmp_path / name
        with path.open("w", newline="", encoding=encoding) as file:
            writer = csv.writer(file, lineterminator=newline)
            writer.writerow(RELEASED_HEADER)
            for trajectory_id, success, side_effect, optimality, looping, *annotator in rows:
                benchmark, agent, task = trajectory_id.split("/")
                who = annotator[0] if annotator else "A"
                writer.writerow(
                    [who, benchmark, task, agent, "exp", success, side_effect, optimality, looping]
                )
        return path

    return write


@pytest.fixture(scope="session")
def official_test_labels(official_settings) -> LabelSet:
    return load_labels(load_suite(), "test", official_settings)


@pytest.fixture(scope="session")
def real_verdicts(shared, official_test_labels):
    """A function that gives the verdicts of ``aer-c``, ``nnetnav`` or ``rule-based`` in the split's order."""
    suite = load_suite()

    def read(name: str) -> Predictions:
        lines = (shared / f"data/agent-reward-bench/verdicts/{name}.jsonl").read_text().splitlines()
        rows = [json.loads(line) for line in lines]
        success = {suite.find(row["trajectory_id"]).trajectory_id: int(row["success"]) for row in rows}
        ordered = [success[t.trajectory_id] for t in official_test_labels.trajectories]
        return verdict_table(success=ordered)

    return read


@pytest.fixture
def cache(tmp_path) -> Path:
    """The folder for fetched labels, not made yet."""
    return tmp_path / "cache"


@pytest.fixture
def unavailable():
    """A function that expects no labels from a source and gives the message."""

    def refuse(settings, fetch=True) -> str:
        with pytest.raises(LabelsUnavailable) as reason:
            locate_labels(settings, fetch)
        return str(reason.value)

    return refuse


class Judged:
    """Judges of 120 runs on 60 tasks, two runs each, with labels drawn at random, and their records."""

    def __init__(self):
        self.labels = np.random.default_rng(0).integers(0, 2, 120)
        self.tasks = [f"task-{number // 2:02}" for number in range(120)]

    def verdicts(self, errors, misses=0, seed=1) -> np.ndarray:
        """Right verdicts but for so many false positives and misses, at random places."""
        generator = np.random.default_rng(seed)
        verdicts = self.labels.copy()
        verdicts[generator.permutation(np.flatnonzero(self.labels == 0))[:errors]] = 1
        verdicts[generator.permutation(np.flatnonzero(self.labels == 1))[:misses]] = 0
        return verdicts

    def record(
        self, name, verdicts, *, judge=None, account="alice", at="2026-01-01T00:00:00+00:00",
        version="0123456789ab", **other_labels,
    ) -> ScoredRecord:  # fmt: skip
        """A record as the submissions keep it; verdicts on other labels by their names."""
        labels = dict.fromkeys(("success", "side_effect", "repetition"))
        counts = {}
        for label, column in {"success": verdicts, **other_labels}.items():
            scores = judge_scores(column, self.labels, self.tasks, clusters=self.tasks, n_resamples=100)
            counts[label] = [[cell["tp"], cell["fp"]] for cell in scores.pop("by_benchmark").values()]
            labels[label] = {"overall": scores, "by_benchmark": {}, "by_agent": {}}
        return ScoredRecord(
            id=name, submitted_at=at,
            info=JudgeInfo(judge=judge or name, account=account, kind="Custom", inputs="tree", model="m",
                           authors="A", test_labels_used=False),
            file_sha256=hashlib.sha256(name.encode()).hexdigest(),
            report={"label_version": version, "labels": labels}, counts_by_task=counts,
        )  # fmt: skip


@pytest.fixture(scope="session")
def judged() -> Judged:
    return Judged()
