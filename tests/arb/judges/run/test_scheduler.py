"""One judge driven in stages, and many trajectories at once: faults stay with one, and memory is bounded."""

import asyncio
import threading
from dataclasses import dataclass

import pytest

from arb.judges.run.scheduler import (
    MAX_BYTES,
    PREFETCH,
    StopRunError,
    drive,
    drive_offline,
    judge_trajectories,
)
from arb.judges.types import Answer, Call, Image, Message, Reply, View, ViewStep, Wants
from arb.judges.views import NoViewError

VIEW = View("a goal", (), ())


def call(text: str) -> Call:
    return Call(text, (Message("user", text),))


MODELS = {"judge": "m"}


@dataclass(frozen=True)
class TwoStages:
    """Asks for three captions at once, then for a verdict on them."""

    name: str = "two stages"
    models = MODELS
    wants = Wants()

    def ask(self, view: View):
        captions = yield [call(f"caption {number}") for number in range(3)]
        (verdict,) = yield [call("on " + ", ".join(each.text for each in captions))]
        return Answer("ok", success=verdict.text == "yes", reasoning=verdict.text)


def test_replies_come_back_in_the_order_of_the_calls_whatever_ends_first():
    async def ask(asked: Call) -> Reply:
        await asyncio.sleep(0.003 if asked.purpose.endswith("0") else 0)
        return Reply(asked.purpose[-1])

    exchanges = []
    answer = asyncio.run(drive(TwoStages(), VIEW, ask, exchanges))
    # the last letter of "on 0, 1, 2" is 2
    assert answer == Answer("ok", success=False, reasoning="2")
    assert [(each.stage, each.call.purpose, each.reply.text) for each in exchanges] == [
        (0, "caption 0", "0"),
        (0, "caption 1", "1"),
        (0, "caption 2", "2"),
        (1, "on 0, 1, 2", "2"),
    ]


def test_the_calls_of_a_stage_are_under_way_together():
    together = []

    async def ask(asked: Call) -> Reply:
        together.append(asked)
        while asked.purpose.startswith("caption") and len(together) < 3:
            await asyncio.sleep(0)
        return Reply("yes")

    answer = asyncio.run(drive(TwoStages(), VIEW, ask, []))
    assert answer.success is True


def test_when_a_call_raises_the_others_of_its_stage_still_end():
    ended = []

    async def ask(asked: Call) -> Reply:
        if asked.purpose == "caption 1":
            raise RuntimeError("no money")
        await asyncio.sleep(0.001)
        ended.append(asked.purpose)
        return Reply("yes")

    with pytest.raises(RuntimeError, match="no money"):
        asyncio.run(drive(TwoStages(), VIEW, ask, []))
    assert ended == ["caption 0", "caption 2"]


def test_offline_a_missing_reply_gives_no_answer():
    assert drive_offline(TwoStages(), VIEW, lambda call: None) is None


@dataclass(frozen=True)
class OneCall:
    name: str = "one call"
    models = MODELS
    wants = Wants()
    calls_each: int = 1

    def ask(self, view: View):
        asked = (Message("user", view.goal),)
        replies = yield [Call("verdict", asked, sample=n) for n in range(self.calls_each)]
        failed = next((Answer(reply.state) for reply in replies if reply.state != "ok"), None)
        return failed or Answer("ok", success=replies[0].text == "yes")


class Goals:
    """Views whose goal is the id; counts how many are alive by way of what was begun and ended."""

    def __init__(self):
        self.shown = 0
        self._lock = threading.Lock()

    def view(self, trajectory_id, wants):
        if trajectory_id == "missing":
            raise NoViewError("missing: there is no run of it")
        with self._lock:
            self.shown += 1
        return View(trajectory_id, (), ())


def judged(judge, ids, ask, views=None, max_in_flight=4):
    found = []
    asyncio.run(judge_trajectories(judge, ids, views or Goals(), ask, found.append, max_in_flight))
    return found


