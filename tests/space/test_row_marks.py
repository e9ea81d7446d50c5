"""Maintainers' marks stand with a row wherever it is shown."""

from space.address import link_to
from space.board_view import Choice
from space.row_marks import describe_marks, describe_noise
from submissions.accounts import Actor
from tests.space.conftest import shown_text
from tests.space.leaderboard_client import board_html
from tests.submissions.synthetic import send, verdicts
from tests.support.pages import pages_client

GRACE = Actor("Grace", is_maintainer=True)


def pages(service) -> list[str]:
    """The leaderboard, the first row's page, and the first two rows compared."""
    ids = [row.id for row in service.board().rows]
    client = pages_client(service)
    addresses = link_to("/judge", id=ids[0]), link_to("/compare", judges=ids)
    return [board_html(service, Choice()), *(client.get(address).text for address in addresses)]


def test_marks_are_shown_on_the_leaderboard_the_judge_page_and_in_comparisons(service):
    first = send(service, verdicts(service.suite), judge="Alpha").submission_id
    send(service, verdicts(service.suite, misses=2, false_alarms=3), judge="Beta")
    for html in pages(service):
        assert "verified" not in shown_text(html)
    service.decide("verified", first, GRACE, "ran it again")
    service.decide("label_exposed", first, GRACE, "labels in the prompt")
    for html in pages(service):
        assert "verified" in shown_text(html)
        assert "labels exposed" in shown_text(html)
    assert "verified: a maintainer ran it again" in describe_marks(service.board().rows[0])
    assert "ran it again" not in describe_marks(service.board().rows[1])


def test_noise_is_told_with_its_size_and_where_ranks_come_from():
    noisy = {"overall": {"noise": {"tp_sd": 3.0}}, "by_benchmark": {"a": {"noise": {"tp_sd": 6.0}}}}
    told = describe_noise(noisy)
    assert "± 3 true positives, ± 6 in each benchmark (standard deviations)" in told
    assert told.endswith("ranks come from the same noisy figures and their intervals.")
    half = describe_noise({**noisy, "by_benchmark": {}, "ranked_by": "a half that is not shown"})
    assert "benchmark" not in half
    assert half.endswith("ranks come from a half that is not shown.")
    assert describe_noise({"overall": {}, "by_benchmark": {}}) == describe_noise(None) == ""
