"""Workers without their cluster: sessions go on in another process, and what they cannot do is an error."""

import asyncio

import pytest

from arb.judges.cli.options import RunOptions
from arb.judges.run.runner import open_views, prepare
from arb.judges.run.scheduler import judge_trajectory
from arb.judges.types import Call, OptionsError, Reply

ray = pytest.importorskip("ray", reason="Ray is not here: pip install 'ray[data]'")

ACTOR_DIED = ray.exceptions.ActorDiedError


class Handle:
    """An actor's handle for an object of this process, which is made again after each death."""

    def __init__(self, make, deaths: set[int] = frozenset()):
        self._make, self._deaths, self._actor, self._steps = make, deaths, make(), 0
        self.step, self.close = self, self

    async def remote(self, setup, trajectory_id, stages):
        self._steps += 1
        if self._steps in self._deaths:
            self._actor = self._make()
            raise ACTOR_DIED
        return self._actor.step(setup, trajectory_id, stages)


@pytest.fixture
def job(monkeypatch):
    """Options, views and the judge of a run that asks in several stages."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setattr(ray, "get", lambda reference: reference)
    monkeypatch.setattr("arb.judges.ray.run.RETRY_S", 0.0)
    options = RunOptions(judge="webjudge", model="m", split="dev", suite="sample", provider="vllm")
    selection, judge, _ = prepare(options)
    views, ids, _ = open_views(options, selection, judge)
    return options, views, judge, sorted(ids)


def judge_all(job, deaths=frozenset()):
    """The judgments of the workers, and of this process, with the calls that each of them made."""
    from arb.judges.ray.run import JudgeWorker, WorkerPool

    options, views, judge, ids = job
    pool = WorkerPool([Handle(JudgeWorker, deaths)], (options, "no folder", views))

    async def judge_each(judge_one):
        calls = []

        async def ask(call: Call) -> Reply:
            calls.append(call)
            return Reply(f"{call.purpose}: 1. a key point. Score: 4. Status: success", key=str(len(calls)))

        judged = [await judge_one(judge, each, views, ask) for each in ids]
        return judged, calls

    return asyncio.run(judge_each(pool.judge)), asyncio.run(judge_each(judge_trajectory))


@pytest.mark.parametrize("deaths", [(), (2,), (3, 4, 7)])
def test_sessions_make_the_calls_of_one_machine_once_though_workers_die(job, deaths):
    (judged, calls), (expected, expected_calls) = judge_all(job, frozenset(deaths))
    assert calls == expected_calls
    assert judged == expected
    assert max(each.stage for each in judged[0].exchanges) >= 2


def test_a_trajectory_over_which_every_worker_dies_ends_in_an_error(job):
    (judged, calls), _ = judge_all(job, frozenset(range(10_000)))
    assert {each.answer.state for each in judged} == {"error"}
    assert "no worker could judge it in 100 tries" in judged[0].problem
    assert not calls


def test_answers_of_sessions_that_were_killed_are_not_lost(tmp_path):
    """Up to commit 7d56a80 they lay in a journal, of which the last line may be cut off."""
    from arb.judges.engine.answers import AnswerStore
    from arb.judges.engine.cache import CallCache, answer_line
    from arb.judges.ray.run import import_journals

    folder = tmp_path / "cache" / "answers" / "journal" / "session" / "chunk"
    folder.mkdir(parents=True)
    lines = [answer_line(key * 32, Reply(key)) for key in ("aa", "bb")]
    (folder / "writer.jsonl").write_bytes(b"".join(lines)[:-5])
    import_journals(AnswerStore(str(tmp_path / "cache" / "answers")))
    assert not (tmp_path / "cache" / "answers" / "journal").exists()
    cache = CallCache(tmp_path / "cache")
    assert cache.get("aa" * 32).text == "aa"
    assert cache.get("bb" * 32) is None


def test_answers_of_a_cache_are_shared_with_other_machines(tmp_path):
    from arb.judges.engine.answers import AnswerStore
    from arb.judges.engine.cache import CallCache
    from arb.judges.ray.run import share_answers

    mine = CallCache(tmp_path / "mine")
    mine.put("aa" * 32, Reply("yes"))
    mine.note_attempt("bb" * 32, "transient", "500")
    for _ in range(2):
        share_answers(tmp_path / "mine", AnswerStore(str(tmp_path / "shared")))
    assert CallCache(tmp_path / "other", answers=str(tmp_path / "shared")).get("aa" * 32).text == "yes"
    assert len([*(tmp_path / "shared").rglob("*.parquet")]) == 1


def test_a_place_that_nothing_here_can_open_is_refused_before_the_run(tmp_path, monkeypatch):
    from arb.judges.ray.run import _answer_store

    with pytest.raises(OptionsError, match="--answers"):
        _answer_store("unheard-of://bucket/answers")
