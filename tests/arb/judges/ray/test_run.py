"""Runs over a cluster on this machine: the predictions of one machine, also when its parts are killed."""

import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arb.judges.__main__ import app
from arb.judges.cli.options import RunOptions
from arb.judges.engine.answers import AnswerStore
from arb.judges.run.config import build_config
from arb.judges.run.runner import run_judge, run_local
from arb.judges.types import OptionsError
from tests.support.buckets import STORES, bucket_server, lacking_packages
from tests.support.judges import assert_prompts_are_there
from tests.support.llm_server.faults import FaultPlan
from tests.support.llm_server.process import LLMProcess
from tests.support.llm_server.server import LLMServer

REPOSITORY = Path(__file__).parents[4]
TIMEOUT_S = 1_800
TEST_RUNS = 52
"""Trajectories in the sample's test split."""
KILLS = 20
IN_FLIGHT = 4
SAMPLES = 3
"""Of each trajectory: calls enough for all kills, and few after them."""


@pytest.fixture(scope="module")
def cluster():
    """One for all tests of this module, with the buckets that it reaches; required where every test is."""
    if os.environ.get("REQUIRE_EVERY_TEST"):
        import ray
    else:
        ray = pytest.importorskip("ray", reason="Ray is not here: pip install 'ray[data]'")
    from arb.judges.ray.run import _cluster

    with pytest.MonkeyPatch.context() as patched, ExitStack() as opened:
        patched.setenv("OPENAI_API_KEY", "none")
        there = [each for each in STORES if not lacking_packages(each)]
        buckets = {each: opened.enter_context(bucket_server(each)) for each in there}
        opened.enter_context(_cluster(None, 2))
        yield buckets
    assert not ray.is_initialized()


def options_of(server, tmp_path, **more) -> RunOptions:
    values = {"judge": "simplified-axtree", "split": "test", "suite": "sample", "provider": "any"}
    return RunOptions(**values | {"base_url": server.base_url, "cache": tmp_path / "cache"} | more)


def on_ray(options: RunOptions, out: Path, retry=(), workers: int = 2):
    from arb.judges.ray.run import run_on_ray

    return run_on_ray(build_config(options), out, retry, workers=workers)


def locally(options: RunOptions, out: Path, retry=()):
    return run_judge(build_config(options), out, run_local, retry)


def predictions(out: Path) -> bytes:
    return (out / "predictions.jsonl").read_bytes()


def run_facts(out: Path) -> dict:
    return json.loads((out / "run.json").read_bytes())


@pytest.mark.slow
@pytest.mark.parametrize(
    "judge",
    [
        {},
        {"judge": "webjudge", "model": "m"},  # key points, screenshots, a verdict
        {"judge": None, "cascade": "simplified-neither,simplified-axtree", "samples": 3, "model": "m"},
    ],
    ids=["one call", "three stages", "a cascade of samples"],
)
def test_the_predictions_are_those_of_one_machine_which_pays_nothing_after(cluster, tmp_path, judge):
    with LLMServer() as server:
        options = options_of(server, tmp_path, **judge)
        outcome = on_ray(options, tmp_path / "ray")
        assert (outcome.ended.how, outcome.judged) == ("finished", TEST_RUNS)
        paid = server.counts.answers.total()
        assert outcome.totals["calls"] >= paid > 0
        assert locally(options, tmp_path / "here").ended.how == "finished"
        assert server.counts.answers.total() == paid  # all of it came out of the answers
    assert predictions(tmp_path / "ray") == predictions(tmp_path / "here")
    assert_prompts_are_there(tmp_path / "ray")
    sums = run_facts(tmp_path / "ray")["totals"], run_facts(tmp_path / "here")["totals"]
    assert sums[0].pop("cost_usd") == pytest.approx(sums[1].pop("cost_usd"))  # added up in another order
    assert sums[0] == sums[1]


