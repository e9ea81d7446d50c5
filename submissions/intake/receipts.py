"""Signed receipts, and submissions as their owners and maintainers see them.

A receipt has an Ed25519 signature (RFC 8032) over the fields in `SIGNED` as canonical JSON, so that anyone
can check it without asking the server. The private key is derived from the server's secret. The public key is
on the About page.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from typing import Any, Final, Literal

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from arb.core.formats import FORMATS, format_problem
from submissions.privacy.server_secret import ServerSecret
from submissions.records.database import Event, canonical
from submissions.records.statuses import SubmissionStatus

Status = Literal["accepted", "waiting", "held"]
"""``waiting``: the record is not stored durably yet. ``accepted``: the record is stored durably. ``held``: it
is stored durably, but a maintainer has to review the file before it is scored."""
WAITING: Final = (
    "It is recorded but not stored permanently yet. Its page shows when it is accepted, and its metrics from "
    "then on."
)


def status_sentence(status: Status, reasons: Sequence[str] = ()) -> str:
    """Return one or two sentences about a status. ``reasons`` say why the file is held."""
    match status:
        case "accepted":
            return "It is accepted and stored permanently."
        case "waiting":
            return WAITING
        case "held":
            why = "; ".join(reason.rstrip(".") for reason in reasons if reason) or "no reason was recorded"
            return f"It is held until a maintainer has reviewed it, and is scored after that. Reason: {why}."


@dataclass(frozen=True)
class Receipt:
    """A receipt for a submission. ``record`` and ``record_hash`` identify its event in the log.

    All fields before ``is_new`` are signed. They never change.
    """

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

    def facts(self) -> dict[str, Any]:
        facts = {name: getattr(self, name) for name in SIGNED}
        return {**facts, "submitted_at": self.submitted_at.isoformat(timespec="microseconds")}

    def to_json(self) -> dict[str, Any]:
        """Return the receipt as JSON: the signed fields, the signature and the current status."""
        return {"format": FORMATS["receipt"], **asdict(self), **self.facts()}


_FIELDS: Final = [each.name for each in fields(Receipt)]
SIGNED: Final = tuple(_FIELDS[: _FIELDS.index("is_new")])


@dataclass(frozen=True)
class SubmissionView:
    """A submission as its owner or a maintainer sees it.

    ``report`` is None as long as the file has no score or is held, or its record is not stored durably. In a
    suite with private labels, ``appears_at`` is when a public row appears on the board.
    ``are_figures_withdrawn`` says that the figures are hidden because the server's secret was replaced.
    """

    receipt: Receipt
    judge: str
    status: SubmissionStatus
    report: Mapping[str, Any] | None
    appears_at: datetime | None
    are_figures_withdrawn: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the submission for clients of REST, MCP and Gradio, with a sentence about its status."""
        status = asdict(self.status)
        if self.status.published_at is not None:
            status["published_at"] = self.status.published_at.isoformat()
        return {
            **self.receipt.to_json(),
            "judge_name": self.judge,
            "standing": status,
            "report": self.report,
            "appears_at": self.appears_at and self.appears_at.isoformat(),
            "message": status_sentence(self.receipt.status, self.status.reasons),
        }


class Signer:
    """A signer of receipts, with a key derived from the server's secret."""

    def __init__(self, secret: ServerSecret) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(secret.key("receipts"))

    @property
    def public_key(self) -> str:
        """The public key for checking receipts, as 64 hexadecimal digits."""
        return self._key.public_key().public_bytes_raw().hex()

    def receipt_of(self, submitted: Event, is_new: bool, status: Status) -> Receipt:
        """Build and sign the receipt of a submission from its ``submitted`` event."""
        facts = {name: submitted.body[name] for name in SIGNED if name in submitted.body}
        facts |= {"submitted_at": submitted.at, "record": submitted.sequence, "record_hash": submitted.hash}
        receipt = Receipt(**facts, is_new=is_new, status=status)
        return replace(receipt, signature=self._key.sign(canonical(receipt.facts())).hex())


def problem_of(receipt: Mapping[str, Any], public_key: str) -> str | None:
    """Return what is wrong with a receipt (as in `Receipt.to_json`), or None if its signature is valid."""
    if problem := format_problem("receipt", receipt):
        return f"the receipt {problem}"
    absent = [name for name in (*SIGNED, "signature") if name not in receipt]
    if absent:
        return f"the receipt has no {', '.join(absent)}"
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
    except ValueError:
        return "the key is not valid; copy the 64 hexadecimal digits from the Space's About page"
    try:
        signed = canonical({name: receipt[name] for name in SIGNED})
        key.verify(bytes.fromhex(receipt["signature"]), signed)
    except (InvalidSignature, ValueError, TypeError):
        return "the signature is not valid: the receipt was changed, or another server signed it"
    return None
