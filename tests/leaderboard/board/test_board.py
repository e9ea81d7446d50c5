from dataclasses import replace

import numpy as np
import pytest

from leaderboard.board.board import STRICT, Board, make_board
from leaderboard.board.ranks import DESIGN_EFFECTS, Rank
from leaderboard.board.rows import VerdictScores
from leaderboard.judge_precision.confusion import figures
from leaderboard.judge_precision.intervals import approximate_interval
from leaderboard.paper.audit import Counts, audit_row
from leaderboard.paper.published import (
    PublishedCell,
    load_published_rows,
    published_cell,
    published_label,
    read_published_files,
)
from leaderboard.report import score_report

CELL = {*figures(0, 0, 0, 0), "precision_ci", "recall_ci", "f1_ci", "audit", "note"}


def cell(counts=None, bounds=None, **others) -> PublishedCell:
    values = {"n": 20, "positives": 10, "precision": 0.8, "recall": None, "f1": None, "status": "several"}
    values |= {"no_verdict": 0, "fits": 2, "note": ""} | others
    return PublishedCell(counts=counts, bounds=bounds or (counts and (counts, counts)), **values)


@pytest.fixture(scope="module")
def published():
    return {row.row_id: row for row in load_published_rows()}


def test_known_counts_give_every_figure_and_intervals():
    found = published_cell(cell(Counts(8, 2, 2, 8), status="unique"))
    assert set(found) == CELL
    assert [found[name] for name in ("precision", "recall", "tn", "accuracy", "kappa")] == [
        0.8,
        0.8,
        8,
        0.8,
        0.6,
    ]
    assert found["precision_ci"] == approximate_interval(8, 10, DESIGN_EFFECTS["precision"])
    assert found["recall_ci"] == approximate_interval(8, 10, DESIGN_EFFECTS["recall"])
    # F1 = 2 J / (1 + J) with J = 8 / 12
    low, high = approximate_interval(8, 12, DESIGN_EFFECTS["f1"])
    assert found["f1_ci"] == [2 * low / (1 + low), 2 * high / (1 + high)]
    assert found["audit"] == "unique"


def test_a_missing_judgment_lowers_the_coverage():
    found = published_cell(cell(Counts(8, 2, 1, 8), no_verdict=1))
    assert (found["n"], found["no_verdict"], found["coverage"]) == (19, 1, 0.95)


def test_unknown_counts_are_null_and_the_printed_figures_stand():
    found = published_cell(cell(bounds=(Counts(4, 1, 2, 7), Counts(8, 2, 6, 9))))
    assert set(found) == CELL
    assert (found["precision"], found["recall"], found["n"], found["positives"]) == (0.8, None, 20, 10)
    counted = ("tp", "fp", "fn", "tn", "accuracy", "npv", "tnr", "fpr", "balanced_accuracy", "kappa")
    assert [found[name] for name in counted] == [None] * 10
    assert found["coverage"] is None


def test_where_nothing_fits_there_is_no_interval():
    found = published_cell(cell(status="none", fits=0))
    assert (found["precision_ci"], found["recall_ci"], found["f1_ci"]) == (None, None, None)


def test_an_undefined_precision_has_no_interval():
    found = published_cell(cell(Counts(0, 0, 5, 5)))
    assert (found["precision"], found["precision_ci"]) == (None, None)
    assert found["recall_ci"][0] == 0.0


def test_several_counts_give_the_hull_of_all_their_intervals(published):
    """Against every set of counts that the audit leaves, one by one."""
    files = read_published_files()
    checked = 0
    for row_id, printed in files.figures.items():
        for label, audit in audit_row(printed, files.marginals).items():
            for name, result in audit.cells.items():
                row = published[row_id].labels[label]
                shown = row.overall if name == "overall" else row.by_benchmark[name]
                if shown is None or shown.status in ("reported", "exact") or len(result.possible) < 2:
                    continue
                found = published_cell(shown)
                for figure, other in (("precision", "fp"), ("recall", "fn")):
                    samples = [(c.tp, c.tp + getattr(c, other)) for c in result.possible]
                    ends = [approximate_interval(*sample, DESIGN_EFFECTS[figure]) for sample in samples]
                    expected = (
                        [min(e[0] for e in ends), max(e[1] for e in ends)] if None not in ends else None
                    )
                    assert found[f"{figure}_ci"] == pytest.approx(expected), (row_id, label, name, figure)
                checked += 1
    assert checked > 20


