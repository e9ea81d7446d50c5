import re
from itertools import pairwise

import pytest

from arb.core.vocabulary import metric_name
from leaderboard.board.history import board_history
from space.pages.leaderboard.history import (
    DATE_WIDTH,
    LEFT,
    MOST_CHANGES,
    MOST_LINES,
    RIGHT,
    WIDTH,
    view_history,
)
from space.pages.leaderboard.query import LeaderboardQuery
from space.pages.leaderboard.summary import sentences
from space.web.frame import render
from tests.space.conftest import shown_text
from tests.support.boards import board, cell, label, row, second_annotator


def judge(name: str, day: str, precision: int, **changes):
    found = label(cell(precision, 100 - precision, 20, 50), (1, 1, 1))
    return row(name, found, id=f"{name} {day}", date=f"{day}T00:00:00+00:00", **changes)


def view(*rows):
    return view_history(board_history(board(*rows), "success"))


def told(*rows) -> str:
    """What the section on the history says."""
    return shown_text(
        render(
            "leaderboard/history.html", ranks=view(*rows), choice=LeaderboardQuery(), metric_name=metric_name
        )
    )


def test_a_board_without_ranked_judges_says_when_its_history_begins():
    assert "No judge has a rank for this label yet" in told()
    assert (view()["lines"], view()["changes"]) == ([], [])


def test_one_day_is_a_sentence_and_no_plot():
    rows = judge("A", "2025-04-11", 80), judge("B", "2025-04-11", 70)
    assert "All ranks date from 11 Apr 2025, when the board started with 2 judges." in told(*rows)
    assert (view(*rows)["lines"], view(*rows)["changes"]) == ([], [])


def test_the_sentence_counts_the_days_and_the_leaders():
    rows = [judge("A", "2025-04-11", 60), judge("B", "2026-01-02", 70), judge("C", "2026-01-03", 50)]
    # A led until January, then B
    assert (
        "started on 11 Apr 2025 with 1 judge and has changed on 2 days since then. 2 of today's judges"
    ) in told(*rows)


def test_lines_run_from_the_first_day_of_a_judge_to_the_last_day_of_all():
    found = view(judge("A", "2025-04-11", 60), judge("B", "2026-01-02", 70))
    first, second = found["lines"]
    assert (first["row"].judge, second["row"].judge) == ("B", "A")
    assert first["start"][0] > second["start"][0] == LEFT
    assert {line["end"][0] for line in found["lines"]} == {WIDTH - RIGHT}
    assert first["end"][1] < second["end"][1]
    assert second["start"][1] == first["end"][1]  # where A stood, B stands now
    assert second["hover"] == "A (tree): rank 1 from 11 Apr 2025, 2 from 2 Jan 2026"


def test_changes_are_told_newest_first_and_the_first_day_is_no_change():
    rows = [judge("A", "2025-04-11", 60), judge("B", "2026-01-02", 70), judge("A", "2026-01-03", 90)]
    rows.append(judge("A", "2026-01-04", 95))
    assert (
        "4 Jan 2026 A (tree) has a better submission and stays at rank 1. "
        "3 Jan 2026 A (tree) moved from rank 2 to 1 of 2. 2 Jan 2026 B (tree) entered at rank 1 of 2."
    ) in told(*rows)


