"""Actions of owners and maintainers on submissions, judges and accounts; each adds an event."""

import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, Literal

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from arb.core.judge_info import checked_name
from submissions.errors import PermissionDenied, RateLimited, SubmissionError
from submissions.intake.accounts import (
    YEAR,
    Actor,
    is_same_name,
    require_maintainer,
    require_quota,
    suite_full_message,
)
from submissions.privacy.disclosure import DisclosurePolicy
from submissions.privacy.leak_budget import budget_fits_from, file_cost, quota_of, row_cost
from submissions.records.database import Account, Event, Submission, snapshot
from submissions.records.event_log import Kind, add_event, find_judge, recording
from submissions.records.queries import (
    account_of,
    current_statuses,
    find_score,
    has_score,
    owned_submissions,
    public_score,
)
from submissions.records.statuses import SubmissionStatus, SubmissionStatuses
from submissions.resources import Resources
from submissions.scoring.scorer import finish_scoring

Decision = Literal["hidden", "shown", "verified", "rejected", "released", "label_exposed"]
AccountChange = Literal["banned", "unbanned", "confirmed", "unconfirmed"]
REASON_LENGTH: Final = 500


class Actions:
    """A base class for services whose actions add events in the name of an actor."""

    def __init__(self, app: Resources) -> None:
        self.app = app

    def _add(self, session: Session, kind: Kind, actor: Actor, body: Mapping[str, Any]) -> Event:
        return add_event(session, kind, actor.name, self.app.clock(), dict(body))


def checked_text(text: str, if_empty: str | None, max_length: int) -> str:
    """Check that ``text`` can be stored in an event, and return it without surrounding spaces.

    Raises SubmissionError if the text is too long or invalid. ``if_empty`` is the message for an empty text;
    None allows an empty text.
    """
    text = text.strip()
    if not text and if_empty is not None:
        raise SubmissionError(if_empty)
    if len(text) > max_length:
        raise SubmissionError(f"the text is longer than {max_length:,} characters; shorten it")
    if not is_utf8(text):
        raise SubmissionError("the text contains invalid Unicode; write it again")
    if any(unicodedata.category(character) == "Cc" and character not in "\t\r\n" for character in text):
        raise SubmissionError("the text contains control characters; remove them")
    return text


def checked_line(text: str, if_empty: str | None, max_length: int) -> str:
    """Return the text as `checked_text` does, but on one line and with single spaces."""
    return checked_text(" ".join(text.split()), if_empty, max_length)


