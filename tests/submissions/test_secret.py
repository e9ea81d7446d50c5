"""The server's secret: set, or made once on a disk that lasts; one key for each purpose."""

import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from dataset_script.settings import Settings
from submissions.secret import SecretUnavailable, ServerSecret


def test_each_purpose_has_a_key_of_its_own(tmp_path):
    secret = ServerSecret.of(Settings(secret="a secret of enough characters", state_dir=tmp_path))
    assert len(secret.key("noise")) == 32
    assert secret.key("noise") != secret.key("receipts")
    assert "enough" not in repr(secret)
    assert list(tmp_path.iterdir()) == []  # nothing is written where it is set


def test_without_one_a_file_is_made_that_only_its_owner_reads(tmp_path):
    settings = Settings(state_dir=tmp_path / "state")
    first = ServerSecret.of(settings)
    (path,) = (tmp_path / "state").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert ServerSecret.of(settings).key("noise") == first.key("noise")


def test_many_that_start_at_once_agree_on_one_secret(tmp_path):
    settings = Settings(state_dir=tmp_path / "state")
    with ThreadPoolExecutor(8) as pool:
        keys = list(pool.map(lambda _: ServerSecret.of(settings).key("noise"), range(32)))
    assert len(set(keys)) == 1
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["secret"]


def test_a_short_secret_is_refused_without_repeating_it(tmp_path):
    with pytest.raises(SecretUnavailable, match="shorter than 16") as refused:
        ServerSecret.of(Settings(secret="pssst", state_dir=tmp_path))
    assert "pssst" not in str(refused.value)


def test_on_a_disk_that_does_not_last_none_is_made(tmp_path):
    with pytest.raises(SecretUnavailable, match="ARB_SECRET is not set"):
        ServerSecret.of(Settings(space_id="owner/space", state_dir=tmp_path))
    assert list(tmp_path.iterdir()) == []
