"""A worker without its cluster: chunks of calls, journals, and how it ends."""

import asyncio
import pickle
import random
import selectors
from collections import deque
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise

import pytest

from arb.judges.cli.options import RunOptions
from arb.judges.engine.answers import JOURNAL, journal_lines
from arb.judges.engine.cache import answer_line, call_key, key_in, reply_in
from arb.judges.engine.engine import open_endpoints
from arb.judges.engine.errors import CallFailed
from arb.judges.ray.leases import Leases
from arb.judges.ray.shuffle import CHUNKS_AT_ONCE, Work, chunks
from arb.judges.ray.workers import (
    FAILURES,
    AnswerWorker,
    Planner,
    engine_request,
    engine_rows,
    vllm_processor,
    write_engine_replies,
)
from arb.judges.run.config import build_config
from arb.judges.types import Call, Message, ModelSettings, Reply
from tests.support.llm_server.faults import FaultPlan
from tests.support.llm_server.server import LLMServer


class InProcess:
    """An actor's handle for an object of this process."""

    def __init__(self, actor):
        self._actor = actor

    def __getattr__(self, name):
        method = getattr(self._actor, name)

        class Remote:
            @staticmethod
            async def remote(*arguments):
                return method(*arguments)

        return Remote


def options_of(server: LLMServer, tmp_path, **more) -> RunOptions:
    return RunOptions(
        judge="simplified-neither", split="dev", suite="sample", base_url=server.base_url, model="m",
        cache=tmp_path / "cache", **more,
    )  # fmt: skip


def worker_of(options: RunOptions, tmp_path, leases: Leases | None = None):
    """A worker, the leases that it has, and what it answers: calls with their keys."""
    settings = build_config(options)
    models = settings.models
    leases = leases or Leases(64, max_usd=options.max_usd)
    work = Work(str(tmp_path / "answers"), "plan", "session")
    worker = AnswerWorker(models, settings, InProcess(leases), work, "no folder", open_endpoints)
    calls = [Call("verdict", (Message("user", f"question {number}"),)) for number in range(6)]
    model = models["judge"]
    keyed = [(call_key(model, each.messages, model.max_output_tokens, 0), each) for each in calls]
    return worker, leases, work, keyed


def answer(worker: AnswerWorker, *chunks: tuple[str, list]) -> list[dict]:
    async def run():
        rows = [{"chunk": name, "calls": pickle.dumps(calls)} for name, calls in chunks]
        done = await asyncio.gather(*map(worker, rows))
        await worker._lease.renew()
        worker._running.cancel()
        await worker._open.aclose()
        return done

    return asyncio.run(run())


def keys_in(work: Work, folder: str) -> list[str]:
    """The keys of a journal's lines."""
    lines = [line for name in work.place.files(folder) for line in journal_lines(work.place, name)]
    return [key_in(line).hex() for line in lines]


def test_every_answer_is_in_the_journal_of_its_chunk(tmp_path):
    with LLMServer() as server:
        worker, leases, work, calls = worker_of(options_of(server, tmp_path), tmp_path)
        rows = answer(worker, ("a", calls[:4]), ("b", calls[4:]))
        assert server.counts.answers.total() == 6
    assert [row["answered"] for row in rows] == [4, 2]
    assert sorted(keys_in(work, f"{JOURNAL}/session/a")) == sorted(key for key, _ in calls[:4])
    assert sorted(keys_in(work, f"{JOURNAL}/session/b")) == sorted(key for key, _ in calls[4:])
    assert (leases.totals().answered, leases.totals().calls, leases.totals().failed) == (6, 6, 0)


def test_a_chunk_that_another_worker_died_over_is_gone_on_with(tmp_path):
    with LLMServer() as server:
        worker, leases, work, calls = worker_of(options_of(server, tmp_path), tmp_path)
        found = [answer_line(key, Reply("bought before", cost_usd=1.0)) for key, _ in calls[:4]]
        work.place.write(f"{JOURNAL}/session/a/dead.jsonl", b"".join(found)[:-3])  # the fourth is cut off
        assert answer(worker, ("a", calls))[0]["answered"] == 6
        assert server.counts.answers.total() == 3  # 6 less the 3 whole lines
    assert sorted(keys_in(work, JOURNAL)) == sorted(key for key, _ in calls)
    assert leases.totals().calls == 3


def test_a_call_that_fails_for_good_is_in_another_journal_than_the_answers(tmp_path):
    with LLMServer(max_input_tokens=3) as server:
        worker, leases, work, calls = worker_of(options_of(server, tmp_path), tmp_path)
        assert answer(worker, ("a", calls[:2]))[0]["answered"] == 2
    assert keys_in(work, JOURNAL) == []
    failures = f"{work.session_folder}/{FAILURES}"
    assert sorted(keys_in(work, failures)) == sorted(key for key, _ in calls[:2])
    (line, _) = (line for name in work.place.files(failures) for line in journal_lines(work.place, name))
    assert reply_in(line, key_in(line).hex()).state == "too_long"
    assert leases.totals().failed == 2


