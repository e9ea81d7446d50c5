"""What a run does around its engine: what it hands over, and how the folder is left.

Whole runs against a scripted server: what comes out, what is paid, how a run ends and is continued.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arb.core.suite import load_suite
from arb.judges.__main__ import app
from arb.judges.catalog.official import SOURCES, read_templates
from arb.judges.cli.options import RunOptions
from arb.judges.run.config import build_config
from arb.judges.run.export import export_released_layout
from arb.judges.run.folder import read_judgments, read_run
from arb.judges.run.progress import RunEnd
from arb.judges.run.runner import run_judge
from tests.support import judge_runs
from tests.support.clocks import patient_time_limits
from tests.support.judge_runs import predictions, states
from tests.support.judges import assert_prompts_are_there
from tests.support.llm_server.chat import Scripted
from tests.support.llm_server.faults import FaultPlan
from tests.support.llm_server.server import LLMServer
from tests.support.waiting import eventually

OPTIONS = RunOptions(judge="always-successful", split="dev", suite="sample", limit=4)
CONFIG = build_config(OPTIONS)


def record(trajectory_id: str, state: str = "ok") -> dict:
    answer = {"success": True} if state == "ok" else {}
    return {"trajectory_id": trajectory_id, "state": state, "answer": answer, "calls": []}


def test_an_engine_gets_what_is_not_judged_yet_and_what_it_keeps_is_the_run(tmp_path):
    given = []

    def half(job, folder, progress):
        given.append(job.ids)
        folder.append(map(record, job.ids[:2]))
        return RunEnd("waiting", "two are left")

    first = run_judge(CONFIG, tmp_path, half)
    assert (first.ended.how, first.judged, first.chosen) == ("waiting", 2, 4)
    second = run_judge(CONFIG, tmp_path, half)
    assert (second.judged, given[1]) == (4, given[0][2:])
    assert [session["ended"] for session in read_run(tmp_path)["sessions"]] == ["waiting", "waiting"]


def test_a_run_over_recorded_files_imports_neither_numpy_nor_pydantic_nor_pyarrow(tmp_path):
    """They would be half of its memory: 77 MB is the bound of `bench.judges`."""
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from bench.judges import make_runs\n"
        "from arb.judges.cli.options import RunOptions\n"
        "from arb.judges.run.config import build_config\n"
        "from arb.judges.run.runner import run_judge, run_local\n"
        "source = Path(sys.argv[1])\n"
        "make_runs(source, 2)\n"
        "options = RunOptions(judge='rule-based', suite='agent-reward-bench', split='test', source=source)\n"
        "assert run_judge(build_config(options), source / 'run', run_local).judged == 2\n"
        "loaded = {name for name, module in sys.modules.items() if type(module).__name__ != '_LazyModule'}\n"
        "print(*loaded & {'numpy', 'pydantic', 'pyarrow'})"
    )
    command = [sys.executable, "-c", program, tmp_path]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr


@pytest.mark.parametrize(("fault", "how"), [(KeyboardInterrupt, None), (OSError("disk full"), "raised")])
def test_whatever_ends_an_engine_the_folder_is_whole(tmp_path, fault, how):
    def broken(job, folder, progress):
        folder.append([record(job.ids[1])])
        raise fault

    if how is None:
        assert run_judge(CONFIG, tmp_path, broken).ended.how == "interrupted"
    else:
        with pytest.raises(OSError, match="disk full"):
            run_judge(CONFIG, tmp_path, broken)
    rows = [json.loads(line) for line in (tmp_path / "predictions.jsonl").read_text().splitlines()]
    assert len(rows) == 1
    noted = read_run(tmp_path)
    assert (noted["totals"]["trajectories"], noted["sessions"][-1]["ended"]) == (1, "interrupted")


def test_of_a_killed_run_the_session_says_so(tmp_path):
    seen = []

    def look(job, folder, progress):
        seen.append(read_run(tmp_path)["sessions"][-1]["ended"])
        return RunEnd("interrupted")

    run_judge(CONFIG, tmp_path, look)
    assert seen == ["killed"]  # what stands there should the process die now


def test_dollars_of_earlier_sessions_count_and_unknown_ones_stay_unknown(tmp_path):
    def paid(usd):
        def engine(job, folder, progress):
            progress.spend.usd = usd
            return RunEnd("interrupted")

        return engine

    for usd, total in ((0.25, 0.25), (0.5, 0.75), (None, None), (1.0, None)):
        run_judge(CONFIG, tmp_path, paid(usd))
        assert read_run(tmp_path)["spent_usd"] == total


def test_runs_that_the_source_does_not_have_are_counted_and_in_no_file(tmp_path):
    suite = tmp_path / "suite"
    suite.mkdir()
    there = load_suite("sample").split("dev")[0].trajectory_id
    benchmark, agent, task = there.split("/")
    (suite / "trajectories.csv").write_text(
        f"trajectory_id,split\n{there},dev\n{benchmark}/{agent}/{task}-that-is-missing,dev\n"
    )
    options = replace(
        OPTIONS, judge="rule-based", suite=str(suite), source=REPOSITORY / "dataset_script/sample/data"
    )

    def whole(job, folder, progress):
        folder.append(map(record, job.ids))
        return RunEnd("finished")

    outcome = run_judge(build_config(options), tmp_path / "run", whole)
    assert (outcome.judged, outcome.chosen, outcome.absent) == (1, 2, 1)
    assert read_run(tmp_path / "run")["selection"]["without_a_run"] == 1


REPOSITORY = Path(__file__).parents[4]
DEV = [each.trajectory_id for each in load_suite("sample").split("dev")]


def command(server, folder, *arguments, judge="simplified-neither") -> list[str]:
    return ["run", *judge_runs.options(server, folder, "--out", folder / "run", *arguments, judge=judge)]


def run(server, folder, *arguments, **more):
    return CliRunner().invoke(app, command(server, folder, *arguments, **more))


def test_every_trajectory_is_judged_by_one_call_and_its_reply_is_kept(tmp_path):
    with LLMServer(script="tags") as server:
        result = run(server, tmp_path)
        assert result.exit_code == 0, result.output
        assert server.counts.calls == len(DEV) == 20
        assert [row["trajectory_id"] for row in predictions(tmp_path)] == DEV
        for record in read_judgments(tmp_path / "run"):
            (call,) = record["calls"]
            assert "<success>" in call["reply"]["text"]
            assert call["reply"]["input_tokens"] == record["input_tokens"] > 0
        totals = read_run(tmp_path / "run")["totals"]
        assert totals["input_tokens"] == server.counts.input_tokens
        assert totals["output_tokens"] == server.counts.output_tokens


def test_a_finished_run_and_another_run_of_the_same_calls_ask_nothing(tmp_path):
    with LLMServer(script="tags") as server:
        run(server, tmp_path)
        first = predictions(tmp_path)
        assert run(server, tmp_path).exit_code == 0
        assert run(server, tmp_path, "--out", tmp_path / "other").exit_code == 0
        assert server.counts.calls == 20
        assert (tmp_path / "other/predictions.jsonl").read_bytes() == (
            tmp_path / "run/predictions.jsonl"
        ).read_bytes()
        assert predictions(tmp_path) == first


def test_what_ended_badly_is_asked_again_only_when_its_state_is_named(tmp_path):
    def script(request):
        return Scripted("<success>Successful</success>", fault="too_long" if long_ones[0] else None)

    long_ones = [True]
    with LLMServer(script=script) as server:
        run(server, tmp_path)
        assert states(tmp_path) == {"too_long": 20}
        asked = server.counts.calls
        long_ones[0] = False
        run(server, tmp_path)
        assert server.counts.calls == asked
        run(server, tmp_path, "--retry", "error")
        assert server.counts.calls == asked
        run(server, tmp_path, "--retry", "error,too_long")
        assert server.counts.calls == asked + 20
        assert states(tmp_path) == {"ok": 20}


def test_when_nothing_but_errors_comes_the_run_stops_and_counts_none_of_them(tmp_path):
    with LLMServer(script="tags", unsupported={"messages"}) as server:
        result = run(server, tmp_path, "--max-in-flight", 4)
        assert result.exit_code == 1
        assert "every trajectory so far ended in an error" in result.output
        assert "400: Unsupported parameter: 'messages'" in result.output
        assert predictions(tmp_path) == []
        assert read_run(tmp_path / "run")["sessions"][-1]["ended"] == "failing"
    with LLMServer(script="tags") as server:
        assert run(server, tmp_path, "--max-in-flight", 4).exit_code == 0
        assert states(tmp_path) == {"ok": 20}


def test_a_few_trajectories_that_all_fail_are_kept_as_failures(tmp_path):
    with LLMServer(script="tags", unsupported={"messages"}) as server:
        result = run(server, tmp_path, "--limit", 3)
        assert result.exit_code == 1
        assert "with --retry error (the first error: 400" in result.output
        assert states(tmp_path) == {"error": 3}
        assert "400" in next(read_judgments(tmp_path / "run"))["calls"][0]["reply"]["error"]


def test_a_missing_key_is_reported_before_a_folder_is_made(tmp_path, monkeypatch):
    monkeypatch.delenv("MY_KEY", raising=False)
    with LLMServer() as server:
        result = run(server, tmp_path, "--key-variable", "MY_KEY")
    assert result.exit_code == 2
    assert "MY_KEY is not set" in result.output
    assert not (tmp_path / "run").exists()


def test_the_key_is_in_no_file(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    with LLMServer(script="tags", api_key="sk-very-secret") as server:
        assert run(server, tmp_path, "--key-variable", "MY_KEY").exit_code == 0
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 4
    assert all(b"sk-very-secret" not in path.read_bytes() for path in files)


def test_two_endpoints_with_the_same_model_name_share_no_reply(tmp_path):
    with LLMServer(script="tags") as first, LLMServer(script="tags") as second:
        for server, out in ((first, "one"), (second, "two"), (first, "one-again")):
            run(server, tmp_path, "--out", tmp_path / out)
        assert (first.counts.calls, second.counts.calls) == (20, 20)  # one cache; the third run paid nothing
        addresses = [read_run(tmp_path / out)["configuration"]["models"]["judge"]["address"] for out in OUTS]
        assert addresses == [first.base_url, second.base_url, first.base_url]
        refused = run(second, tmp_path, "--out", tmp_path / "one")
        assert refused.exit_code == 2
        line = f"models.judge.address: {first.base_url} there, {second.base_url} now"
        assert line in refused.output.replace("\n", " ").replace("  ", " ")


OUTS = ("one", "two", "one-again")


@pytest.mark.parametrize(
    ("name", "meaning"),
    [("prompts_hash", "the judge's prompts"), ("view_hash", "what the judge sees of a run")],
)
def test_under_another_wording_or_view_the_same_command_starts_anew_beside_and_says_so(
    tmp_path, name, meaning
):
    with LLMServer(script="tags") as server:
        run(server, tmp_path, "--limit", 4)
        path = tmp_path / "run" / "run.json"
        other = json.loads(path.read_text())
        other["configuration"][name] = "0" * 64
        path.write_text(json.dumps(other))
        (tmp_path / "run-2").mkdir()  # no run's: passed over
        before = {each.name: each.read_bytes() for each in (tmp_path / "run").iterdir()}
        stays = f"that differs in {meaning}; leaving that run unchanged and"
        for how, limit in (("starting a new one", 4), ("continuing the one", 6)):
            result = run(server, tmp_path, "--limit", limit)
            assert result.exit_code == 0
            said = " ".join(result.output.split())
            assert f"{tmp_path}/run: contains a run {stays} {how} in {tmp_path}/run-3" in said
            assert f"predictions: {tmp_path}/run-3/predictions.jsonl" in said
            assert len(list(read_judgments(tmp_path / "run-3"))) == limit
        assert {each.name: each.read_bytes() for each in (tmp_path / "run").iterdir()} == before
        assert list((tmp_path / "run-2").iterdir()) == []
        assert server.counts.calls == 6  # the first four came out of the cache


def test_with_another_option_the_folder_may_be_the_wrong_one_and_nothing_is_begun(tmp_path):
    with LLMServer(script="tags") as server:
        run(server, tmp_path, "--limit", 2)
        path = tmp_path / "run" / "run.json"
        other = json.loads(path.read_text())
        other["configuration"] |= {"view_hash": "0" * 64, "split": "test"}
        path.write_text(json.dumps(other))
        refused = run(server, tmp_path, "--limit", 2)
        assert refused.exit_code == 2
        assert "split: test there, dev now" in refused.output
        assert "use another folder" in " ".join(refused.output.split())
        assert not (tmp_path / "run-2").exists()


@pytest.mark.labels
def test_under_the_official_wording_a_run_says_so_and_starts_anew_in_a_folder_of_its_own(
    tmp_path, official_settings, monkeypatch
):
    official = ("--prompts", "official", "--limit", 2)
    with LLMServer(script="tags") as server:
        run(server, tmp_path, "--limit", 2)
        said = " ".join(run(server, tmp_path, *official).output.split())
        assert f"{tmp_path}/run: contains a run that differs in the judge's prompts" in said
        assert f"leaving that run unchanged and starting a new one in {tmp_path}/run-2" in said
        assert server.counts.calls == 2 + 2  # no reply to our own words answers the official ones
        assert read_run(tmp_path / "run")["configuration"]["prompts"] == "own"
        assert read_run(tmp_path / "run-2")["configuration"]["prompts"] == "official"
        changed = {
            **read_templates(SOURCES["agent-reward-bench"], official_settings),
            "final": "Another end.",
        }
        monkeypatch.setattr("arb.judges.catalog.official.read_templates", lambda *_: changed)
        said = " ".join(run(server, tmp_path, *official).output.split())
        assert f"leaving that run unchanged and starting a new one in {tmp_path}/run-3" in said
        assert server.counts.calls == 4 + 2


def test_lines_run_json_summary_and_export_say_which_model_and_wording_judged(tmp_path):
    name = "aer-v · m · own wording"
    with LLMServer() as server:
        result = run(server, tmp_path, "--limit", 2, judge="AER-V")
    assert f"judge: {name}" in result.output
    assert {line["judge"] for line in read_judgments(tmp_path / "run")} == {name}
    written = read_run(tmp_path / "run")
    assert (written["judge"]["name"], written["configuration"]["judge"]) == (name, "aerv")
    assert written["judge"]["released_folder"] is None
    out = tmp_path / "out"
    done = export_released_layout(tmp_path / "run", out)
    assert (done.judge, done.files, done.left_out) == ("aer-v-m-own-wording", 2, [])


def storm(server, folder, judge):
    """A run through a storm; returns its judgments, each trajectory once, none lost and none paid twice.

    A reply that is on its way when the client gives up waiting is paid, so the client waits long enough.
    """
    with patient_time_limits():
        result = run(server, folder, "--max-in-flight", 8, "--timeout", 4, judge=judge)
    records = list(read_judgments(folder / "run"))
    assert result.exit_code == any(record["state"] == "error" for record in records), result.output
    assert [record["trajectory_id"] for record in records] == DEV
    assert Counter(record["state"] for record in records) == states(folder)
    assert server.counts.paid_twice() == {}
    assert_prompts_are_there(folder / "run")
    assert server.counts.faults.total() > 0
    # Every usable answer that the server handed over whole is in the judgments.
    replies = [call["reply"] for record in records for call in record["calls"]]
    made = [each for each in replies if each["state"] != "error" and not each.get("is_from_cache")]
    assert len([each for each in made if each["state"] != "too_long"]) == server.counts.answers.total()
    return records


@pytest.mark.slow
def test_in_a_storm_each_trajectory_ends_once_and_nothing_is_paid_twice(tmp_path):
    # Of every prompt the first try may fail, so that no wait is long.
    with LLMServer(faults=FaultPlan.each(0.05, at_most=1, seed=3, slow_s=0.05)) as server:
        storm(server, tmp_path, "aer-c")


@pytest.mark.slow
@pytest.mark.parametrize("judge", ["simplified-axtree", "aer-v", "nnetnav", "webjudge"])
def test_in_a_storm_that_does_not_end_that_is_so_too(tmp_path, judge):
    with LLMServer(faults=FaultPlan.each(0.05, seed=3, slow_s=0.05)) as server:
        storm(server, tmp_path, judge)


@pytest.mark.slow
def test_after_a_storm_what_failed_is_asked_again_and_nothing_that_was_paid_for(tmp_path):
    with LLMServer(faults=FaultPlan.each(0.05, seed=5, slow_s=0.05)) as server:
        before = states_of(storm(server, tmp_path, "simplified-axtree"))
        assert before["error"] + before["too_long"] > 0
        server.chat.faults = FaultPlan()
        answered, tries = set(server.counts.answers), Counter(server.counts.tries)
        run(server, tmp_path, "--retry", "error,too_long", judge="simplified-axtree")
        again = {key for key, number in server.counts.tries.items() if number > tries[key]}
        assert again and again.isdisjoint(answered)
        after = states(tmp_path)
        assert after["error"] + after["too_long"] == 0
        assert after["ok"] == before["ok"] + before["error"] + before["too_long"]


def states_of(records) -> Counter:
    return Counter(record["state"] for record in records)


def start(server, folder, *arguments, **more) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "arb", "judges", *command(server, folder, *arguments, **more)],
        cwd=REPOSITORY,
        stderr=subprocess.PIPE,
        text=True,
    )


def read_until(process: subprocess.Popen, words: str) -> None:
    """Wait for a line with these words on the standard error of a process."""
    lines = [""]
    while words not in lines[-1]:
        lines.append(process.stderr.readline())
        assert lines[-1], lines


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_a_run_finishes_its_calls_leaves_a_whole_folder_and_goes_on(tmp_path, number):
    with LLMServer(script="tags") as server:
        go_on = threading.Event()
        server.chat.held = lambda: server.counts.answers.total() >= 2 and not go_on.is_set()
        process = start(server, tmp_path, "--max-in-flight", 2)
        eventually(lambda: server.counts.answers.total() >= 2, process)
        process.send_signal(number)
        read_until(process, "finishing the calls in progress")
        go_on.set()
        _, said = process.communicate(timeout=120)
        assert process.returncode == 130
        assert "run the same command again to continue" in said
        assert server.counts.left == 0  # no paid call was dropped
        done = predictions(tmp_path)
        assert 2 <= len(done) == server.counts.answers.total() < 20
        assert read_run(tmp_path / "run")["sessions"][-1]["ended"] == "interrupted"
        assert run(server, tmp_path, "--max-in-flight", 2).exit_code == 0
        assert server.counts.calls == 20
        assert [row["trajectory_id"] for row in predictions(tmp_path)] == DEV


def test_a_second_ctrl_c_drops_the_calls_under_way(tmp_path):
    with LLMServer(script="tags", latency_s=600) as server:
        process = start(server, tmp_path, "--max-in-flight", 2)
        eventually(lambda: server.counts.in_flight == 2, process)
        process.send_signal(signal.SIGINT)
        read_until(process, "finishing")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
        assert process.returncode == 130
        assert predictions(tmp_path) == []


@pytest.mark.slow
def test_two_runs_at_once_with_one_cache_pay_for_a_call_once(tmp_path):
    with LLMServer(script="tags", latency_s=0.3) as server:
        runs = [start(server, tmp_path, "--max-in-flight", 4, "--out", tmp_path / name) for name in "ab"]
        for each in runs:
            _, said = each.communicate(timeout=120)
            assert each.returncode == 0, said
        assert server.counts.most_in_flight > 1
        assert server.counts.calls == 20
    first, second = ((tmp_path / name / "predictions.jsonl").read_bytes() for name in "ab")
    assert first == second


@pytest.mark.slow
def test_killed_ten_times_and_continued_the_calls_are_the_fewest_there_can_be(tmp_path):
    """The only loss allowed is of calls that were under way at a kill: not answered yet, or not kept yet.

    So all calls = the different calls there are + those under way at the kills, exactly.
    """
    chance = random.Random(4)
    lost = kept = most = 0
    with LLMServer(latency_s=0.02) as server:
        server.chat.held = lambda: server.counts.calls > most  # a kill that comes late finds work to be done
        for _ in range(10):
            before = server.counts.calls
            killed_at = before + chance.randint(1, 8)
            most = killed_at + 4
            process = start(server, tmp_path, "--max-in-flight", 4, judge="webjudge")
            eventually(partial(has_asked, server, killed_at), process)
            time.sleep(chance.random() / 20)
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            eventually(lambda: server.counts.in_flight == 0)
            kept_before, kept = kept, answers_kept(tmp_path / "cache")
            under_way = server.counts.calls - before - (kept - kept_before)
            assert 0 <= under_way <= 4
            lost += under_way
        most = 10**9
        assert run(server, tmp_path, judge="webjudge").exit_code == 0
        assert [row["trajectory_id"] for row in predictions(tmp_path)] == DEV
        assert states(tmp_path) == {"ok": 20}
        assert server.counts.calls == len(server.counts.tries) + lost
        assert 0 < kept < len(server.counts.tries)  # it was killed in the midst of its work
    with LLMServer() as fresh:  # the fewest there can be: those of a run that nobody killed
        run(fresh, tmp_path, "--out", tmp_path / "o", "--cache", tmp_path / "c", judge="webjudge")
        assert fresh.counts.calls == len(server.counts.tries)


def has_asked(server, number: int) -> bool:
    return server.counts.calls >= number


def answers_kept(cache: Path) -> int:
    return sum(
        line.startswith(b'{"answer":') and line.endswith(b"\n")
        for path in cache.glob("segment-*")
        for line in path.read_bytes().splitlines(keepends=True)
    )
