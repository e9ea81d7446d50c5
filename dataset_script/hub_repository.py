"""One repository on the Hub, brought to hold given files in one commit, or in none when it holds them.

A commit is made on the head that was looked at (`parent_commit`): when the head moved, or an answer got lost,
the repository is read again and what is still missing is worked out anew, so the Hub may commit and then
answer 500.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from dataset_script.hub_calls import (
    PAUSES,
    HubError,
    in_words,
    next_attempt,
    passes,
    patiently,
    pause_after,
    status_of,
)
from dataset_script.published_files import PublishError, changed_by_others, difference

if TYPE_CHECKING:
    from huggingface_hub import HfApi, RepoFile

RepoType = Literal["dataset", "space"]

_NOT_MADE: Final = (412, 429)
"""Answers after which the commit was surely not made."""


@dataclass(frozen=True, slots=True)
class Publication:
    """What one repository holds now. Without changes no commit was made, and ``commit`` is the head."""

    repo: str
    commit: str
    written: tuple[str, ...]
    removed: tuple[str, ...]

    @property
    def committed(self) -> bool:
        """Whether this run made a commit."""
        return bool(self.written or self.removed)


@dataclass(frozen=True)
class HubRepository:
    """A repository of a kind, and how to wait for the Hub; ``say`` gets a line for every pause."""

    hub: HfApi
    repo: str
    repo_type: RepoType = "dataset"
    say: Callable[[str], None] = lambda _line: None
    sleep: Callable[[float], None] = time.sleep

    def put(
        self, files: Mapping[str, Path], owned: Callable[[str], bool], verb: str = "Publish"
    ) -> Publication:
        """Bring the files into the repository and remove owned ones not wanted any more, in one commit.

        ``files`` are local ones by their path in the repository. Raises PublishError where somebody else
        changed the same files meanwhile, HubError for what the Hub does not do.
        """
        written: tuple[str, ...] = ()
        removed: tuple[str, ...] = ()
        seen: dict[str, RepoFile] | None = None
        for pause in (*PAUSES, None):
            head, there = self._read()
            changes = difference(files, there, owned)
            if not (changes.write or changes.remove):
                return Publication(self.repo, head, written, removed)
            if seen is not None and (names := changed_by_others(seen, there, changes)):
                raise PublishError(
                    f"{self.repo}: somebody changed {', '.join(names[:5])} while this was published; "
                    "look at it and run again to replace it"
                )
            try:
                commit = self._commit(head, files, changes.write, changes.remove, verb)
                return Publication(self.repo, commit, changes.write, changes.remove)
            except _Passing as passing:
                if pause is None:
                    raise HubError(
                        f"{self.repo}: {in_words(passing.error)}; run again later"
                    ) from passing.error
                seconds = pause_after(passing.error, pause)
                self.say(next_attempt(passing.error, seconds))
                self.sleep(seconds)
                seen = there
                if status_of(passing.error) not in _NOT_MADE:
                    written, removed = changes.write, changes.remove
        raise AssertionError("the last try returns or raises")

    def _read(self) -> tuple[str, dict[str, RepoFile]]:
        """The head and its files by path."""
        from huggingface_hub import RepoFile

        def read() -> tuple[str, dict[str, RepoFile]]:
            head = self.hub.repo_info(self.repo, repo_type=self.repo_type).sha
            listed = self.hub.list_repo_tree(
                self.repo, repo_type=self.repo_type, revision=head, recursive=True
            )
            return head, {file.path: file for file in listed if isinstance(file, RepoFile)}

        return self.patiently(read)

    def _commit(
        self, head: str, files: Mapping[str, Path], write: tuple[str, ...], remove: tuple[str, ...], verb: str
    ) -> str:
        """The new commit's name. Raises _Passing when the repository has to be read again, else HubError."""
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete
        from huggingface_hub.errors import HTTPError

        operations = [
            *(CommitOperationAdd(path, files[path]) for path in write),
            *(CommitOperationDelete(path, is_folder=False) for path in remove),
        ]
        message = f"{verb}: {len(write)} files written, {len(remove)} removed"
        try:
            made = self.hub.create_commit(
                self.repo, operations, commit_message=message, repo_type=self.repo_type, parent_commit=head
            )
        except HTTPError as error:
            if status_of(error) == 412 or passes(error):
                raise _Passing(error) from error
            raise HubError(f"{self.repo}: {in_words(error)}") from error
        except RuntimeError as error:  # the client wraps what went wrong with an upload
            cause = error.__cause__
            if isinstance(cause, HTTPError):
                raise _Passing(cause) from error
            raise
        except ValueError as error:  # the card's YAML block, as the Hub reads it
            raise PublishError(f"{self.repo}: {error}") from error
        return made.oid

    def patiently(self, call: Callable[[], Any], what: str | None = None) -> Any:
        """What the call gives; tried again after failures that pass. Raises HubError."""
        return patiently(call, what or self.repo, self.sleep, self.say)


class _Passing(Exception):
    """A commit that was perhaps not made; the repository tells."""

    def __init__(self, error: BaseException):
        super().__init__(str(error))
        self.error = error


def is_repo_name(name: str) -> bool:
    """Whether the Hub takes it as a repository's name, with its owner."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return name.count("/") == 1
