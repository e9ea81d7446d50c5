"""Two files in 24 hours, twenty in a year: what is left, and when the next one may come."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.core.suite import SuiteRules
from submissions.errors import RateLimited
from submissions.intake.accounts import (
    DAY,
    YEAR,
    AccountQuota,
    Actor,
    age_problem,
    qualifies_on,
    remaining_quota,
    require_quota,
)

TODAY = date(2026, 11, 21)
MONTH = SuiteRules(account_age_days=30)
NEW = Actor("ada", since=date(2026, 11, 1), how="session")


def test_a_new_account_may_from_the_day_it_is_old_enough():
    # 1 November and 30 days: 1 December.
    assert qualifies_on(NEW, MONTH, TODAY) == date(2026, 12, 1)
    said = age_problem(NEW, MONTH, TODAY)
    assert "30 days old" in said
    assert "2026-11-01" in said
    assert "may submit from 2026-12-01" in said


@pytest.mark.parametrize(
    ("actor", "rules"),
    [
        (NEW, SuiteRules(account_age_days=0)),
        (replace(NEW, is_maintainer=True), MONTH),
        (replace(NEW, how="local"), MONTH),
        (NEW, replace(MONTH, age_exempt=("grace", "ADA"))),
        (replace(NEW, since=None), SuiteRules()),
    ],
    ids=["no rule", "maintainer", "own machine", "exempt by name", "unknown day without a rule"],
)
def test_who_is_exempt_may_today(actor, rules):
    assert qualifies_on(actor, rules, TODAY) == TODAY
    assert age_problem(actor, rules, TODAY) is None


def test_an_account_of_unknown_age_may_not_and_is_told_what_to_do():
    unknown = replace(NEW, since=None)
    assert qualifies_on(unknown, MONTH, TODAY) is None
    assert "ask a maintainer" in age_problem(unknown, MONTH, TODAY)


def test_exempting_one_name_exempts_no_longer_one():
    assert age_problem(NEW, replace(MONTH, age_exempt=("ad", "ada2")), TODAY) is not None


@given(st.dates(date(2000, 1, 1), TODAY), st.integers(0, 9_999), st.booleans())
def test_a_problem_is_said_exactly_until_the_day_that_is_named(since, days, by_token):
    actor = Actor("ada", since=since, how="token" if by_token else "session")
    rules = SuiteRules(account_age_days=days)
    day = qualifies_on(actor, rules, TODAY)
    assert (age_problem(actor, rules, TODAY) is None) == (day == TODAY)
    assert age_problem(actor, rules, day) is None
    if day > TODAY:
        assert age_problem(actor, rules, day - timedelta(days=1)) is not None


NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
RULES = SuiteRules(files_a_day=2, files_a_year=4)


def hours_ago(*hours: float) -> list[datetime]:
    return [NOW - timedelta(hours=n) for n in hours]


def test_a_file_leaves_the_day_after_exactly_24_hours():
    assert remaining_quota(hours_ago(1, 23), RULES, NOW) == AccountQuota(0, 2, NOW + timedelta(hours=1))
    assert remaining_quota(hours_ago(1, 24), RULES, NOW) == AccountQuota(1, 2, None)


def test_the_year_holds_where_the_day_would_not():
    # Four in the last 365 days: the oldest, 100 days old, leaves in 265 days.
    came = hours_ago(*(24 * days for days in (100, 90, 80, 70)))
    assert remaining_quota(came, RULES, NOW) == AccountQuota(0, 0, NOW + timedelta(days=265))


def test_the_later_of_both_waits_counts():
    # The day is free again in 1 hour, the year in 365 days - 50 hours.
    came = hours_ago(1, 23, 49, 50)
    assert remaining_quota(came, RULES, NOW).next_at == NOW + timedelta(days=365) - timedelta(hours=50)


def test_a_suite_that_takes_none_says_so():
    rules = SuiteRules(files_a_day=0)
    found = remaining_quota([], rules, NOW)
    assert found.left_today == 0
    with pytest.raises(RateLimited, match="this suite accepts no test files"):
        require_quota(found, rules)


def test_the_message_names_the_limit_and_the_moment():
    found = remaining_quota(hours_ago(1, 23), RULES, NOW)
    with pytest.raises(RateLimited) as refused:
        require_quota(found, RULES)
    assert str(refused.value) == (
        "the limit of scored test files is reached (2 in 24 hours, over all judges of an account); the next "
        "one can be sent from 2026-06-01 13:00 UTC"
    )


@given(st.lists(st.floats(0, 800), max_size=12))
def test_whoever_waits_until_the_named_moment_may_submit_and_not_before(days):
    came = [NOW - timedelta(days=n) for n in days]
    found = remaining_quota(came, RULES, NOW)
    if found.next_at is None:
        assert sum(NOW - moment < DAY for moment in came) < 2
        assert sum(NOW - moment < YEAR for moment in came) < 4
    else:
        assert remaining_quota(came, RULES, found.next_at).next_at is None
        assert remaining_quota(came, RULES, found.next_at - timedelta(seconds=1)).next_at is not None
