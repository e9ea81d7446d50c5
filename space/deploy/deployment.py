"""What a deployment consists of: repositories, variables, the mounted dataset, names of secrets. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from dataset_script.suite import OFFICIAL

MOUNTED_AT: Final = "/dataset"
"""Where the Space finds the published dataset, read-only."""

MANAGED_VARIABLES: Final = (
    "ARB_SUITE", "ARB_LABELS", "ARB_DATA_DIR", "ARB_RECORDS_REPO", "ARB_BOARD_REPO", "ARB_MAINTAINERS",
)  # fmt: skip
"""Variables that a deployment sets, or takes away; others on the Space stay as they are."""

NEEDED_SECRETS: Final = MappingProxyType(
    {
        "HF_TOKEN": "a token that may read the labels and write to the repositories of records and board",
        "ARB_SECRET": "what receipts are signed with and noise is drawn from: make one with "
        '`python -c "import secrets; print(secrets.token_urlsafe(32))"` and keep a copy',
    }
)
OTHER_SECRETS: Final = MappingProxyType(
    {
        "ARB_METRICS_TOKEN": "opens /metrics to a program",
    }
)


@dataclass(frozen=True)
class Deployment:
    """What to deploy where; repositories are ``owner/name``.

    ``suite`` is a suite's name, ``labels`` what ARB_LABELS shall be. Without ``board`` the public rows are
    only on the Space itself.
    """

    space: str
    data: str
    private: str
    board: str | None
    suite: str
    labels: str
    maintainers: tuple[str, ...]

    def variables(self) -> dict[str, str]:
        """The Space's variables: anyone can read them on the Hub, so no secret is among them."""
        found = {
            "ARB_SUITE": self.suite,
            "ARB_LABELS": self.labels,
            "ARB_DATA_DIR": MOUNTED_AT,
            "ARB_RECORDS_REPO": self.private,
            "ARB_BOARD_REPO": self.board or "",
            "ARB_MAINTAINERS": ",".join(self.maintainers),
        }
        return {name: value for name, value in found.items() if value}

    def problems(self) -> list[str]:
        """What cannot be, in sentences; empty when it can be deployed."""
        from dataset_script.hub_repository import is_repo_name

        named = {"--data": self.data, "--private": self.private, "--board": self.board}
        names = {option: name for option, name in named.items() if name is not None}
        problems = [
            f"{option} {name!r}: a repository is named owner/name"
            for option, name in {"--space": self.space, **names}.items()
            if not is_repo_name(name)
        ]
        datasets = list(names.values())
        if len(set(datasets)) < len(datasets):
            problems.append("--data, --private and --board: name three different repositories")
        if self.labels == "wheel" and self.suite != OFFICIAL:
            problems.append(
                f"--labels: the suite {self.suite} has no published labels; name the private repository "
                "where they are (--labels hub:OWNER/REPO), or none"
            )
        if self.labels.startswith("csv:"):
            problems.append("--labels: a local file is not on the Space; use hub:OWNER/REPO, or none")
        return problems

    @property
    def labels_repo(self) -> str | None:
        """The repository of the labels, where they are in one."""
        kind, _, place = self.labels.partition(":")
        return "/".join(place.split("/")[:2]) if kind == "hub" else None


def secrets_to_set(there: Mapping[str, object]) -> dict[str, str]:
    """The needed secrets that the Space lacks, with what each is for."""
    return {name: purpose for name, purpose in NEEDED_SECRETS.items() if name not in there}
