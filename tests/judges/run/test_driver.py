"""Driving judges: stages in order, the calls of one at once, and what happens when a call cannot be made."""

import asyncio
from dataclasses import dataclass

import pytest

from judges.run.scheduler import drive, drive_offline
from judges.types import Answer, Call, Message, Reply, View, Wants

VIEW = View("a goal", (), ())


def call(text: str) -> Call:
    return Call(text, (Message("user", text),))


@dataclass(frozen=True)
class TwoStages:
    """Executor for three captions at once, then for a verdict on them."""

    name: str = "two stages"
    wants = Wants()

    def ask(self, view: View):
        captions = yield [call(f"caption {number}") for number in range(3)]
        (verdict,) = yield [call("on " + ", ".join(each.text for each in captions))]
        return Answer("ok", success=verdict.text == "yes", reasoning=verdict.text)


def test_replies_come_back_in_the_order_of_the_calls_whatever_ends_first():
    async def ask(asked: Call) -> Reply:
        await asyncio.sleep(0.003 if asked.purpose.endswith("0") else 0)
        return Reply(asked.purpose[-1])

    answer, exchanges = asyncio.run(drive(TwoStages(), VIEW, ask))
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

    answer, _ = asyncio.run(drive(TwoStages(), VIEW, ask))
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
        asyncio.run(drive(TwoStages(), VIEW, ask))
    assert ended == ["caption 0", "caption 2"]


def test_offline_a_missing_reply_gives_no_answer_and_every_call_of_the_stage_is_asked_for():
    asked = []

    def reply_to(each: Call) -> Reply | None:
        asked.append(each.purpose)
        return None if each.purpose == "caption 0" else Reply("a page")

    assert drive_offline(TwoStages(), VIEW, reply_to) is None
    assert asked == ["caption 0", "caption 1", "caption 2"]


def test_offline_the_answer_is_that_of_the_replies():
    assert drive_offline(TwoStages(), VIEW, lambda _: Reply("yes")).success is True


def test_a_judge_that_asks_nothing_answers_at_once():
    @dataclass(frozen=True)
    class Silent:
        name: str = "silent"

        def ask(self, view: View):
            yield from ()
            return Answer("ok", success=view.goal == "a goal")

    assert drive_offline(Silent(), VIEW, lambda _: None).success is True


def test_a_judge_that_never_answers_does_not_ask_for_ever():
    @dataclass(frozen=True)
    class Endless:
        name: str = "endless"

        def ask(self, view: View):
            while True:
                yield [call("again")]

    with pytest.raises(RuntimeError, match="endless never answers"):
        drive_offline(Endless(), VIEW, lambda _: Reply("yes"))