def is_utf8(text: str) -> bool:
    """Return whether a string can be stored as UTF-8. Lone surrogates, which JSON may contain, cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class ModerationService(Actions):
    """The actions of owners and maintainers on submissions, judges and accounts.

    Each action returns its event. It raises KeyError if the submission or judge does not exist,
    PermissionDenied if the actor is not allowed to act, and SubmissionError if the status does not allow it.
    """

    def __init__(self, app: Resources, accounts: "ModerationService | None" = None) -> None:
        """In a further suite, ``accounts`` is the service of the default suite, which has the accounts."""
        super().__init__(app)
        self._accounts = accounts

    def identify(self, actor: Actor, for_good: bool = False) -> Actor:
        """Return the actor under the name that its account has in the records (`queries.account_of`).

        With ``for_good``, the account's id and current name on the Hub are recorded as well.
        """
        if self._accounts is not None:
            return self._accounts.identify(actor, for_good)
        subject = actor.subject
        if subject is None:
            return actor
        name = actor.hub_name or actor.name
        actor = replace(actor, name=name)
        with snapshot(self.app.engine) as session:
            found = current_statuses(session)
            account = account_of(session, found, actor)
            known = (found.accounts.get(subject), found.hub_names.get(account))
        if for_good and self.app.durability.closed is None and known != (account, name):
            with recording(self.app.engine) as session:
                account = account_of(session, current_statuses(session), actor)
                body = {"subject": subject, "account": account, "name": name}
                add_event(session, "identified", account, self.app.clock(), body)
        return replace(actor, name=account, hub_name=name)

    def withdraw(self, submission_id: str, actor: Actor, reason: str = "") -> Event:
        """Remove a submission from the board permanently. It still counts towards the account's limits."""
        with recording(self.app.engine) as session:
            submission, found = self._of(session, submission_id, owner=actor)
            if found.of(submission.id).is_withdrawn:
                raise SubmissionError("this submission is already withdrawn")
            body = {"submission_id": submission.id, "reason": _reason(reason, if_empty=None)}
            return self._add(session, "withdrawn", actor, body)

    def rename(self, account: str, judge: str, to: str, actor: Actor) -> Event:
        """Rename a judge from ``judge`` to ``to``; it keeps its submissions."""
        with recording(self.app.engine) as session:
            found = current_statuses(session)
            first = found.first_name_of(account, judge)
            owner = find_judge(session, account, first)
            if owner is None or found.name_of(account, first) != judge:
                raise KeyError(judge)
            _require_owner(owner.account.name, actor)
            name = checked_name("judge", to)
            if name == judge:
                raise SubmissionError("the judge already has this name")
            taken = find_judge(session, account, found.first_name_of(account, name))
            if taken is not None and taken.id != owner.id:
                raise SubmissionError(f"{account} already has a judge of that name; choose another name")
            return self._add(session, "renamed", actor, {"account": account, "judge": first, "to": name})

    def publish(self, submission_id: str, actor: Actor) -> Event:
        """Make a row public, in a suite with private labels. Also raises RateLimited."""
        if self.app.suite.labels_are_public:
            raise SubmissionError("rows of this suite are public from the start")
        with recording(self.app.engine) as session:
            submission, found = self._of(session, submission_id, owner=actor)
            status = found.of(submission.id)
            if status.published_at is not None:
                raise SubmissionError("this row is already public, or will be in the next round")
            if not status.is_on_the_board:
                raise SubmissionError(
                    "only a submission that is not held, hidden, rejected or withdrawn can be made public"
                )
            self._check_public_row(session, submission, found, row_cost(self.app.suite.rules))
            return self._add(session, "published", actor, {"submission_id": submission.id})

    def refresh(self, submission_id: str, actor: Actor, label_version: str | None) -> Event:
        """Show a submission's figures under the current labels, in a suite with private labels.

        Showing new figures costs leak budget: as much as a new file, plus a new row if the row is public.
        Also raises RateLimited.
        """
        if self.app.suite.labels_are_public:
            raise SubmissionError("this suite's labels are public, so the current figures are shown already")
        with recording(self.app.engine) as session:
            submission, found = self._of(session, submission_id, owner=actor)
            status, current = found.of(submission.id), public_score(session, submission.id, found)
            if not status.is_on_the_board:
                raise SubmissionError("this submission is held, hidden, rejected or withdrawn")
            if found.are_figures_withdrawn:
                raise SubmissionError(
                    "the server's secret was replaced, so all metrics are hidden until the Space's operator "
                    "runs `accept-charge`"
                )
            if find_score(session, submission.id, label_version or "") is None:
                raise SubmissionError(
                    "it has no score under the current labels yet; ask a maintainer to re-score"
                )
            if current is not None and current.label_version == label_version:
                raise SubmissionError("its metrics are already computed with the current labels")
            account, rules = submission.judge.account.name, self.app.suite.rules
            require_quota(quota_of(session, self.app.suite, account, found, self.app.clock()), rules)
            if status.published_at is not None:
                self._check_public_row(session, submission, found, file_cost(rules) + row_cost(rules))
            body = {"submission_id": submission.id, "label_version": label_version}
            return self._add(session, "refreshed", actor, body)

    def decide(self, decision: Decision, submission_id: str, actor: Actor, reason: str) -> Event:
        """Record a maintainer's decision on a submission.

        Releasing a held file charges its figures to the leak budget; if that is used up, RateLimited is
        raised. Rejecting a file that has no score yet refunds it.
        """
        require_maintainer(actor)
        with recording(self.app.engine) as session:
            submission, found = self._of(session, submission_id)
            status = found.of(submission.id)
            if problem := conflict_of(decision, status):
                raise SubmissionError(problem)
            body = {"submission_id": submission.id, "reason": _reason(reason)}
            if decision == "released" and not (status.is_refunded or self.app.suite.labels_are_public):
                self._check_budget(session, submission, found, file_cost(self.app.suite.rules))
            event = self._add(session, decision, actor, body)
            if decision == "rejected":
                self._refund(session, submission.id, status, actor, "rejected before it was scored")
        if decision == "released":
            finish_scoring(self.app)
        return event

    def decide_account(
        self, decision: AccountChange, account: str, actor: Actor, reason: str, even_if_unknown: bool = False
    ) -> Event:
        """Record a maintainer's decision on an account.

        A banned account cannot submit. Its files without a score are refunded, but figures that it has seen
        stay charged, and its rows that are not public yet stay private. A confirmed account may use the
        reserved part of the leak budget. A name that is not in the records is refused, because it may be a
        typing error; ``even_if_unknown`` allows it.
        """
        require_maintainer(actor)
        account = account.strip()
        if not account:
            raise SubmissionError("name an account")
        with recording(self.app.engine) as session:
            found, state = current_statuses(session), decision.removeprefix("un")
            is_so = found.is_banned(account) if state == "banned" else found.is_confirmed(account)
            if is_so == (decision == state):
                raise SubmissionError(f"the account {account} is {'' if is_so else 'not '}{state}")
            if decision == state and not (even_if_unknown or _is_known(session, account)):
                raise SubmissionError(
                    f"the records have no account named {account}; check the spelling, or confirm that you "
                    "mean an unknown account"
                )
            event = self._add(session, decision, actor, {"account": account, "reason": _reason(reason)})
            if decision == "banned":
                self._refund_account(session, account, found, actor)
            return event

    def _refund_account(
        self, session: Session, account: str, found: SubmissionStatuses, actor: Actor
    ) -> None:
        """Refund a banned account's unscored files, and unpublish its rows that have not appeared yet."""
        policy = DisclosurePolicy(self.app.suite, None)
        round_now = policy.round(self.app.clock())
        for submission_id in self._submissions_of(session, account):
            status = found.of(submission_id)
            self._refund(session, submission_id, status, actor, "its account was banned before it was scored")
            if status.published_at is not None and policy.round(status.published_at) >= round_now:
                self._add(session, "unpublished", actor, {"submission_id": submission_id})

    def _refund(
        self, session: Session, submission_id: str, status: SubmissionStatus, actor: Actor, reason: str
    ) -> None:
        """Refund a submission if it has no score, since nobody can have seen its figures."""
        if not (status.is_refunded or has_score(session, submission_id)):
            self._add(session, "refunded", actor, {"submission_id": submission_id, "reason": reason})

    def _of(
        self, session: Session, submission_id: str, owner: Actor | None = None
    ) -> tuple[Submission, SubmissionStatuses]:
        """Return a submission and all statuses. Raises KeyError, PermissionDenied."""
        submission = session.get(Submission, submission_id)
        if submission is None or submission.suite != self.app.suite.name:
            raise KeyError(submission_id)
        if owner is not None:
            _require_owner(submission.judge.account.name, owner)
        return submission, current_statuses(session)

    def _check_budget(
        self, session: Session, submission: Submission, found: SubmissionStatuses, cost: float
    ) -> None:
        """Raise RateLimited unless ``cost`` fits into both the account's leak budget and the shared one."""
        account, now = submission.judge.account.name, self.app.clock()
        fits = budget_fits_from(session, self.app.suite, account, found, cost, now)
        if fits.own > now and fits.own >= fits.shared:
            raise _limited("the account has used up its leak budget for the year", fits.own)
        if fits.shared > now:
            raise _limited(suite_full_message(fits.is_reserved), fits.shared)

    def _check_public_row(
        self, session: Session, submission: Submission, found: SubmissionStatuses, cost: float
    ) -> None:
        """Raise RateLimited if the account has used up its public rows or its leak budget for the year."""
        times = []  # when rows were made public, or public rows refreshed
        for name in self._submissions_of(session, submission.judge.account.name):
            if (at := found.of(name).published_at) is not None:
                times += [at, *(asked for asked, _ in found.refreshed.get(name, ()) if asked >= at)]
        most = self.app.suite.rules.public_rows_a_year
        rows = sorted(at for at in times if at > self.app.clock() - YEAR)
        if len(rows) >= most:
            next_at = rows[len(rows) - most] + YEAR if most else datetime.max.replace(tzinfo=UTC)
            raise _limited(f"the limit of {most} public rows per account and year is reached", next_at)
        self._check_budget(session, submission, found, cost)

    def _submissions_of(self, session: Session, account: str) -> list[str]:
        """Return the ids of an account's submissions in order of arrival."""
        owned = owned_submissions(session, self.app.suite.name)
        return [each.id for each in owned if is_same_name(each.account, account)]


