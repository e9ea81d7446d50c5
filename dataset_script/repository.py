"""Publish a dataset to the Hub, download a published dataset, or read single trajectories from it.

Publishing makes one commit per repository, or none if nothing changed (`arb.core.hub.HubRepository`). The
test labels go into a separate private repository.
"""

import json
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from huggingface_hub import DatasetInfo, HfApi, HfFileSystem
from huggingface_hub.errors import (  # type: ignore[attr-defined]  # HTTPError is not in an __all__
    HFValidationError,
    HTTPError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
)
from huggingface_hub.utils.tqdm import disable_progress_bars as disable_progress_bars

from arb.core.hub import (
    HubError,
    HubRepository,
    Publication,
    PublishError,
    describe_failure,
    is_ours,
    is_repo_name,
    patiently,
    published_files,
)
from dataset_script.by_id import TrajectoryReader
from dataset_script.card import card_for
from dataset_script.verify.manifest import VerifyReport

LABELS_IN_REPO: Final = "data/annotations.csv"
"""Where ARB_LABELS=hub:OWNER/REPO looks for the labels."""

MOST_FINDINGS: Final = 20

MOST_FILES: Final = 25_000
"""The maximum number of files that the Hub accepts in one commit (`HfApi.create_commit`)."""

BLOCK: Final = 65_536
"""How many bytes to read at a time from a file on the Hub. More could include other runs' pictures."""


@contextmanager
def hub_errors(what: str) -> Iterator[None]:
    """Turn an HTTPError in the block into a HubError whose message begins with ``what``."""
    try:
        yield
    except HTTPError as error:
        raise HubError(f"{what}: {describe_failure(error)}") from error


@contextmanager
def fetched(
    hub: HfApi, repo: str, revision: str | None = None, keep_in: Path | None = None
) -> Iterator[Path]:
    """Download a dataset repository into ``keep_in``, by default a temporary folder, and yield the folder.

    Files that are already in ``keep_in`` are not fetched again unless they changed, and files that the
    repository no longer has are not removed. The Hub client's shared cache is not used, since other users of
    the machine could read private files there. Raises HubError.
    """
    with tempfile.TemporaryDirectory(prefix="verify-") as temporary:
        folder = keep_in or Path(temporary)
        try:
            hub.snapshot_download(repo, repo_type="dataset", revision=revision, local_dir=folder)
        except LocalEntryNotFoundError as error:
            raise HubError(f"{repo}: the Hub cannot be reached or has no such repository") from error
        except HTTPError as error:
            raise HubError(f"{repo}: {describe_failure(error)}") from error
        except HFValidationError as error:
            raise HubError(f"{repo} is not a repository's name; write OWNER/NAME") from error
        yield folder


def reader_of_repository(hub: HfApi, repo: str, revision: str | None = None) -> TrajectoryReader:
    """Return a reader of a dataset repository at the commit that ``revision`` points to. Raises HTTPError."""
    commit = hub.repo_info(repo, repo_type="dataset", revision=revision).sha
    files = HfFileSystem(endpoint=hub.endpoint, token=hub.token, skip_instance_cache=True)
    return TrajectoryReader(lambda name: files.open(f"datasets/{repo}@{commit}/{name}", block_size=BLOCK))


