"""The requests of `bench.flood`: honest checks and junk through every door of the Space, over sockets."""

import asyncio
import io
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Final
from uuid import uuid4

ACCEPT_MCP: Final = "Accept: application/json, text/event-stream\r\n"
GRADIO: Final = "/gradio_api"
HUGE_BYTES: Final = 3_000_000
"""The size of the largest junk bodies. MCP accepts up to 4 MB, an upload up to 5 MB."""


@dataclass(frozen=True)
class Answer:
    """The status and body of a response; status 0 means that the server closed the connection."""

    status: int
    body: bytes = b""


class Connection:
    """A minimal HTTP/1.1 client over one socket, with a chosen source address and little use of the CPU."""

    def __init__(self, port: int, address: str) -> None:
        self.port, self._address = port, address
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: bytes) -> Answer:
        """Send a request and return the whole response."""
        try:
            reader, writer = await self._open()
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            if b"transfer-encoding: chunked" in head:
                body = b"".join([chunk async for chunk in _chunks(reader)])
            else:
                length = head.partition(b"content-length:")[2].split(b"\r\n")[0]
                body = await reader.readexactly(int(length or 0))
            if b"connection: close" in head:
                self.close()
            return Answer(int(head.split()[1]), body)
        except (OSError, asyncio.IncompleteReadError):
            self.close()
            return Answer(0)

    async def ask_slowly(self, request: bytes, ended: asyncio.Event) -> Answer:
        """Send the body at two bytes per second, and return the status of the response without its body."""
        try:
            reader, writer = await self._open()
        except OSError:
            return Answer(0)
        body = request.index(b"\r\n\r\n") + 4
        writer.write(request[:body])
        status = asyncio.ensure_future(reader.readline())
        try:
            for place in range(body, len(request), 2):
                if ended.is_set() or status.done():
                    break
                writer.write(request[place : place + 2])
                await asyncio.wait({status}, timeout=1.0)
            line = await asyncio.wait_for(status, 0.1)
            return Answer(int(line.split()[1]) if line else 0)
        except (OSError, TimeoutError):
            return Answer(0)
        finally:
            status.cancel()
            self.close()

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            self._streams = await asyncio.open_connection(
                "127.0.0.1", self.port, local_addr=(self._address, 0), limit=1 << 22
            )
        return self._streams

    def close(self) -> None:
        """Close the socket; the next request opens a new one."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def _chunks(reader: asyncio.StreamReader):
    while length := int((await reader.readline()) or b"0", 16):
        yield await reader.readexactly(length)
        await reader.readline()
    await reader.readline()


def request(port: int, method: str, path: str, body: bytes = b"", headers: str = "") -> bytes:
    """Return the bytes of a request."""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def form(port: int, *parts: tuple[str, str, bytes], path: str = "/api/check") -> bytes:
    """Return a request that posts a form; a part is (name, file name, content)."""
    body = b"".join(
        f'--x\r\nContent-Disposition: form-data; name="{name}"; filename="{file}"\r\n\r\n'.encode()
        + content + b"\r\n"
        for name, file, content in parts
    )  # fmt: skip
    headers = "Content-Type: multipart/form-data; boundary=x\r\n"
    return request(port, "POST", path, body + b"--x--\r\n", headers)


def json_body(port: int, path: str, body: object, headers: str = "") -> bytes:
    """Return a request with a JSON body; a body of bytes is sent as it is."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return request(port, "POST", path, content, f"Content-Type: application/json\r\n{headers}")


