from pathlib import Path

import pytest
import typer
from pydantic import ValidationError

from arb.core import settings as module
from arb.core.cli import read_settings
from arb.core.settings import Settings


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch, tmp_path):
    for name in map(module.variable_of, Settings.model_fields):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)  # so that no .env of the checkout is read


def test_defaults_are_those_of_the_documentation():
    settings = Settings()
    assert (settings.suite, settings.labels_revision) == ("agent-reward-bench", "main")
    assert settings.labels == "wheel"
    assert (settings.host, settings.port, settings.max_upload_bytes) == ("127.0.0.1", 7860, 5_000_000)
    assert settings.state_dir == Path("state")
    assert settings.hf_token is None


def test_every_setting_says_what_it_sets():
    for name, field in Settings.model_fields.items():
        assert field.description, name


def test_every_variable_is_read_by_its_own_name(monkeypatch):
    # One that is text, to see by its value that it is this variable that is read.
    names = "space_id space_host oauth_client_id oauth_scopes openid_provider_url maintainers"
    for field in names.split():
        monkeypatch.setenv(module.variable_of(field), f"value of {field}")
        assert getattr(Settings(), field) == f"value of {field}"


def test_the_secrets_of_signing_in_are_not_shown(monkeypatch):
    monkeypatch.setenv("OAUTH_CLIENT_SECRET", "planted-secret")
    assert "planted-secret" not in repr(Settings())


def test_the_environment_sets_them(monkeypatch):
    monkeypatch.setenv("ARB_SUITE", "sample")
    monkeypatch.setenv("ARB_PORT", "8000")
    monkeypatch.setenv("DATABASE_URL", "postgresql://records")
    settings = Settings()
    assert (settings.suite, settings.port, settings.records_url()) == ("sample", 8000, "postgresql://records")


def test_a_variable_without_the_prefix_is_another_programs(monkeypatch):
    for name in ("HOST", "PORT", "LABELS"):
        monkeypatch.setenv(name, "99")
    assert (Settings().host, Settings().port, Settings().labels) == ("127.0.0.1", 7860, "wheel")


@pytest.mark.parametrize("wrong", ["https://board.example.org/", "board.example.org:8080", "one two"])
def test_a_host_name_with_more_than_the_name_is_refused_in_a_line(wrong, monkeypatch, capsys):
    # Requests have only the name, so none would ever match, and all would be refused.
    monkeypatch.setenv("ARB_ALLOWED_HOSTS", f"other.example.org, {wrong}")
    with pytest.raises(typer.Exit):
        read_settings()
    said = capsys.readouterr().err
    assert said.startswith(
        "error: a setting in the environment is invalid: ARB_ALLOWED_HOSTS: write host names"
    )
    assert wrong in said and len(said.splitlines()) == 1
    monkeypatch.setenv("ARB_ALLOWED_HOSTS", " board.example.org, *.example.com,")
    assert read_settings().allowed_host_names == ("board.example.org", "*.example.com")


def test_a_dotenv_file_sets_them(tmp_path):
    (tmp_path / ".env").write_text("ARB_LABELS=none\n")
    assert Settings().labels == "none"


def test_records_are_in_the_state_folder_unless_a_url_is_given(tmp_path):
    assert Settings().records_url() == f"sqlite:///{tmp_path.resolve()}/state/records.sqlite"


def test_the_token_is_not_shown(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    settings = Settings()
    assert "hf_secret" not in repr(settings)
    assert settings.hf_token.get_secret_value() == "hf_secret"


@pytest.mark.parametrize(("name", "value"), [("ARB_PORT", "70000"), ("ARB_MAX_UPLOAD_BYTES", "0")])
def test_values_out_of_range_are_refused(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    with pytest.raises(ValidationError):
        Settings()
