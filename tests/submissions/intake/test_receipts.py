"""Receipts: signed, checked by anyone with the public key, useless when a fact is changed.

The server's secret: set, or made once on a disk that lasts; one key for each purpose.
"""

import json
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.settings import Settings
from submissions.intake.receipts import SIGNED, problem_of
from submissions.privacy.server_secret import SecretUnavailable, ServerSecret
from tests.support.submissions import again, send, verdicts


@pytest.fixture
def receipt(service):
    return send(service, verdicts(service.suite))


def test_a_receipt_is_checked_offline_with_the_public_key_alone(service, receipt):
    said = json.loads(json.dumps(receipt.to_json()))
    assert problem_of(said, service.signer.public_key) is None
    assert said["status"] == "accepted"


@pytest.mark.parametrize("fact", SIGNED)
def test_a_receipt_with_one_fact_changed_is_refused(service, receipt, fact):
    said = receipt.to_json()
    assert "does not fit" in problem_of({**said, fact: "another"}, service.signer.public_key)
    without = {name: value for name, value in said.items() if name != fact}
    assert problem_of(without, service.signer.public_key) == f"the receipt has no {fact}"


def test_another_servers_key_does_not_fit(service, receipt, settings, tmp_path):
    other = again(service, state_dir=tmp_path / "other", secret=None)
    assert other.signer.public_key != service.signer.public_key
    assert "another server's key" in problem_of(receipt.to_json(), other.signer.public_key)
    assert "not a public key" in problem_of(receipt.to_json(), "12")


def test_the_key_stays_the_same_after_a_restart(service, receipt):
    assert problem_of(receipt.to_json(), again(service).signer.public_key) is None


def test_sent_again_the_file_has_the_same_signed_receipt(service, receipt):
    second = send(service, verdicts(service.suite))
    assert second.signature == receipt.signature
    assert (receipt.is_new, second.is_new) == (True, False)


def test_each_purpose_has_a_key_of_its_own(tmp_path):
    secret = ServerSecret.of(Settings(secret="011feec6ddeb7e2837e4483f141cd997", state_dir=tmp_path))
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
