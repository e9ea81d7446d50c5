from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset_script.suite_rules import SuiteRules
from submissions.accounts import Actor, age_problem, qualifies_on

TODAY = date(2026, 11, 21)
MONTH = SuiteRules(account_age_days=30)
NEW = Actor("ada", since=date(2026, 11, 1), how="session")


def test_a_new_account_may_from_the_day_it_is_old_enough():
    # 1 November and 30 days: 1 December.
    assert qualifies_on(NEW, MONTH, TODAY) == date(2026, 12, 1)
    said = age_problem(NEW, MONTH, TODAY)
    assert "30 days old" in said
    assert "2026-11-01" in said
    assert "may from 2026-12-01" in said


def test_the_very_day_is_old_enough():
    assert age_problem(NEW, MONTH, date(2026, 12, 1)) is None
    assert age_problem(NEW, MONTH, date(2026, 11, 30)) is not None


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
