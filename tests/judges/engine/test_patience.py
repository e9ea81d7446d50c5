import pytest

from judges.engine.errors import CallFailed
from judges.engine.patience import RetryPolicy, RetryState

TRANSIENT = CallFailed("transient", "500")
IN_VAIN = CallFailed("transient", "cut", maybe_paid=True, raw="{")
SLOW = CallFailed("transient", "no reply in time", maybe_paid=True, is_slow=True)
RATE_LIMIT = CallFailed("rate_limit", "429")


def waits(*failures, draw=1.0, **retry_policy):
    tries = RetryState(RetryPolicy(**retry_policy), lambda: draw)
    return [tries.wait_s(failure) for failure in failures]


def test_waits_double_up_to_the_longest_and_end_with_the_last_try():
    assert waits(*[TRANSIENT] * 5, transient=5, first_wait_s=1, max_wait_s=3) == [1, 2, 3, 3, None]


def test_waits_are_spread_over_the_second_half_of_their_length():
    assert waits(TRANSIENT, draw=0.0, first_wait_s=1) == [0.5]
    assert waits(TRANSIENT, draw=0.5, first_wait_s=1) == [0.75]


def test_what_was_paid_in_vain_is_tried_less_often_and_what_costs_nothing_more_often():
    assert waits(*[IN_VAIN] * 3)[-1] is None
    assert waits(*[SLOW] * 3)[-1] is None
    assert None not in waits(*[TRANSIENT] * 7)
    assert None not in waits(*[RATE_LIMIT] * 9)
    assert waits(*[RATE_LIMIT] * 10)[-1] is None


def test_every_kind_has_tries_and_waits_of_its_own():
    mixed = [TRANSIENT, RATE_LIMIT, IN_VAIN] * 2 + [TRANSIENT, RATE_LIMIT]
    assert waits(*mixed, first_wait_s=1) == [1, 1, 1, 2, 2, 2, 4, 4]


def test_where_a_wait_is_asked_for_all_wait_and_this_one_no_longer():
    asked = CallFailed("rate_limit", "429", retry_after_s=30)
    assert waits(asked) == [0.0]


def test_nobody_waits_for_hours():
    assert waits(CallFailed("rate_limit", "429", retry_after_s=7200)) == [None]


@pytest.mark.parametrize("kind", ["final", "too_long", "refused", "unsupported_parameter"])
def test_other_failures_are_not_tried_again(kind):
    assert waits(CallFailed(kind, "no")) == [None]
