"""Readers over HTTP: each asks a server for what Chromium asked it for, in the order of one recorded load.

A reader has connections of its own, as many as a browser opens to one server, and an empty cache. A request
goes out once all has come that Chromium had when it made the same request. Nothing is drawn or run.
"""

import asyncio
import re
import time
from contextlib import suppress
from uuid import uuid4

import httpx

from bench.recorded_load import Load, Request

CONNECTIONS = 6
WAIT_SECONDS = 300
TIMES_AGAIN = 3
SESSION = re.compile(r"""(?:session_hash["']?\s*[=:]\s*["']?|/heartbeat/)(\w+)""")


async def read_at_once(load: Load, n_readers: int) -> list[float]:
    """Seconds until each of ``n_readers`` has all that Chromium asked for before the table stood filled.

    They start together, and go on to ask for the rest of the load as a browser does. Raises an ExceptionGroup
    of httpx.HTTPStatusError or httpx.TransportError when an answer is not a success.
    """
    clients = [_client(load) for _ in range(n_readers)]
    try:
        begun = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            readers = [group.create_task(_read(client, load, begun)) for client in clients]
        return [reader.result() for reader in readers]
    finally:
        for client in clients:
            await client.aclose()


def _client(load: Load) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
    return httpx.AsyncClient(
        base_url=load.origin, limits=limits, timeout=WAIT_SECONDS, trust_env=False, verify=False
    )


async def _read(client: httpx.AsyncClient, load: Load, begun: float) -> float:
    sessions = sessions_of(load)
    there = [asyncio.Event() for _ in load.requests]

    async def ask(number: int, request: Request) -> float:
        for earlier in request.after:
            await there[earlier].wait()
        await _fetch(client, request, sessions)
        there[number].set()
        return time.perf_counter() - begun

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask(number, request)) for number, request in enumerate(load.requests)]
    asked = zip(tasks, load.requests, strict=True)
    return max(task.result() for task, request in asked if request.before_filled)


async def _fetch(client: httpx.AsyncClient, request: Request, sessions: dict[str, str]) -> None:
    """Read an answer to its end, packed as it comes: unpacking is the browser's work, not the server's."""
    path, body = (in_session(text, sessions) for text in (request.path, request.body))
    answer = await _send(
        client, client.build_request(request.method, path, headers=request.headers, content=body)
    )
    try:
        answer.raise_for_status()
        async for _ in answer.aiter_raw():
            pass
    finally:
        await answer.aclose()


async def _send(client: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
    """The answer's head; a GET goes out again, as in a browser, where the server closed a kept connection."""
    for _ in range(TIMES_AGAIN if request.method == "GET" else 0):
        with suppress(httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError):
            return await client.send(request, stream=True)
    return await client.send(request, stream=True)


def sessions_of(load: Load) -> dict[str, str]:
    """A new name for each of Gradio's session hashes in the load: two readers do not share a session."""
    texts = [text for request in load.requests for text in (request.path, request.body) if text]
    found = {name for text in texts for name in SESSION.findall(text)}
    return {name: uuid4().hex[: len(name)] for name in found}


def in_session(text: str | None, sessions: dict[str, str]) -> str | None:
    """The path or body with the reader's own session names."""
    for recorded, own in sessions.items():
        text = text and text.replace(recorded, own)
    return text
