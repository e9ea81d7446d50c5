"""Who submits or moderates; from which day on, and how many test files an account may have scored. Pure.

Files are counted by day and by year, over all judges of an account.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Literal

from arb.core.judge_info import DeclarationError, JudgeInfo, declare
from arb.core.suite import SuiteRules

How = Literal["local", "session", "token"]


@dataclass(frozen=True)
class Actor:
    """Somebody who acts, as the server knows them.

    ``since`` is the day on which the account was made, None where nobody can say. ``how`` they were known:
    ``local``, a name said on the machine itself; ``session``, signed in with Hugging Face; ``token``, a
    bearer token that the Hub confirmed. ``subject`` is the Hub's id of the account, which stays when it is
    renamed; ``name`` is the account's name in the records, and ``hub_name`` the one it has now where that is
    another (`submissions.records.queries.account_of`).
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
    """Whether two names are of one account: the Hub's names differ by more than their capitals."""
    return name.casefold() == other.casefold()


def declare_as(actor: Actor | None, **fields: Any) -> tuple[JudgeInfo, Actor]:
    """Check a declaration in the name of an actor, whatever account the form names.

    Without an actor (on one's own machine) the form's name counts.

    Raises:
        DeclarationError: Lists every problem, also if the form names another account.
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
    """Return the first day on which the account may submit, ``today`` if it may already.

    The age does not count if the suite asks for none, for maintainers, for accounts that the suite exempts,
    and for names given on the machine itself. None if it is not known when the account was made.
    """
    is_exempt = actor.is_maintainer or any(is_same_name(actor.name, name) for name in rules.age_exempt)
    if is_exempt or rules.account_age_days == 0 or actor.how == "local":
        return today
    if actor.since is None:
        return None
    return max(today, actor.since + timedelta(days=rules.account_age_days))


def age_problem(actor: Actor, rules: SuiteRules, today: date) -> str | None:
    """Why the account may not submit yet, from when it may, and what else to do; None where it may."""
    day = qualifies_on(actor, rules, today)
    if day == today:
        return None
    asked = f"an account has to be {rules.account_age_days} days old to submit to this suite"
    if day is None:
        return (
            f"{asked}, and the Hub did not say when yours was made; sign in again or try later, or ask a "
            "maintainer to exempt it (age_exempt in the suite's rules)"
        )
    return f"{asked}; yours, made on {actor.since}, may from {day}"


DAY = timedelta(hours=24)
YEAR = timedelta(days=365)


@dataclass(frozen=True)
class AccountQuota:
    """What is left to an account; ``next_at`` is when the next file may come, None if one may come now.

    ``is_suite_full``: what several accounts together may be shown is used up, not the account's own limits.
    ``is_reserved``: what is left of that is reserved for confirmed accounts, of which this is none.
    """

    left_today: int
    left_this_year: int
    next_at: datetime | None
    is_suite_full: bool = False
    is_reserved: bool = False


def remaining_quota(submitted_at: Sequence[datetime], rules: SuiteRules, now: datetime) -> AccountQuota:
    """What rules leave to an account that submitted at these moments (those that count, in any order).

    A day is the 24 hours before now, a year the 365 days; a file leaves the window at the very moment.
    """
    left_today, next_today = _left(submitted_at, DAY, rules.files_a_day, now)
    left_this_year, next_this_year = _left(submitted_at, YEAR, rules.files_a_year, now)
    waits = [moment for moment in (next_today, next_this_year) if moment is not None]
    return AccountQuota(min(left_today, left_this_year), left_this_year, max(waits, default=None))


def _left(
    submitted_at: Sequence[datetime], window: timedelta, most: int, now: datetime
) -> tuple[int, datetime | None]:
    """How many files fit into the window still, and when the next one does where none does now."""
    inside = sorted(moment for moment in submitted_at if moment > now - window)
    left = max(0, most - len(inside))
    if left:
        return left, None
    if most == 0:  # never: the far end of the calendar says so
        return 0, datetime.max.replace(tzinfo=now.tzinfo)
    return 0, inside[len(inside) - most] + window


def limit_message(found: AccountQuota, rules: SuiteRules) -> str:
    """Return why no file is taken now, and when the next one will be. ``found.next_at`` is not None."""
    used = (
        f"{rules.files_a_year} in a year" if not found.left_this_year else f"{rules.files_a_day} in 24 hours"
    )
    when = (
        "this suite takes none"
        if found.next_at.year >= 9999
        else f"the next one can be sent from {found.next_at:%Y-%m-%d %H:%M} UTC"
    )
    if found.is_suite_full:
        return f"{suite_full_message(found.is_reserved)}; {when}"
    return f"the limit of scored test files is reached ({used}, over all judges of an account); {when}"


def suite_full_message(is_reserved: bool) -> str:
    """Return why nothing of a suite's labels can be shown now, whatever the account's own limits say."""
    if is_reserved:
        return (
            "what accounts without a confirmation may be shown of this suite's labels in a year is used up; "
            "ask a maintainer to confirm your account"
        )
    return "what all accounts together may be shown of this suite's labels in a year is used up"
