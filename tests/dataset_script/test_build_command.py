import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dataset_script.__main__ import app
from dataset_script.sources.released import ReleasedSource
from tests.support.waiting import eventually

REPOSITORY = Path(__file__).parents[2]
DEV_1 = "shop/GenericAgent-a/shop.1"


@pytest.fixture
def run(full_source, suite_folder, tmp_path):
    """Run `build` on the full source and the own suite, into out/, with more arguments."""

    def run_build(*more: str):
        fixed = ["--source", full_source.path, "--out", tmp_path / "out", "--suite", suite_folder]
        return CliRunner().invoke(app, ["build", *map(str, fixed), "--workers", "1", *more])

    return run_build


def test_a_clean_build_exits_0_and_says_what_it_wrote(run, tmp_path):
    result = run()
    assert result.exit_code == 0
    assert "suite own-suite: dev 2, test 3" in result.stdout
    assert "left out: nothing" in result.stdout
    assert f"wrote {tmp_path / 'out'}" in result.stdout
    assert "5/5" in result.stderr  # the progress goes to stderr


def test_a_broken_file_is_named_and_the_exit_code_says_so_but_the_rest_is_built(run, full_source, tmp_path):
    full_source.put(DEV_1, b"{")
    result = run()
    assert result.exit_code == 3
    assert "  cleaned/shop/GenericAgent-a/run-1/shop.1.json: Input data was truncated" in result.stdout
    assert result.stderr.splitlines()[-1] == "error: 1 broken files were left out; they are named above"
    assert (tmp_path / "out" / "README.md").is_file()


def test_what_is_left_out_but_not_broken_leaves_the_exit_code_0(run, full_source):
    full_source.put(DEV_1, valid=False)
    result = run()
    assert result.exit_code == 0
    assert "marked as invalid" in result.stdout


def test_strict_exits_1_when_anything_was_left_out(run, full_source, tmp_path):
    full_source.put(DEV_1, b"{")
    result = run("--strict")
    assert result.exit_code == 1
    assert "shop.1.json" in result.stdout
    assert "was not changed: something was left out (--strict)" in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_build_of_nothing_exits_1(run, suite_folder):
    (suite_folder / "trajectories.csv").write_text("trajectory_id,split\nno/such/run,dev\n")
    (suite_folder / "dev_labels.csv").unlink()
    result = run()
    assert result.exit_code == 1
    assert "no trajectory could be built" in result.stderr


def test_the_report_file_holds_every_name(run, full_source, tmp_path):
    full_source.put(DEV_1, b"{")
    assert run("--report", str(tmp_path / "report.json")).exit_code == 3
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["counts"] == {"dev": {"shop": 1}, "test": {"shop": 2, "workarena++": 1}}
    assert [finding["code"] for finding in report["left_out"]] == ["not_json"]
    assert report["published"] is True


def test_a_report_that_could_not_be_written_is_refused_before_the_build(run, tmp_path):
    (tmp_path / "file").touch()
    result = run("--report", str(tmp_path / "file" / "report.json"))
    assert result.exit_code == 2 and "is a file, not a folder" in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--source", "absent"], "Invalid value for '--source': path 'absent' does not exist."),
        (["--source", "empty"], "contains no runs in a known format; name a folder with cleaned/"),
        (
            ["--suite", "absent"],
            "no suite 'absent'; use a shipped one (agent-reward-bench, devai, localshop, ",
        ),
        (["--out", "."], "contains the source"),
    ],
)
def test_a_users_mistake_is_a_line_on_stderr_and_exit_code_2(run, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].lower().startswith("error: ")
    assert message.lower() in result.stderr.lower()
    assert "Traceback" not in result.output


def test_ids_of_no_shipped_suite_are_a_users_mistake(full_source, tmp_path):
    result = CliRunner().invoke(
        app, ["build", "--source", str(full_source.path), "--out", str(tmp_path / "out")]
    )
    assert result.exit_code == 2
    assert DEV_1 in result.stderr and "--suite FOLDER" in result.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_is_a_line_and_leaves_nothing_half_built(run, tmp_path, monkeypatch, number):
    monkeypatch.setattr(ReleasedSource, "read", lambda _source, _file: signal.raise_signal(number))
    result = run()
    assert result.exit_code == 130
    assert "interrupted" in result.stderr and "again to resume" in result.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("number_of_signal", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_of_processes_ends_in_a_moment(full_source, suite_folder, tmp_path, number_of_signal):
    options = ["--source", full_source.path, "--out", tmp_path / "out", "--suite", suite_folder]
    command = [sys.executable, "-m", "dataset_script", "build", *options, "--workers", "2"]
    one = full_source.path / "cleaned/shop/GenericAgent-a/run-1/shop.1.json"
    with (suite_folder / "trajectories.csv").open("a") as rows:
        for number in range(10, 2000):
            os.link(one, one.with_name(f"shop.{number}.json"))
            rows.write(f"shop/GenericAgent-a/shop.{number},test\n")
    process = subprocess.Popen(command, cwd=REPOSITORY, stderr=subprocess.PIPE, text=True)
    parts = tmp_path / ".out.work" / "parts"

    def made():
        return [part for part in parts.iterdir() if part.suffix != ".unfinished"] if parts.is_dir() else []

    eventually(lambda: len(made()) >= 5, process)
    process.send_signal(number_of_signal)
    assert process.wait(120) == 130
    assert "again to resume" in process.stderr.read()
    assert 5 <= len(made()) < 1995 and not (tmp_path / "out").exists()


def test_suites_are_listed_with_their_counts():
    result = CliRunner().invoke(app, ["suites"])
    assert result.exit_code == 0
    rows = [line.split() for line in result.stdout.splitlines()]
    # dev, test, tasks of dev, tasks of test, dev trajectories with labels
    assert ["agent-reward-bench", "196", "1106", "51", "300", "196"] in rows
    assert ["workarena++", "52", "348", "13", "87", "52"] in rows
    assert ["localshop", "2", "4", "1", "2", "2"] in rows
