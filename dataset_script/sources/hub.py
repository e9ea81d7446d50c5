"""Download the released layout, or some of its parts, benchmarks and agents, at one commit from the Hub.

`build` can then use the folder as a source. Files that are already there are not fetched again, so the same
command resumes a stopped download. The list of files is stored with them, so a second run does not request
it. `huggingface_hub` fetches each file. Unlike its `snapshot_download`, `fetch` reports each file that
failed, ends if many fail in a row, and stops immediately when it is interrupted.
"""

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
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Final

from huggingface_hub import HfApi, get_cached_repo_tree
from huggingface_hub.errors import (  # type: ignore[attr-defined]  # HTTPError is not in an __all__
    CachedRepoTreeNotFoundError,
    HTTPError,
    LocalEntryNotFoundError,
)
from huggingface_hub.utils.tqdm import disable_progress_bars

from arb.core.files import atomic_write, errors_name
from arb.core.hub import RELEASED_REPO, RELEASED_REVISION, HubError, describe_failure, is_repo_name, patiently

FAILURES_IN_A_ROW: Final = 16
"""A download ends when this many files fail one after another."""

_WORKERS: Final = 8
"""The number of files to fetch at a time."""


@dataclass(frozen=True)
class Downloads:
    """A download of one commit's files. ``progress`` is called with the bytes so far and in total."""

    hub: HfApi
    repo: str
    commit: str
    out: Path
    progress: Callable[[int, int], None]
    say: Callable[[str], None]
    sleep: Callable[[float], None] = time.sleep

    def run(self, sizes: Mapping[str, int], there: Collection[str], workers: int) -> dict[str, str]:
        """Fetch the files in ``sizes`` that are not in ``there``. Return why files failed, keyed by path.

        Raises HubError if too many files fail in a row, or if ``progress`` raises an exception.
        """
        disable_progress_bars()  # a single bar is shown for all files
        self._clear_leftovers()
        total, done = sum(sizes.values()), sum(sizes[path] for path in there)
        self.progress(done, total)
        wanted = [path for path in sizes if path not in there]
        failed: dict[str, str] = {}
        in_a_row = 0
        # The threads of this pool are daemons. Those of `concurrent.futures` and of `snapshot_download`
        # would keep an interrupted process alive while they wait for the network.
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
                    raise HubError(
                        f"{in_a_row} files in a row could not be fetched; the last is {path}: {problem}"
                    )
        except Exception as error:
            raise HubError(f"{error}; run the same command again to resume") from error
        finally:
            pool.terminate()
            self._clear_leftovers()
        return failed

    def _fetch(self, path: str) -> tuple[str, str | None]:
        """Fetch a file. Return its path and why it failed, or None. Raises OSError if the disk is full."""

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
                raise HubError("the download is shorter or longer than it should be") from error

        try:
            with errors_name(self.out / path):
                patiently(get, path, self.sleep, self.say)
        except HubError as error:
            return path, str(error).removeprefix(f"{path}: ")
        except OSError as error:
            if error.errno not in (errno.ENAMETOOLONG, errno.EINVAL):
                raise
            return path, f"this disk does not allow a file of this name ({error.strerror})"
        return path, None

    def _clear_leftovers(self) -> None:
        """Remove partial files that a killed process left; the client never resumes one."""
        for path in (self.out / ".cache" / "huggingface" / "download").rglob("*.incomplete"):
            path.unlink(missing_ok=True)


PARTS: Final = ("cleaned", "screenshots", "judgments")

_CARD: Final = "README.md"
_FETCHED: Final = "fetched.json"


