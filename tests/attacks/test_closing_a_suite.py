"""Strangers with free accounts cannot use up what a private suite may show in a year."""

from datetime import timedelta

import pytest

from submissions.errors import RateLimited
from tests.submissions.conftest import settings, suite_folder
from tests.submissions.privacy.test_charges import MIA, charged, figures_of, send_held, suite

__all__ = ["settings", "suite", "suite_folder"]


@pytest.mark.slow
@pytest.mark.parametrize("strangers", [28, 200])
def test_fresh_accounts_with_held_files_do_not_close_a_suite(suite, strangers):
    for number in range(strangers):
        send_held(suite, f"Stranger {number}")
    assert charged(suite) == []
    assert suite.records.quota("Ada").next_at is None
    assert figures_of(suite, "Ada", misses=1) is not None


@pytest.mark.slow
@pytest.mark.parametrize("strangers", [28, 200])
def test_confirmed_accounts_get_figures_after_strangers_have_taken_all_they_can(suite, strangers):
    shown, refused = 0, []
    for number in range(strangers):
        try:
            shown += figures_of(suite, f"Stranger {number}", misses=number % 6) is not None
        except RateLimited as problem:
            refused.append(problem)
    assert (shown, len(refused)) == (4, strangers - 4)
    assert "ask a maintainer to confirm your account" in str(refused[0])
    assert refused[0].next_at == suite.clock() + timedelta(days=365)
    with pytest.raises(RateLimited, match="unconfirmed accounts"):
        figures_of(suite, "Ada", misses=1)
    for account in ("Ada", "Bob"):
        suite.moderation.decide_account("confirmed", account, MIA, "known to us", even_if_unknown=True)
        assert all(figures_of(suite, account, misses=misses) is not None for misses in (1, 2))
    # 4 files of strangers and 4 of Ada and Bob: all 8 of the year.
    suite.moderation.decide_account("confirmed", "Eve", MIA, "known to us", even_if_unknown=True)
    with pytest.raises(RateLimited, match="all accounts together have used up"):
        figures_of(suite, "Eve", misses=1)
