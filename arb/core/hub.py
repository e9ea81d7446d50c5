"""The Hub's client: retries, failures in plain English, and publishing files with one commit.

`huggingface_hub` retries listings and uploads, but not commits, `repo_info`, `create_repo` and `whoami`, so
these calls go through `patiently`. No message repeats a token or a signed address of an upload.

`HubRepository.put` makes one commit, or none if the repository has the files already. The commit names the
head that was read (``parent_commit``). If the head moved or an answer got lost, the repository is read again
and the difference computed again, so it does not matter if the Hub commits and then answers 500.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from arb.core.lazy import lazy_imports

with lazy_imports():
    import huggingface_hub

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, RepoFile

    from arb.core.settings import Settings

PAUSES: Final = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds before each retry if the Hub names none."""

LONGEST_PAUSE: Final = 300.0
"""Longest pause in seconds: the Hub counts requests in windows of five minutes."""

_PASSING: Final = frozenset({408, 429, 500, 502, 503, 504})

Result = TypeVar("Result")
RepoType = Literal["dataset", "space"]
Changes = tuple[tuple[str, ...], tuple[str, ...]]
"""The paths to write and to remove."""


class HubError(Exception):
    """Raised when a request to the Hub failed; the message says why and what to do."""


def hub_of(settings: Settings) -> HfApi:
    """Return the Hub's client (its address is HF_ENDPOINT) with the token of the settings and no other."""
    token = settings.hf_token.get_secret_value() if settings.hf_token else ""
    return huggingface_hub.HfApi(token=token or False, library_name="agent-reward-bench")


def patiently(
    call: Callable[[], Result],
    what: str,
    sleep: Callable[[float], None],
    say: Callable[[str], None],
    *,
    retries_all: bool = False,
    advice: str = "",
) -> Result:
    """Return the result of a call to the Hub, with retries after temporary failures.

    Args:
        call: The function to call.
        what: The beginning of the error message, such as the repository's name.
        sleep: Waits for some seconds.
        say: Prints a line before each pause.
        retries_all: Whether to retry after other failures of the Hub too.
        advice: The end of the error message.

    Raises:
        HubError: The call failed and is not retried, or its last retry failed.
    """
    pauses = iter(PAUSES)
    while True:
        try:
            return call()
        except http_error_class() as error:
            pause = next(pauses, None)
            if pause is None or not (retries_all or passes(error)):
                raise HubError(f"{what}: {describe_failure(error)}{advice}") from error
            pause = min(asked_pause(error) or pause, LONGEST_PAUSE)
            say(f"{describe_failure(error)}; trying again in {pause:.0f} s")
            sleep(pause)


def http_error_class() -> type[Exception]:
    """Return the class of failed requests to the Hub; its client chooses the version of httpx."""
    from huggingface_hub import errors  # noqa: PLC0415 - slow to load

    return errors.HTTPError  # type: ignore[attr-defined]  # exported, though not by name


def passes(error: BaseException) -> bool:
    """Return whether a retry can help: too many requests, a fault of the server, a broken connection."""
    status = status_of(error)
    return status is None or status in _PASSING


def status_of(error: BaseException) -> int | None:
    """Return the status of the Hub's answer, or None if there was no answer."""
    response = getattr(error, "response", None)
    return response.status_code if response is not None else None


def asked_pause(error: BaseException) -> float | None:
    """Return the seconds that the Hub asks to wait, or None if it names none."""
    from huggingface_hub import utils  # noqa: PLC0415 - slow to load

    response = getattr(error, "response", None)
    if response is None:
        return None
    after = response.headers.get("Retry-After", "")
    if after.isdigit():
        return float(after)
    limit = utils.parse_ratelimit_headers(response.headers)  # type: ignore[attr-defined]  # exported
    return float(limit.reset_in_seconds) if limit is not None and limit.remaining == 0 else None


def describe_failure(error: BaseException) -> str:
    """Describe a failure of the Hub in one line, with advice."""
    status = status_of(error)
    if status is None:
        return f"the connection to the Hub was lost ({type(error).__name__})"
    advice = {
        400: "the Hub does not accept the request",
        401: "set HF_TOKEN to a valid token",
        402: "the owner's plan does not include this",
        403: "HF_TOKEN does not have permission to do this",
        404: "check the name and the revision, and that HF_TOKEN may read it",
        412: "the repository changed meanwhile",
        429: "too many requests",
    }
    return f"the Hub answered {status} ({advice.get(status, 'a server error')})"


