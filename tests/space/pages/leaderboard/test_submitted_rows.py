"""The table over submissions: figures, costs, marks, hostile names, and nothing of the labels."""

import re

import pytest

from space.pages.leaderboard.query import LeaderboardQuery
from submissions.app import SubmissionsApp
from tests.space.conftest import shown_text
from tests.support.leaderboard_client import board_html, page_html
from tests.support.submissions import SECRET_ANNOTATOR, send, verdicts


@pytest.fixture
def filled(service):
    """Three judges, one of them with two submissions."""
    for judge, misses, alarms in (("Alpha", 1, 0), ("Beta", 2, 4), ("Gamma", 0, 20), ("Beta", 3, 9)):
        send(service, verdicts(service.suite, misses=misses, false_alarms=alarms), judge=judge)
    return service


def cells(html: str, heading: str) -> list[str]:
    return re.findall(rf'data-heading="{re.escape(heading)}">([^<]*)<', html)


def test_a_link_is_a_link_that_gives_nothing_away(service):
    send(service, verdicts(service.suite), link="https://example.org/?a=1&b=%22")
    html = board_html(service, LeaderboardQuery())
    assert '<a href="https://example.org/?a=1&amp;b=%22" rel="noopener nofollow ugc" target="_blank">' in html


def test_costs_stand_in_the_table_only_where_a_file_gives_them(service):
    send(service, verdicts(service.suite), judge="Silent")
    assert "Cost, $" not in board_html(service, LeaderboardQuery())
    priced = b"\n".join(
        line[:-1] + b', "cost_usd": 0.0025}' for line in verdicts(service.suite, misses=1).splitlines()
    )
    send(service, priced, judge="Priced")
    # 0.0025 dollars a row are 2.50 for 1,000 of them
    chosen = LeaderboardQuery(columns=("cost",))
    assert cells(board_html(service, chosen), "Cost, $ per 1,000") == ["", "2.50"]


@pytest.mark.slow
def test_judges_that_used_test_labels_are_marked(service):
    send(service, verdicts(service.suite), judge="Honest")
    send(service, verdicts(service.suite, misses=1), judge="Open", test_labels_used=True)
    assert board_html(service, LeaderboardQuery()).count("test labels used") == 1


def test_no_page_holds_a_task_a_path_or_an_annotator(filled, settings):
    for html in (board_html(filled, LeaderboardQuery()), page_html(filled)):
        for hidden in (
            "webarena.3",
            "counts_by_task",
            SECRET_ANNOTATOR,
            str(settings.state_dir),
            settings.labels,
        ):
            assert hidden not in html


def test_the_heading_tells_that_submitting_is_off_and_the_board_stays(filled):
    without = SubmissionsApp(filled.settings.model_copy(update={"labels": "none"}))
    assert "submitting is off: no labels are configured" in shown_text(page_html(without))
    assert board_html(without, LeaderboardQuery()) == board_html(filled, LeaderboardQuery())
    assert "submitting is off" not in page_html(filled)
