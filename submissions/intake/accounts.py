"""Actors, and the limits of accounts: their minimum age, and their test files per day and per year.

The limits count the files of all judges of an account together.
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

    ``name`` is the account's name in the records; ``hub_name`` is its present name on the Hub if that differs
    (see `submissions.records.queries.account_of`). ``subject`` is the account's id on the Hub, which stays
    the same when it is renamed. ``since`` is the day on which it was created, None if unknown. ``how`` says
    how they identified themselves: by a name given on the machine itself (``local``), by signing in with
    Hugging Face (``session``), or by a bearer token that the Hub confirmed (``token``).
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
    """Return whether two names belong to one account; case is ignored, as in names on the Hub."""
    return name.casefold() == other.casefold()


def require_maintainer(actor: Actor, to_do: str = "do this") -> None:
    """Raise PermissionDenied unless the actor is a maintainer; ``to_do`` completes the message."""
    if not actor.is_maintainer:
        raise PermissionDenied(f"only maintainers may {to_do}")


def declare_as(actor: Actor | None, **fields: Any) -> tuple[JudgeInfo, Actor]:
    """Check the fields of a declaration, and return it under the actor's name together with the actor.

    If ``actor`` is None (on a local Space), the account named in the fields becomes the actor.

    Raises:
        DeclarationError: Lists every problem, including an account in the fields that is not the actor's.
    """
    if actor is None:
        declared = declare(**fields)
        return declared, Actor(declared.account)
    named = str(fields.get("account") or "").strip()
    problems = []
    if named and not any(is_same_name(named, name) for name in (actor.name, actor.display_name)):
        known = actor.display_name
        message = f"Your name: you are signed in as {known}; leave it empty, or sign in as {named}"
        problems.append(("account", message))
    try:
        declared = declare(**{**fields, "account": actor.name})
    except DeclarationError as error:
        raise DeclarationError([*problems, *error.problems]) from None
    if problems:
        raise DeclarationError(problems)
    return declared, actor


def qualifies_on(actor: Actor, rules: SuiteRules, today: date) -> date | None:
    """Return the first day on which the account may submit (``today`` if it may already), or None.

    None means that the age of the account is unknown. The age does not matter if the suite has no minimum,
    for maintainers, for accounts that the suite exempts, and for names given on the server's own machine.
    """
    is_exempt = actor.is_maintainer or any(is_same_name(actor.name, name) for name in rules.age_exempt)
    if is_exempt or rules.account_age_days == 0 or actor.how == "local":
        return today
    if actor.since is None:
        return None
    return max(today, actor.since + timedelta(days=rules.account_age_days))


def age_problem(actor: Actor, rules: SuiteRules, today: date) -> str | None:
    """Return why the account may not submit yet and what to do, or None if it may."""
    day = qualifies_on(actor, rules, today)
    if day == today:
        return None
    asked = f"an account has to be {rules.account_age_days} days old to submit to this suite"
    if day is None:
        return (
            f"{asked}, and the Hub did not say when yours was created; sign in again, try later, or ask a "
            "maintainer to exempt it (age_exempt in the suite's rules)"
        )
    return f"{asked}; yours was created on {actor.since} and may submit from {day}"


DAY = timedelta(hours=24)
YEAR = timedelta(days=365)


@dataclass(frozen=True)
class AccountQuota:
    """How many test files an account may still send, and when it may send the next (``next_at``, None: now).

    ``is_suite_full`` says that the shared leak budget is used up, rather than the account's own limits.
    ``is_reserved`` says that the rest of that budget is reserved for confirmed accounts.
    """

    left_today: int
    left_this_year: int
    next_at: datetime | None
    is_suite_full: bool = False
    is_reserved: bool = False


def remaining_quota(submitted_at: Sequence[datetime], rules: SuiteRules, now: datetime) -> AccountQuota:
    """Return how many more files the rules allow to an account that sent files at these times, in any order.

    A day is the last 24 hours, a year the last 365 days.
    """
    left_today, next_today = _left(submitted_at, DAY, rules.files_a_day, now)
    left_this_year, next_this_year = _left(submitted_at, YEAR, rules.files_a_year, now)
    waits = [moment for moment in (next_today, next_this_year) if moment is not None]
    return AccountQuota(min(left_today, left_this_year), left_this_year, max(waits, default=None))


def _left(
    submitted_at: Sequence[datetime], window: timedelta, most: int, now: datetime
) -> tuple[int, datetime | None]:
    """Return how many more files the window allows, and if that is 0, when the next one may be sent."""
    inside = sorted(moment for moment in submitted_at if moment > now - window)
    left = max(0, most - len(inside))
    if left:
        return left, None
    if most == 0:  # the last moment of the calendar means never
        return 0, datetime.max.replace(tzinfo=now.tzinfo)
    return 0, inside[len(inside) - most] + window


def require_quota(found: AccountQuota, rules: SuiteRules) -> None:
    """Raise RateLimited if the account may send no file now; the message says when it may send the next."""
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
    """Return the message that the shared leak budget is used up, or its part for unconfirmed accounts."""
    if is_reserved:
        return (
            "unconfirmed accounts have used up their part of this suite's leak budget for the year; ask a "
            "maintainer to confirm your account"
        )
    return "all accounts together have used up this suite's leak budget for the year"
