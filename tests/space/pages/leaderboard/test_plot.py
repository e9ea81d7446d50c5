import re
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.board.board import Board
from space.pages.leaderboard import plots
from space.pages.leaderboard.plots import (
    BASELINE,
    CHARACTER,
    CROWD,
    HEIGHT,
    ISO_F1,
    LINE,
    MOST_NAMES,
    WIDTH,
    Mark,
    NamePlace,
    PlotView,
    Point,
    marks_of,
    to_pixels,
)
from space.pages.leaderboard.query import LeaderboardQuery, chosen_rows, precision_recall_front
from space.web.frame import render
from tests.space.conftest import shown_text, tags_and_attributes
from tests.support.boards import board, cell, label, row, second_annotator

WINDOW = (0.0, 0.0)
CHOICE = LeaderboardQuery()


def precision_recall_plot(found: Board, choice: LeaderboardQuery) -> PlotView:
    return plots.precision_recall_plot(chosen_rows(found, choice), choice)


def cost_plot(found: Board, choice: LeaderboardQuery) -> PlotView | None:
    return plots.cost_plot(chosen_rows(found, choice), choice)


def point(x: float, y: float, name: str = "name", order: int = 0, half: float = 0.0) -> Point:
    return Point(judge("A"), x, y, y - half, y + half, name, order)


def place_names(points: list[Point], window: tuple[float, float]) -> list[NamePlace | None]:
    return [mark.label for mark in marks_of(points, window, lambda _: "")]


def text(label: NamePlace | None) -> str:
    return label.text if label else ""


def boxes(labels: list[NamePlace | None]) -> list[tuple[float, float, float, float]]:
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


def svg(*rows, choice: LeaderboardQuery = CHOICE) -> str:
    found = board(*rows)
    plot, costs = precision_recall_plot(found, choice), cost_plot(found, choice)
    return render("leaderboard/plots.html", plot=plot, costs=costs, choice=choice)


def fractions(x: float, y: float, window: tuple[float, float]) -> tuple[float, float]:
    """Recall and precision of a pixel."""
    left, bottom = window
    return left + x / WIDTH * (1.02 - left), bottom + (1 - y / HEIGHT) * (1 - bottom)


def test_every_ranked_judge_is_a_point_with_its_interval():
    plot = precision_recall_plot(board(judge("A"), judge("B", (75, 25, 45, 155), ci=(0.6, 0.85))), CHOICE)
    found = marks(plot)
    assert set(found) == {"A", "B"}
    # 60 of 120 found, 60 of 100 right; the window begins 8 points left of 50 and 4 below 50
    window = (0.42, 0.46)
    assert fractions(found["A"].x, found["A"].y, window) == pytest.approx((0.5, 0.6), abs=0.001)
    assert fractions(0, found["A"].high, window)[1] == pytest.approx(0.7, abs=0.001)
    assert fractions(0, found["A"].low, window)[1] == pytest.approx(0.5, abs=0.001)
    assert fractions(found["B"].x, found["B"].y, window) == pytest.approx((0.625, 0.75), abs=0.001)


def test_only_the_best_submission_of_a_judge_and_no_constant_reference_is_drawn():
    always = row(
        "Always", label(cell(30, 70, 0, 0, ci=[0.2, 0.4]), best=False), "reference", id="reference/always"
    )
    other = row("A", label(cell(50, 50, 70, 130, ci=[0.4, 0.6]), best=False), id="a2")
    plot = precision_recall_plot(board(judge("A"), other, always, second_annotator()), CHOICE)
    assert set(marks(plot)) == {"A", "reference/second-annotator"}


def test_the_human_reference_has_another_shape_and_leads_nowhere():
    html = svg(judge("A"), second_annotator())
    place = r'transform="translate\([\d.]+,[\d.]+\)"'
    assert re.search(rf'<a class="point scored" {place} href="/judge\?id=A">', html)
    assert '<g class="point reference"' in html
    assert html.count('<path class="mark"') == html.count('<circle class="mark"') == 1


def test_a_judge_with_an_undefined_figure_is_left_out():
    never = row("Never", label(cell(0, 0, 100, 100), None))
    (mark,) = precision_recall_plot(board(judge("A"), never), CHOICE).marks
    assert mark.hover == "A (tree)\nprecision 60.0 (50.0 to 70.0)\nrecall 50.0\nF1 54.5"


