"""Receipts: signed, checked by anyone with the public key, useless when a fact is changed.

The server's secret: set, or made once on a disk that lasts; one key for each purpose.
"""

import pytest

from submissions.intake.receipts import SIGNED, problem_of
from tests.support.submissions import again, send, verdicts


@pytest.fixture
def receipt(service):
    return send(service, verdicts(service.suite))


@pytest.mark.parametrize("fact", SIGNED)
def test_a_receipt_with_one_fact_changed_is_refused(service, receipt, fact):
    said = receipt.to_json()
    assert "is not valid" in problem_of({**said, fact: "another"}, service.signer.public_key)
    without = {name: value for name, value in said.items() if name != fact}
    assert problem_of(without, service.signer.public_key) == f"the receipt has no {fact}"


def test_a_receipt_without_a_format_is_valid_and_one_of_a_newer_format_is_refused(service, receipt):
    said = receipt.to_json()
    key = service.signer.public_key
    assert said["format"] == 1 and problem_of(said, key) is None
    assert problem_of({name: said[name] for name in (*SIGNED, "signature")}, key) is None
    newer = "the receipt has format 2, but this program reads formats up to 1; upgrade it"
    assert problem_of({**said, "format": 2}, key) == newer


def test_another_servers_key_does_not_fit(service, receipt, settings, tmp_path):
    other = again(service, state_dir=tmp_path / "other", secret=None)
    assert other.signer.public_key != service.signer.public_key
    assert "another server signed it" in problem_of(receipt.to_json(), other.signer.public_key)
    assert "the key is not valid" in problem_of(receipt.to_json(), "12")
