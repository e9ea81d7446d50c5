"""Puts a deployment (repositories, variables, mounted dataset, files) on the Hub.

Repeating a deployment changes nothing. Problems are found before anything is written. The variables are set
and the dataset is mounted before files are sent, so that the Space is built with them. Secrets are never
sent; the result names those that still have to be set.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import yaml
from huggingface_hub import HfApi, Volume
from huggingface_hub.errors import (  # type: ignore[attr-defined]  # HTTPError is not in an __all__
    HTTPError,
    RepositoryNotFoundError,
)
from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]  # exported lazily

from arb.core.console import counted, text_environment
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
from space.deploy.thumbnail import draw_thumbnail

Sdk = Literal["gradio", "docker"]
GRADIO: Final = "6.31.0"
"""The version of Gradio that the Hub installs for a Gradio Space. The tests use the same version."""
PYTHON: Final = "3.13"
"""The version of Python on the Space. By default, the Hub uses 3.10 for a Gradio Space."""
MOUNTED_AT: Final = "/dataset"
"""Where the Space finds the published dataset, read-only."""

NEEDED_SECRETS: Final[Mapping[str, str]] = {
    "HF_TOKEN": "a token that may read the labels and write to the repositories of records and board",
    "ARB_SECRET": "the key that signs receipts and seeds the noise; make one with "
    "`arb submissions new-secret` and keep a copy",
}
OTHER_SECRETS: Final[Mapping[str, str]] = {"ARB_METRICS_TOKEN": "a token for reading /metrics"}


@dataclass(frozen=True)
class Deployment:
    """What to deploy, and the repositories (``owner/name``) to use.

    ``suite`` is the name of the default suite, and ``labels`` is the value of ARB_LABELS. ``further`` are the
    names of other suites, and ``suite_labels`` maps these names to the sources of their labels. If ``board``
    is None, the board is published only on the Space itself. ``sdk`` determines how the Hub builds and lists
    the Space.
    """

    space: str
    data: str
    private: str
    board: str | None
    suite: str
    labels: str
    maintainers: tuple[str, ...]
    profile: SuiteProfile = field(default_factory=SuiteProfile)
    sdk: Sdk = "gradio"
    further: tuple[str, ...] = ()
    suite_labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return self.profile.title or default_title(self.suite)

    def variables(self) -> dict[str, str]:
        """Return the Space's variables, keyed by name. A deployment deletes empty variables.

        They contain no secret, since anyone can read them on the Hub. Other variables stay as they are.
        """
        return {
            "ARB_SUITE": self.suite,
            "ARB_SUITES": ",".join((self.suite, *self.further)) if self.further else "",
            "ARB_LABELS": self.labels,
            "ARB_SUITE_LABELS": ",".join(f"{name}={source}" for name, source in self.suite_labels.items()),
            "ARB_DATA_DIR": MOUNTED_AT,
            "ARB_RECORDS_REPO": self.private,
            "ARB_BOARD_REPO": self.board or "",
            "ARB_MAINTAINERS": ",".join(self.maintainers),
        }

    def problems(self) -> list[str]:
        """Return messages about invalid options, without asking the Hub."""
        named = {"--data": self.data, "--private": self.private, "--board": self.board}
        names = {option: name for option, name in named.items() if name is not None}
        problems = [
            f"{option} {name!r}: is not a repository name; use owner/name"
            for option, name in {"--space": self.space, **names}.items()
            if not is_repo_name(name)
        ]
        datasets = list(names.values())
        if len(set(datasets)) < len(datasets):
            problems.append("--data, --private and --board: give three different repositories")
        if self.suite in self.further or len(set(self.further)) < len(self.further):
            problems.append("--suite: two suites have the same name; rename a folder")
        if self.labels == "wheel" and self.suite != OFFICIAL:
            problems.append(
                f"--labels: the suite {self.suite} has no published labels; give the private repository "
                "that has its labels (--labels hub:OWNER/REPO), or --labels records to publish them on the "
                "Space, or --labels none"
            )
        for place, source in self._sources().items():
            if source.startswith("csv:"):
                problems.append(
                    f"{place}: the Space cannot read a local file; use hub:OWNER/REPO, records or none"
                )
        return problems

    def _sources(self) -> dict[str, str]:
        """Return the sources of labels, keyed by the option or entry that names them."""
        further = {f"ARB_SUITE_LABELS: {name}": source for name, source in self.suite_labels.items()}
        return {"--labels": self.labels, **further}

    @property
    def labels_repos(self) -> tuple[str, ...]:
        """The Hub repositories of the labels."""
        sources = (source.partition(":") for source in self._sources().values())
        return tuple("/".join(place.split("/")[:2]) for kind, _, place in sources if kind == "hub")


def render(template: str, **values: Any) -> str:
    """Return the text of a template in ``templates/``."""
    environment = text_environment(Path(__file__).parent / "templates", keep_trailing_newline=True)
    environment.filters["yaml"] = _yaml
    return environment.get_template(f"{template}.j2").render(**values)


def _yaml(value: object) -> str:
    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=110)
    return text.rstrip()


def render_file(name: str, deployment: Deployment) -> str:
    """Return the text of a file that is generated for a deployment (`space.deploy.files.MADE`)."""
    return render(name, title=deployment.title, gradio=GRADIO, python=PYTHON, **vars(deployment))


def made_files(deployment: Deployment) -> dict[str, bytes]:
    """Return the files that are generated for a deployment, keyed by name."""
    return {
        name: draw_thumbnail(deployment.title, deployment.profile.noun)
        if name.endswith(".png")
        else render_file(name, deployment).encode()
        for name in MADE[deployment.sdk]
    }


@dataclass(frozen=True, slots=True)
class Deployed:
    """The result of a deployment: repositories made, variables changed, files sent, and secrets to set."""

    made: tuple[str, ...]
    variables: tuple[str, ...]
    mounted: bool
    files: Publication
    secrets: Mapping[str, str]


@dataclass(frozen=True)
class Deployer:
    """Puts a deployment on the Hub. ``say`` is called with a line of text for each step and each pause."""

    hub: HfApi
    say: Callable[[str], None] = lambda _line: None
    sleep: Callable[[float], None] = time.sleep

    def deploy(self, deployment: Deployment, files: Mapping[str, Path]) -> Deployed:
        """Set up repositories, variables and dataset, and send files. Raises PublishError, HubError."""
        if not sys.stderr.isatty():
            disable_progress_bars()
        if not self.hub.token:
            raise HubError("deploying needs a token with write access; set HF_TOKEN")
        owner = self._try(self.hub.whoami, "who HF_TOKEN belongs to")["name"]
        deployment = replace(deployment, maintainers=deployment.maintainers or (owner,))
        self._check(deployment)
        space = deployment.space
        made = self._make_repositories(deployment)
        variables = self._set_variables(space, deployment.variables())
        mounted = self._mount(space, deployment.data)
        self.say(f"{space}: {counted(len(files), 'file')}, {total_bytes(files) / 1e6:.1f} MB")
        local = made_files(deployment)
        with tempfile.TemporaryDirectory(prefix="arb-deploy-") as folder, warnings.catch_warnings():
            for name, content in local.items():
                Path(folder, name).write_bytes(content)
            # The Parquet files of the sample are committed on purpose.
            warnings.filterwarnings("ignore", message="It seems that you are about to commit a data file")
            repository = HubRepository(self.hub, space, "space", self.say, self.sleep)
            done = repository.put(
                {**files, **{name: Path(folder, name) for name in local}}, is_ours, "Deploy"
            )
        there = self._try(lambda: self.hub.get_space_secrets(space), f"the names of {space}'s secrets")
        missing = {name: purpose for name, purpose in NEEDED_SECRETS.items() if name not in there}
        return Deployed(made, variables, mounted, done, missing)

    def _check(self, deployment: Deployment) -> None:
        """Raise PublishError if the repositories on the Hub do not fit the deployment."""
        data, records = self._found(deployment.data), self._found(deployment.private)
        board = self._found(deployment.board) if deployment.board is not None else None
        problems = []
        if data is None:
            problems.append(
                f"{deployment.data}: there is no such dataset, or HF_TOKEN may not read it; publish it first "
                "with `arb data publish`"
            )
        if records is not None and not records.private:
            problems.append(f"{deployment.private}: is public; records need a private repository")
        if board is not None and board.private:
            problems.append(f"{deployment.board}: is private; the board needs a public repository")
        for repo in deployment.labels_repos:
            labels = self._found(repo)
            if labels is None:
                problems.append(f"{repo}: there is no such dataset, or HF_TOKEN may not read it")
            elif not labels.private:
                problems.append(f"{repo}: is public; test labels need a private repository")
        if problems:
            raise PublishError("; ".join(problems))

    def _found(self, repo: str, repo_type: str = "dataset") -> Any:
        """Return the Hub's information on a repository, or None if it does not exist."""

        def info() -> Any:
            try:
                return self.hub.repo_info(repo, repo_type=repo_type)
            except RepositoryNotFoundError:
                return None

        return self._try(info, repo)

    def _make_repositories(self, deployment: Deployment) -> tuple[str, ...]:
        """Create the missing repositories for the Space, the records and the board; return their names.

        The Space comes first. Only creating it shows whether the account may have it, and a refusal then
        leaves nothing behind.
        """
        made: list[str] = []
        wanted: tuple[tuple[str | None, str, dict[str, Any]], ...] = (
            (deployment.space, "space", {"space_sdk": deployment.sdk}),
            (deployment.private, "dataset", {"private": True}),
            (deployment.board, "dataset", {"private": False}),
        )
        for repo, kind, options in wanted:
            if repo is None or self._found(repo, kind) is not None:
                continue
            self._try(partial(self.hub.create_repo, repo, repo_type=kind, exist_ok=True, **options), repo)
            is_private = bool(options.get("private"))
            self.say(f"{repo}: created {'as a private ' if is_private else 'as a '}{kind}")
            if is_private and not self._found(repo).private:
                raise HubError(f"{repo}: the Hub made it public; delete it and create it as private yourself")
            made.append(repo)
        return tuple(made)

    def _set_variables(self, space: str, wanted: Mapping[str, str]) -> tuple[str, ...]:
        """Set variables that differ and delete empty ones. Return the names of all changed variables."""
        there = self._try(lambda: self.hub.get_space_variables(space), f"{space}'s variables")
        values = {name: variable.value for name, variable in there.items()}
        changed = [name for name, value in wanted.items() if value and values.get(name) != value]
        gone = [name for name, value in wanted.items() if name in there and not value]
        for name in changed:
            self._try(partial(self.hub.add_space_variable, space, name, wanted[name]), f"{space}, {name}")
        for name in gone:
            self._try(partial(self.hub.delete_space_variable, space, name), f"{space}, {name}")
        if changed or gone:
            self.say(f"{space}: changed variables {', '.join([*changed, *gone])}")
        return (*changed, *gone)

    def _mount(self, space: str, data: str) -> bool:
        """Mount the dataset next to the Space's other volumes; return whether it is mounted now."""
        ours = Volume(type="dataset", source=data, mount_path=MOUNTED_AT, read_only=True)
        runtime = self._try(lambda: self.hub.get_space_runtime(space), f"what is mounted in {space}")
        there = runtime.volumes or []
        if any((v.type, v.source, v.mount_path) == ("dataset", data, MOUNTED_AT) for v in there):
            return True
        others = [volume for volume in there if volume.mount_path != MOUNTED_AT]
        try:
            self.hub.set_space_volumes(space, [*others, ours])
        except HTTPError as error:  # not every plan of the Hub allows it; the Space then shows the sample
            self.say(
                f"{space}: {data} cannot be mounted at {MOUNTED_AT}: {describe_failure(error)}; mount it in "
                "the Space's settings. Until then, the Space shows the sample's trajectories"
            )
            return False
        self.say(f"{space}: {data} is mounted at {MOUNTED_AT}")
        return True

    def _try(self, call: Callable[[], Any], what: str) -> Any:
        return patiently(call, what, self.sleep, self.say)