def test_a_long_history_shows_the_first_places_and_the_latest_changes():
    rows = [judge(f"J{n}", f"2026-01-{n + 1:02}", 40 + n) for n in range(25)]
    found = view(*rows)
    assert len(found["lines"]) == MOST_LINES
    assert [line["row"].judge for line in found["lines"]] == [f"J{24 - n}" for n in range(MOST_LINES)]
    assert len(found["changes"]) == MOST_CHANGES
    assert found["more_changes"] == 24 - MOST_CHANGES
    for line in found["lines"]:
        across = [float(x) for x in re.findall(r"(?:M|H|,[\d.]+ )([\d.]+)", line["path"])]
        assert across == sorted(across)  # no line runs back in time
        numbers = [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", line["path"])]
        assert min(numbers) >= 0
        assert max(numbers) <= max(found["width"], found["height"])


@pytest.mark.parametrize("days", [2, 3, 9, 60, 300])
def test_dates_stand_clear_of_each_other_and_days_in_their_order(days):
    rows = [
        judge(f"J{n}", f"{2024 + n // 336}-{n // 28 % 12 + 1:02}-{n % 28 + 1:02}", 30) for n in range(days)
    ]
    places = [x for x, _ in view(*rows)["days"]]
    assert places == sorted(places)
    assert (places[0], places[-1]) == (LEFT, WIDTH - RIGHT)
    assert all(b - a >= DATE_WIDTH for a, b in pairwise(places))


def ranked(name: str, precision: int, rank, apart=(), **changes):
    """A judge with this precision of 100 called, 150 positives, and a small benchmark."""
    overall = cell(precision, 100 - precision, 150 - precision, 50)
    return row(
        name,
        label(
            overall, rank, apart=list(apart), assistantbench=cell(2, 1, 3, 40), webarena=cell(30, 2, 20, 60)
        ),
        **changes,
    )


def test_the_pairs_and_the_range_that_most_judges_have_are_told():
    found = sentences(
        board(
            ranked("Alpha", 90, (1, 1, 1), ("Beta", "Gamma", "Delta")),
            ranked("Beta", 80, (2, 2, 4), ("Alpha",)),
            ranked("Gamma", 77, (3, 2, 4), ("Alpha",)), ranked("Delta", 74, (4, 2, 4), ("Alpha",), inputs=""),
        ),
        "success",
    )  # fmt: skip
    # 4 judges: 4 * 3 / 2 = 6 pairs
    assert found[:2] == [
        "The test set separates 3 of the 6 pairs of judges.",
        "3 judges, Beta (tree) among them, could each have any rank from 2 to 4.",
    ]


def test_judges_that_are_all_separated_are_said_to_be():
    judges = [ranked("A", 90, (1, 1, 1), "B"), ranked("B", 50, (2, 2, 2), "A")]
    assert sentences(board(*judges), "success")[0] == "The test set separates the two judges from each other."
    judges = [ranked("A", 90, (1, 1, 3)), ranked("B", 89, (2, 1, 3)), ranked("C", 88, (3, 1, 3))]
    assert sentences(board(*judges), "success")[0] == "The test set separates no two of the 3 judges."


def test_a_pair_is_counted_although_its_ranges_overlap():
    judges = [ranked("A", 90, (1, 1, 2), "C"), ranked("B", 80, (2, 1, 3)), ranked("C", 70, (3, 2, 3), "A")]
    found = sentences(board(*judges), "success")
    assert found[0] == "The test set separates 1 of the 3 pairs of judges."
    assert "could each have any rank" not in found[1]


def test_the_first_judge_is_told_in_words_of_its_figures():
    # 90 of 100 called are; 90 of 150 found: 40 of 100 missed
    found = sentences(board(ranked("A", 90, (1, 1, 1))), "success")
    assert found[0] == (
        "A (tree) leads on success: when it says yes, it is right about 90 of 100 trajectories, and it "
        "misses 40 of 100 positives."
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [("side_effect", "leads on side effect"), ("repetition", "leads on repetition")],
)
def test_the_sentence_names_the_target(name, words):
    looping = row("A", None, labels={name: label(cell(90, 10, 60, 50), (1, 1, 1))})
    assert f"{words}: when it says yes, it is right about 90 of 100" in sentences(board(looping), name)[0]


def test_the_benchmark_with_the_fewest_positives_is_named_with_its_counts():
    found = sentences(board(ranked("A", 90, (1, 1, 1))), "success")
    # 2 + 3 positives in 2 + 1 + 3 + 40 runs
    assert "AssistantBench has only 5 positives among 46 labels, so its percentages are coarse" in found[1]


def test_the_human_reference_is_told_with_its_runs():
    found = sentences(board(ranked("A", 90, (1, 1, 1)), second_annotator()), "success")
    # 11/13 on 11 + 2 + 2 + 91 runs
    assert "on 106 trajectories, reaches a precision of 84.6 %: even people do not" in found[-1]


def test_self_reported_judges_are_not_told_among_the_ranked():
    told = sentences(
        board(
            ranked("A", 90, (1, 1, 1)),
            ranked("Boast", 99, None, provenance="self-reported"),
        ),
        "success",
    )
    assert not any("Boast" in sentence for sentence in told)


def test_an_undefined_recall_is_not_put_into_words():
    nothing_to_find = row("A", label(cell(0, 10, 0, 50), (1, 1, 1)))
    assert not any("misses" in sentence for sentence in sentences(board(nothing_to_find), "success"))
