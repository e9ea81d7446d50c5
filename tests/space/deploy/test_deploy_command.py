"""Tests of `arb space deploy`: options, refusals and output."""

import re

import pytest
from typer.testing import CliRunner

from space.__main__ import app
from space.deploy.deployer import Deployment
from tests.space.deploy.conftest import DATA, RECORDS, SPACE, space_of
from tests.support.submissions import write_suite

NAMES = ("--space", SPACE, "--data", DATA, "--private", RECORDS)


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # no .env of the caller

    def deploy(*more: str):
        return CliRunner().invoke(app, ["deploy", *NAMES, *more])

    return deploy


def test_it_deploys_names_the_secrets_and_then_has_nothing_to_do(hub, run, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_maintainer")
    first = run("--maintainer", "ada")
    assert first.exit_code == 0, first.output
    head = space_of(hub).head.oid
    assert f"{SPACE} at {head}: " in first.stdout
    assert "ARB_SECRET" in first.stdout and "HF_TOKEN" in first.stdout
    assert "hf_maintainer" not in first.output
    second = run("--maintainer", "ada")
    assert f"{SPACE} at {head}: up to date; no commit" in second.stdout


def test_a_dry_run_asks_no_hub_and_says_how_much_would_be_sent_where(hub, run, tmp_path):
    suite = write_suite(tmp_path).rename(tmp_path / "our-bench")
    done = run("--dry-run", "--suite", str(suite), "--labels", "none")
    assert done.exit_code == 0, done.output
    assert hub.seen == []
    # suite.toml and trajectories.csv; the labels are outside the folder
    assert re.search(r"^  arb/core/suites/our-bench/ +2 files +\d+ kB$", done.stdout, re.MULTILINE)
    assert re.search(r"^  space/ +\d{3} files", done.stdout, re.MULTILINE)
    for said in (f"Space {SPACE} (sdk: gradio; created if",
                 f"records: {RECORDS} (private; created if missing)",
                 "3 files: README.md, app.py, thumbnail.png", "board: only on the Space",
                 "variable ARB_RECORDS_REPO=", "secret to set: ARB_SECRET"):  # fmt: skip
        assert said in done.stdout, done.stdout
    assert "Nothing was sent" in done.stdout and "space/app.py" not in done.stdout
    assert len(done.stdout.splitlines()) < 30


def test_a_dry_run_lists_every_file_and_the_card_when_asked(run):
    done = run("--dry-run", "--list-files")
    for said in ("\n  space/app.py\n", "\n  README.md\n", "hf_oauth: true", "title: AgentRewardBench"):
        assert said in done.stdout


def test_several_suites_go_with_their_files_and_the_sources_of_their_labels(run, tmp_path, monkeypatch):
    suite = write_suite(tmp_path).rename(tmp_path / "our-bench")
    monkeypatch.setenv("ARB_SUITE_LABELS", "our-bench=hub:maintainer/labels")
    options = ("--dry-run", "--list-files", "--suite", "devai", "--suite", str(suite), "--labels", "none")
    done = run(*options)
    for said in ("variable ARB_SUITE=devai\n", "variable ARB_SUITES=devai,our-bench\n",
                 "variable ARB_SUITE_LABELS=our-bench=hub:maintainer/labels\n",
                 "arb/core/suites/our-bench/trajectories.csv",
                 "the suites `devai`, `our-bench`"):  # fmt: skip
        assert said in done.stdout, done.output
    monkeypatch.setenv("ARB_SUITES", f"devai,{suite}")
    assert run(*options[:2], "--labels", "none").stdout == done.stdout
    assert "ARB_SUITE_LABELS: our-bench is not one of the other suites" in run("--suite", str(suite)).output


def test_labels_among_the_files_stop_it_before_the_hub_is_asked(hub, run, tmp_path, monkeypatch):
    write_suite(tmp_path)
    suite = tmp_path / "small"
    (suite / "about.md").write_bytes((tmp_path / "labels.csv").read_bytes())
    monkeypatch.setenv("ARB_LABELS", f"csv:{tmp_path / 'labels.csv'}")
    done = run("--suite", str(suite), "--labels", "none")
    assert done.exit_code == 2
    assert "arb/core/suites/small/about.md: is the file with the labels" in done.output
    assert hub.seen == []
    (suite / "about.md").unlink()  # a copy of the labels, in which the canaries would be found


def test_invalid_names_are_reported_all_at_once(hub, run):
    done = CliRunner().invoke(app, ["deploy", "--space", "x", "--data", "a/b", "--private", "a/b"])
    assert done.exit_code == 2
    assert "--space 'x'" in done.output and "three different repositories" in done.output


def problems(**changes) -> str:
    plain = {"space": "a/s", "data": "a/d", "private": "a/p", "board": None, "suite": "small"}
    return "; ".join(Deployment(**{**plain, "labels": "none", "maintainers": (), **changes}).problems())


def test_labels_have_to_be_where_the_space_finds_them():
    assert problems() == problems(labels="hub:a/labels") == ""
    assert problems(suite="agent-reward-bench", labels="wheel") == ""
    assert "has no published labels" in problems(labels="wheel")
    assert "--labels records" in problems(labels="wheel")
    assert "cannot read a local file" in problems(labels="csv:labels.csv")
    local = problems(further=("other",), suite_labels={"other": "csv:labels.csv"})
    assert local.startswith("ARB_SUITE_LABELS: other: the Space cannot read a local file")
    assert "two suites have the same name" in problems(further=("small",))
    assert "three different repositories" in problems(board="a/p")
