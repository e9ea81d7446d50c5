import hashlib
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from arb.core.predictions import read_predictions
from arb.core.predictions.check import check
from arb.core.predictions.raw import recognise
from arb.core.settings import Settings
from arb.core.suite import load_suite
from submissions.__main__ import app, print_report
from submissions.intake.upload import read_upload, safe_file_name
from tests.support.step_suite import write_step_suite

REPOSITORY = Path(__file__).parents[3]
SAMPLE = load_suite("localshop")
TEST_IDS = [trajectory.trajectory_id for trajectory in SAMPLE.split("test")]


def content(verdicts=(True, False, True, None)) -> bytes:
    rows = ({"trajectory_id": i, "success": v} for i, v in zip(TEST_IDS, verdicts, strict=True))
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.fixture
def good(tmp_path) -> Path:
    path = tmp_path / "mine.jsonl"
    path.write_bytes(content())
    return path


def run(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def upload(source, file_name=None, **settings):
    return read_upload(source, file_name, Settings(**settings), suite=SAMPLE, split="test")


def test_an_upload_keeps_its_bytes_and_their_fingerprint(good):
    for source in (good, good.read_bytes()):
        found = upload(source, "mine.jsonl")
        assert found.content == content()
        assert found.sha256 == hashlib.sha256(content()).hexdigest()
        assert (found.file_name, found.check.acceptable) == ("mine.jsonl", True)


def test_a_file_over_the_limit_is_neither_read_nor_accepted(good):
    size = len(content())
    assert upload(good, max_upload_bytes=size).check.acceptable
    refused = upload(good, max_upload_bytes=size - 1)
    assert (refused.content, refused.sha256, refused.check.acceptable) == (b"", "", False)
    assert [finding.code for finding in refused.check.findings] == ["too_large"]
    refused = upload(content(), max_upload_bytes=size - 1)
    assert [finding.code for finding in refused.check.findings] == ["too_large"]


@pytest.mark.parametrize(
    ("given", "safe"),
    [
        ("mine.jsonl", "mine.jsonl"),
        ("/etc/passwd", "passwd"),
        ("..\\..\\mine.csv", "mine.csv"),
        ("../..", "predictions"),
        ("", "predictions"),
        (" .jsonl\n", ".jsonl"),
        ("a\x1b[31m\u202eb\0.csv", "a[31mb.csv"),
        ("x" * 200 + ".parquet", "x" * 112 + ".parquet"),
        ("ö" * 10 + ".jsonl", "ö" * 10 + ".jsonl"),
    ],
)
def test_a_strangers_file_name_is_made_safe(given, safe):
    assert safe_file_name(given) == safe
    assert len(safe) <= 120


def test_check_ends_well_only_for_an_acceptable_file(good, tmp_path):
    assert run("check", good, "--split", "test", "--suite", "localshop").exit_code == 0
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(content()[:-20])
    assert run("check", bad, "--split", "test", "--suite", "localshop").exit_code == 1
    assert run("check", good, "--split", "dev", "--suite", "localshop").exit_code == 1


def test_check_prints_one_json_object_when_asked(good):
    result = run("check", good, "--split", "test", "--suite", "localshop", "--json")
    body = json.loads(result.stdout)
    # 4 test trajectories of localshop, 3 of them with a verdict, 2 of those true
    assert (body["acceptable"], body["rows"], body["coverage"]) == (True, 4, 0.75)
    assert body["success_share"] == pytest.approx(2 / 3)
    assert body["by_benchmark"]["localshop"]["expected"] == 4


def test_check_counts_rows_next_to_the_rows_that_are_expected_and_names_the_others(tmp_path):
    suite, file = write_step_suite(tmp_path / "steps"), tmp_path / "mine.jsonl"
    arguments = ("--split", "test", "--suite", str(suite))
    assert run("template", *arguments, "--out", str(file)).exit_code == 0
    shown = run("check", str(file), *arguments).stdout
    lines = [line.replace("│", " ").split() for line in shown.splitlines()]
    assert ["all", "2", "2", "0.0%"] in [line[:4] for line in lines]  # two runs of test
    assert ["other", "rows", "5"] in lines  # their 3 and 2 steps


def test_check_prints_findings_and_figures(good):
    good.write_bytes(content() + content()[: content().index(b"\n") + 1])
    result = run("check", good, "--split", "test", "--suite", "localshop")
    assert result.exit_code == 1
    for said in ("duplicate_id", "trajectory_id", "1, 5", "localshop", "75.0%", "not acceptable", "1 error"):
        assert said in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "no-such-file", "--split", "test"),
        ("check", REPOSITORY, "--split", "test"),
        ("check", __file__, "--split", "train"),
        ("check", __file__),
        ("check", __file__, "--split", "test", "--suite", "no-such-suite"),
        ("template", "--split", "test", "--format", "xlsx"),
        ("template", "--split", "test", "--out", f"{__file__}/file.csv"),
    ],
)
def test_wrong_usage_ends_with_2_and_prints_nothing_on_standard_output(arguments):
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr
    assert result.stderr


