"""The released layout from the Hub: the parts, benchmarks and agents wanted, at one commit, into a folder.

The folder is then a source for `build`. A file that is there is not fetched again, so the same command goes
on where it was stopped; the list of files is kept beside them, so a second run asks for nothing it has.
`huggingface_hub` fetches each file. Its snapshots lack what is added here: single failures are named, the
fetch ends when many fail in a row, and it stops within a moment.
"""

from __future__ import annotations

import errno
import fcntl
import json
import re
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from arb.core.files import atomic_write
from arb.core.hub import HubError, describe_failure, is_repo_name, patiently

if TYPE_CHECKING:
    from huggingface_hub import HfApi

FAILURES_IN_A_ROW: Final = 16
"""So many files failing one after the other are no longer single failures."""


@dataclass(frozen=True)
class Downloads:
    """Fetches files of one commit into a folder; ``progress`` gets the bytes there are and those wanted."""

    hub: HfApi
    repo: str
    commit: str
    out: Path
    progress: Callable[[int, int], None]
    say: Callable[[str], None]
    sleep: Callable[[float], None] = time.sleep

    def run(self, sizes: Mapping[str, int], there: Collection[str], workers: int) -> dict[str, str]:
        """Fetch what is not there yet. Returns the reason for each file that failed.

        The pool's threads are daemons: one that waits for the network does not keep an interrupted process
        alive, as those of `concurrent.futures` and of `snapshot_download` would.

        Raises:
            HubError: Going on is of no use, or ``progress`` raised something. KeyboardInterrupt is passed on.
        """
        from multiprocessing.pool import ThreadPool

        from huggingface_hub.utils import disable_progress_bars

        disable_progress_bars()  # one is shown for all files
        self._clear_leftovers()
        total, done = sum(sizes.values()), sum(sizes[path] for path in there)
        self.progress(done, total)
        wanted = [path for path in sizes if path not in there]
        failed: dict[str, str] = {}
        in_a_row = 0
        pool = ThreadPool(max(1, min(workers, len(wanted))))
        try:
            for path, problem in pool.imap_unordered(self._fetch, wanted):
                if problem is None:
                    in_a_row = 0
                    done += sizes[path]
                    self.progress(done, total)
                    continue
                failed[path] = problem
                in_a_row += 1
                if in_a_row == FAILURES_IN_A_ROW:
                    raise HubError(f"{in_a_row} files failed in a row, the last one: {path}: {problem}")
        except Exception as error:
            raise HubError(f"{error}; what was fetched is kept") from error
        finally:
            pool.terminate()
            self._clear_leftovers()
        return failed

    def _fetch(self, path: str) -> tuple[str, str | None]:
        """Fetch one file. Returns its path, and why it cannot be had or None. Raises OSError of the disk."""
        from huggingface_hub.errors import HTTPError, LocalEntryNotFoundError

        def get() -> None:
            try:
                self.hub.hf_hub_download(
                    self.repo, path, repo_type="dataset", revision=self.commit, local_dir=self.out
                )
            except LocalEntryNotFoundError as error:  # the client has tried five times
                raise HubError(describe_failure(error.__cause__ or error)) from error
            except HTTPError:
                raise
            except OSError as error:
                if error.errno is not None:
                    raise
                raise HubError("what came is not as long as it should be") from error

        try:
            patiently(get, path, self.sleep, self.say)
        except HubError as error:
            return path, str(error).removeprefix(f"{path}: ")
        except OSError as error:
            if error.errno not in (errno.ENAMETOOLONG, errno.EINVAL):
                raise
            return path, f"this disk cannot hold a file of this name ({error.strerror})"
        return path, None

    def _clear_leftovers(self) -> None:
        """Remove half-fetched files: the client never goes on with one, and a killed process leaves them."""
        for path in (self.out / ".cache" / "huggingface" / "download").rglob("*.incomplete"):
            path.unlink(missing_ok=True)


RELEASED_REPO: Final = "McGill-NLP/agent-reward-bench"
RELEASED_REVISION: Final = "b6d17e646009d6cb63d5dd7be78807b680693f61"
PARTS: Final = ("cleaned", "screenshots", "judgments")

_CARD: Final = "README.md"
_FETCHED: Final = "fetched.json"


@dataclass(frozen=True, slots=True)
class Selection:
    """What to fetch; nothing named in a field means all of it."""

    parts: tuple[str, ...] = ()
    benchmarks: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fetched:
    """What is in the folder now; ``failed`` gives the reason for each file that could not be had."""

    commit: str
    files: int
    bytes: int
    fetched: int
    failed: Mapping[str, str]


