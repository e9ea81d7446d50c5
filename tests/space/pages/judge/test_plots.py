import numpy as np
import pytest

from leaderboard.calibration import calibrate
from space.pages.judge.plots import CLEARANCE, HEIGHT, WIDTH, reliability_plot, sweep_plot
from space.pages.judge.summary import describe_calibration


@pytest.fixture(scope="module")
def found():
    """Scores of 0.05 (60 runs, 6 true) and 0.85 (40 runs, 30 true); ten runs without a score."""
    scores = np.array([0.05] * 60 + [0.85] * 40 + [np.nan] * 10)
    labels = np.array([1] * 6 + [0] * 54 + [1] * 30 + [0] * 10 + [1] * 10, dtype=np.int8)
    return calibrate(scores, labels, np.arange(110), n_resamples=500)


def x_of(plot, percent):
    """Where a percentage stands, between the first tick (0) and the last (100)."""
    first, last = plot.x_ticks[0].at, plot.x_ticks[-1].at
    return pytest.approx(first + (last - first) * percent / 100, abs=0.1)


def y_of(plot, percent):
    first, last = plot.y_ticks[0].at, plot.y_ticks[-1].at
    return pytest.approx(first + (last - first) * percent / 100, abs=0.1)


def test_a_bin_is_a_point_at_its_mean_score_and_share_and_says_so(found):
    plot = reliability_plot(found)
    low, high = plot.marks
    assert (low.x, low.y) == (x_of(plot, 5), y_of(plot, 10))
    assert (high.x, high.y) == (x_of(plot, 85), y_of(plot, 75))
    assert low.top < low.y < low.bottom  # up is less in a picture
    assert low.radius > high.radius  # the fuller bin
    assert "score 0 to 0.1: 60 trajectories, mean score 5.0, 10.0 of them successful" in low.words
    assert [bar.height for bar in plot.bars] == [46, round(46 * 40 / 60, 1)]


def test_the_sweep_draws_each_figure_where_it_is_defined(found):
    plot = sweep_plot(found)
    lines = {line.style: line.points.split() for line in plot.lines}
    assert {name: len(points) for name, points in lines.items()} == {"precision": 17, "recall": 19, "f1": 19}
    # from 0.90 on nothing is called a success: no precision there, recall 0
    assert lines["recall"][-1].split(",")[1] == str(plot.y_ticks[0].at)
    # F1 at 0.05: 36 of 100 yes, 46 successes: 72/146; at 0.10 to 0.85: 30 of 40: 60/86, the highest
    assert plot.best_x == x_of(plot, 10)
    assert "F1 is highest at 0.1, 69.8" in plot.words


def test_the_names_of_the_lines_do_not_cover_each_other(found):
    ends = sorted(line.name_y for line in sweep_plot(found).lines)
    assert min(np.diff(ends)) >= CLEARANCE


def test_everything_lies_on_the_picture(found):
    plot = reliability_plot(found)
    for mark in plot.marks:
        assert 0 < mark.x < WIDTH and 0 < mark.top <= mark.bottom < HEIGHT


def test_the_words_tell_what_the_score_is_worth(found):
    told = describe_calibration(found)
    # (60 * |0.05 - 0.10| + 40 * |0.85 - 0.75|) / 100 = 7 points
    assert told[0] == (
        "Score and share of successes lie 7.0 points apart on average: the score is some way off."
    )
    assert "so the score says something about a trajectory" in told[1]
    assert "10 trajectories have no score; in the sweep they count as a no." in told
