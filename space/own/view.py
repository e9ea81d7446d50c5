"""A submission as its page shows it: status in words, figures, what may be done with it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from space.own.receipt_link import receipt_link
from space.standing_words import StatusText, describe_status
from submissions.accounts import Actor
from submissions.overview import ModerationAction, actions_on
from submissions.service import SubmissionService
from submissions.told import SubmissionView


@dataclass(frozen=True)
class OwnView:
    """One submission. ``report`` is what the reader may see of its score, None before there is one."""

    id: str
    account: str
    judge: str
    submitted_at: datetime
    file_sha256: str
    label_version: str
    told: StatusText
    report: Mapping[str, Any] | None
    receipt_link: str
    acts: tuple[ModerationAction, ...]
    has_row: bool
    may_withdraw: bool
    may_publish: bool
    appears_at: datetime | None


def view_submission(service: SubmissionService, submission_id: str, actor: Actor) -> OwnView:
    """What an actor may see of a submission. Raises KeyError, PermissionDenied."""
    found = service.submission(submission_id, actor)
    receipt, standing = found.receipt, found.status
    acts = actions_on(service, submission_id)
    is_private = not service.suite.labels_are_public
    now = service.clock()
    told = describe_status(
        standing,
        is_scored=found.report is not None,
        lasts=receipt.status != "waiting",
        is_private=is_private,
        appears_at=found.appears_at,
        now=now,
        reasons={act.kind: act.reason for act in acts},
    )
    return OwnView(
        id=receipt.submission_id,
        account=receipt.account,
        judge=found.judge,
        submitted_at=receipt.submitted_at,
        file_sha256=receipt.file_sha256,
        label_version=receipt.label_version,
        told=told,
        report=found.report,
        receipt_link=receipt_link(receipt),
        acts=tuple(acts),
        has_row=told.word == "on the board",
        may_withdraw=not standing.is_withdrawn,
        may_publish=may_publish(found, is_private),
        appears_at=found.appears_at,
    )


def may_publish(found: SubmissionView, is_private: bool) -> bool:
    """Whether its owner may ask for a public row: in a private suite, once, while nothing speaks against."""
    return is_private and found.status.published_at is None and found.status.is_on_the_board


def overall_only(report: Mapping[str, Any]) -> dict[str, Any]:
    """A report without its benchmarks, for a list."""
    labels = {label: found and {**found, "by_benchmark": {}} for label, found in report["labels"].items()}
    return {**report, "labels": labels}
