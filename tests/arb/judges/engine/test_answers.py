"""Answers of a cluster: partitions of Parquet at any place, journals, and a reply cache that reads them."""

import os
from functools import cache

import pytest

from arb.judges.engine.answers import (
    JOURNAL,
    STALE_S,
    AnswerStore,
    Journal,
    Place,
    journal_lines,
    remove_stale_journals,
)
from arb.judges.engine.cache import CallCache, answer_line, key_in, reply_in
from arb.judges.types import Reply


@pytest.fixture(params=["folder", "memory"])
def url(request, tmp_path):
    """A folder, and a place of fsspec that is none."""
    return str(tmp_path / "store") if request.param == "folder" else f"memory://{tmp_path.name}"


def keys(number: int, first: int = 7) -> list[bytes]:
    """Keys of one partition; some end in zero bytes, which numpy's texts do not keep."""
    return [bytes([first]) + number.to_bytes(4, "big") + bytes(27) for number in range(number)]


@cache  # a line says when it was made
def line_of(key: bytes, text: str = "yes") -> bytes:
    return answer_line(key.hex(), Reply(text, cost_usd=0.5))


def test_every_answer_is_found_by_its_key_and_no_other(url):
    wanted = keys(2_500)  # more than two row groups
    store = AnswerStore(url)
    assert store.add(7, {key: line_of(key, key.hex()) for key in wanted}) == 2_500
    found = AnswerStore(url)
    for key in wanted[::7]:
        assert reply_in(found.line(key), key.hex()).text == key.hex()
    assert found.line(bytes([7]) + b"\xff" * 31) is None
    assert found.line(bytes([8]) + bytes(31)) is None  # a partition without files


def test_an_answer_is_added_once_and_what_is_there_stays(url):
    (first, second), store = keys(2), AnswerStore(url)
    assert store.add(7, {first: line_of(first)}) == 1
    assert store.add(7, {first: line_of(first, "another"), second: line_of(second)}) == 1
    assert store.add(7, {second: line_of(second)}) == 0
    assert sorted(store.keys(7).to_pylist()) == [first, second]
    assert reply_in(AnswerStore(url).line(first), first.hex()).text == "yes"
    assert len([name for name in store.place.files() if name.endswith(".parquet")]) == 2


def test_for_the_keys_of_a_partition_no_text_is_read(tmp_path):
    wanted, store = keys(1_000), AnswerStore(str(tmp_path))
    store.add(7, {key: line_of(key, os.urandom(5_000).hex()) for key in wanted})
    (file,) = (tmp_path / "answers" / "07").iterdir()
    assert len(store.keys(7)) == 1_000
    # 32 bytes a key and what Parquet says of them, and the last 64 kB of the file, where its footer is;
    # the texts are 10 MB, of which zstd leaves half
    assert file.stat().st_size > 4_000_000
    assert store.place.bytes_read < 32_000 + 8_000 + 65_536


def test_lines_of_a_journal_are_there_as_soon_as_they_are_flushed(url):
    place = Place(url)
    journal = Journal(place, f"{JOURNAL}/session/chunk")
    for key in keys(3):
        journal.append(line_of(key))
    journal.flush()
    read = [key_in(line) for name in place.files(JOURNAL) for line in journal_lines(place, name)]
    assert read == keys(3)
    journal.close()


def test_in_a_folder_a_line_is_there_before_append_returns(tmp_path):
    journal = Journal(place := Place(str(tmp_path)), f"{JOURNAL}/session/chunk")
    journal.append(line_of(keys(1)[0]))
    (name,) = place.files(JOURNAL)
    assert [*journal_lines(place, name)] == [line_of(keys(1)[0])]


def test_a_line_that_was_cut_off_by_a_kill_is_left_out(tmp_path):
    place = Place(str(tmp_path))
    one, two = keys(2)
    place.write("journal/s/c/w.jsonl", line_of(one) + line_of(two)[:-5])
    assert [key_in(line) for line in journal_lines(place, "journal/s/c/w.jsonl")] == [one]


def test_what_a_place_refuses_is_raised_by_flush(monkeypatch):
    place = Place("memory://refusing")
    monkeypatch.setattr(Place, "write", lambda *_: (_ for _ in ()).throw(OSError("quota")))
    journal = Journal(place, "journal/s/c")
    journal.append(b"x\n")
    with pytest.raises(OSError, match="quota"):
        journal.flush()


def test_journals_of_other_sessions_stay_for_an_hour(url):
    place = Place(url)
    for session in ("ours", "theirs"):
        place.write(f"{JOURNAL}/{session}/c/w.jsonl", b"{}\n")
    written = place.modified_at(f"{JOURNAL}/theirs/c/w.jsonl")
    remove_stale_journals(place, "ours", now=written + STALE_S - 1)
    assert place.files(JOURNAL) == [f"{JOURNAL}/theirs/c/w.jsonl"]
    remove_stale_journals(place, "ours", now=written + STALE_S + 1)
    assert place.files(JOURNAL) == []


@pytest.mark.parametrize("is_named", [True, False], ids=["at another place", "in the cache's folder"])
def test_a_reply_cache_gives_the_answers_of_a_cluster_too(tmp_path, is_named):
    place = str(tmp_path / "elsewhere") if is_named else str(tmp_path / "calls" / "answers")
    key = keys(1)[0]
    AnswerStore(place).add(7, {key: line_of(key)})
    cache = CallCache(tmp_path / "calls", answers=place if is_named else None)
    found = cache.get(key.hex())
    assert (found.text, found.cost_usd, found.is_from_cache) == ("yes", 0.5, True)
    assert cache.get("ff" * 32) is None
    cache.close()
