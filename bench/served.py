"""Servers in processes of their own, and how many requests a second one of them answers."""

import asyncio
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

START_SECONDS = 180


@contextmanager
def serving(log: Path, command: list[str], port: int, **environment: str) -> Iterator[str]:
    """The address of a Python module's server, once it answers; ended at the end.

    Raises RuntimeError with its output when it does not come up.
    """
    url = f"http://127.0.0.1:{port}"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", *command], env={**os.environ, **environment}, stdout=out, stderr=out
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _answers(url):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{command[0]} does not serve:\n{log.read_text(errors='replace')}")
            time.sleep(0.2)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=30)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.status == 200
    except OSError:
        return False


class _Asker(asyncio.Protocol):
    """Sends one request again and again on one connection, each when the last one was answered."""

    def __init__(self, request: bytes, times: int, done: asyncio.Future) -> None:
        self._request, self._left, self._done = request, times, done
        self._seen = b""

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._seen += data
        if not self._seen.endswith(b"\r\n\r\n"):
            return
        if b" 304 " not in self._seen[:16]:
            self._done.set_exception(RuntimeError(f"not a 304: {self._seen[:80]!r}"))
            self._transport.close()
            return
        self._seen, self._left = b"", self._left - 1
        if self._left:
            self._transport.write(self._request)
        else:
            self._done.set_result(None)
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(error or ConnectionError("closed before the last answer"))


async def requests_a_second(url: str, path: str, n_requests: int, n_connections: int) -> float:
    """How many times a second ``path`` is answered to clients that have its ETag (304, no body)."""
    with urllib.request.urlopen(url + path, timeout=60) as answer:
        tag = answer.headers["ETag"]
    host = url.removeprefix("http://")
    request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nIf-None-Match: {tag}\r\n\r\n".encode()
    port = int(host.rpartition(":")[2])
    loop = asyncio.get_running_loop()
    done = [loop.create_future() for _ in range(n_connections)]
    begun = time.perf_counter()
    for future in done:
        times = n_requests // n_connections
        await loop.create_connection(lambda f=future, t=times: _Asker(request, t, f), "127.0.0.1", port)
    await asyncio.gather(*done)
    return n_requests / (time.perf_counter() - begun)
