import re

import pytest

from arb.core.settings import Settings
from space.pages.judge.page import neighbours
from space.web.cells import short_name
from space.web.query import link_to
from submissions.app import SubmissionsApp
from tests.space.conftest import shown_text
from tests.space.pages.conftest import page_at
from tests.support.space_app import (
    local_client,
    make_public,
    private_service,
    with_scores,
)
from tests.support.submissions import SECRET_ANNOTATOR, send, verdicts


def page_of(service, row_id, label="success", status=200) -> str:
    """The page between menu and foot."""
    html = page_at(service, "/judge", status=status, id=row_id, label=label)
    return re.search(r"<main.*?</main>", html, re.S)[0]


def test_the_page_tells_what_it_is_how_good_and_where(public):
    service, ids = public
    html = page_of(service, ids["Beta"])
    text = shown_text(html)
    # 8 of 12, 8 of 10
    assert "When it says yes, it is right about 67 of 100 trajectories. It finds 80 of 100 positives." in text
    assert (
        re.findall(r'class="number main[^"]*"[^>]*data-heading="Precision"><a[^>]*>([^<]*)<', html)[0]
        == "66.7"
    )
    for part in (
        "By benchmark",
        "By agent",
        "AssistantBench",
        "agent-a",
        "false alarms",
        "Key findings",
    ):
        assert part in text
    assert "LLM judge · tree · some-model · by Ada" in text


def test_the_confusion_counts_add_up(public):
    service, ids = public
    table = re.search(r'<table class="confusion">.*?</table>', page_of(service, ids["Beta"]), re.S)[0]
    numbers = [int(n) for n in re.findall(r"<(?:strong|a[^>]*|td[^>]*)>(\d+)<", table)]
    # TP 8, FP 4, 12 in all; FN 2, TN 16, 18 in all; 10 and 20 of 30
    assert numbers == [8, 4, 12, 2, 16, 18, 10, 20, 30]


def test_a_score_is_evaluated_against_public_labels(public):
    service, _ = public
    content = with_scores(verdicts(service.suite, misses=2, false_alarms=4))
    text = shown_text(page_of(service, send(service, content, judge="Scored").submission_id))
    assert "Calibration of its score" in text
    # Score 0.9 on 12 runs (8 true), 0.2 on 18 (2 true): Brier (8*.01 + 4*.81 + 2*.64 + 16*.04) / 30 = 0.175
    assert "Its Brier score is 0.175" in text
    assert "score 0.9 to 1: 12 trajectories, mean score 90.0, 66.7 of them positive" in text
    assert "Choose it on dev" in text


def test_a_score_is_not_evaluated_against_private_labels(tmp_path):
    service = private_service(tmp_path)
    sent = send(service, with_scores(verdicts(service.suite, misses=2))).submission_id
    make_public(service, [sent])
    text = shown_text(page_of(service, sent))
    assert "The labels of this suite are private, so scores are not evaluated against them here" in text
    assert "Brier" not in text and "of them positive" not in text


def test_costs_are_told_where_the_file_gives_them(public):
    service, ids = public
    priced = send(
        service, verdicts(service.suite, cost_usd=0.0125, latency_s=3), judge="Priced"
    ).submission_id
    text = shown_text(page_of(service, priced))
    assert "1,000 trajectories$12.50" in text
    assert "3.0 s (median)" in text
    assert "Its file has no costs" in shown_text(page_of(service, ids["Alpha"]))


def test_every_submission_of_the_judge_is_a_link(public):
    service, ids = public
    second = send(service, verdicts(service.suite, misses=5), judge="Alpha").submission_id
    html = page_of(service, second)
    assert f'<a href="/judge?id={ids["Alpha"]}">' in html
    assert "It is not ranked: another submission of the judge is ranked." in html
    assert "2 scored" in shown_text(html)


def test_used_test_labels_are_told(public):
    service, _ = public
    used = send(service, verdicts(service.suite, misses=4), judge="Open", test_labels_used=True).submission_id
    assert "declared that test labels were used" in page_of(service, used)


