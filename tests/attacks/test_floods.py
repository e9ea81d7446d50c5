"""Floods of files against the whole Space: what junk may cost, and that everybody else is served meanwhile.

Nothing is timed here: whoever is to be served is waited for while the flood is held. `bench.flood` measures.
"""

import asyncio
import io
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from anyio import to_thread

from arb.core.settings import Settings
from space.app import create_app
from space.auth import tokens
from submissions.app import SubmissionsApp
from submissions.intake.service import IntakeService
from submissions.resources import Durability
from tests.support.event_loop import in_event_loop
from tests.support.space_app import signed_in
from tests.support.submissions import FORM, settings_for, verdicts, write_suite

SECONDS = 120.0
"""After so long nobody is served any more."""
JUNK = b"PAR1" + b"x" * 204
FLOOD, ADA = "192.0.2.66", "192.0.2.1"


@dataclass
class Space:
    """The application; every client has an address of its own."""

    settings: Settings
    app: Callable

    def client(self, address: str, **headers: str) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(self.app, client=(address, 1))
        return httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1:7860", headers=headers, timeout=None
        )

    def file(self, **changes) -> bytes:
        return verdicts(SubmissionsApp(self.settings).suite, **changes)


def space_with(folder: Path, **changes) -> Space:
    write_suite(folder)
    settings = settings_for(folder, folder / "state", **changes)
    return Space(settings, create_app(settings))


@pytest.fixture(scope="module")
def space(tmp_path_factory) -> Space:
    return space_with(tmp_path_factory.mktemp("space"), checks_a_minute=10_000)


@pytest.fixture
def own_space(tmp_path) -> Space:
    """One whose queue no other test has filled."""
    return space_with(tmp_path, checks_a_minute=10_000)


@pytest.fixture(scope="module")
def strict(tmp_path_factory) -> Space:
    """Three files a minute."""
    return space_with(tmp_path_factory.mktemp("strict"), checks_a_minute=3)


async def served(request: Coroutine) -> httpx.Response:
    """The answer to somebody who is none of the flood."""
    return await asyncio.wait_for(request, SECONDS)


async def check(client: httpx.AsyncClient, content: bytes) -> httpx.Response:
    return await client.post("/api/check", files={"file": ("a", content)})


@asynccontextmanager
async def held(monkeypatch, content: bytes) -> AsyncIterator[None]:
    """Files of this content are read without end, in the block."""
    go_on, read = threading.Event(), IntakeService.check

    def checked(self, found, *arguments):
        if found == content:
            go_on.wait(2 * SECONDS)
        return read(self, found, *arguments)

    monkeypatch.setattr(IntakeService, "check", checked)
    try:
        yield
    finally:
        go_on.set()


async def all_done(tasks: list[asyncio.Task]) -> Counter[int]:
    return Counter(answer.status_code for answer in await asyncio.gather(*tasks))


@pytest.fixture
def started(monkeypatch) -> list:
    """Every process that is started."""
    found, start = [], subprocess.Popen.__init__

    def noted(self, *arguments, **options):
        found.append(arguments)
        start(self, *arguments, **options)

    monkeypatch.setattr(subprocess.Popen, "__init__", noted)
    return found


def parquet() -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table({"trajectory_id": ["a/b/c"], "success": [True]}), buffer, store_schema=False)
    return buffer.getvalue()


@in_event_loop
async def test_bytes_that_only_begin_like_parquet_start_no_process(space, started):
    async with space.client(FLOOD) as client:
        for _ in range(5):
            codes = [finding["code"] for finding in (await check(client, JUNK)).json()["findings"]]
            assert codes == ["invalid_parquet"]
    assert started == []


@in_event_loop
async def test_files_that_kill_their_reader_start_no_python_each(space, started):
    optional = b"\x25\x02\x18\x0dtrajectory_id"
    killer = parquet().replace(optional, b"\x25\x03\x18\x0dtrajectory_id")
    async with space.client(FLOOD) as client:
        for _ in range(6):
            codes = [finding["code"] for finding in (await check(client, killer)).json()["findings"]]
            assert codes == ["invalid_parquet"]
    assert len(started) <= 2


@in_event_loop
async def test_a_file_is_checked_while_one_address_holds_all_that_it_can(own_space, monkeypatch):
    async with held(monkeypatch, JUNK), own_space.client(FLOOD) as flood, own_space.client(ADA) as ada:
        junk = [asyncio.create_task(check(flood, JUNK)) for _ in range(30)]
        assert (await served(check(ada, own_space.file()))).json()["acceptable"]
        # Two are read and a few wait; the others are told when to come back.
        async with asyncio.timeout(SECONDS):
            while len(refused := [task for task in junk if task.done()]) < 20:
                await asyncio.sleep(0.01)
        assert {task.result().status_code for task in refused} == {503}
        assert all(int(task.result().headers["retry-after"]) >= 1 for task in refused)
    await all_done(junk)


