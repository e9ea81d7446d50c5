"""What a submitter gets: a signed receipt, and the submission as it may be seen; the server's secret.

A receipt's signature is Ed25519 (RFC 8032) over its facts as canonical JSON, so that anyone can check one
without asking the server. The private key is made from the server's secret, as is a key for every other
purpose; the public one stands on the About page.
"""

import contextlib
import hashlib
import hmac
import os
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

from core.settings import Settings
from submissions.records.event_log import Event, canonical
from submissions.records.statuses import SubmissionStatus

Purpose = Literal["noise", "receipts", "label-version", "session", "ranking-half", "check", "annotation-item"]
FILE_NAME: Final = "secret"
FEWEST_CHARACTERS: Final = 16


class SecretUnavailable(Exception):
    """No secret can be had; the message says why and what to do, and never repeats one."""


class SecretChanged(Exception):
    """The secret is not the one that the records were made with; the message says what to do."""

    def __init__(self, check_value: str) -> None:
        super().__init__(
            "ARB_SECRET is not the one that these records were made with: noise would be drawn anew, and old "
            "receipts could not be checked any more. Set it to what it was. If that is lost, set "
            f"ARB_ACCEPT_SECRET={check_value} to go on with the new one for good"
        )


@dataclass(frozen=True)
class ServerSecret:
    """What nobody else knows. Losing it makes old receipts uncheckable and draws other noise."""

    _value: bytes = field(repr=False)

    @classmethod
    def of(cls, settings: Settings) -> "ServerSecret":
        """ARB_SECRET, else a file of the state folder that only its owner reads, made on first need.

        Raises SecretUnavailable: on a Space, whose disk does not last, the secret has to be set.
        """
        if settings.secret is not None:
            value = settings.secret.get_secret_value().strip()
            if len(value) < FEWEST_CHARACTERS:
                raise SecretUnavailable(
                    f"ARB_SECRET is shorter than {FEWEST_CHARACTERS} characters; make one with "
                    "`python -c 'import secrets; print(secrets.token_urlsafe(32))'`"
                )
            return cls(value.encode())
        if not settings.disk_is_lasting:
            raise SecretUnavailable(
                "ARB_SECRET is not set and the disk does not last: set it among the Space's secrets, to "
                "what `python -c 'import secrets; print(secrets.token_urlsafe(32))'` prints"
            )
        try:
            return cls(_secret_in(settings.state_dir / FILE_NAME))
        except OSError as error:
            raise SecretUnavailable(
                f"the secret cannot be kept in ARB_STATE_DIR ({error.strerror or type(error).__name__}); "
                "set ARB_SECRET, or ARB_STATE_DIR to a folder that this user may write"
            ) from error

    @property
    def check_value(self) -> str:
        """What tells this secret from another and says nothing else of it: 16 hexadecimal digits."""
        return self.key("check").hex()[:16]

    def key(self, purpose: Purpose) -> bytes:
        """32 bytes for one purpose: HMAC-SHA256 of its name under the secret."""
        return hmac.new(self._value, purpose.encode(), hashlib.sha256).digest()


