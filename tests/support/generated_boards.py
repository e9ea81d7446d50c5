"""Boards of drawn judges, with the labels and the verdicts behind them."""

from dataclasses import dataclass
from zlib import crc32

import numpy as np

from arb.core.ids import Trajectory
from arb.core.judge_info import JudgeInfo
from arb.core.predictions.table import Predictions
from leaderboard.board.board import Board, ScoredRecord, make_board
from leaderboard.board.rows import VerdictScores
from leaderboard.judge_precision.intervals import approximate_interval
from leaderboard.labels.labels import LabelSet
from leaderboard.report import counts_by_task, labels_by_task, score_report
from tests.support.boards import cell, label, row, second_annotator

UNRANKED = {
    "tuned": {"test_labels_used": True},
    "both-splits": {"split": "dev and test"},
    "inferred": {"split": "test (inferred)"},
    "unknown": {"split": "", "protocol": ""},
}
"""Changes of a self-reported row, each with another reason for not being ranked."""


@dataclass(frozen=True)
class DrawnBoard:
    """A board, its test labels, and the verdicts that are known, by row id."""

    board: Board
    labels: LabelSet
    verdicts: dict[str, Predictions]


def drawn_board(seed: int, n_scored: int, n_counted: int, n_known: int, spread: float) -> DrawnBoard:
    """Draw judges on 120 runs of 60 tasks.

    ``n_scored`` judges are submissions, one of them sent twice; ``n_counted`` are from a paper with counts
    only, and ``n_known`` from a paper with known verdicts. With a larger ``spread`` judges differ more. There
    are a row for each reason in `UNRANKED`, a submission that never says yes, and a reference too.
    """
    generator = np.random.default_rng(seed)
    ids = [f"{('webarena', 'workarena')[n % 2]}/agent-{n // 2 % 2}/task.{n // 4}" for n in range(120)]
    trajectories = tuple(Trajectory.of(name, "test") for name in ids)
    truth = generator.integers(0, 2, len(ids)).astype(np.int8)
    once = np.zeros(len(ids), dtype=bool)
    silent = np.full(len(ids), -1, dtype=np.int8)
    primary = {"success": truth, "side_effect": silent, "repetition": silent, "optimality": silent * 0}
    version = f"{crc32(repr((seed, n_scored, n_counted, n_known, spread)).encode()):012x}"
    labels = LabelSet("small", "test", "drawn", version, trajectories, primary, primary, once, primary)

    def judge() -> np.ndarray:
        rates = generator.uniform(0.9 - spread, 0.9), generator.uniform(0.1, 0.1 + spread)
        return (generator.random(len(ids)) < np.where(truth == 1, *rates)).astype(np.int8)

    def scored(name: str, column: np.ndarray, owner: str) -> ScoredRecord:
        verdicts = Predictions(tuple(ids), {"success": column})
        known[name] = verdicts
        info = JudgeInfo(judge=owner, account="ada", kind="Other", inputs="tree", test_labels_used=False)
        return ScoredRecord(
            id=name, info=info, file_sha256="0" * 64, submitted_at=f"2026-01-01T00:00:{len(known):02}",
            report=score_report(verdicts, labels, n_resamples=100),
            counts_by_task=counts_by_task(verdicts, labels),
        )  # fmt: skip

    def printed(name: str, provenance: str, **changes: object):
        column = judge()
        counts = [
            int(((column == said) & (truth == was)).sum()) for said, was in ((1, 1), (1, 0), (0, 1), (0, 0))
        ]
        ends = {"ci": approximate_interval(counts[0], counts[0] + counts[1], 1.6),
                "recall_ci": approximate_interval(counts[0], counts[0] + counts[2], 1.85)}  # fmt: skip
        found = {**label(cell(*counts, **ends), best=False), "intervals": "approximate"}
        given = {
            "id": f"paper/{name}",
            "account": "",
            "protocol": "printed",
            "file_sha256": None,
            "attempts": None,
        }
        return row(name, found, provenance, **{**given, "test_labels_used": None, **changes}), column

    known: dict[str, Predictions] = {}
    records = [scored(f"s{n}", judge(), f"Judge {n}") for n in range(n_scored)]
    records += [scored("again", judge(), "Judge 0"), scored("never", truth * 0, "Never")]
    papers = [printed(f"Paper {n}", "published") for n in range(n_counted + n_known)]
    for paper, column in papers[n_counted:]:
        known[paper.id] = Predictions(tuple(ids), {"success": column})
    reported = [printed(name, "self-reported", **changes)[0] for name, changes in UNRANKED.items()]
    references = [*(paper for paper, _ in papers), *reported, second_annotator()]
    scores = {
        paper.id: VerdictScores({}, counts_by_task(known[paper.id], labels))
        for paper, _ in papers[n_counted:]
    }
    board = make_board(
        "small", records, (), labels.version, references, labels_by_task(labels), verdict_scores=scores
    )
    return DrawnBoard(board, labels, known)
