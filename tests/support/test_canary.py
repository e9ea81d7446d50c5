"""The labels of a private suite, by words and by counts that occur nowhere else, stay where they are.

`canary` watches for the words during the whole run. Here a suite of 307 test trajectories has 139 positives,
and a file calls 173 positive, 101 of them rightly: the exact figures that follow are looked for in everything
that anybody but a maintainer gets.
"""

import csv
import json
import logging
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from starlette.testclient import TestClient

from arb.core.judge_info import declare
from arb.core.settings import Settings
from leaderboard.board.export import write_static_site
from space.app import create_app
from submissions.app import SubmissionsApp
from submissions.intake.accounts import Actor
from tests.support.canary import CANARIES, Watch, files_with_canaries, watching
from tests.support.permissions import QUERIES, expected
from tests.support.submissions import FORM, RELEASED_HEADER

N, POSITIVES, CALLED, RIGHT = 307, 139, 173, 101
# TP 101, FP 72, FN 38, TN 96
EXACT = (RIGHT / CALLED, RIGHT / POSITIVES, 2 * RIGHT / (CALLED + POSITIVES), (RIGHT + 96) / N)
RULES = """labels = "private"
[rules]
ranking_half = false
round_days = 1
private_noise = 40
public_noise = 40
"""
"""So much noise that, with the secret below, no noisy count is the exact one by chance."""


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Settings of the suite, with one submission that is on its board."""
    folder = tmp_path_factory.mktemp("planted")
    suite = folder / "planted"
    suite.mkdir()
    ids = sorted(f"webarena/agent-a/webarena.{n}" for n in range(N))
    with (suite / "trajectories.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("trajectory_id", "split"), *((name, "test") for name in ids)])
    (suite / "suite.toml").write_text(RULES)
    with (folder / "labels.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(RELEASED_HEADER)
        for place, name in enumerate(ids):
            said = "Successful" if place < POSITIVES else "Unsuccessful"
            benchmark, agent, task = name.split("/")
            writer.writerow(
                (CANARIES[0], benchmark, task, agent, CANARIES[1], said, "No", "2. Suboptimal", "No")
            )
    settings = Settings(
        suite=str(suite), labels=f"csv:{folder / 'labels.csv'}", state_dir=folder / "state",
        secret="71e06187218573b25d2e1c799ab538ec", maintainers="Mia",
    )  # fmt: skip
    # Right about the first 101 positives, wrong about the first 72 negatives.
    calls = [place < RIGHT or POSITIVES <= place < POSITIVES + CALLED - RIGHT for place in range(N)]
    lines = [json.dumps({"trajectory_id": t, "success": c}) for t, c in zip(ids, calls, strict=True)]
    moment = [datetime.now(UTC) - timedelta(days=3)]
    service = SubmissionsApp(settings, clock=lambda: moment[0])
    upload = service.intake.check("\n".join(lines).encode(), "verdicts.jsonl", "test")
    receipt = service.intake.submit(upload, declare(**FORM)).receipt
    service.moderation.publish(receipt.submission_id, Actor("Ada"))
    return settings, receipt.submission_id


def assert_nothing_exact(text: str, where: str) -> None:
    """No exact figure, no exact count as one, and none of the words."""
    for figure in EXACT:
        assert repr(figure) not in text, f"{where} tells {figure}"
        is_of_the_paper = where.startswith("GET /paper")  # whose tables show many percentages
        assert is_of_the_paper or f"{100 * figure:.1f}<" not in text, f"{where} shows {figure}"
    for name, count in (("tp", RIGHT), ("fp", CALLED - RIGHT), ("fn", POSITIVES - RIGHT), ("tn", 96)):
        for spelled in (f'"{name}":{count},', f'"{name}": {count},'):
            assert spelled not in text, f"{where} tells {name}"
    for canary in CANARIES:
        assert canary not in text, where


def test_the_counts_are_what_the_figures_above_say(planted):
    settings, submission_id = planted
    service = SubmissionsApp(settings)
    told = service.records.submission(submission_id, Actor("Mia", is_maintainer=True))
    cell = told.report["labels"]["success"]["overall"]
    assert [cell[name] for name in ("tp", "fp", "fn", "tn")] == [101, 72, 38, 96]
    assert [cell[name] for name in ("precision", "recall", "f1", "accuracy")] == list(EXACT)
    with pytest.raises(AssertionError, match="tells"):  # what follows can fail
        assert_nothing_exact(json.dumps(told.report), "the exact report")


@pytest.mark.slow
def test_no_page_and_no_response_reveals_exact_metrics(planted, caplog):
    settings, submission_id = planted
    app = create_app(settings)
    client = TestClient(app, follow_redirects=False, raise_server_exceptions=False)
    with caplog.at_level(logging.DEBUG), client:
        ids = {"id": submission_id}
        for route, statuses in expected().items():
            method, path = route.split()
            if method != "GET" or statuses[0] in ("stream",):
                continue
            for params in (QUERIES.get(route, {}), ids, {"judges": submission_id}):
                answer = client.get(path.replace("{id}", submission_id), params=params)
                assert_nothing_exact(answer.text, f"{route} {params}")
        board = client.get("/api/board.json").json()
        assert [row["id"] for row in board["rows"]] == [submission_id]
    assert_nothing_exact(caplog.text, "the log")


def test_the_owners_figures_and_the_static_site_are_not_exact(planted, tmp_path):
    settings, submission_id = planted
    service = SubmissionsApp(settings)
    told = service.records.submission(submission_id, Actor("Ada"))
    assert told.report["labels"]["success"]["overall"]["noise"] == {"tp_sd": 40, "positives_sd": 40}
    assert_nothing_exact(json.dumps(told.to_json()), "the owner's submission")
    write_static_site(service.records.board(), tmp_path / "site")
    for path in (tmp_path / "site").rglob("*"):
        if path.is_file():
            assert_nothing_exact(path.read_text(), path.name)


# The watch itself


def test_the_watch_sees_an_answer_and_a_log_line():
    watch = Watch(("a-word-of-this-test",))  # the run's own watch looks here too
    transport = httpx.MockTransport(lambda request: httpx.Response(200, text="so says a-word-of-this-test"))
    with watching(watch):
        httpx.Client(transport=transport).get("http://here/leak")
        logging.getLogger("some.module").warning("labels of %s", "a-word-of-this-test")
    assert watch.found == ["the answer of http://here/leak", "a log line of some.module"]


def test_a_file_with_a_canary_is_found_unless_it_is_a_label_file(tmp_path):
    kept = tmp_path / "state" / "files" / "ab"
    kept.mkdir(parents=True)
    for path in (tmp_path / "my_labels.csv", kept / ("ab" * 32), tmp_path / "board.json"):
        path.write_bytes(b"x" * ((1 << 20) - 5) + CANARIES[0].encode())  # across the end of a piece
    found = files_with_canaries(tmp_path)
    assert [path.name for path in found] == ["board.json"]
    found[0].unlink()  # or the run's own look at its end would find it