async def yes(call: Call) -> Reply:
    return Reply("yes")


def test_a_trajectory_that_cannot_be_shown_is_an_error_that_says_why():
    found = {each.trajectory_id: each for each in judged(OneCall(), ["a", "missing", "b"], yes)}
    assert (found["missing"].answer.state, found["missing"].problem) == (
        "error",
        "missing: there is no run of it",
    )
    assert found["a"].answer.success and found["b"].answer.success


def test_a_fault_in_a_judge_is_an_error_of_that_trajectory_and_says_where():
    @dataclass(frozen=True)
    class Faulty:
        name: str = "faulty"
        models = MODELS
        wants = Wants()

        def ask(self, view):
            yield [Call("verdict", (Message("user", "?"),))]
            return Answer("ok", success=bool(1 / (view.goal != "b")))

    found = {each.trajectory_id: each for each in judged(Faulty(), ["a", "b"], yes)}
    assert found["a"].answer.success
    assert found["b"].answer.state == "error"
    assert "ZeroDivisionError" in found["b"].problem and "ask, line" in found["b"].problem


async def enough_read(views, expected):
    """Wait until so many are read, and then for others that should not be."""
    async with asyncio.timeout(120):
        while views.shown < expected:
            await asyncio.sleep(0.001)
    for _ in range(50):
        await asyncio.sleep(0.001)


def most_read_at_once(judge, views, max_in_flight, expected):
    """How many runs are read while no call ends."""

    async def main():
        async def never(call):
            await asyncio.sleep(600)

        ids = map(str, range(100))
        running = asyncio.create_task(judge_trajectories(judge, ids, views, never, list, max_in_flight))
        await enough_read(views, expected)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return views.shown

    return asyncio.run(main())


def test_of_judges_with_many_calls_a_trajectory_fewer_are_read_at_once():
    # One call each: 12 under way and PREFETCH more. Thirty calls each: the first PREFETCH begin before
    # their calls are known, and then there is no room for another.
    for judge, expected in ((OneCall(), 12 + PREFETCH), (OneCall(calls_each=30), PREFETCH)):
        assert most_read_at_once(judge, Goals(), 12, expected) == expected


def test_of_runs_with_heavy_pictures_fewer_are_held_at_once():
    class Pictures(Goals):
        def view(self, trajectory_id, wants):
            super().view(trajectory_id, wants)
            picture = Image(Heavy(), "image/png", 1, 1)
            return View(trajectory_id, (), (ViewStep(1, None, None, None, None, screenshot=picture),))

    class Heavy(bytes):
        def __len__(self):
            return MAX_BYTES // 3

    # After three are held there is no room; those of the PREFETCH begun before that still come.
    assert most_read_at_once(OneCall(), Pictures(), 64, expected=3) <= PREFETCH + 3


def test_a_stop_lets_what_is_under_way_end_and_then_is_raised():
    ended = []

    async def ask(call):
        number = int(call.messages[0].content)
        if number >= 10:
            raise StopRunError("no money is left")
        await asyncio.sleep(0.002)
        return Reply("yes")

    with pytest.raises(StopRunError, match="no money is left"):
        asyncio.run(judge_trajectories(OneCall(), map(str, range(10_000)), Goals(), ask, ended.append, 4))
    # Begun before the stop, so they count; none of them is lost, and far from all were begun.
    assert sorted(int(each.trajectory_id) for each in ended) == list(range(10))


def test_cancelled_it_leaves_no_call_behind():
    begun, cancelled = [], []

    async def main():
        async def ask(call):
            begun.append(call)
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                cancelled.append(call)
                raise

        running = asyncio.create_task(
            judge_trajectories(OneCall(), map(str, range(3)), Goals(), ask, list, 4)
        )
        async with asyncio.timeout(120):
            while len(begun) < 3:
                await asyncio.sleep(0.001)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return len(asyncio.all_tasks())

    assert asyncio.run(main()) == 1
    assert len(cancelled) == 3
