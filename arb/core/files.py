"""Write files atomically, write CSV, and find the project's own files."""

import contextlib
import csv
import errno
import io
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

PROJECT = "agent-reward-bench-space"
"""The distribution's name. `agent-reward-bench` on PyPI belongs to the authors of the benchmark."""

PART_PREFIX = ".part-"
"""The prefix of the name of a file that is being written. A killed process leaves such a file behind."""

DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""The error numbers of a disk, or of a user's quota on it, that has no room left."""

_FOLDERS_CANNOT_BE_FLUSHED = (errno.EACCES, errno.EINVAL, errno.EISDIR, errno.ENOTSUP)
"""The error numbers that operating systems and file systems return if they cannot flush a folder."""


def atomic_write(path: Path, content: bytes | str, mode: int = 0o666) -> None:
    """Write a file atomically (text as UTF-8) and flush it to the disk. Raises OSError."""
    with atomic_writer(path, mode) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


@contextlib.contextmanager
def atomic_writer(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Yield a temporary binary file that replaces ``path`` if the block ends without an error.

    The new file gets the permissions ``mode`` minus the umask, even if it replaces an existing file.
    Errors name ``path``.
    """
    path = Path(path)
    part = path.with_name(f"{PART_PREFIX}{secrets.token_hex(6)}-{path.name[:100]}")
    with errors_name(path, part):
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    try:
        flush(path.parent)
    except OSError as error:
        if error.errno not in _FOLDERS_CANNOT_BE_FLUSHED:
            raise


@contextlib.contextmanager
def new_folder(path: Path, mode: int = 0o777) -> Iterator[Path]:
    """Yield a temporary folder, which is renamed to ``path`` after the block, or removed after an error.

    The folder gets the permissions ``mode`` minus the umask. A killed process may leave a folder behind whose
    name begins with `PART_PREFIX`.

    Raises:
        OSError: ``path`` exists and is not an empty folder, or it cannot be replaced or written.
    """
    path = path.resolve()
    if path == Path.cwd() or path.is_mount():
        raise OSError(errno.EBUSY, "it cannot be replaced: name a folder in it", str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{PART_PREFIX}{secrets.token_hex(6)}-{path.name[:100]}")
    with errors_name(path, part):
        part.mkdir(mode)
        try:
            yield part
            part.rename(path)
        finally:
            shutil.rmtree(part, ignore_errors=True)


@contextlib.contextmanager
def errors_name(path: Path, part: Path | None = None) -> Iterator[None]:
    """Make the block's errors name ``path`` if the disk is full, or if they name the temporary ``part``."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in DISK_FULL:
            error.filename = str(path)
        elif part is not None and str(error.filename).startswith(str(part)):
            error.filename = str(error.filename).replace(str(part), str(path), 1)
        raise


def project_file(name: str) -> Path:
    """Return the path of a file in the repository's root (``CHANGELOG.md``), or of its copy in a wheel."""
    root = Path(__file__).parents[2]
    installed = root / "arb" / name
    return installed if installed.exists() else root / name


def install_command(extra: str) -> str:
    """Return the pip command that installs an extra, for a checkout or an installed distribution."""
    is_checkout = (Path(__file__).parents[2] / "pyproject.toml").is_file()
    return f"pip install '{'.' if is_checkout else PROJECT}[{extra}]'"


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]], line_end: str = "\n") -> str:
    """Return a header and rows as CSV text. If lines end with CR LF, cells with a lone CR are quoted."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=line_end)
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def flush(path: Path) -> None:
    """Flush a file's content, or a folder's entries, to the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