def test_a_setting_that_cannot_be_used_is_named(good, monkeypatch):
    monkeypatch.setenv("ARB_MAX_UPLOAD_BYTES", "many")
    result = run("check", good, "--split", "test")
    assert result.exit_code == 2
    assert "ARB_MAX_UPLOAD_BYTES" in result.stderr


def test_the_size_limit_of_the_settings_holds_for_the_command(good, monkeypatch):
    monkeypatch.setenv("ARB_MAX_UPLOAD_BYTES", "10")
    result = run("check", good, "--split", "test", "--suite", "localshop", "--json")
    assert [finding["code"] for finding in json.loads(result.stdout)["findings"]] == ["too_large"]


@pytest.mark.parametrize("width", [60, 140])
def test_brackets_and_escapes_in_a_file_are_printed_as_text(width):
    rows = b'{"trajectory_id": "[bold]x[/bold]\\u001b[31m", "success": "[link=x]y[/link]", "[red]": ":x:"}'
    table, findings = read_predictions(rows)
    out = io.StringIO()
    print_report(
        check(table, findings, SAMPLE, "test"), "success", Console(file=out, width=width, highlight=False)
    )
    flat = "".join(out.getvalue().split())
    for said in ("[bold]", "[link=", "[red]"):
        assert said in flat
    assert "\x1b" not in out.getvalue()


def test_a_template_goes_to_standard_output_or_to_a_new_file(tmp_path):
    printed = run("template", "--split", "test", "--suite", "localshop").stdout
    assert [json.loads(line)["trajectory_id"] for line in printed.splitlines()] == TEST_IDS
    for ending in ("jsonl", "csv", "parquet"):
        path = tmp_path / f"new.{ending}"
        assert run("template", "--split", "test", "--suite", "localshop", "--out", path).exit_code == 0
        found = upload(path)
        assert (recognise(found.content), found.check.rows) == (ending, 4)
        assert [finding.code for finding in found.check.findings] == ["no_verdicts"]


def test_a_template_never_replaces_a_file(good):
    result = run("template", "--split", "test", "--suite", "localshop", "--out", good)
    assert result.exit_code == 2
    assert "exists" in result.stderr
    assert good.read_bytes() == content()


@pytest.mark.shared
@pytest.mark.parametrize("judge", ["aer-c", "nnetnav", "rule-based"])
def test_the_command_accepts_the_real_verdict_files(shared, judge):
    path = shared / "data" / "agent-reward-bench" / "verdicts" / f"{judge}.jsonl"
    result = run("check", path, "--split", "test", "--json")
    body = json.loads(result.stdout)
    assert (result.exit_code, body["acceptable"], body["rows"], body["coverage"]) == (0, True, 1_106, 1.0)
    assert run("check", path, "--split", "dev").exit_code == 1


def test_the_module_is_a_command_that_imports_nothing_heavy_for_help():
    code = (
        "import sys, runpy; sys.argv = ['submissions', '--help']\n"
        "try: runpy.run_module('submissions', run_name='__main__')\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "heavy = {'numpy', 'pandas', 'pyarrow', 'pydantic', 'datasets'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "check" in done.stdout
    assert "template" in done.stdout
