"""A server for tests of readers: it answers by path, and keeps what it was asked."""

import threading
from collections.abc import Callable
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class TinyServer:
    """Answers a path with its text, or with what its function of the path gives, always with one status."""

    def __init__(self, answers: dict[str, str | Callable[[str], str]], status: int = 200) -> None:
        self.asked: list[tuple[str, str, dict[str, str], int]] = []
        self.url = ""
        self._answers, self._status = answers, status

    @contextmanager
    def running(self):
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                sent = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                outer.asked.append((self.path, sent, dict(self.headers), self.client_address[1]))
                answer = outer._answers.get(self.path.split("?")[0], "")
                body = (answer if isinstance(answer, str) else answer(self.path)).encode()
                self.send_response(304 if "If-None-Match" in self.headers else outer._status)
                self.send_header("ETag", '"one"')
                self.send_header("Content-Type", "text/html")
                if "If-None-Match" in self.headers:
                    self.end_headers()
                    return
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, *_) -> None: ...

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.handle_error = lambda *_: None  # the reader sees a closed connection
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        self.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
