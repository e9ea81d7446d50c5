"""Values are made once and stored within the limit."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.core.cache import ByteCache


def test_a_value_is_made_once_and_found_again():
    made = []
    cache = ByteCache(100, len)
    for _ in range(3):
        assert cache.get("a", lambda: made.append(1) or b"xyz") == b"xyz"
    assert made == [1]


def test_a_value_is_found_only_once_it_is_made_and_nobody_waits_for_it():
    cache = ByteCache(100, len)
    found = []

    def make() -> bytes:
        found.append(cache.find("a"))  # while it is being made
        return b"xyz"

    cache.get("a", make)
    assert (found, cache.find("a"), cache.find("b")) == ([None], b"xyz", None)


def test_the_least_recently_used_goes_first():
    cache = ByteCache(3, lambda _: 1)
    for key in ("a", "b", "c", "a", "d"):  # a was asked for again, so b is the oldest when d comes
        cache.get(key, lambda key=key: key)
    made = []
    for key in ("a", "c", "d", "b"):
        cache.get(key, lambda key=key: made.append(key) or key)
    assert made == ["b"]


def test_a_value_larger_than_the_cache_is_returned_and_not_stored():
    cache = ByteCache(2, len)
    cache.get("small", lambda: b"1")
    assert cache.get("large", lambda: b"12345") == b"12345"
    assert cache.bytes == 1


def test_a_failure_is_not_stored():
    cache = ByteCache(10, len)

    def fail():
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        cache.get("a", fail)
    assert cache.get("a", lambda: b"there") == b"there"


def test_two_who_ask_at_once_wait_for_one_making():
    cache, made, begun = ByteCache(100, len), [], threading.Event()

    def make():
        begun.set()
        threading.Event().wait(0.05)
        made.append(1)
        return b"x"

    first = threading.Thread(target=lambda: cache.get("a", make))
    first.start()
    begun.wait(120)
    assert cache.get("a", make) == b"x"
    first.join()
    assert made == [1]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 40)), max_size=60))
def test_the_bytes_are_those_of_what_is_kept_and_within_the_bound(asked):
    cache = ByteCache(100, len)
    for key, size in asked:
        cache.get((key, size), lambda size=size: b"x" * size)
        kept = list(cache._values.values())
        assert cache.bytes == sum(map(len, kept)) <= 100
