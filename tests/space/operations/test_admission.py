"""Tests of the queue for expensive requests: which paths wait, when a slot is held, what is refused."""

import asyncio
import threading
from contextvars import Context

import pytest

from space.operations.upload_queue import BODY_IN_MEMORY, Admission, QueueFull, UploadQueue, held_slot
from tests.space.operations.conftest import settle

pytestmark = pytest.mark.anyio


class Door:
    """An application behind the queue that waits for ``go_on``. ``reached`` lists the senders in order."""

    def __init__(self, **options) -> None:
        self.queue = UploadQueue(**options)
        self.reached, self.bodies, self.go_on = [], [], asyncio.Event()
        self.app = Admission(
            self._answer,
            self.queue,
            sender=lambda request: request.headers["x-sender"],
            admits=lambda path: path == "/file",
        )

    async def _answer(self, scope, receive, send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message["more_body"]
        self.reached.append(dict(scope["headers"])[b"x-sender"].decode())
        self.bodies.append(body)
        await self.go_on.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    def ask(self, sender: str, parts: asyncio.Queue, path: str = "/file", method: str = "POST", read=None):
        """Send a request whose body arrives in ``parts``; ``read`` is awaited before the response ends."""
        scope = {
            "type": "http", "path": path, "method": method, "headers": [(b"x-sender", sender.encode())],
            "query_string": b"",
        }  # fmt: skip

        async def send(message) -> None:
            if read is not None and message["type"] == "http.response.body":
                await read.wait()

        return asyncio.create_task(self.app(scope, parts.get, send))


def body(*parts: bytes, ends: bool = True) -> asyncio.Queue:
    queue = asyncio.Queue()
    for number, part in enumerate(parts):
        more = not ends or number < len(parts) - 1
        queue.put_nowait({"type": "http.request", "body": part, "more_body": more})
    return queue


async def test_a_request_waits_for_a_slot_and_its_body_arrives_whole():
    door = Door(at_once=1, at_once_each=1)
    large = [b"a" * BODY_IN_MEMORY, b"b" * BODY_IN_MEMORY, b"c"]
    tasks = [door.ask("ada", body(*large)), door.ask("bob", body(b""))]
    await settle()
    assert (door.reached, door.queue.waiting) == (["ada"], 1)
    door.go_on.set()
    await asyncio.gather(*tasks)
    assert (door.reached, door.bodies) == (["ada", "bob"], [b"".join(large), b""])


async def test_a_body_that_does_not_end_holds_no_slot():
    door = Door(at_once=1, at_once_each=1)
    parts = body(b"x", ends=False)
    slow = door.ask("slow", parts)
    await settle()
    quick = door.ask("ada", body(b"y"))
    await settle()
    assert door.reached == ["ada"]
    door.go_on.set()
    parts.put_nowait({"type": "http.disconnect"})
    await asyncio.gather(slow, quick)
    assert door.reached == ["ada"]


async def test_an_answer_that_nobody_reads_holds_no_slot():
    door, read = Door(at_once=1, at_once_each=1), asyncio.Event()
    door.go_on.set()
    unread = door.ask("flood", body(b""), read=read)
    await settle()
    await door.ask("ada", body(b""))
    assert (door.reached, unread.done()) == (["flood", "ada"], False)
    read.set()
    await unread


@pytest.mark.parametrize(("path", "method"), [("/page", "POST"), ("/file", "GET")])
async def test_other_requests_do_not_wait(path, method):
    door = Door(at_once=1, at_once_each=1)
    first = door.ask("ada", body(b""))
    await settle()
    other = door.ask("bob", body(b""), path, method)
    await settle()
    assert door.reached == ["ada", "bob"]
    door.go_on.set()
    await asyncio.gather(first, other)


async def test_without_a_place_in_the_queue_the_body_is_not_read():
    door = Door(at_once=1, at_once_each=1, most_waiting_each=1)
    tasks = [door.ask("flood", body(b"")) for _ in range(2)]
    await settle()
    unread = body(b"x")
    with pytest.raises(QueueFull):
        await door.ask("flood", unread)
    assert unread.qsize() == 1
    door.go_on.set()
    await asyncio.gather(*tasks)


async def test_what_handles_a_request_uses_its_slot_and_waits_for_no_second_one():
    queue, seen = UploadQueue(at_once=1, at_once_each=1), []
    async with queue.slot("ada") as outer:
        assert await queue.run("another name of ada", lambda: held_slot()) is outer
        outer.release()
        seen.append(held_slot())
    assert seen == [None]
    async with queue.slot("bob") as slot:  # it is free
        assert slot is not outer


async def test_a_task_that_outlives_its_request_waits_for_a_slot_of_its_own():
    """Gradio may start its queue while it handles the first request."""
    queue, begin, ended = UploadQueue(at_once=1, at_once_each=1), asyncio.Event(), []

    async def later() -> None:
        await begin.wait()
        async with queue.slot("gradio"):
            ended.append("gradio")

    async with queue.slot("ada"):
        task = asyncio.create_task(later())
    async with queue.slot("bob"):
        begin.set()
        await settle()
        assert ended == []
    await task


async def test_a_heavy_sender_that_goes_on_waits_for_each_refusal():
    now = [0.0]
    queue = UploadQueue(at_once=1, at_once_each=1, most_waiting_each=1, clock=lambda: now[0])
    delays = []
    for seconds in (0.0, 9.0):  # a heavy sender's files take more than 0.1 s
        async with queue.slot("junk"):
            now[0] += seconds
    async with queue.slot("other"):
        waiting, light = (
            asyncio.create_task(queue.run(sender, threading.get_ident), context=Context())
            for sender in ("junk", "ada")
        )
        await settle()
        for sender in ("junk", "ada"):
            with pytest.raises(QueueFull) as refused:
                queue.require_room(sender)
            delays.append(refused.value.delay_s)
    waiting.cancel()
    await light
    assert delays == [1.0, 0.0]
