"""The private repository of records on the Hub: its files, its client, and its retries.

    records/0000/00000001-00000050.jsonl    the records 1 to 50, one canonical line each (`Event.line`)
    files/ab/<sha256>                       an uploaded file, byte for byte
    writer.json                             the server that writes the records now

A path depends only on the content, so a batch that is sent twice becomes one file. A further suite of a
Space has the same files in its own folder, ``suites/NAME/``.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from huggingface_hub import CommitOperationAdd, HfApi, RepoFile
from huggingface_hub.errors import EntryNotFoundError, HTTPError, RepositoryNotFoundError  # type: ignore[attr-defined]  # HTTPError is not in an __all__

from arb.core.hub import LONGEST_PAUSE, HubError, asked_pause, describe_failure, status_of
from dataset_script.sources.hub import Downloads
from submissions.privacy.server_secret import KnownSecret
from submissions.records.database import Event
from submissions.records.event_log import EventLogBroken, parse_event

KIND: Final = "dataset"
WORKERS: Final = 8
MINUTE: Final = 60.0
WRITER: Final = "writer.json"
RECORDS: Final = "records"
_MOVED: Final = 412
_FOLDER_OF: Final = 10_000
"""The number of records per folder. The Hub recommends at most 10,000 files in a folder."""
_RECORDS_PATH: Final = re.compile(rf"{RECORDS}/\d{{4,}}/(\d{{8,}})-(\d{{8,}})\.jsonl")


class HeadMoved(HubError):
    """Raised when another commit has been made since the head was read, so it has to be read again."""


class EventFilesDamaged(Exception):
    """Raised when the log of records in the repository is incomplete or damaged; the message says where."""


@dataclass(frozen=True, order=True)
class EventFile:
    """A file with the records numbered ``first`` to ``last``; ``size`` is in bytes."""

    first: int
    last: int
    size: int = 0

    @property
    def path(self) -> str:
        folder = (self.first - 1) // _FOLDER_OF
        return f"{RECORDS}/{folder:04d}/{self.first:08d}-{self.last:08d}.jsonl"


@dataclass(frozen=True)
class Head:
    """The repository at a commit: its record files, the current writer, and the first known secret."""

    commit: str
    files: tuple[EventFile, ...] = ()
    writer: str | None = None
    secret: KnownSecret | None = None

    @property
    def last(self) -> int:
        return self.files[-1].last if self.files else 0


class RecordsRepository:
    """A client for the private dataset repository. Its methods can take seconds and raise HubError.

    Fetched files go to ``folder``. Do not share this folder: the Hub's client returns files from it without
    checking the token. ``say`` is called with a line of text whenever the client waits before a retry.
    ``inside`` is the folder of the repository that holds the files, such as ``suites/NAME/``; paths in
    arguments and results leave it out.
    """

    def __init__(
        self, hub: HfApi, repo: str, folder: Path, say: Callable[[str], None], inside: str = ""
    ) -> None:
        self.hub, self.repo, self._folder, self._say, self._inside = hub, repo, folder, say, inside

    def head(self) -> Head:
        """Return the head; create the repository if it is missing. Raises HubError if it is public."""
        with _hub_errors(self.repo):
            try:
                found = self.hub.dataset_info(self.repo)
            except RepositoryNotFoundError:
                self.hub.create_repo(self.repo, repo_type=KIND, private=True, exist_ok=True)
                found = self.hub.dataset_info(self.repo)
        if not found.private:
            raise HubError(f"{self.repo} is public; make it private, because records are confidential")
        if found.sha is None:
            raise HubError(f"{self.repo}: the Hub did not report its last commit")
        listed = self.sizes(RECORDS, found.sha)
        writer, secret = None, None
        path = self._inside + WRITER
        if any(sibling.rfilename == path for sibling in found.siblings or ()):
            # Without this, the client would return the copy on disk if the Hub does not answer.
            (self._folder / path).unlink(missing_ok=True)
            writer, secret = read_writer(self.read({WRITER: 0}, found.sha)[WRITER].read_bytes())
        files = (event_file_of(path, size) for path, size in listed.items())
        return Head(found.sha, in_order(file for file in files if file is not None), writer, secret)

    def sizes(self, folder: str, commit: str) -> dict[str, int]:
        """Return the sizes in bytes of a folder's files at a commit, keyed by path; {} if it is missing."""
        with _hub_errors(self.repo):
            listed = self.hub.list_repo_tree(
                self.repo, self._inside + folder, repo_type=KIND, revision=commit, recursive=True
            )
            try:
                files = [file for file in listed if isinstance(file, RepoFile)]
            except EntryNotFoundError:
                return {}
        return {file.path.removeprefix(self._inside): file.size for file in files}

    def read(
        self, sizes: Mapping[str, int], commit: str,
        progress: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> dict[str, Path]:  # fmt: skip
        """Fetch the files named in ``sizes`` at a commit unless they are on disk; return their local paths.

        ``progress`` is called with the bytes done and the total; an exception from it ends the download.
        """
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        fetching = Downloads(self.hub, self.repo, commit, self._folder, progress, self._say)
        wanted = {self._inside + path: size for path, size in sizes.items()}
        failed = fetching.run(wanted, there=(), workers=WORKERS)
        for path, reason in failed.items():
            raise HubError(f"{self.repo}: {path}: {reason}")
        return {path: self._folder / self._inside / path for path in sizes}

    def clear(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def commit(self, parent: str, contents: Mapping[str, bytes], message: str) -> str:
        """Commit files on top of ``parent`` and return the id of the new commit.

        Raises HeadMoved if ``parent`` is not the head. After any other HubError the commit may have been
        made; read the head to find out.
        """
        operations = [CommitOperationAdd(self._inside + path, content) for path, content in contents.items()]
        with _hub_errors(self.repo):
            made = self.hub.create_commit(
                self.repo, operations, commit_message=message, repo_type=KIND, parent_commit=parent
            )
        return made.oid


@contextlib.contextmanager
def _hub_errors(repo: str) -> Iterator[None]:
    """Raise the client's errors as HubError."""
    try:
        yield
    except HTTPError as error:
        kind = HeadMoved if status_of(error) == _MOVED else HubError
        raise kind(f"{repo}: {describe_failure(error)}") from error
    except RuntimeError as error:  # the client wraps errors of uploads
        if not isinstance(error.__cause__, HTTPError):
            raise
        raise HubError(f"{repo}: {describe_failure(error.__cause__)}") from error


def seconds_until_retry(problem: BaseException, attempt: int) -> float:
    """Return how many seconds to wait before the next attempt: as the Hub asks, otherwise up to a minute.

    The pause grows with ``attempt``, which counts from 1. After HeadMoved it is at most half a second.
    """
    if isinstance(problem, HeadMoved):
        return random.uniform(0.05, 0.5)
    asked = asked_pause(problem.__cause__) if problem.__cause__ is not None else None
    if asked:
        return min(asked, LONGEST_PAUSE)
    grown = min(MINUTE, 0.5 * 2 ** min(attempt, 10))
    return random.uniform(grown / 2, grown)


def event_file_of(path: str, size: int = 0) -> EventFile | None:
    """Return the record file with this path, or None if it is not the path of a record file."""
    found = _RECORDS_PATH.fullmatch(path)
    file = EventFile(int(found[1]), int(found[2]), size) if found else None
    return file if file is not None and file.path == path and file.first <= file.last else None


def in_order(files: Iterable[EventFile]) -> tuple[EventFile, ...]:
    """Return the files sorted by first record. Raises EventFilesDamaged for missing or duplicated records."""
    last, ordered = 0, tuple(sorted(files))
    for file in ordered:
        if file.first != last + 1:
            raise EventFilesDamaged(f"{file.path} follows record {last}: records are missing or duplicated")
        last = file.last
    return ordered


def file_path(sha256: str) -> str:
    return f"files/{sha256[:2]}/{sha256}"


def read_lines(content: bytes, file: EventFile) -> list[Event]:
    """Return the records in a file's content. Raises EventFilesDamaged if the file's name does not match."""
    try:
        events = [parse_event(line) for line in content.splitlines()]
    except EventLogBroken as problem:
        raise EventFilesDamaged(f"{file.path}: {problem}") from None
    if [event.sequence for event in events] != list(range(file.first, file.last + 1)):
        raise EventFilesDamaged(f"{file.path}: its name does not match its records")
    return events


def writer_file(writer: str, known: KnownSecret | None = None) -> bytes:
    """Return the content of ``writer.json``: the writer's name, and the check value of the first secret."""
    secret = {} if known is None else {"secret": known.check_value, "derivation": known.derivation}
    return json.dumps({"writer": writer, **secret}).encode() + b"\n"


def read_writer(content: bytes) -> tuple[str | None, KnownSecret | None]:
    """Return the writer and the secret in ``writer.json``, each None if it is absent or invalid."""
    try:
        fields = json.loads(content)
        # Versions up to commit 7d56a80 wrote no derivation, since there was only the first.
        secret, derivation = fields.get("secret"), int(fields.get("derivation", 1))
        return str(fields["writer"]), KnownSecret(secret, derivation) if isinstance(secret, str) else None
    except (ValueError, TypeError, KeyError, AttributeError):
        return None, None
