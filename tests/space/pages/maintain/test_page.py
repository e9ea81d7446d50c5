"""The maintainers' page: what waits, exact figures, what may be decided; for anybody else one refusal."""

import re

import pytest

from submissions.app import SubmissionsApp
from submissions.intake.accounts import Actor
from submissions.scoring.rescore import rescore
from tests.space.conftest import shown_text, tags_and_attributes
from tests.support.clocks import one_a_day
from tests.support.space_app import local_client, signed_in
from tests.support.submissions import SECRET_ANNOTATOR, send, verdicts, with_rules

GRACE = Actor("Grace", is_maintainer=True)


def maintain(service, query="") -> str:
    answer = local_client(service).get(f"/maintain{query}", headers=signed_in(service, "Grace"))
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    return answer.text


def section(html: str, name: str) -> str:
    return re.search(rf'<section aria-labelledby="{name}">.*?</section>', html, re.S)[0]


def test_everybody_else_gets_one_and_the_same_refusal(service):
    sent = send(service, verdicts(service.suite)).submission_id
    client = local_client(service)
    answers = [client.get("/maintain", headers=headers) for headers in ({}, signed_in(service, "Ada"))]
    assert [answer.status_code for answer in answers] == [403, 403]
    assert answers[0].content == answers[1].content
    assert sent not in answers[0].text


def test_an_empty_place_says_so(service):
    text = shown_text(maintain(service))
    assert "There is nothing to review:" in text
    assert "There are no submissions yet." in text
    assert "No event of this kind." in text


def test_the_queue_tells_why_and_offers_what_makes_sense(service):
    with_rules(service, is_public=False, fewest_positives=30)
    held = send(service, verdicts(service.suite)).submission_id
    queue = section(maintain(service), "queue")
    assert "Held" in shown_text(queue) and "30" in shown_text(queue)
    assert set(re.findall(r'<option value="(\w+)"', queue)) == {
        "released", "hidden", "verified", "rejected", "label_exposed",
    }  # fmt: skip
    service.moderation.decide("rejected", held, GRACE, "too few")
    html = maintain(service)
    assert "There is nothing to review" in shown_text(section(html, "queue"))
    assert '<option value="released"' not in section(html, "submissions")


def test_look_alikes_and_equal_verdicts_are_in_the_queue(service):
    send(service, verdicts(service.suite), judge="Alpha")
    send(service, verdicts(service.suite, comment=1), judge="Аlpha", account="Bob")  # a Cyrillic A
    text = shown_text(section(maintain(service), "queue"))
    assert "Look-alike name: its name looks like that of the older judge 'Alpha' by Ada." in text
    assert "Same verdicts: it has the same verdicts as" in text


def test_figures_are_exact_in_a_private_suite_too(service):
    with_rules(service, is_public=False, fewest_positives=1)
    send(service, verdicts(service.suite, misses=4, false_alarms=2))
    text = shown_text(section(maintain(service), "submissions"))
    # 10 positives, 4 missed, 2 false alarms of 20: precision 6/8, recall 6/10
    assert "Success 75.0 / 60.0 TP 6 FP 2 FN 4 TN 18" in text
    assert "on the board" not in text  # it is not public


@pytest.mark.slow
def test_submissions_are_found_by_words_and_come_in_pages(service):
    for misses in range(9):
        for alarms in range(3):
            send(
                service,
                verdicts(service.suite, misses=misses, false_alarms=alarms),
                judge=f"J{misses}x{alarms}",
            )
    assert section(maintain(service), "submissions").count("<tr id=") == 25
    assert section(maintain(service, "?page=2"), "submissions").count("<tr id=") == 2
    assert section(maintain(service, "?q=ada+J3x1"), "submissions").count("<tr id=") == 1
    assert "No submission matches." in shown_text(maintain(service, "?q=nothing"))


