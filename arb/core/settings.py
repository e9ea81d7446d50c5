"""The settings of the project, read from the environment or a ``.env`` file."""

import ipaddress
import re
from pathlib import Path

from pydantic import Field, PrivateAttr, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from arb.core.memory import container_memory

_OWN_NAMES = ("database_", "hf_", "space_", "oauth_", "openid_")
"""Prefixes of fields whose environment variables have names that the Hub or other programs chose."""
_HOST_NAME = re.compile(r"[^\s/:]*")


def variable_of(field: str) -> str:
    """Return the environment variable that sets a field of Settings."""
    return field.upper() if field.startswith(_OWN_NAMES) else f"ARB_{field.upper()}"


class Settings(BaseSettings):
    """Settings from the environment. The documentation of the settings is generated from this class."""

    model_config = SettingsConfigDict(
        alias_generator=variable_of, env_prefix="ARB_", env_file=".env", extra="ignore", populate_by_name=True
    )

    suite: str = Field("agent-reward-bench", description="name of a shipped suite to serve, or a folder")
    suites: str = Field(
        "",
        description="suites that one Space serves, comma-separated; the first is the default suite. Without "
        "this and `ARB_SUITE`, the shipped suites with public labels",
    )
    labels: str = Field(
        "wheel",
        description="source of labels: `wheel`, `none`, `csv:PATH`, `hub:OWNER/REPO[/FILE]` or "
        "`records[:VERSION]`",
    )
    suite_labels: str = Field(
        "",
        description="sources of labels of the other suites in `ARB_SUITES`, `NAME=SOURCE` comma-separated; "
        "by default the suite's public labels, or the newest set in its records",
    )
    labels_revision: str = Field("main", description="revision of the label repository (only with `hub:`)")
    cache_dir: Path = Field(
        Path("~/.cache/agent-reward-bench"), description="private cache of labels, replies and built datasets"
    )
    state_dir: Path = Field(
        Path("state"), description="folder of the server's secret, and of records without `DATABASE_URL`"
    )
    data_dir: Path = Field(
        Path("agent-reward-bench"),
        description="folder of the built dataset to show and judge; the sample is used if it does not exist",
    )
    paper_verdicts: Path | None = Field(
        None, description="folder with verdicts of published judges, such as `aer-c.jsonl`"
    )
    database_url: str | None = Field(
        None, description="SQLAlchemy URL of the database for records and uploads; by default a SQLite file"
    )
    max_upload_bytes: int = Field(5_000_000, gt=0, description="maximum size of a prediction file, in bytes")
    host: str = Field("127.0.0.1", description="address on which the Space listens")
    port: int = Field(7860, ge=0, le=65_535, description="port on which the Space listens")
    allowed_hosts: str = Field("", description="the Space's host names for other machines, comma-separated")
    secret: SecretStr | None = Field(
        None,
        description="secret that signs receipts and seeds noise, from `submissions new-secret`; by default "
        "one is created in the state folder",
    )
    accept_secret: str = Field(
        "",
        description="accepts a changed `ARB_SECRET` and withdraws private figures; use the value that the "
        "server prints when it refuses to start",
    )
    maintainers: str = Field("", description="names of the accounts that may moderate, comma-separated")
    state_lasts: bool | None = Field(
        None, description="whether the state folder survives a restart; by default it does, except on a Space"
    )
    records_repo: str | None = Field(None, description="private dataset repository for records, `OWNER/NAME`")
    board_repo: str | None = Field(None, description="public dataset repository for the board, `OWNER/NAME`")
    checks_a_minute: int = Field(60, gt=0, description="maximum files per minute from an address or account")
    memory_mb: int | None = Field(
        None, gt=0, description="memory limit of the Space in MB; by default the limit of its container"
    )
    metrics_token: SecretStr | None = Field(None, description="bearer token for `/metrics`")
    space_id: str | None = Field(None, description="set by the Hub on a Space: the Space's name")
    space_host: str | None = Field(None, description="set by the Hub: the Space's address")
    oauth_client_id: str | None = Field(None, description="set by the Hub: id of the Space's sign-in client")
    oauth_client_secret: SecretStr | None = Field(None, description="set by the Hub: secret of this client")
    oauth_scopes: str = Field("openid profile", description="set by the Hub: permissions for signing in")
    openid_provider_url: str = Field("https://huggingface.co", description="set by the Hub: sign-in provider")
    hf_token: SecretStr | None = Field(
        None, description="Hub token for the repositories of labels and records"
    )

    _main: "Settings | None" = PrivateAttr(None)

    @field_validator("allowed_hosts")
    @classmethod
    def _are_host_names(cls, names: str) -> str:
        for name in names.split(","):
            if not _HOST_NAME.fullmatch(name.strip()):
                raise ValueError(f"write host names such as board.example.org, not {name.strip()!r}")
        return names

    @model_validator(mode="after")
    def _take_first_suite(self) -> "Settings":
        """Make commands that know only one suite use the first one in ARB_SUITES, unless ARB_SUITE is set."""
        if (places := self.suite_places) and "suite" not in self.model_fields_set:
            self.__dict__["suite"] = places[0]
        return self

    @property
    def suite_places(self) -> tuple[str, ...]:
        """The names and folders in ARB_SUITES."""
        return tuple(place.strip() for place in self.suites.split(",") if place.strip())

    @property
    def labels_by_suite(self) -> dict[str, str]:
        """The sources in ARB_SUITE_LABELS, keyed by the name of the suite."""
        entries = (entry.partition("=") for entry in self.suite_labels.split(",") if entry.strip())
        return {name.strip(): source.strip() for name, _, source in entries}

    @property
    def labels_variable(self) -> str:
        """The environment variable that names the source of the labels."""
        return "ARB_LABELS" if self._main is None else "ARB_SUITE_LABELS"

    @property
    def suite_and_labels(self) -> str:
        """The environment variables that name the suite and the source of its labels, for a message."""
        return f"{'ARB_SUITE' if self._main is None else 'ARB_SUITES'} and {self.labels_variable}"

    def labels_from(self, source: str) -> str:
        """Return the text ``VARIABLE=VALUE`` that makes ``source`` the source of the labels."""
        suite = "" if self._main is None else f"{Path(self.suite).resolve().name}="
        return f"{self.labels_variable}={suite}{source}"

    @property
    def main(self) -> "Settings":
        """The settings of the Space's default suite, which include the Space's secret and accounts."""
        return self._main or self

    def under(self, main: "Settings") -> "Settings":
        """Return a copy of these settings, for another suite of the Space whose settings are ``main``."""
        found = self.model_copy()
        found._main = main
        return found

    @property
    def maintainer_names(self) -> frozenset[str]:
        return frozenset(name.strip() for name in self.maintainers.split(",") if name.strip())

    @property
    def allowed_host_names(self) -> tuple[str, ...]:
        return tuple(name.strip().lower() for name in self.allowed_hosts.split(",") if name.strip())

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the Space. If so, people sign in with just a name."""
        return self.space_id is None and not self.allowed_host_names and is_loopback(self.host)

    @property
    def has_oauth(self) -> bool:
        """Whether people sign in with their Hugging Face account."""
        return self.space_id is not None or bool(self.oauth_client_id and self.oauth_client_secret)

    @property
    def disk_is_lasting(self) -> bool:
        """Whether the state folder survives a restart. By default it does, except on a Space."""
        return self.space_id is None if self.state_lasts is None else self.state_lasts

    @property
    def has_little_memory(self) -> bool:
        """Whether the Space has less than 1 GiB of memory, so that it must read fewer files at a time."""
        most = container_memory() if self.memory_mb is None else self.memory_mb << 20
        return most is not None and most < 1 << 30

    def records_url(self) -> str:
        """Return the SQLAlchemy URL of the records, by default of a SQLite file in the state folder."""
        return self.database_url or f"sqlite:///{(self.state_dir / 'records.sqlite').resolve()}"


def is_loopback(host: str) -> bool:
    """Return whether a host name or IP address is a loopback address (``localhost``, ``127.0.0.1``)."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
