"""Datasets and runs of judges of earlier releases are read, verified, continued and scored as before.

`tests/support/make_old_run.py` makes them. `tests/submissions/records/test_old_databases.py` has databases.
"""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arb.__main__ import app
from tests.submissions.records.test_old_databases import holds

RELEASES = Path(__file__).parent / "releases"


@pytest.fixture(params=sorted(folder.name for folder in RELEASES.iterdir()))
def release(request, tmp_path, monkeypatch) -> Path:
    """Return a copy of what a release wrote. It is the current folder."""
    folder = Path(shutil.copytree(RELEASES / request.param, tmp_path / request.param))
    monkeypatch.chdir(folder)
    return folder


def arb(*words: str) -> str:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    return done.output


def test_a_dataset_of_a_release_verifies_and_loads(release, tmp_path):
    from datasets import load_dataset

    assert "files: ok" in arb("data", "verify", "dataset", "--suite", "towns")
    loaded = load_dataset(str(release / "dataset"), "trajectories", cache_dir=str(tmp_path / "cache"))
    found = {row["trajectory_id"]: row["goal"] for row in loaded["dev"]}
    assert found == {f"chat/{agent}/1": "In which country is town 1?" for agent in ("careful", "hasty")}


def test_a_run_of_a_release_is_continued_without_a_call(release):
    run = json.loads((release / "run" / "run.json").read_text())
    before = (release / "run" / "predictions.jsonl").read_bytes()
    judge, address = run["configuration"]["judge"], run["endpoints"]["judge"]  # nobody answers there today
    data = ["--suite", "towns", "--source", "dataset", "--split", "dev"]
    said = arb("judges", "run", judge, *data, "--base-url", address, "--out", "run")
    assert "2 of 2 trajectories judged: 2 ok" in said and "for 0 in this session" in said
    assert (release / "run" / "predictions.jsonl").read_bytes() == before
    assert not (release / "run-2").exists()


def test_the_judgments_of_a_release_are_shown_and_parsed_again_to_the_same_verdicts(release):
    shown = arb("judges", "show", "run", "chat/hasty/1")
    assert "I do not know." in shown and "<success>Unsuccessful</success>" in shown
    arb("judges", "reparse", "run", "--out", "again.jsonl")
    before, again = (
        [json.loads(line)["success"] for line in Path(name).read_text().splitlines()]
        for name in ("run/predictions.jsonl", "again.jsonl")
    )
    assert before == again == [False, False]


def test_the_score_of_a_release_is_as_before(release):
    report = json.loads(arb("score", "run/predictions.jsonl", "--labels", "labels.csv", "--json"))
    assert holds(report, json.loads((release / "report.json").read_text()))


def test_no_path_of_a_machine_is_in_it():
    for path in RELEASES.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not any(word in content for word in (b"/work/", b"/home/", b"/tmp/", b"/root/")), path.name
