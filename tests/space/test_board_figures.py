import pytest

from space.board_figures import FEW, cost_cell, metric_cell
from tests.space.boards import cell


def test_a_cost_from_every_row_says_so_and_nothing_is_not_free():
    assert "from every row" in cost_cell({"usd_per_1000": 0.0, "rows": 9, "of": 9}).hover
    assert cost_cell({"usd_per_1000": 0.0, "rows": 9, "of": 9}).text == "0.00"
    assert cost_cell(None).text == ""


def test_a_figure_that_is_undefined_is_a_dash_without_a_number():
    never = cell(0, 0, 10, 20)
    found = metric_cell(never, "precision", "success")
    assert (found.text, found.value) == ("–", None)
    assert found.hover == "0 of 0 called successful are; 10 positives in 30 trajectories"
    assert metric_cell(None, "precision", "success").hover == "not known"


def test_hover_tells_missing_verdicts_notes_and_unknown_counts():
    assert metric_cell(cell(6, 2, 4, 18, 5), "precision", "success").hover.endswith("; 5 without a verdict")
    noted = cell(6, 2, 4, 18, note="several counts fit")
    assert metric_cell(noted, "precision", "repetition").hover == (
        "6 of 8 said to repeat are; 10 positives in 30 trajectories; several counts fit"
    )
    unknown = {**cell(6, 2, 4, 18), "tp": None, "fp": None, "fn": None, "tn": None}
    assert (
        metric_cell(unknown, "precision", "success").hover
        == "10 positives in 30 trajectories; counts not known"
    )


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
    assert metric_cell(cell(*counts), figure, "success").is_few
    enough = tuple(count + (count == FEW - 2) + (figure == "accuracy") for count in counts)
    assert not metric_cell(cell(*enough), figure, "success").is_few


def test_a_printed_figure_without_counts_rests_on_the_positives():
    unknown = {**cell(6, 2, 4, 18), "tp": None, "fp": None, "fn": None, "tn": None}
    assert metric_cell(unknown, "precision", "success").is_few  # 10 positives
    assert not metric_cell({**unknown, "positives": FEW}, "f1", "success").is_few