def test_a_label_without_verdicts_is_null(published):
    assert published_label(None) is None
    assert published_label(published["paper/aer-c"].labels["side_effect"]) is None


def test_a_label_leaves_out_benchmarks_of_which_nothing_is_known(published):
    found = published_label(published["reference/second-annotator"].labels["success"])
    assert set(found["by_benchmark"]) == {"webarena", "workarena++"}
    assert (found["rank"], found["best"], found["by_agent"]) == (None, False, {})


def test_rows_say_how_their_figures_came_about(judged, published):
    mine = judged.record("mine", judged.verdicts(3))
    board = make_board("small", [mine], published.values(), "0123456789ab")
    rows = {row.id: row for row in board.rows}
    described = {
        name: (row.protocol, row.split, row.n, row.evidence)
        for name in ("mine", "paper/aer-c", "reported/72b-gui-judge", "reported/world-state-model-7b")
        if (row := rows[name])
    }
    mine = rows["mine"].labels["success"]["overall"]["n"]
    assert described["mine"] == ("strict: no verdict counts as no", "test", mine, "verdicts")
    assert described["paper/aer-c"] == (
        "first annotator; a trajectory without a judgment is left out", "test", 1106, "unique counts",
    )  # fmt: skip
    assert described["reported/72b-gui-judge"] == ("", "", None, "reported")
    assert described["reported/world-state-model-7b"][1:] == ("test (inferred)", 1106, "unique counts")
    assert rows["reported/72b-gui-judge"].basis == (
        "metrics as reported; nothing is derived from them; split not named; protocol not named"
    )
    assert rows["mine"].basis == (
        f"computed from verdicts; test split; {mine} trajectories; strict: no verdict counts as no"
    )
    assert rows["paper/aer-c"].note == "Existing judge in the paper"
    assert rows["reported/hunter-seeker"].test_labels_used is True


@pytest.mark.parametrize(
    ("changes", "ranked"),
    [
        ({}, True),
        ({"split": "test (inferred)"}, False),
        ({"split": ""}, False),
        ({"protocol": ""}, False),
        ({"test_labels_used": True}, False),
    ],
)
def test_a_published_row_is_ranked_only_on_test_by_a_known_protocol_and_untuned(published, changes, ranked):
    row = replace(published["paper/aer-c"], **changes)
    (shown,) = make_board("small", [], [row], "0123456789ab").rows
    assert (shown.labels["success"]["rank"] is not None) == shown.labels["success"]["best"] == ranked


@pytest.mark.parametrize(
    ("row_id", "changes", "ranked"),
    [
        ("reported/webjudge-7b", {}, True),
        ("reported/webjudge-7b", {"has_verdicts": False}, False),
        ("reported/webjudge-7b", {"split": "test (inferred)"}, False),
        ("reported/agent-judge-structural", {}, False),
    ],
)
def test_what_authors_report_is_ranked_only_if_its_verdicts_are_known(published, row_id, changes, ranked):
    row = replace(published[row_id], **changes)
    (shown,) = make_board("small", [], [row], "0123456789ab").rows
    assert (shown.labels["success"]["rank"] is not None) == ranked


def test_a_published_row_with_verdicts_is_scored_and_ranked_like_a_submission(judged, published):
    """The same verdicts give the same cells and the same range of ranks, as a submission and as a row."""
    records = [judged.record(name, judged.verdicts(n), judge=name) for name, n in (("good", 2), ("bad", 12))]
    good, bad = records
    positives = judged.labels.reshape(60, 2).sum(axis=1)  # two runs a task
    by_task = {"success": np.stack([positives, 2 - positives], axis=1).tolist()}
    submitted = make_board("small", records, (), "0123456789ab", labels_by_task=by_task)
    scores = {"paper/aer-c": VerdictScores(good.report["labels"], good.counts_by_task)}
    mixed = make_board("small", [bad], [published["paper/aer-c"]], "0123456789ab", (), by_task, scores)
    row, twin = mixed.row("paper/aer-c"), submitted.row("good")
    assert (row.evidence, row.protocol, row.provenance) == ("verdicts", STRICT, "published")
    assert row.labels["success"] == twin.labels["success"]
    for metric in ("precision", "recall"):
        ranks = mixed.ranks("success", metric), submitted.ranks("success", metric)
        places = [
            {name: (rank.place, rank.low, rank.high, rank.n_separated) for name, rank in found.items()}
            for found in ranks
        ]
        assert places[0] == {"paper/aer-c": places[1]["good"], "bad": places[1]["bad"]}


