"""Who submits or moderates, and from which day on an account may submit. Pure: no Hub, no clock."""

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

from dataset_script.suite_rules import SuiteRules

How = Literal["local", "session", "token"]


@dataclass(frozen=True)
class Actor:
    """Somebody who acts, as the server knows them.

    ``since`` is the day on which the account was made, None where nobody can say. ``how`` they were known:
    ``local``, a name said on the machine itself; ``session``, signed in with Hugging Face; ``token``, a
    bearer token that the Hub confirmed.
    """

    name: str
    is_maintainer: bool = False
    since: date | None = None
    how: How = "local"


def is_same_name(name: str, other: str) -> bool:
    """Whether two names are of one account: the Hub's names differ by more than their capitals."""
    return name.casefold() == other.casefold()


def is_age_exempt(actor: Actor, rules: SuiteRules) -> bool:
    """Whether the age of the account does not count.

    So where the suite asks for none, for maintainers, for accounts the suite exempts, and for names said on
    the machine itself: these have no age.
    """
    return (
        rules.account_age_days == 0
        or actor.is_maintainer
        or actor.how == "local"
        or any(is_same_name(actor.name, name) for name in rules.age_exempt)
    )


def qualifies_on(actor: Actor, rules: SuiteRules, today: date) -> date | None:
    """The first day on which the account may submit, ``today`` where it may already.

    None where it is not known when the account was made, so that no day can be named.
    """
    if is_age_exempt(actor, rules):
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
