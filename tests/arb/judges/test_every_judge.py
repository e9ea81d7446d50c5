"""Every judge, from recorded runs to a scored prediction file, against a scripted server."""

import json

import pytest
from typer.testing import CliRunner

from arb.__main__ import app as arb
from arb.core.suite import load_suite
from arb.core.vocabulary import STATES
from arb.judges.__main__ import app
from dataset_script.sources.released import ReleasedSource
from leaderboard.paper.published_files import LABELS
from submissions.__main__ import app as submissions
from tests.support.judges import judges
from tests.support.llm_server.server import LLMServer


@pytest.fixture(scope="module")
def server():
    with LLMServer() as opened:
        yield opened


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """One for all judges: what two of them ask alike is asked once."""
    return tmp_path_factory.mktemp("cache")


def invoked(application, *arguments):
    result = CliRunner().invoke(application, [str(each) for each in arguments])
    assert result.exit_code == 0, result.output
    return result


def run_check_and_score(judge, suite, out, *arguments) -> dict:
    """The report on the split dev, after the run and the check have passed."""
    invoked(app, "run", judge, "--suite", suite, "--split", "dev", "--out", out, *arguments)
    file = out / "predictions.jsonl"
    whole = ("--suite", suite, "--split", "dev", "--json")
    checked = json.loads(invoked(submissions, "check", file, *whole).stdout)
    assert checked["acceptable"], checked["findings"]
    trajectories = load_suite(suite).split("dev")
    assert (checked["rows"], checked["coverage"]) == (len(trajectories), 1.0)
    rows = rows_of(out)
    assert [row["trajectory_id"] for row in rows] == [each.trajectory_id for each in trajectories]
    assert all((row["state"] == "ok") == (row["success"] is not None) for row in rows)
    assert {row["state"] for row in rows} <= set(STATES)
    return json.loads(invoked(arb, "score", file, *whole).stdout)


@pytest.mark.slow
@pytest.mark.parametrize("judge", judges())
def test_over_the_sample_every_judge_gives_a_file_that_is_accepted_and_scored(judge, server, cache, tmp_path):
    report = run_check_and_score(
        judge, "sample", tmp_path, "--base-url", server.base_url, "--cache", cache, "--limit", 1000
    )
    assert report["labels"]["success"]["overall"]["no_verdict"] == 0
    assert report["labels"]["success"]["overall"]["n"] > 0
    if getattr(judges()[judge], "models", {}) or judge == "Rule-based":
        assert exported(tmp_path) == {
            row["trajectory_id"]: tuple(row.get(label) for label in LABELS) for row in rows_of(tmp_path)
        }


ONE_OF_EACH_CLASS = {type(judge): name for name, judge in judges().items() if getattr(judge, "models", {})}


@pytest.mark.slow
@pytest.mark.parametrize("judge", ONE_OF_EACH_CLASS.values())
def test_every_kind_of_judge_is_listed_planned_and_certified(judge, server, cache, tmp_path):
    assert judge in invoked(app, "list").output
    options = (judge, "--suite", "sample", "--limit", 2, "--base-url", server.base_url, "--cache", cache)
    plan = json.loads(invoked(app, "plan", *options, "--split", "dev", "--json").stdout)
    assert plan["trajectories"] == 2 and not plan["problems"]
    invoked(app, "certify", *options, "--out", tmp_path / "certificate", "--repeats", 1)
    certificate = json.loads((tmp_path / "certificate" / "certificate.json").read_text())
    assert certificate["trajectories"]["with_verdict"] == 2
    cited = certificate.get("cited_steps")
    # Of each reply of the script for the judge with tools, one step of two exists; the rubric names step 1.
    expected = {"tools": 0.5, "rubric": 1.0}.get(judge)
    assert (cited and cited["value"]) == expected


def rows_of(run) -> list[dict]:
    return [json.loads(line) for line in (run / "predictions.jsonl").read_text().splitlines()]


def exported(run) -> dict[str, tuple]:
    """The verdicts that the released layout's own reader finds in what `export` writes."""
    invoked(app, "export", run, "--released-layout", "--out", run / "released")
    (run / "released" / "cleaned").mkdir()  # what makes a folder a source in the released layout
    source = ReleasedSource(run / "released")
    read = {file.trajectory_id: source.read_judgment(file) for file in source.list_judgments().files}
    return {name: tuple(getattr(each, label) for label in LABELS) for name, each in read.items()}
