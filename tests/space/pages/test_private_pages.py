"""A suite with private labels: no page shows anything that its test labels went into but noisy figures."""

import json
from dataclasses import replace

import numpy as np
import pytest

from arb.core.suite import OFFICIAL
from space.api.board import judges_response
from space.pages.about.paper import PaperTables
from space.pages.judge.summary import eval_results_yaml, file_facts
from space.pages.leaderboard.query import LeaderboardQuery
from space.pages.trajectories.dataset import Explorer
from space.pages.trajectories.verdicts import SubmittedJudges
from space.verdicts import JudgeVerdicts
from submissions.intake.accounts import Actor
from tests.space.conftest import shown_text
from tests.space.pages.conftest import page_at
from tests.support.clocks import one_a_day
from tests.support.leaderboard_client import board_html
from tests.support.space_app import with_scores
from tests.support.submissions import send, verdicts, with_rules

RULES = {"fewest_positives": 1, "private_noise": 6.0, "public_noise": 3.0, "round_days": 3}


@pytest.fixture
def private(service):
    """Two public rows with verdicts on success and scores, and a third that its owner kept to herself."""
    service.clock = one_a_day()
    with_rules(service, is_public=False, **RULES, ranking_half=False)
    for judge, misses, alarms in (("Alpha", 1, 2), ("Beta", 3, 4)):
        content = with_scores(verdicts(service.suite, misses=misses, false_alarms=alarms))
        sent = send(service, content, judge=judge, account=judge)
        service.moderation.publish(sent.submission_id, Actor(judge))
    send(service, verdicts(service.suite, misses=5), judge="Hidden", account="Hidden")
    for _ in range(8):  # days: the round ends
        service.clock()
    return service


def ids(service) -> list[str]:
    return [row.id for row in service.records.board().rows]


def kept_to_herself(service) -> str:
    from submissions.moderation.overview import own_submissions

    with service.snapshot() as session:
        return own_submissions(session, service.suite.name, service.label_version, "Hidden")[0].id


def test_the_board_holds_public_rows_with_noise_and_nothing_finer(private):
    rows = private.records.board().rows
    assert sorted(row.judge for row in rows) == ["Alpha", "Beta"]
    for row in rows:
        success = row.labels["success"]
        assert success["overall"]["noise"] == {"tp_sd": 3.0, "positives_sd": 3.0}
        assert all(cell["noise"]["tp_sd"] == 6.0 for cell in success["by_benchmark"].values())
        assert success["by_agent"] == {}
    text = private.records.board().to_bytes().decode()
    assert "counts_by_task" not in text
    assert "digest" not in json.loads(text)["rows"][0]


def test_the_leaderboard_and_the_judge_page_say_the_noise_and_where_ranks_come_from(private):
    said = "counts carry noise of ± 3 true positives"
    ranks = "Ranks come from the same noisy figures and their intervals"
    for html in (
        board_html(private, LeaderboardQuery()),
        *(page_at(private, "/judge", id=row_id) for row_id in ids(private)),
        page_at(private, "/compare", judges=ids(private)),
    ):
        assert said in shown_text(html)
        assert ranks in shown_text(html)
    assert "± 3 true positives of noise" in board_html(private, LeaderboardQuery())


def test_a_public_suite_says_nothing_of_noise(service):
    send(service, verdicts(service.suite))
    (row_id,) = ids(service)
    assert "noise" not in board_html(service, LeaderboardQuery())
    assert "carry noise" not in page_at(service, "/judge", id=row_id)


def test_ranks_of_a_half_that_is_not_shown_are_said_to_be(service):
    service.clock = one_a_day()
    with_rules(service, is_public=False, **RULES, ranking_half=True)
    sent = send(service, verdicts(service.suite, misses=1, false_alarms=3)).submission_id
    service.moderation.publish(sent, Actor("Ada"))
    for _ in range(8):
        service.clock()
    told = shown_text(board_html(service, LeaderboardQuery()))
    assert "Ranks come from a half of the tasks that is not shown" in told


def test_comparing_evaluates_no_verdicts_against_labels_or_each_other(private):
    text = shown_text(page_at(private, "/compare", judges=ids(private)))
    assert "The labels of this suite are private, so judges are not compared trajectory by trajectory" in text
    for told in (
        "Ensemble says yes if",
        "Error overlap Judges wrong",
        "Every pair, trajectory by trajectory",
        "McNemar's test asks",
    ):
        assert told not in text


