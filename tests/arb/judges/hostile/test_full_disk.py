"""A disk that is full: the run stops with one line, and the same command continues without paying twice."""

import contextlib
import json
import resource
from collections import Counter

import pytest

from arb.judges.engine.cache import CallCache
from arb.judges.engine.storage import StorageError
from arb.judges.types import Reply
from tests.support import disks
from tests.support.judge_runs import invoke, options, predictions
from tests.support.llm_server.server import LLMServer

TRAJECTORIES = 20
IN_FLIGHT = 3
LONG = f"<reasoning>{'because ' * 1_000}</reasoning>"
"""Each reply takes about 8 kB, so that a small disk is full after some of the 20."""


def answer(request) -> str:
    return f"State change: none\n{LONG}<success>Successful</success>\nReward: 5"


def run(server, run_folder, cache, *arguments, judge="simplified-neither"):
    more = ("--out", run_folder, "--cache", cache, "--max-in-flight", IN_FLIGHT, *arguments)
    return invoke("run", *options(server, run_folder, *more, judge=judge))


@contextlib.contextmanager
def largest_file(size: int):
    """No file of this process can grow beyond ``size`` bytes inside the block."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 96 kB, and a function that makes it larger."""
    with disks.small_disk(tmp_path / "disk", "96k") as grow:
        yield tmp_path / "disk", grow


def assert_stopped_in_one_line(result, reason: str) -> None:
    errors = [line for line in result.output.splitlines() if "error:" in line]
    assert (result.exit_code, len(errors)) == (2, 1), result.output
    assert reason in errors[0]
    assert "run the same command again" in errors[0]
    assert "Traceback" not in result.output


def states(run_folder) -> Counter:
    return Counter(row["state"] for row in predictions(run_folder, ""))


@pytest.mark.parametrize(("full", "paid_again"), [("cache", IN_FLIGHT), ("run", 0)])
def test_on_a_full_disk_the_run_stops_and_the_same_command_continues(full, paid_again, small_disk, tmp_path):
    disk, grow = small_disk
    places = {"run": tmp_path / "run", "cache": tmp_path / "cache"} | {full: disk / full}
    with LLMServer(answer) as server:
        stopped = run(server, places["run"], places["cache"])
        assert_stopped_in_one_line(stopped, "No space left on device")
        assert str(places[full]) in stopped.output
        assert server.counts.calls > 0
        assert grow()
        asked = server.counts.calls
        assert run(server, places["run"], places["cache"]).exit_code == 0
        assert states(places["run"]) == {"ok": TRAJECTORIES}
        # Of the calls of the first command only those in flight when the disk was full are made again.
        assert server.counts.calls <= TRAJECTORIES + paid_again
        if full == "cache":  # 96 kB hold 11 replies of 8 kB, and not 20: no further call was paid
            assert asked < TRAJECTORIES
    with LLMServer(answer) as server:  # the folder holds what an undisturbed run holds
        run(server, tmp_path / "other", tmp_path / "other-cache")
        other, found = predictions(tmp_path, "other"), predictions(places["run"], "")
        assert [row["trajectory_id"] for row in other] == [row["trajectory_id"] for row in found]


def test_a_judge_of_many_calls_pays_no_further_stage_once_the_cache_is_full(tmp_path):
    with LLMServer(answer) as server:
        with largest_file(40_000):  # four replies
            stopped = run(server, tmp_path / "run", tmp_path / "cache", judge="NNetNav")
        assert_stopped_in_one_line(stopped, "File too large")
        assert server.counts.calls <= 40_000 // 8_000 + IN_FLIGHT
        predictions = tmp_path / "run" / "predictions.jsonl"
        assert b'"error"' not in (predictions.read_bytes() if predictions.exists() else b"")
        assert run(server, tmp_path / "run", tmp_path / "cache", judge="NNetNav").exit_code == 0
        assert states(tmp_path / "run") == {"ok": TRAJECTORIES}
        twice = server.counts.paid_twice()
        assert sum(twice.values()) - len(twice) <= IN_FLIGHT


def test_a_reply_that_cannot_be_stored_counts_as_spent(tmp_path):
    price = ("--price", "m=1000,1000")
    with LLMServer(answer) as server:
        with largest_file(40_000):
            run(server, tmp_path / "run", tmp_path / "cache", *price, "--max-usd", 1_000)
        spent = json.loads((tmp_path / "run" / "run.json").read_bytes())["spent_usd"]
        assert spent == pytest.approx(server.counts.usd(1_000, 1_000))


def test_a_pilot_stops_on_a_full_disk_too(tmp_path):
    more = ("--pilot", 20, "--max-in-flight", IN_FLIGHT)
    with LLMServer(answer) as server:
        with largest_file(40_000):
            stopped = invoke("plan", *options(server, tmp_path, *more, judge="simplified-neither"))
        assert_stopped_in_one_line(stopped, "File too large")
        assert server.counts.calls <= 40_000 // 8_000 + IN_FLIGHT


def test_a_batch_whose_replies_cannot_be_stored_is_collected_again(tmp_path, monkeypatch):
    monkeypatch.setattr("arb.judges.run.batch.POLL_S", 0.05)
    with LLMServer(answer) as server:
        with largest_file(60_000):
            stopped = run(server, tmp_path / "run", tmp_path / "cache", "--batch")
        assert_stopped_in_one_line(stopped, "File too large")
        assert run(server, tmp_path / "run", tmp_path / "cache", "--batch").exit_code == 0
        assert states(tmp_path / "run") == {"ok": TRAJECTORIES}
        assert server.counts.paid_twice() == {}


def test_a_line_that_could_not_be_written_whole_leaves_nothing_behind(tmp_path):
    cache = CallCache(tmp_path)
    cache.put("aa" * 32, Reply("first"))
    (segment,) = tmp_path.glob("segment-*")
    before = segment.read_bytes()
    with largest_file(len(before) + 100), pytest.raises(StorageError, match="File too large"):
        cache.put("bb" * 32, Reply("x" * 1_000))
    assert segment.read_bytes() == before
    cache.put("cc" * 32, Reply("third"))
    assert [CallCache(tmp_path).get(each * 32) is not None for each in ("aa", "bb", "cc")] == [1, 0, 1]


@pytest.mark.slow
def test_on_a_cluster_a_full_disk_stops_all_workers(small_disk, tmp_path):
    pytest.importorskip("ray")
    disk, grow = small_disk
    with LLMServer(answer) as server:
        given = (server, tmp_path / "run", disk / "cache", "--engine", "ray", "--ray-workers", 2)
        assert_stopped_in_one_line(run(*given), "No space left on device")
        assert 0 < server.counts.calls < TRAJECTORIES
        assert grow()
        assert run(*given).exit_code == 0
        assert states(tmp_path / "run") == {"ok": TRAJECTORIES}
        assert server.counts.calls <= TRAJECTORIES + IN_FLIGHT
