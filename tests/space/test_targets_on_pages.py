"""Tests that pages show the targets of a suite, of any name and type, and never those of another suite."""

import gzip
import json
import re
from pathlib import Path

import pytest

from arb.core.suite import SHIPPED
from submissions.app import SubmissionsApp
from tests.space.conftest import shown_text
from tests.support.space_app import local_client
from tests.support.submissions import send, settings_for

RULES = "[rules]\nfiles_a_day = 99\nfiles_a_year = 999\n"
SOLVED = """[[targets]]
name = "solved"
title = "Solved"
text = "Did the agent solve the ticket?"
values = ["yes", "no"]
main = "balanced_accuracy"
"""
QUALITY = """[[targets]]
name = "quality"
title = "Quality"
text = "How good is its answer?"
type = "ordinal"
answers = [{ value = "1", title = "Poor" }, { value = "2", title = "Fair" }, { value = "3", title = "Good" }]
"""
OTHERS = """[[targets]]
name = "kind"
values = ["order", "search", "other"]
[[targets]]
name = "effort"
title = "Minutes"
type = "score"
"""
TICKETS = tuple(f"desk/agent-{agent}/ticket.{number:02}" for agent in "ab" for number in range(30))
KINDS = ("order", "search", "other")
ELSEWHERE = re.compile(r"\b(un)?(success\w*|side[ _]effects?|repetitions?|optimality)\b", re.IGNORECASE)
PAGES = ("/", "/judge", "/about", "/compare", "/labels", "/trajectories?split=test", "/validate")


def label_of(number: int) -> dict[str, str]:
    """Every second ticket is solved; grades and kinds alternate; the minutes grow."""
    return {
        "solved": "yes" if number % 2 == 0 else "no", "quality": str(number % 3 + 1),
        "kind": KINDS[number % 3], "effort": str(number),
    }  # fmt: skip


def verdict_lines(wrong: int) -> bytes:
    """Return a file that gives the first tickets the answers of the next one, and others the right ones."""
    lines = []
    for number, ticket in enumerate(TICKETS):
        lines.append({"trajectory_id": ticket, **label_of(number + (number < wrong))})
    return "".join(f"{json.dumps(line)}\n" for line in lines).encode()


def service_of(folder: Path, *targets: str) -> SubmissionsApp:
    """Return a service of the suite "Helpdesk" with three judges: one, six and 24 wrong tickets of 60."""
    suite = folder / "small"
    suite.mkdir()
    profile = 'title = "Helpdesk"\nnoun = "tool-use agents"\nmodalities = ["text"]\nlabels = "public"\n'
    (suite / "suite.toml").write_text(profile + RULES + "".join(targets))
    (suite / "trajectories.csv").write_text("trajectory_id,split\n" + "".join(f"{t},test\n" for t in TICKETS))
    rows = [f"{ticket},{','.join(label_of(n).values())}\n" for n, ticket in enumerate(TICKETS)]
    (suite / "test_labels.csv").write_text("trajectory_id,solved,quality,kind,effort\n" + "".join(rows))
    service = SubmissionsApp(settings_for(folder, folder / "state", labels="wheel"))
    for judge, wrong in (("Good", 1), ("Fair", 6), ("Bad", 24)):
        send(service, verdict_lines(wrong), judge=judge)
    return service