def test_a_worker_that_gets_nothing_but_rate_limits_stops_the_run_and_says_so(tmp_path):
    with LLMServer(faults=FaultPlan({"rate_limit": 1.0})) as server:
        options = options_of(server, tmp_path, rate_limit_timeout=0.5)
        worker, leases, work, calls = worker_of(options, tmp_path)
        assert answer(worker, ("a", calls))[0]["answered"] == 0
    how, message = leases.totals().stop
    assert how == "limited"
    assert "only rate limits" in message
    assert keys_in(work, JOURNAL) == []


def test_a_worker_makes_no_call_once_the_run_is_stopped(tmp_path):
    with LLMServer() as server:
        leases = Leases(64)
        leases.stop("interrupted", "stopped")
        worker, _, _, calls = worker_of(options_of(server, tmp_path), tmp_path, leases)
        assert answer(worker, ("a", calls))[0]["answered"] == 0
        assert server.counts.calls == 0


def test_a_worker_spends_no_more_than_the_run_may(tmp_path):
    with LLMServer() as server:
        # $1 a token: a prompt of at most 60 tokens and 10 tokens out cost some of 400 dollars
        options = options_of(
            server, tmp_path, max_usd=400.0, price=["m=1000000,1000000"], max_output_tokens=10
        )
        worker, leases, _, calls = worker_of(options, tmp_path)
        answered = answer(worker, ("a", calls))[0]["answered"]
        assert server.counts.usd(1e6, 1e6) == pytest.approx(leases.totals().paid_usd)
        assert 0 < leases.totals().paid_usd <= 400.0
    if answered < 6:
        assert leases.totals().stop is not None or leases.totals().left_out