@pytest.mark.shared
@pytest.mark.labels
def test_the_design_effects_are_those_of_the_real_verdicts(real_verdicts, official_test_labels):
    found = {"precision": [], "recall": [], "f1": []}
    for judge in ("aer-c", "nnetnav", "rule-based"):
        overall = score_report(real_verdicts(judge), official_test_labels)["labels"]["success"]["overall"]
        tp, fp, fn = overall["tp"], overall["fp"], overall["fn"]
        share = [2 * end / (1 + end) for end in approximate_interval(tp, tp + fp + fn, 1.0)]
        rows = {
            "precision": approximate_interval(tp, tp + fp, 1.0),
            "recall": approximate_interval(tp, tp + fn, 1.0),
        }
        for figure, (low, high) in {**rows, "f1": share}.items():
            tasks_low, tasks_high = overall[f"{figure}_ci"]
            # variances are as squared widths
            found[figure].append(((tasks_high - tasks_low) / (high - low)) ** 2)
    for figure, effects in found.items():
        assert sum(effects) / 3 == pytest.approx(DESIGN_EFFECTS[figure], abs=0.05), figure
        assert all(1.4 < effect < 2.3 for effect in effects)


def board_of(*records) -> Board:
    return make_board("small", records, (), records[0].report["label_version"])


def order(board, label="success", metric="precision"):
    return [row.id for row in board.ranking(label, metric)]


def rank_of(board, name, label="success"):
    return next(row.labels[label]["rank"] for row in board.rows if row.id == name)


# -- order


def test_rows_come_by_precision_first(judged):
    records = [
        judged.record("worse", judged.verdicts(9)),
        judged.record("best", judged.verdicts(1, 20)),
        judged.record("mid", judged.verdicts(5)),
    ]
    assert order(board_of(*records)) == ["best", "mid", "worse"]


def test_equal_precision_is_settled_by_recall(judged):
    # 10 hits and 2 false positives, and 20 and 4: 5/6 both
    positives = int(judged.labels.sum())
    records = [
        judged.record("a", judged.verdicts(2, positives - 10)),
        judged.record("b", judged.verdicts(4, positives - 20)),
    ]
    assert order(board_of(*records)) == ["b", "a"]


def test_equal_figures_are_settled_by_the_earlier_submission(judged):
    same = judged.verdicts(5, 5)
    later = judged.record("a", same, judge="one", at="2026-01-02T00:00:00+00:00")
    earlier = judged.record("b", same, judge="two", at="2026-01-01T23:59:59+00:00")
    assert order(board_of(later, earlier)) == ["b", "a"]


def test_a_judge_that_never_says_yes_comes_last_and_has_no_rank(judged):
    board = board_of(
        judged.record("silent", np.zeros_like(judged.labels)), judged.record("wrong", 1 - judged.labels)
    )
    assert order(board) == ["wrong", "silent"]
    assert rank_of(board, "silent") is None
    assert rank_of(board, "wrong")["place"] == 1


def test_each_label_has_its_own_order_and_only_rows_that_have_it(judged):
    first = judged.record("first", judged.verdicts(2), repetition=judged.verdicts(8))
    second = judged.record("second", judged.verdicts(8), repetition=judged.verdicts(2))
    third = judged.record("third", judged.verdicts(20))
    board = board_of(first, second, third)
    assert order(board) == ["first", "second", "third"]
    assert order(board, "repetition") == ["second", "first"]
    assert order(board, "side_effect") == []
    assert [row.id for row in board.rows] == order(board)


# -- one row a judge


def test_a_judge_is_ranked_by_its_best_submission_and_the_others_keep_no_rank(judged):
    records = [judged.record(f"try-{errors}", judged.verdicts(errors), judge="mine") for errors in (9, 2, 5)]
    board = board_of(*records, judged.record("other", judged.verdicts(4), judge="other"))
    best = {row.id: row.labels["success"]["best"] for row in board.rows}
    assert best == {"try-2": True, "other": True, "try-5": False, "try-9": False}
    assert rank_of(board, "try-2")["place"] == 1
    assert rank_of(board, "other")["place"] == 2
    assert rank_of(board, "try-5") is None