def tool(port: int, name: str, **arguments: object) -> bytes:
    """Return a request that calls an MCP tool."""
    params = {"name": name, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return json_body(port, "/mcp", body, ACCEPT_MCP)


def honest_file() -> bytes:
    """Return a correct prediction file with one row per trajectory of the test split."""
    from arb.core.suite import OFFICIAL, load_suite

    ids = [trajectory.trajectory_id for trajectory in load_suite(OFFICIAL).split("test")]
    rows = [{"trajectory_id": name, "success": n % 3 == 0, "score": 0.5} for n, name in enumerate(ids)]
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def parquet_file(rows: int) -> bytes:
    """Return a readable Parquet file with this many rows, whose ids are all unknown."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    table = {"trajectory_id": [f"no/such/{n}" for n in range(rows)], "success": [True] * rows}
    pq.write_table(pa.table(table), buffer)
    return buffer.getvalue()


def junk_files() -> list[bytes]:
    """Return a file that only begins like Parquet, Parquet with unknown ids, and two files of wrong JSON."""
    return [
        b"PAR1" + b"x" * 204,
        parquet_file(3),
        b'{"trajectory_id": "x", "success": tru\n' * 2_000,
        b"[" * 100_000,
    ]


Ask = Callable[[Connection], Awaitable[Answer]]


async def check_by_rest(connection: Connection, content: bytes) -> Answer:
    """Check a file through the REST API, and return the response."""
    return await connection.ask(form(connection.port, ("file", "my-judge.jsonl", content)))


async def check_by_mcp(connection: Connection, content: bytes) -> Answer:
    """Check a file through the MCP tool, and return the response."""
    return await connection.ask(tool(connection.port, "check", content=content.decode("latin-1")))


async def check_by_gradio(connection: Connection, content: bytes) -> Answer:
    """Upload a file and check it as ``gradio_client`` does; an error event counts as status 0."""
    sent = ("files", "my-judge.jsonl", content)
    uploaded = await connection.ask(form(connection.port, sent, path=f"{GRADIO}/upload"))
    if uploaded.status != 200:
        return uploaded
    (path,) = json.loads(uploaded.body)
    answer = await call_gradio(connection, "check", [_uploaded(path), "test"])
    return answer if answer.status != 200 or b'"success":true' in answer.body else Answer(0)


async def call_gradio(connection: Connection, name: str, data: list[object], is_read: bool = True) -> Answer:
    """Call a named endpoint of Gradio and read its events, or leave them unread."""
    session, port = uuid4().hex, connection.port
    if (numbers := await _endpoint_numbers(connection)) is None:
        return Answer(0)
    body = {"data": data, "fn_index": numbers[name], "session_hash": session}
    called = await connection.ask(json_body(port, f"{GRADIO}/queue/join", body))
    if called.status != 200 or not is_read:
        return called
    return await connection.ask(request(port, "GET", f"{GRADIO}/queue/data?session_hash={session}"))


_NUMBERS: dict[int, dict[str, int]] = {}


async def _endpoint_numbers(connection: Connection) -> dict[str, int] | None:
    """Return Gradio's endpoint numbers by name, or None without an answer. Each server is asked once."""
    if connection.port not in _NUMBERS:
        config = await connection.ask(request(connection.port, "GET", "/config"))
        if config.status != 200:
            return None
        found = json.loads(config.body)["dependencies"]
        _NUMBERS[connection.port] = {each["api_name"]: each["id"] for each in found}
    return _NUMBERS[connection.port]


def _uploaded(path: str) -> dict[str, object]:
    return {"path": path, "meta": {"_type": "gradio.FileData"}}


DOORS: Final = {"REST": check_by_rest, "MCP": check_by_mcp, "Gradio": check_by_gradio}
"""The way to check an honest file, by the name of the door."""


def junk(port: int) -> dict[str, Sequence[Ask]]:
    """Return the requests of a flood by door; a connection sends the requests of one door in turn."""
    files, objects = junk_files(), b"{}," * (HUGE_BYTES // 3)
    verdicts = honest_file()
    labels = b"trajectory_id,success\n" + b"".join(
        json.loads(line)["trajectory_id"].encode() + b",yes\n" for line in verdicts.splitlines()[:200]
    )
    join = b'{"session_hash":"a","fn_index":0,"data":['
    call = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"check","arguments":{"content":['

    def sent(content: bytes) -> Ask:
        return lambda connection: connection.ask(content)

    def estimated(path: str, *parts: bytes) -> Ask:
        named = zip(("verdicts", "labels"), ("a.jsonl", "labels.csv"), parts, strict=True)
        return sent(form(port, *named, path=path))

    def checked(content: bytes) -> Ask:
        return lambda connection: check_by_gradio(connection, content)

    return {
        "REST": [
            *(sent(form(port, ("file", "a", content))) for content in files),
            sent(form(port, ("file", "a", b"\r\n-" * (HUGE_BYTES // 3)))),
            sent(form(port, ("file", "a", files[2]), path="/api/submissions")),
        ],
        "upload": [
            sent(form(port, ("files", "a", content), path=f"{GRADIO}/upload"))
            for content in (files[2], b"x" * HUGE_BYTES, b"\r\n-" * (HUGE_BYTES // 3))
        ],
        "call": [
            lambda connection: call_gradio(connection, "board", [], is_read=False),
            lambda connection: call_gradio(connection, "board", []),
            *(checked(content) for content in files),
            lambda connection: call_gradio(connection, "check", [_uploaded("/etc/passwd"), "test"]),
            *(
                sent(json_body(port, f"{GRADIO}/queue/join", join + content + b"0]}"))
                for content in (objects, objects[:60_000])
            ),
        ],
        "MCP": [
            *(sent(tool(port, "check", content=content.decode("latin-1"))) for content in files),
            sent(tool(port, "board")),
            sent(json_body(port, "/mcp", b"[" + objects + b"0]", ACCEPT_MCP)),
            sent(json_body(port, "/mcp", call + objects + b"0]}}}", ACCEPT_MCP)),
        ],
        "estimate": [
            estimated("/api/estimate", files[2], files[2]),
            estimated("/api/estimate", verdicts, labels),
            estimated("/rates", files[3], labels),
            estimated("/my-agent", verdicts, labels),
            estimated("/validate", verdicts, labels),
        ],
    }  # fmt: skip


def turns(requests: Sequence[Ask], first: int) -> Iterator[Ask]:
    """Yield the requests in turn without end, beginning at index ``first``."""
    return cycle([*requests[first % len(requests) :], *requests[: first % len(requests)]])
