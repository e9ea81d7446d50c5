"""Uploaded files, kept as they came, named by their SHA-256."""

import hashlib
import re
import time
from pathlib import Path

from core.files import PART_PREFIX, atomic_write, flush

LEFTOVER_AFTER_SECONDS = 3600


class FileStore:
    """A folder of files addressed by content: ``<first two digits>/<sha256>``.

    A file is written beside its place and moved there whole, so that a killed process leaves no half file
    under a name that counts.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def keep(self, content: bytes) -> str:
        """Store ``content`` durably and return its SHA-256; keeping it twice is the same as once.

        A stored file that the disk has changed is replaced by the good content.
        """
        sha256 = hashlib.sha256(content).hexdigest()
        path = self.path(sha256)
        _make_folder(path.parent)
        if _holds(path, content):
            flush(path.parent)  # its writer may not have come as far as that
        else:
            atomic_write(path, content, mode=0o600)
        return sha256

    def read(self, sha256: str) -> bytes:
        """The content of a stored file; raises FileNotFoundError, or ValueError when the disk changed it."""
        content = self.path(sha256).read_bytes()
        if hashlib.sha256(content).hexdigest() != sha256:
            raise ValueError(f"stored file {sha256} is damaged: its content no longer has that SHA-256")
        return content

    def path(self, sha256: str) -> Path:
        """Where a file of this SHA-256 is kept, there or not; raises ValueError for what is no SHA-256."""
        if not re.fullmatch(r"[0-9a-f]{64}", sha256):
            raise ValueError("a stored file is named by 64 hexadecimal digits")
        return self.folder / sha256[:2] / sha256

    def remove_leftovers(self, older_than_seconds: float = LEFTOVER_AFTER_SECONDS) -> int:
        """Remove what processes left behind that were killed while writing; how many files it was.

        Younger ones may be in the hands of another process.
        """
        removed = 0
        for part in self.folder.glob(f"*/{PART_PREFIX}*"):
            try:
                if time.time() - part.stat().st_mtime >= older_than_seconds:
                    part.unlink()
                    removed += 1
            except FileNotFoundError:  # finished or removed by another process meanwhile
                continue
        return removed


def _holds(path: Path, content: bytes) -> bool:
    try:
        return path.stat().st_size == len(content) and path.read_bytes() == content
    except FileNotFoundError:
        return False


def _make_folder(folder: Path) -> None:
    """The folder, its name in the one above made durable too."""
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        flush(folder.parent)
