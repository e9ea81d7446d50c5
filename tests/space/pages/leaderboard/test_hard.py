"""The Hard subset as a filter of the board, with the real verdicts of the judges that define it."""

import re

import pytest

from arb.core.judge_info import declare
from space.web.query import link_to
from submissions.app import SubmissionsApp
from submissions.intake.accounts import Actor
from tests.space.conftest import shown_text
from tests.support.clocks import one_a_day
from tests.support.space_app import local_client, private_service

pytestmark = [pytest.mark.labels, pytest.mark.shared]


@pytest.fixture(scope="module")
def files(shared):
    return shared / "data" / "agent-reward-bench" / "verdicts"


@pytest.fixture(scope="module")
def client(official_settings, files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("hard")
    return local_client(
        SubmissionsApp(official_settings.model_copy(update={"state_dir": folder, "paper_verdicts": files}))
    )


def hard_page(client, status=200, **choice) -> str:
    answer = client.get(link_to("/", subset="hard", **choice))
    assert answer.status_code == status
    return answer.text


def line_of(html: str, row_id: str) -> list[str]:
    """Return the numbers in a row of the table."""
    row = re.search(rf'<tr class="[^"]*" data-row="{re.escape(row_id)}">(.*?)</tr>', html, re.S)
    return re.findall(r"\d+(?:\.\d+)?", shown_text(" ".join(re.findall(r"<td.*?</td>", row[1], re.S))))


def test_it_shows_recall_on_successes_and_failures_and_no_precision(client):
    html = hard_page(client)
    # every number here was also counted from the files and annotations.csv with dictionaries alone
    assert "Hard subset: 198 trajectories" in html
    # 27/74 = 36.5, 63/79 = 79.7, (36.5 + 79.7) / 2 = 58.1
    assert line_of(html, "paper/rule-based")[:4] == ["58.1", "36.5", "27", "74"]
    assert {"79.7", "63", "79"} < set(line_of(html, "paper/rule-based"))
    # of 16 with a second annotation: 4/6 = 66.7, 7/10 = 70.0
    assert line_of(html, "reference/second-annotator")[:4] == ["68.3", "66.7", "4", "6"]
    text = shown_text(html)
    assert "A second annotator answered 16 of the 198 trajectories, and gave another answer" in text
    assert "There is no precision here" in text and 'data-heading="Precision"' not in html
    assert 'id="plots"' not in html


def test_it_says_how_it_is_defined_and_who_votes(client):
    text = shown_text(hard_page(client))
    assert "hard if at least two of these families of judges are wrong about it, with one vote each:" in text
    assert "WebJudge (majority of WebJudge (o4-mini), WebJudge-7B, WebJudge (GPT-4o))" in text
    assert text.count("WebJudge does not vote") == 3
    assert "No verdicts are known" not in text


def test_it_has_only_rows_with_known_verdicts_and_keeps_the_other_filters(client):
    html = hard_page(client)
    assert html.count('data-row="paper/') == 3 and html.count('data-row="reported/webjudge') == 3
    assert "paper/gpt-4o-tree" not in html
    assert 'data-row="paper/rule-based"' not in hard_page(client, kind="LLM judge")
    assert "Hard subset: 54 trajectories" in hard_page(client, agent="GenericAgent-gpt-4o-2024-11-20")
    assert "No judge that fits the filters has known verdicts." in hard_page(client, q="nobody")


def test_of_other_labels_there_is_no_hard_subset(client):
    text = shown_text(hard_page(client, label="side_effect"))
    assert "Choose Success to see it." in text and "Hard subset:" not in text


@pytest.mark.slow
def test_it_is_not_offered_with_fewer_than_three_families(official_settings, tmp_path):
    client = local_client(SubmissionsApp(official_settings.model_copy(update={"state_dir": tmp_path})))
    assert 'name="subset"' not in client.get("/").text
    text = shown_text(hard_page(client, status=422))
    assert "invalid value for subset" in text and "Hard subset:" not in text


@pytest.mark.slow
def test_submissions_vote_only_after_a_maintainer_verified_them(official_settings, files, tmp_path):
    """Nobody can change the subset by sending a file named after a known judge."""
    settings = official_settings.model_copy(update={"state_dir": tmp_path})
    service = SubmissionsApp(settings, clock=one_a_day())
    ids = []
    for name in ("aer-c", "nnetnav"):
        declared = declare(
            account="Ada", judge=name, kind="LLM judge", inputs="caption", test_labels_used=False
        )
        upload = service.intake.check((files / f"{name}.jsonl").read_bytes(), f"{name}.jsonl", "test")
        ids.append(service.intake.submit(upload, declared).receipt.submission_id)
    client = local_client(service)
    assert 'name="subset"' not in client.get("/").text
    for submission_id in ids:
        service.moderation.decide("verified", submission_id, Actor("Mia", is_maintainer=True), "reproduced")
    html = hard_page(client)
    assert "No verdicts are known here of Rule-based." in shown_text(html)
    assert line_of(html, ids[0]) and html.count("AER-C does not vote") == 1


def test_private_labels_define_none(tmp_path):
    client = local_client(private_service(tmp_path))
    assert "Hard subset:" not in shown_text(hard_page(client, status=422))
