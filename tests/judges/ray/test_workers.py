"""A worker without its cluster: chunks of calls, journals, and how it ends."""

import asyncio
import pickle

import pytest

from judges.cli.options import RunOptions
from judges.engine.answers import JOURNAL, journal_lines
from judges.engine.cache import answer_line, call_key, key_in, reply_in
from judges.engine.engine import open_endpoints
from judges.ray.leases import Leases
from judges.ray.shuffle import Work
from judges.ray.workers import FAILURES, AnswerWorker, Planner
from judges.run.runner import engine_settings, prepare
from judges.types import Call, Message, Reply
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
    _, _, models = prepare(options)
    leases = leases or Leases(64, max_usd=options.max_usd)
    work = Work(str(tmp_path / "answers"), "plan", "session")
    settings = engine_settings(options, models)
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
    planner = Planner(options, ".")
    facts = planner.facts()
    every, plan = planner.todo(tmp_path, ())
    assert every == facts.there > 2
    ids = [each for shard in range(2) for each in planner.shard(shard, -(-every // 2))[0]]
    (tmp_path / "judgments.jsonl").write_text(
        f'{{"trajectory_id":"{ids[0]}","state":"ok"}}\n{{"trajectory_id":"{ids[1]}","state":"error"}}\n'
    )
    less, other = Planner(options, "."), Planner(options, ".")
    less.facts(), other.facts()
    assert less.todo(tmp_path, ("error",))[0] == every - 1
    assert less.shard(0, every)[0] == tuple(ids[1:])
    fewest, another = other.todo(tmp_path, ())
    assert fewest == every - 2
    assert another != plan
