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
"""Prefix of the name of a file that is being written. A killed process leaves such a file behind."""

_FOLDERS_CANNOT_BE_FLUSHED = (errno.EACCES, errno.EINVAL, errno.EISDIR, errno.ENOTSUP)
"""Errors of systems and file systems on which a folder cannot be flushed."""


def atomic_write(path: Path, content: bytes | str, mode: int = 0o666) -> None:
    """Write a file atomically (text as UTF-8) and flush it to the disk. Raises OSError."""
    with atomic_writer(path, mode) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


@contextlib.contextmanager
def atomic_writer(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Yield a binary file that replaces ``path`` at the end of the block, unless the block raises.

    The new file has the permissions ``mode`` minus the umask, whatever the old file had.
    """
    path = Path(path)
    part = path.with_name(f"{PART_PREFIX}{secrets.token_hex(6)}-{path.name[:100]}")
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
    """Yield an empty folder that gets the name `path` when the block ends without an error.

    On an error it is removed. A killed process may leave a folder whose name begins with `PART_PREFIX`.

    Args:
        path: The new folder; an empty folder of this name is replaced.
        mode: The permissions of the new folder, before the umask is applied.

    Raises:
        OSError: ``path`` exists and is not an empty folder, or it cannot be written.
    """
    path = path.absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{PART_PREFIX}{secrets.token_hex(6)}-{path.name[:100]}")
    part.mkdir(mode)
    try:
        yield part
        part.rename(path)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def project_file(name: str) -> Path:
    """Return the path of a file of the repository, such as ``CHANGELOG.md``; a wheel has it in ``arb``."""
    root = Path(__file__).parents[2]
    installed = root / "arb" / name
    return installed if installed.exists() else root / name


def install_command(extra: str) -> str:
    """Return the pip command that installs an extra, for a checkout or for the installed distribution."""
    is_checkout = (Path(__file__).parents[2] / "pyproject.toml").is_file()
    return f"pip install '{'.' if is_checkout else PROJECT}[{extra}]'"


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return the header and the rows as CSV text, in which lines end with a line feed."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
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
