"""Run a judge on one trajectory, or on many concurrently.

A judge's calls are passed to a function that makes them, and the replies are passed back to the judge, until
the judge returns its answer. To save memory, only as many trajectories are judged at the same time as are
needed to reach the limit on concurrent calls.
"""

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from arb.judges.contract import ask_reward_judge, open_session
from arb.judges.engine.storage import StorageError
from arb.judges.types import Answer, AnyJudge, Call, Judge, Reply, View, Wants, is_reward_judge, wants_of

Ask = Callable[[Call], Awaitable[Reply]]

JudgeOne = Callable[..., Awaitable["Judgment"]]
"""A function with the parameters of `judge_trajectory`."""

READERS = 4
"""The number of threads that read runs. More would help only with pictures, and would take more memory."""

PREFETCH = 8
"""The number of trajectories started beyond the limit on calls, so that no call has to wait for a file. It is
also the maximum number of trajectories that have started but made no call yet."""

MAX_BYTES = 200_000_000
"""No trajectory is started while the texts and pictures of the started ones have this many bytes."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A call and its reply. Calls with the same ``stage`` (counted from 0) were made together."""

    call: Call
    reply: Reply
    stage: int


@dataclass(frozen=True, slots=True)
class Judgment:
    """The result of one trajectory: the answer, the calls, and the problem if it could not be judged."""

    trajectory_id: str
    answer: Answer
    exchanges: Sequence[Exchange] = ()
    problem: str | None = None
    reward: float | None = None
    """The recorded reward if the judge is a reward judge, else None."""
    n_steps: int | None = None
    """The number of steps of the run, or None if the run was not shown to the judge."""


class RunSource(Protocol):
    """The recorded runs of a job, such as `arb.judges.views.Views`."""

    def view(self, trajectory_id: str, wants: Wants) -> View:
        """Return the view of a run. Raises ValueError with the reason if the run cannot be shown."""

    def reward(self, trajectory_id: str) -> float | None:
        """Return the reward of a run, or None if none was recorded. Raises ValueError as `view` does."""

    def data_hash(self) -> str | None:
        """Return the hash of all recorded runs, or None if no runs were found."""


class StopRunError(Exception):
    """Raised to stop the whole run, by the function that makes the calls. The message says why."""


class LeaveOutError(StopRunError):
    """Raised to skip one trajectory, by the function that makes the calls. A later run can judge it."""


async def drive(judge: Judge, view: View, ask: Ask, exchanges: list[Exchange]) -> Answer:
    """Judge one view and return the answer. Append the calls and replies to ``exchanges``, in order.

    If ``ask`` raises an error, the other calls of the same stage finish first.
    """
    session = open_session(judge, view)
    try:
        calls, stage = next(session), 0
        while True:
            replies = await all_of(calls, ask)
            exchanges += [Exchange(call, reply, stage) for call, reply in zip(calls, replies, strict=True)]
            calls, stage = session.send(replies), stage + 1
    except StopIteration as end:
        return end.value
    finally:
        session.close()


def drive_offline(judge: Judge, view: View, reply_to: Callable[[Call], Reply | None]) -> Answer | None:
    """Judge one view with existing replies. Return the answer, or None once ``reply_to`` returns None."""
    session = open_session(judge, view)
    try:
        calls = next(session)
        while True:
            replies = []
            for call in calls:
                if (reply := reply_to(call)) is None:
                    return None
                replies.append(reply)
            calls = session.send(replies)
    except StopIteration as end:
        return end.value
    finally:
        session.close()


async def all_of(calls: Sequence[Call], ask: Ask) -> list[Reply]:
    """Make several calls concurrently. If one raises an error, the others finish, since they are paid for."""
    if len(calls) == 1:  # the usual case; creating a task would take longer than reading the cache
        return [await ask(calls[0])]
    replies = []
    for found in await asyncio.gather(*map(ask, calls), return_exceptions=True):
        if isinstance(found, BaseException):
            raise found
        replies.append(found)
    return replies