def is_repo_name(name: str) -> bool:
    """Return whether the Hub accepts a name as OWNER/NAME of a repository."""
    from huggingface_hub import errors, utils  # noqa: PLC0415 - slow to load

    try:
        utils.validate_repo_id(name)  # type: ignore[attr-defined]  # exported, though not by name
    except errors.HFValidationError:
        return False
    return name.count("/") == 1


RELEASED_REPO: Final = "McGill-NLP/agent-reward-bench"
RELEASED_REVISION: Final = "b6d17e646009d6cb63d5dd7be78807b680693f61"

INDEX: Final = "index.parquet"
CROISSANT: Final = "croissant.json"
BESIDE_THE_DATA: Final = ("README.md", "eval.yaml", "manifest.json", INDEX, CROISSANT)
"""The files that a build writes outside data/. Older datasets lack the index and croissant.json."""


class PublishError(ValueError):
    """Raised for something that must not be published; the message lists every problem and what to do."""


def published_files(folder: Path) -> dict[str, Path]:
    """Return the files of a build by their path in the repository.

    Raises:
        PublishError: The folder is not a build, lacks a file, or has a file that no build wrote. Such a file
            may contain anything, even test labels.
    """
    try:
        manifest = json.loads((folder / "manifest.json").read_bytes())
        listed = set(manifest["files"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PublishError(
            f"{folder}: has no readable manifest.json ({type(error).__name__}); "
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
    problems += [
        f"{name}: was not written by a build; move it away" for name in sorted(found.keys() - wanted)
    ]
    problems += [f"{name}: is a link; build again" for name in sorted(wanted) if (folder / name).is_symlink()]
    if problems:
        raise PublishError(f"{folder}: " + "; ".join(problems))
    return {name: found[name] for name in sorted(wanted)}


def is_ours(path: str) -> bool:
    """Return whether a path in a public repository belongs to a build. Other files there are kept."""
    return path in BESIDE_THE_DATA or path.startswith("data/")


def difference(
    files: Mapping[str, Path], there: Mapping[str, RepoFile], owned: Callable[[str], bool]
) -> Changes:
    """Return the sorted paths to write and to remove, so that the repository has the files and no others.

    Files for which ``owned`` is false are kept.
    """
    write = [path for path, local in files.items() if path not in there or not _same(local, there[path])]
    remove = [path for path in there if owned(path) and path not in files]
    return tuple(sorted(write)), tuple(sorted(remove))


def _blob(files: Mapping[str, RepoFile], path: str) -> str | None:
    return files[path].blob_id if path in files else None


def _same(local: Path, remote: RepoFile) -> bool:
    """Return whether two files have the same hash: SHA-256 for files in LFS, else git's."""
    if remote.size != local.stat().st_size:
        return False
    if remote.lfs is None:
        content = local.read_bytes()
        return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest() == remote.blob_id
    with local.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == remote.lfs.sha256


_NOT_MADE: Final = (412, 429)
"""Statuses after which the commit was certainly not made."""


@dataclass(frozen=True, slots=True)
class Publication:
    """The state of a repository after publishing. Without changes, ``commit`` is the earlier head."""

    repo: str
    commit: str
    written: tuple[str, ...]
    removed: tuple[str, ...]

    @property
    def committed(self) -> bool:
        return bool(self.written or self.removed)


@dataclass(frozen=True)
class HubRepository:
    """A repository of the Hub. ``say`` gets a line before every pause.

    ``sha256s`` are the hashes of local files when they were checked. Files that changed since then are not
    committed.
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
        """Write files into the repository and remove other owned ones, in one commit.

        Args:
            files: Local files by their path in the repository.
            owned: Whether a path belongs to this publication; other files are kept.
            verb: The beginning of the commit's message.

        Raises:
            PublishError: Somebody else changed the same files meanwhile.
            HubError: The Hub failed or refused.
        """
        before: dict[str, RepoFile] | None = None
        perhaps_made: Changes = (), ()

        def attempt() -> Publication:
            nonlocal before, perhaps_made
            head, now = self.read()
            changes = write, remove = difference(files, now, owned)
            touched = (*write, *remove)
            if not touched:
                return Publication(self.repo, head, *perhaps_made)
            old = now if before is None else before
            changed = [path for path in touched if _blob(old, path) != _blob(now, path)]
            if changed:
                raise PublishError(
                    f"{self.repo}: somebody changed {', '.join(changed[:5])} during this publication; "
                    "look at the change, and run again to replace it"
                )
            before = now
            try:
                commit = self._commit(head, {path: files[path] for path in write}, remove, verb)
            except http_error_class() as error:
                if status_of(error) not in _NOT_MADE:
                    perhaps_made = changes
                raise
            return Publication(self.repo, commit, *changes)

        return patiently(
            attempt, self.repo, self.sleep, self.say, retries_all=True, advice="; run again later"
        )

    def read(self) -> tuple[str, dict[str, RepoFile]]:
        """Return the name of the latest commit and its files by path."""

        def read() -> tuple[str, dict[str, RepoFile]]:
            head = self.hub.repo_info(self.repo, repo_type=self.repo_type).sha
            if head is None:
                raise HubError(f"{self.repo}: the Hub does not name a commit; run again later")
            listed = self.hub.list_repo_tree(
                self.repo, repo_type=self.repo_type, revision=head, recursive=True
            )
            return head, {file.path: file for file in listed if isinstance(file, huggingface_hub.RepoFile)}

        return self.patiently(read)

    def _commit(self, head: str, write: Mapping[str, Path], remove: tuple[str, ...], verb: str) -> str:
        """Make a commit and return its name.

        Raises:
            HTTPError: The repository has to be read again before a retry.
            HubError: The Hub refused.
            PublishError: A file changed, or the Hub does not accept the card.
        """
        added = [huggingface_hub.CommitOperationAdd(path, local) for path, local in write.items()]
        for one in added:
            known = self.sha256s.get(one.path_in_repo)
            if known is not None and one.upload_info.sha256.hex() != known:
                raise PublishError(f"{one.path_in_repo}: changed during the publication; run again")
        removed = [huggingface_hub.CommitOperationDelete(path, is_folder=False) for path in remove]
        operations: list[CommitOperationAdd | CommitOperationDelete] = [*added, *removed]
        http_error = http_error_class()
        message = f"{verb}: {len(write)} files written, {len(remove)} removed"
        try:
            made = self.hub.create_commit(
                self.repo, operations, commit_message=message, repo_type=self.repo_type, parent_commit=head
            )
        except http_error as error:
            if status_of(error) == 412 or passes(error):
                raise
            raise HubError(f"{self.repo}: {describe_failure(error)}") from error
        except RuntimeError as error:  # the client wraps failures of an upload
            if isinstance(error.__cause__, http_error):
                raise error.__cause__ from None
            raise
        except ValueError as error:  # the Hub does not accept the card's YAML block
            raise PublishError(f"{self.repo}: {error}") from error
        return made.oid

    def patiently(self, call: Callable[[], Result]) -> Result:
        """Return the result of a call about the repository, see the function `patiently`."""
        return patiently(call, self.repo, self.sleep, self.say)


MAX_PER_HOUR: Final = 100
"""Commits in an hour; the Hub allows about 128 for a repository."""
BURST: Final = 40
"""Commits without a pause after a quiet time. Those that follow are so slow that an hour has at most 100."""
HOUR: Final = 3600.0


class CommitRateLimiter:
    """A limit of ``most_an_hour`` commits in any 3600 seconds, the first ``burst`` of them without a pause.

    It is a bucket of ``burst`` that fills by one every 3600 / (most_an_hour - burst) seconds, so any hour has
    at most burst + (most_an_hour - burst) commits. ``clock`` returns seconds. Not safe for threads.
    """

    def __init__(
        self, most_an_hour: int = MAX_PER_HOUR, burst: int = BURST, clock: Callable[[], float] = time.time
    ) -> None:
        if not 0 < burst < most_an_hour:
            raise ValueError("burst must be positive and less than most_an_hour")
        self._seconds_each = HOUR / (most_an_hour - burst)
        self._slack = (burst - 1) * self._seconds_each
        self._clock = clock
        self._full_again_at = float("-inf")

    def seconds_to_wait(self) -> float:
        """Return the seconds until the next commit may be made."""
        return max(0.0, self._full_again_at - self._slack - self._clock())

    def note(self) -> None:
        """Count a commit that is made now."""
        self._full_again_at = max(self._clock(), self._full_again_at) + self._seconds_each