def _limited(why: str, next_at: datetime) -> RateLimited:
    when = f"; you can try again from {next_at:%Y-%m-%d %H:%M} UTC" if next_at.year < 9999 else ""
    return RateLimited(why + when, next_at)


def _is_known(session: Session, name: str) -> bool:
    """Return whether an account of this name has submitted a file or is the actor of an event."""
    actors = select(Event.actor).where(func.lower(Event.actor) == name.lower()).limit(1)
    names = session.scalars(select(Account.name))
    return session.scalar(actors) is not None or any(is_same_name(known, name) for known in names)


def _require_owner(account: str, actor: Actor) -> None:
    if not (actor.is_maintainer or is_same_name(account, actor.name)):
        raise PermissionDenied("only its owner and maintainers may do this")


def conflict_of(decision: Decision, status: SubmissionStatus) -> str | None:
    """Return the reason why this status rules out a decision, as a message, or None if it does not."""
    if status.is_withdrawn:
        return "this submission is withdrawn"
    if decision == "released":
        return None if status.is_held else "this submission is not held"
    is_so = not status.is_hidden if decision == "shown" else getattr(status, f"is_{decision}")
    return f"this submission is already {decision.replace('_', ' ')}" if is_so else None


def _reason(text: str, if_empty: str | None = "give a reason; it is stored with the decision") -> str:
    return checked_line(text, if_empty, REASON_LENGTH)
