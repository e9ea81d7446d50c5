"""The read-only site of a board, written into a folder: whole, or not there at all."""

import shutil
import tempfile
from pathlib import Path

from leaderboard.board import Board
from leaderboard.static_site.site import site_files


class FolderTaken(Exception):
    """The folder holds something that is no site of ours; the message says what to do."""


def write_static_site(board: Board, folder: Path) -> int:
    """Write the site of a board to ``folder`` and return how many files it has.

    An older site there is replaced at once; anything else in the way is left alone: raises FolderTaken.
    """
    if folder.exists() and not _is_replaceable(folder):
        raise FolderTaken(f"{str(folder)!r} contains other files; use a new or an empty folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    files = site_files(board)
    part = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
    try:
        for name, content in files.items():
            path = part / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        part.chmod(0o755)
        if folder.exists():
            old = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-old-"))
            folder.replace(old / "site")
            part.replace(folder)
            shutil.rmtree(old)
        else:
            part.replace(folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return len(files)


def _is_replaceable(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    names = {path.name for path in folder.iterdir()}
    return not names or {"index.html", "site.css", "board.json"} <= names
