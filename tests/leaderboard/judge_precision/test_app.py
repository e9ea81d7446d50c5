import gradio as gr
import pytest


@pytest.fixture(scope="module")
def app():
    """Imported here: with evaluate comes transformers, which every process of the tests would import."""
    from leaderboard.judge_precision import app

    return app


@pytest.fixture
def page(app, tmp_path):
    from leaderboard.judge_precision.judge_precision import JudgePrecision

    return app.build_page(JudgePrecision(cache_dir=str(tmp_path)))


def test_lines_are_read_as_verdict_and_label_and_blank_ones_are_passed_over(app):
    assert app.parse_rows("\n1, 0\n   \n0,1\n\n") == ([1, 0], [0, 1])
    # nothing and -1: no verdict, or an unsure label
    assert app.parse_rows(", 1\n-1, 0\n1,") == ([-1, -1, 1], [1, 0, -1])


@pytest.mark.parametrize("text", ["1, 1\n2, 0\n1\n1, 0, 1\nyes, no", "1,1\n1.0, 1\n1;0\n1 0\n,,"])
def test_every_wrong_line_is_named_at_once(app, text):
    with pytest.raises(gr.Error, match=r"Line 2, 3, 4, 5: write a verdict and a label, each 1, 0 or empty"):
        app.parse_rows(text)


def test_the_page_builds_and_scores_its_example(app, page):
    score = next(iter(page.fns.values())).fn
    table = dict(score(app.EXAMPLE))
    # "1, 1", "1, 0", "0, 0", ", 1": TP 1, FP 1, TN 1, FN 1
    assert (table["precision"], table["no_verdict"], table["n"]) == (0.5, 1, 4)


def test_the_page_says_undefined_where_a_figure_is(page):
    score = next(iter(page.fns.values())).fn
    assert dict(score("0, 1"))["precision"] == "undefined"
