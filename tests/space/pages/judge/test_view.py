import re

import pytest

from leaderboard.costs import RunningCosts
from space.pages.judge.summary import dollars, spread
from space.pages.judge.view import view_judge
from space.pages.leaderboard.query import PROVENANCES
from space.pages.rows import INPUTS
from space.web.cells import describe_marks
from space.web.frame import render
from tests.space.conftest import shown_text
from tests.support.boards import board, cell, label, row, second_annotator


def judged(**changes):
    """Precision 60/80 = 75 %, recall 60/100: by benchmark 40/50 and 20/30, by agent 10/12 (few) and 50/68."""
    success = label(
        cell(60, 20, 40, 480, ci=[0.65, 0.83], recall_ci=[0.5, 0.7], f1_ci=[0.58, 0.75]),
        rank=(2, 1, 3),
        webarena=cell(40, 10, 20, 400, ci=[0.68, 0.9]),
        workarena=cell(20, 10, 20, 480, ci=[0.5, 0.8]),
    )
    success["by_agent"] = {"agent-b": cell(10, 2, 5, 100), "agent-a": cell(50, 18, 35, 780)}
    return row("Alpha", success, **{"id": "a", **changes})


def others():
    ranked = [row(name, label(cell(1, 1, 0, 0), rank=(p, p, p)), id=name) for name, p in (("b", 1), ("c", 3))]
    return [*ranked, second_annotator()]


def lead(view) -> str:
    return shown_text(render("judge/lead.html", view=view)).strip()


def reading(view) -> list[str]:
    return re.findall("<li>(.*?)</li>", render("judge/reading.html", view=view, spread=spread))


@pytest.fixture
def view():
    alpha = judged()
    return view_judge(board(alpha, *others()), alpha, "success")


def test_each_line_knows_the_filter_that_gives_its_errors(view):
    found = [where for _, cells in view.sections for _, _, where in cells]
    assert found == [
        {}, {"benchmark": "webarena"}, {"benchmark": "workarena"}, {"agent": "agent-a"}, {"agent": "agent-b"},
    ]  # fmt: skip


def test_the_human_reference_stands_on_the_same_axis(view):
    # 11/13 = 84.6 %
    axis = view.axes["precision"]
    assert view.human["precision"] == 11 / 13
    assert axis.low <= 0.65 and axis.high >= 11 / 13


def test_printed_metrics_without_counts_say_nothing_of_a_share_of_yes():
    figures = ("tp", "fp", "fn", "tn", "accuracy", "npv", "tnr", "fpr", "balanced_accuracy", "kappa")
    unknown = dict.fromkeys(figures)
    printed = row("Paper", label({**cell(1, 1, 1, 1), **unknown}), "published", id="paper/x", account="")
    view = view_judge(board(printed), printed, "success")
    assert view.yes_shares is None
    assert reading(view) == []


def test_the_submissions_of_the_judge_are_listed_newest_first():
    alpha = judged(date="2026-01-02T00:00:00")
    worse = label(cell(10, 10, 90, 890), best=False)
    later = row("Alpha", worse, id="z", date="2026-02-02T00:00:00")
    foreign = row("Alpha", worse, id="y", account="bob")
    view = view_judge(board(alpha, later, foreign), alpha, "success")
    assert [sent.id for sent in view.submissions] == ["z", "a"]


# Sentences


def test_the_lead_tells_right_found_and_rank(view):
    assert lead(view) == (
        "When it says yes, it is right about 75 of 100 trajectories. It finds 60 of 100 positives. The "
        "data allow ranks 1 to 3 of 3 by precision."
    )


def test_a_judge_that_is_separated_has_one_rank():
    alone = row("Alpha", label(cell(3, 1, 1, 5), rank=(1, 1, 1)), id="a")
    assert "Its rank by precision is 1 of 1." in lead(view_judge(board(alone), alone, "success"))


def test_a_judge_that_never_says_yes_is_told_so():
    never = row("Never", label(cell(0, 0, 10, 90)), "reference", id="reference/never")
    told = lead(view_judge(board(never), never, "success"))
    assert told.startswith("It never says yes, so its precision is undefined. It finds 0 of 100 positives.")
    assert told.endswith("It is not ranked: a reference, not a judge.")


def test_the_reading_tells_how_often_it_says_yes_and_where_it_is_best(view):
    assert reading(view) == [
        # 80 and 100 of 600
        "It says yes to 13.3 % of the trajectories, less often than the experts, who say yes to 16.7 %.",
        "Its precision is highest on WebArena (80.0) and lowest on WorkArena (66.7).",
        # by agent only one rests on enough trajectories: nothing to tell
    ]


def test_missing_verdicts_are_told():
    alpha = row("Alpha", label(cell(5, 5, 5, 5, no_verdict=3)), id="a")
    assert "It gave no verdict on 3 trajectories; that counts as a no." in reading(
        view_judge(board(alpha), alpha, "success")
    )


@pytest.mark.parametrize(
    "amount, text",
    [(0, "$0.00"), (12.345, "$12.35"), (1234.5, "$1,234.50"), (0.0123, "$0.012"), (0.00001, "$1.0e-05")],
)
def test_small_amounts_of_money_are_not_rounded_to_nothing(amount, text):
    assert dollars(amount) in (text, text.replace("12.35", "12.34"))  # a half rounds either way in binary


def test_costs_tell_how_many_rows_they_rest_on(view):
    values = {"row": view.row, "view": view, "costs": RunningCosts(10, 4, 20.0, 1500.0, None, 2.5)}
    values |= {
        "provenances": PROVENANCES,
        "describe_marks": describe_marks,
        "dollars": dollars,
        "inputs": INPUTS,
    }
    text = shown_text(render("judge/facts.html", **values, eval_results="", bibtex="", label_version=None))
    assert (
        "Per 1,000 trajectories$20.00 (from the 4 of 10 rows that state a cost) Per trajectory$0.02" in text
    )
    assert "Input tokens1,500 per trajectory" in text and "Time to a verdict2.5 s (median)" in text
    assert "Output tokens" not in text