def test_markup_in_names_is_shown_as_it_was_written(hostile):
    html = svg(judge(hostile, inputs=hostile, id="a"))
    assert hostile in shown_text(html)
    harmless = tags_and_attributes(svg(judge("harmless", inputs="tree", id="a")))
    assert tags_and_attributes(html) <= harmless | {("line", ""), ("line", "class")}


def test_all_points_and_intervals_lie_within_the_plot():
    low = judge("Low", (10, 90, 190, 10), ci=(0.02, 0.18))
    for mark in precision_recall_plot(board(judge("A"), low), CHOICE).marks:
        assert 0 <= mark.x <= WIDTH
        assert 0 <= mark.high <= mark.y <= mark.low <= HEIGHT


def test_lines_of_equal_f1_hold_their_value():
    plot = precision_recall_plot(board(judge("A")), CHOICE)
    assert {value for value, _, _ in plot.lines} <= set(ISO_F1)
    assert plot.lines
    for value, path, _ in plot.lines:
        for x, y in re.findall(r"([\d.]+),([\d.]+)", path):
            recall, precision = fractions(float(x), float(y), (0.42, 0.46))
            f1 = 2 * precision * recall / (precision + recall)
            assert f1 == pytest.approx(value, abs=0.002)


def test_only_a_board_with_filters_says_that_no_judge_fits_them():
    assert precision_recall_plot(board(), CHOICE).marks == ()
    assert "No judge can be plotted yet." in svg() and "filter" not in svg()
    filtered = svg(judge("A"), choice=replace(CHOICE, search="zzz"))
    assert "No judge that fits the filters can be plotted. Remove a filter" in filtered


# A crowd


def crowd(n: int, **changes):
    """So many judges at one place or another, all named alike, so that few names have room."""
    return [
        judge(
            f"A judge of a long name {k}", (40 + k % 20, 60 - k % 20, 40 + k % 30, 100), id=f"j{k}", **changes
        )
        for k in range(n)
    ]


def test_the_first_hundred_points_of_a_crowd_lead_to_their_judges_and_few_have_a_name():
    more = precision_recall_plot(board(*crowd(250), second_annotator()), CHOICE)
    # The first 100 judges, those with a name and the reference have a link; the others are dots.
    assert {mark.row_id for mark in more.marks[:100]} <= {mark.row_id for mark in more.linked}
    assert len(more.linked) + len(more.dots) == 251
    assert more.dots and not any(mark.label or mark.group == "reference" for mark in more.dots)
    plot = precision_recall_plot(board(*crowd(CROWD + 60), second_annotator()), CHOICE)
    assert plot.is_crowded
    assert len(plot.marks) == CROWD + 61
    assert 0 < sum(mark.label is not None for mark in plot.marks) < CROWD
    assert svg(*crowd(CROWD + 60)).count('href="/judge?id=j') == CROWD + 60
    assert not precision_recall_plot(board(*crowd(CROWD)), CHOICE).is_crowded


# Quality against cost


def priced(name: str, dollars: float | None, counts=(60, 40, 60, 140), **changes):
    cost = None if dollars is None else {"usd_per_1000": dollars, "rows": 1, "of": 1}
    return judge(name, counts, cost=cost, **changes)


def test_costs_are_plotted_where_two_judges_name_them_and_the_others_are_counted():
    assert cost_plot(board(priced("A", 1.0), priced("B", None)), CHOICE) is None
    html = svg(priced("A", 1.0), priced("B", 10.0), priced("C", None), second_annotator())
    assert "The cost of 1 of 3 judges is not known" in shown_text(html)
    assert 'id="cost-quality"' in html
    assert 'id="cost-quality"' not in svg(priced("A", 1.0), priced("C", None))


def test_costs_stand_on_a_logarithmic_axis():
    plot = cost_plot(board(priced("A", 1.0), priced("B", 10.0), priced("C", 100.0)), CHOICE)
    a, b, c = (marks(plot)[name].x for name in "ABC")
    assert b - a == pytest.approx(c - b, abs=0.2)
    assert [tick for _, tick in plot.x_ticks] == ["1", "2", "5", "10", "20", "50", "100"]
    assert [x for x, _ in plot.x_ticks] == sorted(x for x, _ in plot.x_ticks)


def test_a_judge_that_costs_nothing_stands_left_of_all_others():
    plot = cost_plot(board(priced("Free", 0.0), priced("A", 0.5), priced("B", 4.0)), CHOICE)
    assert 0 <= marks(plot)["Free"].x < marks(plot)["A"].x < marks(plot)["B"].x <= WIDTH
    assert plot.x_ticks[0][1] == "0"
    only_free = cost_plot(board(priced("Free", 0.0), priced("Also", 0.0, (70, 30, 50, 150))), CHOICE)
    assert len(only_free.marks) == 2


