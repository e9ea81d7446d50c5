"""Publish a built folder on the Hub, and the test labels beside it in a private repository.

Each repository gets one commit, or none when it holds the same content already (see `hub_repository`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from dataset_script.hub_calls import HubError, patiently
from dataset_script.hub_repository import HubRepository, Publication, is_repo_name
from dataset_script.published_files import PublishError, is_ours, published_files

if TYPE_CHECKING:
    from huggingface_hub import HfApi

LABELS_IN_REPO: Final = "data/annotations.csv"
"""Where ARB_LABELS=hub:OWNER/REPO looks for the labels."""

FINDINGS_TOLD: Final = 20


class Verified(Protocol):
    """What `dataset_script.verify.verify` gives for a folder: findings have a level, a file and a message."""

    @property
    def ok(self) -> bool:
        """Whether the folder may be published."""
        ...

    @property
    def findings(self) -> Iterable[Any]:
        """What was found, errors and warnings."""
        ...


@dataclass(frozen=True)
class Publisher:
    """The Hub and how to wait for it; ``say`` gets a line for every pause."""

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
        verify: Callable[[Path], Verified],
    ) -> tuple[Publication, ...]:
        """Put the folder into the dataset repository ``repo``; the labels first, where they are named.

        Everything that can be refused is refused before anything is sent. Raises PublishError for what must
        not be published, HubError for what the Hub does not do.
        """
        _check_names(repo, private_labels, labels_file)
        _check_content(folder, verify)
        files = published_files(folder)
        if labels_file is not None and labels_file.resolve() in {path.resolve() for path in files.values()}:
            raise PublishError(f"{labels_file.name}: the labels lie in the folder to publish; move them out")
        if not self.hub.token:
            raise HubError("publishing needs a token with write access; set HF_TOKEN")
        self._try(self.hub.whoami, "who HF_TOKEN belongs to")
        if private_labels is not None:
            self._prepare(private_labels, private=True)
        self._prepare(repo, private=False)
        done = []
        if private_labels is not None and labels_file is not None:
            done.append(self._put(private_labels, {LABELS_IN_REPO: labels_file}, owned=lambda _path: False))
        done.append(self._put(repo, files, owned=is_ours))
        return tuple(done)

    def _prepare(self, repo: str, private: bool) -> None:
        """Make the repository if it is not there; refuse one that is public or holds something else."""
        from huggingface_hub.errors import RepositoryNotFoundError

        def info():
            try:
                return self.hub.repo_info(repo, repo_type="dataset")
            except RepositoryNotFoundError:
                self.hub.create_repo(repo, repo_type="dataset", private=private, exist_ok=True)
                return self.hub.repo_info(repo, repo_type="dataset")

        found = self._try(info, repo)
        if private and not found.private:
            raise PublishError(f"{repo}: is public; test labels go into a private repository only")
        names = {sibling.rfilename for sibling in found.siblings or ()}
        if not private and "manifest.json" not in names and any(name.startswith("data/") for name in names):
            raise PublishError(
                f"{repo}: holds data that was not published from here (it has no manifest.json); "
                "name another repository, or empty this one"
            )

    def _put(self, repo: str, files: Mapping[str, Path], owned: Callable[[str], bool]) -> Publication:
        return HubRepository(self.hub, repo, "dataset", self.say, self.sleep).put(files, owned)

    def _try(self, call: Callable[[], Any], what: str) -> Any:
        return patiently(call, what, self.sleep, self.say)


def _check_names(repo: str, private_labels: str | None, labels_file: Path | None) -> None:
    if not all(is_repo_name(name) for name in (repo, private_labels) if name is not None):
        raise PublishError("a repository is named owner/name")
    if private_labels == repo:
        raise PublishError(f"{repo}: the labels need a repository of their own, which is private")
    if private_labels is not None and labels_file is None:
        raise PublishError("--private-labels needs the labels: --labels FILE, or ARB_LABELS=csv:FILE")
    if private_labels is not None and labels_file is not None and not labels_file.is_file():
        raise PublishError(f"{labels_file.name}: no such file of labels; check the path")


def _check_content(folder: Path, verify: Callable[[Path], Verified]) -> None:
    report = verify(folder)
    if not report.ok:
        found = [f"{one.file}: {one.message}" for one in report.findings if one.level == "error"]
        more = f"; and {len(found) - FINDINGS_TOLD} more" if len(found) > FINDINGS_TOLD else ""
        told = "; ".join(found[:FINDINGS_TOLD])
        raise PublishError(f"{folder}: does not pass `python -m dataset_script verify`: {told}{more}")