def test_the_best_submission_is_found_for_each_label(judged):
    early = judged.record("early", judged.verdicts(2), judge="mine", repetition=judged.verdicts(9))
    late = judged.record("late", judged.verdicts(9), judge="mine", repetition=judged.verdicts(2))
    board = board_of(early, late)
    best = {
        (row.id, label): row.labels[label]["best"]
        for row in board.rows
        for label in ("success", "repetition")
    }
    assert best == {
        ("early", "success"): True, ("late", "success"): False,
        ("early", "repetition"): False, ("late", "repetition"): True,
    }  # fmt: skip


def test_the_same_name_in_two_accounts_is_two_judges(judged):
    board = board_of(
        judged.record("a", judged.verdicts(3), judge="J", account="alice"),
        judged.record("b", judged.verdicts(6), judge="J", account="bob"),
    )
    assert [row.labels["success"]["best"] for row in board.rows] == [True, True]
    assert [row.attempts for row in board.rows] == [1, 1]


def test_attempts_count_the_submissions_of_a_judge_beside_each_row(judged):
    records = [judged.record(f"try-{errors}", judged.verdicts(errors), judge="mine") for errors in (9, 2, 5)]
    board = board_of(*records, judged.record("other", judged.verdicts(4)))
    assert {row.id: row.attempts for row in board.rows} == {"try-2": 3, "try-5": 3, "try-9": 3, "other": 1}


def test_records_of_another_label_version_are_left_out(judged):
    current, stale = (
        judged.record("current", judged.verdicts(3)),
        judged.record("stale", judged.verdicts(1), version="ffffffffffff"),
    )
    assert order(board_of(current, stale)) == ["current"]
    assert board_of(current, stale).to_bytes() == board_of(current).to_bytes()


# -- ranks by other metrics


def test_each_metric_ranks_by_itself(judged):
    careful = judged.record("careful", judged.verdicts(0, 30))  # precision 1, few hits
    eager = judged.record("eager", judged.verdicts(20))  # every hit, 20 false alarms
    board = board_of(careful, eager)
    for metric in ("precision", "tnr", "fpr"):
        assert order(board, metric=metric)[0] == "careful", metric
        assert board.ranks("success", metric)["careful"].place == 1
    for metric in ("recall", "npv", "accuracy"):
        assert order(board, metric=metric)[0] == "eager", metric
        assert board.ranks("success", metric)["eager"].place == 1
    stored = board.row("careful").score("success")
    assert board.ranks("success")["careful"] == Rank(
        **stored["rank"], n_separated=1, separated_from=tuple(stored["separated_from"])
    )


def test_the_submission_that_stands_for_a_judge_is_the_best_by_the_metric(judged):
    board = board_of(
        judged.record("careful", judged.verdicts(0, 30), judge="mine"),
        judged.record("eager", judged.verdicts(20), judge="mine"),
    )
    assert set(board.ranks("success")) == {"careful"}
    assert set(board.ranks("success", "recall")) == {"eager"}


def test_rows_with_verdicts_are_paired_by_other_metrics_where_labels_are_at_hand(judged):
    # ten false positives more on the same tasks: TNR is never better on any resample
    records = [judged.record(name, judged.verdicts(n, seed=3)) for name, n in (("few", 10), ("more", 20))]
    version = records[0].report["label_version"]
    positives = judged.labels.reshape(60, 2).sum(axis=1)  # two runs a task
    by_task = {"success": np.stack([positives, 2 - positives], axis=1).tolist()}
    paired = make_board("small", records, (), version, labels_by_task=by_task)
    assert paired.ranks("success", "tnr")["more"] == Rank(2, 2, 2, 1, ("few",))
    # by their intervals alone they cannot be told apart
    assert board_of(*records).ranks("success", "tnr")["more"] == Rank(2, 1, 2, 0, ())
    assert paired.to_bytes() == board_of(*records).to_bytes()


def test_a_row_from_a_paper_is_ranked_by_its_verdicts_if_they_are_known(judged):
    # ten false positives more on the same runs: precision is never better on any resample
    few, more = (judged.record(name, judged.verdicts(n, seed=3)) for name, n in (("few", 10), ("more", 20)))
    version = few.report["label_version"]
    printed = replace(
        board_of(more).row("more"), id="paper/more", provenance="published", account="", protocol="printed"
    )
    counted = make_board("small", [few], (), version, [printed])
    known = make_board(
        "small",
        [few],
        (),
        version,
        [printed],
        verdict_scores={"paper/more": VerdictScores({}, more.counts_by_task)},
    )
    both = board_of(few, more)
    found = [board.ranks("success")["few"] for board in (counted, known, both)]
    # By its counts, its error is taken as independent of that of the other judge.
    assert [rank.n_separated for rank in found] == [0, 1, 1]
    assert found[1].separated_from == ("paper/more",)
    assert "counts_by_task" not in repr(known)


