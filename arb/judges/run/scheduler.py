"""Drive a judge over one trajectory, or over many concurrently.

The calls of a judge go to an executor and the replies back to the judge, until it answers. Since each
trajectory takes memory, only as many are in flight as are needed to fill the limit on calls.
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
"""Threads that read runs while calls are in flight. `Views` reads the texts of one run at a time, so more
threads help only with pictures, and the memory of a thread is never released."""

PREFETCH = 8
"""Trajectories started although the limit on calls is full, so that no call has to wait for a file. This is
also the most trajectories that may be in flight before their first calls are known."""

MAX_BYTES = 200_000_000
"""No further trajectory is started while those in flight hold this many bytes of texts and pictures."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A call and its reply. ``stage`` counts from 0; the calls of one stage were made together."""

    call: Call
    reply: Reply
    stage: int


@dataclass(frozen=True, slots=True)
class Judgment:
    """A trajectory with its answer, its calls, and the problem if it could not be judged."""

    trajectory_id: str
    answer: Answer
    exchanges: Sequence[Exchange] = ()
    problem: str | None = None
    reward: float | None = None
    """The reward that a reward judge was given; None for every other judge."""


class RunSource(Protocol):
    """The recorded runs of a job, such as `arb.judges.views.Views`."""

    def view(self, trajectory_id: str, wants: Wants) -> View:
        """Return the view of a run. Raises ValueError with the reason if nothing can be shown."""

    def reward(self, trajectory_id: str) -> float | None:
        """Return the reward of a run, or None if it has none. Raises the errors of `view`."""

    def data_hash(self) -> str | None:
        """Return the hash of the recorded runs, or None if none were found."""


class StopRunError(Exception):
    """Raised by ``ask`` to end a run without further calls. The message says why."""


class LeaveOutError(StopRunError):
    """Raised by ``ask`` to leave a trajectory to a later run, while the other trajectories continue."""


async def drive(judge: Judge, view: View, ask: Ask) -> tuple[Answer, tuple[Exchange, ...]]:
    """Return a judge's answer to one trajectory, with every call and its reply in the judge's order.

    Raises what ``ask`` raises, once the other calls of the stage have ended.
    """
    exchanges: list[Exchange] = []
    session = open_session(judge, view)
    try:
        calls, stage = next(session), 0
        while True:
            replies = await all_of(calls, ask)
            exchanges += [Exchange(call, reply, stage) for call, reply in zip(calls, replies, strict=True)]
            calls, stage = session.send(replies), stage + 1
    except StopIteration as end:
        return end.value, tuple(exchanges)
    finally:
        session.close()


def drive_offline(judge: Judge, view: View, reply_to: Callable[[Call], Reply | None]) -> Answer | None:
    """Return a judge's answer from replies that exist already, or None if ``reply_to`` lacks a reply."""
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
    """Return the replies of a stage. If one call raises, the other calls still finish: they are paid."""
    if len(calls) == 1:  # the usual case: a task would take longer than a reply from the cache
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
    """Judge one trajectory. A failure becomes its answer, in the state ``error``.

    ``read`` calls a function that reads files; ``on_view`` receives the view of the run. Raises only the
    StopRunError or StorageError that ``ask`` raises.
    """
    reward = None
    try:
        if is_reward_judge(judge):
            reward = await read(views.reward, trajectory_id)
            return Judgment(trajectory_id, ask_reward_judge(judge, reward), reward=reward)
        view = await read(views.view, trajectory_id, judge.wants)
        on_view(view)
        answer, exchanges = await drive(judge, view, ask)
        return Judgment(trajectory_id, answer, exchanges)
    except (StopRunError, StorageError):
        raise
    except Exception as fault:
        return Judgment(trajectory_id, Answer("error"), problem=describe_fault(fault), reward=reward)


class _Load:
    """The load of all trajectories in flight; `room` waits until a further trajectory may start."""

    def __init__(self, most_calls: int):
        self._most_calls = most_calls
        self.shares: set[_LoadShare] = set()
        self.changed = asyncio.Event()

    async def room(self) -> None:
        while self._is_full():
            self.changed.clear()
            await self.changed.wait()

    def _is_full(self) -> bool:
        # Between its calls a trajectory counts as one, so that its next call finds room.
        calls = sum(max(1, share.under_way) for share in self.shares)
        unknown = sum(share.is_unknown for share in self.shares)
        held = sum(share.held for share in self.shares)
        return calls >= self._most_calls or unknown >= PREFETCH or held >= MAX_BYTES


class _LoadShare:
    """The load of one trajectory: calls in flight and bytes held. At first its calls are not known."""

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
    """Judge every trajectory and pass each judgment to ``on_judged`` once, in the order in which they end.

    A failure of one trajectory (it has no view, or the judge has a fault) becomes its answer, in the state
    ``error``. If ``ask`` raises LeaveOutError, the trajectory is left out. If it raises StopRunError, no
    further trajectory is started, calls in flight are completed, trajectories that then have all their
    replies are judged, and the error is raised here. The same holds for a StorageError and for the errors of
    ``on_judged``. ``judge_one`` replaces `judge_trajectory`.
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
    """Return an exception as one line, with the place that raised it unless it is one of our own."""
    if isinstance(fault, ValueError) and type(fault) is not ValueError:  # our own errors explain themselves
        return str(fault)
    place = traceback.extract_tb(fault.__traceback__)[-1]
    return f"{type(fault).__name__}: {fault} ({place.name}, line {place.lineno})"


def _weight(view: View) -> int:
    """Return the bytes of a view's pictures and, roughly, of its texts."""
    pictures = [*view.goal_images, *(step.screenshot for step in view.steps if step.screenshot)]
    texts = (text for step in view.steps for text in (step.axtree, step.axtree_pruned, step.text) if text)
    return sum(len(picture.content) for picture in pictures) + sum(map(len, texts))