def test_the_neighbours_in_the_ranking_can_be_compared(public):
    service, ids = public
    board = service.records.board()
    beta = next(row for row in board.rows if row.id == ids["Beta"])
    # Alpha 100, Beta 66.7, Gamma 33.3
    assert neighbours(board, beta, "success") == [
        ("Alpha (tree)", f"/compare?judges={ids['Beta']},{ids['Alpha']}"),
        ("Gamma (tree)", f"/compare?judges={ids['Beta']},{ids['Gamma']}"),
    ]


def test_rows_of_the_paper_say_what_is_not_known(tmp_path):
    service = SubmissionsApp(Settings(labels="none", state_dir=tmp_path))
    text = shown_text(page_of(service, "paper/gpt-4o-tree"))
    # Table 1: precision 69.8, recall 83.1
    for told in (
        "69.8",
        "83.1",
        "approximate: they are computed from counts",
        "This server has no file of this judge",
        "AgentRewardBench paper, Tables 7 and 8",
    ):
        assert told in text
    assert "File and receipt" not in text


@pytest.mark.parametrize("label", ["success", "side_effect", "repetition"])
def test_every_row_of_the_official_board_has_a_page(tmp_path, label):
    service = SubmissionsApp(Settings(labels="none", state_dir=tmp_path))
    client = local_client(service)
    for row in service.records.board().rows:
        html = client.get(link_to("/judge", id=row.id, label=label)).text
        assert f"<h1>{short_name(row)}</h1>" in html
        assert ('class="sheet judge-figures' in html) == bool(row.labels[label])


def test_a_label_that_the_judge_does_not_answer_leads_to_those_it_does(public):
    service, ids = public
    html = page_of(service, ids["Alpha"], "repetition")
    assert "This judge gives no verdicts on this label (repetition)." in html
    assert f'href="/judge?id={ids["Alpha"]}"' in html


@pytest.mark.parametrize("row_id", ["gone", "<script>alert(1)</script>", "../../etc/passwd", "a\x00b"])
def test_an_id_that_is_not_on_the_board_is_a_404_that_leads_on(public, row_id):
    service, ids = public
    html = page_of(service, row_id, status=404)
    assert "There is no such judge" in html
    assert f'href="/judge?id={ids["Alpha"]}"' in html
    assert row_id not in html


def test_without_an_id_every_judge_is_offered_once(public):
    service, ids = public
    send(service, verdicts(service.suite, misses=5), judge="Alpha")
    html = page_of(service, "")
    assert "<h1>Choose a judge</h1>" in html
    assert re.findall(r'href="/judge\?id=([^"]+)"', html) == [ids["Alpha"], ids["Beta"], ids["Gamma"]]


def test_no_label_and_no_trajectory_is_on_the_page(public):
    service, ids = public
    scored = send(service, with_scores(verdicts(service.suite)), judge="Scored").submission_id
    for row_id in (ids["Alpha"], scored):
        html = page_of(service, row_id)
        for hidden in (
            "webarena.3",
            "agent-a/",
            "counts_by_task",
            SECRET_ANNOTATOR,
            str(service.settings.state_dir),
        ):
            assert hidden not in html


def test_a_lost_file_leaves_the_figures(public):
    service, ids = public
    row = next(row for row in service.records.board().rows if row.id == ids["Beta"])
    service.files.path(row.file_sha256).unlink()
    text = shown_text(page_of(service, ids["Beta"]))
    assert "Its file cannot be read at the moment." in text
    assert "66.7" in text


def test_every_element_id_that_is_referred_to_is_there_once(public):
    service, _ = public
    scored = send(service, with_scores(verdicts(service.suite, cost_usd=1)), judge="Scored").submission_id
    html = page_of(service, scored)
    defined = re.findall(r'\bid="([^"]+)"', html)
    assert len(defined) == len(set(defined))
    referred = re.findall(r'(?:aria-labelledby|data-copy)="([^"]+)"', html)
    assert set(referred) <= set(defined)


def test_a_label_that_is_none_is_told_and_not_echoed(public, hostile):
    service, ids = public
    html = page_of(service, ids["Beta"], hostile, status=422)
    assert "The address of this page has an invalid value for label." in html
    assert hostile not in html


def test_an_address_of_any_bytes_is_answered(public):
    service, _ = public
    assert local_client(service).get("/judge?id=%ff%00&label=%c3%28&id=" + "x" * 9000).status_code == 404
