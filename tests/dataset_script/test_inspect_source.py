"""`inspect-source`: what it prints for sources of every kind, its findings and exit codes."""

import errno
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dataset_script.sources.inspect_log as inspect_log
from dataset_script.__main__ import app
from dataset_script.sources import open_source

SOURCES = Path(__file__).parent / "sources"
SAMPLE = Path(__file__).parents[2] / "dataset_script" / "sample" / "data"
LOGS = SOURCES / "inspect_logs" / "0.3.285"

FIELDS = [
    "trajectory_id",
    "format",
    "benchmark",
    "agent",
    "task_id",
    "goal",
    "steps",
    "answer",
    "state",
    "usage",
]
STEP = ["index", "action", "reasoning", "url", "text", "has_screenshot", "has_axtree"]


def run(*arguments):
    return CliRunner().invoke(app, ["inspect-source", *map(str, arguments)])


@pytest.mark.parametrize(
    ("path", "kind", "exit_code"),
    [
        (LOGS, "inspect", 0),
        (next((LOGS / "talk").glob("*.json")), "inspect", 0),
        (SAMPLE, "published", 0),
        (SOURCES / "recorded_by_browsergym", "agentlab", 0),
        (SOURCES / "recorded_by_browser_use", "browser-use", 0),
        (SOURCES / "atif_by_harbor", "atif", 0),
        (SOURCES / "online_mind2web_by_hand", "online-mind2web", 3),
    ],
)
def test_json_is_an_object_a_run_with_what_the_source_gives(path, kind, exit_code):
    done = run(path, "--json")
    runs = [json.loads(line) for line in done.stdout.splitlines()]
    source = open_source(path)
    assert done.exit_code == exit_code, done.output
    assert [each["trajectory_id"] for each in runs] == [f.trajectory_id for f in source.list_runs().files]
    for each in runs:
        assert [*each] == [*FIELDS, "findings"]
        assert each["format"] == kind
        assert "/".join((each["benchmark"], each["agent"], each["task_id"])) == each["trajectory_id"]
        assert all([*step] == STEP for step in each["steps"])
        assert (each["goal"] is None) == (each["steps"] == [])


def test_a_step_says_what_was_seen_and_done_and_whether_there_is_a_picture():
    (path,) = (LOGS / "towns").glob("*.json")
    (found,) = (json.loads(line) for line in run(path, "--json").stdout.splitlines())
    assert found["steps"][2] == {
        "index": 2,
        "action": 'look_up(name="nothing")',
        "reasoning": None,
        "url": None,
        "text": "The screen, red",
        "has_screenshot": True,
        "has_axtree": False,
    }
    assert (found["answer"], found["state"]) == ("Ålesund – the town", "completed")


def test_the_table_has_a_row_a_run_and_the_notes_name_the_log():
    done = run(LOGS / "retried")
    first = min(path.name for path in (LOGS / "retried").iterdir())
    assert done.exit_code == 0
    assert [line.split()[0] for line in done.stdout.splitlines()[1:4]] == [
        f"retried/mockllm_model/{name}" for name in ("first", "second", "third")
    ]
    assert first in done.stdout
    assert "a log whose evaluation did not succeed" in done.stdout


def test_broken_runs_are_named_with_exit_code_3_and_have_no_goal_in_json(tmp_path):
    whole = next((LOGS / "trouble").glob("*.eval")).read_bytes()
    (tmp_path / "whole.eval").write_bytes(whole)
    (tmp_path / "cut.eval").write_bytes(whole[:-300])
    done, as_json = run(tmp_path), run(tmp_path, "--json")
    assert (done.exit_code, as_json.exit_code) == (3, 3)
    assert "cut.eval: is not a complete zip file" in done.stdout
    assert "cut.eval" in as_json.stderr
    broken = [each for each in map(json.loads, as_json.stdout.splitlines()) if each["goal"] is None]
    assert [(each["steps"], each["findings"][0]["name"]) for each in broken] == [([], "cut.eval")]
    assert broken[0]["findings"][0]["code"] == "unreadable"


def test_a_json_file_that_no_reader_took_is_reported_with_the_place_where_its_json_breaks(tmp_path):
    (tmp_path / "run.eval").write_bytes(next((LOGS / "trouble").glob("*.eval")).read_bytes())
    (tmp_path / "cut.json").write_text('{"a": 1,\n "b": ')
    (tmp_path / "list.json").write_text("[1]")
    done, as_json = run(tmp_path), run(tmp_path, "--json")
    line = "cut.json: is not valid JSON: Expecting value: line 2 column 7 (char 15)"
    assert line in done.stdout and line in as_json.stderr
    assert "  list.json\n" in done.stdout


def test_a_json_file_that_no_reader_took_is_not_parsed_if_it_is_larger_than_20_mb(tmp_path):
    (tmp_path / "run.eval").write_bytes(next((LOGS / "trouble").glob("*.eval")).read_bytes())
    (tmp_path / "20.json").write_text('{"' + "x" * 19_999_998)
    (tmp_path / "more.json").write_text('{"' + "x" * 19_999_999)
    printed = run(tmp_path).stdout
    assert "  20.json: is not valid JSON: " in printed and "  more.json\n" in printed


@pytest.mark.parametrize("content", [{}, {"nothing.txt": "x"}, {"cut.eval": "PK"}])
def test_nothing_that_can_be_read_is_exit_code_2(tmp_path, content):
    for name, text in content.items():
        (tmp_path / name).write_text(text)
    done = run(tmp_path)
    assert done.exit_code == 2
    assert done.stderr.count("error:") == 1


def test_each_run_is_printed_before_the_next_is_read(monkeypatch, capsys):
    read = inspect_log.InspectSource.read
    printed = []

    def watched(source, file):
        printed.append(capsys.readouterr().out.count("\n"))
        return read(source, file)

    monkeypatch.setattr(inspect_log.InspectSource, "read", watched)
    app(["inspect-source", str(LOGS / "retried"), "--json"], standalone_mode=False)
    assert printed == [0, 1, 1]  # lines that were printed since the run before


def test_a_reader_of_the_output_that_goes_away_ends_it_without_a_message(monkeypatch):
    def gone(*_arguments, **_options):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr("dataset_script.__main__.typer.echo", gone)
    done = run(LOGS / "retried", "--json")
    assert (done.exit_code, done.output) == (1, "")


def test_a_fault_of_a_reader_is_a_finding_of_its_run(monkeypatch):
    monkeypatch.setattr(inspect_log.InspectSource, "read", lambda source, file: 1 / 0)
    done = run(LOGS / "retried")
    assert done.exit_code == 2  # none can be read
    assert "#first_epoch_1: ZeroDivisionError" in done.stdout
    assert "Traceback" not in done.output


def test_control_characters_of_a_log_do_not_reach_the_terminal(tmp_path):
    turn = {"role": "assistant", "content": "\x1b[31mred"}
    each = {"id": "a", "epoch": 1, "input": "\x1b]0;x\x07", "messages": [turn]}
    spec = {"task": "t", "model": "m"}
    log = {"version": 2, "status": "\x1b", "eval": spec, "samples": [each]}
    (tmp_path / "log.json").write_text(json.dumps(log))
    done = run(tmp_path / "log.json")
    assert "\x1b" not in done.output
    log["status"] = "success"
    (tmp_path / "log.json").write_text(json.dumps(log))
    done = run(tmp_path / "log.json")
    assert done.exit_code == 0
    assert "red" in done.output
    assert "\x1b" not in done.output