@dataclass(frozen=True, slots=True)
class Selection:
    """The parts, benchmarks and agents to fetch; an empty field selects all."""

    parts: tuple[str, ...] = ()
    benchmarks: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of `fetch`: how many files the folder has and how many are new, and why others failed."""

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
) -> Fetched:
    """Fetch the selection into ``out``. A single file that fails does not end the download.

    An interrupted download leaves complete files only. Raises HubError if the Hub cannot be reached or has no
    such part, benchmark or agent, or the disk is too small.
    """
    if not is_repo_name(repo):
        raise HubError(f"{repo!r} is not the name of a repository; write OWNER/NAME")
    commit = revision
    if not re.fullmatch(r"[0-9a-f]{40}", revision) or _listed(repo, revision, out) is None:
        info = partial(hub.dataset_info, repo, revision=revision)
        commit = patiently(info, f"{repo} at {revision}", sleep, say).sha or revision
    _check_folder(out, repo, commit)
    out.mkdir(parents=True, exist_ok=True)
    with _only_one(out):
        say(f"{repo} at {commit}: reading the list of files")
        files = _files(hub, repo, commit, out)
        chosen = choose(files, selection) | {path: files[path] for path in (_CARD,) if path in files}
        atomic_write(out / _FETCHED, json.dumps({"repo": repo, "commit": commit}, indent=2) + "\n")
        there = {path for path, size in chosen.items() if _is_there(out / path, size)}
        needed = sum(size for path, size in chosen.items() if path not in there)
        free = shutil.disk_usage(out).free
        if needed > free:
            raise HubError(
                f"{out}: the files take {needed / 1e9:.1f} GB, but only {free / 1e9:.1f} GB are free"
            )
        downloads = Downloads(hub, repo, commit, out, progress, say, sleep)
        failed = downloads.run(chosen, there, _WORKERS)
    got = {path: size for path, size in chosen.items() if path not in failed}
    return Fetched(commit, len(got), sum(got.values()), len(got.keys() - there), failed)


def choose(files: Mapping[str, int], selection: Selection) -> dict[str, int]:
    """Return the sizes of a repository's selected files, keyed by path.

    Raises HubError with a message that lists every unknown part, benchmark and agent, and the known ones.
    """
    named = {"part": selection.parts, "benchmark": selection.benchmarks, "agent": selection.agents}
    folders_of = {path: path.split("/") for path in files}
    released = {path: names for path, names in folders_of.items() if names[0] in PARTS and len(names) > 3}
    problems = []
    for depth, (what, names) in enumerate(named.items()):
        there = {folders[depth] for folders in released.values()}
        there_are = ", ".join(sorted(there))
        problems += [f"there is no {what} {n!r}; use one of {there_are}" for n in names if n not in there]
    if not released:
        problems = [f"the repository has none of {', '.join(PARTS)}, so it is not in the released layout"]
    wanted = {
        path: files[path]
        for path, folders in sorted(released.items())
        if all(not names or folders[depth] in names for depth, names in enumerate(named.values()))
    }
    if not wanted and not problems:
        problems = ["the repository has no runs of this agent on this benchmark; select others"]
    if problems:
        raise HubError("; ".join(problems))
    return wanted


def _files(hub: HfApi, repo: str, commit: str, out: Path) -> dict[str, int]:
    """Return the commit's file sizes, keyed by path. The client stores this list and the card in ``out``."""
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
        raise HubError(f"{repo} at {commit}: the list of files cannot be fetched now; try again")
    return listed


def _listed(repo: str, commit: str, out: Path) -> dict[str, int] | None:
    """Return file sizes, keyed by path, from the list that the client stored in ``out``, or None."""
    try:
        files = get_cached_repo_tree(repo, repo_type="dataset", revision=commit, local_dir=out)
    except CachedRepoTreeNotFoundError:
        return None
    return {file.path: file.size for file in files}


def _check_folder(out: Path, repo: str, commit: str) -> None:
    """Raise HubError if the folder has files of another commit, since a build must not mix commits."""
    if out.exists() and not out.is_dir():
        raise HubError(f"{out} is a file; name a folder")
    noted = out / _FETCHED
    if not noted.is_file():
        return
    try:
        note = json.loads(noted.read_bytes())
        other = f"{note['repo']} at {note['commit']}"
    except (ValueError, KeyError, TypeError):
        other = "an unknown repository"
    if other != f"{repo} at {commit}":
        raise HubError(f"{out} contains files of {other}; name another folder")


def _is_there(place: Path, size: int) -> bool:
    """Return whether the complete file is there. Remove a file of another size; the client would keep it."""
    if not place.is_file():
        return False
    if place.stat().st_size != size:
        place.unlink()
        return False
    return True


@contextmanager
def _only_one(out: Path) -> Iterator[None]:
    """Lock a folder against other downloads, since a download removes partial files of earlier ones."""
    (out / ".cache").mkdir(exist_ok=True)
    with (out / ".cache" / "fetch.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HubError(f"{out}: another fetch is writing to it; wait until it ends") from None
        yield
