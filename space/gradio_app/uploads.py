"""Takes uploads from the page /submit and ``gradio_client``, on a route that replaces Gradio's own.

The files are kept in the state folder, since Gradio's own folder is shared by all users of a machine. The
number of stored bytes is limited, per address and in total.
"""

import asyncio
import hashlib
import os
import time
from collections.abc import Callable
from contextlib import suppress
from math import ceil
from pathlib import Path
from typing import Final

from fastapi import APIRouter, HTTPException, Request, Response, UploadFile
from gradio_client.utils import strip_invalid_filename_characters
from starlette.concurrency import run_in_threadpool

from arb.core.files import atomic_write
from arb.core.settings import Settings
from space.gradio_app.limits import Holdings, Sender
from space.operations.limits import SenderRefused
from space.web.body_limits import FORM_LIMITS, PAGE_UPLOAD, TOO_LARGE
from submissions.errors import stores_in
from submissions.intake.upload import safe_file_name

KEPT_SECONDS: Final = 3600
"""How long an upload is kept."""
MOST_FILES: Final = 200
MOST_FILES_EACH: Final = 20
"""The space for uploads, in total and per address, as a number of files of the largest size."""
SMALLEST: Final = 4_096
"""The space that even the smallest file takes on disk, in bytes."""
LEFT_OVER: Final = ""
"""The sender under which files left by an earlier process are counted."""


class TooManyUploads(SenderRefused):
    """Raised when one address (429) or all addresses together (503) have used up the space for uploads."""

    def __init__(self, status: int, who: str, most: int, seconds: float) -> None:
        problem = (
            f"uploads from {who} take {most / 1e6:,g} MB, which is the limit until the oldest file is deleted"
        )
        super().__init__(status, problem, max(1, ceil(seconds)))


class UploadStore:
    """The folder for uploads, limited per sender and in total; each file is deleted after `KEPT_SECONDS`."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        """Tell Gradio to use the folder, and count the files that an earlier process left in it."""
        self.folder = (settings.state_dir / "uploads").resolve()
        os.environ["GRADIO_TEMP_DIR"] = str(self.folder)  # Gradio looks it up whenever it needs the folder
        self._file_bytes, self._clock = settings.max_upload_bytes, clock
        largest = max(self._file_bytes, SMALLEST)
        self._most, self._most_each = MOST_FILES * largest, MOST_FILES_EACH * largest
        self._holdings: Holdings[Path] = Holdings(clock)
        self._writing = asyncio.Lock()
        for path in self.folder.glob("*/*"):
            self._holdings.add(path, LEFT_OVER, max(path.stat().st_size, SMALLEST))

    def require_room(self, sender: str, size: int = SMALLEST) -> None:
        """Make room for a sender's next file of ``size`` bytes.

        If all files together would take too much space, delete the oldest files of the sender that stores the
        most. Raise TooManyUploads if that is this sender, or if this sender is over its own limit.
        """
        holdings = self._holdings
        if holdings.held(sender) + size > self._most_each:
            self._forget_deleted(sender)
        if holdings.held(sender) + size > self._most_each:
            raise TooManyUploads(429, "one address", self._most_each, self._seconds_left(sender))
        while holdings.total + size > self._most:
            heaviest = holdings.heaviest()
            if holdings.held(heaviest) <= holdings.held(sender) + size:
                raise TooManyUploads(503, "all addresses", self._most, self._seconds_left(heaviest))
            self._delete(next(iter(holdings.of(heaviest))))

    async def save(self, sender: str, file: UploadFile) -> Path:
        """Store a file as HASH/NAME and return its path. Raise HTTPException above a limit, or DiskFull."""
        async with self._writing:
            content = await file.read(self._file_bytes + 1)
            if len(content) > self._file_bytes:
                raise HTTPException(413, TOO_LARGE.format(self._file_bytes))
            size = max(len(content), SMALLEST)
            self.require_room(sender, size)
            name = strip_invalid_filename_characters(safe_file_name(file.filename or ""))
            path = await run_in_threadpool(self._write, content, name)
            self._holdings.add(path, sender, size)
            return path

    def _write(self, content: bytes, name: str) -> Path:
        path = self.folder / hashlib.sha256(content).hexdigest() / name
        with stores_in(self.folder):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.parent.mkdir(exist_ok=True)
            try:
                atomic_write(path, content, 0o600)
            except OSError:
                with suppress(OSError):  # the folder holds the same content under another name
                    path.parent.rmdir()
                raise
        return path

    def _seconds_left(self, sender: str) -> float:
        oldest = next(iter(self._holdings.of(sender).values()))
        return oldest.since + KEPT_SECONDS - self._clock()

    def _forget_deleted(self, sender: str) -> None:
        for path in self._holdings.of(sender):
            if not path.exists():
                self._holdings.remove(path)

    def _delete(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        with suppress(OSError):  # the folder holds the same content under another name
            path.parent.rmdir()
        self._holdings.remove(path)

    def sweep(self) -> None:
        for path in self._holdings.older_than(KEPT_SECONDS):
            self._delete(path)

    def clear(self) -> None:
        for path in self._holdings:
            self._delete(path)


def build_upload_router(store: UploadStore, sender: Sender) -> APIRouter:
    """Return the routes of uploads, under the addresses that Gradio's scripts use."""
    router = APIRouter(form_limits=FORM_LIMITS, include_in_schema=False)

    @router.post(PAGE_UPLOAD)
    async def upload(files: UploadFile, request: Request) -> list[str]:
        return [str(await store.save(sender(request), files))]

    @router.get(f"{PAGE_UPLOAD}_progress")
    def show_progress() -> Response:
        # The page asks for progress during an upload. Gradio's own route would never delete its state.
        return Response(media_type="text/event-stream")

    return router
