import re
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from space.pages.leaderboard.plot import (
    BASELINE,
    CHARACTER,
    HEIGHT,
    ISO_F1,
    LINE,
    MOST_NAMES,
    WIDTH,
    Label,
    Mark,
    PlotView,
    Point,
    place_names,
    precision_recall_plot,
    to_pixels,
)
from space.web.frame import render
from tests.space.conftest import shown_text, tags_and_attributes
from tests.support.boards import board, cell, label, row, second_annotator

WINDOW = (0.0, 0.0)


def point(x: float, y: float, name: str = "name", order: int = 0, half: float = 0.0) -> Point:
    return Point(x, y, y - half, y + half, name, order)


def text(label: Label | None) -> str:
    return label.text if label else ""


def boxes(labels: list[Label | None]) -> list[tuple[float, float, float, float]]:
    """The rooms that names take: left, top, right, bottom."""
    found = []
    for each in filter(None, labels):
        width = CHARACTER * len(each.text)
        left = each.x - {"start": 0, "middle": width / 2, "end": width}[each.anchor]
        top = each.y - BASELINE * LINE
        found.append((left, top, left + width, top + LINE))
    return found


def test_a_point_alone_is_named_at_its_right():
    (label,) = place_names([point(0.5, 0.5)], WINDOW)
    assert (label.text, label.anchor, label.leader) == ("name", "start", None)
    assert label.x > to_pixels(0.5, 0.5, WINDOW)[0]


def test_a_name_that_would_leave_the_plot_stands_at_the_left():
    (label,) = place_names([point(0.99, 0.5)], WINDOW)
    assert (label.text, label.anchor) == ("name", "end")


def test_points_far_apart_are_all_named_beside_them():
    points = [point(x / 10, x / 10) for x in (1, 4, 7)]
    found = place_names(points, WINDOW)
    assert [(text(label), label.leader) for label in found] == [("name", None)] * 3


def test_points_near_each_other_are_all_named_by_lines_that_lead_to_their_names():
    points = [point(0.5 + n / 50, 0.5 + n / 100, f"judge {n}", half=0.05) for n in range(8)]
    found = place_names(points, WINDOW)
    assert [text(label) for label in found] == [f"judge {n}" for n in range(8)]
    assert any(label.leader for label in found)


def test_in_a_crowd_what_comes_first_by_its_order_is_named():
    crowd = [point(0.5 + n / 1000, 0.5, "a long enough name" * 3, order=2) for n in range(39)]
    named = place_names([*crowd, point(0.51, 0.5, "scored here", order=1)], WINDOW)
    assert text(named[-1]) == "scored here"
    assert sum(bool(label) for label in named) < 30


def test_a_name_does_not_lie_on_the_interval_of_another_point():
    other = point(0.55, 0.5, "", half=0.3)  # stands at the right, all the way up and down
    label, _ = place_names([point(0.5, 0.5, "name"), other], WINDOW)
    assert label.anchor == "end"


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=MOST_NAMES + 20))
def test_names_never_overlap_and_few_are_tried(places):
    points = [point(x, y) for x, y in places]
    found = place_names(points, WINDOW)
    assert len(found) == len(points)
    assert sum(bool(label) for label in found) <= MOST_NAMES
    for (left, top, right, bottom), other in combinations(boxes(found), 2):
        apart = min(right, other[2]) - max(left, other[0]), min(bottom, other[3]) - max(top, other[1])
        assert min(apart) <= 0.2  # places are rounded
    for left, top, right, bottom in boxes(found):
        assert min(left, top) >= -0.1
        assert right <= WIDTH + 0.1
        assert bottom <= HEIGHT + 0.1


def judge(name: str, counts=(60, 40, 60, 140), rank=(1, 1, 3), ci=(0.5, 0.7), **changes):
    return row(name, label(cell(*counts, ci=ci and list(ci)), rank), **changes)


def marks(plot: PlotView) -> dict[str, Mark]:
    return {mark.row_id: mark for mark in plot.marks}


def svg(*rows) -> str:
    return render("leaderboard/precision_recall.html", plot=precision_recall_plot(board(*rows), "success"))


