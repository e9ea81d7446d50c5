"""Uploaded files, stored byte for byte under their SHA-256, in the same place as the records.

If the records are in the state folder, files are in a folder next to them. If they are in a database
(DATABASE_URL), so are the files: the database outlives the disk of a replica, every replica sees new files
immediately, and nothing else has to be set up, paid for or backed up. Files have at most 5 MB, so no object
store is needed.
"""

import hashlib
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from sqlalchemy import Engine, select
from sqlalchemy.exc import IntegrityError

from arb.core.files import PART_PREFIX, atomic_write, flush
from arb.core.settings import Settings
from submissions.records.database import StoredFile, snapshot, transaction

LEFTOVER_AFTER_SECONDS = 3600
_NAME = re.compile(r"[0-9a-f]{64}")


class FileStore:
    """A folder of files addressed by content: ``<first two digits>/<sha256>``.

    A file is written under a temporary name and then renamed, so that a killed process leaves no partial
    file under a final name.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def keep(self, content: bytes) -> str:
        """Store ``content`` durably and return its SHA-256; a damaged copy on the disk is replaced."""
        sha256 = hashlib.sha256(content).hexdigest()
        path = self.path(sha256)
        _make_folder(path.parent)
        atomic_write(path, content, mode=0o600)
        return sha256

    def read(self, sha256: str) -> bytes:
        """Return the content of a stored file. Raises FileNotFoundError, or ValueError if it is damaged."""
        return _checked(self.path(sha256).read_bytes(), sha256)

    def path(self, sha256: str) -> Path:
        """Return the path of a file, stored or not. Raises ValueError if the name is not a SHA-256."""
        if not _NAME.fullmatch(sha256):
            raise ValueError("the name of a stored file must have 64 hexadecimal digits")
        return self.folder / sha256[:2] / sha256

    def absent(self, wanted: Iterable[str]) -> list[str]:
        """Return the wanted files that are not stored, sorted."""
        return sorted(sha256 for sha256 in wanted if not self.path(sha256).is_file())

    def remove_leftovers(self) -> None:
        """Remove partial files that killed processes left more than an hour ago."""
        for part in self.folder.glob(f"*/{PART_PREFIX}*"):
            with suppress(FileNotFoundError):  # another process finished or removed it meanwhile
                if time.time() - part.stat().st_mtime >= LEFTOVER_AFTER_SECONDS:
                    part.unlink()


class DatabaseFiles(FileStore):
    """Files stored in the database of the records. The folder has copies of files that are read by path."""

    def __init__(self, folder: Path, engine: Engine) -> None:
        super().__init__(folder)
        self._engine = engine

    def keep(self, content: bytes) -> str:
        sha256 = hashlib.sha256(content).hexdigest()
        with suppress(IntegrityError), transaction(self._engine) as session:  # another replica may be first
            session.merge(StoredFile(sha256=sha256, content=content))
        return sha256

    def read(self, sha256: str) -> bytes:
        with snapshot(self._engine) as session:
            content = session.scalar(select(StoredFile.content).where(StoredFile.sha256 == sha256))
        if content is None:
            raise FileNotFoundError(f"the file {sha256} is not stored")
        return _checked(content, sha256)

    def path(self, sha256: str) -> Path:
        """Return the path of the local copy, and create the copy if the database has the file."""
        local = super().path(sha256)
        if not local.is_file() and not self.absent([sha256]):
            FileStore(self.folder).keep(self.read(sha256))
        return local

    def absent(self, wanted: Iterable[str]) -> list[str]:
        with snapshot(self._engine) as session:
            stored = set(session.scalars(select(StoredFile.sha256)))
        return sorted(set(wanted) - stored)


def open_files(settings: Settings, engine: Engine) -> FileStore:
    folder = settings.state_dir / "files"
    return DatabaseFiles(folder, engine) if settings.database_url else FileStore(folder)


def _checked(content: bytes, sha256: str) -> bytes:
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ValueError(f"the stored file {sha256} is damaged: its content no longer has that SHA-256")
    return content


def _make_folder(folder: Path) -> None:
    """Create a folder and flush its parent, so that its name is durable too."""
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        flush(folder.parent)
