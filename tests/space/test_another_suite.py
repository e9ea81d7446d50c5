"""Tests that pages, REST and the Hub show the suite's name, and AgentRewardBench only as the software."""

import json
import re
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from arb.core.settings import Settings
from arb.core.suite import load_suite
from arb.core.suites.profile import OPTIONAL_PAGES
from dataset_script.card import CardFacts, render_card, render_eval_yaml
from leaderboard.board.every_eval_ever import every_eval_ever
from space.app import create_app
from space.deploy.deployer import Deployment, render_file
from submissions.app import SubmissionsApp
from submissions.hub.board_copy import board_files
from tests.space.test_permissions import routes_of
from tests.support.space_app import HOST, MAINTAINER, signed_in
from tests.support.submissions import send, settings_for, verdicts, write_suite

NAME = re.compile(r"agent.?reward.?bench", re.IGNORECASE)
SUITE = """title = "Our Bench"
description = "Runs of two agents on the shops of our lab."
citation = "@misc{ours2026, title = {Our Bench}}"
labels = "LABELS"
[links]
data = "https://huggingface.co/datasets/our-lab/our-bench"
[[targets]]
name = "success"
text = "Did the agent reach the goal?"
answers = [{ value = "yes" }, { value = "no" }]
[[targets]]
name = "report"
text = "Is what it reported at the end what it had done?"
answers = [{ value = "true" }, { value = "false" }, { value = "none", title = "No report" }]
metrics = []
[[targets]]
name = "care"
text = "Did it check its work before it stopped?"
answers = [{ value = "checked" }, { value = "unchecked" }]
metrics = []
[rules]
files_a_day = 99
fewest_positives = 1
ranking_half = false
"""
ALWAYS = ("/", "/judge", "/about", "/mine", "/maintain", "/annotate", "/discuss", "/sign-in", "/nowhere")


def own_settings(folder: Path, labels: str, more: str = "") -> Settings:
    """Return settings of the suite "Our Bench" in a folder, with public or private labels."""
    suite = write_suite(folder).rename(folder / "our-bench")
    (suite / "suite.toml").write_text(SUITE.replace("LABELS", labels) + more)
    return settings_for(folder, folder / "state", suite=str(suite), maintainers=MAINTAINER)


class Ours:
    """Run the application of "Our Bench" with a scored submission, as a maintainer."""

    def __init__(self, settings: Settings, client: TestClient, app: FastAPI, submission: str) -> None:
        self.settings, self.client, self.app, self.submission = settings, client, app, submission
        self.service = SubmissionsApp(settings)


