"""Boards of suites whose targets are not binary: ranked by the main metric, stored with the targets."""

import numpy as np
import pytest

from arb.core.annotation import Annotation
from arb.core.judge_info import JudgeInfo
from arb.core.predictions.table import Predictions
from arb.core.suites.targets import default_targets, parse_targets
from leaderboard.board.board import Board, ScoredRecord, make_board
from leaderboard.labels.labels import make_label_set
from leaderboard.report import counts_by_task, score_report
from tests.support.small_suite import suite_with

RUNS = tuple(f"qa/a/{number:02}" for number in range(60))
TOML = """
labels = "public"
[[targets]]
name = "quality"
type = "ordinal"
values = ["1", "2", "3"]
main = "mae"
metrics = ["mae", "weighted_kappa"]
[[targets]]
name = "kind"
values = ["order", "search", "other"]
metrics = ["accuracy", "macro_f1"]
"""


@pytest.fixture
def labels(tmp_path):
    suite = suite_with(tmp_path, TOML, RUNS)
    kinds = ("order", "search", "other")
    annotations = [
        Annotation(run, "Ada", {"quality": str(number % 3 + 1), "kind": kinds[number % 3]})
        for number, run in enumerate(RUNS)
    ]
    return make_label_set(suite, "test", annotations)


def record(name: str, labels, wrong: int) -> ScoredRecord:
    """Return a judge that answers the first runs with the next grade and kind, and the others rightly."""
    codes = np.array([(number + (number < wrong)) % 3 for number in range(len(RUNS))], dtype=np.int8)
    verdicts = Predictions(RUNS, {"quality": codes, "kind": codes})
    info = JudgeInfo(judge=name, account="ada", kind="Other", inputs="other", authors="A", model="m",
                     test_labels_used=False)  # fmt: skip
    return ScoredRecord(
        id=name, info=info, file_sha256="0" * 64, submitted_at="2026-01-01T00:00:00+00:00",
        report=score_report(verdicts, labels, n_resamples=200),
        counts_by_task=counts_by_task(verdicts, labels),
    )  # fmt: skip


@pytest.fixture
def board(labels) -> Board:
    records = [record(name, labels, wrong) for name, wrong in (("bad", 30), ("good", 1), ("fair", 3))]
    return make_board("small", records, (), labels.version, targets=labels.targets)


def test_judges_are_ranked_by_the_main_metric_of_each_target_in_its_direction(board):
    # A wrong answer to grade 1 or 2 is the next grade, at a distance of 1; to grade 3 it is 1, at 2. Of one,
    # three and 30 wrong ones, the distances add up to 1, 1 + 1 + 2 and 10 * 4, over 60 runs.
    errors = {row.id: row.score("quality")["overall"]["mae"] for row in board.rows}
    assert errors == pytest.approx({"good": 1 / 60, "fair": 4 / 60, "bad": 40 / 60})
    assert [row.id for row in board.rows] == ["good", "fair", "bad"]
    ranks = board.ranks("quality")
    assert [ranks[name].place for name in ("good", "fair", "bad")] == [1, 2, 3]
    assert ranks["bad"].separated_from == ("good", "fair") and ranks["good"].separated_from == ("bad",)
    shares = [row.score("kind")["overall"]["accuracy"] for row in board.ranking("kind")]
    assert shares == pytest.approx([59 / 60, 57 / 60, 30 / 60])
    assert board.ranks("kind", "macro_f1")["bad"].place == 3


def test_a_metric_or_target_that_the_board_lacks_is_refused_by_name(board):
    with pytest.raises(ValueError, match="use one of mae, weighted_kappa"):
        board.ranks("quality", "precision")
    with pytest.raises(ValueError, match="none named 'tone'; use one of quality, kind"):
        board.ranking("tone")
    with pytest.raises(ValueError, match="none named 'success'"):  # AgentRewardBench's are no exception
        board.ranks("success")


def test_the_file_of_a_board_names_its_targets_and_is_read_back(board):
    read = Board.from_bytes(board.to_bytes())
    assert read.to_bytes() == board.to_bytes()
    assert [target.name for target in read.targets] == ["quality", "kind"]
    assert [row.id for row in read.ranking("quality")] == ["good", "fair", "bad"]
    assert b'"targets"' not in make_board("small", (), (), None, targets=default_targets()).to_bytes()


def test_a_binary_target_of_another_name_is_ranked_by_its_own_main_metric(tmp_path):
    (final,) = parse_targets([{"name": "final", "values": ["1", "0"], "positive": ["1"], "main": "recall"}])
    assert make_board("small", (), (), None, targets=(final,)).main.main_metric == "recall"
