"""Tests of the server's secret: its source, its minimum strength, and what others can learn about it."""

import hashlib
import hmac
import re
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from pydantic import SecretStr
from typer.testing import CliRunner

from arb.core.settings import Settings
from space.__main__ import app as space_app
from submissions.__main__ import app
from submissions.intake.receipts import Signer
from submissions.privacy import server_secret
from submissions.privacy.server_secret import (
    KnownSecret,
    SecretTooWeak,
    SecretUnavailable,
    ServerSecret,
    estimated_bits,
)
from submissions.startup import open_service

STRONG = "011feec6ddeb7e2837e4483f141cd997"

WEAK = {
    "short": "pssst",
    "a phrase": "the same in every run of the tests",  # 8 words of 12 bits: 96
    "words with dashes": "correct-horse-battery-staple-and-some-more",
    "words and digits": "CorrectHorseBatteryStaple1234567890",
    "one character": "0" * 64,
    "a repeated part": "deadbeef" * 8,
    "a sequence": "0123456789abcdefghijklmnopqrstuvwxyz",
    "two characters": "aabbaababbabaabbabababbaabbabaabbabaabab",
    "31 hexadecimal digits": STRONG[:31],  # 31 x 4 = 124
    "a UUID": "5f0c0c4e-9a40-4b4f-9d61-3a8f2f0f8f3b",  # 122 random bits
}


@pytest.mark.parametrize("secret", WEAK.values(), ids=WEAK)
def test_a_secret_below_128_bits_is_refused_without_repeating_it(tmp_path, secret):
    with pytest.raises(
        SecretTooWeak, match="128 are needed; make one with `arb submissions new-secret`"
    ) as it:
        ServerSecret.of(Settings(secret=secret, state_dir=tmp_path))
    assert secret not in str(it.value)


@pytest.mark.parametrize(
    "secret",
    [STRONG, STRONG.upper(), "3q2-7wJk0Zs_Yt5xQbN1Ag", "n1c8Zr0wqSxkK4vTgB7m2A==", "Zk" + STRONG],
    ids=["hex", "HEX", "base64url", "base64", "mixed"],
)
def test_random_values_of_128_bits_are_accepted(tmp_path, secret):
    assert estimated_bits(secret) >= 128
    ServerSecret.of(Settings(secret=secret, state_dir=tmp_path))


def test_the_command_makes_a_new_secret_each_time_that_is_accepted(tmp_path):
    made = [CliRunner().invoke(app, ["new-secret"]).stdout.strip() for _ in range(20)]
    assert len(set(made)) == 20
    for secret in made:
        ServerSecret.of(Settings(secret=secret, state_dir=tmp_path))


def test_a_long_secret_is_estimated_at_once():
    assert estimated_bits("ab" * 100_000) < 128


def test_a_weak_secret_ends_the_start_with_one_message(settings, tmp_path, monkeypatch):
    weak = settings.model_copy(update={"secret": SecretStr("hunter2hunter2hunter2")})
    with pytest.raises(SecretTooWeak):
        open_service(weak)
    monkeypatch.chdir(tmp_path)
    variables = {
        "ARB_SECRET": "hunter2hunter2hunter2", "ARB_SUITE": settings.suite, "ARB_STATE_DIR": "state",
        "ARB_LABELS": "none",
    }  # fmt: skip
    done = CliRunner().invoke(space_app, ["serve", "--port", "0"], env=variables)
    assert done.exit_code != 0 and isinstance(done.exception, SystemExit)
    assert done.output.count("ARB_SECRET has about") == 1 and "hunter2" not in done.output


def test_a_weak_secret_in_the_file_is_refused_too(tmp_path):
    (tmp_path / "secret").write_text("changeme")
    with pytest.raises(SecretTooWeak, match="the file `secret` in ARB_STATE_DIR has about"):
        ServerSecret.of(Settings(state_dir=tmp_path))


def test_each_purpose_has_a_key_of_its_own(tmp_path):
    secret = ServerSecret.of(Settings(secret=STRONG, state_dir=tmp_path))
    purposes = ("noise", "receipts", "label-version", "session", "ranking-half", "check", "annotation-item")
    keys = {secret.under(derivation).key(purpose) for derivation in (1, 2) for purpose in purposes}
    # Seven keys, and four purposes have a different key in records of derivation 1.
    assert len(keys) == 11 and {len(key) for key in keys} == {32}
    assert STRONG not in repr(secret)
    assert list(tmp_path.iterdir()) == []  # nothing is written if it is set


def test_records_of_derivation_1_keep_the_keys_of_their_figures():
    secret = ServerSecret(STRONG.encode(), derivation=1)
    for purpose in ("noise", "ranking-half", "label-version", "check"):
        assert secret.key(purpose) == hmac.new(STRONG.encode(), purpose.encode(), hashlib.sha256).digest()


@pytest.mark.parametrize("derivation", [1, 2])
def test_a_guess_at_the_secret_cannot_be_checked_cheaply_against_the_published_key(monkeypatch, derivation):
    public = Signer(ServerSecret(STRONG.encode(), derivation)).public_key
    quick = [
        hmac.new(STRONG.encode(), b"receipts", hashlib.sha256).digest(),
        hashlib.sha256(STRONG.encode()).digest(),
    ]
    for seed in quick:
        key = Ed25519PrivateKey.from_private_bytes(seed)
        assert key.public_key().public_bytes_raw().hex() != public
    costs = []

    def counted(**options):
        costs.append(options["n"] * options["r"] * options["p"])
        return Scrypt(**options)

    monkeypatch.setattr(server_secret, "Scrypt", counted)
    server_secret._stretch.cache_clear()
    for purpose in ("receipts", "session", "annotation-item"):
        for guess in (b"one", b"two"):
            ServerSecret(guess, derivation).key(purpose)
    # One run per guess, however many keys are derived: 2^15 x 8 blocks of 128 bytes (32 MiB), three times.
    assert costs == [2**15 * 8 * 3] * 2


def test_a_check_value_tells_one_secret_from_another():
    secrets = [ServerSecret(text.encode()) for text in (STRONG, STRONG[::-1])]
    values = [secret.check_value for secret in secrets]
    assert len(set(values)) == 2 and all(re.fullmatch("[0-9a-f]{16}", value) for value in values)
    first, other = secrets
    for derivation in (1, 2):
        known = KnownSecret(first.under(derivation).check_value, derivation)
        assert first.is_known_as(known) and not other.is_known_as(known)


def test_without_one_a_file_is_made_that_only_its_owner_reads(tmp_path):
    settings = Settings(state_dir=tmp_path / "state")
    first = ServerSecret.of(settings)
    (path,) = (tmp_path / "state").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert ServerSecret.of(settings).key("noise") == first.key("noise")


@pytest.mark.slow
def test_many_that_start_at_once_agree_on_one_secret(tmp_path):
    settings = Settings(state_dir=tmp_path / "state")
    with ThreadPoolExecutor(8) as pool:
        keys = list(pool.map(lambda _: ServerSecret.of(settings).key("noise"), range(32)))
    assert len(set(keys)) == 1
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["secret"]


def test_on_a_disk_that_does_not_last_none_is_made(tmp_path):
    with pytest.raises(SecretUnavailable, match="ARB_SECRET is not set"):
        ServerSecret.of(Settings(space_id="owner/space", state_dir=tmp_path))
    assert list(tmp_path.iterdir()) == []
