from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from space.point_names import (
    BASELINE,
    CHARACTER,
    HEIGHT,
    LINE,
    MOST_NAMES,
    WIDTH,
    Label,
    Point,
    place_names,
    to_pixels,
)

WINDOW = (0.0, 0.0)


def point(x: float, y: float, name: str = "name", order: int = 0, half: float = 0.0) -> Point:
    return Point(x, y, y - half, y + half, name, order)


def text(label: Label | None) -> str:
    return label.text if label else ""


def boxes(labels: list[Label | None]) -> list[tuple[float, float, float, float]]:
    """The rooms that names take: left, top, right, bottom."""
    found = []
    for label in filter(None, labels):
        width = CHARACTER * len(label.text)
        left = label.x - {"start": 0, "middle": width / 2, "end": width}[label.anchor]
        top = label.y - BASELINE * LINE
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


def test_a_name_does_not_lie_on_the_whisker_of_another_point():
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
