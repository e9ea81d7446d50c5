"""The Hub's sockets: two local servers (the Hub and its CDN), what they sent, and the faults they show."""

import io
import re
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

from tests.support.hub_server.answers import Account, Answer, Request, as_json
from tests.support.hub_server.api import HubApi
from tests.support.hub_server.faults import Fault, Faults
from tests.support.hub_server.repository import Commit, Repository, content_of

CHUNK = 65_536


@dataclass(frozen=True)
class Seen:
    """A request that came in: which server, what was asked, with which token."""

    place: str
    method: str
    path: str
    token: str | None


class HubServer:
    """A Hub for one test: ``with HubServer() as hub: HfApi(endpoint=hub.url, token="hf_maintainer")``.

    ``hub.served`` counts the bytes sent of each file by its path in its repository; ``hub.seen`` lists the
    requests; ``hub.fail`` arranges a fault. The token ``hf_maintainer`` belongs to the user ``maintainer``.
    """

    def __init__(self):
        self.api = HubApi()
        self.api.accounts["hf_maintainer"] = Account("maintainer", ("the-lab",))
        self.faults = Faults()
        self.served: Counter[str] = Counter()
        self.seen: list[Seen] = []
        self._lock = threading.Lock()
        self._servers = {place: _Server(self, place) for place in ("hub", "cdn")}
        self.url, self.cdn_url = (f"http://127.0.0.1:{s.server_port}" for s in self._servers.values())
        self.api.hub_url, self.api.cdn_url = self.url, self.cdn_url

    def __enter__(self) -> "HubServer":
        for server in self._servers.values():
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        for server in self._servers.values():
            server.shutdown()
            server.server_close()

    def repository(self, repo_id: str, private: bool = False) -> Repository:
        """The repository of this name, made if it is not there."""
        return self.api.repositories.setdefault(repo_id, Repository(repo_id, private))

    def commit(self, repo_id: str, files: dict[str, bytes | Path | None], title: str = "by hand") -> Commit:
        """A commit by somebody else, past the protocol; None removes a file."""
        changes = {path: None if data is None else content_of(path, data) for path, data in files.items()}
        for content in changes.values():
            if content is not None and content.lfs:
                self.api.objects[content.sha256] = content.data
        return self.repository(repo_id).commit(changes, title, "somebody")

    def add_folder(self, repo_id: str, folder: Path, private: bool = False) -> Commit:
        """Commit every file of a folder, served from where it lies."""
        self.repository(repo_id, private)
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        return self.commit(repo_id, {path.relative_to(folder).as_posix(): path for path in paths})

    def fail(self, method: str, path: str, **how) -> Fault:
        """Arrange a fault for the next requests of this method whose path matches (see Fault)."""
        return self.faults.add(Fault(method, path, **how))

    def requests(self, method: str, path: str) -> list[Seen]:
        """The requests seen so far of this method whose path matches."""
        return [seen for seen in self.seen if seen.method == method and re.search(path, seen.path)]

    def note(self, place: str, request: Request) -> None:
        with self._lock:
            self.seen.append(Seen(place, request.method, request.path, request.token))

    def count(self, path: str | None, sent: int) -> None:
        with self._lock:
            self.served[path or ""] += sent


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, hub: HubServer, place: str):
        super().__init__(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub, "place": place}))

    def handle_error(self, *_) -> None:  # a client that went away is nothing to report
        pass


class _Handler(BaseHTTPRequestHandler):
    hub: HubServer
    place: str
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _handle(self) -> None:
        request = self._read()
        self.hub.note(self.place, request)
        fault = self.hub.faults.take(request.method, request.path)
        if fault and fault.first:
            fault.first()
        if fault and fault.status and not fault.after:
            return self._send(request, as_json({"error": "a fault"}, fault.status, **fault.headers))
        answer = self.hub.api.answer(request)
        if fault and fault.status:
            answer = as_json({"error": "a fault, after it was done"}, fault.status, **fault.headers)
        self._send(request, answer, fault.cut if fault else None)
        if fault and fault.cut is not None:
            self._cut(fault.reset)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _handle

    def _read(self) -> Request:
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        headers = {name.lower(): value for name, value in self.headers.items()}
        if headers.get("transfer-encoding") == "chunked":
            body = b"".join(self._chunks())
        else:
            body = self.rfile.read(int(headers.get("content-length", 0)))
        return Request(self.command, self.path, token if scheme == "Bearer" else None, headers, body)

    def _chunks(self):
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def _send(self, request: Request, answer: Answer, cut: int | None = None) -> None:
        body = answer.body
        total = body.stat().st_size if isinstance(body, Path) else len(body)
        status, start, end = _range(request, answer, total)
        self.send_response(status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{total}")
        self.send_header("Content-Length", str(end - start))
        self.end_headers()
        stop = end if cut is None else min(end, start + cut)
        if request.method != "HEAD":
            self._write(body, start, stop, answer.served)

    def _write(self, body: bytes | Path, start: int, stop: int, served: str | None) -> None:
        with body.open("rb") if isinstance(body, Path) else io.BytesIO(body) as file:
            file.seek(start)
            while start < stop and (piece := file.read(min(CHUNK, stop - start))):
                self.wfile.write(piece)
                self.hub.count(served, len(piece))
                start += len(piece)

    def _cut(self, reset: bool) -> None:
        self.wfile.flush()
        self.close_connection = True
        if reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        else:
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_) -> None:
        pass


def _range(request: Request, answer: Answer, total: int) -> tuple[int, int, int]:
    """Status, first byte and end of what is asked for."""
    asked = re.fullmatch(r"bytes=(\d*)-(\d*)", request.headers.get("range", ""))
    if answer.status != 200 or answer.served is None or not asked or not (asked[1] or asked[2]):
        return answer.status, 0, total
    if not asked[1]:
        return 206, max(0, total - int(asked[2])), total
    end = min(total, int(asked[2]) + 1) if asked[2] else total
    return (206, int(asked[1]), end) if int(asked[1]) < end else (416, 0, 0)


@contextmanager
def running_hub(monkeypatch) -> Iterator[HubServer]:
    """A Hub that this process's own client is pointed to, without Xet, proxy and pauses between tries."""
    from huggingface_hub import constants
    from huggingface_hub.utils import _http, close_session

    with HubServer() as hub:
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setattr(constants, "ENDPOINT", hub.url)
        template = hub.url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        pauses = SimpleNamespace(**vars(time) | {"sleep": lambda _seconds: None})
        monkeypatch.setattr(_http, "time", pauses)
        monkeypatch.setattr("huggingface_hub.file_download.time", pauses)
        close_session()
        try:
            yield hub
        finally:
            close_session()