DOORS = {
    "/api/check": {"files": {"file": ("a", b"{}")}},
    "/api/submissions": {"files": {"file": ("a", b"{}")}},
    "/api/estimate": {"files": {"verdicts": ("a", b"{}"), "labels": ("b", b"{}")}},
    "/my-agent": {"files": {"verdicts": ("a", b"{}"), "labels": ("b", b"{}")}},
    "/rates": {"files": {"verdicts": ("a", b"{}"), "labels": ("b", b"{}")}},
    "/validate": {"files": {"verdicts": ("a", b"{}"), "labels": ("b", b"{}")}},
    "/mcp": {"json": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}},
    "/gradio_api/upload": {"files": {"files": ("a", b"{}")}},
    "/gradio_api/queue/join": {"json": {"data": [], "fn_index": 0, "session_hash": "a"}},
}
"""Every way in that costs much, with a request."""


@pytest.mark.parametrize("path", DOORS)
@in_event_loop
async def test_a_sender_that_holds_all_it_can_is_refused_at_every_door(own_space, monkeypatch, path):
    async with held(monkeypatch, JUNK), own_space.client(FLOOD) as flood:
        junk = [asyncio.create_task(check(flood, JUNK)) for _ in range(30)]
        async with asyncio.timeout(SECONDS):
            while sum(task.done() for task in junk) < 20:  # two are read and eight wait
                await asyncio.sleep(0.01)
        refused = await served(flood.post(path, **DOORS[path]))
        assert refused.status_code == 503
        assert int(refused.headers["retry-after"]) >= 1
        async with own_space.client(ADA) as ada:
            assert (await served(check(ada, own_space.file()))).json()["acceptable"]
    await all_done(junk)


@in_event_loop
async def test_a_file_is_checked_among_those_of_thirty_addresses(own_space, monkeypatch):
    """Every address has one file read before; then each holds what it can, and Ada comes last."""
    addresses = [own_space.client(f"198.51.100.{number}") for number in range(30)]
    for client in addresses:
        assert (await check(client, b"{}")).status_code == 200
    async with held(monkeypatch, JUNK), own_space.client(ADA) as ada:
        if queue := sys.modules.get("space.operations.upload_queue"):
            monkeypatch.setattr(queue, "HEAVY_SECONDS", 0.0)  # whoever has sent one file is heavy
        junk = [asyncio.create_task(check(client, JUNK)) for client in addresses]
        await asyncio.sleep(0)
        assert (await served(check(ada, own_space.file()))).json()["acceptable"]
    await all_done(junk)


@in_event_loop
async def test_reading_and_health_wait_for_no_file(own_space, monkeypatch):
    to_thread.current_default_thread_limiter().total_tokens = 4  # of 40, so that 12 files are a flood
    async with held(monkeypatch, JUNK), own_space.client(ADA) as ada:
        junk = [
            asyncio.create_task(check(own_space.client(f"198.51.100.{number}"), JUNK)) for number in range(12)
        ]
        for path in ("/healthz", "/", "/api/judges", "/api/board.json"):
            assert (await served(ada.get(path))).status_code == 200
    await all_done(junk)


@in_event_loop
async def test_reading_and_health_wait_for_no_slow_hub(space, monkeypatch):
    go_on = threading.Event()

    def wait(self, sequence: int, timeout_s: float) -> bool:
        return timeout_s > 0 and go_on.wait(min(timeout_s, 2 * SECONDS))

    monkeypatch.setattr(Durability, "wait", wait)
    to_thread.current_default_thread_limiter().total_tokens = 4
    form = {**FORM, "test_labels_used": "false"}
    file = {"file": ("a.jsonl", space.file(misses=1))}
    clients = [space.client(f"203.0.113.{number}") for number in range(5)]
    sent = [
        asyncio.create_task(
            client.post("/api/submissions", data={**form, "account": f"N {number}"}, files=file)
        )
        for number, client in enumerate(clients)
    ]
    async with space.client(ADA) as ada:
        try:
            answers = await served(asyncio.gather(*sent))
            assert {answer.status_code for answer in answers} == {202}
            assert {answer.json()["status"] for answer in answers} == {"waiting"}
            assert (await served(ada.get("/healthz"))).status_code == 200
            assert (await served(ada.get("/api/judges"))).status_code == 200
        finally:
            go_on.set()


