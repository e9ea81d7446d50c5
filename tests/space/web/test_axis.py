import pytest
from hypothesis import given
from hypothesis import strategies as st

from space.web.cells import MOST_TICKS, Axis

fractions = st.floats(-1, 1)


def test_the_axis_runs_over_whole_tenths_around_its_values():
    axis = Axis.around([0.524, 0.838, None])
    assert (axis.low, axis.high) == (pytest.approx(0.5), pytest.approx(0.9))
    assert axis.ticks == (0.5, 0.7, 0.9)


def test_an_axis_across_zero_has_a_tick_there():
    axis = Axis.around([-0.29, 0.62])
    # ten tenths from -0.3 to 0.7: a tick every fourth, counted from zero
    assert axis.ticks == (0.0, 0.4)
    assert axis.place(0) == pytest.approx(100 * 3 / 10)


@pytest.mark.parametrize(
    "values, ends", [([], (0, 1)), ([None], (0, 1)), ([0.5], (0.4, 0.5)), ([1.0], (0.9, 1.0))]
)
def test_no_value_or_one_value_makes_an_axis_too(values, ends):
    axis = Axis.around(values)
    assert (axis.low, axis.high) == (pytest.approx(ends[0]), pytest.approx(ends[1]))


def test_a_value_without_interval_is_a_dot():
    span = Axis.over(0, 10).span(0.25, None)
    assert (span.dot, span.left, span.width) == (25.0, 25.0, 0.0)
    assert Axis.over(0, 10).span(None, (0, 1)) is None


def test_what_runs_off_the_axis_is_cut_and_marked():
    axis = Axis.over(4, 6)
    span = axis.span(0.5, (0.1, 0.95))
    assert (span.left, span.width, span.runs_left, span.runs_right) == (0.0, 100.0, True, True)
    assert axis.span(0.2, None).off == -1
    assert axis.span(0.7, None).off == 1


@given(st.lists(fractions, min_size=1, max_size=8), st.lists(fractions, min_size=2, max_size=2))
def test_every_whisker_lies_on_its_axis(values, interval):
    axis = Axis.around(values)
    assert axis.low <= min(values) + 1e-9 and max(values) <= axis.high + 1e-9
    span = axis.span(values[0], sorted(interval))
    assert 0 <= span.dot <= 100
    assert 0 <= span.left <= span.left + span.width <= 100.01
    assert span.off == 0
    assert 1 <= len(axis.ticks) <= MOST_TICKS + 2
    assert all(axis.low - 1e-6 <= tick <= axis.high + 1e-6 for tick in axis.ticks)
