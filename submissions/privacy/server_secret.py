"""The server's secret: where it comes from, how strong it has to be, and the keys derived from it.

There are two key derivations. Records name the one that they were made with, so an upgrade does not change
their figures:

1. HMAC-SHA256 of a purpose under the secret, for records of versions up to commit 7d56a80.
2. HKDF-SHA256 (RFC 5869) for a purpose from the secret stretched by scrypt (RFC 7914).

Keys behind anything public (receipts, session cookies, addresses of items to annotate) always come from
derivation 2, so that testing a guess at the secret takes one run of scrypt.
"""

import contextlib
import hashlib
import hmac
import os
import re
import secrets
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from math import log2
from pathlib import Path
from typing import Final, Literal, NamedTuple

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from arb.core.settings import Settings
from submissions.errors import RecordsUnavailable

Purpose = Literal["noise", "receipts", "label-version", "session", "ranking-half", "check", "annotation-item"]
NEWEST_DERIVATION: Final = 2
_OF_RECORDS: Final = frozenset(("noise", "ranking-half", "label-version", "check"))
"""Purposes of keys that must not change once there are records."""
FILE_NAME: Final = "secret"
LEAST_BITS: Final = 128

MAKE_ONE: Final = "make one with `arb submissions new-secret`"
IF_REPLACED: Final = (
    "Figures of hidden labels are then withdrawn until an operator runs `arb submissions "
    "accept-charge`, because a new secret gives them new noise"
)


class SecretUnavailable(RecordsUnavailable):
    """Raised when the secret is missing. The message says why and what to do; it never contains a secret."""


class SecretRefused(RecordsUnavailable):
    """Raised when the secret cannot be used. The message says why and what to do."""


class SecretTooWeak(SecretRefused):
    """Raised when a secret could be guessed."""

    def __init__(self, source: str, bits: float) -> None:
        super().__init__(
            f"{source} has about {int(bits)} bits of entropy, but {LEAST_BITS} are needed; {MAKE_ONE}. If "
            "records were made with the weak secret, the next start says how to continue with the new one"
        )


class SecretChanged(SecretRefused):
    """Raised when the secret is not the one that the records were made with."""

    def __init__(self, accept: str | None = None) -> None:
        """Build the message. ``accept`` is the check value of the new secret, or None if there is none."""
        problem = "The secret that these records were made with is missing."
        way_out = f"{MAKE_ONE} and set ARB_SECRET to it"
        if accept:
            problem = "The server's secret is not the one that these records were made with."
            way_out = f"start with ARB_ACCEPT_SECRET={accept}"
        super().__init__(
            f"{problem} Set ARB_SECRET to the old one, or put its file `secret` back into ARB_STATE_DIR. "
            f"If the old one is lost or weak, {way_out}. {IF_REPLACED}"
        )


class KnownSecret(NamedTuple):
    """The secret that records were made with. The oldest records do not have its ``check_value``."""

    check_value: str | None
    derivation: int


@dataclass(frozen=True)
class ServerSecret:
    """The secret value, and the derivation of the keys that records depend on."""

    _value: bytes = field(repr=False)
    derivation: int = NEWEST_DERIVATION

    @classmethod
    def of(cls, settings: Settings, may_make: bool = True) -> "ServerSecret":
        """Return ARB_SECRET, or else the content of a file in the state folder, created if it is missing.

        Raises:
            SecretUnavailable: There is no secret, and ``may_make`` is false or the file would not last.
            SecretTooWeak: The secret has less than `LEAST_BITS` of entropy.
        """
        path = settings.main.state_dir / FILE_NAME  # all suites of a Space have one secret
        try:
            if settings.secret is not None:
                source, value = "ARB_SECRET", settings.secret.get_secret_value().strip().encode()
            elif not settings.disk_is_lasting:
                raise SecretUnavailable(
                    "ARB_SECRET is not set, and the disk is cleared at every restart; "
                    f"{MAKE_ONE} and add it to the Space's secrets"
                )
            elif not may_make and not path.exists():
                raise SecretUnavailable("ARB_SECRET is not set, and ARB_STATE_DIR has no file `secret`")
            else:
                source, value = "the file `secret` in ARB_STATE_DIR", _secret_in(path)
        except OSError as error:
            raise SecretUnavailable(
                f"the secret cannot be stored in ARB_STATE_DIR ({error.strerror or type(error).__name__}); "
                "set ARB_SECRET, or set ARB_STATE_DIR to a folder where this user may write"
            ) from error
        if (bits := estimated_bits(value.decode(errors="replace"))) < LEAST_BITS:
            raise SecretTooWeak(source, bits)
        return cls(value)

    def under(self, derivation: int) -> "ServerSecret":
        """Return the same secret with another key derivation."""
        return replace(self, derivation=derivation)

    def is_known_as(self, known: KnownSecret) -> bool:
        """Return whether ``known`` is this secret. This is assumed if ``known`` has no check value."""
        return known.check_value in (None, self.under(known.derivation).check_value)

    @property
    def check_value(self) -> str:
        """16 hexadecimal digits that identify the secret without revealing it."""
        return self.key("check").hex()[:16]

    def key(self, purpose: Purpose) -> bytes:
        """Return the 32-byte key for one purpose."""
        if self.derivation == 1 and purpose in _OF_RECORDS:
            return hmac.new(self._value, purpose.encode(), hashlib.sha256).digest()
        derivation = HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose.encode())
        return derivation.derive(_stretch(self._value))


