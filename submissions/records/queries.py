"""Queries of the records: accounts, submissions, label versions, and the scores that may be shown."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple, TypeVar

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session, joinedload

from arb.core.judge_info import NAME_LENGTH
from submissions.intake.accounts import Actor, is_same_name
from submissions.records.database import Account, Event, JudgeRow, ScoreRow, Submission
from submissions.records.event_log import FIGURE_KINDS, KINDS_OFF_THE_BOARD, STATUS_KINDS, events_after
from submissions.records.statuses import SubmissionStatuses, fold_statuses

SCORES_AT_ONCE = 500
POLICY: Final = "strict"
"""The policy that every submission is scored with. Queries therefore do not filter by policy."""


def current_statuses(session: Session) -> SubmissionStatuses:
    return fold_statuses(events_after(session, kinds=STATUS_KINDS))


def account_of(session: Session, found: SubmissionStatuses, actor: Actor) -> str:
    """Return the name of an actor's account in the records.

    Newer records say which account belongs to the actor's id on the Hub. Older records have only names: an
    account belongs to the actor of the same name, unless the actor joined the Hub after it was created. If
    the name belongs to somebody else, the actor gets a new account whose name has a suffix. On a local Space,
    actors have no id and only the name counts.
    """
    if actor.subject is None:
        return actor.name
    if (known := found.accounts.get(actor.subject)) is not None:
        return known
    named = func.lower(Account.name) == actor.name.lower()
    first = session.execute(select(Account.name, Account.created_at).where(named)).first()
    is_taken = any(is_same_name(actor.name, name) for name in found.accounts.values())
    is_older = first is None or actor.since is None or actor.since <= first.created_at.date()
    if is_taken or not is_older:
        ending = hashlib.sha256(actor.subject.encode()).hexdigest()[:6]
        return f"{actor.name[: NAME_LENGTH - 7]}~{ending}"
    return actor.name if first is None else first.name


class OwnedSubmission(NamedTuple):
    """A submission with the original names of its account and its judge."""

    id: str
    submitted_at: datetime
    account: str
    judge: str


def owned_submissions(session: Session, suite: str) -> list[OwnedSubmission]:
    """Return the submissions of a suite in order of submission."""
    wanted = select(Submission.id, Submission.submitted_at, Account.name, JudgeRow.name)
    wanted = wanted.select_from(Submission).join(JudgeRow).join(Account).where(Submission.suite == suite)
    wanted = wanted.order_by(Submission.submitted_at, Submission.id)
    return [OwnedSubmission(*row) for row in session.execute(wanted)]


def counted_submissions(
    session: Session, suite: str, account: str, found: SubmissionStatuses
) -> list[datetime]:
    """Return the times of the test files that count towards an account's limits.

    A refunded file does not count unless it is scored later. A file counts again each time its owner asks for
    metrics under newer labels.
    """
    moments = []
    for submission_id, moment, owner, _ in owned_submissions(session, suite):
        if owner == account:
            moments += [at for at, _ in found.refreshed.get(submission_id, ())]
            if not found.of(submission_id).is_refunded:
                moments.append(found.counted_at.get(submission_id, moment))
    return moments


def unscored_submissions(session: Session, suite: str, label_version: str) -> Sequence[Submission]:
    """Return the submissions of a suite without a score under a label version, in order of submission."""
    scored = select(ScoreRow.submission_id).where(ScoreRow.label_version == label_version)
    waiting = select(Submission).where(Submission.suite == suite, Submission.id.not_in(scored))
    return session.scalars(waiting.order_by(Submission.submitted_at, Submission.id)).all()


def scores_of(session: Session, submission_id: str) -> Sequence[ScoreRow]:
    wanted = select(ScoreRow).where(ScoreRow.submission_id == submission_id)
    return session.scalars(wanted.order_by(ScoreRow.id)).all()


def public_score(session: Session, submission_id: str, statuses: SubmissionStatuses) -> ScoreRow | None:
    """Return the score that the owner of a submission may see if labels are private, or None."""
    history = disclosure_history(scores_of(session, submission_id), statuses, submission_id)
    return current_score(history, statuses)


class ScoreLine(NamedTuple):
    """A score without its report, which is large."""

    id: int
    submission_id: str
    submitted_at: datetime
    label_version: str
    scored_at: datetime
    account: str
    judge: str


AnyScore = TypeVar("AnyScore", ScoreRow, ScoreLine)


def disclosure_history(
    scores: Sequence[AnyScore], found: SubmissionStatuses, submission_id: str
) -> list[tuple[AnyScore, datetime]]:
    """Return the scores of a submission with private labels that were shown, with the times.

    Every figure that is shown uses up some of the account's leak budget. A correction of labels must not use
    it up. Therefore a submission keeps the figures of the labels under which it was first scored until its
    owner asks for newer ones. ``scores`` are all scores of the submission, oldest first.
    """
    history = [(score, score.scored_at) for score in scores[:1]]
    for at, version in found.refreshed.get(submission_id, ()):
        history += [(score, at) for score in scores if score.label_version == version]
    return history


def current_score(history: Sequence[tuple[AnyScore, datetime]], found: SubmissionStatuses) -> AnyScore | None:
    """Return the last score of a `disclosure_history`, which is the one to show now, or None.

    After the secret has been replaced, nothing is shown until an operator accepts the charge. Scores that
    were computed with the old secret are never shown again.
    """
    if not history or found.are_figures_withdrawn:
        return None
    score = history[-1][0]
    return None if score.label_version in found.retired_versions else score


def score_lines(session: Session, suite: str, label_version: str | None = None) -> list[ScoreLine]:
    """Return the scores of a suite under one label version, or all of them, in order of submission."""
    of_submission = (ScoreRow.id, Submission.id, Submission.submitted_at, ScoreRow.label_version)
    wanted = select(*of_submission, ScoreRow.scored_at, Account.name, JudgeRow.name)
    wanted = wanted.select_from(ScoreRow).join(Submission).join(JudgeRow).join(Account)
    wanted = wanted.where(Submission.suite == suite)
    wanted = wanted.order_by(Submission.submitted_at, Submission.id, ScoreRow.id)
    if label_version is not None:
        wanted = wanted.where(ScoreRow.label_version == label_version)
    return [ScoreLine(*line) for line in session.execute(wanted)]


def disclosure_histories(
    session: Session, suite: str, found: SubmissionStatuses
) -> list[list[tuple[ScoreLine, datetime]]]:
    """Return the `disclosure_history` of each scored submission of a suite, in order of submission."""
    by_submission: dict[str, list[ScoreLine]] = {}
    for score in score_lines(session, suite):
        by_submission.setdefault(score.submission_id, []).append(score)
    return [disclosure_history(scores, found, name) for name, scores in by_submission.items()]


def find_submission(session: Session, suite: str, submission_id: str) -> Submission | None:
    """Return a submission of a suite by its id, with its judge and account, or None if the id is unknown."""
    # Ids have 32 digits, older ones 12. PostgreSQL raises an error for some other texts, such as "\0".
    if not re.fullmatch("[0-9a-f]{12}|[0-9a-f]{32}", submission_id):
        return None
    found = session.get(Submission, submission_id)
    return found if found is not None and found.suite == suite else None


def submissions_not_durable(session: Session, through: int) -> frozenset[str]:
    """Return the ids of submissions whose figures must not be shown until later events are durable."""
    waiting = select(Event.subject).where(Event.sequence > through, Event.kind.in_(FIGURE_KINDS))
    return frozenset(session.scalars(waiting))


def find_score(session: Session, submission_id: str, label_version: str) -> ScoreRow | None:
    of_submission = select(ScoreRow).where(ScoreRow.submission_id == submission_id)
    return session.scalar(of_submission.where(ScoreRow.label_version == label_version))


def has_score(session: Session, submission_id: str) -> bool:
    scored = select(ScoreRow.id).where(ScoreRow.submission_id == submission_id).limit(1)
    return session.scalar(scored) is not None


def state_of_board(session: Session) -> int:
    """Return the sequence of the last event that a board depends on; annotations do not count."""
    last = select(Event.sequence).where(Event.kind.not_in(sorted(KINDS_OFF_THE_BOARD)))
    return session.scalar(last.order_by(Event.sequence.desc()).limit(1)) or 0


def fullest_label_version(session: Session, suite: str) -> str | None:
    """Return the label version with the most scores, for servers without labels.

    The newest version is not always a good choice: if re-scoring was interrupted, it lacks scores.
    """
    by_number = _label_versions(suite).order_by(func.count().desc(), func.max(ScoreRow.id).desc())
    return session.scalar(by_number.limit(1))


def versions_scored(session: Session, suite: str) -> list[str]:
    """Return the label versions under which submissions were scored, in the order of their first scores."""
    return list(session.scalars(_label_versions(suite).order_by(func.min(ScoreRow.id))))


def _label_versions(suite: str) -> Select[str]:
    of_suite = select(ScoreRow.label_version).join(Submission).where(Submission.suite == suite)
    return of_suite.group_by(ScoreRow.label_version)


def scores_by_id(session: Session, ids: Sequence[int]) -> Iterator[ScoreRow]:
    """Yield scores with their submissions. They are detached from the session, since reports are large."""
    for start in range(0, len(ids), SCORES_AT_ONCE):
        wanted = select(ScoreRow).where(ScoreRow.id.in_(ids[start : start + SCORES_AT_ONCE]))
        yield from session.scalars(wanted.options(joinedload(ScoreRow.submission)))
        session.expunge_all()