@pytest.fixture(scope="module", params=["public", "private"])
def ours(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ours")
    settings = own_settings(folder, request.param)
    service = SubmissionsApp(settings)
    receipt = send(service, verdicts(service.suite, misses=2, false_alarms=4), account=MAINTAINER)
    app = create_app(settings)
    headers = {**signed_in(service, MAINTAINER), "accept": "text/html"}
    with TestClient(app, base_url=f"http://{HOST}", headers=headers) as client:
        yield Ours(settings, client, app, receipt.submission_id)


def addresses(ours: Ours) -> list[str]:
    """Return every address without a parameter in its path, and some with parameters."""
    plain = {
        line.removeprefix("GET ")
        for line in routes_of(ours.app.routes)
        if line.startswith("GET /") and "{" not in line
    }
    assert {"/", "/about", "/api/board.json", "/annotate", "/maintain"} < plain
    sample = load_suite("sample").split("dev")[0].trajectory_id
    chosen = (
        f"/judge?id={ours.submission}",
        f"/compare?judges={ours.submission},reference/always",
        f"/trajectories?id={sample}",
        f"/errors?judge={ours.submission}",
        f"/mine/{ours.submission}",
        f"/api/submissions/{ours.submission}",
        "/api/template?split=dev&format=jsonl",
        "/sign-in",
        "/nowhere",
        "/config",
        "/gradio_api/info",
        "/robots.txt",
    )
    return [*sorted(plain), *chosen]


def test_no_page_and_no_answer_names_another_benchmark_but_to_cite_the_software(ours):
    titles, found = set(), []
    for address in addresses(ours):
        answer = ours.client.get(address)
        text = answer.text
        if address == "/about":
            text, citation = cut_citation(text)
            assert "@misc{ours2026" in citation and "runs on the software of AgentRewardBench" in citation
        found += [f"{address}: …{text[m.start() - 60 : m.end() + 60]}…" for m in NAME.finditer(text)]
        found += [f"{address}: {name}: {each}" for name, each in answer.headers.items() if NAME.search(each)]
        titles.update(re.findall(r"<title>[^<]* · ([^<]*)</title>\s*<meta", text))
    assert found == []
    assert titles == {"Our Bench"}


def cut_citation(html: str) -> tuple[str, str]:
    """Return the page without its section about citing, and that section."""
    before, _, rest = html.partition('<section aria-labelledby="citation">')
    section, _, after = rest.partition("</section>")
    assert section
    return before + after, section


def test_what_is_only_true_of_the_paper_is_not_written(ours):
    plain = ("/", "/rates", "/errors", "/compare", "/submit", "/annotate")
    for path in (*plain, f"/judge?id={ours.submission}"):
        assert not re.search(r"\bpapers?\b", ours.client.get(path).text), path
    text = cut_citation(ours.client.get("/about").text)[0]
    assert not re.search(r"\bpaper|Lù et al|WebArena|wheel", text)
    assert "Runs of two agents on the shops of our lab." in text
    assert "/paper" not in text and ours.client.get("/paper").status_code == 404


def test_programs_find_the_suites_name(ours):
    assert ours.client.get("/api/openapi.json").json()["info"]["title"] == "Our Bench"
    assert ours.client.get("/config").json()["title"] == "Our Bench"
    disposition = ours.client.get("/api/board.csv").headers["content-disposition"]
    assert disposition == 'attachment; filename="our-bench-board.csv"'
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    accept = {"accept": "application/json, text/event-stream"}
    answer = ours.client.post("/mcp", json=body, headers=accept)
    assert answer.json()["result"]["serverInfo"]["name"] == "our-bench"
    assert answer.json()["result"]["instructions"].startswith("Our Bench ranks")
    assert not NAME.search(answer.text)


def test_what_goes_to_the_hub_names_the_suite(ours):
    suite, board = ours.service.suite, ours.service.records.board()
    deployment = Deployment(
        "lab/board", "lab/ours", "lab/records", None, suite.name, "none", ("ada",), suite.profile
    )
    space = render_file("README.md", deployment)
    counts = {"dev": {"shop": 1}, "test": {"shop": 2}}
    rows = {"trajectories": {"dev": 1, "test": 2}}
    card = render_card(CardFacts(suite.name, counts, rows, profile=suite.profile))
    before, _, citation = card.partition("## Citation")
    files = {
        "Space": space,
        "data": before,
        "eval.yaml": render_eval_yaml(suite.name, suite.profile.title, ["test"]),
        **{name: content.decode() for name, content in board_files(board, suite.profile.title).items()},
        **{name: content.decode() for name, content in every_eval_ever(board, 0).items()},
    }
    assert {name: NAME.findall(text) for name, text in files.items() if NAME.search(text)} == {}
    assert "# Our Bench\n" in space and "# Our Bench\n" in card
    assert "@misc{ours2026" in citation and "Made with the software of AgentRewardBench" in citation


def test_a_page_that_is_switched_off_is_not_found_and_nothing_leads_to_it(tmp_path):
    off = "\n[pages]\n" + "".join(f"{name} = false\n" for name in OPTIONAL_PAGES)
    settings = own_settings(tmp_path, "public", off)
    service = SubmissionsApp(settings)
    submission = send(service, verdicts(service.suite, misses=2, false_alarms=4)).submission_id
    closed = {f"/{name}" for name in OPTIONAL_PAGES}
    headers = {**signed_in(service, MAINTAINER), "accept": "text/html"}
    parts = ("/trajectories/reasoning", "/trajectories/steps")
    with TestClient(create_app(settings), base_url=f"http://{HOST}", headers=headers) as client:
        for path in (*sorted(closed), "/trajectories?id=x", *parts, "/submit/"):
            answer = client.get(path)
            assert answer.status_code == 404 and "There is no such page" in answer.text, path
        assert client.get("/paper", headers={"accept": "application/json"}).json() == {"detail": "Not Found"}
        for path in (*ALWAYS, f"/judge?id={submission}"):
            answer = client.get(path)
            targets = re.findall(r'(?:href|action)="(/[^"?#]*)', answer.text)
            assert "/" in targets and not closed & {f"/{each.split('/')[1]}" for each in targets}, path
            assert 'class="pick"' not in answer.text  # would open a comparison
        rows = client.get("/api/board.json").json()["rows"]
        assert submission in json.dumps(rows)  # REST is as it was