def fetch(
    hub: HfApi,
    out: Path,
    selection: Selection = Selection(),
    repo: str = RELEASED_REPO,
    revision: str = RELEASED_REVISION,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    say: Callable[[str], None] = lambda _line: None,
    sleep: Callable[[float], None] = time.sleep,
    workers: int = 8,
) -> Fetched:
    """Fetch the selection into ``out``; ``progress`` is called with the bytes there are and those wanted.

    Raises HubError when the Hub cannot be asked, has no such part, benchmark or agent, or the disk is too
    small; single files that fail do not end it. KeyboardInterrupt leaves whole files only.
    """
    if not is_repo_name(repo):
        raise HubError(f"{repo!r}: a repository is named owner/name")
    commit = revision
    if not re.fullmatch(r"[0-9a-f]{40}", revision) or _listed(repo, revision, out) is None:
        place = f"{repo} at {revision}"
        info = partial(hub.repo_info, repo, repo_type="dataset", revision=revision)
        commit = patiently(info, place, sleep, say).sha
    _check_folder(out, repo, commit)
    out.mkdir(parents=True, exist_ok=True)
    with _only_one(out):
        say(f"{repo} at {commit}: reading the list of files")
        files = _files(hub, repo, commit, out)
        chosen = choose(files, selection) | {path: files[path] for path in (_CARD,) if path in files}
        atomic_write(out / _FETCHED, json.dumps({"repo": repo, "commit": commit}, indent=2) + "\n")
        there = {path for path, size in chosen.items() if _is_there(out / path, size)}
        needed, free = sum(chosen.values()) - sum(map(chosen.get, there)), shutil.disk_usage(out).free
        if needed > free:
            raise HubError(f"{out}: {needed / 1e9:.1f} GB are to be fetched and {free / 1e9:.1f} GB are free")
        downloads = Downloads(hub, repo, commit, out, progress, say, sleep)
        failed = downloads.run(chosen, there, workers)
    got = {path: size for path, size in chosen.items() if path not in failed}
    return Fetched(commit, len(got), sum(got.values()), len(got.keys() - there), failed)


def choose(files: Mapping[str, int], selection: Selection) -> dict[str, int]:
    """The files of the selection with their sizes, by path, out of all files of a repository.

    Raises HubError that lists every part, benchmark and agent that is not there, with those that are.
    """
    named = {"part": selection.parts, "benchmark": selection.benchmarks, "agent": selection.agents}
    folders_of = {path: path.split("/") for path in files}
    released = {path: names for path, names in folders_of.items() if names[0] in PARTS and len(names) > 3}
    problems = []
    for depth, (what, names) in enumerate(named.items()):
        there = {folders[depth] for folders in released.values()}
        there_are = ", ".join(sorted(there))
        problems += [f"there is no {what} {n!r}; there is {there_are}" for n in names if n not in there]
    if not released:
        problems = [f"it has none of the folders {', '.join(PARTS)}, so it is not in the released layout"]
    wanted = {
        path: files[path]
        for path, folders in sorted(released.items())
        if all(not names or folders[depth] in names for depth, names in enumerate(named.values()))
    }
    if not wanted and not problems:
        problems = ["it has no file of this agent on this benchmark"]
    if problems:
        raise HubError("; ".join(problems))
    return wanted


def _files(hub: HfApi, repo: str, commit: str, out: Path) -> dict[str, int]:
    """Every file of the commit with its size. The client keeps the list in ``out``, with the card."""
    from huggingface_hub.errors import HTTPError, LocalEntryNotFoundError
    from huggingface_hub.utils import disable_progress_bars

    listed = _listed(repo, commit, out)
    if listed is not None:
        return listed
    disable_progress_bars()
    with suppress(HTTPError, LocalEntryNotFoundError):  # the card is fetched with the other files too
        hub.snapshot_download(
            repo, repo_type="dataset", revision=commit, local_dir=out, allow_patterns=[_CARD]
        )
    listed = _listed(repo, commit, out)
    if listed is None:
        raise HubError(f"{repo} at {commit}: the list of files cannot be had now; try again")
    return listed


def _listed(repo: str, commit: str, out: Path) -> dict[str, int] | None:
    """The list that the client has kept in ``out``; None when there is none."""
    from huggingface_hub import get_cached_repo_tree
    from huggingface_hub.errors import CachedRepoTreeNotFoundError

    try:
        files = get_cached_repo_tree(repo, repo_type="dataset", revision=commit, local_dir=out)
    except CachedRepoTreeNotFoundError:
        return None
    return {file.path: file.size for file in files}


def _check_folder(out: Path, repo: str, commit: str) -> None:
    """Refuse a folder that holds another commit's files: a build must not mix two."""
    if out.exists() and not out.is_dir():
        raise HubError(f"{out}: is a file; name a folder")
    noted = out / _FETCHED
    if not noted.is_file():
        return
    try:
        note = json.loads(noted.read_bytes())
        other = f"{note['repo']} at {note['commit']}"
    except (ValueError, KeyError, TypeError):
        other = "an unknown repository"
    if other != f"{repo} at {commit}":
        raise HubError(f"{out}: holds files of {other}; name another folder")


def _is_there(place: Path, size: int) -> bool:
    """Whether the whole file is there. The client trusts one by its note, so a damaged one is removed."""
    if not place.is_file():
        return False
    if place.stat().st_size != size:
        place.unlink()
        return False
    return True


@contextmanager
def _only_one(out: Path) -> Iterator[None]:
    """One fetch at a time in a folder: leftovers of a killed one are then no other's work."""
    (out / ".cache").mkdir(exist_ok=True)
    with (out / ".cache" / "fetch.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HubError(f"{out}: another fetch is writing there; wait for it") from None
        yield