@in_event_loop
async def test_reading_waits_for_no_hub_that_is_asked_about_made_up_tokens(tmp_path, monkeypatch):
    space = space_with(
        tmp_path,
        space_id="a/b",
        space_host="a-b.hf.space",
        state_lasts=True,
        secret="e9e0a6db014fae9f910e076d204b9d24",
    )
    go_on = threading.Event()
    monkeypatch.setattr(tokens, "person_of", lambda _: go_on.wait(2 * SECONDS) and ("nobody", None))
    monkeypatch.setattr(tokens, "day_of_creation", lambda _: None)
    to_thread.current_default_thread_limiter().total_tokens = 12
    flood = [
        asyncio.create_task(
            space.client(FLOOD, authorization=f"Bearer hf_madeup{number}").get("/api/mine")
            if number % 2
            else space.client(FLOOD, authorization=f"Bearer hf_madeup{number}").get("/api/me")
        )
        for number in range(30)
    ]
    async with space.client(ADA) as ada:
        try:
            assert (await served(ada.get("/api/judges"))).status_code == 200
            assert (await served(ada.get("/healthz"))).status_code == 200
        finally:
            go_on.set()
    await asyncio.gather(*flood)


@in_event_loop
async def test_refused_submissions_count_by_address(strict, within_a_minute):
    async with strict.client(FLOOD) as flood, strict.client(ADA) as ada:
        answers = [await flood.post("/api/submissions", files={"file": ("a", JUNK)}) for _ in range(5)]
        assert [answer.status_code for answer in answers] == [422, 422, 422, 429, 429]
        assert (await ada.post("/api/submissions", files={"file": ("a", JUNK)})).status_code == 422


@in_event_loop
async def test_an_account_counts_however_many_addresses_it_comes_from(strict, within_a_minute):
    headers = signed_in(SubmissionsApp(strict.settings), "mallory")
    answers = []
    for number in range(5):
        async with strict.client(f"198.51.100.{number}", **headers) as client:
            answers.append(await client.post("/api/submissions", files={"file": ("a", JUNK)}))
    assert [answer.status_code for answer in answers] == [422, 422, 422, 429, 429]
    assert "one account may have 3 files checked per minute" in answers[-1].json()["detail"]


@in_event_loop
async def test_requests_with_any_other_body_are_counted_too(strict, within_a_minute):
    async with strict.client("192.0.2.77") as client:
        answers = [await client.post("/mcp", content=b"{") for _ in range(31)]
        assert answers[-2].status_code != 429
        assert answers[-1].status_code == 429


@in_event_loop
async def test_a_long_call_of_mcp_is_counted_as_a_file_before_it_is_read(strict, within_a_minute):
    async with strict.client("192.0.2.78") as client:
        answers = [await client.post("/mcp", content=b"[" * 9_000) for _ in range(4)]
        assert [answer.status_code for answer in answers] == [400, 400, 400, 429]
        assert (await check(client, JUNK)).status_code == 429  # the same count


@in_event_loop
async def test_a_sender_that_goes_on_after_refusals_loses_its_connection(
    strict, within_a_minute, monkeypatch
):
    monkeypatch.setattr("space.operations.limits.REFUSAL_DELAY_SECONDS", 0.001)
    async with strict.client("192.0.2.79") as client:
        answers = [await check(client, JUNK) for _ in range(7)]
        assert [answer.status_code for answer in answers] == [200] * 3 + [429] * 4
        closes = [answer.headers.get("connection") == "close" for answer in answers]
        assert closes == [False] * 6 + [True]  # three are let through, three refused at once


@in_event_loop
async def test_bodies_that_never_end_keep_nobody_else_from_sending(space, monkeypatch):
    grace = "space.web.body_limits.GRACE_SECONDS"
    monkeypatch.setattr(grace, 600.0, raising=False)

    async def endless() -> AsyncIterator[bytes]:
        yield b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
        while True:
            await asyncio.sleep(0.05)
            yield b"x"

    headers = {"content-type": "multipart/form-data; boundary=x"}
    async with space.client(FLOOD) as flood, space.client(ADA) as ada:
        slow = [
            asyncio.create_task(flood.post("/api/check", content=endless(), headers=headers))
            for _ in range(30)
        ]
        try:
            assert (await served(check(ada, space.file()))).json()["acceptable"]
            async with asyncio.timeout(SECONDS):
                while sum(task.done() for task in slow) < 22:
                    await asyncio.sleep(0.01)
            monkeypatch.setattr(grace, 0.0, raising=False)  # it is over for what still comes in
            statuses = await asyncio.wait_for(all_done(slow), SECONDS)
            assert statuses == {408: 8, 503: 22}  # eight at a time come in, and are cut off
        finally:
            for task in slow:
                task.cancel()