def test_a_board_lists_the_rows_that_are_separated_in_its_json_and_reads_them_again(judged):
    records = [judged.record("best", judged.verdicts(0)), judged.record("worst", judged.verdicts(30))]
    board = board_of(*records)
    again = Board.from_bytes(board.to_bytes())
    for row_id, other in (("best", "worst"), ("worst", "best")):
        score = again.row(row_id).score("success")
        assert (score["n_separated"], score["separated_from"]) == (1, [other])
    assert again.ranks("success") == board.ranks("success")


def test_ranks_by_a_hidden_half_do_not_list_who_is_separated(judged):
    records = [judged.record("best", judged.verdicts(0)), judged.record("worst", judged.verdicts(30))]
    hidden = replace(records[0], ranking={"success": records[0].report["labels"]["success"]["overall"]})
    board = board_of(hidden, records[1])
    assert {rank.separated_from for rank in board.ranks("success").values()} == {None}


def test_what_ranks_stand_on_is_in_no_text_of_a_board(judged):
    records = [judged.record("a", judged.verdicts(3)), judged.record("b", judged.verdicts(9))]
    positives = judged.labels.reshape(60, 2).sum(axis=1)  # of each task's two runs
    by_task = [[int(n), 2 - int(n)] for n in positives]
    board = make_board("small", records, (), "0123456789ab", labels_by_task={"success": by_task})
    board.ranks("success", "recall")
    for text in (repr(board), str(vars(board)), board.to_bytes().decode()):
        assert "counts_by_task" not in text
        assert str(by_task[:5])[1:-1] not in text.replace(",", ", ").replace("  ", " ")


def test_a_metric_that_is_undefined_gives_no_rank_and_an_unknown_one_is_refused(judged):
    board = board_of(
        judged.record("silent", np.zeros_like(judged.labels)), judged.record("other", judged.labels)
    )
    assert board.ranks("success")["silent"] is None
    assert board.ranks("success", "recall")["silent"].place == 2  # it finds none: 0, not undefined
    with pytest.raises(ValueError, match="cannot rank by 'auc'; use one of precision, recall"):
        board.ranks("success", "auc")


def test_a_row_ranked_by_a_hidden_half_has_no_rank_by_other_metrics(judged):
    hidden = judged.record("hidden", judged.verdicts(3))
    hidden = replace(
        hidden, counts_by_task={}, ranking={"success": hidden.report["labels"]["success"]["overall"]}
    )
    board = board_of(hidden, judged.record("open", judged.verdicts(9)))
    assert board.ranks("success")["hidden"].place == 1
    assert board.ranks("success", "recall") == {"hidden": None, "open": Rank(1, 1, 1)}


# -- ranks and ties


def test_judges_far_apart_have_a_place_each_and_close_ones_share_a_range(judged):
    records = [
        judged.record("best", judged.verdicts(0)),
        judged.record("a", judged.verdicts(30)),
        judged.record("b", judged.verdicts(31, 3, seed=2)),
    ]
    board = board_of(*records)
    assert rank_of(board, "best") == {"place": 1, "low": 1, "high": 1}
    tied = [row.labels["success"]["rank"] for row in board.rows[1:]]
    assert tied == [{"place": 2, "low": 2, "high": 3}, {"place": 3, "low": 2, "high": 3}]


def test_two_scored_judges_are_separated_on_their_common_tasks(judged):
    # ten false positives more on the same tasks: never better on any resample, though the intervals overlap
    fewer, more = judged.verdicts(10, seed=3), judged.verdicts(20, seed=3)
    board = board_of(judged.record("fewer", fewer), judged.record("more", more))
    low, high = board.rows[1].labels["success"]["overall"]["precision_ci"]
    assert low < board.rows[0].labels["success"]["overall"]["precision_ci"][0] < high
    assert rank_of(board, "more") == {"place": 2, "low": 2, "high": 2}
    # without the counts by task the same two rows cannot be told apart
    unpaired = [
        replace(judged.record(name, v), counts_by_task={}) for name, v in (("fewer", fewer), ("more", more))
    ]
    assert rank_of(board_of(*unpaired), "more") == {"place": 2, "low": 1, "high": 2}
