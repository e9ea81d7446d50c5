"""Tests of the upload queue: few files at a time, limits, and fairness between senders."""

import asyncio
import time
from collections import Counter

import pytest

from space.operations.upload_queue import QueueFull, UploadQueue
from tests.space.operations.conftest import settle

pytestmark = pytest.mark.anyio


class Reading:
    """Files that hold their slot until the test ends them. ``order`` lists the senders that got one."""

    def __init__(self, **options) -> None:
        self.now = 0.0
        self.queue = UploadQueue(clock=lambda: self.now, **options)
        self.order: list[str] = []
        self.refused: Counter[str] = Counter()
        self.open: dict[str, list[asyncio.Event]] = {}

    async def send(self, sender: str, times: int = 1) -> list[asyncio.Task]:
        tasks = [asyncio.create_task(self._read(sender)) for _ in range(times)]
        await settle()
        return tasks

    async def _read(self, sender: str) -> None:
        try:
            async with self.queue.slot(sender):
                self.order.append(sender)
                ended = asyncio.Event()
                self.open.setdefault(sender, []).append(ended)
                await ended.wait()
        except QueueFull:
            self.refused[sender] += 1

    async def end(self, sender: str, seconds: float = 1.0) -> None:
        """End the sender's oldest file after a number of seconds."""
        self.now += seconds
        self.open[sender].pop(0).set()
        await settle()


async def test_so_many_are_read_at_once_and_of_one_sender_fewer():
    reading = Reading(at_once=3, at_once_each=2)
    await reading.send("junk", 4)
    assert reading.order == ["junk"] * 2
    await reading.send("ada", 2)
    assert reading.order == ["junk", "junk", "ada"]
    assert reading.queue.waiting == 3


async def test_one_file_passes_the_many_of_another_sender():
    reading = Reading(at_once=2, at_once_each=2)
    await reading.send("junk", 8)
    await reading.send("ada")
    await reading.end("junk")
    assert reading.order == ["junk", "junk", "ada"]


async def test_one_file_passes_those_of_many_senders_that_sent_before():
    """Thirty addresses of an attacker have had a file read each, and wait with the next one."""
    reading = Reading(at_once=1, at_once_each=1)
    for number in range(30):
        await reading.send(f"junk {number}")
        await reading.end(f"junk {number}")
    for number in range(30):
        await reading.send(f"junk {number}")
    await reading.send("ada")
    await reading.end("junk 0")
    assert reading.order[-1] == "ada"


async def test_the_sender_with_the_least_time_is_next():
    reading = Reading(at_once=1, at_once_each=1)
    for sender, seconds in (("slow", 9.0), ("quick", 1.0)):
        await reading.send(sender)
        await reading.end(sender, seconds)
    await reading.send("other")
    await reading.send("slow")
    await reading.send("quick")
    await reading.end("other")
    assert reading.order[-1] == "quick"


async def test_heavy_senders_share_one_slot_and_leave_two_thirds_of_the_time_to_others():
    reading = Reading(at_once=3, at_once_each=2)
    for sender in ("junk", "spam"):
        await reading.send(sender)
        await reading.end(sender, 0.2)  # more than a light sender takes
        assert reading.queue.is_heavy(sender)
    await reading.send("junk", 2)
    await reading.send("spam", 2)
    assert reading.order[2:] == ["junk"]
    await reading.send("ada", 2)
    assert reading.order[3:] == ["ada", "ada"]
    await reading.end("ada", 0.01)
    await reading.end("junk", 0.01)  # 0.02 s after it began
    assert reading.order[5:] == []
    reading.now += 0.039  # a pause of 2 * 0.02 s
    await asyncio.sleep(0.1)
    assert reading.order[5:] == []
    reading.now += 0.002
    await asyncio.sleep(0.05)  # by the event loop's clock, it is due now
    assert reading.order[5:] == ["spam"]
    reading.now += 61  # after a minute without a file, a sender is like any other
    assert not reading.queue.is_heavy("junk")


async def test_a_sender_waits_with_few_files_and_is_told_when_to_come_back():
    reading = Reading(at_once=1, at_once_each=1, most_waiting_each=2)
    await reading.send("junk", 5)
    assert (reading.queue.waiting, reading.refused) == (2, {"junk": 2})
    refused = QueueFull()
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
    assert "try again in 5 s" in str(refused)


async def test_in_a_full_queue_the_last_of_the_most_gives_way_to_who_has_none():
    reading = Reading(at_once=1, at_once_each=1, most_waiting=4, most_waiting_each=3)
    await reading.send("junk", 4)
    await reading.send("spam", 2)
    assert (reading.queue.waiting, reading.refused) == (4, {"junk": 1})  # 2 of each
    await reading.send("ada")
    assert (reading.queue.waiting, reading.refused) == (4, {"junk": 2})  # 1 of junk, 2 of spam, 1 of Ada
    await reading.send("spam")
    assert reading.refused == {"junk": 2, "spam": 1}


async def test_a_file_whose_client_left_gives_its_place_away():
    reading = Reading(at_once=1, at_once_each=1)
    await reading.send("junk")
    (task,) = await reading.send("gone")
    await reading.send("ada")
    task.cancel()
    await settle()
    assert reading.queue.waiting == 1
    await reading.end("junk")
    assert reading.order == ["junk", "ada"]
    (task,) = await reading.send("late")
    await reading.end("ada")
    task.cancel()  # it has its slot
    await settle()
    await reading.send("next")
    assert reading.order == ["junk", "ada", "late", "next"]


async def test_a_slot_is_free_again_after_a_failure():
    queue = UploadQueue(at_once=1, at_once_each=1)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            await queue.run("ada", lambda: 1 / 0)
    assert await queue.run("ada", int, "7") == 7
    assert queue.waiting == 0


async def test_what_waits_holds_no_thread_of_those_for_pages():
    from anyio import to_thread

    pages = to_thread.current_default_thread_limiter()
    queue, ended = UploadQueue(), asyncio.Event()

    async def hold() -> None:
        async with queue.slot("junk"):
            await ended.wait()

    holders = [asyncio.create_task(hold()) for _ in range(2)]
    waiting = [asyncio.create_task(queue.run("junk", int)) for _ in range(5)]
    await settle()
    assert (queue.waiting, pages.borrowed_tokens) == (5, 0)
    ended.set()
    assert await asyncio.gather(*waiting) == [0] * 5
    await asyncio.gather(*holders)


def test_the_pause_after_a_heavy_file_ends_also_on_another_event_loop():
    ahead = 0.0
    queue = UploadQueue(clock=lambda: time.monotonic() + ahead)

    def read_for_seconds(seconds: float) -> None:
        nonlocal ahead
        ahead += seconds

    async def send() -> None:
        await asyncio.wait_for(queue.run("ada", read_for_seconds, 0.15), timeout=60)

    for _ in range(3):  # the first makes the sender heavy, the second has a pause of 0.15 s after it
        asyncio.run(send())
    assert queue.is_heavy("ada")


def test_a_pause_that_ends_while_slots_are_given_keeps_nobody_waiting():
    now, ticks = 0.0, 0.0

    def clock() -> float:
        nonlocal now
        now += ticks  # time passes between two readings of the clock
        return now

    async def scene():
        nonlocal now, ticks
        queue = UploadQueue(clock=clock)
        for _ in range(2):  # a heavy file, and one more, after which there is a pause of a second
            async with queue.slot("ada"):
                now += 1
        ticks = 0.51  # the first reading is within the pause, the second after it
        async with asyncio.timeout(60), queue.slot("ada"):
            pass

    asyncio.run(scene())
