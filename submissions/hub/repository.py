"""The private repository of records on the Hub: its files, its client, and its retries.

    records/0000/00000001-00000050.jsonl    the records 1 to 50, one canonical line each (`Event.line`)
    files/ab/<sha256>                       an uploaded file, byte for byte
    writer.json                             the server that writes at present

A path follows from the content, so that the same batch sent twice is one file.
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

from httpx2 import HTTPError
from huggingface_hub import CommitOperationAdd, HfApi, RepoFile
from huggingface_hub.errors import EntryNotFoundError, RepositoryNotFoundError

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
"""Records per folder; the Hub recommends no more files in a folder."""
_RECORDS_PATH: Final = re.compile(rf"{RECORDS}/\d{{4,}}/(\d{{8,}})-(\d{{8,}})\.jsonl")


class HeadMoved(HubError):
    """Raised when somebody committed meanwhile, so that the head has to be read again."""


class EventFilesDamaged(Exception):
    """Raised when the repository holds no unbroken log of records; the message says where it is broken."""


@dataclass(frozen=True, order=True)
class EventFile:
    """A file of records from sequence ``first`` to ``last``; ``size`` in bytes."""

    first: int
    last: int
    size: int = 0

    @property
    def path(self) -> str:
        folder = (self.first - 1) // _FOLDER_OF
        return f"{RECORDS}/{folder:04d}/{self.first:08d}-{self.last:08d}.jsonl"


@dataclass(frozen=True)
class Head:
    """The repository at a commit: its files of records, who writes there, and the secret of the records."""

    commit: str
    files: tuple[EventFile, ...] = ()
    writer: str | None = None
    secret: KnownSecret | None = None

    @property
    def last(self) -> int:
        return self.files[-1].last if self.files else 0


class RecordsRepository:
    """A private dataset repository. Its methods can take seconds and raise HubError.

    ``folder`` is for fetched files. Nobody else may use it, since the Hub's client returns its files for any
    token. ``say`` gets a line for each pause.
    """

    def __init__(self, hub: HfApi, repo: str, folder: Path, say: Callable[[str], None]) -> None:
        self.hub, self.repo, self._folder, self._say = hub, repo, folder, say

    def head(self) -> Head:
        """Read the head; the repository is created if it does not exist, and a public one is refused."""
        with _hub_errors(self.repo):
            try:
                found = self.hub.dataset_info(self.repo)
            except RepositoryNotFoundError:
                self.hub.create_repo(self.repo, repo_type=KIND, private=True, exist_ok=True)
                found = self.hub.dataset_info(self.repo)
        if not found.private:
            raise HubError(f"{self.repo} is public; records go into a private repository only")
        if found.sha is None:
            raise HubError(f"{self.repo}: the Hub did not name its last commit")
        listed = self.sizes(RECORDS, found.sha)
        writer, secret = None, None
        if any(sibling.rfilename == WRITER for sibling in found.siblings or ()):
            # Without this, the client would return the copy on disk if the Hub does not answer.
            (self._folder / WRITER).unlink(missing_ok=True)
            writer, secret = read_writer(self.read({WRITER: 0}, found.sha)[WRITER].read_bytes())
        files = (event_file_of(path, size) for path, size in listed.items())
        return Head(found.sha, in_order(file for file in files if file is not None), writer, secret)

    def sizes(self, folder: str, commit: str) -> dict[str, int]:
        """Return the files of a folder at a commit with their sizes in bytes."""
        with _hub_errors(self.repo):
            listed = self.hub.list_repo_tree(
                self.repo, folder, repo_type=KIND, revision=commit, recursive=True
            )
            try:
                return {file.path: file.size for file in listed if isinstance(file, RepoFile)}
            except EntryNotFoundError:
                return {}

    def read(
        self,
        sizes: Mapping[str, int],
        commit: str,
        progress: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> dict[str, Path]:
        """Fetch files of a commit into the private folder, unless they are there, and return their paths.

        ``progress`` gets the bytes done and the total; an exception that it raises ends the fetching.
        """
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        fetching = Downloads(self.hub, self.repo, commit, self._folder, progress, self._say)
        failed = fetching.run(sizes, there=(), workers=WORKERS)
        for path, reason in failed.items():
            raise HubError(f"{self.repo}: {path}: {reason}")
        return {path: self._folder / path for path in sizes}

    def clear(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def commit(self, parent: str, contents: Mapping[str, bytes], message: str) -> str:
        """Commit files onto ``parent`` and return the new commit.

        Raises HeadMoved if ``parent`` is not the head. After any other HubError the commit may have been
        made; the head tells.
        """
        operations = [CommitOperationAdd(path, content) for path, content in contents.items()]
        with _hub_errors(self.repo):
            made = self.hub.create_commit(
                self.repo, operations, commit_message=message, repo_type=KIND, parent_commit=parent
            )
        return made.oid


@contextlib.contextmanager
def _hub_errors(repo: str) -> Iterator[None]:
    """Turn the errors of the client into HubError."""
    try:
        yield
    except HTTPError as error:
        kind = HeadMoved if status_of(error) == _MOVED else HubError
        raise kind(f"{repo}: {describe_failure(error)}") from error
    except RuntimeError as error:  # the client wraps what went wrong with an upload
        if not isinstance(error.__cause__, HTTPError):
            raise
        raise HubError(f"{repo}: {describe_failure(error.__cause__)}") from error


def seconds_until_retry(problem: BaseException, attempt: int) -> float:
    """Return the seconds before the next attempt: those that the Hub asks for, else up to a minute.

    ``attempt`` counts from 1; pauses grow with it. A moved head is read again soon.
    """
    if isinstance(problem, HeadMoved):
        return random.uniform(0.05, 0.5)
    asked = asked_pause(problem.__cause__) if problem.__cause__ is not None else None
    if asked:
        return min(asked, LONGEST_PAUSE)
    grown = min(MINUTE, 0.5 * 2 ** min(attempt, 10))
    return random.uniform(grown / 2, grown)


def event_file_of(path: str, size: int = 0) -> EventFile | None:
    """Return the file of records with this path, or None if the path is of another kind."""
    found = _RECORDS_PATH.fullmatch(path)
    file = EventFile(int(found[1]), int(found[2]), size) if found else None
    return file if file is not None and file.path == path and file.first <= file.last else None


def in_order(files: Iterable[EventFile]) -> tuple[EventFile, ...]:
    """Sort the files by record. Raises EventFilesDamaged if records are missing or duplicated."""
    last, ordered = 0, tuple(sorted(files))
    for file in ordered:
        if file.first != last + 1:
            raise EventFilesDamaged(f"{file.path} follows record {last}: records are missing or duplicated")
        last = file.last
    return ordered


def file_path(sha256: str) -> str:
    return f"files/{sha256[:2]}/{sha256}"


def read_lines(content: bytes, file: EventFile) -> list[Event]:
    """Return the records of a file. Raises EventFilesDamaged if its name does not match them."""
    try:
        events = [parse_event(line) for line in content.splitlines()]
    except EventLogBroken as problem:
        raise EventFilesDamaged(f"{file.path}: {problem}") from None
    if [event.sequence for event in events] != list(range(file.first, file.last + 1)):
        raise EventFilesDamaged(f"{file.path}: its name does not match its records")
    return events


def writer_file(writer: str, known: KnownSecret | None = None) -> bytes:
    """Return the content of ``writer.json``: the writer, and the first secret of the records."""
    secret = {} if known is None else {"secret": known.check_value, "derivation": known.derivation}
    return json.dumps({"writer": writer, **secret}).encode() + b"\n"


def read_writer(content: bytes) -> tuple[str | None, KnownSecret | None]:
    """Return the two values of `writer_file`; 7d56a80 named no derivation, since it had only the first."""
    try:
        fields = json.loads(content)
        secret, derivation = fields.get("secret"), int(fields.get("derivation", 1))
        return str(fields["writer"]), KnownSecret(secret, derivation) if isinstance(secret, str) else None
    except (ValueError, TypeError, KeyError, AttributeError):
        return None, None
