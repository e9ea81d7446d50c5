"""Every setting of the project, in one class, read from the environment (or a `.env` file) at the edge.

| variable | default | what it sets |
|---|---|---|
| ARB_SUITE | agent-reward-bench | the suite served: a shipped name, or a suite folder |
| ARB_LABELS | wheel | where labels come from: `wheel`, `none`, `csv:PATH`, `hub:OWNER/REPO[/FILE]` |
| ARB_LABELS_REVISION | main | revision of the label repository (`hub:` only) |
| ARB_CACHE_DIR | ~/.cache/agent-reward-bench | private cache (mode 0700) for fetched labels |
| ARB_STATE_DIR | state | records and uploaded files |
| ARB_DATA_DIR | agent-reward-bench | the built dataset that is shown; without one, the sample |
| ARB_PAPER_VERDICTS | none | a folder of verdict files of the paper's judges, such as `aer-c.jsonl` |
| DATABASE_URL | SQLite in the state folder | records database, as a SQLAlchemy URL |
| ARB_MAX_UPLOAD_BYTES | 5000000 | the largest prediction file accepted |
| ARB_HOST, ARB_PORT | 127.0.0.1, 7860 | where the Space listens |
| HF_TOKEN | none | token for a private label repository |
"""

from pathlib import Path

from pydantic import AliasChoices, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Settings from the environment; the module's table says what each one does."""

    model_config = SettingsConfigDict(
        env_prefix="ARB_", env_file=".env", extra="ignore", populate_by_name=True
    )

    suite: str = "agent-reward-bench"
    labels: str = "wheel"
    labels_revision: str = "main"
    cache_dir: Path = Path("~/.cache/agent-reward-bench")
    state_dir: Path = Path("state")
    data_dir: Path = Path("agent-reward-bench")
    paper_verdicts: Path | None = None
    database_url: str | None = Field(
        default=None, validation_alias=AliasChoices("database_url", "DATABASE_URL")
    )
    max_upload_bytes: int = Field(default=5_000_000, gt=0)
    host: str = "127.0.0.1"
    port: int = Field(default=7860, ge=0, le=65_535)
    hf_token: SecretStr | None = Field(default=None, validation_alias=AliasChoices("hf_token", "HF_TOKEN"))

    def records_url(self) -> str:
        """The SQLAlchemy URL of the records: DATABASE_URL, else a SQLite file in the state folder."""
        return self.database_url or f"sqlite:///{(self.state_dir / 'records.sqlite').resolve()}"


def variable_of(field: str) -> str:
    """The environment variable that sets a field of Settings, for messages."""
    own_names = {"database_url": "DATABASE_URL", "hf_token": "HF_TOKEN"}
    return own_names.get(field, f"ARB_{field.upper()}")
