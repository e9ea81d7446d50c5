"""The Hub's client: calls tried again, failures in plain English, and "make a repository hold these files".

`huggingface_hub` retries listings and uploads, but not commits, `repo_info`, `create_repo` and `whoami`:
those go through `patiently`. No message repeats a token or an address that the Hub signed for an upload.

`HubRepository.put` makes one commit, or none where the repository holds the files already. A commit is made
on the head that was looked at (`parent_commit`): when the head moved, or an answer got lost, the repository
is read again and what is still missing is worked out anew, so the Hub may commit and then answer 500.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

if TYPE_CHECKING:
    from huggingface_hub import HfApi, RepoFile
    from tenacity import RetryCallState

    from arb.core.settings import Settings

PAUSES: Final = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds before each new try when the Hub names none."""

LONGEST_PAUSE: Final = 300.0
"""The Hub counts requests in windows of five minutes."""

_PASSING: Final = frozenset({408, 429, 500, 502, 503, 504})

Result = TypeVar("Result")


class HubError(Exception):
    """What was wanted of the Hub cannot be had; the message says why and what to do."""


def hub_of(settings: Settings) -> HfApi:
    """The Hub's client (its address is HF_ENDPOINT) with the token of the settings and no other."""
    from huggingface_hub import HfApi

    token = settings.hf_token.get_secret_value() if settings.hf_token else ""
    return HfApi(token=token or False, library_name="agent-reward-bench")


def patiently(
    call: Callable[[], Result],
    what: str,
    sleep: Callable[[float], None],
    say: Callable[[str], None],
    *,
    retries_all: bool = False,
    advice: str = "",
) -> Result:
    """What the call gives; tried again after failures that pass, or after every failure of the Hub.

    ``say`` gets a line for each pause. Raises HubError, whose message ends with the advice.
    """
    from huggingface_hub.errors import HTTPError
    from tenacity import Retrying, retry_if_exception, stop_after_attempt

    def wait(state: RetryCallState) -> float:  # called after the last attempt too
        pause = asked_pause(state.outcome.exception()) or (*PAUSES, 0.0)[state.attempt_number - 1]
        return min(pause, LONGEST_PAUSE)

    def announce(state: RetryCallState) -> None:
        failure = describe_failure(state.outcome.exception())
        say(f"{failure}; trying again in {state.next_action.sleep:.0f} s")

    retrying = Retrying(
        retry=retry_if_exception(
            lambda error: isinstance(error, HTTPError) and (retries_all or passes(error))
        ),
        stop=stop_after_attempt(len(PAUSES) + 1),
        wait=wait,
        before_sleep=announce,
        sleep=sleep,
        reraise=True,
    )
    try:
        return retrying(call)
    except HTTPError as error:
        raise HubError(f"{what}: {describe_failure(error)}{advice}") from error


def passes(error: BaseException) -> bool:
    """Whether trying again can help: too many requests, a fault of the server, a broken connection."""
    status = status_of(error)
    return status is None or status in _PASSING


def status_of(error: BaseException) -> int | None:
    """The status that the Hub answered; None when no answer came."""
    response = getattr(error, "response", None)
    return response.status_code if response is not None else None


def asked_pause(error: BaseException) -> float | None:
    """How many seconds the Hub asks to wait; None where it names none."""
    from huggingface_hub.utils import parse_ratelimit_headers

    response = getattr(error, "response", None)
    if response is None:
        return None
    after = response.headers.get("Retry-After", "")
    if after.isdigit():
        return float(after)
    limit = parse_ratelimit_headers(response.headers)
    return float(limit.reset_in_seconds) if limit is not None and limit.remaining == 0 else None


def describe_failure(error: BaseException) -> str:
    """A failure of the Hub in one line, with what to do."""
    status = status_of(error)
    if status is None:
        return f"the connection to the Hub broke off ({type(error).__name__})"
    advice = {
        400: "it does not accept the request",
        401: "set HF_TOKEN to a token that it knows",
        402: "the plan of its owner does not have this",
        403: "HF_TOKEN has no right to do this",
        404: "check the name and the revision, and that HF_TOKEN may read it",
        412: "the repository changed meanwhile",
        429: "too many requests",
    }
    return f"the Hub answered {status} ({advice.get(status, 'a fault of the server')})"


