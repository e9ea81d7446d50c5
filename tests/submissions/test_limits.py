"""Two files in 24 hours, twenty in a year: what is left, and when the next one may come."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset_script.suite_rules import SuiteRules
from submissions.limits import DAY, YEAR, Quota, limit_message, remaining_quota

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
RULES = SuiteRules(files_a_day=2, files_a_year=4)


def hours_ago(*hours: float) -> list[datetime]:
    return [NOW - timedelta(hours=n) for n in hours]


def test_nothing_submitted_leaves_everything():
    assert remaining_quota([], RULES, NOW) == Quota(2, 4, None)


def test_a_file_leaves_the_day_after_exactly_24_hours():
    assert remaining_quota(hours_ago(1, 23), RULES, NOW) == Quota(0, 2, NOW + timedelta(hours=1))
    assert remaining_quota(hours_ago(1, 24), RULES, NOW) == Quota(1, 2, None)


def test_the_year_holds_where_the_day_would_not():
    # Four in the last 365 days: the oldest, 100 days old, leaves in 265 days.
    came = hours_ago(*(24 * days for days in (100, 90, 80, 70)))
    assert remaining_quota(came, RULES, NOW) == Quota(0, 0, NOW + timedelta(days=265))


def test_the_later_of_both_waits_counts():
    # The day is free again in 1 hour, the year in 365 days - 50 hours.
    came = hours_ago(1, 23, 49, 50)
    assert remaining_quota(came, RULES, NOW).next_at == NOW + timedelta(days=365) - timedelta(hours=50)


def test_a_suite_that_takes_none_says_so():
    rules = SuiteRules(files_a_day=0)
    found = remaining_quota([], rules, NOW)
    assert found.left_today == 0
    assert "this suite takes none" in limit_message(found, rules)


def test_the_message_names_the_limit_and_the_moment():
    found = remaining_quota(hours_ago(1, 23), RULES, NOW)
    assert limit_message(found, RULES) == (
        "the limit of scored test files is reached (2 in 24 hours, over all judges of an account); the next "
        "one can be sent from 2026-06-01 13:00 UTC"
    )
    with pytest.raises(ValueError, match="may submit"):
        limit_message(remaining_quota([], RULES, NOW), RULES)


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
