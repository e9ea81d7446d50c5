"""Access to the Hugging Face Hub: retries, error messages, and publishing files in one commit.

`huggingface_hub` retries listings and uploads, but not commits, `repo_info`, `create_repo` and `whoami`, so
these calls go through `patiently`. No message contains a token or the signed URL of an upload.

`HubRepository.put` makes one commit, or none if the repository already has the files. The commit is based on
the head that was read (``parent_commit``). If somebody else has committed since, or a response was lost, the
repository is read and compared again, so it does no harm if the Hub commits and then responds with 500.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from arb.core.console import counted
from arb.core.lazy import lazy_imports

with lazy_imports():
    import huggingface_hub

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, RepoFile

    from arb.core.settings import Settings

PAUSES: Final = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds to wait before each retry, unless the Hub says how long to wait."""

LONGEST_PAUSE: Final = 300.0
"""The longest pause in seconds. The Hub counts requests in windows of five minutes."""

_ANSWERED: Final = threading.Event()
"""Set once a connection to the Hub has been made."""

_PASSING: Final = frozenset({408, 429, 500, 502, 503, 504})

Result = TypeVar("Result")
RepoType = Literal["dataset", "space"]
Changes = tuple[tuple[str, ...], tuple[str, ...]]
"""The paths to write and to remove."""


class HubError(Exception):
    """Raised when a request to the Hub failed; the message says why and what to do."""


def hub_of(settings: Settings) -> HfApi:
    """Return a client of the Hub (at HF_ENDPOINT) that uses only the token in the settings."""
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

    Before each retry, ``say`` is called with a message and ``sleep`` with the seconds to wait. With
    ``retries_all``, every HTTP error is retried. If no connection can be made and the Hub has never answered
    this process, there are no retries, since the address or the network is the likely cause.

    Raises:
        HubError: The call failed and is not retried, or its last retry failed. The message begins with
            ``what``, such as a repository's name, and ends with ``advice``.
    """
    pauses = iter(PAUSES)
    while True:
        try:
            result = call()
            _ANSWERED.set()
            return result
        except http_error_class() as error:
            if not is_unreachable(error):
                _ANSWERED.set()
            pause = next(pauses, None) if _ANSWERED.is_set() else None
            if pause is None or not (retries_all or passes(error)):
                raise HubError(f"{what}: {describe_failure(error)}{advice}") from error
            pause = min(asked_pause(error) or pause, LONGEST_PAUSE)
            say(f"{describe_failure(error)}; trying again in {pause:.0f} s")
            sleep(pause)
        except RuntimeError as error:
            # A thread that loses its connection closes the client that all threads share.
            if "client has been closed" not in str(error) or next(pauses, None) is None:
                raise


def http_error_class() -> type[Exception]:
    """Return the exception class that huggingface_hub raises for failed requests."""
    from huggingface_hub import errors  # noqa: PLC0415 - slow to load

    return errors.HTTPError  # type: ignore[attr-defined]  # exported, though not by name


def passes(error: BaseException) -> bool:
    """Return whether an error is temporary: too many requests, a server error, or a broken connection."""
    status = status_of(error)
    return status is None or status in _PASSING


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status of the Hub's response, or None if there was no response."""
    response = getattr(error, "response", None)
    return response.status_code if response is not None else None


def is_unreachable(error: BaseException) -> bool:
    """Return whether no connection could be made: it was refused, or the host name is unknown."""
    return type(error).__name__ in ("ConnectError", "ConnectTimeout")


def asked_pause(error: BaseException) -> float | None:
    """Return how many seconds the Hub asks to wait, or None if it does not say."""
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
    """Return a line that says how a request to the Hub failed and what to do."""
    status = status_of(error)
    if is_unreachable(error):
        return "the Hub cannot be reached; check the network, and HF_ENDPOINT if it is set"
    if status is None:
        return f"the connection to the Hub was lost ({type(error).__name__})"
    advice = {
        400: "the Hub does not accept the request",
        401: "set HF_TOKEN to a valid token",
        402: "the owner's plan does not include this",
        403: "HF_TOKEN does not have permission to do this",
        404: "check the name and the revision, and that HF_TOKEN may read it",
        412: "the repository has changed in the meantime",
        429: "too many requests",
    }
    return f"the Hub answered {status} ({advice.get(status, 'a server error')})"


def is_repo_name(name: str) -> bool:
    """Return whether the Hub accepts a name of the form OWNER/NAME for a repository."""
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
"""The files that a build writes outside data/."""


class PublishError(ValueError):
    """Raised if files must not be published; the message lists every problem and what to do."""


