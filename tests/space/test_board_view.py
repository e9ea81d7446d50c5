from math import nextafter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from space.board_figures import FEW, figure_cell
from space.board_view import FIGURES, Choice, kinds_of, view_board
from tests.space.boards import board, cell, label, row, second_annotator


def judges(found) -> list[str]:
    return [line.row.judge for line in found.rows]


@pytest.fixture
def three():
    """Precision 90, 75 and 60 %, of three kinds."""
    return board(
        row(
            "Alpha", label(cell(90, 10, 30, 170, ci=[0.8, 0.95]), (1, 1, 1)), kind="LLM judge", model="GPT-X"
        ),
        row("Beta", label(cell(75, 25, 45, 155, ci=[0.6, 0.85]), (2, 2, 3)), "published", kind="Rule-based"),
        row("Gamma", label(cell(60, 40, 60, 140, ci=[0.48, 0.7]), (3, 2, 3)), kind="Ensemble", account="eve"),
    )


# Which rows


def test_rows_come_in_the_boards_order_and_references_apart(three):
    view = view_board(board(second_annotator(), *three.rows[::-1]), Choice())
    assert judges(view) == ["Alpha", "Beta", "Gamma"]
    assert [line.row.judge for line in view.references] == ["Second annotator"]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"kinds": ["Rule-based"]}, ["Beta"]),
        ({"kinds": ["Rule-based", "Ensemble"]}, ["Beta", "Gamma"]),
        ({"kinds": ["Human"]}, []),
        ({"provenances": ["published"]}, ["Beta"]),
        ({"provenances": ["scored"], "kinds": ["Rule-based"]}, []),
        ({"search": "alp"}, ["Alpha"]),
        ({"search": "gpt-x"}, ["Alpha"]),
        ({"search": "  LOVELACE  gamma "}, ["Gamma"]),
        ({"search": "eve"}, ["Gamma"]),
        ({"search": "alpha beta"}, []),
        ({"search": "[(*"}, []),
        ({"search": " "}, ["Alpha", "Beta", "Gamma"]),
    ],
)
def test_filters_and_search_keep_the_rows_that_fit_all_of_them(three, choice, expected):
    assert judges(view_board(three, Choice(**choice))) == expected


def test_reference_rows_stay_whatever_is_filtered(three):
    view = view_board(board(*three.rows, second_annotator()), Choice(search="nobody", kinds=["Ensemble"]))
    assert view.rows == ()
    assert len(view.references) == 1


def test_a_judge_shows_its_best_submission_and_all_of_them_on_demand():
    best = row("Twice", label(cell(9, 1, 1, 9), (1, 1, 1)), id="a")
    other = row("Twice", label(cell(5, 5, 5, 5), best=False), id="b")
    assert [line.row.id for line in view_board(board(best, other), Choice()).rows] == ["a"]
    every = view_board(board(best, other), Choice(every_submission=True))
    assert [line.row.id for line in every.rows] == ["a", "b"]


def test_a_row_without_the_chosen_label_is_not_shown(three):
    assert judges(view_board(three, Choice(label="repetition"))) == []
    looping = row("Delta", None, labels={"repetition": label(cell(3, 1, 1, 5), (1, 1, 1))})
    assert judges(view_board(board(*three.rows, looping), Choice(label="repetition"))) == ["Delta"]
    assert "Delta" not in judges(view_board(board(*three.rows, looping), Choice()))


def test_kinds_are_those_of_judges_in_order(three):
    assert kinds_of(board(*three.rows, second_annotator())) == ["Ensemble", "LLM judge", "Rule-based"]


# Which figures


def test_the_chosen_figure_is_the_main_one_and_the_others_stand_beside_it(three):
    precision = view_board(three, Choice()).rows[0]
    assert (precision.main.text, [other.text for other in precision.others]) == ("90.0", ["75.0", "81.8"])
    recall = view_board(three, Choice(figure="recall"))
    assert recall.figure_title == "Recall"
    assert recall.other_figures == ("Precision", "F1")
    assert recall.rows[0].main.text == "75.0"  # 90 of 120
    assert judges(recall) == ["Alpha", "Beta", "Gamma"]  # ranked by precision whatever is shown
    assert len(view_board(three, Choice(figure="npv")).other_figures) == 3


