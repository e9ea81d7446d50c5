"""The private repository of records on the Hub: its files, its client, and when to call it again.

    records/0000/00000001-00000050.jsonl    the records 1 to 50, a canonical line each (`Event.line`)
    files/ab/<sha256>                       an uploaded file, as it came
    writer.json                             which server writes at present

A path follows from what it holds, so that the same batch sent twice is one file.
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
from typing import TYPE_CHECKING, Final

from tenacity import RetryCallState

from arb.core.hub import LONGEST_PAUSE, HubError, asked_pause, describe_failure, status_of
from dataset_script.sources.hub import Downloads
from submissions.privacy.server_secret import KnownSecret
from submissions.records.event_log import Event, EventLogBroken, parse_event

if TYPE_CHECKING:
    from huggingface_hub import HfApi

KIND: Final = "dataset"
WORKERS: Final = 8
_MOVED: Final = 412


class HeadMoved(HubError):
    """Somebody committed meanwhile: look at the head again."""


@dataclass(frozen=True)
class Head:
    """What the repository holds at a commit: files of records, and who writes there."""

    commit: str
    files: tuple[EventFile, ...] = ()
    writer: str | None = None
    secret: KnownSecret | None = None

    @property
    def last(self) -> int:
        """The sequence of the last record; 0 where there is none."""
        return self.files[-1].last if self.files else 0


class RecordsRepository:
    """A private dataset repository. Every method may take seconds and raises HubError.

    ``folder`` is for what is fetched: nobody else's, since the Hub's client hands out what lies there to any
    token. ``say`` gets a line for each pause.
    """

    def __init__(self, hub: HfApi, repo: str, folder: Path, say: Callable[[str], None]) -> None:
        self.hub, self.repo, self._folder, self._say = hub, repo, folder, say

    def head(self) -> Head:
        """What is there now; the repository is made where there is none. A public one is refused."""
        from huggingface_hub.errors import RepositoryNotFoundError

        with _hub_errors(self.repo):
            try:
                found = self.hub.repo_info(self.repo, repo_type=KIND)
            except RepositoryNotFoundError:
                self.hub.create_repo(self.repo, repo_type=KIND, private=True, exist_ok=True)
                found = self.hub.repo_info(self.repo, repo_type=KIND)
        if not found.private:
            raise HubError(f"{self.repo}: is public; records go into a private repository only")
        listed = self.sizes(RECORDS, found.sha)
        writer, secret = None, None
        if any(sibling.rfilename == WRITER for sibling in found.siblings or ()):
            # The client would give the copy on disk when the Hub does not answer.
            (self._folder / WRITER).unlink(missing_ok=True)
            writer, secret = read_writer(self.read({WRITER: 0}, found.sha)[WRITER].read_bytes())
        files = (event_file_of(path, size) for path, size in listed.items())
        return Head(found.sha, in_order(file for file in files if file is not None), writer, secret)

    def sizes(self, folder: str, commit: str) -> dict[str, int]:
        """Return the files of a folder at a commit with their sizes in bytes."""
        from huggingface_hub import RepoFile
        from huggingface_hub.errors import EntryNotFoundError

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
        """Files of a commit, fetched into the private folder; what lies there already is not fetched again.

        ``progress`` gets bytes done and in all; what it raises ends the fetching.
        """
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        fetching = Downloads(self.hub, self.repo, commit, self._folder, progress, self._say)
        failed = fetching.run(sizes, there=(), workers=WORKERS)
        for path, reason in failed.items():
            raise HubError(f"{self.repo}: {path}: {reason}")
        return {path: self._folder / path for path in sizes}

    def clear(self) -> None:
        """Remove what was fetched."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def commit(self, parent: str, contents: Mapping[str, bytes], message: str) -> str:
        """Commit files onto ``parent``; the new commit's name. Raises HeadMoved where it is not the head.

        After any other HubError the commit may have been made: look at the head.
        """
        from huggingface_hub import CommitOperationAdd

        operations = [CommitOperationAdd(path, content) for path, content in contents.items()]
        with _hub_errors(self.repo):
            made = self.hub.create_commit(
                self.repo, operations, commit_message=message, repo_type=KIND, parent_commit=parent
            )
        return made.oid


