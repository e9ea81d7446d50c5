"""Tests of the commit limiter, with a clock set by the test, and of the pauses between attempts."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.core.hub import HOUR, CommitRateLimiter, HubError
from submissions.hub.repository import HeadMoved, seconds_until_retry


class Clock:
    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def most_in_an_hour(moments: list[float]) -> int:
    """Return the most moments in any span of 3600 s, including both ends."""
    return max(sum(start <= moment <= start + HOUR for moment in moments) for start in moments)


def commit_as_fast_as_it_goes(limiter: CommitRateLimiter, clock: Clock, number: int) -> list[float]:
    made = []
    for _ in range(number):
        clock.now += limiter.seconds_to_wait()
        limiter.note()
        made.append(clock.now)
    return made


def test_a_burst_goes_at_once_and_an_hour_never_has_more_than_a_hundred():
    clock = Clock(1_000.0)
    made = commit_as_fast_as_it_goes(CommitRateLimiter(clock=clock), clock, 400)
    assert made[:40] == [1_000.0] * 40
    # Then one every 3600 / (100 - 40) = 60 s.
    assert made[40:43] == [1_060.0, 1_120.0, 1_180.0]
    assert most_in_an_hour(made) == 100


@given(
    st.integers(2, 100).flatmap(lambda most: st.tuples(st.just(most), st.integers(1, most - 1))),
    st.lists(st.floats(0, 2_000), min_size=1, max_size=120),
)
def test_however_commits_come_no_hour_has_more_than_it_may(sizes, pauses):
    most, burst = sizes
    clock = Clock()
    limiter, made = CommitRateLimiter(most, burst, clock), []
    for pause in pauses:
        clock.now += pause
        clock.now += limiter.seconds_to_wait() * (1 + 1e-9)  # sums of floats end slightly early
        limiter.note()
        made.append(clock.now)
    assert most_in_an_hour(made) <= most


def test_a_burst_is_less_than_an_hour_has():
    with pytest.raises(ValueError, match="burst"):
        CommitRateLimiter(10, 10)


def test_pauses_grow_to_a_minute_and_a_moved_head_is_looked_at_soon():
    assert 0.5 <= seconds_until_retry(HubError("silent"), 1) <= 1
    assert 30 <= seconds_until_retry(HubError("silent"), 200) <= 60
    assert seconds_until_retry(HeadMoved("moved"), 9) <= 0.5


@pytest.mark.parametrize(("asked", "waited"), [("7", 7), ("9999", 300)])
def test_the_hub_is_given_the_time_that_it_asks_for(asked, waited):
    problem = HubError("too many requests")
    problem.__cause__ = OSError()
    problem.__cause__.response = SimpleNamespace(headers={"Retry-After": asked}, status_code=429)
    assert seconds_until_retry(problem, 1) == waited
