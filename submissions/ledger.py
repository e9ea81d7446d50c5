"""Entries in the records that come of a file: submitted, held, scored, given back."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from dataset_script.suite import Suite
from dataset_script.suite_rules import SuiteRules
from submissions.chain import Record, records_of_submission, take_turn
from submissions.database import transaction
from submissions.declaration import Declaration
from submissions.limits import Allowance, allowance, limit_message
from submissions.lookup import counted_submissions, current_standings, is_scored
from submissions.predictions import Upload
from submissions.projection import DECLARED, add_record, find_judge
from submissions.records import Submission

THE_SERVER = "the server"
"""Who acts where no account does."""


class LimitReached(Exception):
    """An account has no file left for now; the message says until when."""

    def __init__(self, found: Allowance, rules: SuiteRules) -> None:
        self.allowance = found
        super().__init__(limit_message(found, rules))


class AccountBanned(Exception):
    """A maintainer has closed the account to submissions."""


@dataclass(frozen=True)
class Recorded:
    """A submission in the records: its row, the record that it is made from, and whether it is new."""

    submission: Submission
    record: Record
    is_new: bool


def record_submission(
    engine: Engine,
    suite: Suite,
    upload: Upload,
    declaration: Declaration,
    label_version: str,
    clock: Callable[[], datetime],
    reasons_to_hold: Sequence[str] = (),
) -> Recorded:
    """The record of a judge's test file, made unless it is there; limits are counted in the same transaction.

    Raises LimitReached and AccountBanned for a new file; one that is there already is told of as it is.
    """
    with transaction(engine) as session:
        take_turn(session)
        found = current_standings(session)
        account = declaration.account
        judge = found.first_name_of(account, declaration.judge)
        existing = _existing(session, suite.name, account, judge, upload)
        if existing is not None:
            return Recorded(existing, records_of_submission(session, existing.id)[0], is_new=False)
        if account in found.banned:
            raise AccountBanned(f"the account {account} is closed to submissions; a maintainer says why")
        now = clock()
        came = counted_submissions(session, suite.name, account, label_version, found)
        left = allowance(came, suite.rules, now)
        if left.next_at is not None:
            raise LimitReached(left, suite.rules)
        body = _body(suite.name, upload, declaration, judge, label_version)
        record = add_record(session, "submitted", account, now, body)
        if reasons_to_hold:
            held = {"submission_id": body["submission_id"], "reasons": list(reasons_to_hold)}
            add_record(session, "held", THE_SERVER, now, held)
        return Recorded(session.get_one(Submission, body["submission_id"]), record, is_new=True)


def record_score(engine: Engine, account: str, score: dict[str, Any], at: datetime) -> bool:
    """Write a score (the body of a record ``scored``); False when another process wrote that one first."""
    wanted = (score["submission_id"], score["label_version"], score["policy"])
    try:
        with transaction(engine) as session:
            add_record(session, "scored", account, at, score)
    except IntegrityError:
        if not is_scored(engine, *wanted):
            raise
        return False
    return True


def give_back(engine: Engine, submission_id: str, reason: str, at: datetime) -> None:
    """Let a submission not count towards the limits: a fault of ours kept it from its score."""
    with transaction(engine) as session:
        take_turn(session)
        if not current_standings(session).of(submission_id).is_refunded:
            body = {"submission_id": submission_id, "reason": reason}
            add_record(session, "refunded", THE_SERVER, at, body)


def _existing(session: Session, suite: str, account: str, judge: str, upload: Upload) -> Submission | None:
    owner = find_judge(session, account, judge)
    if owner is None:
        return None
    return session.scalar(
        select(Submission).where(
            Submission.judge_id == owner.id,
            Submission.suite == suite,
            Submission.split == upload.check.split,
            Submission.file_sha256 == upload.sha256,
        )
    )


def _body(
    suite: str, upload: Upload, declaration: Declaration, judge: str, label_version: str
) -> dict[str, Any]:
    parts = (declaration.account, judge, suite, upload.check.split, upload.sha256)
    return {
        "submission_id": hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12],
        "account": declaration.account,
        "judge": judge,
        "suite": suite,
        "split": upload.check.split,
        "file_sha256": upload.sha256,
        "content_hash": upload.check.aligned.content_hash(),
        "file_name": upload.file_name,
        "size_bytes": len(upload.content),
        "rows": upload.check.rows,
        "coverage": upload.check.coverage,
        "label_version": label_version,
        **{name: getattr(declaration, name) for name in DECLARED},
    }