@contextlib.contextmanager
def _hub_errors(repo: str) -> Iterator[None]:
    """Raise what the client raises as HubError."""
    from huggingface_hub.errors import HTTPError

    try:
        yield
    except HTTPError as error:
        kind = HeadMoved if status_of(error) == _MOVED else HubError
        raise kind(f"{repo}: {describe_failure(error)}") from error
    except RuntimeError as error:  # the client wraps what went wrong with an upload
        if not isinstance(error.__cause__, HTTPError):
            raise
        raise HubError(f"{repo}: {describe_failure(error.__cause__)}") from error


MINUTE: Final = 60.0


def seconds_until_retry(state: RetryCallState) -> float:
    """Seconds until the next attempt: what the Hub asks for, else longer each time, up to a minute.

    A moved head is read again soon.
    """
    problem = state.outcome.exception()
    if isinstance(problem, HeadMoved):
        return random.uniform(0.05, 0.5)
    asked = asked_pause(problem.__cause__) if problem.__cause__ is not None else None
    grown = min(MINUTE, 0.5 * 2 ** min(state.attempt_number, 10))
    return min(asked, LONGEST_PAUSE) if asked else random.uniform(grown / 2, grown)


WRITER: Final = "writer.json"
RECORDS: Final = "records"
_FOLDER_OF: Final = 10_000
"""Records of one folder: the Hub wants no more files in a folder."""
_RECORDS_PATH: Final = re.compile(rf"{RECORDS}/\d{{4,}}/(\d{{8,}})-(\d{{8,}})\.jsonl")


@dataclass(frozen=True, order=True)
class EventFile:
    """The records of one file: the first and the last sequence; ``size`` of the file in bytes."""

    first: int
    last: int
    size: int = 0

    @property
    def path(self) -> str:
        folder = (self.first - 1) // _FOLDER_OF
        return f"{RECORDS}/{folder:04d}/{self.first:08d}-{self.last:08d}.jsonl"


class EventFilesDamaged(Exception):
    """The repository holds no unbroken log of records; the message says where."""


def event_file_of(path: str, size: int = 0) -> EventFile | None:
    """The records that a file of this path holds; None for another file."""
    found = _RECORDS_PATH.fullmatch(path)
    file = EventFile(int(found[1]), int(found[2]), size) if found else None
    return file if file is not None and file.path == path and file.first <= file.last else None


def in_order(files: Iterable[EventFile]) -> tuple[EventFile, ...]:
    """The files from record 1 on. Raises EventFilesDamaged where records are missing or there twice."""
    last, ordered = 0, tuple(sorted(files))
    for file in ordered:
        if file.first != last + 1:
            raise EventFilesDamaged(
                f"the file {file.path} follows record {last}: records are missing there, or there twice"
            )
        last = file.last
    return ordered


def file_path(sha256: str) -> str:
    return f"files/{sha256[:2]}/{sha256}"


def read_lines(content: bytes, file: EventFile) -> list[Event]:
    """Return the records of a file. Raises EventFilesDamaged if they are not those that its name says."""
    try:
        events = [parse_event(line) for line in content.splitlines()]
    except EventLogBroken as problem:
        raise EventFilesDamaged(f"{file.path}: {problem}") from None
    if [event.sequence for event in events] != list(range(file.first, file.last + 1)):
        raise EventFilesDamaged(f"{file.path}: it does not hold the records that its name says")
    return events


def writer_file(writer: str, known: KnownSecret | None = None) -> bytes:
    """Return the content of ``writer.json``: who writes, and what the records say of their first secret."""
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
