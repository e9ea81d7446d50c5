import re

import numpy as np
import pytest

from leaderboard.calibration import calibrate
from space.pages.judge.plots import CLEARANCE, HEIGHT, WIDTH, plot_values, sweep_lines, x, y
from space.web.frame import render


@pytest.fixture(scope="module")
def found():
    """Scores of 0.05 (60 runs, 6 true) and 0.85 (40 runs, 30 true); ten runs without a score."""
    scores = np.array([0.05] * 60 + [0.85] * 40 + [np.nan] * 10)
    labels = np.array([1] * 6 + [0] * 54 + [1] * 30 + [0] * 10 + [1] * 10, dtype=np.int8)
    return calibrate(scores, labels, np.arange(110), n_resamples=500)


@pytest.fixture(scope="module")
def section(found):
    """The part of the page about the score."""
    return render("judge/scores.html", **plot_values(found))


@pytest.fixture(scope="module")
def svgs(section):
    """The two pictures as they are drawn: reliability, thresholds."""
    return re.findall(r"<svg.*?</svg>", section, re.S)


def numbers(svg: str, element: str, *names: str) -> list[tuple[float, ...]]:
    """The values of attributes of every such element, in the order of the picture."""
    tags = re.findall(rf"<{element} [^>]*>", svg)
    return [tuple(float(re.search(rf'\b{name}="([^"]*)"', tag)[1]) for name in names) for tag in tags]


def at(x_percent: float, y_percent: float) -> tuple[float, float]:
    """Where a point stands, between 46 and 382 from the left, 296 and 12 from above."""
    return pytest.approx((46 + 3.36 * x_percent, 296 - 2.84 * y_percent), abs=0.1)


def test_a_bin_is_a_point_at_its_mean_score_and_share_and_says_so(svgs):
    low, high = numbers(svgs[0], "circle", "cx", "cy", "r")
    assert low[:2] == at(5, 10)
    assert high[:2] == at(85, 75)
    assert low[2] > high[2]  # the fuller bin
    _, top, bottom = numbers(re.search(r'<g class="mark">.*?</g>', svgs[0])[0], "line", "x1", "y1", "y2")[0]
    assert top < low[1] < bottom  # up is less in a picture
    assert "score 0 to 0.1: 60 trajectories, mean score 5.0, 10.0 of them positive (" in svgs[0]
    assert numbers(svgs[0], "rect", "height") == [(46,), (round(46 * 40 / 60, 1),)]
    assert 'aria-label="Reliability of the score: 2 groups, 100 trajectories in total"' in svgs[0]


def test_the_sweep_draws_each_figure_where_it_is_defined(found, svgs):
    lines = {line.metric: line.points.split() for line in sweep_lines(found)}
    assert {name: len(points) for name, points in lines.items()} == {"precision": 17, "recall": 19, "f1": 19}
    # from 0.90 on nothing is called a success: no precision there, recall 0
    assert float(lines["recall"][-1].split(",")[1]) == y(0)
    # F1 at 0.05: 36 of 100 yes, 46 successes: 72/146; at 0.10 to 0.85: 30 of 40: 60/86, the highest
    assert numbers(re.search(r'<line class="best"[^>]*>', svgs[1])[0], "line", "x1") == [(x(0.1),)]
    assert "F1 is highest at 0.1, 69.8" in svgs[1]
    assert all(f'points="{" ".join(points)}"' in svgs[1] for points in lines.values())


def test_the_names_of_the_lines_do_not_cover_each_other(found):
    ends = sorted(line.name_y for line in sweep_lines(found))
    assert min(np.diff(ends)) >= CLEARANCE


def test_everything_lies_on_the_picture(svgs):
    for left, right, top, bottom in numbers(svgs[0], "line", "x1", "x2", "y1", "y2"):
        assert 0 < left <= right < WIDTH and 0 < min(top, bottom) <= max(top, bottom) < HEIGHT


def test_the_words_tell_what_the_score_is_worth(section):
    told = re.findall("<li>(.*?)</li>", section)
    # (60 * |0.05 - 0.10| + 40 * |0.85 - 0.75|) / 100 = 7 points
    assert told[0] == (
        "The score and the share of positives differ by 7.0 points on average: the score is somewhat off."
    )
    assert "so the score is informative" in told[1]
    assert told[-1] == "10 trajectories have no score. In the second plot they count as a no."