@lru_cache(maxsize=8)
def _stretch(value: bytes) -> bytes:
    """Return 32 bytes that scrypt derives from the secret in 0.2 s with 32 MiB; cached per process."""
    # N, r and p are those of OWASP's password storage cheat sheet. The salt is fixed, since the keys must
    # depend on the secret only; no precomputed table can cover secrets of 128 bits.
    return Scrypt(salt=b"AgentRewardBench server secret 2", length=32, n=2**15, r=8, p=3).derive(value)


def new_secret() -> str:
    return secrets.token_urlsafe(32)


_UUID: Final = re.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_UUID_BITS: Final = 122
_HEX: Final = re.compile("[0-9a-f]+|[0-9A-F]+")
_WORD: Final = re.compile("[A-Z]?[a-z]+|[A-Z]+")
_BITS_PER_WORD: Final = 12.0
_SHORTEST_REPEAT: Final = 6
_LONGEST: Final = 256
"""At most this many characters of a secret are examined."""


def estimated_bits(secret: str) -> float:
    """Return a cautious estimate of the entropy of a secret, in bits.

    This is the number of characters times log2 of the size of their alphabet. A repeated part or a sequence
    such as ``123456`` counts as one character. If few characters of the alphabet occur, only these count as
    the alphabet. A secret made of words has 12 bits per word. Random values of 32 hexadecimal digits or of 22
    base64 characters reach 128 bits, but a UUID does not (122 bits).
    """
    if _UUID.fullmatch(secret):
        return _UUID_BITS
    secret = secret[:_LONGEST]
    has_both_cases = re.search("[a-z]", secret) and re.search("[A-Z]", secret)
    if is_hex := _HEX.fullmatch(secret) is not None:
        alphabet = 16.0
    else:
        kinds = (("[0-9]", 10), ("[a-z]", 26), ("[A-Z]", 26), ("[^0-9a-zA-Z]", 2))
        alphabet = 62.0 if has_both_cases else sum(size for kind, size in kinds if re.search(kind, secret))
    distinct = len(set(secret))
    if alphabet and distinct < alphabet * (1 - (1 - 1 / alphabet) ** len(secret)) / 2:
        alphabet = distinct
    steps = [ord(after) - ord(before) for before, after in pairwise(secret)]
    bits = min(_novel(secret), 1 + _novel(steps)) * log2(alphabet or 1)
    words = _WORD.findall(secret)
    # Random characters rarely make long words; the words of a phrase in one case may be short.
    shortest = 4.0 if has_both_cases and not re.search(r"\s", secret) else 2.5
    if not is_hex and words and sum(map(len, words)) / len(words) >= shortest:
        others = re.sub("[A-Za-z]", "", secret)
        return min(bits, _BITS_PER_WORD * len(words) + _novel(others) * log2(10))
    return bits


def _novel(sequence: Sequence[object]) -> int:
    """Return the length of a sequence, counting every repeat of an earlier part as one element."""
    place = count = 0
    while place < len(sequence):
        repeated = 0
        for start in range(place):
            length = 0
            while place + length < len(sequence) and sequence[start + length] == sequence[place + length]:
                length += 1
            repeated = max(repeated, length)
        place += repeated if repeated >= _SHORTEST_REPEAT else 1
        count += 1
    return count


def _secret_in(path: Path) -> bytes:
    """Return the secret in a file, creating the file if needed. Several processes may call this at once."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, part = tempfile.mkstemp(dir=path.parent, prefix=".secret-")  # only its owner can read it
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(new_secret().encode())
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(FileExistsError):  # another process was first, and its secret counts
                os.link(part, path)
        finally:
            Path(part).unlink()
    return path.read_bytes().strip()
