from hypothesis import given
from hypothesis import strategies as st

from space.point_names import HEIGHT, MOST_NAMES, WIDTH, Point, place_names

WINDOW = (0.0, 0.0)


def point(x: float, y: float, name: str = "name", order: int = 0, half: float = 0.0) -> Point:
    return Point(x, y, y - half, y + half, name, order)


def test_a_point_alone_is_named_at_its_right():
    assert place_names([point(0.5, 0.5)], WINDOW) == [("name", "middle right")]


def test_a_name_that_would_leave_the_plot_stands_at_the_left():
    assert place_names([point(0.99, 0.5)], WINDOW) == [("name", "middle left")]


def test_points_far_apart_are_all_named():
    points = [point(x / 10, x / 10) for x in (1, 4, 7)]
    assert [name for name, _ in place_names(points, WINDOW)] == ["name"] * 3


def test_in_a_crowd_what_comes_first_by_its_order_is_named():
    crowd = [point(0.5 + n / 1000, 0.5, "a long enough name", order=2) for n in range(20)]
    named = place_names([*crowd, point(0.51, 0.5, "scored here", order=1)], WINDOW)
    assert named[-1][0] == "scored here"
    assert sum(bool(name) for name, _ in named) < 10


def test_a_name_does_not_lie_on_the_whisker_of_another_point():
    other = point(0.55, 0.5, "", half=0.3)  # stands at the right, all the way up and down
    (_, side), _ = place_names([point(0.5, 0.5, "name"), other], WINDOW)
    assert side.endswith("left")


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=MOST_NAMES + 20))
def test_named_or_not_every_point_has_an_answer_and_few_are_tried(places):
    points = [point(x, y) for x, y in places]
    found = place_names(points, WINDOW)
    assert len(found) == len(points)
    assert sum(bool(name) for name, _ in found) <= MOST_NAMES
    assert WIDTH > HEIGHT > 0
