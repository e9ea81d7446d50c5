"""Tests of texts and JSON on the remaining quota of an account."""

from datetime import UTC, datetime

import pytest

from arb.core.suite import SuiteRules
from space.web.submission_text import allowance_sentence, rules_sentence
from submissions.intake.accounts import AccountQuota

RULES = SuiteRules(files_a_day=2, files_a_year=20)
NEXT = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("left", "text"),
    [
        (AccountQuota(2, 20, None), "You have left: 2 of 2 files today, 20 of 20 this year."),
        (
            AccountQuota(0, 7, NEXT),
            "You have no files left today. You may submit the next one from "
            "2026-03-01 12:30 UTC; 7 of 20 are left this year.",
        ),
        (
            AccountQuota(0, 0, NEXT),
            "You have no files left this year. You may submit the next one from "
            "2026-03-01 12:30 UTC; 0 of 20 are left this year.",
        ),
        (AccountQuota(0, 5, datetime.max.replace(tzinfo=UTC)), "This suite accepts no test files now."),
    ],
)
def test_the_sentence_has_the_moment_of_the_next_file(left, text):
    assert allowance_sentence(left, RULES) == text


def test_the_rules_are_one_sentence():
    assert rules_sentence(RULES).startswith(
        "An account may have 2 files scored on test in 24 hours and 20 in"
    )
    assert "have 1 file scored" in rules_sentence(SuiteRules(files_a_day=1))