def is_repo_name(name: str) -> bool:
    """Whether the Hub takes it as a repository's name, with its owner."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return name.count("/") == 1


RELEASED_REPO: Final = "McGill-NLP/agent-reward-bench"
RELEASED_REVISION: Final = "b6d17e646009d6cb63d5dd7be78807b680693f61"

INDEX: Final = "index.parquet"
CROISSANT: Final = "croissant.json"
BESIDE_THE_DATA: Final = ("README.md", "eval.yaml", "manifest.json", INDEX, CROISSANT)
"""The files that a build writes outside data/. Datasets of older versions lack the index and croissant.json."""


class PublishError(ValueError):
    """Something that must not be published; the message lists every problem and says what to do."""


def published_files(folder: Path) -> dict[str, Path]:
    """The files to publish by their path in the repository: what the manifest lists, and what lies beside it.

    Raises PublishError for a folder that is no build, lacks a file or holds one that no build wrote: such a
    file may be anything, test labels too.
    """
    try:
        manifest = json.loads((folder / "manifest.json").read_bytes())
        listed = set(manifest["files"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PublishError(
            f"{folder}: has no manifest.json that can be read ({type(error).__name__}); "
            "build it with `python -m dataset_script build`"
        ) from error
    absent = {name for name in (INDEX, CROISSANT) if not (folder / name).is_file()}
    wanted = listed | set(BESIDE_THE_DATA).difference(absent)
    found = {
        path.relative_to(folder).as_posix(): path
        for path in folder.rglob("*")
        if path.is_file() or path.is_symlink()
    }
    problems = [f"{name}: is missing; build again" for name in sorted(wanted - found.keys())]
    problems += [f"{name}: no build wrote this; move it away" for name in sorted(found.keys() - wanted)]
    problems += [f"{name}: is a link; build again" for name in sorted(wanted) if (folder / name).is_symlink()]
    if problems:
        raise PublishError(f"{folder}: " + "; ".join(problems))
    return {name: found[name] for name in sorted(wanted)}


def is_ours(path: str) -> bool:
    """Return whether a path in a public repository belongs to a build. Other files there are kept."""
    return path in BESIDE_THE_DATA or path.startswith("data/")


def difference(
    files: Mapping[str, Path], there: Mapping[str, RepoFile], owned: Callable[[str], bool]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What to write and to remove, sorted, so that the repository holds the files and no other owned one."""
    write = [path for path, local in files.items() if path not in there or not _same(local, there[path])]
    remove = [path for path in there if owned(path) and path not in files]
    return tuple(sorted(write)), tuple(sorted(remove))


def _blob(files: Mapping[str, RepoFile], path: str) -> str | None:
    return files[path].blob_id if path in files else None


def _same(local: Path, remote: RepoFile) -> bool:
    """Whether the repository's file has the local one's bytes: by SHA-256 in LFS, by git's hash otherwise."""
    from huggingface_hub.utils.sha import git_hash

    if remote.size != local.stat().st_size:
        return False
    if remote.lfs is None:
        return git_hash(local.read_bytes()) == remote.blob_id
    with local.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == remote.lfs.sha256


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
        return bool(self.written or self.removed)