def test_the_log_is_paged_by_kind_and_holds_nothing_of_labels(service):
    sent = send(service, verdicts(service.suite)).submission_id
    service.moderation.decide("hidden", sent, GRACE, "a reason of ours")
    log = section(maintain(service), "log")
    assert "a reason of ours" in log
    for word in ("counts by task", "counts_by_task", "precision", SECRET_ANNOTATOR):
        assert word not in log
    assert "a reason of ours" not in section(maintain(service, "?kind=submitted"), "log")
    assert "a reason of ours" not in section(maintain(service, "?before=3"), "log")


@pytest.mark.slow
def test_places_before_and_after_a_rescoring_and_the_old_boards(service, suite_folder, tmp_path):
    send(service, verdicts(service.suite), judge="Right")
    send(service, verdicts(service.suite, false_alarms=5), judge="Noisy")
    before = service.records.board().to_bytes()
    lines = (suite_folder / "labels.csv").read_text().splitlines()
    swap = {"Successful": "Unsuccessful", "Unsuccessful": "Successful"}
    for place in range(1, 7):  # see test_rescoring: Noisy comes out first
        cells = lines[place].split(",")
        lines[place] = ",".join([*cells[:5], swap[cells[5]], *cells[6:]])
    (tmp_path / "labels.csv").write_text("\n".join(lines) + "\n")
    corrected = SubmissionsApp(
        service.settings.model_copy(update={"labels": f"csv:{tmp_path / 'labels.csv'}"})
    )
    rescore(corrected, GRACE)
    told = shown_text(section(maintain(corrected), "rescoring"))
    assert "Noisy by Ada21Right by Ada12" in told.replace(" ", " ").replace("\n", "")
    client = local_client(corrected)
    versions = client.get("/api/boards").json()["label_versions"]
    assert versions == [service.label_version, corrected.label_version]
    assert client.get(f"/api/boards/{versions[0]}").content == before
    assert client.get("/api/boards/0123456789ab").status_code == 404


def test_old_boards_of_private_labels_are_for_maintainers(service):
    with_rules(service, is_public=False, fewest_positives=1)
    send(service, verdicts(service.suite))
    client = local_client(service)
    for path in ("/api/boards", f"/api/boards/{service.label_version}"):
        assert client.get(path).status_code == 404
        assert client.get(path, headers=signed_in(service, "Ada")).status_code == 404
        assert client.get(path, headers=signed_in(service, "Grace")).status_code == 200


def test_the_leak_budget_has_the_highest_first(service):
    service.clock = one_a_day()
    with_rules(service, is_public=False, fewest_positives=1, private_noise=6.0, ranking_half=False)
    send(service, verdicts(service.suite, misses=1), account="Ada")
    for misses in (2, 3):
        send(service, verdicts(service.suite, misses=misses), account="Bob")
    told = section(maintain(service), "leak")
    accounts = re.search(r"Leak budget: Account.*?</table>", told, re.S)[0]
    # sd 6: rho = 1/72 a figure. Two: 2/72 + 2 sqrt(2/72 * 13.816) = 1.27; one: 0.89
    line = r'<th scope="row">(\w+)</th><td class="number">(\d)</td><td class="number">([\d.]+)'
    assert re.findall(line, accounts) == [
        ("Bob", "2", "1.27"), ("Ada", "1", "0.89"),
    ]  # fmt: skip


@pytest.mark.slow
def test_hostile_names_and_reasons_come_back_as_text(service, hostile):
    first = send(service, verdicts(service.suite), judge="plain").submission_id
    service.moderation.decide("hidden", first, GRACE, "plain")
    service.moderation.decide_account("banned", "plain", GRACE, "plain", even_if_unknown=True)
    plain = tags_and_attributes(maintain(service))
    service.moderation.rename("Ada", "plain", hostile[:80], Actor("Ada"))
    service.moderation.decide("shown", first, GRACE, hostile)
    service.moderation.decide_account("banned", hostile, GRACE, hostile, even_if_unknown=True)
    html = maintain(service, "?q=" + "%22%3E%3Cscript%3E")
    assert tags_and_attributes(maintain(service)) == plain
    assert "<script>alert" not in html
    assert '"><script>' not in html