def test_the_planner_leaves_out_what_is_judged_and_names_the_plan_by_the_rest(tmp_path):
    options = RunOptions(judge="always-successful", split="dev", suite="sample")
    planner = Planner(build_config(options), ".")
    job, _ = planner.facts()
    every, plan = planner.todo(tmp_path, ())
    assert every == len(job.ids) > 2
    ids = [each for shard in range(2) for each in planner.shard(shard, -(-every // 2))[0]]
    (tmp_path / "judgments.jsonl").write_text(
        f'{{"trajectory_id":"{ids[0]}","state":"ok"}}\n{{"trajectory_id":"{ids[1]}","state":"error"}}\n'
    )
    less, other = Planner(build_config(options), "."), Planner(build_config(options), ".")
    less.facts(), other.facts()
    assert less.todo(tmp_path, ("error",))[0] == every - 1
    assert less.shard(0, every)[0] == tuple(ids[1:])
    fewest, another = other.todo(tmp_path, ())
    assert fewest == every - 2
    assert another != plan


ENGINE_MODEL = ModelSettings(
    "org/model", "ray-data-llm", temperature=0.5, seed=None, max_output_tokens=64,
    extra={"tensor_parallel_size": 2, "top_p": 0.9},
)  # fmt: skip


def engine_chunk(*calls: Call) -> dict:
    return {
        "chunk": "a",
        "calls": pickle.dumps([(f"{number:064x}", call) for number, call in enumerate(calls)]),
    }


def test_a_call_becomes_a_row_of_ray_data_llm_with_what_vllm_samples_by():
    form = {"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}}}
    model = replace(ENGINE_MODEL, extra=ENGINE_MODEL.extra | form)
    long, short = (Message("user", "a long question"),), (Message("user", "a question"),)
    chunk = engine_chunk(Call("verdict", long, short), Call("verdict", long, role="captioner"))
    (row,) = engine_rows("judge", None, chunk)
    asked = engine_request(model, row)
    assert asked["key"] == f"{0:064x}"
    assert asked["messages"] == [{"role": "user", "content": "a long question"}]
    assert asked["sampling_params"] == {
        "temperature": 0.5,
        "max_tokens": 64,
        "top_p": 0.9,
        "structured_outputs": {"json": '{"type": "object"}'},
    }
    assert engine_rows("judge", {f"{1:064x}"}, chunk) == []
    (again,) = engine_rows("judge", {f"{0:064x}"}, chunk)
    assert engine_request(model, again)["messages"] == [{"role": "user", "content": "a question"}]


def test_rows_that_come_back_are_answers_or_failures_and_what_was_too_long_is_asked_shorter(tmp_path):
    messages = (Message("user", "question"),)
    calls = [Call("verdict", messages, messages if number == 3 else None) for number in range(5)]
    rows = engine_rows("judge", None, engine_chunk(*calls))
    too_long = "ValueError: The decoder prompt (length 9000) is longer than the maximum model length of 8192"
    found = [
        ("yes", 3, ""),
        ("cut off", 64, ""),
        ("", 0, "RuntimeError: out of luck"),
        ("", 0, too_long),
        (" ", 2, ""),
    ]
    batch = {name: [row[name] for row in rows] for name in rows[0]} | {
        "generated_text": [text for text, *_ in found],
        "num_generated_tokens": [made for _, made, _ in found],
        "num_input_tokens": [500] * 5,
        "__inference_error__": [error for *_, error in found],
    }
    work = Work(str(tmp_path), "plan", "session")
    made = write_engine_replies(work, ENGINE_MODEL, batch)
    assert made == {"answered": [2], "failed": [2], "too_long": [f"{3:064x}"]}
    replies = {
        key_in(line)[-1]: reply_in(line, key_in(line).hex())
        for folder in (f"{JOURNAL}/session", f"{work.session_folder}/{FAILURES}")
        for name in work.place.files(folder)
        for line in journal_lines(work.place, name)
    }
    assert {number: reply.state for number, reply in replies.items()} == {
        0: "ok",
        1: "ok",
        2: "error",
        4: "error",
    }
    assert (replies[0].text, replies[0].finish_reason, replies[1].finish_reason) == ("yes", "stop", "length")
    assert (replies[0].input_tokens, replies[0].output_tokens, replies[0].model) == (500, 3, "org/model")
    assert "out of luck" in replies[2].error


def test_as_many_engines_are_asked_for_as_the_gpus_have_room_for(monkeypatch):
    llm = pytest.importorskip("ray.data.llm", reason="Ray is not here: pip install 'ray[data]'")
    monkeypatch.setattr(llm, "build_processor", lambda config, **functions: (config, functions))
    config, functions = vllm_processor(ENGINE_MODEL, 7, True, len, str)
    assert config.concurrency == 3  # two GPUs each
    assert config.model_source == "org/model"
    assert config.engine_kwargs["tensor_parallel_size"] == 2
    assert "top_p" not in config.engine_kwargs
    assert config.should_continue_on_error
    assert config.prepare_multimodal_stage is True
    assert functions == {"preprocess": len, "postprocess": str}


class Clock(selectors.DefaultSelector):
    """A selector that does not wait: the time goes on to the next event."""

    now = 0.0

    def select(self, timeout=None):
        ready = super().select(0)
        self.now += 0.0 if ready else timeout or 0.0
        return ready


def rate_of_eight_workers(tmp_path, monkeypatch, calls: int) -> float:
    """Tries a second over the first nine tenths of them, where one of eight workers takes 2 s for a call, the
    others 0.2, a tenth of the tries fails and 64 may be in flight.
    """
    workers, in_flight, draw, ended = 8, 64, random.Random(1), []

    class Endpoint:
        def __init__(self, latency_s: float):
            self._latency_s = latency_s

        async def attempt(self, *_, **__):
            await asyncio.sleep(self._latency_s)
            ended.append(asyncio.get_running_loop().time())
            if draw.random() < 0.1:
                raise CallFailed("transient", "500: out of order")
            return Reply("yes", input_tokens=1, output_tokens=1)

        async def close(self): ...

    def opened(latency_s: float):
        @asynccontextmanager
        async def open_endpoints(models, **_):
            yield dict.fromkeys(models, Endpoint(latency_s))

        return open_endpoints

    async def at_once(function, *arguments):
        return function(*arguments)

    async def run() -> None:
        model = ModelSettings("m", "any", "http://host/v1")
        options = RunOptions(judge="always-successful", split="dev", suite="sample", max_in_flight=in_flight)
        settings = build_config(options)
        leases = InProcess(Leases(in_flight, clock=asyncio.get_running_loop().time))
        work, waiting = Work(str(tmp_path), "plan", "session"), deque()
        for shard, cuts in chunks({0: calls}, workers, in_flight):
            for start, stop in pairwise(cuts):
                asked = [Call("verdict", (Message("user", f"question {row}"),)) for row in range(start, stop)]
                keyed = [(call_key(model, each.messages, model.max_output_tokens, 0), each) for each in asked]
                waiting.append({"chunk": f"{shard}-{start}", "calls": pickle.dumps(keyed)})

        async def take_chunks(worker: AnswerWorker) -> None:
            while waiting:
                await worker(waiting.popleft())
                await asyncio.sleep(0.03)  # what Ray takes to hand over the next one

        made = [
            AnswerWorker(
                {"judge": model}, settings, leases, work, "no folder", opened(2.0 if number == 3 else 0.2)
            )
            for number in range(workers)
        ]
        await asyncio.gather(*(take_chunks(each) for each in made for _ in range(CHUNKS_AT_ONCE)))
        for each in made:
            each._running.cancel()

    monkeypatch.setattr(asyncio, "to_thread", at_once)
    loop = asyncio.SelectorEventLoop(clock := Clock())
    loop.time = lambda: clock.now
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(run())
    some = sorted(ended)[: len(ended) * 9 // 10]
    return len(some) / some[-1]


def test_a_slow_worker_and_failing_calls_leave_nearly_the_ideal_rate(tmp_path, monkeypatch):
    """Ideal are 8 calls in flight in each: 7 x 8 / 0.2 + 8 / 2 = 284 a second."""
    assert rate_of_eight_workers(tmp_path, monkeypatch, 3_000) >= 0.85 * 284
