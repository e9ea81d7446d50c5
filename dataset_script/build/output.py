"""Move a finished dataset to its folder, completely or not at all. Only an older dataset is overwritten."""

import fcntl
import hashlib
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Final

from arb.core.files import errors_name, flush
from arb.core.hub import PublishError, published_files

MARKER: Final = "<!-- made by: python -m dataset_script build -->"
"""A line in every README.md that `build` writes. A folder whose README.md has it may be replaced."""

_ROOT: Final = Path(__file__).parents[2]
_OURS: Final = {"README.md", "croissant.json", "data", "eval.yaml", "index.parquet", "manifest.json"}


class OutputError(ValueError):
    """Raised for a folder that must not be written to; the message says why and what to do."""


def check_replaceable(out: Path, source: Path) -> None:
    """Raise OutputError if ``out`` contains the source, or anything that `build` did not write."""
    inside = out.resolve()
    if inside == source.resolve() or inside in source.resolve().parents:
        raise OutputError(f"{out} contains the source; name another folder")
    if not out.exists():
        return
    if not out.is_dir():
        raise OutputError(f"{out} is a file; name a folder")
    found = sorted(path.name for path in out.iterdir())
    if not found:
        return
    readme = out / "README.md"
    if not readme.is_file() or MARKER not in readme.read_text(encoding="utf-8", errors="replace"):
        raise OutputError(f"{out}: exists and was not written by `build`; name another folder or move it")
    if extra := [name for name in found if name not in _OURS]:
        raise OutputError(f"{out}: will be replaced; first move {', '.join(extra[:5])} out of it")


@cache
def code_version() -> str:
    """Return a hash of the code that makes parts, so that parts made by older code are not reused."""
    libraries = [version(name) for name in ("pyarrow", "pillow", "zlib-ng")]
    digest = hashlib.sha256(" ".join(libraries).encode())
    for package in ("arb/core", "dataset_script"):
        for pattern in ("*.py", "*.toml"):
            for path in sorted((_ROOT / package).rglob(pattern)):
                digest.update(path.read_bytes())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class WorkFolder:
    """The folders of a build in progress, on the same disk as the result."""

    parts: Path
    staged: Path


@contextmanager
def work_folder(out: Path) -> Iterator[WorkFolder]:
    """Yield the work folders of a build, in ``.<name>.work`` next to ``out``, and remove them afterwards.

    If the block raises an exception, ``parts`` is kept, and the next build resumes from it. Raises
    OutputError if another build is using the folders.
    """
    target = out.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    path = target.parent / f".{target.name}.work"
    work = WorkFolder(path / "parts", path / "staged")
    work.parts.mkdir(parents=True, exist_ok=True)
    with errors_name(out), (path / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutputError(
                f"{out}: another build is writing to it; wait until it ends, or stop it"
            ) from None
        try:
            shutil.rmtree(work.staged, ignore_errors=True)
            work.staged.mkdir()
            yield work
        except BaseException:
            shutil.rmtree(work.staged, ignore_errors=True)
            if not any(work.parts.iterdir()):
                shutil.rmtree(path, ignore_errors=True)
            raise
        shutil.rmtree(path, ignore_errors=True)


def put_in_place(staged: Path, out: Path) -> None:
    """Replace ``out`` by the staged folder. On an exception, ``out`` is either the old or the new folder.

    A process that is killed between the two renames leaves the old folder as ``.<name>.replaced-…``, and
    `restore_replaced` renames it back.
    """
    for path in (*staged.rglob("*"), staged):
        flush(path)
    target = out.resolve()
    aside = target.parent / f".{target.name}.replaced-{secrets.token_hex(4)}"
    try:
        if target.exists():
            target.rename(aside)
        staged.rename(target)
    except BaseException:
        if aside.exists() and not target.exists():
            aside.rename(target)
        raise
    finally:
        if not staged.exists():  # the new folder is in place; killed processes may have left old ones, too
            for old in _replaced(target):
                shutil.rmtree(old, ignore_errors=True)
    flush(target.parent)


def restore_replaced(out: Path) -> None:
    """If ``out`` does not exist, restore the complete dataset that a killed process moved aside."""
    target = out.resolve()
    for old in () if target.exists() else _replaced(target):
        with suppress(PublishError, OSError):
            published_files(old)
            old.rename(target)
            return


def _replaced(target: Path) -> list[Path]:
    name = f".{target.name}.replaced-"
    found = target.parent.iterdir() if target.parent.is_dir() else ()
    return sorted(path for path in found if path.name.startswith(name))