@dataclass(frozen=True)
class Publisher:
    """An uploader of datasets. It calls ``say`` with a message whenever it waits before a retry."""

    hub: HfApi
    say: Callable[[str], None] = lambda _line: None
    sleep: Callable[[float], None] = time.sleep

    def publish(
        self,
        folder: Path,
        repo: str,
        private_labels: str | None = None,
        labels_file: Path | None = None,
        *,
        verify: Callable[[Path], VerifyReport],
    ) -> tuple[Publication, ...]:
        """Upload the test labels (if given) and then a folder, and return one result per repository.

        Everything is checked before the first upload. Raises PublishError for content that must not be
        published, and HubError if the Hub refuses or cannot be reached.
        """
        _check_names(repo, private_labels, labels_file)
        _check_content(folder, verify)
        files = published_files(folder)
        if len(files) > MOST_FILES:
            raise PublishError(f"{folder} has {len(files):,} files; the Hub takes {MOST_FILES:,} per commit")
        if labels_file is not None and labels_file.resolve() in {path.resolve() for path in files.values()}:
            raise PublishError(f"{labels_file.name} is in the folder to publish; move the labels out of it")
        if private_labels is not None and labels_file is not None:
            _check_labels(labels_file)
        if not self.hub.token:
            raise HubError("publishing needs a token with write access; set HF_TOKEN")
        patiently(self.hub.whoami, "the owner of HF_TOKEN", self.sleep, self.say)
        if private_labels is not None:
            self._prepare(private_labels, private=True)
        self._prepare(repo, private=False)
        done = []
        if private_labels is not None and labels_file is not None:
            labels = {LABELS_IN_REPO: labels_file}
            done.append(self._repository(private_labels).put(labels, owned=lambda _path: False))
        manifest = json.loads(files["manifest.json"].read_bytes())["files"]
        verified = {name: entry["sha256"] for name, entry in manifest.items()}
        with tempfile.TemporaryDirectory(prefix="publish-") as temporary:
            card = Path(temporary) / "README.md"
            card.write_text(card_for(files["README.md"].read_text(encoding="utf-8"), repo), encoding="utf-8")
            done.append(self._repository(repo, verified).put({**files, "README.md": card}, owned=is_ours))
        return tuple(done)

    def _prepare(self, repo: str, private: bool) -> None:
        """Create the repository if needed. Raises PublishError if it must not be written to."""

        def info() -> DatasetInfo:
            try:
                return self.hub.dataset_info(repo)
            except RepositoryNotFoundError:
                self.hub.create_repo(repo, repo_type="dataset", private=private, exist_ok=True)
                return self.hub.dataset_info(repo)

        found = self._repository(repo).patiently(info)
        if private and not found.private:
            raise PublishError(
                f"{repo} is public; name a private repository for the test labels with --private-labels"
            )
        names = {sibling.rfilename for sibling in found.siblings or ()}
        if not private and "manifest.json" not in names and any(name.startswith("data/") for name in names):
            raise PublishError(
                f"{repo} contains data that this command did not publish (there is no manifest.json); "
                "name another repository, or empty this one"
            )

    def _repository(self, repo: str, sha256s: Mapping[str, str] | None = None) -> HubRepository:
        return HubRepository(self.hub, repo, "dataset", self.say, self.sleep, sha256s=sha256s or {})


def _check_names(repo: str, private_labels: str | None, labels_file: Path | None) -> None:
    for name in (repo, private_labels):
        if name is not None and not is_repo_name(name):
            raise PublishError(f"{name} is not a repository's name; write OWNER/NAME")
    if private_labels == repo:
        raise PublishError(f"{repo}: name a different repository for --private-labels than for --repo")
    if private_labels is not None and labels_file is None:
        raise PublishError(
            "--private-labels needs a file of labels; add --labels FILE or set ARB_LABELS=csv:FILE"
        )
    if private_labels is not None and labels_file is not None and not labels_file.is_file():
        raise PublishError(f"{labels_file.name}: this file of labels does not exist; check the path")


def _check_labels(path: Path) -> None:
    """Raise PublishError if a file is not a CSV of labels. No label is read, so no message reveals one."""
    with path.open("rb") as file:
        header = file.readline(10_000).decode("utf-8-sig", errors="replace")
        has_rows = bool(file.readline(10).strip())
    columns = {each.strip().strip('"') for each in re.split("[,;\t]", header)}
    ids = ({"trajectory_id"}, {"benchmark", "task_id", "model_name"})
    if not any(each < columns for each in ids) or not has_rows:
        raise PublishError(
            f"{path.name} is not a file of labels: it needs a header with trajectory_id and a column per "
            "question, and a row per label. `arb submissions export-labels` writes one"
        )


def _check_content(folder: Path, verify: Callable[[Path], VerifyReport]) -> None:
    report = verify(folder)
    if not report.ok:
        found = [f"{one.file}: {one.message}" for one in report.findings if one.level == "error"]
        more = f"; and {len(found) - MOST_FINDINGS} more" if len(found) > MOST_FINDINGS else ""
        listed = "; ".join(found[:MOST_FINDINGS])
        raise PublishError(f"{folder} does not pass `arb data verify`: {listed}{more}")
    if report.to_accept:
        options = " ".join(f"--accept {name}" for name in report.to_accept[:MOST_FINDINGS])
        rest = len(report.to_accept) - MOST_FINDINGS
        raise PublishError(
            f"{folder}: `arb data verify` has warnings; review each, then add: {options}"
            + (f" and {rest} more that it lists" if rest > 0 else "")
        )