@dataclass(frozen=True)
class HubRepository:
    """A repository of a kind, and how to wait for the Hub; ``say`` gets a line for every pause.

    ``sha256s`` are the hashes that local files had when they were checked: others are not committed.
    """

    hub: HfApi
    repo: str
    repo_type: RepoType = "dataset"
    say: Callable[[str], None] = lambda _line: None
    sleep: Callable[[float], None] = time.sleep
    sha256s: Mapping[str, str] = field(default_factory=dict)

    def put(
        self, files: Mapping[str, Path], owned: Callable[[str], bool], verb: str = "Publish"
    ) -> Publication:
        """Write the files into the repository and remove owned ones not wanted any more, in one commit.

        ``files`` are local ones by their path in the repository. Raises PublishError where somebody else
        changed the same files meanwhile, HubError for what the Hub does not do.
        """
        before: dict[str, RepoFile] | None = None
        perhaps_made: tuple[tuple[str, ...], tuple[str, ...]] = (), ()

        def attempt() -> Publication:
            nonlocal before, perhaps_made
            from huggingface_hub.errors import HTTPError

            head, now = self.read()
            changes = write, remove = difference(files, now, owned)
            touched = (*write, *remove)
            if not touched:
                return Publication(self.repo, head, *perhaps_made)
            if before is not None and (names := [p for p in touched if _blob(before, p) != _blob(now, p)]):
                raise PublishError(
                    f"{self.repo}: somebody changed {', '.join(names[:5])} while this was published; "
                    "look at it and run again to replace it"
                )
            before = now
            try:
                commit = self._commit(head, {path: files[path] for path in write}, remove, verb)
            except HTTPError as error:
                if status_of(error) not in _NOT_MADE:
                    perhaps_made = changes
                raise
            return Publication(self.repo, commit, *changes)

        return patiently(
            attempt, self.repo, self.sleep, self.say, retries_all=True, advice="; run again later"
        )

    def read(self) -> tuple[str, dict[str, RepoFile]]:
        """The head and its files by path."""
        from huggingface_hub import RepoFile

        def read() -> tuple[str, dict[str, RepoFile]]:
            head = self.hub.repo_info(self.repo, repo_type=self.repo_type).sha
            listed = self.hub.list_repo_tree(
                self.repo, repo_type=self.repo_type, revision=head, recursive=True
            )
            return head, {file.path: file for file in listed if isinstance(file, RepoFile)}

        return self.patiently(read)

    def _commit(self, head: str, write: Mapping[str, Path], remove: tuple[str, ...], verb: str) -> str:
        """The new commit's name. Raises HTTPError where the repository is to be read again, else HubError."""
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete
        from huggingface_hub.errors import HTTPError

        operations = [
            *(CommitOperationAdd(path, local) for path, local in write.items()),
            *(CommitOperationDelete(path, is_folder=False) for path in remove),
        ]
        for one in operations:
            if isinstance(one, CommitOperationAdd):
                known = self.sha256s.get(one.path_in_repo)
                if known is not None and one.upload_info.sha256.hex() != known:
                    raise PublishError(f"{one.path_in_repo}: changed while it was published; run again")
        message = f"{verb}: {len(write)} files written, {len(remove)} removed"
        try:
            made = self.hub.create_commit(
                self.repo,
                operations,
                commit_message=message,
                repo_type=self.repo_type,
                parent_commit=head,
            )
        except HTTPError as error:
            if status_of(error) == 412 or passes(error):
                raise
            raise HubError(f"{self.repo}: {describe_failure(error)}") from error
        except RuntimeError as error:  # the client wraps what went wrong with an upload
            if isinstance(error.__cause__, HTTPError):
                raise error.__cause__ from None
            raise
        except ValueError as error:  # the card's YAML block, as the Hub reads it
            raise PublishError(f"{self.repo}: {error}") from error
        return made.oid

    def patiently(self, call: Callable[[], Any], what: str | None = None) -> Any:
        """What the call gives; tried again after failures that pass. Raises HubError."""
        return patiently(call, what or self.repo, self.sleep, self.say)


MAX_PER_HOUR: Final = 100
"""The Hub allows about 128 commits an hour for a repository."""
BURST: Final = 40
"""So many go at once after a quiet time; with the rate that follows an hour never has more than 100."""
HOUR: Final = 3600.0


class CommitRateLimiter:
    """At most ``most_an_hour`` commits in any 3600 seconds, the first ``burst`` of them without a pause.

    A bucket of ``burst`` that fills by one every 3600 / (most_an_hour - burst) seconds: an hour, wherever it
    begins, has at most burst + 3600 / that = most_an_hour. ``clock`` gives seconds. Not safe for threads.
    """

    def __init__(
        self,
        most_an_hour: int = MAX_PER_HOUR,
        burst: int = BURST,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not 0 < burst < most_an_hour:
            raise ValueError("a burst is a part of what an hour may have")
        self._seconds_each = HOUR / (most_an_hour - burst)
        self._slack = (burst - 1) * self._seconds_each
        self._clock = clock
        self._full_again_at = float("-inf")

    def seconds_to_wait(self) -> float:
        """How long until the next commit may be made; 0 for at once."""
        return max(0.0, self._full_again_at - self._slack - self._clock())

    def note(self) -> None:
        """Count a commit made now."""
        self._full_again_at = max(self._clock(), self._full_again_at) + self._seconds_each