def _secret_in(path: Path) -> bytes:
    """The content of the file, made whole and only once: of two processes that start, one is first."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, part = tempfile.mkstemp(dir=path.parent, prefix=".secret-")  # made readable by its owner only
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(secrets.token_urlsafe(32).encode())
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(FileExistsError):  # another process was first: its secret holds
                os.link(part, path)
        finally:
            Path(part).unlink()
    return path.read_bytes()


SIGNED: Final = (
    "submission_id", "suite", "split", "account", "judge", "file_sha256", "submitted_at", "label_version",
    "record", "record_hash",
)  # fmt: skip
"""The facts that are signed: they never change."""

Status = Literal["accepted", "waiting", "held"]
"""``accepted``: the record is durable. ``waiting``: it is written here, and not durable yet.
``held``: it is durable, and a maintainer looks at the file before it is scored."""
WAITING: Final = (
    "It is recorded here and waits to be stored permanently; its page says when it is accepted, and shows its"
    " metrics then."
)


def status_sentence(status: Status, reasons: Sequence[str] = ()) -> str:
    """What the status of a receipt means; ``reasons`` are those for holding it."""
    match status:
        case "accepted":
            return "It is accepted and stored permanently."
        case "waiting":
            return WAITING
        case "held":
            why = "; ".join(reason.rstrip(".") for reason in reasons if reason) or "no reason was recorded"
            return f"It is held until a maintainer has reviewed it, and is scored after that: {why}."


@dataclass(frozen=True)
class Receipt:
    """What a submitter gets. ``record`` and ``record_hash`` are its place in the event log."""

    submission_id: str
    suite: str
    split: str
    account: str
    judge: str
    file_sha256: str
    submitted_at: datetime
    label_version: str
    record: int
    record_hash: str
    is_new: bool
    status: Status
    signature: str = ""

    def to_json(self) -> dict[str, Any]:
        """The receipt as JSON: what is signed, the signature, and the status at the moment."""
        return {
            **_facts(self),
            "signature": self.signature,
            "is_new": self.is_new,
            "status": self.status,
        }


@dataclass(frozen=True)
class SubmissionView:
    """A submission as its owner or a maintainer sees it.

    ``report`` is None while there is no score, the file is held, or its record is not durable yet.
    """

    receipt: Receipt
    judge: str
    status: SubmissionStatus
    report: Mapping[str, Any] | None
    appears_at: datetime | None
    """When a row made public appears on the board, in a suite with private labels."""

    def to_json(self) -> dict[str, Any]:
        """The submission as REST, MCP and Gradio's clients get it: receipt, status, metrics, a sentence."""
        status = asdict(self.status)
        if self.status.published_at is not None:
            status["published_at"] = self.status.published_at.isoformat()
        return {
            **self.receipt.to_json(),
            "judge_name": self.judge,
            "standing": status,
            "report": self.report,
            "appears_at": self.appears_at and self.appears_at.isoformat(),
            "told": status_sentence(self.receipt.status, self.status.reasons),
        }


class Signer:
    """Signs receipts with a key of the server's secret."""

    def __init__(self, secret: ServerSecret) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self._key = Ed25519PrivateKey.from_private_bytes(secret.key("receipts"))

    @property
    def public_key(self) -> str:
        """What receipts are checked with: 64 hexadecimal digits."""
        return self._key.public_key().public_bytes_raw().hex()

    def signature(self, receipt: Receipt) -> str:
        """The signature of a receipt's facts, hexadecimal."""
        return self._key.sign(canonical(_facts(receipt))).hex()


def receipt_of(submitted: Event, is_new: bool, status: Status, signer: Signer) -> Receipt:
    """The receipt of a submission, from the event by which it came."""
    body = submitted.body
    facts = {name: body[name] for name in SIGNED if name in body}
    receipt = Receipt(
        **facts, submitted_at=submitted.at, record=submitted.sequence, record_hash=submitted.hash,
        is_new=is_new, status=status,
    )  # fmt: skip
    return replace(receipt, signature=signer.signature(receipt))


def problem_of(receipt: Mapping[str, Any], public_key: str) -> str | None:
    """What is wrong with a receipt in JSON, in a sentence; None where its signature holds."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    absent = [name for name in (*SIGNED, "signature") if name not in receipt]
    if absent:
        return f"the receipt has no {', '.join(absent)}"
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
    except ValueError:
        return "that is not a public key: 64 hexadecimal digits, from the Space's About page"
    try:
        signed = canonical({name: receipt[name] for name in SIGNED})
        key.verify(bytes.fromhex(receipt["signature"]), signed)
    except (InvalidSignature, ValueError, TypeError):
        return "the signature does not fit: the receipt was changed, or another server's key made it"
    return None


def _facts(receipt: Receipt) -> dict[str, Any]:
    facts = {name: getattr(receipt, name) for name in SIGNED}
    return {**facts, "submitted_at": receipt.submitted_at.isoformat(timespec="microseconds")}