@pytest.mark.slow
@pytest.mark.parametrize("store", STORES)
def test_the_command_of_the_page_on_scale_puts_its_answers_into_a_bucket(
    cluster, tmp_path, monkeypatch, store
):
    if store not in cluster:
        pytest.skip(f"no server for {store}://: pip install {' '.join(lacking_packages(store))}")
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"^```text\n(.*?)^```", (REPOSITORY / "docs" / "scale.md").read_text(), re.M | re.S)
    program, package, *arguments = shlex.split(block)
    assert (program, package) == ("arb", "judges")
    with LLMServer() as server:
        values = {"s3://BUCKET": cluster[store], "http://HOST:8000/v1": server.base_url}
        for name, value in values.items():
            arguments = [each.replace(name, value) for each in arguments]
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, done.output
        assert server.counts.answers.total() == TEST_RUNS
    assert predictions(tmp_path / "runs" / "simplified-axtree").count(b"\n") == TEST_RUNS
    assert AnswerStore(f"{cluster[store]}/answers").files("answers")


@pytest.mark.slow
def test_what_one_machine_bought_is_not_paid_again(cluster, tmp_path):
    with LLMServer() as server:
        options = options_of(server, tmp_path, answers=str(tmp_path / "elsewhere"))
        locally(replace(options, limit=20), tmp_path / "here")
        assert server.counts.answers.total() == 20
        outcome = on_ray(options, tmp_path / "ray")
        assert server.counts.answers.total() == TEST_RUNS
        assert run_facts(tmp_path / "ray")["sessions"][0]["calls_paid"] == TEST_RUNS - 20
        assert outcome.ended.how == "finished"
        on_ray(options, tmp_path / "ray")  # finished: nothing to do
        assert server.counts.answers.total() == TEST_RUNS
    assert predictions(tmp_path / "ray").count(b"\n") == TEST_RUNS


@pytest.mark.slow
def test_a_run_that_stopped_for_money_goes_on_with_more_and_states_are_asked_again(cluster, tmp_path):
    faults = FaultPlan({"content_filter": 0.2, "server_error": 0.1}, at_most=1)
    with LLMServer(faults=faults) as server:
        options = options_of(server, tmp_path, model="m", price=["m=1,1"], max_usd=0.03, max_output_tokens=50)
        outcome = on_ray(options, tmp_path / "ray")
        assert outcome.ended.how == "budget"
        assert "stopped at --max-usd 0.03" in outcome.ended.message
        assert server.counts.usd(1, 1) <= 0.03
        some = outcome.judged
        assert 0 < some < TEST_RUNS
        outcome = on_ray(replace(options, max_usd=9.0), tmp_path / "ray")
        assert (outcome.ended.how, outcome.judged) == ("finished", TEST_RUNS)
        assert not server.counts.paid_twice()
        facts = run_facts(tmp_path / "ray")
        assert facts["spent_usd"] == pytest.approx(server.counts.usd(1, 1))
        assert [each["ended"] for each in facts["sessions"]] == ["budget", "finished"]
        locally(replace(options, max_usd=9.0), tmp_path / "here")
    assert predictions(tmp_path / "ray") == predictions(tmp_path / "here")


def test_what_was_mistyped_is_found_before_a_cluster_is_started(tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(ray, "init", lambda *_, **__: pytest.fail("a cluster was started"))
    with pytest.raises(OptionsError, match="there is no judge 'simplifyed'"):
        on_ray(RunOptions(judge="simplifyed", split="dev", suite="sample"), tmp_path / "out")


@pytest.mark.parametrize(
    ("option", "environment", "expected"),
    [("a:1", "b:2", "a:1"), (None, "b:2", "b:2"), (None, "", "local"), ("auto", "", "auto")],
)
def test_the_cluster_that_is_named_is_taken_and_no_other_one_that_runs(
    tmp_path, monkeypatch, option, environment, expected
):
    from arb.judges.ray.run import run_on_ray

    ray, taken = pytest.importorskip("ray"), []
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda address, **more: taken.append(address) or 1 / 0)
    monkeypatch.setenv("RAY_ADDRESS", environment)
    monkeypatch.setenv("PYTHONPATH", "")  # `_cluster` adds to it
    options = RunOptions(judge="always-successful", split="dev", suite="sample")
    with pytest.raises(OptionsError, match="cluster"):
        run_on_ray(build_config(options), tmp_path / "out", address=option)
    assert taken == [expected]