def test_cells_sort_by_numbers_and_say_their_counts(three):
    main = view_board(three, Choice()).rows[0].main
    assert main.value == 0.9
    assert main.hover == "90 of 100 called successful are; 120 positives in 300 runs"


def test_benchmarks_are_columns_in_the_official_order_then_a_suites_own():
    found = {"workarena__": cell(8, 2, 1, 1), "webarena": cell(1, 3, 1, 1), "my_shop": cell(0, 0, 1, 1)}
    view = view_board(board(row("A", label(cell(9, 5, 3, 3), (1, 1, 1), **found))), Choice())
    assert view.benchmarks == (("WA", "WebArena"), ("Wk++", "WorkArena++"), ("my+shop", "my+shop"))
    assert [found.text for found in view.rows[0].benchmarks] == ["25.0", "80.0", "–"]


def test_a_figure_that_is_undefined_is_a_dash_without_a_number():
    never = cell(0, 0, 10, 20)
    found = figure_cell(never, "precision", "success")
    assert (found.text, found.value) == ("–", None)
    assert found.hover == "0 of 0 called successful are; 10 positives in 30 runs"
    assert figure_cell(None, "precision", "success").hover == "not known"


def test_hover_tells_missing_verdicts_notes_and_unknown_counts():
    assert figure_cell(cell(6, 2, 4, 18, 5), "precision", "success").hover.endswith("; 5 without a verdict")
    noted = cell(6, 2, 4, 18, note="several counts fit")
    assert figure_cell(noted, "precision", "repetition").hover == (
        "6 of 8 said to repeat are; 10 positives in 30 runs; several counts fit"
    )
    unknown = {**cell(6, 2, 4, 18), "tp": None, "fp": None, "fn": None, "tn": None}
    assert figure_cell(unknown, "precision", "success").hover == "10 positives in 30 runs; counts not known"


@pytest.mark.parametrize(
    ("figure", "counts"),
    [
        ("precision", (1, FEW - 2, 50, 50)),  # 19 called
        ("recall", (1, 50, FEW - 2, 50)),  # 19 positives
        ("f1", (1, FEW - 2, 50, 50)),
        ("f1", (1, 50, FEW - 2, 50)),
        ("kappa", (1, 50, FEW - 2, 50)),
        ("kappa", (50, 1, 50, FEW - 2)),  # 19 negatives
        ("npv", (50, 50, 1, FEW - 2)),  # 19 called unsuccessful
        ("tnr", (50, 1, 50, FEW - 2)),
        ("accuracy", (5, 5, 5, 4)),  # 19 in all
    ],
)
def test_a_cell_is_marked_when_fewer_runs_than_twenty_stand_behind_its_figure(figure, counts):
    assert figure_cell(cell(*counts), figure, "success").is_few
    enough = tuple(count + (count == FEW - 2) + (figure == "accuracy") for count in counts)
    assert not figure_cell(cell(*enough), figure, "success").is_few


def test_a_printed_figure_without_counts_rests_on_the_positives():
    unknown = {**cell(6, 2, 4, 18), "tp": None, "fp": None, "fn": None, "tn": None}
    assert figure_cell(unknown, "precision", "success").is_few  # 10 positives
    assert not figure_cell({**unknown, "positives": FEW}, "f1", "success").is_few


@pytest.mark.parametrize("figure", FIGURES)
def test_every_figure_can_be_shown_for_every_row(three, figure):
    view = view_board(board(*three.rows, second_annotator()), Choice(figure=figure))
    assert all(line.main.value is not None for line in (*view.rows, *view.references))


# Ranks


@pytest.mark.parametrize(
    ("rank", "text", "hover"),
    [
        ((1, 1, 1), "1", "place 1 by precision, separated from its neighbours"),
        ((3, 2, 9), "2–9", "place 3 by precision; a tie for any place from 2 to 9"),
    ],
)
def test_a_rank_is_a_place_or_the_range_that_is_left_open(rank, text, hover):
    (line,) = view_board(board(row("A", label(cell(9, 1, 1, 9), rank))), Choice()).rows
    assert (line.rank_text, line.rank_value, line.rank_hover) == (text, rank[0], hover)