def test_the_pareto_front_joins_judges_that_none_at_their_cost_or_less_beats():
    # precision 60, 50, 80, 80 for 1, 2, 3, 4 dollars: B is worse than A, D dearer than C
    plot = cost_plot(
        board(
            priced("A", 1.0), priced("B", 2.0, (50, 50, 50, 50)), priced("C", 3.0, (80, 20, 40, 60)),
            priced("D", 4.0, (80, 20, 40, 60)),
        ),
        CHOICE,
    )  # fmt: skip
    found = marks(plot)
    a, c = found["A"], found["C"]
    assert plot.front == f"M{a.x:g},{a.y:g}H{c.x:g}V{c.y:g}H{WIDTH}"


def test_a_cost_that_is_a_lower_bound_has_an_arrow_and_is_not_on_the_front():
    # A costs at least 1 dollar and is better than B, but nobody knows whether it is cheaper
    bound = priced("A", 1.0, (80, 20, 40, 60))
    bound = replace(bound, cost={**bound.cost, "is_at_least": True, "basis": "a log"})
    found = board(bound, priced("B", 2.0), priced("C", 3.0, (70, 30, 40, 60)))
    plot = cost_plot(found, CHOICE)
    b, c = marks(plot)["B"], marks(plot)["C"]
    assert plot.front == f"M{b.x:g},{b.y:g}H{c.x:g}V{c.y:g}H{WIDTH}"
    assert [mark.row_id for mark in plot.marks if mark.is_at_least] == ["A"]
    assert "≥ 1.00 US dollars per 1,000" in marks(plot)["A"].hover
    html = svg(*found.rows)
    assert html.count('class="more"') == 1
    assert "An arrow marks a lower bound" in shown_text(html)
    only_bounds = cost_plot(board(bound, replace(bound, id="D")), CHOICE)
    assert only_bounds.front == ""


def test_a_line_joins_the_judges_on_the_precision_recall_front():
    # precision and recall: A 60, 50 percent; B 80, 40; C 50, 45, which is below A
    found = board(judge("A"), judge("B", (40, 10, 60, 140)), judge("C", (45, 45, 55, 140)))
    rows = chosen_rows(found, CHOICE)
    plot = plots.precision_recall_plot(rows, CHOICE, precision_recall_front(found, CHOICE))
    a, b = marks(plot)["A"], marks(plot)["B"]
    assert plot.front == f"M{b.x:g},{b.y:g}V{a.y:g}H{a.x:g}"


def test_the_front_of_a_rate_of_errors_goes_down():
    # FPR 40 of 180 = 22.2, 20 of 80 = 25, 10 of 110 = 9.1 percent for 1, 2, 3 dollars
    plot = cost_plot(
        board(priced("A", 1.0), priced("B", 2.0, (80, 20, 40, 60)), priced("C", 3.0, (80, 10, 40, 100))),
        LeaderboardQuery(figure="fpr"),
    )
    a, c = marks(plot)["A"], marks(plot)["C"]
    assert c.y > a.y
    assert plot.front == f"M{a.x:g},{a.y:g}H{c.x:g}V{c.y:g}H{WIDTH}"
    assert "FPR 9.1" in marks(plot)["C"].hover


@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.01, 1.0, 7.5, 900.0]), st.integers(0, 100)), min_size=2, max_size=12
    )
)
def test_every_priced_judge_lies_within_the_plot_and_none_beats_the_front(judges):
    rows = [
        priced(str(n), dollars, (tp, 100 - tp, 50, 50), ci=None) for n, (dollars, tp) in enumerate(judges)
    ]
    plot = cost_plot(board(*rows), CHOICE)
    found = marks(plot)
    front = {n for n, _ in enumerate(judges) if f"{found[str(n)].x:g},{found[str(n)].y:g}" in plot.front
             or f"H{found[str(n)].x:g}V{found[str(n)].y:g}" in plot.front}  # fmt: skip
    for n, (dollars, tp) in enumerate(judges):
        assert 0 <= found[str(n)].x <= WIDTH
        assert 0 <= found[str(n)].y <= HEIGHT
        others = judges[:n] + judges[n + 1 :]
        is_matched = any(other <= dollars and hits >= tp for other, hits in others)
        assert is_matched or n in front