def test_without_ray_the_command_says_what_to_install(tmp_path):
    blocker = tmp_path / "ray.py"
    blocker.write_text("raise ImportError('not here')")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "OPENAI_API_KEY": "none"}
    done = subprocess.run(
        [sys.executable, "-m", "arb", "judges", "run", "always-successful", "--suite", "sample",
         "--split", "dev",
         "--out", str(tmp_path / "out"), "--engine", "ray"],
        cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 2
    assert "--engine ray needs Ray: pip install '.[ray]'" in done.stderr  # in a checkout
    assert "Traceback" not in done.stderr


def command(server, folder: Path, judge: str = "simplified-axtree", samples: int = SAMPLES) -> list[str]:
    options = ["--suite", "sample", "--split", "test", "--provider", "any", "--base-url", server.base_url]
    options += ["--cache", str(folder / "cache"), "--out", str(folder / "ray"), "--engine", "ray"]
    options += ["--ray-workers", "2", "--max-in-flight", str(IN_FLIGHT), "--model", "m"]
    options += ["--samples", str(samples)]
    return [sys.executable, "-m", "arb", "judges", "run", judge, *options]


def start(arguments: list[str]) -> subprocess.Popen:
    environment = {**os.environ, "OPENAI_API_KEY": "none"}
    return subprocess.Popen(
        arguments, cwd=REPOSITORY, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def processes_below(pid: int) -> dict[int, str]:
    """The processes that a process started, and those that they did, with their commands."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True)
    rows = [line.split(None, 2) for line in listed.stdout.splitlines()]
    below = {pid}
    for _ in range(5):  # the raylet starts the workers
        below |= {int(child) for child, parent, *_ in rows if int(parent) in below}
    return {int(child): " ".join(args) for child, _, *args in rows if int(child) in below - {pid}}


@pytest.mark.slow
def test_of_twenty_kills_of_workers_and_driver_only_replies_in_flight_are_paid_again(tmp_path):
    """A worker, or the driver with all that it started, is killed while calls are under way.

    Only the driver makes calls. A reply that it was sent and had no time to store is all that can be lost: at
    each of its kills no more than were in flight, each with an answer for every sample.
    """
    draw = random.Random(0)
    with LLMProcess(latency_s=0.5) as server:
        process, kills, at_risk = start(command(server, tmp_path)), 0, 0
        deadline = time.monotonic() + TIMEOUT_S
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.2)
            below = processes_below(process.pid)
            workers = [pid for pid, args in below.items() if "JudgeWorker" in args]
            if kills < KILLS and workers and server.counts.in_flight:
                is_driver = kills % 7 == 6  # each is a start of Ray
                for pid in [process.pid, *below] if is_driver else [draw.choice(workers)]:
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        continue
                kills += 1
                if is_driver:
                    at_risk += IN_FLIGHT * SAMPLES
                    process.communicate(timeout=300)
                    process = start(command(server, tmp_path))
        _, message = process.communicate(timeout=300)
        assert process.returncode == 0, message
        assert kills >= KILLS // 2, "too few kills to show anything"
        twice = {key: number - SAMPLES for key, number in server.counts.paid_twice(SAMPLES).items()}
        assert sum(twice.values()) <= at_risk
        # what was handed over whole to a client that did not live to store it
        assert Counter(twice) <= server.counts.last
        options = options_of(server, tmp_path, samples=SAMPLES, model="m", max_in_flight=IN_FLIGHT)
        paid = server.counts.answers.total()
        locally(options, tmp_path / "here")
        assert server.counts.answers.total() == paid
    assert predictions(tmp_path / "ray") == predictions(tmp_path / "here")
    assert_prompts_are_there(tmp_path / "ray")
