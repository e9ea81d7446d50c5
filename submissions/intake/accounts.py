"""Actors, and the limits of accounts: minimum age, and test files per day and per year.

An account's limits count the files of all its judges together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Literal

from arb.core.judge_info import DeclarationError, JudgeInfo, declare
from arb.core.suite import SuiteRules
from submissions.errors import PermissionDenied, RateLimited

How = Literal["local", "session", "token"]


@dataclass(frozen=True)
class Actor:
    """The person behind a request, as identified by the server.

    Attributes:
        name: The account's name in the records.
        since: The day on which the account was created, or None if unknown.
        how: How the person was identified: by a name given on the server's own machine (``local``), by
            signing in with Hugging Face (``session``), or by a bearer token (``token``).
        subject: The account's id on the Hub, which stays the same when the account is renamed.
        hub_name: The current name on the Hub, if it differs; see `submissions.records.queries.account_of`.
    """

    name: str
    is_maintainer: bool = False
    since: date | None = None
    how: How = "local"
    subject: str | None = None
    hub_name: str = ""

    @property
    def display_name(self) -> str:
        return self.hub_name or self.name


def is_same_name(name: str, other: str) -> bool:
    """Return whether two names belong to one account. As on the Hub, case is ignored."""
    return name.casefold() == other.casefold()


def require_maintainer(actor: Actor, to_do: str = "do this") -> None:
    """Raise PermissionDenied ("only maintainers may ``to_do``") unless the actor is a maintainer."""
    if not actor.is_maintainer:
        raise PermissionDenied(f"only maintainers may {to_do}")


def declare_as(actor: Actor | None, **fields: Any) -> tuple[JudgeInfo, Actor]:
    """Check the fields of a declaration. Return the declaration, with the actor's account, and the actor.

    If ``actor`` is None, as on a local Space, the account named in the fields becomes the actor. Raises
    DeclarationError with every problem, such as an account in the fields that is not the actor's.
    """
    if actor is None:
        declared = declare(**fields)
        return declared, Actor(declared.account)
    named, known = str(fields.get("account") or "").strip(), actor.display_name
    problems = []
    if named and not any(is_same_name(named, name) for name in (actor.name, known)):
        message = f"Your name: you are signed in as {known}; leave it empty, or sign in as {named}"
        problems.append(("account", message))
    try:
        declared = declare(**{**fields, "account": actor.name})
    except DeclarationError as error:
        problems += error.problems
    if problems:
        raise DeclarationError(problems)
    return declared, actor


def qualifies_on(actor: Actor, rules: SuiteRules, today: date) -> date | None:
    """Return the first day on which the account may submit, or None if its age is unknown.

    If it may submit already, this is ``today``. That is the case for maintainers, for accounts that the suite
    exempts, for names given on the server's own machine, and for everyone if the suite has no minimum age.
    """
    is_exempt = actor.is_maintainer or any(is_same_name(actor.name, name) for name in rules.age_exempt)
    if is_exempt or rules.account_age_days == 0 or actor.how == "local":
        return today
    if actor.since is None:
        return None
    return max(today, actor.since + timedelta(days=rules.account_age_days))


def age_problem(actor: Actor, rules: SuiteRules, today: date) -> str | None:
    """Return the reason why the account may not submit yet, and what to do, or None if it may submit."""
    day = qualifies_on(actor, rules, today)
    if day == today:
        return None
    asked = f"an account has to be {rules.account_age_days} days old to submit to this suite"
    if day is None:
        return (
            f"{asked}, and the Hub did not say when yours was created; sign in again, try later, or ask a "
            "maintainer to exempt your account (age_exempt in the suite's rules)"
        )
    return f"{asked}; yours was created on {actor.since} and may submit from {day}"


DAY = timedelta(hours=24)
YEAR = timedelta(days=365)


@dataclass(frozen=True)
class AccountQuota:
    """The number of test files that an account may still send.

    ``next_at`` is when it may send the next file, or None if it may send one now. ``is_suite_full`` says that
    the shared leak budget, not one of the account's own limits, is used up. ``is_reserved`` says that the
    rest of the shared budget is reserved for confirmed accounts.
    """

    left_today: int
    left_this_year: int
    next_at: datetime | None
    is_suite_full: bool = False
    is_reserved: bool = False


def remaining_quota(submitted_at: Sequence[datetime], rules: SuiteRules, now: datetime) -> AccountQuota:
    """Return how many more files an account may send, given the times of its files so far, in any order.

    A day is the last 24 hours, and a year the last 365 days.
    """
    left, waits = [], []
    for window, most in ((DAY, rules.files_a_day), (YEAR, rules.files_a_year)):
        inside = sorted(moment for moment in submitted_at if moment > now - window)
        left.append(max(0, most - len(inside)))
        if most == 0:
            waits.append(datetime.max.replace(tzinfo=now.tzinfo))  # means never
        elif len(inside) >= most:
            waits.append(inside[len(inside) - most] + window)
    return AccountQuota(min(left), left[1], max(waits, default=None))


def require_quota(found: AccountQuota, rules: SuiteRules) -> None:
    """Raise RateLimited if the account may not send a file now. The message says when it may."""
    if found.next_at is None:
        return
    when = "this suite accepts no test files"
    if found.next_at.year < 9999:
        when = f"the next one can be sent from {found.next_at:%Y-%m-%d %H:%M} UTC"
    if found.is_suite_full:
        raise RateLimited(f"{suite_full_message(found.is_reserved)}; {when}", found.next_at)
    used = f"{rules.files_a_day} in 24 hours" if found.left_this_year else f"{rules.files_a_year} in a year"
    reached = f"the limit of scored test files is reached ({used}, over all judges of an account)"
    raise RateLimited(f"{reached}; {when}", found.next_at)


def suite_full_message(is_reserved: bool) -> str:
    """Return the message that the leak budget shared by all, or by unconfirmed accounts, is used up."""
    if not is_reserved:
        return "all accounts together have used up this suite's leak budget for the year"
    return (
        "unconfirmed accounts have used up their part of this suite's leak budget for the year; ask a "
        "maintainer to confirm your account"
    )