def test_a_self_reported_row_has_no_rank_and_says_why():
    (line,) = view_board(board(row("A", label(cell(9, 1, 1, 9)), "self-reported")), Choice()).rows
    assert (line.rank_text, line.rank_value) == ("", None)
    assert "not ranked" in line.rank_hover


# The axis


def test_the_axis_is_in_whole_tens_and_holds_every_interval(three):
    view = view_board(three, Choice())  # 48 to 95 %
    assert view.axis == (0.4, 1.0)
    first = view.rows[0].whisker
    # 0.8 to 0.95 on 0.4 to 1.0: from 2/3, a quarter wide, the dot at 5/6
    assert (first.left, first.width, first.dot) == (66.67, 25.0, 83.33)
    assert not first.is_off_axis


def test_the_human_reference_is_a_line_through_all_rows(three):
    assert view_board(three, Choice()).human is None
    # 11/13 = 0.846 on 0.4 to 1.0
    assert view_board(board(*three.rows, second_annotator()), Choice()).human == 74.36


def test_a_reference_outside_the_axis_is_marked_and_does_not_stretch_it(three):
    always = row("Always", label(cell(30, 270, 0, 0, ci=[0.05, 0.15]), best=False), "reference")
    view = view_board(board(*three.rows, always), Choice())
    assert view.axis == (0.4, 1.0)
    assert view.references[0].whisker.is_off_axis
    assert (view.references[0].whisker.dot, view.references[0].whisker.width) == (0.0, 0.0)


def test_a_board_without_rows_has_the_whole_axis():
    view = view_board(board(), Choice())
    assert (view.axis, view.rows, view.human) == ((0.0, 1.0), (), None)


@pytest.mark.parametrize(("value", "axis"), [(0.0, (0.0, 0.1)), (1.0, (0.9, 1.0)), (0.5, (0.4, 0.5))])
def test_one_value_has_an_axis_of_some_width_within_the_range(value, axis):
    only = row("A", label(cell(9, 1, 1, 9, ci=[value, value], precision=value), (1, 1, 1)))
    assert view_board(board(only), Choice()).axis == axis


def test_a_value_without_an_interval_is_a_dot():
    (line,) = view_board(board(row("A", label(cell(9, 1, 1, 9), (1, 1, 1)))), Choice(figure="kappa")).rows
    assert (line.whisker.width, line.whisker.is_off_axis) == (0.0, False)


def test_a_kappa_below_zero_is_on_the_axis():
    (line,) = view_board(board(row("A", label(cell(1, 9, 9, 1), (1, 1, 1)))), Choice(figure="kappa")).rows
    assert line.main.value == pytest.approx(-0.8)
    assert not line.whisker.is_off_axis


@given(st.lists(st.tuples(*[st.floats(0, 1)] * 3).map(sorted), min_size=1, max_size=5))
def test_any_intervals_lie_on_the_axis(intervals):
    rows = [
        row(str(n), label(cell(9, 1, 1, 9, ci=[low, high], precision=value), (n + 1, 1, 9)))
        for n, (low, value, high) in enumerate(intervals)
    ]
    view = view_board(board(*rows), Choice())
    low, high = view.axis
    assert 0 <= low < high <= 1
    for line in view.rows:
        whisker = line.whisker
        assert not whisker.is_off_axis
        assert 0 <= whisker.left <= whisker.dot + 0.01
        assert whisker.dot <= whisker.left + whisker.width + 0.02 <= 100.03


@pytest.mark.parametrize("tenth", [n / 10 for n in range(1, 10)])
@pytest.mark.parametrize("towards", [0, 1])
def test_a_value_a_hair_beside_a_tenth_is_not_off_the_axis(tenth, towards):
    # nextafter(0.9, 0) * 10 is 9.0 exactly, so that the axis begins above the value.
    values = (nextafter(tenth, towards), tenth + (0.05 if towards == 0 else -0.05))
    rows = [row(str(v), label(cell(9, 1, 1, 9, precision=v), (1, 1, 1))) for v in values]
    assert not any(line.whisker.is_off_axis for line in view_board(board(*rows), Choice()).rows)
