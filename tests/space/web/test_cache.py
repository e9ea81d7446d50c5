"""What is costly to make is made once, and kept within bounds."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from space.web.cache import ByteCache


def test_a_thing_is_made_once_and_found_again():
    made = []
    shelf = ByteCache(100, len)
    for _ in range(3):
        assert shelf.get("a", lambda: made.append(1) or b"xyz") == b"xyz"
    assert made == [1]


def test_those_asked_for_last_stay():
    shelf = ByteCache(3, lambda _: 1)
    for key in ("a", "b", "c", "a", "d"):  # a was asked for again, so b is the oldest when d comes
        shelf.get(key, lambda key=key: key)
    made = []
    for key in ("a", "c", "d", "b"):
        shelf.get(key, lambda key=key: made.append(key) or key)
    assert made == ["b"]


def test_what_is_larger_than_the_shelf_is_handed_out_and_not_kept():
    shelf = ByteCache(2, len)
    shelf.get("small", lambda: b"1")
    assert shelf.get("large", lambda: b"12345") == b"12345"
    assert shelf.bytes == 1


def test_what_fails_is_not_kept():
    shelf = ByteCache(10, len)

    def fail():
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        shelf.get("a", fail)
    assert shelf.get("a", lambda: b"there") == b"there"


def test_two_who_ask_at_once_wait_for_one_making():
    shelf, made, begun = ByteCache(100, len), [], threading.Event()

    def make():
        begun.set()
        threading.Event().wait(0.05)
        made.append(1)
        return b"x"

    first = threading.Thread(target=lambda: shelf.get("a", make))
    first.start()
    begun.wait(5)
    assert shelf.get("a", make) == b"x"
    first.join()
    assert made == [1]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 40)), max_size=60))
def test_the_bytes_are_those_of_what_is_kept_and_within_the_bound(asked):
    shelf = ByteCache(100, len)
    for key, size in asked:
        shelf.get((key, size), lambda size=size: b"x" * size)
        kept = [thing for thing, _ in shelf._kept.values()]
        assert shelf.bytes == sum(map(len, kept)) <= 100
