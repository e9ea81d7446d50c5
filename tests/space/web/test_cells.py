"""Tests that maintainers' marks are shown with a row on every page."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from space.pages.leaderboard.query import LeaderboardQuery
from space.web.cells import (
    FEW,
    choices_of,
    cost_cell,
    describe_marks,
    describe_noise,
    distinct_names,
    metric_cell,
)
from space.web.query import link_to
from submissions.intake.accounts import Actor
from tests.space.conftest import shown_text
from tests.support.boards import board, cell, label, row
from tests.support.leaderboard_client import board_html
from tests.support.space_app import local_client
from tests.support.submissions import send, verdicts

GRACE = Actor("Grace", is_maintainer=True)


def pages(service) -> list[str]:
    """Return the leaderboard, the page of the first row, and the comparison of the first two rows."""
    ids = [row.id for row in service.records.board().rows]
    client = local_client(service)
    addresses = link_to("/judge", id=ids[0]), link_to("/compare", judges=ids)
    return [board_html(service, LeaderboardQuery()), *(client.get(address).text for address in addresses)]


def test_marks_are_shown_on_the_leaderboard_the_judge_page_and_in_comparisons(service):
    first = send(service, verdicts(service.suite), judge="Alpha").submission_id
    send(service, verdicts(service.suite, misses=2, false_alarms=3), judge="Beta")
    for html in pages(service):
        assert "verified" not in shown_text(html)
    service.moderation.decide("verified", first, GRACE, "ran it again")
    service.moderation.decide("label_exposed", first, GRACE, "labels in the prompt")
    for html in pages(service):
        assert "verified" in shown_text(html)
        assert "labels exposed" in shown_text(html)
    assert "verified: a maintainer ran it again" in describe_marks(service.records.board().rows[0])
    assert "ran it again" not in describe_marks(service.records.board().rows[1])


def test_noise_is_described_with_its_size_and_the_source_of_ranks():
    noisy = {"overall": {"noise": {"tp_sd": 3.0}}, "by_benchmark": {"a": {"noise": {"tp_sd": 6.0}}}}
    text = describe_noise(noisy)
    assert "± 3 true positives, ± 6 in each benchmark (standard deviations)" in text
    assert text.endswith("Ranks come from the same noisy figures and their intervals.")
    half = describe_noise({**noisy, "by_benchmark": {}, "ranked_by": "a half that is not shown"})
    assert "benchmark" not in half
    assert half.endswith("Ranks come from a half that is not shown.")
    assert describe_noise({"overall": {}, "by_benchmark": {}}) == describe_noise(None) == ""


SUCCESS = label(cell(1, 1, 1, 1))


def made(judge="GPT-4o", provenance="scored", **changes):
    return row(judge, SUCCESS, provenance, **{"id": f"{judge}-{len(changes)}", **changes})


def test_names_are_as_short_as_they_can_be_and_still_differ():
    tree, screenshot = made(inputs="tree", id="1"), made(inputs="screenshot", id="2")
    assert distinct_names([tree, screenshot]) == ("GPT-4o (tree)", "GPT-4o (screenshot)")
    paper = made(inputs="tree", id="paper/x", provenance="published")
    assert distinct_names([tree, paper]) == ("GPT-4o (tree), by ada", "GPT-4o (tree), paper")
    later = made(inputs="tree", id="3", date="2026-03-04T00:00:00")
    assert distinct_names([tree, later]) == (
        "GPT-4o (tree), by ada, 2026-01-02",
        "GPT-4o (tree), by ada, 2026-03-04",
    )
    same_day = made(inputs="tree", id="4")
    assert distinct_names([tree, same_day]) == ("GPT-4o (tree), 1", "GPT-4o (tree), 4")


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.sampled_from("12")), max_size=8))
def test_no_two_names_are_alike(spelled):
    rows = [
        made(judge, account=account, inputs=inputs, id=str(place))
        for place, (judge, account, inputs) in enumerate(spelled)
    ]
    names = distinct_names(rows)
    assert len(names) == len(set(names)) == len(rows)


def test_choices_distinguish_submissions_of_one_judge():
    first, second = made(id="aaaaaaaaaaaa"), made(id="bbbbbbbbbbbb", date="2026-03-04T00:00:00")
    other = made("Other", id="cccccccccccc")
    assert choices_of(board(first, second, other)) == [
        ("GPT-4o (tree) · by ada · 2026-01-02 · aaaaaa", "aaaaaaaaaaaa"),
        ("GPT-4o (tree) · by ada · 2026-03-04 · bbbbbb", "bbbbbbbbbbbb"),
        ("Other (tree) · by ada", "cccccccccccc"),
    ]


def test_a_cost_from_every_row_says_so_and_nothing_is_not_free():
    assert "from every row" in cost_cell({"usd_per_1000": 0.0, "rows": 9, "of": 9}).hover
    assert cost_cell({"usd_per_1000": 0.0, "rows": 9, "of": 9}).text == "0.00"
    assert cost_cell(None).text == ""


def test_a_figure_that_is_undefined_is_a_dash_without_a_number():
    never = cell(0, 0, 10, 20)
    found = metric_cell(never, "precision")
    assert (found.text, found.value) == ("–", None)
    assert found.hover == "a yes is right about 0 of 0; 10 positives among 30 labels"
    assert metric_cell(None, "precision").hover == "not known"


def test_hover_text_has_missing_verdicts_notes_and_unknown_counts():
    assert metric_cell(cell(6, 2, 4, 18, 5), "precision").hover.endswith("; 5 without a verdict")
    noted = cell(6, 2, 4, 18, note="several counts fit")
    assert metric_cell(noted, "precision").hover == (
        "a yes is right about 6 of 8; 10 positives among 30 labels; several counts fit"
    )
    unknown = {**cell(6, 2, 4, 18), "tp": None, "fp": None, "fn": None, "tn": None}
    assert metric_cell(unknown, "precision").hover == "10 positives among 30 labels; counts not known"


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
    assert metric_cell(cell(*counts), figure).is_few
    enough = tuple(count + (count == FEW - 2) + (figure == "accuracy") for count in counts)
    assert not metric_cell(cell(*enough), figure).is_few


def test_a_printed_figure_without_counts_rests_on_the_positives():
    unknown = {**cell(6, 2, 4, 18), "tp": None, "fp": None, "fn": None, "tn": None}
    assert metric_cell(unknown, "precision").is_few  # 10 positives
    assert not metric_cell({**unknown, "positives": FEW}, "f1").is_few
