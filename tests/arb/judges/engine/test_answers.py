"""Shared answers: partitions of Parquet files at any place, and a reply cache that reads them."""

import threading
from contextlib import ExitStack
from functools import cache

import pytest

from arb.judges.engine.answers import AnswerStore
from arb.judges.engine.cache import CallCache, answer_line, reply_in
from arb.judges.types import Reply
from tests.support.buckets import STORES, bucket_server, lacking_packages

PLACES = ["folder", "memory", *(pytest.param(each, marks=pytest.mark.slow) for each in STORES)]


@pytest.fixture(scope="module")
def buckets():
    with ExitStack() as opened:
        yield cache(lambda store: opened.enter_context(bucket_server(store)))


@pytest.fixture(params=PLACES)
def url(request, tmp_path, buckets):
    """A folder, a place of fsspec that is none, and buckets, whose servers run on this machine."""
    if request.param in STORES:
        if lacking := lacking_packages(request.param):
            pytest.skip(f"pip install {' '.join(lacking)}")
        return f"{buckets(request.param)}/{request.node.originalname}"
    return str(tmp_path / "store") if request.param == "folder" else f"memory://{tmp_path.name}"


def keys(number: int, first: int = 7) -> list[bytes]:
    """Keys of one partition; some end in zero bytes."""
    return [bytes([first]) + number.to_bytes(4, "big") + bytes(27) for number in range(number)]


@cache  # a line says when it was made
def line_of(key: bytes, text: str = "yes") -> bytes:
    return answer_line(key.hex(), Reply(text, cost_usd=0.5))


def test_every_answer_is_found_by_its_key_and_no_other(url):
    wanted = keys(2_500)  # more than two row groups
    assert AnswerStore(url).add((key, line_of(key, key.hex())) for key in wanted) == 2_500
    found = AnswerStore(url)
    for key in wanted[::7]:
        assert reply_in(found.line(key), key.hex()).text == key.hex()
    assert found.line(bytes([7]) + b"\xff" * 31) is None
    assert found.line(bytes([8]) + bytes(31)) is None  # a partition without files


def test_an_answer_is_added_once_and_what_is_there_stays(url):
    (first, second), store = keys(2), AnswerStore(url)
    assert store.add([(first, line_of(first))]) == 1
    assert store.add([(first, line_of(first, "another")), (second, line_of(second))]) == 1
    assert AnswerStore(url).add([(second, line_of(second))]) == 0
    assert store.keys(7) == {first, second}
    assert reply_in(AnswerStore(url).line(first), first.hex()).text == "yes"
    assert len(store.files("answers")) == 2


def test_several_writers_need_no_lock_and_the_same_answers_make_the_same_file(url):
    answers = [(key, line_of(key)) for first in range(3) for key in keys(100, first)]
    writers = [threading.Thread(target=AnswerStore(url).add, args=(answers,)) for _ in range(3)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    store = AnswerStore(url)
    assert len(store.files("answers")) == 3
    assert [len(store.keys(partition)) for partition in range(3)] == [100, 100, 100]


@pytest.mark.parametrize("is_named", [True, False], ids=["at another place", "in the cache's folder"])
def test_a_reply_cache_gives_shared_answers_too(tmp_path, is_named):
    place = str(tmp_path / "elsewhere") if is_named else str(tmp_path / "calls" / "answers")
    key = keys(1)[0]
    AnswerStore(place).add([(key, line_of(key))])
    calls = CallCache(tmp_path / "calls", answers=place if is_named else None)
    found = calls.get(key.hex())
    assert (found.text, found.cost_usd, found.is_from_cache) == ("yes", 0.5, True)
    assert calls.get("ff" * 32) is None
    calls.close()