async def judge_trajectory(
    judge: AnyJudge,
    trajectory_id: str,
    views: RunSource,
    ask: Ask,
    read: Callable[..., Awaitable],
    on_view: Callable[[View], None],
) -> Judgment:
    """Judge one trajectory. Any failure becomes an answer with the state ``error``.

    The judgment has the calls made before a failure, too, since they are paid for. ``read`` calls a function
    that reads files, in a thread. ``on_view`` is called with the view of the run. StopRunError and
    StorageError from ``ask`` are not caught.
    """
    reward, exchanges = None, list[Exchange]()
    try:
        if is_reward_judge(judge):
            reward = await read(views.reward, trajectory_id)
            return Judgment(trajectory_id, ask_reward_judge(judge, reward), reward=reward)
        view = await read(views.view, trajectory_id, judge.wants)
        on_view(view)
        answer = await drive(judge, view, ask, exchanges)
        return Judgment(trajectory_id, answer, exchanges, n_steps=len(view.steps))
    except (StopRunError, StorageError):
        raise
    except Exception as fault:
        problem = describe_fault(fault)
        return Judgment(trajectory_id, Answer("error"), exchanges, problem=problem, reward=reward)


class _Load:
    """The calls and bytes of all trajectories being judged. `room` waits until one more may start."""

    def __init__(self, most_calls: int):
        self._most_calls = most_calls
        self.shares: set[_LoadShare] = set()
        self.changed = asyncio.Event()

    async def room(self) -> None:
        while self._is_full():
            self.changed.clear()
            await self.changed.wait()

    def _is_full(self) -> bool:
        # A trajectory counts as one call even between its calls, so that it can make its next call.
        calls = sum(max(1, share.under_way) for share in self.shares)
        unknown = sum(share.is_unknown for share in self.shares)
        held = sum(share.held for share in self.shares)
        return calls >= self._most_calls or unknown >= PREFETCH or held >= MAX_BYTES


class _LoadShare:
    """The calls and bytes of one trajectory. ``is_unknown`` is true until it makes its first call."""

    def __init__(self, load: _Load, ask: Ask):
        self._load, self._ask = load, ask
        self.held = self.under_way = 0
        self.is_unknown = True
        load.shares.add(self)

    def show(self, view: View) -> None:
        self.held = _weight(view)

    async def ask(self, call: Call) -> Reply:
        self.is_unknown = False
        self.under_way += 1
        self._load.changed.set()
        try:
            return await self._ask(call)
        finally:
            self.under_way -= 1
            self._load.changed.set()

    def end(self) -> None:
        self._load.shares.remove(self)
        self._load.changed.set()


async def judge_trajectories(
    judge: AnyJudge,
    ids: Iterable[str],
    views: RunSource,
    ask: Ask,
    on_judged: Callable[[Judgment], None],
    max_in_flight: int = 64,
    judge_one: JudgeOne = judge_trajectory,
) -> None:
    """Judge trajectories concurrently, and call ``on_judged`` with each judgment as it ends.

    A trajectory that has no view, or on which the judge fails, gets an answer with the state ``error``.

    If ``ask`` raises LeaveOutError, the trajectory gets no judgment. If it raises StopRunError or
    StorageError, or ``on_judged`` raises any error, no further trajectory is started, calls in flight still
    finish, and then the error is raised.
    """
    load = _Load(max_in_flight + PREFETCH)
    faults: list[Exception] = []
    tasks: set[asyncio.Task[None]] = set()

    async def one(trajectory_id: str, share: _LoadShare, readers: ThreadPoolExecutor) -> None:
        read = partial(asyncio.get_running_loop().run_in_executor, readers)
        try:
            on_judged(await judge_one(judge, trajectory_id, views, share.ask, read, share.show))
        except LeaveOutError:
            pass
        except Exception as fault:
            faults.append(fault)
        finally:
            share.end()

    wants = wants_of(judge)
    has_pictures = wants.screenshots != "none" or wants.goal_images
    with ThreadPoolExecutor(READERS if has_pictures else 1, thread_name_prefix="views") as readers:
        try:
            for trajectory_id in ids:
                await load.room()
                if faults:
                    break
                task = asyncio.create_task(one(trajectory_id, _LoadShare(load, ask), readers))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
            await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
    if faults:
        raise faults[0]


def describe_fault(fault: Exception) -> str:
    """Return a message for an exception, with the function and line unless it is one of our own errors."""
    if isinstance(fault, ValueError) and type(fault) is not ValueError:  # our own errors need no place
        return str(fault)
    place = traceback.extract_tb(fault.__traceback__)[-1]
    return f"{type(fault).__name__}: {fault} ({place.name}, line {place.lineno})"


def _weight(view: View) -> int:
    """Return the approximate size of a view's pictures and texts in bytes."""
    pictures = [*view.goal_images, *(step.screenshot for step in view.steps if step.screenshot)]
    texts = (text for step in view.steps for text in (step.axtree, step.axtree_pruned, step.text) if text)
    return sum(len(picture.content) for picture in pictures) + sum(map(len, texts))
