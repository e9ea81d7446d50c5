"""Canaries: words planted in the label files of tests, looked for in all that comes out of a test run.

The nonces of events begin with one too, in services of this process: no answer and no log line holds it.
Database files, copies of the records and the Hub's private ones do.

While the tests run, every HTTP answer that a client of this process gets is looked at, and every line of a
log; at the end, every file that the run left in its temporary folder. `test_canary.py` plants counts as well.
"""

import logging
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CANARIES = ("Canary-annotator-7c41d9", "canary-experiment-e05b23")

NONCE_CANARY = "ca9a7ed0a0ce5a17"
"""What every nonce of a test run begins with, in hexadecimal."""

LABEL_FILES = ("*label*.csv", "*label*.parquet", "*annotation*.csv", "*annotation*.parquet")
"""Where they belong, by name; and in the stores of uploaded files, which hold published label sets."""

_BYTES = tuple(canary.encode() for canary in CANARIES)
_PIECE = 1 << 20


class Watch(logging.Handler):
    """Looks at answers and log lines; what it found stays in ``found``, for the end of the run."""

    def __init__(self, canaries: tuple[str, ...] = (*CANARIES, NONCE_CANARY)) -> None:
        super().__init__(level=logging.NOTSET)
        self._canaries = canaries
        self.found: list[str] = []
        self.answers = 0

    def emit(self, record: logging.LogRecord) -> None:
        """A log line, with the text of its exception."""
        text = logging.Formatter().format(record)
        if any(canary in text for canary in self._canaries):
            self.found.append(f"a log line of {record.name}")

    def answer(self, url: str, content: bytes) -> None:
        """An answer to a client."""
        self.answers += 1
        if any(canary.encode() in content for canary in self._canaries):
            self.found.append(f"the answer of {url}")


def recognisable_nonce() -> bytes:
    """A nonce that is found again: eight bytes of every one are the same."""
    start = bytes.fromhex(NONCE_CANARY)
    return start + secrets.token_bytes(32 - len(start))


def holds_canary(content: bytes) -> bool:
    """Whether one of them is in it."""
    return any(canary in content for canary in _BYTES)


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """Have every client of httpx and httpx2 in this process, test clients too, show ``watch`` its answers."""
    import httpx
    import httpx2

    clients = (httpx.Client, httpx2.Client, httpx.AsyncClient, httpx2.AsyncClient)
    before = [client.send for client in clients]
    for client in clients:
        shown = _shown_later if client.__name__ == "AsyncClient" else _shown
        client.send = shown(client.send, watch)
    logging.getLogger().addHandler(watch)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(watch)
        for client, send in zip(clients, before, strict=True):
            client.send = send


def _shown(send, watch: Watch):
    def sending(self, request, **options):
        answer = send(self, request, **options)
        if not options.get("stream"):
            watch.answer(str(request.url), answer.content)
        return answer

    return sending


def _shown_later(send, watch: Watch):
    async def sending(self, request, **options):
        answer = await send(self, request, **options)
        if not options.get("stream"):
            watch.answer(str(request.url), answer.content)
        return answer

    return sending


def files_with_canaries(folder: Path) -> list[Path]:
    """Every file under a folder that holds a canary and is no label file."""
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and not _may_hold_labels(path) and _is_in(path)
    ]


def _may_hold_labels(path: Path) -> bool:
    is_kept_upload = path.parent.parent.name == "files" and len(path.name) == 64
    is_this_file = path.parts[-3:] == ("tests", "support", "canary.py")  # in a clone of the checkout
    return is_kept_upload or is_this_file or any(path.match(pattern) for pattern in LABEL_FILES)


def _is_in(path: Path) -> bool:
    """Read in pieces that overlap by the longest canary."""
    overlap = max(map(len, _BYTES)) - 1
    tail = b""
    try:
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                if holds_canary(tail + piece):
                    return True
                tail = piece[-overlap:]
    except OSError:  # gone meanwhile, or another user's
        return False
    return False
