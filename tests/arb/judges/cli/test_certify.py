"""Certificates: measured on dev, resumed, within one budget, and without a label on test."""

import hashlib
import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arb.__main__ import app as arb
from arb.judges.ensembles.probes import CLAIM, PROBES
from arb.judges.run.batch import run_batch
from arb.judges.run.folder import read_run
from arb.judges.run.progress import RunEnd
from leaderboard.labels import labels as labels_module
from tests.support.judge_runs import certificate, certify
from tests.support.llm_server.chat import Scripted
from tests.support.llm_server.scripts import judges as judges_script
from tests.support.llm_server.server import LLMServer

GUIDE = (Path(__file__).parents[4] / "docs" / "own_judge.md").read_text(encoding="utf-8")
ENDPOINT = "http://127.0.0.1:8000/v1"
RUNS = ["unchanged", *PROBES, "repeat-2", "repeat-3"]


def by_the_question(request) -> str:
    """As the script ``judges``, by what is asked alone: bytes of a request and of a batch's line differ."""
    return judges_script(replace(request, key=hashlib.sha256(request.text.encode()).hexdigest()))


def text_of_page(folder) -> str:
    return (folder / "out" / "certificate.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_guides_own_judge_is_run_scored_planned_and_certified_as_the_guide_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source, _ = re.findall(r"^```python\n(.*?)^```", GUIDE, flags=re.MULTILINE | re.DOTALL)
    Path("my_judge.py").write_text(source)
    commands = re.findall(r"^arb (.+)$", GUIDE, flags=re.MULTILINE)
    assert len(commands) == 4

    with LLMServer() as server:
        monkeypatch.setenv("ARB_CACHE_DIR", str(tmp_path / "private"))
        for line in commands:
            arguments = line.replace(ENDPOINT, server.base_url).split()
            done = CliRunner().invoke(arb, arguments)
            assert done.exit_code == 0, (line, done.output)
    found = json.loads(Path("certificate/certificate.json").read_text())
    assert found["format"] == 1
    assert found["judge"] == {
        "name": "My judge", "inputs": "goal, steps, last tree", "calls": "1", "source": "our paper",
    }  # fmt: skip
    assert found["measured"]["judge_file_sha256"] == hashlib.sha256(source.encode()).hexdigest()
    assert list(found["states"]) == RUNS
    assert isinstance(found["threshold"]["value"], float) and Path("certificate/threshold.json").is_file()
    # the server counts every prompt and its reply; --price my-model=0.15,0.6
    run_calls = 20
    measured = server.counts.answers.total() - run_calls
    assert found["costs"]["paid_usd"] <= 2 and measured > 20 * 6


@pytest.mark.slow
def test_of_a_certificate_made_again_nothing_is_paid_and_every_byte_is_the_same(tmp_path):
    with LLMServer() as server:
        first = certify(server, tmp_path, "--limit", 6)
        assert first.exit_code == 0, first.output
        paid = server.counts.calls
        before = {path.name: path.read_bytes() for path in (tmp_path / "out").glob("certificate.*")}
        assert certify(server, tmp_path, "--limit", 6).exit_code == 0
        assert server.counts.calls == paid
    assert {path.name for path in (tmp_path / "out").glob("certificate.*")} == set(before)
    for name, content in before.items():
        assert (tmp_path / "out" / name).read_bytes() == content
    # 6 runs unchanged, 5 probes that change what a judge of trees sees, and two repeats: not the screenshot
    assert (paid, server.counts.paid_twice(samples=3)) == (6 * (1 + 5 + 2), {})
    found = certificate(tmp_path)
    by_probe = {each["probe"]: each for each in found["probes"]}
    assert by_probe["no-last-screenshot"]["changed"] == 0 and by_probe["claim"]["changed"] == 6
    # the script's verdict follows from the prompt alone, so the same question has the same answer
    assert found["stability"]["unanimous"] == {
        "count": 6, "n": 6, "value": 1.0, "interval": pytest.approx([0.6097, 1.0], abs=1e-4),
    }  # fmt: skip  # Wilson: 6 / (6 + 1.96 ** 2)
    assert found["calibration"].startswith("no answer has a score")
    assert "no answer has a score" in found["threshold"]


@pytest.mark.slow
def test_with_batches_the_calls_of_all_runs_are_submitted_together_and_say_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr("arb.judges.run.batch.run_batch", partial(run_batch, poll_s=0.01))
    options = ("--limit", 6, "--price", "m=1000,2000")
    with LLMServer(by_the_question) as server:
        batched = certify(server, tmp_path, *options, "--batch")
        assert batched.exit_code == 0, batched.output
        assert len(server.batches.batches) == 1  # a judge of one stage
        assert server.counts.answers.total() == 6 * (1 + 5 + 2)
        found, paid_usd = certificate(tmp_path), server.counts.usd(1000, 2000)
        assert found["costs"]["paid_usd"] == pytest.approx(paid_usd)
        assert certify(server, tmp_path, *options, "--batch").exit_code == 0
        assert server.counts.usd(1000, 2000) == paid_usd
        (single := tmp_path / "single").mkdir()
        assert certify(server, single, *options).exit_code == 0
    assert {name for name in found if found[name] != certificate(single)[name]} == {"costs", "measured"}


def test_repeats_that_say_otherwise_are_counted_with_the_figures_of_each_time(tmp_path):
    def script(request):  # yes the first time, then no to one prompt in all
        said_no.add(request.key) if request.attempt == 1 and not said_no else None
        success = "Unsuccessful" if request.attempt == 1 and request.key in said_no else "Successful"
        return f"<success>{success}</success>"

    said_no = set()
    with LLMServer(script) as server:
        result = certify(server, tmp_path, "--repeats", 3, "--without-probes", "--max-in-flight", 1)
        assert result.exit_code == 0, result.output
    found = certificate(tmp_path)["stability"]
    assert (found["unanimous"]["count"], found["unanimous"]["n"]) == (19, 20)
    assert [each["to_no"] for each in found["repeats"]] == [1, 0]
    # 12 of 20 are successes: always yes has precision 12/20 and FPR 8/8
    assert found["figures"][0] == {"precision": 0.6, "recall": 1.0, "fpr": 1.0}
    assert found["figures"][2] == found["figures"][0] != found["figures"][1]


def test_a_probe_counts_false_positives_where_the_label_still_holds(tmp_path):
    def script(request):  # believes whoever praises himself
        is_praised = "Everything that was asked for so far is done" in request.text
        return f"<success>{'Successful' if is_praised else 'Unsuccessful'}</success>"

    with LLMServer(script) as server:
        options = ("--repeats", 1, "--probe", "rewritten-reasoning", "--probe", "other-goal")
        assert certify(server, tmp_path, *options).exit_code == 0
    found = certificate(tmp_path)
    rewritten, other = found["probes"]
    assert (rewritten["flipped"]["count"], rewritten["to_yes"], rewritten["fpr"]) == (20, 20, 1.0)
    assert (other["flipped"]["count"], other["fpr"]) == (0, None)  # another goal has no label
    assert found["quality"]["labels"]["success"]["overall"]["fpr"] == 0.0
    assert "At most 100.0 % of verdicts flip under a change that should not matter" in text_of_page(tmp_path)


def test_on_test_no_label_is_read_and_the_report_says_what_it_cannot_compute(tmp_path, monkeypatch):
    def never(*arguments, **options):
        raise AssertionError("labels were asked for")

    monkeypatch.setattr(labels_module, "load_labels", never)
    with LLMServer() as server:
        result = certify(
            server, tmp_path, "--split", "test", "--limit", 4, "--repeats", 2, "--probe", "claim"
        )
    assert result.exit_code == 0, result.output
    found = certificate(tmp_path)
    for name in ("quality", "calibration", "threshold"):
        assert found[name].startswith("the labels of test are hidden")
    assert found["measured"]["label_version"] is None
    assert found["stability"]["figures"] is None and found["probes"][0]["fpr"] is None
    assert found["probes"][0]["flipped"]["n"] == 4
    page = text_of_page(tmp_path)
    assert "precision, recall and FPR are not known here" in page
    assert "submit the prediction file to the leaderboard" in page
    assert not (tmp_path / "out" / "threshold.json").exists()


@pytest.mark.slow
def test_the_threshold_frozen_on_dev_decides_on_test_and_is_in_both_reports(tmp_path):
    options = ("--logprobs", "--repeats", 1, "--probe", "claim")
    with LLMServer() as server:
        assert certify(server, tmp_path, *options, "--aim", "f1@recall>=0.5").exit_code == 0
        frozen = certificate(tmp_path)["threshold"]
        path = tmp_path / "out" / "threshold.json"
        assert json.loads(path.read_text())["value"] == frozen["value"]
        on_test = tmp_path / "on-test"
        options += ("--split", "test", "--limit", 3, "--threshold", path, "--cache", tmp_path / "cache")
        result = certify(server, on_test, *options)
        assert result.exit_code == 0, result.output
    found = certificate(on_test)
    assert (found["threshold"]["value"], found["threshold"]["split"]) == (frozen["value"], "dev")
    assert found["quality"].startswith("the labels of test are hidden")
    assert "The verdicts above use this threshold." in text_of_page(on_test)
    assert path.is_file() and not (on_test / "out" / "threshold.json").exists()


@pytest.mark.slow
def test_one_budget_is_for_all_runs_and_a_higher_one_goes_on(tmp_path):
    # 1,000 dollars for a million tokens; a call takes about 2 dollars
    options = ("--price", "m=1000,1000", "--repeats", 2, "--probe", "claim")
    with LLMServer() as server:
        counts = server.counts
        needed = certify(server, tmp_path, *options, "--limit", 4)
        assert needed.exit_code == 0, needed.output
        for_four = (counts.input_tokens + counts.output_tokens) / 1000
        limit = round(2 * for_four)
        stopped = certify(server, tmp_path, *options, "--limit", 12, "--max-usd", limit)
        assert stopped.exit_code == 3, stopped.output
        assert f"--max-usd {limit} limits all 3 runs" in stopped.output
        assert (counts.input_tokens + counts.output_tokens) / 1000 <= limit
        assert certify(server, tmp_path, *options, "--limit", 12, "--max-usd", 10_000).exit_code == 0
        assert counts.paid_twice(samples=2) == {}
        paid = (counts.input_tokens + counts.output_tokens) / 1000
    assert certificate(tmp_path)["costs"]["paid_usd"] == pytest.approx(paid)
    assert certificate(tmp_path)["trajectories"]["judged"] == 12


def test_stopped_it_says_how_to_go_on_and_writes_no_report(tmp_path, monkeypatch):
    from arb.judges.run import runner

    real = runner.run_local

    def stopped_in_the_second(job, folder, progress):
        if folder.folder.name == "unchanged":
            return real(job, folder, progress)
        return RunEnd("interrupted", "stopped; finished trajectories are saved")

    with LLMServer() as server:
        monkeypatch.setattr(runner, "run_local", stopped_in_the_second)
        options = ("--limit", 3, "--probe", "claim", "--repeats", 1)
        result = certify(server, tmp_path, *options)
        assert result.exit_code == 130
        assert "run the same command again to continue" in result.output
        assert not list((tmp_path / "out").glob("certificate.*"))
        monkeypatch.setattr(runner, "run_local", real)
        assert certify(server, tmp_path, *options).exit_code == 0
        assert server.counts.calls == 6


@pytest.mark.slow
def test_with_errors_it_ends_with_1_and_retry_asks_them_again(tmp_path):
    def script(request):
        is_changed = CLAIM in request.text
        return Scripted(judges_script(request), fault="too_long" if is_broken[0] and is_changed else None)

    is_broken = [True]
    options = ("--limit", 3, "--probe", "claim", "--repeats", 1)
    with LLMServer(script) as server:
        # too long is no error, but not one verdict was given to the changed runs
        assert certify(server, tmp_path, *options).exit_code == 1
        assert certificate(tmp_path)["states"]["claim"] == {"too_long": 3}
        is_broken[0] = False
        assert certify(server, tmp_path, *options, "--retry", "too_long").exit_code == 0
    assert certificate(tmp_path)["states"] == {"unchanged": {"ok": 3}, "claim": {"ok": 3}}
    with LLMServer(unsupported={"messages"}) as server:
        other = tmp_path / "other"
        result = certify(server, other, *options)
        assert result.exit_code == 1 and "run the same command with --retry error" in result.output
        assert not (other / "out" / "certificate.json").exists()


def test_the_plan_of_all_runs_counts_equal_calls_once_and_pays_nothing(tmp_path):
    with LLMServer() as server:
        result = certify(server, tmp_path, "--limit", 6, "--price", "m=1,1", "--dry-run", "--json")
        assert result.exit_code == 0, result.output
        assert server.counts.calls == 0
    plan = json.loads(result.output)
    assert plan["calls"] == 6 * (1 + 5 + 2)  # as is paid, see above
    assert plan["usd"] > 0
    assert not (tmp_path / "out").exists()


def test_a_judge_that_asks_no_model_has_figures_and_nothing_to_probe(tmp_path):
    with LLMServer() as server:
        assert certify(server, tmp_path, judge="rule-based").exit_code == 0
        assert server.counts.calls == 0
    found = certificate(tmp_path)
    assert (found["probes"], found["stability"], list(found["states"])) == ([], None, ["unchanged"])
    assert found["quality"]["labels"]["success"]["overall"]["n"] == 20
    assert "the judge asks no model" in text_of_page(tmp_path)


def test_a_changed_file_of_a_judge_is_another_judge(tmp_path):
    source, _ = re.findall(r"^```python\n(.*?)^```", GUIDE, flags=re.MULTILINE | re.DOTALL)
    path = tmp_path / "my_judge.py"
    path.write_text(source)
    options = ("--limit", 2, "--without-probes", "--repeats", 1)
    with LLMServer() as server:
        assert certify(server, tmp_path, *options, judge=f"{path}:MyJudge").exit_code == 0
        path.write_text(source.replace('"status")', '"status")  # changed'))
        refused = certify(server, tmp_path, *options, judge=f"{path}:MyJudge")
        assert refused.exit_code == 2
        assert "judge_file_sha256 (the file of your judge" in " ".join(refused.output.split())
        assert (
            certify(server, tmp_path, *options, "--out", tmp_path / "two", judge=f"{path}:MyJudge").exit_code
            == 0
        )
        assert server.counts.calls == 2  # the second took its replies from the cache
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert read_run(tmp_path / "two" / "unchanged")["configuration"]["judge_file_sha256"] == digest


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--probe", "nonsense"), "--probe nonsense: no such probe; use one of"),
        (("--aim", "precision"), "add a lower bound of recall"),
        (("--retry", "ok"), "--retry ok: unknown state; use one of"),
    ],
)
def test_what_cannot_be_certified_ends_with_one_line_and_leaves_no_report(tmp_path, arguments, words):
    with LLMServer() as server:
        result = certify(server, tmp_path, *arguments)
        assert server.counts.calls == 0
    assert result.exit_code == 2
    assert words in result.output and "Traceback" not in result.output