def test_a_judges_score_is_not_evaluated_against_labels(private):
    for row in private.records.board().rows:
        facts = file_facts(private, row, "success")
        assert facts["calibration"] is None
        assert "labels of this suite are private" in facts["calibration_absent"]
        assert "<figure" not in page_at(private, "/judge", id=row.id)


def test_the_explorer_shows_no_verdicts_of_files_that_were_sent(private):
    judges = SubmittedJudges(private)
    assert judges.of_suite(private.suite.name) == ()
    trajectory = private.suite.split("test")[0].trajectory_id
    assert judges.reasoning(private.suite.name, ids(private)[0], trajectory) is None


def test_success_rates_have_no_experts_and_only_of_rows_on_the_board(private):
    text = shown_text(page_at(private, "/rates", by=ids(private)))
    assert "Experts" not in text
    assert "verdicts scored here" in text
    hidden = shown_text(page_at(private, "/rates", by=[kept_to_herself(private)]))
    assert "There is no evaluator with the id" in hidden


@pytest.mark.parametrize("row", ["kept to herself", "hidden by a maintainer"])
def test_pages_by_id_show_nothing_of_rows_that_are_not_on_the_board(private, row):
    row_id = kept_to_herself(private)
    if row == "hidden by a maintainer":
        row_id = ids(private)[0]
        private.moderation.decide("hidden", row_id, Actor("Grace", is_maintainer=True), "a test")
    assert "No judge on the board has this id." in page_at(private, "/judge", status=404, id=row_id)
    assert "not on the board" in page_at(private, "/compare", judges=[row_id, *ids(private)], figure="f1")
    assert "There is no evaluator with the id" in shown_text(page_at(private, "/rates", by=[row_id]))


def test_the_paper_tables_read_no_private_labels_of_a_suite_by_the_official_name(private, monkeypatch):
    private.__dict__["suite"] = replace(private.suite, name=OFFICIAL)
    monkeypatch.setattr(type(private.labels), "test", property(lambda self: pytest.fail("labels were read")))
    assert (
        PaperTables(private, JudgeVerdicts(private, Explorer(private.settings, private))).get(1) is not None
    )


def test_what_is_taken_along_says_the_noise(private):
    board = private.records.board()
    assert "± 3 true positives" in eval_results_yaml(board, board.rows[0], private.suite.profile)
    figures = judges_response(board)["judges"][0]["figures"]["success"]
    assert figures["noise"] == {"tp_sd": 3.0, "positives_sd": 3.0}


def test_what_is_shown_of_files_is_the_same_under_any_labels(private):
    row_id = ids(private)[0]
    before = (
        file_facts(private, private.records.board().rows[0], "success"),
        page_at(private, "/rates", by=[row_id]).partition('id="rates-training"')[0],
    )
    primary = private.labels.test.primary["success"]
    changed = dict(private.labels.test.primary) | {"success": np.where(primary == 1, 0, 1).astype(np.int8)}
    object.__setattr__(private.labels.test, "primary", changed)
    after = (
        file_facts(private, private.records.board().rows[0], "success"),
        page_at(private, "/rates", by=[row_id]).partition('id="rates-training"')[0],
    )
    assert before == after


def test_the_about_page_tells_rules_budget_key_and_head_of_the_chain(private):
    from submissions.records.database import snapshot
    from submissions.records.event_log import head

    text = shown_text(page_at(private, "/about"))
    for rule in ("private_noise±6", "public_rows_a_year2", "round_days3"):
        assert rule in text.replace(" ", "")
    assert private.signer.public_key in text
    assert f"arb submissions receipt FILE --key {private.signer.public_key}" in text
    with snapshot(private.engine) as session:
        assert head(session)[1] in text
    # 20 files at 6 and 2 rows at 3 with benchmarks at 6: rho 20/72 + 2/18 = 0.389, epsilon 0.389 + 4.636;
    # 20 accounts 7.78 + 20.73.
    for budget in ("an epsilon of at most 5.02", "all accounts together, the limit is 28.51"):
        assert budget in text
    leak = private.records.leak.get()
    assert f"{private.label_version}{leak.total.figures}{leak.total.epsilon:.2f}" in text.replace(" ", "")


def test_the_about_page_of_a_public_suite_says_why_figures_are_exact(service):
    text = shown_text(page_at(service, "/about"))
    assert "All metrics of this suite are exact, with no noise and no budget, because" in text
    assert "private_noise" not in text
    assert "files_a_day" in text