def published_files(folder: Path) -> dict[str, Path]:
    """Return the files of a build, keyed by their path in the repository.

    Raises:
        PublishError: The folder is not a build, lacks a file, or has a file that a build does not write,
            which could even contain test labels.
    """
    try:
        manifest = json.loads((folder / "manifest.json").read_bytes())
        listed = set(manifest["files"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PublishError(
            f"{folder}: its manifest.json cannot be read ({type(error).__name__}); "
            "build the dataset with `arb data build`"
        ) from error
    wanted = listed | set(BESIDE_THE_DATA)
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
    """Return whether a path in a dataset's repository belongs to a build. Publishing keeps other files."""
    return path in BESIDE_THE_DATA or path.startswith("data/")


def difference(
    files: Mapping[str, Path], there: Mapping[str, RepoFile], owned: Callable[[str], bool]
) -> Changes:
    """Return the sorted paths to write and to remove in order to replace a repository's files with ``files``.

    ``there`` contains the files that are in the repository now. Files for which ``owned`` returns False are
    not removed.
    """
    write = [path for path, local in files.items() if path not in there or not _same(local, there[path])]
    remove = [path for path in there if owned(path) and path not in files]
    return tuple(sorted(write)), tuple(sorted(remove))


def _blob(files: Mapping[str, RepoFile], path: str) -> str | None:
    return files[path].blob_id if path in files else None


def _same(local: Path, remote: RepoFile) -> bool:
    """Return whether a local file equals one on the Hub, by SHA-256 if it is in LFS, else by git's hash."""
    if remote.size != local.stat().st_size:
        return False
    if remote.lfs is None:
        content = local.read_bytes()
        return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest() == remote.blob_id
    with local.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == remote.lfs.sha256


_NOT_MADE: Final = (412, 429)
"""The HTTP statuses which mean that no commit was made."""


@dataclass(frozen=True, slots=True)
class Publication:
    """The result of publishing to a repository. If nothing changed, ``commit`` is its latest commit."""

    repo: str
    commit: str
    written: tuple[str, ...]
    removed: tuple[str, ...]

    @property
    def committed(self) -> bool:
        return bool(self.written or self.removed)


@dataclass(frozen=True)
class HubRepository:
    """A repository on the Hub. ``say`` is called with a message before every pause.

    ``sha256s`` contains the hashes that local files had when they were checked, keyed by path in the
    repository. If a file has changed since then, nothing is committed.
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
        """Write files to the repository and remove all other files that are ``owned``, in one commit.

        ``files`` maps paths in the repository to local files. ``owned`` returns whether a path belongs to
        this publication; other files are kept. ``verb`` is the first word of the commit message.

        Raises:
            PublishError: Somebody else changed the same files meanwhile.
            HubError: The Hub refused the request, or it failed after all retries.
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
                    "look at the change, then run the command again to overwrite it"
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
        """Return the hash of the latest commit, and its files, keyed by path."""

        def read() -> tuple[str, dict[str, RepoFile]]:
            head = self.hub.repo_info(self.repo, repo_type=self.repo_type).sha
            if head is None:
                raise HubError(f"{self.repo}: the Hub did not return a commit; run again later")
            listed = self.hub.list_repo_tree(
                self.repo, repo_type=self.repo_type, revision=head, recursive=True
            )
            return head, {file.path: file for file in listed if isinstance(file, huggingface_hub.RepoFile)}

        return self.patiently(read)

    def _commit(self, head: str, write: Mapping[str, Path], remove: tuple[str, ...], verb: str) -> str:
        """Make a commit and return its hash.

        Raises:
            HTTPError: A retry may succeed once the repository has been read again.
            HubError: The Hub refused the commit.
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
        message = f"{verb}: {counted(len(write), 'file')} written, {len(remove)} removed"
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
        """Return the result of a call about this repository, with retries after temporary failures."""
        return patiently(call, self.repo, self.sleep, self.say)


HOUR: Final = 3600.0


class CommitRateLimiter:
    """A token bucket that allows at most ``most_an_hour`` commits in any hour. Not thread-safe.

    It has ``burst`` tokens and gains one every 3600 / (most_an_hour - burst) seconds. The defaults stay below
    the Hub's limit of about 128 commits per hour and repository. ``clock`` returns seconds.
    """

    def __init__(
        self, most_an_hour: int = 100, burst: int = 40, clock: Callable[[], float] = time.time
    ) -> None:
        if not 0 < burst < most_an_hour:
            raise ValueError("burst must be positive and less than most_an_hour")
        self._seconds_each = HOUR / (most_an_hour - burst)
        self._slack = (burst - 1) * self._seconds_each
        self._clock = clock
        self._full_again_at = float("-inf")

    def seconds_to_wait(self) -> float:
        """Return how many seconds to wait before the next commit."""
        return max(0.0, self._full_again_at - self._slack - self._clock())

    def note(self) -> None:
        """Record a commit at the present time."""
        self._full_again_at = max(self._clock(), self._full_again_at) + self._seconds_each
