"""Ranks kept from board to board are those that a board of the same rows has from scratch."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arb.core.judge_info import JudgeInfo
from leaderboard.board import ties
from leaderboard.board.board import BoardCache, ScoredRecord, make_board
from leaderboard.board.history import board_history
from leaderboard.board.ranks import Contender, RankingData, metric_samples
from leaderboard.board.ties import KeptRanks, critical_value
from leaderboard.judge_precision.confusion import figures
from leaderboard.judge_precision.intervals import approximate_interval

VERSION = "0123456789ab"
TASKS = 12


def counts_of(seed: int) -> np.ndarray:
    """TP and FP of a made-up judge on each of twelve tasks of five trajectories."""
    generator = np.random.default_rng(seed)
    right = generator.binomial(3, generator.uniform(0.2, 0.95), TASKS)
    return np.stack([right, generator.binomial(2, generator.uniform(0.05, 0.6), TASKS)], axis=1)


def cell_of(counts: np.ndarray) -> dict:
    tp, fp = (int(total) for total in counts.sum(axis=0))
    found = figures(tp, fp, 3 * TASKS - tp, 2 * TASKS - fp, 0, policy="strict")
    return {**found, "precision_ci": approximate_interval(tp, tp + fp, 1.6), "recall_ci": None, "f1_ci": None}


def record(number: int, version: int, has_verdicts: bool) -> ScoredRecord:
    """The record of a submission; another ``version`` is what a re-scoring makes of it."""
    counts = counts_of(1_000 * version + number)
    label = {"overall": cell_of(counts), "by_benchmark": {}, "by_agent": {}}
    report = {"label_version": VERSION, "labels": {"success": label, "side_effect": None, "repetition": None}}
    info = JudgeInfo(judge=f"Judge {number % 5}", account="ada", kind="LLM judge", test_labels_used=False)
    by_task = {"success": counts} if has_verdicts else {}
    return ScoredRecord(f"{number:012x}", info, "0" * 64, f"2026-01-{1 + number:02d}", report, by_task)


ACTIONS = st.lists(
    st.tuples(st.sampled_from(["add", "withdraw", "score again", "rename"]), st.integers(0, 19)),
    min_size=1, max_size=8,
)  # fmt: skip


def what_follows(board) -> tuple:
    """Beside its bytes: ranks and orders by another metric, columns, history."""
    ids = board.columns.get(getattr, "id").tolist()
    return (
        dict(board.ranks("success", "recall")),
        [row.id for row in board.rows],
        ids,
        board.columns.figures("success", "", "precision").tolist(),
        [[ids[place] for place in board.order("success", metric)] for metric in ("precision", "recall")],
        board_history(board, "success").changes,
    )


@pytest.mark.parametrize("tested_together", [3, 128])
@settings(max_examples=25, deadline=None)
@given(actions=ACTIONS, has_hidden_half=st.booleans())
def test_a_board_made_from_the_one_before_is_one_from_scratch(actions, has_hidden_half, tested_together):
    """After every step, whatever was withdrawn, re-scored or renamed before; bytes, and what follows."""
    by_task = {"success": [[3, 2]] * TASKS}
    records, versions, cache = {}, dict.fromkeys(range(20), 0), BoardCache()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ties, "TESTED_TOGETHER", tested_together)
        patched.setattr(ties, "RESAMPLES", 50)
        patched.setattr(ties, "N_RESAMPLES", 50)
        for number in range(6):
            records[number] = record(number, 0, number % 4 > 0)
        for action, number in actions:
            if action == "withdraw":
                records.pop(number, None)
            elif action == "rename" and number in records:
                before = records[number]
                records[number] = replace(before, info=replace(before.info, judge=f"Renamed {number}"))
            elif action == "score again" or number not in records:
                versions[number] += action == "score again"
                records[number] = record(number, versions[number], number % 4 > 0)
                if has_hidden_half and number % 3:
                    half = {"success": cell_of(counts_of(500 + number))}
                    records[number] = replace(records[number], ranking=half)
            given_now = [records[place] for place in sorted(records)]
            kept = make_board("small", given_now, (), VERSION, (), by_task, cache)
            whole = make_board("small", given_now, (), VERSION, (), by_task)
            assert kept.to_bytes() == whole.to_bytes()
            assert what_follows(kept) == what_follows(whole)


def test_the_bytes_of_a_row_are_those_of_its_values():
    board = make_board("small", [record(n, 0, True) for n in range(8)], (), VERSION, (), None, BoardCache())
    texts = []
    for row in board.rows:
        values = {each.name: getattr(row, each.name) for each in fields(row)}
        texts.append(json.dumps(values, sort_keys=True, separators=(",", ":")))
        assert row.encoded().decode() == texts[-1]
    assert board.encoded_rows().decode() == ",".join(texts)


@pytest.mark.parametrize("n", [2, 3, 16, 128])
def test_the_critical_value_is_that_of_the_studentized_range(n):
    stats = pytest.importorskip("scipy.stats")
    # The grid has steps of 0.01 in the range: 0.007 after the division by sqrt 2, rounded up.
    exact = stats.studentized_range.ppf(0.95, n, np.inf) / np.sqrt(2)
    assert 0 <= critical_value(n) - exact < 0.0075


def test_a_large_board_separates_a_pair_by_its_difference_over_its_standard_error(monkeypatch):
    """Two judges over common tasks among many others: at the critical value of the next power of two."""
    monkeypatch.setattr(ties, "TESTED_TOGETHER", 3)
    counts = {f"{n}": counts_of(n) for n in range(60)}
    counts = {
        name: each for name, each in counts.items() if each[:, 1].any()
    }  # those never wrong do not vary
    assert 33 <= len(counts) <= 64
    by_precision = sorted(counts, key=lambda name: -cell_of(counts[name])["precision"])
    cells = {name: cell_of(counts[name]) for name in by_precision}
    data = RankingData(counts_by_task={name: {"success": counts[name]} for name in counts})
    found = KeptRanks().ranks(cells, "success", "precision", data)
    samples = metric_samples([counts[name] for name in by_precision], n_resamples=ties.RESAMPLES)
    values = [cells[name]["precision"] for name in by_precision]
    errors = [sample - value for sample, value in zip(samples, values, strict=True)]
    assert not np.isnan(errors).any()
    n_above = []
    for place, value in enumerate(values):
        spread = [np.sqrt(np.mean((errors[place] - other) ** 2)) for other in errors]
        apart = np.array(values) - value
        n_above.append(int(np.sum(apart > critical_value(64) * np.array(spread))))
    assert (found[:, 1] - 1).tolist() == n_above
    assert any(n_above)


def test_rows_without_verdicts_are_compared_by_the_ends_of_their_intervals_on_a_large_board(monkeypatch):
    monkeypatch.setattr(ties, "TESTED_TOGETHER", 1)
    # Four rows: c = 2.57. Half widths of 0.05 each: the margin at 95 % is 0.05 sqrt 2 = 0.0707, so that two
    # are separated beyond 2.57 / 1.96 * 0.0707 = 0.0927.
    assert critical_value(4) == pytest.approx(2.57, abs=0.01)
    rows = {f"{value}": {"precision": value, "precision_ci": [value - 0.05, value + 0.05]}
            for value in (0.9, 0.82, 0.8, 0.5)}  # fmt: skip
    found = KeptRanks().ranks(rows, "success", "precision", RankingData())
    assert found.tolist() == [[1, 1, 2], [2, 1, 3], [3, 2, 3], [4, 4, 4]]


def test_a_new_row_of_a_large_board_draws_no_resamples_of_the_others(monkeypatch):
    monkeypatch.setattr(ties, "TESTED_TOGETHER", 3)
    drawn = []
    real = ties.contenders_of

    def counting(cells, *arguments) -> list[Contender]:
        drawn.append([*cells])
        return real(cells, *arguments)

    monkeypatch.setattr(ties, "contenders_of", counting)
    cache, records = BoardCache(), [record(n, 0, True) for n in range(5)]
    make_board("small", records[:4], (), VERSION, (), None, cache)
    drawn.clear()
    make_board("small", records, (), VERSION, (), None, cache)
    assert [names for names in drawn if names] == [[records[4].id]]