@pytest.fixture(scope="module")
def helpdesk(tmp_path_factory):
    """The suite whose main target is binary."""
    return service_of(tmp_path_factory.mktemp("helpdesk"), SOLVED, QUALITY, OTHERS)


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The suite whose main target is ordinal."""
    return service_of(tmp_path_factory.mktemp("graded"), QUALITY, SOLVED, OTHERS)


def choices(html: str, name: str) -> list[str]:
    """Return the texts of a choice on a page: of its buttons, or of its menu."""
    buttons = re.findall(rf'type="radio"[^>]* name="{name}".*?<span>(.*?)</span>', html)
    menu = re.search(rf'<select[^>]* name="{name}".*?</select>', html, re.DOTALL)
    return buttons or re.findall(r"<option[^>]*>(.*?)</option>", menu[0])


def numbers_of(html: str, judge: str) -> list[str]:
    """Return the numbers in the row of a judge on the leaderboard, the chosen metric first."""
    row = next(row for row in re.findall(r"<tr.*?</tr>", html, re.DOTALL) if f">{judge} (tree)<" in row)
    return [shown_text(cell).strip() for cell in re.findall(r'<td class="number.*?</td>', row, re.DOTALL)]


@pytest.mark.slow
@pytest.mark.parametrize("main", ["helpdesk", "graded"])
def test_pages_name_only_the_targets_of_their_suite(main, request):
    service = request.getfixturevalue(main)
    client = local_client(service)
    judges = [row.id for row in service.records.board().rows if row.provenance == "scored"]
    of_targets = [
        f"{page}&label={target.name}"
        for page in (f"/judge?id={judges[0]}", "/?every=1", f"/compare?judges={','.join(judges)}")
        for target in service.suite.scored_targets
    ]
    for address in (*PAGES, *of_targets):
        answer = client.get(address)
        assert answer.status_code == 200, address
        text = shown_text(answer.text)
        if address == "/about":
            text = text.partition("Citation")[0]
        if not address.startswith(("/trajectories", "/validate")):  # the sample; words that tables may have
            assert not ELSEWHERE.findall(text), address
        assert "web agents" not in text, address


def test_the_leaderboard_offers_each_target_and_its_own_metrics(helpdesk):
    client = local_client(helpdesk)
    html = client.get("/").text
    assert choices(html, "label") == ["Solved", "Quality", "Kind", "Minutes"]
    assert "Did the agent solve the ticket? Balanced accuracy is the mean" in shown_text(html)
    assert "what tool-use agents did" in shown_text(html)
    assert choices(html, "figure")[0] == "Precision" and "Weighted kappa" not in choices(html, "figure")
    # One wrong ticket of 60 is a solved one: recall 29/30, all 30 others right: (29/30 + 1) / 2 = 98.3 %
    assert numbers_of(html, "Good")[0] == "98.3"
    html = client.get("/?label=quality").text
    assert choices(html, "figure") == ["Weighted kappa", "Accuracy", "MAE", "Spearman"]
    assert 'id="plot-title"' not in html  # there is no precision to plot


def test_a_metric_for_which_lower_is_better_is_sorted_and_written_in_its_own_unit(helpdesk):
    html = local_client(helpdesk).get("/?label=quality&figure=mae").text
    # Of the first six tickets, four are one grade off and two (grade 3, answered 1) are two: 8 / 60 = 0.13
    assert [numbers_of(html, judge)[0] for judge in ("Good", "Fair", "Bad")] == ["0.02", "0.13", "0.53"]
    assert re.findall(r'class="name"[^>]*>(\w+) \(tree\)', html) == ["Good", "Fair", "Bad"]
    assert "Good (tree) leads with MAE 0.02." in shown_text(html)
    by_minutes = local_client(helpdesk).get("/?label=effort").text
    assert numbers_of(by_minutes, "Fair")[0] == "0.10"  # six are one minute off: 6 / 60


def test_an_unknown_target_or_metric_in_an_address_is_named_and_one_of_another_target_is_not(helpdesk):
    client = local_client(helpdesk)
    assert "has an invalid value for label, figure" in client.get("/?label=success&figure=x").text
    html = client.get("/?label=quality&figure=recall").text
    assert "invalid value" not in html and 'value="weighted_kappa" selected' in html


def test_the_page_of_a_judge_has_the_metrics_of_the_chosen_target(graded):
    client = local_client(graded)
    judge = next(row.id for row in graded.records.board().rows if row.judge == "Good")
    text = shown_text(client.get(f"/judge?id={judge}").text)
    kappa = graded.records.board().row(judge).score("quality")["overall"]["weighted_kappa"]
    assert f"Its weighted kappa is {100 * kappa:.1f}. Its rank by weighted kappa" in text
    assert "Quality: metrics with 95 % intervals" in text and "Confusion matrix" not in text
    text = shown_text(client.get(f"/judge?id={judge}&label=solved").text)
    assert "When it says yes, it is right about 100 of 100 trajectories. It finds 97 of 100" in text


def test_agents_are_rated_by_the_outcome_of_the_suite_and_errors_are_those_of_a_main_one(helpdesk, graded):
    for service in (helpdesk, graded):
        assert "Solved rates from a few labels" in shown_text(local_client(service).get("/rates").text)
    assert helpdesk.suite.profile.serves("/errors") and not graded.suite.profile.serves("/errors")


def test_rest_has_the_metrics_of_every_target(graded):
    (first, *_) = local_client(graded).get("/api/judges").json()["judges"]
    assert first["judge"] == "Good" and list(first["figures"]) == ["quality", "solved", "kind", "effort"]
    assert first["figures"]["effort"]["mae"] == pytest.approx(1 / 60)


def test_a_suite_about_parts_of_runs_shows_them_with_their_target(tmp_path):
    service = SubmissionsApp(settings_for(tmp_path, tmp_path / "state", suite="devai", labels="wheel"))
    content = gzip.decompress((SHIPPED / "devai/verdicts/agent-as-a-judge.jsonl.gz").read_bytes())
    receipt = send(service, content, judge="Agent as a judge")
    client = local_client(service)
    html = client.get("/").text
    assert choices(html, "label") == ["Requirement"]
    overall = service.records.board().row(receipt.submission_id).score("satisfied")["overall"]
    assert numbers_of(html, "Agent as a judge")[0] == f"{100 * overall['balanced_accuracy']:.1f}"
    text = shown_text(client.get(f"/judge?id={receipt.submission_id}").text)
    # 84.6 and 87.5 % are in the paper
    assert "it is right about 85 of 100 parts. It finds 88 of 100 positives." in text
    assert not ELSEWHERE.findall(text)
    assert service.suite.profile.serves("/errors") and not service.suite.profile.serves("/rates")


def test_a_suite_without_trajectories_serves_its_board(tmp_path):
    settings = settings_for(tmp_path, tmp_path / "state", suite="online-mind2web", labels="wheel")
    service = SubmissionsApp(settings)
    text = shown_text(local_client(service).get("/").text)
    assert "of 6 agents. The main question: Did the agent reach the goal?" in text
    assert not service.suite.profile.serves("/trajectories") and service.suite.profile.serves("/rates")