def fractions(x: float, y: float, window: tuple[float, float]) -> tuple[float, float]:
    """Recall and precision of a pixel."""
    left, bottom = window
    return left + x / WIDTH * (1.02 - left), bottom + (1 - y / HEIGHT) * (1 - bottom)


def test_every_ranked_judge_is_a_point_with_its_interval():
    plot = precision_recall_plot(board(judge("A"), judge("B", (75, 25, 45, 155), ci=(0.6, 0.85))), "success")
    found = marks(plot)
    assert set(found) == {"A", "B"}
    # 60 of 120 found, 60 of 100 right; the window begins 8 points left of 50 and 4 below 50
    window = (0.42, 0.46)
    assert fractions(found["A"].x, found["A"].y, window) == pytest.approx((0.5, 0.6), abs=0.001)
    assert fractions(0, found["A"].high, window)[1] == pytest.approx(0.7, abs=0.001)
    assert fractions(0, found["A"].low, window)[1] == pytest.approx(0.5, abs=0.001)
    assert fractions(found["B"].x, found["B"].y, window) == pytest.approx((0.625, 0.75), abs=0.001)


def test_a_ranked_judge_whose_interval_is_not_known_is_drawn_without_a_interval():
    plot = precision_recall_plot(board(judge("A"), judge("B", ci=None)), "success")
    found = marks(plot)["B"]
    assert found.high == found.low
    assert "precision 60.0\n" in found.hover
    assert svg(judge("A"), judge("B", ci=None)).count('class="interval"') == 1


def test_only_the_best_submission_of_a_judge_and_no_constant_reference_is_drawn():
    always = row(
        "Always", label(cell(30, 70, 0, 0, ci=[0.2, 0.4]), best=False), "reference", id="reference/always"
    )
    other = row("A", label(cell(50, 50, 70, 130, ci=[0.4, 0.6]), best=False), id="a2")
    plot = precision_recall_plot(board(judge("A"), other, always, second_annotator()), "success")
    assert set(marks(plot)) == {"A", "reference/second-annotator"}


def test_the_human_reference_has_another_shape_and_leads_nowhere():
    html = svg(judge("A"), second_annotator())
    assert '<a href="/judge?id=A" class="point scored" data-point="A">' in html
    assert '<g class="point reference"' in html
    assert html.count('<path class="mark"') == html.count('<circle class="mark"') == 1


def test_a_judge_with_an_undefined_figure_is_left_out():
    never = row("Never", label(cell(0, 0, 100, 100), None))
    (mark,) = precision_recall_plot(board(judge("A"), never), "success").marks
    assert mark.hover == "A · tree\nprecision 60.0 (50.0 to 70.0)\nrecall 50.0\nF1 54.5"


def test_markup_in_names_is_shown_as_it_was_written(hostile):
    html = svg(judge(hostile, inputs=hostile, id="a"))
    assert hostile in shown_text(html)
    harmless = tags_and_attributes(svg(judge("harmless", inputs="tree", id="a")))
    assert tags_and_attributes(html) <= harmless | {("line", ""), ("line", "class")}


def test_all_points_and_intervals_lie_within_the_plot():
    low = judge("Low", (10, 90, 190, 10), ci=(0.02, 0.18))
    for mark in precision_recall_plot(board(judge("A"), low), "success").marks:
        assert 0 <= mark.x <= WIDTH
        assert 0 <= mark.high <= mark.y <= mark.low <= HEIGHT


def test_lines_of_equal_f1_hold_their_value():
    plot = precision_recall_plot(board(judge("A")), "success")
    assert {line.value for line in plot.lines} <= set(ISO_F1)
    assert plot.lines
    for line in plot.lines:
        for x, y in re.findall(r"([\d.]+),([\d.]+)", line.path):
            recall, precision = fractions(float(x), float(y), (0.42, 0.46))
            f1 = 2 * precision * recall / (precision + recall)
            assert f1 == pytest.approx(line.value, abs=0.002)


def test_a_board_without_judges_says_that_there_is_nothing_to_plot():
    assert precision_recall_plot(board(), "success").marks == ()
    assert "There is no judge to plot" in svg()


def test_ticks_are_round_percentages_and_few():
    plot = precision_recall_plot(board(judge("A")), "success")
    assert [tick for _, tick in plot.x_ticks] == [50, 60, 70, 80, 90, 100]
