"""A deployment (repositories, variables, mounted dataset, README) and how it is put on the Hub.

Doing it again changes nothing. Everything that can be refused is refused before anything is written.
Variables and the mounted dataset are set before the files, so that the Space is built with them. No secret is
sent: they are named for whoever sets them.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from arb.core.hub import (
    HubError,
    HubRepository,
    Publication,
    PublishError,
    describe_failure,
    is_repo_name,
    patiently,
)
from arb.core.suite import OFFICIAL
from arb.core.suites.profile import SuiteProfile, default_title
from space.deploy.files import MADE, is_ours, total_bytes

if TYPE_CHECKING:
    from huggingface_hub import HfApi

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
        "`python -m submissions new-secret` and keep a copy",
    }
)
OTHER_SECRETS: Final = MappingProxyType({"ARB_METRICS_TOKEN": "opens /metrics to a program"})


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
    profile: SuiteProfile = field(default_factory=SuiteProfile)

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


def render(template: str, **values: Any) -> str:
    """Return the text of a template in ``templates/``."""
    import yaml
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    dump = partial(yaml.safe_dump, sort_keys=False, allow_unicode=True, width=110)
    environment.filters["yaml"] = lambda value: dump(value).rstrip()
    return environment.get_template(f"{template}.j2").render(**values)


def render_file(name: str, deployment: Deployment) -> str:
    """Return the text of a file that is written for a deployment (`space.deploy.files.MADE`)."""
    title = deployment.profile.title or default_title(deployment.suite)
    return render(name, title=title, **vars(deployment))


@dataclass(frozen=True, slots=True)
class Deployed:
    """What was done: repositories made, variables changed, the files; and secrets that are still to set."""

    made: tuple[str, ...]
    variables: tuple[str, ...]
    mounted: bool
    files: Publication
    secrets: Mapping[str, str]


@dataclass(frozen=True)
class Deployer:
    """The Hub and how to wait for it; ``say`` gets a line for every step and every pause."""

    hub: HfApi
    say: Callable[[str], None] = lambda _line: None
    sleep: Callable[[float], None] = time.sleep

    def deploy(self, deployment: Deployment, files: Mapping[str, Path]) -> Deployed:
        """Put the files and everything around them on the Hub. Raises PublishError, HubError."""
        if not self.hub.token:
            raise HubError("deploying needs a token with write access; set HF_TOKEN")
        owner = self._try(self.hub.whoami, "who HF_TOKEN belongs to")["name"]
        deployment = replace(deployment, maintainers=deployment.maintainers or (owner,))
        self._check(deployment)
        space = deployment.space
        made = self._make_repositories(deployment)
        variables = self._set_variables(space, deployment.variables())
        mounted = self._mount(space, deployment.data)
        self.say(f"{space}: {len(files)} files, {total_bytes(files) / 1e6:.1f} MB")
        texts = {name: render_file(name, deployment) for name in MADE}
        with tempfile.TemporaryDirectory(prefix="arb-deploy-") as folder, warnings.catch_warnings():
            for name, text in texts.items():
                Path(folder, name).write_text(text, encoding="utf-8", newline="\n")
            # The sample's Parquet files are meant.
            warnings.filterwarnings("ignore", message="It seems that you are about to commit a data file")
            repository = HubRepository(self.hub, space, "space", self.say, self.sleep)
            done = repository.put(
                {**files, **{name: Path(folder, name) for name in texts}}, is_ours, "Deploy"
            )
        there = self._try(lambda: self.hub.get_space_secrets(space), f"the names of {space}'s secrets")
        missing = {name: purpose for name, purpose in NEEDED_SECRETS.items() if name not in there}
        return Deployed(made, variables, mounted, done, missing)

    def _check(self, deployment: Deployment) -> None:
        """Refuse what must not be, from what is on the Hub now."""
        data, records = self._found(deployment.data), self._found(deployment.private)
        board = deployment.board and self._found(deployment.board)
        problems = []
        if data is None:
            problems.append(
                f"{deployment.data}: there is no such dataset, or HF_TOKEN may not read it; publish it first "
                "with `python -m dataset_script publish`"
            )
        if records is not None and not records.private:
            problems.append(f"{deployment.private}: is public; records go into a private repository only")
        if board and board.private:
            problems.append(f"{deployment.board}: is private, and the board's rows are for everybody")
        if deployment.labels_repo is not None:
            labels = self._found(deployment.labels_repo)
            if labels is None:
                problems.append(
                    f"{deployment.labels_repo}: there are no labels, or HF_TOKEN may not read them"
                )
            elif not labels.private:
                problems.append(
                    f"{deployment.labels_repo}: is public; test labels are in a private repository only"
                )
        if problems:
            raise PublishError("; ".join(problems))

    def _found(self, repo: str, repo_type: str = "dataset") -> Any:
        """Return what the Hub says of a repository; None if there is none."""
        from huggingface_hub.errors import RepositoryNotFoundError

        def info() -> Any:
            try:
                return self.hub.repo_info(repo, repo_type=repo_type)
            except RepositoryNotFoundError:
                return None

        return self._try(info, repo)

    def _make_repositories(self, deployment: Deployment) -> tuple[str, ...]:
        """Make the repositories that are missing: records (private), board, Space; return their names."""
        made = []
        for repo, options in (
            (deployment.private, {"repo_type": "dataset", "private": True}),
            (deployment.board, {"repo_type": "dataset", "private": False}),
            (deployment.space, {"repo_type": "space", "space_sdk": "docker"}),
        ):
            if repo is None or self._found(repo, options["repo_type"]) is not None:
                continue
            self._try(partial(self.hub.create_repo, repo, exist_ok=True, **options), repo)
            kind = "private " if options.get("private") else ""
            self.say(f"{repo}: {kind}{options['repo_type']} made")
            if options.get("private") and not self._found(repo).private:
                raise HubError(f"{repo}: was made public by the Hub; remove it and make it private by hand")
            made.append(repo)
        return tuple(made)

    def _set_variables(self, space: str, wanted: Mapping[str, str]) -> tuple[str, ...]:
        """Set those that differ, take away ours that are not wanted any more; which ones changed."""
        there = self._try(lambda: self.hub.get_space_variables(space), f"{space}'s variables")
        changed = [name for name, value in wanted.items() if name not in there or there[name].value != value]
        gone = [name for name in MANAGED_VARIABLES if name in there and name not in wanted]
        for name in changed:
            self._try(partial(self.hub.add_space_variable, space, name, wanted[name]), f"{space}, {name}")
        for name in gone:
            self._try(partial(self.hub.delete_space_variable, space, name), f"{space}, {name}")
        if changed or gone:
            self.say(f"{space}: variables {', '.join([*changed, *gone])}")
        return (*changed, *gone)

    def _mount(self, space: str, data: str) -> bool:
        """Mount the dataset, beside whatever else is mounted; whether it is there now."""
        from huggingface_hub import Volume
        from huggingface_hub.errors import HTTPError

        ours = Volume(type="dataset", source=data, mount_path=MOUNTED_AT, read_only=True)
        runtime = self._try(lambda: self.hub.get_space_runtime(space), f"what is mounted in {space}")
        there = runtime.volumes or []
        if any((v.type, v.source, v.mount_path) == ("dataset", data, MOUNTED_AT) for v in there):
            return True
        others = [volume for volume in there if volume.mount_path != MOUNTED_AT]
        try:
            self.hub.set_space_volumes(space, [*others, ours])
        except HTTPError as error:  # not every plan has it: the Space then shows the sample's trajectories
            self.say(
                f"{space}: {data} cannot be mounted at {MOUNTED_AT}: {describe_failure(error)}; mount it in "
                "the Space's settings, until then it shows the sample's trajectories"
            )
            return False
        self.say(f"{space}: {data} is mounted at {MOUNTED_AT}")
        return True

    def _try(self, call: Callable[[], Any], what: str) -> Any:
        return patiently(call, what, self.sleep, self.say)
