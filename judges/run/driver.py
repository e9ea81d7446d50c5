"""Driving a judge: its calls go to an executor, their replies back to it, until it answers."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from judges.types import Answer, Call, Judge, Reply, View

Ask = Callable[[Call], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A call and its reply. ``stage`` counts from 0; the calls of one stage were under way at once."""

    call: Call
    reply: Reply
    stage: int


async def drive(judge: Judge, view: View, ask: Ask) -> tuple[Answer, tuple[Exchange, ...]]:
    """A judge's answer to one trajectory, with every call and its reply in the order the judge named them.

    Raises what ``ask`` raises, once the other calls of the stage have ended.
    """
    exchanges: list[Exchange] = []
    session = judge.ask(view)
    try:
        calls = next(session)
        for stage in range(_NO_END):
            replies = await _all_of(calls, ask)
            exchanges += [Exchange(call, reply, stage) for call, reply in zip(calls, replies, strict=True)]
            calls = session.send(replies)
    except StopIteration as end:
        return end.value, tuple(exchanges)
    finally:
        session.close()
    raise RuntimeError(f"{judge.name} never answers")


def drive_offline(judge: Judge, view: View, reply_to: Callable[[Call], Reply | None]) -> Answer | None:
    """As `drive`, with replies that are there already; None when one is not.

    ``reply_to`` is called for every call of a stage even so: a batch collects all that is missing at once.
    """
    session = judge.ask(view)
    try:
        calls = next(session)
        for _ in range(_NO_END):
            replies = [reply_to(call) for call in calls]
            if any(reply is None for reply in replies):
                return None
            calls = session.send(replies)
    except StopIteration as end:
        return end.value
    finally:
        session.close()
    raise RuntimeError(f"{judge.name} never answers")


_NO_END = 10_000
"""More stages than any judge has: one that never answers must not spend money for ever."""


async def _all_of(calls: Sequence[Call], ask: Ask) -> list[Reply]:
    """The replies of a stage. When one call raises, the others still end: what is under way is paid for."""
    found = await asyncio.gather(*map(ask, calls), return_exceptions=True)
    for each in found:
        if isinstance(each, BaseException):
            raise each
    return found
